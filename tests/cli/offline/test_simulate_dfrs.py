"""`sns simulate` with DFRS's policies, as a user runs it."""

from pathlib import Path

import pytest
from json_output import read
from typer.testing import CliRunner

from slurm_sns.cli.app import app
from slurm_sns.errors import BadInput

NODES = "name,cores,mem_gb\nn0,4,8\nn1,4,8\n"
#: Two jobs share node n0's CPU by halves, a third comes when memory is short.
TRACE = """job_id,submit_s,run_s,tasks,cpu_need,memory_need
1,0,100,2,1,0.6
2,10,30,1,1,0.5
3,20,30,1,0.25,0.4
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, ...]:
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "t.csv").write_text(TRACE)
    return "simulate", str(tmp_path / "t.csv"), "--nodes", str(tmp_path / "nodes.csv")


def run(*arguments: str):
    return CliRunner().invoke(app(), arguments)


def rows(folder: Path) -> list[dict[str, str]]:
    header, *lines = (folder / "jobs.csv").read_text().splitlines()
    return [dict(zip(header.split(","), line.split(","), strict=True)) for line in lines]


@pytest.mark.long
def test_a_pause_and_a_move_are_counted_and_cost_the_penalty(files, tmp_path):
    out = tmp_path / "out"
    assert run(*files, "--policy", "dfrs-greedy-pmtn", "--penalty", "5", "--out", str(out)).exit_code == 0

    first, second, third = rows(out)
    # Job 2 finds no memory at 10 s: job 1 is paused, and resumed when job 2 ends at 40 s; then it waits 5 s.
    assert (second["start_s"], second["end_s"]) == ("10.000000", "40.000000")
    assert (first["preemptions"], first["migrations"]) == ("1", "0")
    assert first["stretch"] == f"{float(first['end_s']) / 100:.6f}"
    assert third["start_s"] == "20.000000"
    assert first["nodes"] == "n0+n1"
    assert (third["cores"], third["mem_gb"]) == ("1", "3.2")


def test_the_summary_has_the_costs_and_no_cycles_file_is_written(files, tmp_path):
    out = tmp_path / "out"
    found = run(*files, "--policy", "dfrs-dynmcb8-per", "--period", "60", "--json", "--out", str(out))
    summary = read("sns simulate", found.stdout)
    assert summary["period_s"] == 60
    assert summary["penalty_s"] == 0
    assert summary["max_bounded_stretch"] >= summary["mean_bounded_stretch"] >= 1
    assert {path.name for path in out.iterdir()} == {"jobs.csv", "summary.json"}


def test_the_bandwidth_is_the_memory_that_is_paused_and_moved_over_the_makespan(files, tmp_path):
    out = tmp_path / "out"
    summary = read("sns simulate", run(*files, "--policy", "dfrs-greedy-pmtn", "--json", "--out", str(out)).stdout)
    makespan_s = max(float(row["end_s"]) for row in rows(out))
    # Job 1 is paused once: two tasks with 60 % of 8 GB.
    assert summary["preemption_gb_per_s"] == pytest.approx(2 * 0.6 * 8 / makespan_s)
    assert summary["migration_gb_per_s"] == 0


def test_the_same_run_writes_the_same_bytes(files, tmp_path):
    for name in ("one", "two"):
        run(*files, "--policy", "dfrs-dynmcb8-stretch-per", "--penalty", "300", "--out", str(tmp_path / name))
    assert (tmp_path / "one" / "jobs.csv").read_bytes() == (tmp_path / "two" / "jobs.csv").read_bytes()


def test_the_table_shows_preemptions_and_migrations(files):
    shown = run(*files, "--policy", "dfrs-greedy").stdout
    assert "preemptions" in shown
    assert "GB/s" in shown
    assert "mean bounded stretch" in shown


@pytest.mark.parametrize("policy", [["fcfs"], ["easy"], ["slurm", "--epilog"]])
def test_batch_schedulers_run_each_task_on_a_node_of_its_own(files, tmp_path, policy):
    assert run(*files, "--policy", *policy, "--out", str(tmp_path / "out")).exit_code == 0
    assert [row["start_s"] for row in rows(tmp_path / "out")] == ["0", "100", "100"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--policy", "easy", "--penalty", "3"], "--penalty goes with --policy dfrs-greedy"),
        (["--policy", "dfrs-greedy", "--interval", "3"], "--interval does not go with dfrs-greedy"),
        (["--policy", "dfrs-greedy", "--period", "3"], "--period goes with --policy dfrs-dynmcb8-per"),
        (["--policy", "dfrs-dynmcb8", "--retry-at-events"], "--retry-at-events goes with --policy dfrs-greedy"),
        (["--policy", "max-jobs"], "tasks with fluid needs go with --policy fcfs, easy, slurm and dfrs-"),
        (["--policy", "easy", "--user-estimates"], "a CSV has no time limits"),
        (["--policy", "dfrs-greedy", "--user-estimates"], "--user-estimates goes with --policy easy"),
        (["--policy", "easy", "--profiles", "nosuch.yaml"], "jobs have tasks and no programs"),
        (["--policy", "dfrs-greedy", "--age-limit", "5"], "--age-limit goes with policies that match"),
        (["--policy", "dfrs-dynmcb8-per", "--period", "0"], "period"),
    ],
)
def test_options_that_do_not_go_together_are_refused_in_one_line(files, more, words):
    refused = run(*files, *more)
    assert isinstance(refused.exception, BadInput) or refused.exit_code == 2
    told = refused.stderr or str(refused.exception)
    assert words in told
    assert refused.exit_code == 2 or len(told.splitlines()) == 1


HOSTILE = {
    "many tasks without memory": "1,0,5,1000000,0.000001,0\n",
    "a job that lasts": "1,0,2999999999,1,1,0.1\n2,0,5,1,1,0.1\n",
    "a late submit": "1,2999999999,5,1,1,0.1\n",
    "a hundred jobs on one node": "".join(f"{at},0,1000000000,1,1,0.01\n" for at in range(1, 101)),
    "all at once": "".join(f"{at},7,30,2,0.5,0.5\n" for at in range(1, 30)),
    "very short": "1,0,0.000001,1,1,0.1\n2,0,0,1,1,0.1\n",
    "a single short job": "1,0,0.0000000001,1,1,0.1\n",
}


@pytest.mark.long
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("policy", ["dfrs-greedy", "dfrs-greedy-pmtn-migr", "dfrs-dynmcb8", "dfrs-dynmcb8-stretch-per"])
def test_odd_traces_end_or_are_refused_in_one_line(tmp_path, name, policy):
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "t.csv").write_text(TRACE.splitlines()[0] + "\n" + HOSTILE[name])
    period = ["--period", "31536000"] if policy.endswith("-per") else []
    out, nodes = tmp_path / "out", str(tmp_path / "nodes.csv")
    found = run("simulate", str(tmp_path / "t.csv"), "--nodes", nodes, "--policy", policy, *period, "--out", str(out))
    if found.exit_code:
        assert isinstance(found.exception, BadInput)
        assert len(str(found.exception).splitlines()) == 1
        return
    for row in rows(out):
        assert float(row["end_s"]) >= float(row["start_s"]) >= float(row["submit_s"]) >= 0
        assert float(row["stretch"]) >= 1


def test_a_period_that_is_too_short_for_a_long_trace_is_refused(tmp_path):
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "t.csv").write_text(TRACE.splitlines()[0] + "\n1,0,1000000000,1,1,0.1\n")
    command = ["simulate", str(tmp_path / "t.csv"), "--nodes", str(tmp_path / "nodes.csv")]
    found = run(*command, "--policy", "dfrs-dynmcb8-per", "--period", "1")
    assert str(found.exception) == "a periodic run every 1 s for 1e+09 s; valid: 10 s or more"
