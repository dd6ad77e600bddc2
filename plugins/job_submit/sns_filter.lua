-- The submit filter of slurm_sns, a module for a site's own job_submit.lua: reads the job, asks sns_judge, applies the
-- verdict.
--
-- It runs inside slurmctld, under its locks, and before Slurm's own limits on the length of what users write: three
-- small files are read with io.open, nothing else is touched, nothing waits, and no more of a job is looked at than the
-- verdict needs (tests/benchmarks/filter.py measures it). The files' directories must be writable by SlurmUser and root
-- alone (a FIFO there would block slurmctld).
-- Errors are raised; the caller's pcall turns them into "the job passes as it is" (see job_submit.lua).
-- luacheck: std min, read globals setfenv loadstring
-- SPDX-License-Identifier: GPL-2.0-or-later

local judge = require("sns_judge")

local M = { table_path = "/etc/slurm/sns/filter.lua" }

local MOST_TABLE_BYTES = 1048576
local TABLE_HEAD_BYTES = 8192 -- sns render writes the digest of the table into its first lines
local OPTION = "_SLURM_SPANK_OPTION_sns_sns_" -- Slurm's prefix, the plugin's name, the beginning of all its options
local NO_ARGUMENT = "(null)" -- what Slurm 26.05 writes there as the value of an option that takes none
local ENOENT, ENOTDIR = 2, 20
local SPREAD_JOB = 256 -- the bit of job_desc.bitflags that --spread-job sets (slurm.h)
local USE_MIN_NODES = 512 -- and that of --use-min-nodes
local ANY_NUMBER_OF_NODES = 500000 -- slurmctld counts no job's nodes further; slurm_sns/slurm/translate.py knows it

-- What a user can make long is looked at only so far; these bounds keep a submission below a millisecond. What no bound
-- of ours limits is Slurm's own search of the environment: 8 ns for each variable.
local MOST_COMMENTS_BYTES = 4096 -- of a script's first comments
local MOST_OPTION_BYTES = 512 -- beyond every valid option: cut, it is as wrong as it was

-- Slurm says "not given" with the largest values of each width (NO_VAL, INFINITE).
local UNSET = { [16] = { [65534] = true, [65535] = true }, [32] = { [4294967294] = true, [4294967295] = true } }

-- The fields of job_desc that are read, by type (unsigned integers by width), as in slurm_sns/submit/submission.py.
local TEXTS = {
  "partition", "clusters", "comment", "extra", "reservation", "tres_per_job", "tres_per_node", "tres_per_socket",
  "tres_per_task", "cpus_per_tres", "mem_per_tres", "features", "batch_features", "prefer", "req_nodes", "exc_nodes",
  "network", "licenses",
}
local NUMBERS = {
  [16] = {
    "ntasks_per_node", "cpus_per_task", "ntasks_per_tres", "shared", "contiguous", "segment_size", "boards_per_node",
    "sockets_per_board", "sockets_per_node", "cores_per_socket", "threads_per_core", "ntasks_per_board",
    "ntasks_per_socket", "ntasks_per_core", "core_spec", "thread_spec", "pn_min_cpus", "reboot",
  },
  [32] = {
    "het_job_offset", "priority", "num_tasks", "min_cpus", "min_nodes", "max_nodes", "req_switch", "pn_min_tmp_disk",
    "spank_job_env_size",
  },
}

-- The first directive for a burst buffer ("#DW" and "#BB" of DataWarp, "#BB_LUA") where Slurm looks for them after this
-- filter: in the comments and empty lines that the script begins with, as Slurm 26.05 was seen to do. Where these are
-- longer than what is looked at, the job is taken for one with a burst buffer: in doubt it is Slurm's. The text is
-- searched as a whole, by C; a loop over its lines would take longer than all else.
local function burst_buffer_of(script)
  local text = "\n" .. script:sub(1, MOST_COMMENTS_BYTES)
  local command = text:find("\n[^#\n]")
  local comments = text:sub(1, command or -1)
  local bb, dw = comments:find("\n#BB", 1, true), comments:find("\n#DW", 1, true)
  if bb or dw then
    return comments:match("[^\n]+", math.min(bb or dw, dw or bb))
  end
  local cut = not command and #script > MOST_COMMENTS_BYTES
  return cut and "comments of more than " .. MOST_COMMENTS_BYTES .. " bytes" or ""
end

-- How each field of the job that is judged is read of Slurm's.
local READ = {}
for _, name in ipairs(TEXTS) do
  READ[name] = function(job_desc) return job_desc[name] or "" end
end
for width, names in pairs(NUMBERS) do
  for _, name in ipairs(names) do
    READ[name] = function(job_desc)
      local number = job_desc[name]
      return not UNSET[width][number] and number or nil
    end
  end
end
for _, name in ipairs({ "min_mem_per_node", "min_mem_per_cpu" }) do
  READ[name] = function(job_desc) return job_desc[name] end
end

function READ.script(job_desc) return job_desc.script or false end
function READ.script_bytes(_, job) return job.script and #job.script or nil end
function READ.batch(_, job) return job.script ~= false end
function READ.cron(job_desc) return job_desc.cron_job == true end

function READ.burst_buffer(job_desc, job)
  local asked = job_desc.burst_buffer or ""
  return asked ~= "" and asked or burst_buffer_of(job.script or "")
end

-- Whether one of Slurm's flags is set. Lua 5.1 has no operators for bits.
local function has(flags, bit)
  return math.floor(flags / bit) % 2 == 1
end

function READ.spread(job_desc)
  return has(job_desc.bitflags or 0, SPREAD_JOB)
end

-- Slurm searches the environment for one variable at each look; it is not copied. Batch jobs alone have one.
function READ.distribution(job_desc, job)
  return job.batch and job_desc.environment.SLURM_DISTRIBUTION or ""
end

local function option(entry)
  entry = entry:sub(1, MOST_OPTION_BYTES)
  local at = entry:find("=", 1, true) or #entry + 1
  local key = entry:sub(#OPTION + 1, at - 1):gsub("_", "-")
  local value = entry:sub(at + 1)
  return { key, value ~= NO_ARGUMENT and value or "" }
end

-- Slurm makes a table of all entries at the first look: their number, which it tells by itself, is asked first.
function READ.options(job_desc, job)
  local options, count = {}, job.spank_job_env_size or 0
  if count == 0 or count > judge.most_spank_entries then
    return options
  end
  local entries = job_desc.spank_job_env or {}
  for index = 0, count - 1 do
    local entry = entries[index]
    if entry and entry:sub(1, #OPTION) == OPTION then
      options[#options + 1] = option(entry)
    end
  end
  return options
end

-- Slurm's job description as the value that is judged: "" and nil for what is not given. Slurm copies a text at each
-- look, however long it is, so a field is read when the judge first asks for it, and kept.
function M.submission(job_desc)
  return setmetatable({}, {
    __index = function(job, name)
      local value = READ[name](job_desc, job)
      job[name] = value
      return value
    end,
  })
end

-- Says for a job of -n alone what Slurm takes for granted: any number of nodes, as few as possible. Slurm 26.05 would
-- else note its number of tasks as the most nodes, and note another number when a placement sets the tasks on a node.
-- That counts as an administrator's change of the job's nodes, after which no limit on nodes is checked for it.
local function open_nodes(job_desc)
  job_desc.max_nodes = ANY_NUMBER_OF_NODES
  local flags = job_desc.bitflags or 0
  if not has(flags, USE_MIN_NODES) then
    job_desc.bitflags = flags + USE_MIN_NODES
  end
end

local function says_several_tasks(job_desc)
  local tasks = job_desc.num_tasks
  return not UNSET[32][tasks] and (tasks or 0) > 1
end

-- Whether no partition that the user may move the job to gives a job only so many nodes: Slurm starts none there that
-- says a larger number.
local function nowhere_limited(part_list)
  for _, partition in pairs(part_list) do
    if not partition.max_nodes or partition.max_nodes < ANY_NUMBER_OF_NODES then
      return false
    end
  end
  return next(part_list) ~= nil
end

-- The first bytes of a file and its size.
local function read(path, most_bytes)
  local file, problem = io.open(path, "rb")
  if not file then
    return nil, problem
  end
  local text, size = file:read(most_bytes) or "", file:seek("end")
  file:close()
  return text, size
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

local kept = {} -- the last table that was loaded, and by what a change of its file is known

-- The table that `sns render` wrote; raises when it cannot be read or has another form. The first bytes of the file,
-- which hold the digest of the rest, are read each time. It is parsed again only when these or its size have changed:
-- that takes some tens of milliseconds for a large site's table.
function M.load_table(path)
  local head, size = read(path, TABLE_HEAD_BYTES)
  if not head then
    error(size, 0)
  elseif size > MOST_TABLE_BYTES then
    error(path .. ": larger than " .. MOST_TABLE_BYTES .. " bytes", 0)
  end
  if kept.path == path and kept.head == head and kept.size == size then
    return kept.table
  end
  local text, problem = read(path, MOST_TABLE_BYTES)
  local loaded = literal(text or error(problem, 0), path)
  if type(loaded) ~= "table" or loaded.version ~= judge.version then
    error(path .. ": not a table of version " .. judge.version .. "; run sns render", 0)
  end
  for name, kind in pairs(FORM) do
    if type(loaded[name]) ~= kind then
      error(path .. ": " .. name .. " must be a " .. kind .. "; run sns render", 0)
    end
  end
  kept = { path = path, head = text:sub(1, TABLE_HEAD_BYTES), size = #text, table = loaded }
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
-- `part_list` is what Slurm gives the script; without it nothing is said of nodes.
function M.submit(job_desc, slurm, part_list)
  local verdict = M.verdict(job_desc)
  if verdict.refuse then
    slurm.log_user("%s", verdict.refuse)
    return slurm.ERROR
  elseif verdict.pass then
    slurm.log_debug("sns: passes through: %s", verdict.pass)
  else
    job_desc.extra = verdict.extra -- first: a hold without a mark would be nobody's
    if verdict.hold then
      if not verdict.fixed and says_several_tasks(job_desc) and nowhere_limited(part_list or {}) then
        open_nodes(job_desc)
      end
      job_desc.priority = 0
    end
  end
  return slurm.SUCCESS
end

return M
