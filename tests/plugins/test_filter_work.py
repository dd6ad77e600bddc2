"""How much the submit filter looks at, whatever users write: counted in Lua 5.1, beside a stand-in for slurmctld."""

import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from slurm_sns.package_files import shared_path
from slurm_sns.submit.table import FilterTable, NodeShape, lua_string, lua_text

# Prints as JSON what it counted: looks at each field and each variable, calls of string functions, tables parsed.
STAND_IN = r"""
local looks, variables, calls, parses = {}, {}, 0, 0
for _, name in ipairs({ "find", "sub", "match", "gsub", "gmatch" }) do
  local original = string[name]
  string[name] = function(...) calls = calls + 1; return original(...) end
end
local parse = loadstring
loadstring = function(...) parses = parses + 1; return parse(...) end
local environment = setmetatable({}, { __index = function(_, name)
  variables[name] = (variables[name] or 0) + 1
end })
local job = setmetatable({}, {
  __index = function(_, name)
    looks[name] = (looks[name] or 0) + 1
    if name == "environment" then return environment end
    local value = FIELDS[name]
    return type(value) == "function" and value() or value
  end,
  __newindex = function() end,
})
slurm = { SUCCESS = 0, ERROR = -1, log_user = function() end, log_error = error, log_debug = function() end }
local filter = require("sns_filter")
filter.table_path = TABLE
for _ = 1, TIMES do
  looks, variables, calls = {}, {}, 0
  filter.submit(job, slurm, { main = { max_nodes = 4294967295 } })
end
local function object(counted)
  local parts = {}
  for name, count in pairs(counted) do parts[#parts + 1] = string.format("%q: %d", name, count) end
  return "{" .. table.concat(parts, ", ") .. "}"
end
print(string.format('{"looks": %s, "variables": %s, "calls": %d, "parses": %d}',
  object(looks), object(variables), calls, parses))
"""

PLAIN = {
    "script": lua_string("#!/bin/sh\ntrue\n"),
    "num_tasks": 4,
    "min_cpus": 4,
    "spank_job_env_size": 0,
    "partition": lua_string("main"),
}


class Site:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "beat").write_text(f"{time.time():.0f}\n")
        self.render()

    def render(self, mode: str = "enforce") -> None:
        paths = {"heartbeat_path": str(self.folder / "beat"), "kill_switch_path": str(self.folder / "off")}
        shapes = {"main": (NodeShape(28, 28, 128000, 4),)}
        table = FilterTable(mode, shapes, "main", ("mix-fit",), 4500, heartbeat_timeout_s=60, **paths)
        (self.folder / "filter.lua").write_text(lua_text(table))

    def counted(self, times: int = 1, before: str = "", **fields: object) -> dict:
        """What is counted at the last of so many submissions; `fields` are Lua."""
        literals = {**PLAIN, **fields}
        program = (
            f"package.path = {lua_string(str(shared_path('plugins/job_submit') / '?.lua'))}\n"
            f"local TABLE, TIMES = {lua_string(str(self.folder / 'filter.lua'))}, {times}\n"
            f"{before}\n"
            f"local FIELDS = {{ {', '.join(f'{name} = {value}' for name, value in literals.items())} }}\n"
        )
        lua = shutil.which("lua5.1") or pytest.fail("lua5.1 is needed (Debian: apt-get install lua5.1)")
        ran = subprocess.run([lua, "-"], input=(program + STAND_IN).encode(), capture_output=True, check=True)
        return json.loads(ran.stdout)


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def test_no_text_of_a_job_is_looked_at_twice(site):
    counted = site.counted()
    texts = {
        "partition",
        "comment",
        "admin_comment",
        "script",
        "features",
        "req_nodes",
        "licenses",
        "burst_buffer",
        "clusters",
    }
    assert {counted["looks"][name] for name in texts} == {1}


def test_while_the_filter_is_idle_nothing_of_a_job_is_looked_at(site):
    (site.folder / "off").touch()
    assert site.counted()["looks"] == {}
    (site.folder / "off").unlink()
    (site.folder / "beat").write_text("5\n")
    assert site.counted()["looks"] == {}


UNMANAGED = ("'gpu'", "'main,gpu'", "string.rep(',', 4194304)", "string.rep('main,', 900000)")


@pytest.mark.parametrize("partition", UNMANAGED)
def test_of_a_job_of_an_unmanaged_partition_nothing_but_that_is_looked_at(site, partition):
    assert site.counted(partition=partition)["looks"] == {"partition": 1}


def test_of_a_job_with_wrong_hints_nothing_but_those_is_looked_at(site):
    assert site.counted(comment="'sns:alpha=2'")["looks"] == {"partition": 1, "comment": 1}


def test_script_and_environment_of_a_job_that_passes_for_another_reason_are_not_looked_at(site):
    assert site.counted(features="'[ssd]'")["looks"].keys().isdisjoint({"script", "environment"})


def test_where_a_number_says_enough_no_text_is_looked_at_but_the_hints(site):
    texts = {"features", "req_nodes", "licenses", "tres_per_task", "clusters", "script", "environment"}
    assert site.counted(shared=2)["looks"].keys().isdisjoint(texts)


def test_the_environment_is_searched_for_one_variable_at_most(site):
    assert site.counted()["variables"] == {"SLURM_DISTRIBUTION": 1}
    assert site.counted(ntasks_per_node=2)["variables"] == {}


def test_of_a_job_with_a_long_comment_no_other_text_is_looked_at(site):
    looks = site.counted(comment="string.rep('a', 1025)")["looks"]
    assert looks == {"partition": 1, "comment": 1, "spank_job_env_size": 1}


def test_a_large_script_is_copied_and_no_more(site):
    assert site.counted(script="string.rep('#\\n', 131073)")["variables"] == {}


def test_too_many_entries_of_spank_plugins_are_never_asked_for(site):
    entries = "(function() local made = {} for i = 0, 64 do made[i] = '_SLURM_SPANK_OPTION_x' end return made end)()"
    assert "spank_job_env" not in site.counted(spank_job_env_size=65, spank_job_env=entries)["looks"]
    assert site.counted(spank_job_env_size=64, spank_job_env=entries)["looks"]["spank_job_env"] == 1


OPTION = "_SLURM_SPANK_OPTION_sns_sns_"
LONG = {
    "commas as hints": {"comment": "'sns:' .. string.rep(',', 4194304)"},
    "one hint again and again": {"comment": "'sns:' .. string.rep('alpha=1,', 500000)"},
    "a long hint": {"comment": "'sns:program=' .. string.rep('a', 4194304)"},
    "a long option": {"spank_job_env_size": 1, "spank_job_env": f"{{ [0] = '{OPTION}' .. string.rep('_', 4194304) }}"},
    "commas as partitions": {"partition": "string.rep(',', 4194304)"},
    "commas as tres": {"tres_per_task": "string.rep(',', 4194304)"},
    "cpus as tres": {"tres_per_task": "string.rep('cpu:1,', 700000)"},
    "a script of comments": {"script": "string.rep('#\\n', 2000000)"},
    "a script of empty lines": {"script": "string.rep('\\n', 4194304)"},
    "a script of deadlines": {"script": "string.rep('#SBATCH --dea\\n', 300000)"},
    "a script of options": {"script": "string.rep('#SBATCH ' .. string.rep('-', 4000) .. '\\n', 1000)"},
    "a script of quotes": {"script": "'#SBATCH ' .. string.rep('\"', 4000) .. '\\ntrue\\n' .. string.rep('#', 200000)"},
    "a script of blanks": {"script": "string.rep(' ', 4194304)"},
    "a script of directives": {"script": "'true\\n' .. string.rep('#BB\\n', 1000000)"},
}


@pytest.mark.parametrize("fields", LONG.values(), ids=LONG)
def test_the_work_does_not_grow_with_what_a_user_makes_long(site, fields):
    assert site.counted(**fields)["calls"] < 100


@pytest.mark.parametrize("fields", LONG.values(), ids=LONG)
def test_no_long_text_is_searched_as_a_whole(site, fields):
    most = 40_000  # bytes; the largest bound is that of a script's comments
    watch = (
        "for _, name in ipairs({ 'find', 'match', 'gsub', 'gmatch' }) do local original = string[name]\n"
        f"string[name] = function(text, ...) assert(#text < {most}, name); return original(text, ...) end end"
    )
    site.counted(before=watch, **fields)


def test_a_table_is_parsed_once_and_again_when_its_bytes_change(site):
    assert site.counted(times=5)["parses"] == 1
    other = str(site.folder / "other.lua")
    site.render("advise")
    (site.folder / "filter.lua").rename(other)
    site.render()
    swap = (
        "local time = os.time\n"  # asked once at each submission, after the table was read
        "local count = 0\n"
        f"os.time = function() count = count + 1; if count == 2 then os.rename({lua_string(other)}, TABLE) end; "
        "return time() end"
    )
    assert site.counted(times=5, before=swap)["parses"] == 2
