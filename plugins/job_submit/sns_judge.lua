-- The decision at submission, in Lua 5.1: the same as in slurm_sns/submit, which is the authority.
--
-- Pure: no clock, no files, no Slurm. `judge` takes the values that slurm_sns.submit.judge.judge takes and returns the
-- same verdict; the parity tests run both on the same cases.
-- luacheck: std min
-- SPDX-License-Identifier: GPL-2.0-or-later

local hints = require("sns_hints")
local begins, say = hints.begins, hints.say

local M = {
  version = 2, -- of the form of the table in filter.lua; see slurm_sns/submit/table.py
  most_spank_entries = 64,
}

local MOST_MEMORY_MB = 4294967296 -- 2^32: products with the CPUs of a task stay exact in doubles
local MOST_PARTITION_BYTES, MOST_COMMENT_BYTES, MOST_TRES_BYTES, MOST_SHAPES = 1024, 1024, 1024, 500
local MOST_SCRIPT_BYTES, MOST_FEATURES_BYTES = 262144, 1024
local MOST_BEGIN_S = 99999999999 -- a record has no larger number

-- what we do not place ----------------------------------------------------------------------------------------------

local function any_text(...)
  local names = { ... }
  return function(job)
    for _, name in ipairs(names) do
      if job[name] ~= "" then
        return true
      end
    end
    return false
  end
end

local function any_number(...)
  local names = { ... }
  return function(job)
    for _, name in ipairs(names) do
      if (job[name] or 0) > 0 then
        return true
      end
    end
    return false
  end
end

local function other_tres_per_task(job)
  if #job.tres_per_task > MOST_TRES_BYTES then
    return true
  end
  for entry in job.tres_per_task:gmatch("[^,]+") do
    if not begins(entry, "cpu:") and not begins(entry, "cpu=") then
      return true
    end
  end
  return false
end

-- GPUs: the rules of slurm_sns/gpus.py.

local MOST_ENTRIES = 8

-- The type ("" for any) of an entry such as gres/gpu:a100:2, or nil if it is none that we place.
local function gpu_type(entry)
  local bare = entry:match("^gres[:/](.*)$") or entry
  local count = bare:match("^gpu[:=]([1-9][0-9]*)$")
  if bare == "gpu" or (count and #count <= 9) then
    return ""
  end
  local kind = bare:match("^gpu:([A-Za-z][A-Za-z0-9_.-]*)$")
  if not kind then
    kind, count = bare:match("^gpu:([A-Za-z0-9_.-]+)[:=]([1-9][0-9]*)$")
    kind = kind and #count <= 9 and kind:find("[A-Za-z]") and kind
  end
  return kind and #kind <= 64 and kind or nil
end

-- Whether all entries of the text are GPUs that we place, of any type only or of different types.
local function are_gpus(text, of_any_type_only)
  if #text > MOST_TRES_BYTES then
    return false
  end
  local seen, count = {}, 0
  for entry in text:gmatch("[^,]+") do
    local kind = gpu_type(entry)
    if not kind or seen[kind] or count >= MOST_ENTRIES or seen[""] or (count > 0 and kind == "") then
      return false
    end
    seen[kind], count = true, count + 1
  end
  return count > 0 and (not of_any_type_only or seen[""] == true)
end

-- What is asked by task besides --cpus-per-task, or nil if the text is too long.
local function gres_per_task(job)
  if #job.tres_per_task > MOST_TRES_BYTES then
    return nil
  end
  local entries = {}
  for entry in job.tres_per_task:gmatch("[^,]+") do
    if not begins(entry, "cpu:") and not begins(entry, "cpu=") then
      entries[#entries + 1] = entry
    end
  end
  return table.concat(entries, ",")
end

local function asks_for_gpus_alone(job)
  local per_task = gres_per_task(job)
  if not per_task or job.has_gres_flags or job.tres_per_socket ~= "" then
    return false
  end
  local told
  for _, text in ipairs({ job.tres_per_node, per_task, job.tres_per_job }) do
    if text ~= "" then
      if told then
        return false
      end
      told = text
    end
  end
  return told ~= nil and are_gpus(told) and (job.cpus_per_tres == "" or are_gpus(job.cpus_per_tres, true))
    and (job.mem_per_tres == "" or are_gpus(job.mem_per_tres, true))
end

local function positive(number)
  return number and number > 0 and number or nil
end

-- The first entry that applies is the reason; reasons and order are those of slurm_sns/submit/submission.py. Slurm
-- copies a text each time it is read, so entries that read no text come first and those that read the script come last.
local UNPLACED = {
  { "cron job", function(job) return job.cron end },
  { "heterogeneous job", function(job) return job.het_job_offset ~= nil end },
  { "range of nodes", function(job) return (job.max_nodes or 0) > math.max(job.min_nodes or 1, 1) end },
  { "tasks per gpu", any_number("ntasks_per_tres") },
  { "exclusive or oversubscribe", any_number("shared") }, -- 0 is --exclusive
  { "contiguous", any_number("contiguous") },
  { "spread job", function(job) return job.spread end },
  { "switches", any_number("req_switch", "segment_size") },
  { "boards, sockets, cores, threads", any_number("boards_per_node", "sockets_per_board", "sockets_per_node") },
  { "boards, sockets, cores, threads", any_number("cores_per_socket", "threads_per_core") },
  { "tasks per board, socket, core", any_number("ntasks_per_board", "ntasks_per_socket", "ntasks_per_core") },
  { "specialised cores", function(job) return job.core_spec ~= nil or job.thread_spec ~= nil end },
  { "minimum CPUs", function(job)
    return (job.pn_min_cpus or 0) > (positive(job.cpus_per_task) or 1) * (positive(job.ntasks_per_node) or 1)
  end },
  { "temporary disk", any_number("pn_min_tmp_disk") },
  { "reboot", any_number("reboot") },
  { "overcommit", function(job)
    return job.min_cpus ~= nil and job.num_tasks ~= nil and job.min_cpus > 0 and job.min_cpus < job.num_tasks
  end },
  { "own priority", any_number("priority") },
  { "distant begin time", function(job) return (job.begin_time or 0) > MOST_BEGIN_S end },
  { "large SPANK environment", function(job) return (job.spank_job_env_size or 0) > M.most_spank_entries end },
  { "own admin comment", function(job) return job.admin_comment:find(hints.PREFIX, 1, true) ~= nil end },
  { "clusters", any_text("clusters") },
  { "reservation", any_text("reservation") },
  { "gres", any_text("tres_per_job", "tres_per_node", "tres_per_socket", "cpus_per_tres", "mem_per_tres") },
  { "gres per task", other_tres_per_task },
  { "constraint", function(job)
    return job.batch_features ~= "" or #job.features > MOST_FEATURES_BYTES or job.features:find("[][*]") ~= nil
  end },
  { "prefer", any_text("prefer") },
  { "node list", any_text("req_nodes") },
  { "network", any_text("network") },
  { "licences", any_text("licenses") },
  { "not a batch job", function(job) return not job.batch end },
  { "large script", function(job) return (job.script_bytes or 0) > MOST_SCRIPT_BYTES end },
  { "burst buffer", any_text("burst_buffer") },
  { "deadline", function(job) return job.has_deadline end },
}

local OF_GRES = { gres = true, ["gres per task"] = true } -- no reasons for a job of GPUs alone, where these are placed

local function unplaced(job, places_gpus)
  for _, rule in ipairs(UNPLACED) do
    if rule[2](job) and not (places_gpus and OF_GRES[rule[1]] and asks_for_gpus_alone(job)) then
      return rule[1]
    end
  end
end

-- Whether the job says more about its geometry than its number of tasks. "At least one node" does not count.
local function fixes_geometry(job)
  return (job.min_nodes or 0) > 1 or (positive(job.max_nodes) or positive(job.ntasks_per_node)) ~= nil
    or job.distribution ~= ""
end

-- capacity ----------------------------------------------------------------------------------------------------------

local function geometry(job, default_memory_per_cpu_mb)
  local least_nodes = positive(job.min_nodes) or 1
  local per_node = positive(job.ntasks_per_node)
  local tasks = positive(job.num_tasks) or least_nodes * (per_node or 1)
  local task_cpus = positive(job.cpus_per_task) or 1
  local says_other = job.min_mem_per_node or job.mem_per_tres ~= ""
  local per_cpu_mb = job.min_mem_per_cpu or (says_other and 0) or default_memory_per_cpu_mb
  return {
    tasks = tasks,
    task_cpus = task_cpus,
    task_memory_mb = math.min(per_cpu_mb, MOST_MEMORY_MB) * task_cpus,
    node_memory_mb = math.min(job.min_mem_per_node or 0, MOST_MEMORY_MB),
    least_nodes = math.min(least_nodes, tasks),
    most_nodes = positive(job.max_nodes),
    tasks_per_node = per_node,
  }
end

local function tasks_on(shape, asked)
  if asked.node_memory_mb > shape.memory_mb then
    return 0
  end
  local tasks = math.floor(shape.cpus / asked.task_cpus)
  if asked.task_memory_mb > 0 then
    tasks = math.min(tasks, math.floor(shape.memory_mb / asked.task_memory_mb))
  end
  return asked.tasks_per_node and math.min(tasks, asked.tasks_per_node) or tasks
end

-- The node shape with the largest value of the field `first`; between equal ones, that with the largest of `second`.
local function largest(shapes, first, second)
  local best = shapes[1]
  for _, shape in ipairs(shapes) do
    if shape[first] > best[first] or (shape[first] == best[first] and shape[second] > best[second]) then
      best = shape
    end
  end
  return best
end

local function refuse(tbl, text, name, shape, values)
  values.partitions, values.cores, values.cpus, values.memory_mb = name, shape.cores, shape.cpus, shape.memory_mb
  return say(tbl.messages, text, values)
end

-- The message for a job that is too large for any node of the partition with even one task.
local function no_node(tbl, asked, name, shapes)
  local most_cpus, most_memory = largest(shapes, "cpus", "memory_mb"), largest(shapes, "memory_mb", "cpus")
  local memory_mb = math.max(asked.node_memory_mb, asked.task_memory_mb)
  if asked.task_cpus > most_cpus.cpus then
    return refuse(tbl, "task-cpus", name, most_cpus, { asked = asked.task_cpus })
  elseif memory_mb > most_memory.memory_mb then
    return refuse(tbl, "node-memory", name, most_memory, { asked = memory_mb })
  end
  return refuse(tbl, "task-both", name, most_memory, { asked = asked.task_cpus, asked_mb = memory_mb })
end

local function partition_refusal(tbl, asked, name, shapes)
  if #shapes == 0 then
    return nil
  end
  local able, nodes = {}, 0
  for _, shape in ipairs(shapes) do
    local tasks = tasks_on(shape, asked)
    able[#able + 1] = { tasks = tasks, count = shape.count }
    nodes = nodes + (tasks > 0 and shape.count or 0)
  end
  table.sort(able, function(a, b) return a.tasks > b.tasks end)
  local allowed = math.min(asked.most_nodes or nodes, nodes)
  local room, left = 0, allowed
  for _, entry in ipairs(able) do
    local taken = math.min(entry.count, left)
    room, left = room + entry.tasks * taken, left - taken
  end
  local most_cpus = largest(shapes, "cpus", "memory_mb")
  if nodes == 0 then
    return no_node(tbl, asked, name, shapes)
  elseif nodes < asked.least_nodes then
    return refuse(tbl, "job-nodes", name, most_cpus, { asked = asked.least_nodes, count = nodes })
  elseif room < asked.tasks then
    local values = { asked = asked.tasks, nodes = allowed, count = room }
    values.task_cpus, values.task_mb = asked.task_cpus, asked.task_memory_mb
    return refuse(tbl, "job-tasks", name, most_cpus, values)
  end
end

-- Whether the job gets the whole memory of its nodes, and the nodes of its partitions differ in memory.
local function leaves_memory_open(job, tbl, names)
  if job.mem_per_tres ~= "" or (job.min_mem_per_node or job.min_mem_per_cpu or tbl.default_memory_per_cpu_mb) > 0 then
    return false
  end
  local memory_mb
  for _, name in ipairs(names) do
    for _, shape in ipairs(tbl.partitions[name]) do
      memory_mb = memory_mb or shape.memory_mb
      if shape.memory_mb ~= memory_mb then
        return true
      end
    end
  end
  return false
end

local function refusal(job, tbl, names)
  local shapes = 0
  for _, name in ipairs(names) do
    shapes = shapes + #tbl.partitions[name]
  end
  if shapes > MOST_SHAPES then
    return nil
  end
  local asked = geometry(job, tbl.default_memory_per_cpu_mb)
  table.sort(names)
  local said
  for _, name in ipairs(names) do
    local message = partition_refusal(tbl, asked, name, tbl.partitions[name])
    if not message then
      return nil
    end
    said = said or message
  end
  return said
end

-- the verdict -------------------------------------------------------------------------------------------------------

-- Why the filter does nothing now, or nil. A heartbeat from the future is as stale as an old one: clocks can jump.
function M.idle(tbl, now_s, heartbeat_s, killed)
  if killed then
    return "kill switch"
  elseif tbl.mode == "observe" then
    return "mode observe"
  elseif not heartbeat_s then
    return "no heartbeat"
  elseif math.abs(now_s - heartbeat_s) > tbl.heartbeat_timeout_s then
    return "stale heartbeat"
  end
end

-- The job's partitions, each once; nil if we do not manage all of them.
local function partitions_of(job, tbl)
  if #job.partition > MOST_PARTITION_BYTES then
    return nil
  end
  local names, seen = {}, {}
  for name in job.partition:gmatch("[^,]+") do
    if not seen[name] then
      names[#names + 1], seen[name] = name, true
    end
  end
  if #names == 0 then
    names[1] = tbl.default_partition
  end
  for _, name in ipairs(names) do
    if not tbl.partitions[name] then
      return nil
    end
  end
  return names
end

-- Whether jobs share cores in one of several partitions of the job.
local function shares_in_part(names, tbl)
  if #names > 1 then
    for _, sharing in ipairs(tbl.sharing or {}) do
      for _, name in ipairs(names) do
        if name == sharing then
          return true
        end
      end
    end
  end
  return false
end

-- The AdminComment with our record in it, and in enforce the job's gate.
local function managed(job, tbl, now_s, told)
  if tbl.mode ~= "enforce" then
    return { admin_comment = hints.written(job.admin_comment, told, { { "free", "advise" } }) }
  end
  local own_s = (job.begin_time or 0) > now_s and job.begin_time or nil
  local gate_s = math.max(own_s or 0, now_s + tbl.first_lease_s)
  local values = { { "g", gate_s }, own_s and { "b", own_s } }
  return { admin_comment = hints.written(job.admin_comment, told, values), begin_s = gate_s, fixed = told.fixed }
end

-- Returns {pass = reason}, {refuse = message} or {admin_comment = text}, in enforce with begin_s and fixed. The record
-- contains `fixed` as well.
function M.judge(job, tbl, now_s, heartbeat_s, killed)
  local idle = M.idle(tbl, now_s, heartbeat_s, killed)
  if idle then
    return { pass = idle }
  end
  local names = partitions_of(job, tbl)
  if not names then
    return { pass = "partition not managed" }
  end
  local told, wrong = hints.parse(job, tbl)
  if wrong then
    return { refuse = wrong }
  elseif #job.comment > MOST_COMMENT_BYTES then
    return { pass = "long comment" }
  end
  local reason = told.off and "off" or unplaced(job, tbl.places_gpus)
    or (shares_in_part(names, tbl) and "partitions that share cores and others")
    or (leaves_memory_open(job, tbl, names) and "whole memory of unlike nodes")
  if reason then
    return { pass = reason }
  end
  local too_large = tbl.mode == "enforce" and refusal(job, tbl, names)
  if too_large then
    return { refuse = too_large }
  end
  told.fixed = fixes_geometry(job)
  return managed(job, tbl, now_s, told)
end

return M
