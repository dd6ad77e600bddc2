"""What the filter reads of Slurm's job description, in Lua."""

import shutil
import subprocess
from pathlib import Path

import pytest

from slurm_sns.submit.table import lua_string

MODULES = Path(__file__).parents[2] / "plugins" / "job_submit"


@pytest.mark.parametrize(
    ("script", "asks"),
    [
        ("#!/bin/sh\n#BB_LUA pool=disk capacity=1\ntrue\n", "#BB_LUA pool=disk capacity=1"),
        ("#!/bin/sh\n#SBATCH -n1\n#DW jobdw type=scratch\n#BB_LUA x\ntrue", "#DW jobdw type=scratch"),
        ("#BB create_persistent name=a", "#BB create_persistent name=a"),
        ("#!/bin/sh\ntrue\n#BB_LUA pool=disk\n", ""),
        ("#!/bin/sh\n\n#BB_LUA pool=disk\n", "#BB_LUA pool=disk"),
        ("#!/bin/sh\n  \n#BB_LUA pool=disk\n", ""),
        ("#!/bin/sh\n # BB_LUA\n", ""),
        ("#!/bin/sh\ntrue\n" + "#BB\n" * 10_000, ""),
        ("#" * 1000 + "\n#BB_LUA pool=disk\n", "#BB_LUA pool=disk"),
        ("#" * 70_000 + "\n#BB_LUA pool=disk\n", "comments of more than 4096 bytes"),  # in doubt it is Slurm's
        ("", ""),
    ],
)
def test_a_burst_buffer_is_found_where_slurm_looks_for_it(script, asks):
    assert burst_buffer(f"script = {lua_string(script)}") == asks


def test_the_option_comes_before_the_script():
    assert burst_buffer('script = "#BB_LUA a", burst_buffer = "#BB_LUA b"') == "#BB_LUA b"


def burst_buffer(fields: str) -> str:
    program = (
        f'package.path = "{MODULES}/?.lua;" .. package.path\n'
        f'io.write(require("sns_filter").submission({{{fields}}}).burst_buffer)'
    )
    lua = shutil.which("lua5.1") or "lua5.1"
    return subprocess.run([lua, "-"], input=program.encode(), capture_output=True, check=True).stdout.decode()
