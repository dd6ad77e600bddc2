"""`sns simulate` of a site's accounting, as an admin runs it."""

import csv
import json
import re
import sys
from pathlib import Path

import pytest

from slurm_sns.cli import main
from slurm_sns.coverage.sacct import COMMAND, NODES, SINFO

CONF = "NodeName=n[1-4] CPUs=8 RealMemory=16000 Feature=ib\nNodeName=m1 CPUs=16 RealMemory=64000 Weight=9\n"
CONF += "PartitionName=main Nodes=n[1-4]\nPartitionName=all Nodes=ALL\n"
HEADER = "JobIDRaw|Account|Partition|State|Submit|ElapsedRaw|TimelimitRaw|NNodes|AllocCPUS|ReqMem|Constraints\n"
JOBS = [
    f"{number}|a{number % 3}|{('main', 'all')[number % 2]}|COMPLETED|2026-11-27T20:00:{number:02}|{600 + number}|20|"
    f"{1 + number % 3 // 2}|{1 + number % 8}|{1 + number % 5}G|{('', 'ib')[number % 4 // 3]}\n"
    for number in range(60)
]


@pytest.fixture
def sns(tmp_path, monkeypatch, capsys):
    (tmp_path / "slurm.conf").write_text(CONF)
    (tmp_path / "dump.psv").write_text(HEADER + "".join(JOBS) + "60.batch|cut\n")
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["sns", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return (ended.value.code or 0, *capsys.readouterr())

    return run


@pytest.mark.parametrize("policy", ["max-jobs", "cs", "easy --user-estimates", "easy --placement best-fit-memory"])
def test_jobs_run_on_the_nodes_of_their_partitions_and_features(policy, sns, tmp_path):
    options = ["--slurm-conf", "slurm.conf", "--policy", *policy.split(), "--json", "--out", "out"]
    code, out, error = sns("simulate", "dump.psv", *options)
    assert (code, error) == (0, "")
    summary = json.loads(out)
    assert summary["jobs"] == 60
    assert summary["dropped"] == {"line with another number of fields than the header": 1}
    rows = list(csv.DictReader((tmp_path / "out" / "jobs.csv").read_text().splitlines()))
    assert len(rows) == 60
    for row in rows:
        _, _, partition, *_, constraint = JOBS[int(row["job_id"])].strip().split("|")
        assert "m1" not in row["nodes"].split("+") or (partition, constraint) == ("all", "")
    assert any("m1" in row["nodes"] for row in rows)


def test_slurm_alone_schedules_as_slurm_conf_says_and_as_is_asked(sns, tmp_path):
    said = CONF + "SchedulerParameters=bf_interval=7,bf_window=60,batch_sched_delay=9\nEpilog=/bin/true\n"
    (tmp_path / "slurm.conf").write_text(said)
    asked = ("--policy", "slurm", "--batch-sched-delay", "3", "--exclusive", "--json")
    code, out, error = sns("simulate", "dump.psv", "--slurm-conf", "slurm.conf", *asked)
    assert (code, error) == (0, "")
    found = json.loads(out)
    names = ("bf_interval_s", "bf_window_s", "bf_max_job_test", "batch_sched_delay_s", "epilog", "exclusive")
    assert [found[name] for name in names] == [7, 3600, 500, 3, True, True]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--policy max-jobs", "either --nodes FILE or --slurm-conf FILE"),
        ("--nodes slurm.conf --slurm-conf slurm.conf --policy max-jobs", "either --nodes FILE or --slurm-conf FILE"),
        ("--slurm-conf dump.psv --policy max-jobs", "no slurm.conf"),
        ("--nodes gone --policy max-jobs", "cannot be read"),
        ("--slurm-conf slurm.conf --policy dfrs-greedy", "all nodes"),
        ("--slurm-conf slurm.conf --policy rescheduling", "column name is missing"),
    ],
)
def test_what_does_not_go_is_one_line(options, message, sns):
    code, out, error = sns("simulate", "dump.psv", *options.split())
    assert (code, out, error.count("\n")) == (2, "", 1)
    assert message in error


def test_the_help_has_the_commands_of_the_admin(sns, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    _, out, _ = sns("simulate", "--help")
    words = re.sub(r"[\s│]+", " ", out)
    assert [command for command in (COMMAND, NODES, SINFO) if command not in words] == []


@pytest.mark.parametrize("page", ["science/accounting.md", "admins/index.md", "try.md"])
def test_pages_have_the_command_of_the_help(page):
    text = (Path(__file__).parents[3] / "docs" / page).read_text().replace("\\\n", "")
    assert COMMAND in re.sub(r" +", " ", text)
