-- The submit filter of slurm_sns, a module for a site's own job_submit.lua: reads the job, asks sns_judge, applies the
-- verdict.
--
-- It runs inside slurmctld, under its locks: three small files are read with io.open, nothing else is touched, nothing
-- waits. Their directories must be writable by SlurmUser and root alone (a FIFO there would block slurmctld).
-- Errors are raised; the caller's pcall turns them into "the job passes as it is" (see job_submit.lua).
-- luacheck: std min, read globals setfenv loadstring
-- SPDX-License-Identifier: GPL-2.0-or-later

local judge = require("sns_judge")

local M = { table_path = "/etc/slurm/sns/filter.lua" }

local MOST_TABLE_BYTES = 1048576
local OPTION = "_SLURM_SPANK_OPTION_sns_sns_" -- Slurm's prefix, the plugin's name, the beginning of all its options
local NO_ARGUMENT = "(null)" -- what Slurm 26.05 writes there as the value of an option that takes none
local ENOENT, ENOTDIR = 2, 20
local MOST_COMMENT_BYTES = 65536
local SPREAD_JOB = 256 -- the bit of job_desc.bitflags that --spread-job sets (slurm.h)

-- Slurm says "not given" with the largest values of each width (NO_VAL, INFINITE).
local UNSET = { [16] = { [65534] = true, [65535] = true }, [32] = { [4294967294] = true, [4294967295] = true } }

-- The fields of job_desc that are read, by type (unsigned integers by width), as in slurm_sns/submit/submission.py.
local TEXTS = {
  "partition", "comment", "extra", "reservation", "tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task",
  "cpus_per_tres", "mem_per_tres", "features", "batch_features", "prefer", "req_nodes", "exc_nodes", "network",
  "licenses", "burst_buffer",
}
local NUMBERS = {
  [16] = {
    "ntasks_per_node", "cpus_per_task", "ntasks_per_tres", "shared", "contiguous", "segment_size", "boards_per_node",
    "sockets_per_board", "sockets_per_node", "cores_per_socket", "threads_per_core", "ntasks_per_board",
    "ntasks_per_socket", "ntasks_per_core", "core_spec", "thread_spec", "pn_min_cpus", "reboot",
  },
  [32] = {
    "het_job_offset", "priority", "num_tasks", "min_cpus", "min_nodes", "max_nodes", "req_switch", "pn_min_tmp_disk",
  },
}

local function options_of(job_desc)
  local options, entries = {}, job_desc.spank_job_env or {}
  for index = 0, (job_desc.spank_job_env_size or 0) - 1 do
    local entry = entries[index]
    if entry and entry:sub(1, #OPTION) == OPTION then
      local at = entry:find("=", 1, true) or #entry + 1
      local key = entry:sub(#OPTION + 1, at - 1):gsub("_", "-")
      local value = entry:sub(at + 1)
      options[#options + 1] = { key, value ~= NO_ARGUMENT and value or "" }
    end
  end
  return options
end

-- The first directive for a burst buffer ("#DW" and "#BB" of DataWarp, "#BB_LUA") where Slurm looks for them after this
-- filter: in the comments and empty lines that the script begins with, as Slurm 26.05 was seen to do.
local function burst_buffer_of(script)
  for line in script:sub(1, MOST_COMMENT_BYTES):gmatch("[^\n]+") do
    local beginning = line:sub(1, 3)
    if beginning == "#BB" or beginning == "#DW" then
      return line
    elseif beginning:sub(1, 1) ~= "#" then
      return ""
    end
  end
  return ""
end

-- Slurm's job description as the value that is judged: "" and nil for what is not given.
function M.submission(job_desc)
  local job = { batch = job_desc.script ~= nil, cron = job_desc.cron_job == true, options = options_of(job_desc) }
  for _, name in ipairs(TEXTS) do
    job[name] = job_desc[name] or ""
  end
  for width, names in pairs(NUMBERS) do
    for _, name in ipairs(names) do
      local number = job_desc[name]
      job[name] = not UNSET[width][number] and number or nil
    end
  end
  if job.burst_buffer == "" then
    job.burst_buffer = burst_buffer_of(job_desc.script or "")
  end
  job.spread = math.floor((job_desc.bitflags or 0) / SPREAD_JOB) % 2 == 1 -- Lua 5.1 has no operators for bits
  local environment = job.batch and job_desc.environment or {} -- batch jobs alone have one
  job.distribution = environment.SLURM_DISTRIBUTION or ""
  job.min_mem_per_node, job.min_mem_per_cpu = job_desc.min_mem_per_node, job_desc.min_mem_per_cpu
  return job
end

local function read(path, most_bytes)
  local file, problem, code = io.open(path, "rb")
  if not file then
    return nil, problem, code
  end
  local text = file:read(most_bytes) or ""
  file:close()
  return text
end

-- Lua 5.1 has setfenv; later versions, which some sites build Slurm with, take the environment in load.
local function literal(text, path)
  if text:byte(1) == 27 then
    error(path .. ": compiled Lua is not accepted")
  end
  local chunk, problem
  if setfenv then
    chunk, problem = loadstring(text, "@" .. path)
  else
    chunk, problem = load(text, "@" .. path, "t", {})
  end
  if not chunk then
    error(problem, 0)
  end
  return setfenv and setfenv(chunk, {})() or chunk()
end

local FORM = {
  mode = "string", default_partition = "string", heartbeat_path = "string", kill_switch_path = "string",
  heartbeat_timeout_s = "number", default_memory_per_cpu_mb = "number",
  partitions = "table", heuristics = "table", messages = "table",
}

-- The table that `sns render` wrote; raises when it cannot be read or has another form.
function M.load_table(path)
  local text, problem = read(path, MOST_TABLE_BYTES + 1)
  if not text then
    error(problem, 0)
  elseif #text > MOST_TABLE_BYTES then
    error(path .. ": larger than " .. MOST_TABLE_BYTES .. " bytes", 0)
  end
  local loaded = literal(text, path)
  if type(loaded) ~= "table" or loaded.version ~= judge.version then
    error(path .. ": not a table of version " .. judge.version .. "; run sns render", 0)
  end
  for name, kind in pairs(FORM) do
    if type(loaded[name]) ~= kind then
      error(path .. ": " .. name .. " must be a " .. kind .. "; run sns render", 0)
    end
  end
  return loaded
end

-- The Unix seconds in the heartbeat file, nil when there are none.
function M.heartbeat(path)
  local text = read(path, 32)
  local digits = text and text:match("^%s*([0-9]+)%s*$")
  return digits and #digits <= 15 and tonumber(digits) or nil
end

-- Whether the kill switch is on. What exists but cannot be opened counts as on: in doubt jobs pass.
function M.killed(path)
  local file, _, code = io.open(path, "rb")
  if file then
    file:close()
    return true
  end
  return code ~= ENOENT and code ~= ENOTDIR
end

function M.verdict(job_desc, path, now_s)
  local tbl = M.load_table(path or M.table_path)
  local heartbeat_s, killed = M.heartbeat(tbl.heartbeat_path), M.killed(tbl.kill_switch_path)
  return judge.judge(M.submission(job_desc), tbl, now_s or os.time(), heartbeat_s, killed)
end

-- Judges the job and applies the verdict to it. Returns slurm.SUCCESS, or slurm.ERROR after telling the user why.
function M.submit(job_desc, slurm, path)
  local verdict = M.verdict(job_desc, path)
  if verdict.refuse then
    slurm.log_user("%s", verdict.refuse)
    return slurm.ERROR
  elseif verdict.pass then
    slurm.log_debug("sns: passes through: %s", verdict.pass)
  else
    job_desc.extra = verdict.extra -- first: a hold without a mark would be nobody's
    if verdict.hold then
      job_desc.priority = 0
    end
  end
  return slurm.SUCCESS
end

return M
