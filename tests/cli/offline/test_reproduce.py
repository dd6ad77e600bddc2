"""`sns reproduce` as a user calls it."""

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from json_output import read
from typer.testing import CliRunner

from slurm_sns.cli.app import app
from slurm_sns.errors import BadInput, SnsError
from slurm_sns.sim.pages import FOLDERS


def call(*words):
    return CliRunner().invoke(app(), ["reproduce", *map(str, words)], catch_exceptions=True)


def is_gone(group, seconds=30.0):
    """Whether no process of the group is left, now or soon."""
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.long
def test_a_page_is_written_with_its_figures_and_tables(tmp_path):
    result = call("netbatch-examples", "--out", tmp_path / "page", "--json")
    assert result.exit_code == 0
    assert read("sns reproduce", result.stdout)["verdicts"] == {"holds": 9, "does not hold": 0, "cannot tell": 0}
    assert {path.name for path in (tmp_path / "page").iterdir()} >= {"README.md", "claims.csv", "figure-3.png"}


@pytest.mark.parametrize("name", FOLDERS)
def test_every_name_has_its_module(name):
    assert callable(importlib.import_module(f"sns_reproductions.{name.replace('-', '_')}.run").run)


def test_pages_are_found_by_their_folders_in_the_order_of_the_alphabet():
    assert list(FOLDERS) == sorted(FOLDERS)
    assert len(FOLDERS) == 45
    assert {"idcp-tables", "netbatch-load", "spread-n-share-scale"} <= set(FOLDERS)


def test_hours_are_for_pages_that_keep_their_rows(tmp_path):
    problem = call("idcp-tables", "--out", tmp_path, "--hours", 1).exception
    assert isinstance(problem, BadInput)
    assert str(problem) == (
        "--hours does not go with idcp-tables; valid: netbatch-depth, netbatch-full, netbatch-generator, "
        "netbatch-load, netbatch-variants, netbatch-wins"
    )


def test_an_unknown_name_is_refused_with_those_that_are_valid(tmp_path):
    problem = call("figure-99", "--out", tmp_path).exception
    assert isinstance(problem, BadInput)
    assert "reproduction 'figure-99' is unknown; valid: beside-easy, combination, dfrs-beyond" in str(problem)


def test_without_the_package_of_the_pages_one_line_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("slurm_sns.cli.offline.reproduce.FOLDERS", {})
    problem = call("netbatch-load", "--out", tmp_path).exception
    assert isinstance(problem, SnsError)
    assert str(problem) == "the package sns_reproductions is missing; valid: install slurm_sns again, which brings it"


def test_an_out_that_is_a_file_is_refused_before_any_work(tmp_path):
    (tmp_path / "file").write_text("")
    assert isinstance(call("netbatch-examples", "--out", tmp_path / "file").exception, BadInput)


def test_fewer_than_two_seeds_are_refused(tmp_path):
    assert call("netbatch-load", "--out", tmp_path, "--seeds", 1).exit_code == 2


def test_options_of_a_job_array_are_refused_without_one(tmp_path):
    for option, value in (("--partition", "main"), ("--minutes", 5), ("--memory-gb", 1)):
        problem = call("netbatch-load", "--out", tmp_path, option, value).exception
        assert isinstance(problem, BadInput)
        assert str(problem) == f"{option} goes with --slurm"


def test_an_array_without_submitit_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "submitit", None)
    monkeypatch.delitem(sys.modules, "slurm_sns.sim.pages.slurm_array", raising=False)

    problem = call("netbatch-load", "--out", tmp_path, "--slurm").exception

    assert isinstance(problem, BadInput)
    assert str(problem) == "--slurm needs submitit; valid: pip install 'slurm_sns[sweep]'"


@pytest.mark.long
def test_json_says_how_many_seeds_went_into_the_page(tmp_path):
    result = call("netbatch-workload", "--out", tmp_path, "--quick", "--seeds", 2, "--jobs", 1, "--json")
    assert json.loads(result.stdout)["seeds"] == 2
    assert json.loads(call("netbatch-examples", "--out", tmp_path, "--json").stdout)["seeds"] is None


@contextmanager
def running(folder):
    """A quick run of netbatch-full in a process group of its own, once it has kept a result."""
    words = ("reproduce", "netbatch-full", "--quick", "--jobs", "2", "--out", folder)
    with subprocess.Popen(
        [sys.executable, "-c", "from slurm_sns.cli import main; main()", *words],
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while not list(folder.glob("runs/*/*.json")):
            assert process.poll() is None
            time.sleep(0.05)
        yield process


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_keeps_its_finished_replays_and_leaves_no_process(tmp_path, number):
    with running(tmp_path) as process:
        os.kill(process.pid, number)
        assert process.wait(60) == 130
        assert "Traceback" not in process.stderr.read()
    assert (tmp_path / "rows.jsonl.gz").stat().st_size > 0
    assert is_gone(process.pid), "a process of the run is left"


@pytest.mark.long
def test_a_run_that_is_killed_leaves_no_process(tmp_path):
    with running(tmp_path) as process:
        process.kill()
        process.wait(60)
        assert is_gone(process.pid), "a process of the run is left"
