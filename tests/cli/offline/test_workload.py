"""`sns workload` as a user calls it."""

import pytest
from typer.testing import CliRunner

from slurm_sns.cli.app import app
from slurm_sns.errors import BadInput


def call(*words):
    return CliRunner().invoke(app, ["workload", *map(str, words)], catch_exceptions=True)


def test_jobs_and_nodes_are_written_to_files(tmp_path):
    result = call(
        "netbatch-d", "--scale", 0.01, "--days", 1, "--out", tmp_path / "d.swf", "--nodes-out", tmp_path / "n.csv"
    )
    assert result.exit_code == 0
    lines = (tmp_path / "d.swf").read_text().splitlines()
    assert lines[0] == "; Version: 2.2"
    assert sum(not line.startswith(";") for line in lines) == round(9_054_066 * 0.01 / 30)
    assert len((tmp_path / "n.csv").read_text().splitlines()) == 1 + 27


def test_jobs_go_to_standard_output_without_out():
    result = call("netbatch-a", "--scale", 0.001, "--days", 0.1)
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()[-1].split()) == 18


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("netbatch-e",), "workload 'netbatch-e' is unknown; valid: netbatch-a"),
        (("netbatch-a", "--days", 31), "--days is 31.0; valid"),
        (("netbatch-a", "--scale", 11), "--scale is 11.0; valid"),
        (("netbatch-a", "--out", "a.txt"), "--out is a.txt; valid"),
        (("netbatch-a", "--out", "/nowhere/a.swf"), "/nowhere is not a directory"),
    ],
)
def test_bad_use_is_refused(words, message):
    problem = call(*words).exception
    assert isinstance(problem, BadInput)
    assert message in str(problem)
