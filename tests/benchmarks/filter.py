"""The time of a submission in the submit filter, which runs under slurmctld's locks. Prints JSON.

    python tests/benchmarks/filter.py [--samples 200]

The filter runs in a real Lua 5.1 with a stand-in for Slurm's job description. As in Slurm, each access to a field makes
a new copy of its text, each access to `spank_job_env` makes a new table, and each access to a variable searches the
environment. For each class of submissions: processor time per submission in microseconds, and as `ratio` the median
divided by the median of the class `plain` in the same run. On a machine that does other work the least time says most.
The class `copy alone` is not a submission: it reads one large text once, which is the least that any filter needs. The
first submission of each class is left out.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from slurm_sns.package_files import shared_path
from slurm_sns.submit.table import FilterTable, NodeShape, lua_text

MEGABYTES = 4  # the largest script that Slurm 26.05 accepts unless max_script_size is set

DRIVER = r"""
local modules, table_path, samples, killed_path = arg[1], arg[2], tonumber(arg[3]), arg[4]
package.path = modules .. "/?.lua;" .. package.path
local filter = require("sns_filter")
local slurm = { SUCCESS = 0, ERROR = -1 }
slurm.log_user, slurm.log_error, slurm.log_debug = string.format, string.format, string.format

-- A text that is made when it is read.
local function text(bytes, piece, head)
  local half, head = piece:rep(math.floor(bytes / 2 / #piece)), head or ""
  return function() return head .. half .. half end
end

local function entries(count, entry)
  return function()
    local made = {}
    for index = 0, count - 1 do
      made[index] = entry(index)
    end
    return made
  end
end

-- Searched by C, variable by variable, as in Slurm.
local function environment(count)
  local packed = {}
  for index = 1, count do
    packed[index] = "\1VARIABLE_" .. index .. "=" .. index
  end
  packed = table.concat(packed) .. "\1"
  local found = setmetatable({}, { __index = function(_, name)
    local _, last = packed:find("\1" .. name .. "=", 1, true)
    return last and packed:sub(last + 1, packed:find("\1", last, true) - 1)
  end })
  return function() return found end
end

local NO16, NO32 = 65534, 4294967294
local PLAIN = {
  priority = NO32, num_tasks = 4, ntasks_per_node = NO16, cpus_per_task = NO16, min_cpus = 4, min_nodes = NO32,
  max_nodes = NO32, ntasks_per_tres = NO16, shared = NO16, contiguous = 0, bitflags = 503332864, req_switch = NO32,
  segment_size = 0, boards_per_node = 0, sockets_per_board = 0, sockets_per_node = NO16, cores_per_socket = NO16,
  threads_per_core = NO16, ntasks_per_board = 0, ntasks_per_socket = NO16, ntasks_per_core = NO16, pn_min_cpus = NO16,
  pn_min_tmp_disk = NO32, reboot = NO16, het_job_offset = NO32, cron_job = false, spank_job_env_size = 0,
  script = text(200, "#!/bin/sh\ntrue\n"), environment = environment(60), min_mem_per_cpu = 1000,
}
local OPTION = "_SLURM_SPANK_OPTION_sns_sns_"
local LARGE = LARGE_BYTES
local BULK = text(LARGE, "alpha=0.1,")
local function large(piece, head)
  return text(LARGE, piece, head)
end
local function spank(count, entry)
  return { spank_job_env_size = count, spank_job_env = entries(count, entry) }
end
local HINTS = { [0] = "alpha=0.9", "max_scale=4", "program=mg" }
local EVERYTHING = {
  reservation = large("a"), tres_per_job = large("b"), features = large("c"), req_nodes = large("d"),
  licenses = large("f"), admin_comment = large("g"), comment = large("h"), network = large("i"),
  prefer = large("j"), script = large("k"),
}

-- Each class is PLAIN with other fields.
local CLASSES = {
  { "plain", {} },
  { "copy alone", { comment = BULK }, function(job_desc) return job_desc.comment end },
  { "hints in the comment", { comment = text(0, "x", "sns:alpha=0.9,program=mg,max-scale=4") } },
  { "hints by options", spank(3, function(index) return OPTION .. HINTS[index] end) },
  { "unmanaged partition", { partition = text(0, "x", "gpu") } },
  { "large comment: sns:,,,", { comment = large(",", "sns:") } },
  { "large comment: one hint often", { comment = large("alpha=0.1,", "sns:") } },
  { "large comment: sns:program=", { comment = large("a", "sns:program=") } },
  { "large comment: unknown key", { comment = large("a", "sns:") } },
  { "large comment: no hints", { comment = large("hello, world=") } },
  { "admin comment of 1 KiB", { admin_comment = text(1024, "hello, world=") } },
  { "begin time of the owner's", { begin_time = 4000000000 } },
  { "large partition: commas", { partition = large(",") } },
  { "large partition: one name often", { partition = large("p1,") } },
  { "large partition: unknown names", { partition = large("q1,") } },
  { "partition: commas, as many as pass", { partition = text(1024, ",") } },
  { "large tres_per_task: cpu often", { tres_per_task = large("cpu:1,") } },
  { "large tres_per_task: commas", { tres_per_task = large(",") } },
  { "tres_per_task: commas, as many as pass", { tres_per_task = text(1024, ",") } },
  { "large features", { features = large("a&") } },
  { "large req_nodes", { req_nodes = large("c1,") } },
  { "large licences", { licenses = large("m:1,") } },
  { "large burst buffer", { burst_buffer = large("#BB\n") } },
  { "every text large", EVERYTHING },
  { "script of 256 KiB: #", { script = text(256 * 1024, "#\n") } },
  { "script of 256 KiB: empty lines", { script = text(256 * 1024, "\n") } },
  { "large script: #", { script = large("#\n") } },
  { "large script: #B", { script = large("#B\n") } },
  { "large script: #BB after a command", { script = large("#BB\n", "true\n") } },
  { "large script: empty lines", { script = large("\n") } },
  { "large script: #SBATCH", { script = large("#SBATCH -n1\n") } },
  { "script of options: #SBATCH", { script = text(3600, '#SBATCH --x="y"\n', "#!/bin/sh\n") } },
  { "script of options: one of dashes", { script = text(3600, "-", "#SBATCH ") } },
  { "script of options: quotes", { script = text(3600, '"', "#SBATCH ") } },
  { "script of comments: #S", { script = text(3600, "#S\n") } },
  { "script of comments: #SB", { script = text(3600, "#SB\n") } },
  { "large script: one line", { script = large("x") } },
  { "SPANK: 64 options", spank(64, function(index) return OPTION .. "alpha=0." .. index end) },
  { "SPANK: 100,000 entries", spank(100000, function(index) return "VARIABLE_" .. index .. "=" .. index end) },
  { "SPANK: 100,000 options", spank(100000, function() return OPTION .. "alpha=0.9" end) },
  { "SPANK: large value", spank(1, text(LARGE, "a", OPTION .. "program=")) },
  { "SPANK: large key", spank(1, text(LARGE, "_", OPTION)) },
  { "environment: 100,000 variables", { environment = environment(100000) } },
  { "all that passes", {
    comment = text(1024, "a"), partition = text(1024, ","), tres_per_task = text(1024, ","),
    admin_comment = text(1024, "a"),
    script = text(240 * 1024, "x", ("#SBATCH '-'\n"):rep(330) .. "true\n"), environment = environment(100000),
    spank_job_env_size = 64,
    spank_job_env = entries(64, function(index) return "_SLURM_SPANK_OPTION_other_option=" .. index end),
  } },
  { "environment: large distribution", { environment = function() return { SLURM_DISTRIBUTION = BULK() } end } },
  { "too large for every partition", { partition = PARTITIONS, num_tasks = 2000000000, min_cpus = 2000000000 } },
  { "kill switch, every text large", EVERYTHING, nil, true },
}

local function job(changes)
  return setmetatable({}, {
    __index = function(_, name)
      local value = changes[name]
      if value == nil then
        value = PLAIN[name]
      end
      return type(value) == "function" and value() or value
    end,
    __newindex = function() end,
  })
end

local function quantile(sorted, share)
  return math.floor(sorted[math.max(1, math.ceil(#sorted * share))] * 1e7 + 0.5) / 10
end

local part_list = { main = { max_nodes = 4294967295 } }

local function submit(job_desc)
  filter.table_path = table_path
  return filter.submit(job_desc, slurm, part_list)
end

-- Seconds of each submission, sorted; a class that takes more than 10 s ends early.
local function times(changes, act)
  local taken, whole = {}, os.clock()
  for index = 0, samples do
    local job_desc = job(changes)
    local began = os.clock()
    local done, problem = pcall(act, job_desc)
    taken[index] = os.clock() - began
    assert(done, problem)
    if os.clock() - whole > 10 and index >= 3 then
      break
    end
  end
  table.sort(taken)
  return taken
end

for _, class in ipairs(CLASSES) do
  local name, changes, act, killed = unpack(class, 1, 4)
  if killed then
    io.open(killed_path, "w"):close()
  end
  local taken = times(changes, act or submit)
  local figures = { quantile(taken, 0), quantile(taken, 0.5), quantile(taken, 0.99), quantile(taken, 1) }
  print(name .. "\t" .. table.concat(figures, "\t"))
end
"""


def table(folder: Path, partitions: int, kinds: int) -> FilterTable:
    """The filter's table at a site with this many managed partitions, each with this many kinds of nodes."""
    shapes = {
        f"p{number}": tuple(NodeShape(4 + kind, 8 + kind, 32768 + number * kind, 3) for kind in range(kinds))
        for number in range(partitions)
    }
    beat = folder / "heartbeat"
    (folder / "submitted").touch()
    beat.write_text(f"{time.time():.0f}\n")
    heuristics = ("first-fit", "best-fit-memory", "mix-fit", "worse-fit-memory")
    paths = {"heartbeat_path": str(beat), "kill_switch_path": str(folder / "disabled")}
    return FilterTable("enforce", shapes, "p0", heuristics, 4500, heartbeat_timeout_s=10**9, **paths)


def measure(partitions: int, kinds: int, samples: int) -> dict[str, dict[str, float]]:
    """Class -> its figures in microseconds, at a site with these numbers of partitions and kinds of nodes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = lua_text(table(folder, partitions, kinds))
        (folder / "filter.lua").write_text(text)
        names = ",".join(f"p{number}" for number in range(partitions))[:1024].rpartition(",")[0] or "p0"
        program = DRIVER.replace("LARGE_BYTES", str(MEGABYTES << 20)).replace("PARTITIONS", json.dumps(names))
        (folder / "driver.lua").write_text(program)
        modules = str(shared_path("plugins/job_submit"))
        command = ["lua5.1", "driver.lua", modules, "filter.lua", str(samples), "disabled"]
        said = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
    found: dict[str, dict[str, float]] = {"table": {"kilobytes": round(len(text) / 1024, 1)}}
    for line in said.splitlines():
        name, *figures = line.split("\t")
        found[name] = dict(zip(("least_us", "median_us", "p99_us", "worst_us"), map(float, figures), strict=True))
        found[name]["ratio"] = round(found[name]["median_us"] / found["plain"]["median_us"], 1)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=200)
    given = parser.parse_args()
    sites = {"2 partitions, 2 kinds of nodes": (2, 2), "60 partitions, 120 kinds of nodes": (60, 120)}
    result = {site: measure(*size, given.samples) for site, size in sites.items()}
    sys.stdout.write(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
