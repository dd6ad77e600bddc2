-- The submit filter of slurm_sns, a module for a site's own job_submit.lua: reads the job, asks sns_judge, applies the
-- verdict.
--
-- It runs inside slurmctld, under its locks, before Slurm limits the length of what users write. So it must be fast: it
-- reads three small files with io.open, writes a byte into a fourth, never waits, and reads no more of a job than the
-- verdict needs (tests/benchmarks/filter.py measures it). Only SlurmUser and root may be able to write in the
-- directories of these files, because a FIFO there would block slurmctld.
-- Errors are raised. The pcall of the caller turns them into "the job passes as it is" (see job_submit.lua).
-- luacheck: std min, read globals setfenv loadstring
-- SPDX-License-Identifier: GPL-2.0-or-later

local judge = require("sns_judge")
local compiled, skip_jobs_table = pcall(require, "sns_jobs_table") -- large sites compile it: sns_jobs_table.c

local M = { table_path = "/etc/slurm/sns/filter.lua" }

local MOST_TABLE_BYTES = 1048576
local TABLE_HEAD_BYTES = 8192 -- sns render writes the digest of the table into its first lines
local OPTION = "_SLURM_SPANK_OPTION_sns_sns_" -- Slurm's prefix, the plugin's name, the common prefix of its options
local NO_ARGUMENT = "(null)" -- the value that Slurm 26.05 writes there for an option without an argument
local ENOENT, ENOTDIR = 2, 20
local SPREAD_JOB = 256 -- the bit of job_desc.bitflags that --spread-job sets (slurm.h)
local USE_MIN_NODES = 512 -- the bit that --use-min-nodes sets
-- The bits that --gres-flags sets: enforce-binding, disable-binding, one-task-per-sharing, multiple-tasks-per-sharing.
local GRES_FLAGS = { 16, 524288, 274877906944, 549755813888 }
local ANY_NUMBER_OF_NODES = 500000 -- slurmctld counts no further; the same number as in slurm_sns/slurm/translate.py

-- Of texts that users can make long, only so much is read: these limits keep a submission below a millisecond. Slurm's
-- own search of the environment has no limit of ours: it takes 8 ns for each variable.
local MOST_COMMENTS_BYTES = 4096 -- of a script's first comments
local MOST_OPTION_BYTES = 512 -- longer than every valid option, so a truncated one is still refused

-- The largest values of each width mean "not given" (NO_VAL, INFINITE).
local UNSET = { [16] = { [65534] = true, [65535] = true }, [32] = { [4294967294] = true, [4294967295] = true } }

-- The fields of job_desc that are read, by type (unsigned integers by width), as in slurm_sns/submit/submission.py.
local TEXTS = {
  "partition", "clusters", "comment", "admin_comment", "reservation", "tres_per_job", "tres_per_node",
  "tres_per_socket", "tres_per_task", "cpus_per_tres", "mem_per_tres", "features", "batch_features", "prefer",
  "req_nodes", "network", "licenses",
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

-- The script's first directive for a burst buffer ("#DW" and "#BB" of DataWarp, "#BB_LUA"), or "". Slurm looks for it
-- after this filter, in the comments and empty lines at the beginning of the script (seen on 26.05). If these exceed
-- our limit, the job counts as one with a burst buffer, so that it passes through. The text is searched as a whole, in
-- C: a loop over its lines would take longer than everything else here.
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

-- Whether a directive of the script says --deadline. As sbatch does it, getopt_long takes --dea for it, too, quotes and
-- backslashes may stand anywhere, and the directives end at the first line that is neither empty nor a comment. #SLURM
-- is the old name of #SBATCH. In doubt it does: in a value of another option, or if the comments exceed our limit.
local function says_deadline(script)
  local text = "\n" .. script:sub(1, MOST_COMMENTS_BYTES)
  local command = text:find("\n[ \t\r\v\f]*[^#%s]")
  if not command and #script > MOST_COMMENTS_BYTES then
    return true
  end
  local comments = text:sub(1, command or -1)
  if not comments:find("\n#S", 1, true) then
    return false
  end
  return comments:gsub("[\"'\\]", ""):find("\n#S[BL][^\n]*%-%-dea") ~= nil
end

-- The functions that read the fields of a submission from Slurm's job description.
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

function READ.begin_time(job_desc)
  local begin_s = job_desc.begin_time or 0
  return begin_s > 0 and begin_s or nil
end

function READ.script(job_desc) return job_desc.script or false end
function READ.script_bytes(_, job) return job.script and #job.script or nil end
function READ.batch(_, job) return job.script ~= false end
function READ.cron(job_desc) return job_desc.cron_job == true end

function READ.burst_buffer(job_desc, job)
  local asked = job_desc.burst_buffer or ""
  return asked ~= "" and asked or burst_buffer_of(job.script or "")
end

function READ.has_deadline(_, job) return says_deadline(job.script or "") end

-- Whether one of Slurm's flags is set. Lua 5.1 has no operators for bits.
local function has(flags, bit)
  return math.floor(flags / bit) % 2 == 1
end

function READ.spread(job_desc)
  return has(job_desc.bitflags or 0, SPREAD_JOB)
end

function READ.has_gres_flags(job_desc)
  local flags = job_desc.bitflags or 0
  for _, bit in ipairs(GRES_FLAGS) do
    if has(flags, bit) then
      return true
    end
  end
  return false
end

-- Slurm searches the environment for the variable without copying it. Only batch jobs have an environment here.
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

-- Slurm makes a table of all entries when they are first read, so their number, a field of its own, is checked first.
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

-- Slurm's job description as the submission that sns_judge reads; a text that is not given is "", a number nil. Slurm
-- copies a text of any length each time it is read, so a field is read when the judge first needs it, and then kept.
function M.submission(job_desc)
  return setmetatable({}, {
    __index = function(job, name)
      local value = READ[name](job_desc, job)
      job[name] = value
      return value
    end,
  })
end

-- Writes into a job with -n alone what this means to Slurm: any number of nodes, as few as possible. Otherwise Slurm
-- 26.05 sets the job's number of tasks as its most nodes, and another number when a placement sets the tasks on each
-- node. Slurm takes that for an administrator's change of the job's nodes, and then checks no limit on its nodes.
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

-- Whether none of the partitions limits the nodes of a job. The user may move the job to any of them, and a partition
-- with a limit starts no job whose most nodes are more than the limit.
local function nowhere_limited(part_list)
  for _, partition in pairs(part_list) do
    if not partition.max_nodes or partition.max_nodes < ANY_NUMBER_OF_NODES then
      return false
    end
  end
  return next(part_list) ~= nil
end

-- The first bytes of a file and its size, or nil and the error.
local function read(path, most_bytes)
  local file, problem = io.open(path, "rb")
  if not file then
    return nil, problem
  end
  local text, size = file:read(most_bytes) or "", file:seek("end")
  file:close()
  return text, size
end

-- Evaluates the text with an empty environment. Lua 5.1 has setfenv for that; later versions, with which some sites
-- build Slurm, take the environment as an argument of load.
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
  heartbeat_timeout_s = "number", first_lease_s = "number", default_memory_per_cpu_mb = "number",
  tells_users = "boolean",
  partitions = "table", heuristics = "table", messages = "table",
}

local kept = {} -- the last table that was loaded, and the path, size and first bytes of its file

-- The table that `sns render` wrote. Raises an error if it cannot be read or has another form. The first bytes of the
-- file, which hold the digest of the rest, are read each time. The file is parsed again only if these or its size have
-- changed, because parsing takes some tens of milliseconds for a large site's table.
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

-- The Unix seconds in the heartbeat file, nil if there are none.
function M.heartbeat(path)
  local text = read(path, 32)
  local digits = text and text:match("^%s*([0-9]+)%s*$")
  return digits and #digits <= 15 and tonumber(digits) or nil
end

-- Whether the kill switch is on. A file that exists but cannot be opened counts as on, because in doubt jobs pass.
function M.killed(path)
  local file, _, code = io.open(path, "rb")
  if file then
    file:close()
    return true
  end
  return code ~= ENOENT and code ~= ENOTDIR
end

-- The verdict, and the table by which it was made.
function M.verdict(job_desc, path, now_s)
  local tbl = M.load_table(path or M.table_path)
  local heartbeat_s, killed = M.heartbeat(tbl.heartbeat_path), M.killed(tbl.kill_switch_path)
  return judge.judge(M.submission(job_desc), tbl, now_s or os.time(), heartbeat_s, killed), tbl
end

-- For a script that does not read slurm.jobs, in which Slurm gives it all jobs: keeps Slurm from making this table before
-- each submission and each update, where sns_jobs_table is installed. Without that it changes nothing.
function M.without_jobs(slurm)
  if compiled then
    skip_jobs_table()
    slurm.jobs = {} -- the jobs that it refers to may go
  end
end

-- Tells the scheduler that a job comes, so that it looks at once. It makes and watches a file beside the heartbeat. What is
-- written is one byte at its beginning, so it does not grow; a file that is not there is not made.
local function tell(heartbeat_path)
  local file = io.open(heartbeat_path:match("^.*/") .. "submitted", "r+b")
  if file then
    file:write("1")
    file:close()
  end
end

-- Judges the job and applies the verdict to it. Returns slurm.SUCCESS, or slurm.ERROR after telling the user why.
-- `part_list` are the partitions that Slurm passes to the script; without them `open_nodes` is not called.
function M.submit(job_desc, slurm, part_list)
  local verdict, tbl = M.verdict(job_desc)
  if verdict.refuse then
    slurm.log_user("%s", verdict.refuse)
    return slurm.ERROR
  elseif verdict.pass then
    slurm.log_debug("sns: passes through: %s", verdict.pass)
    return slurm.SUCCESS
  end
  job_desc.admin_comment = verdict.admin_comment -- before the gate, which without a record looks like its owner's
  if verdict.begin_s then
    if not verdict.fixed and says_several_tasks(job_desc) and nowhere_limited(part_list or {}) then
      open_nodes(job_desc)
    end
    job_desc.begin_time = verdict.begin_s
    tell(tbl.heartbeat_path)
    if tbl.tells_users then
      slurm.log_user("%s", tbl.messages.managed)
    end
  end
  return slurm.SUCCESS
end

return M
