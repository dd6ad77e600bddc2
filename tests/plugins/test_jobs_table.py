"""sns_jobs_table.so in Lua 5.1, against a stand-in for job_submit/lua that has its variable, another or none."""

import shutil
import subprocess
from pathlib import Path

import pytest

from slurm_sns.package_files import shared_path

#: What the plugin of Slurm has, as a library of its name. `made` returns the variable to Lua.
PLUGIN = """
#include <time.h>
{variable}
void lua_pushnumber(void *state, double number);
int made(void *state) {{ lua_pushnumber(state, (double){name}); return 1; }}
"""
#: Prints the variable before and after.
SCRIPT = """
package.cpath = FOLDER .. "/?.so"
local made = assert(package.loadlib(FOLDER .. "/job_submit_lua.so", "made"))
local skip = require("sns_jobs_table")
print(string.format("%.0f", made()))
skip()
print(string.format("%.0f", made()))
"""
END_OF_TIME = 2**63


def lua(script: str, folder: Path) -> list[str]:
    words = ["lua5.1", "-e", f"FOLDER = '{folder}'", "-e", script]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the module, compiled as the Makefile does it."""
    sources = shutil.copytree(shared_path("plugins/job_submit"), tmp_path / "source")
    words = ["make", "-C", str(sources), "install", f"LUA_CPATH={tmp_path}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return tmp_path


def plugin(folder: Path, variable: str, name: str = "last_lua_jobs_update") -> None:
    source = folder / "plugin.c"
    source.write_text(PLUGIN.format(variable=variable, name=name))
    where = folder / "job_submit_lua.so"
    subprocess.run(["cc", "-shared", "-fPIC", f"-Wl,-soname,{where.name}", "-o", where, source], check=True)


def test_the_plugin_is_told_that_it_has_just_made_the_table(folder):
    plugin(folder, "time_t last_lua_jobs_update = 5;")
    assert lua(SCRIPT, folder) == ["5", str(END_OF_TIME)]


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("int last_lua_jobs_update = 5; int next = 7;", "last_lua_jobs_update"),
        ("time_t last_lua_jobs_update[2] = {5, 7};", "last_lua_jobs_update[0]"),
        ("static time_t last_lua_jobs_update = 5;", "last_lua_jobs_update"),
        ("time_t last_jobs = 5;", "last_jobs"),
    ],
)
def test_a_plugin_without_such_a_variable_is_not_touched(folder, variable, name):
    plugin(folder, variable, name)
    assert lua(SCRIPT, folder) == ["5", "5"]


def test_without_the_plugin_nothing_happens(folder):
    assert lua("package.cpath = FOLDER .. '/?.so'; require('sns_jobs_table')(); print('went on')", folder) == [
        "went on"
    ]


@pytest.mark.parametrize("installed", [True, False])
def test_the_filter_takes_the_old_table_away_only_where_no_new_one_is_made(folder, installed):
    if not installed:
        (folder / "sns_jobs_table.so").unlink()
    script = """
    package.path, package.cpath = FOLDER .. "/source/?.lua", FOLDER .. "/?.so"
    local slurm = { jobs = { ["7"] = {} } }
    require("sns_filter").without_jobs(slurm)
    print(next(slurm.jobs))
    """
    [first] = lua(script, folder)
    assert first.split("\t")[0] == ("nil" if installed else "7")
