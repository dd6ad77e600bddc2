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


def test_a_burst_buffer_of_an_option_comes_before_that_of_the_script():
    assert burst_buffer('script = "#BB_LUA a", burst_buffer = "#BB_LUA b"') == "#BB_LUA b"


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("#!/bin/sh\n#SBATCH --deadline=2030-01-01\ntrue\n", True),
        ("#SBATCH --deadline 2030-01-01", True),
        ("#!/bin/sh\n#SBATCH -n1 --deadline=noon -t5\n", True),
        ("#!/bin/sh\n#SBATCH\t--dea=noon\n", True),  # as short as getopt_long takes it
        ("#!/bin/sh\n#SBATCH --deadlin=noon\n", True),
        ("#!/bin/sh\n#SBATCH--deadline=noon\n", True),
        ("#!/bin/sh\n#SLURM --deadline=noon\n", True),  # the old name of the directive
        ('#!/bin/sh\n#SBATCH "--deadline=noon"\n', True),
        ("#!/bin/sh\n#SBATCH '--dead'line=noon\n", True),
        ("#!/bin/sh\n#SBATCH --d\\eadline=noon\n", True),
        ('#!/bin/sh\n#SBATCH -""-deadline=noon\n', True),
        ("#!/bin/sh\n \n\t# note\n#SBATCH --deadline=noon\n", True),  # sbatch reads on after such lines
        ("#!/bin/sh\r\n#SBATCH --deadline=noon\r\n", True),
        ("#!/bin/sh\n#SBATCH --comment=--deadline\n", True),  # in doubt it is Slurm's
        ("#" * 70_000 + "\n#SBATCH --deadline=noon\n", True),
        ("#\n \n" * 2_000, True),
        ("#!/bin/sh\n#SBATCH -n1\n#SBATCH --dependency=afterok:1 --delay-boot=1 --distribution=block\n", False),
        ("#!/bin/sh\ntrue\n#SBATCH --deadline=noon\n", False),
        ("#!/bin/sh\n  true # x\n#SBATCH --deadline=noon\n", False),
        ("#!/bin/sh\n # SBATCH --deadline=noon\n", False),
        ("#!/bin/sh\n# --deadline=noon\n#SBATCH -n1\n", False),
        ("#!/bin/sh\n#SBATCH -n1\n# --deadline=noon\n", False),
        ("#!/bin/sh\ntrue\n" + "#SBATCH --deadline=noon\n" * 1000, False),
        ("", False),
    ],
)
def test_a_deadline_is_found_where_sbatch_takes_it(script, says):
    assert shown("has_deadline", f"script = {lua_string(script)}") == str(says).lower()


@pytest.mark.parametrize(("given", "means"), [("nil", "nil"), ("0", "nil"), ("1764060000", "1764060000")])
def test_a_begin_time_of_0_is_none(given, means):
    assert shown("begin_time", f"begin_time = {given}") == means


def burst_buffer(fields: str) -> str:
    return shown("burst_buffer", fields)


def shown(name: str, fields: str) -> str:
    """What the filter reads of a job description with these fields."""
    program = (
        f'package.path = "{MODULES}/?.lua;" .. package.path\n'
        f'io.write(tostring(require("sns_filter").submission({{{fields}}}).{name}))'
    )
    lua = shutil.which("lua5.1") or "lua5.1"
    return subprocess.run([lua, "-"], input=program.encode(), capture_output=True, check=True).stdout.decode()
