"""`sns simulate` with rescheduling, as a user runs it, on cases by hand."""

import gzip
import json
from pathlib import Path

import pytest
from json_output import read
from typer.testing import CliRunner

from slurm_sns.cli.app import app
from slurm_sns.errors import BadInput

NODES = "name,cores,mem_gb,pool\na1,2,8,A\nb1,2,8,B\n"
HEADER = "job_id,submit_s,run_s,cores,mem_gb,pool,priority\n"
#: Job 4 is suspended at 460, after 60 s: in A it would take 150 s (the mean of job 1) and 840 s, in B 900 s.
JOBS = """1,0,300,1,2,A,0
2,0,200,1,2,B,0
3,100,150,2,4,A,1
4,400,900,1,2,A,0
5,460,400,2,4,A,1
6,1000,100,2,4,B,1
"""


@pytest.fixture
def runner() -> CliRunner:
    return CliRunner(env={"COLUMNS": "200"})


@pytest.fixture
def simulate(tmp_path: Path, runner):
    """Run the case with these options: the rows of jobs.csv, and the summary."""

    def simulate(*options: str, nodes: str = NODES, trace: str = HEADER + JOBS, name: str = "t.csv"):
        (tmp_path / "nodes.csv").write_text(nodes)
        (tmp_path / name).write_text(trace)
        out = tmp_path / "out"
        files = (str(tmp_path / name), "--nodes", str(tmp_path / "nodes.csv"), "--out", str(out))
        done = runner.invoke(app(), ["simulate", *files, "--policy", "rescheduling", "--json", *options])
        if done.exception is not None and done.exit_code == 1:
            raise done.exception
        assert done.exit_code == 0, done.stderr
        header, *lines = (out / "jobs.csv").read_text().splitlines()
        rows = [dict(zip(header.split(","), line.split(","), strict=True)) for line in lines]
        return rows, read("sns simulate", done.stdout)

    return simulate


def column(rows: list[dict[str, str]], name: str) -> list[str]:
    return [row[name] for row in rows]


@pytest.mark.long
def test_a_suspended_job_restarts_where_it_is_expected_to_end_sooner(simulate, tmp_path):
    rows, summary = simulate()
    assert column(rows, "end_s") == ["450", "200", "250", "1460", "860", "1100"]
    assert column(rows, "start_s") == ["0", "0", "100", "460", "460", "1000"]
    assert column(rows, "pool") == ["A", "B", "A", "B", "A", "B"]
    assert column(rows, "nodes") == ["a1", "b1", "a1", "b1", "a1", "b1"]
    assert column(rows, "suspensions") == ["1", "0", "0", "2", "0", "0"]
    assert column(rows, "suspended_s") == ["150", "0", "0", "100", "0", "0"]
    assert column(rows, "restarts") == ["0", "0", "0", "1", "0", "0"]
    assert column(rows, "wasted_s") == ["0", "0", "0", "60", "0", "0"]
    assert column(rows, "wait_s") == ["0"] * 6
    found = {name: summary[name] for name in ("jobs_suspended", "mean_suspended_s", "suspensions", "restarts")}
    assert found == {"jobs_suspended": 2, "mean_suspended_s": 125, "suspensions": 3, "restarts": 1}
    assert summary["wasted_core_s"] == 60
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"jobs.csv", "summary.json"}


def test_without_restarts_a_suspended_job_stays(simulate):
    rows, summary = simulate("--restart", "off")
    assert column(rows, "end_s") == ["450", "200", "250", "1700", "860", "1100"]
    assert rows[3]["pool"] == "A"
    assert rows[3]["suspended_s"] == "400"
    assert (summary["restarts"], summary["wasted_core_s"], summary["restart"]) == (0, 0, "off")


def test_the_summary_says_with_which_settings_it_was_made(simulate):
    settings = ("window_s", "restart", "suspended_memory", "averages", "max_moves", "heuristic", "virtual_pool")
    _, summary = simulate()
    assert [summary[name] for name in settings] == [6000, "on", "kept", "all", 0, "first-fit", "round-robin"]
    options = ("--window", "60", "--suspended-memory", "freed", "--averages", "suspended", "--max-moves", "3")
    _, summary = simulate(*options, "--heuristic", "best-fit-cores", "--virtual-pool", "availability")
    assert [summary[name] for name in settings] == [60, "on", "freed", "suspended", 3, "best-fit-cores", "availability"]


def test_a_decision_counts_only_jobs_of_the_window(simulate):
    # At 460 job 1, which ended at 450, is in a window of 10 s and in none of 9 s; job 2 is in neither. At 1000 no job
    # of low priority has ended for 550 s.
    assert simulate("--window", "10")[1]["restarts"] == 1
    assert simulate("--window", "9")[1]["restarts"] == 0


def test_memory_that_is_freed_lets_others_start(simulate):
    # Both jobs of A need all of its memory: job 2 is more urgent and has the cores that job 1 gives up.
    nodes = "name,cores,mem_gb,pool\na1,2,8,A\n"
    trace = f"{HEADER}1,0,100,1,8,A,0\n2,10,50,1,8,A,1\n"
    assert column(simulate(nodes=nodes, trace=trace)[0], "end_s") == ["100", "150"]
    assert column(simulate("--suspended-memory", "freed", nodes=nodes, trace=trace)[0], "end_s") == ["150", "60"]


def test_a_job_without_a_pool_goes_to_the_next_one_in_turn(simulate):
    rows, _ = simulate(trace=HEADER + "1,0,5,1,1,,0\n2,0,5,1,1,,0\n3,0,5,1,1,,0\n")
    assert column(rows, "pool") == ["A", "B", "A"]


def test_fractions_of_seconds_and_late_clocks_are_kept(simulate):
    begin_s = 1_700_000_000
    lines = (line.split(",") for line in JOBS.splitlines())
    shifted = "".join(f"{job},{begin_s + int(submit)}.25,{','.join(rest)}\n" for job, submit, *rest in lines)
    rows, summary = simulate(trace=HEADER + shifted)
    assert column(rows, "end_s")[3] == "1700001460.250"
    assert column(rows, "suspended_s")[3] == "100.000"
    assert summary["utilisation_cores"] == simulate()[1]["utilisation_cores"]


def test_the_load_factor_brings_jobs_together(simulate):
    assert column(simulate("--load-factor", "0.5")[0], "submit_s") == ["0", "0", "50", "200", "230", "500"]


def test_swf_carries_pools_and_priorities_by_number(simulate):
    numbers = {"A": 1, "B": 2}
    lines = (line.split(",") for line in JOBS.splitlines())
    swf = "".join(
        f"{job} {submit} -1 {run} {cores} -1 -1 {cores} -1 {1048576} 1 1 1 -1 {priority} {numbers[pool]} -1 -1\n"
        for job, submit, run, cores, _, pool, priority in lines
    )
    assert column(simulate(trace=swf, name="t.swf")[0], "end_s") == ["450", "200", "250", "1460", "860", "1100"]


def test_the_table_is_printed(tmp_path, runner):
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((HEADER + JOBS).encode()))
    command = ["simulate", str(tmp_path / "t.csv.gz"), "--nodes", str(tmp_path / "nodes.csv")]
    shown = runner.invoke(app(), [*command, "--policy", "rescheduling"])
    assert shown.exit_code == 0
    assert "rescheduling" in shown.stdout


def test_jobs_out_of_order_are_noted(tmp_path, runner):
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "t.csv").write_text(f"{HEADER}1,5,1,1,1,A,0\n2,0,1,1,1,A,0\n")
    command = ["simulate", str(tmp_path / "t.csv"), "--nodes", str(tmp_path / "nodes.csv")]
    done = runner.invoke(app(), [*command, "--policy", "rescheduling"])
    assert "1 jobs come after later ones; sorted by submit" in done.stderr


def test_ended_jobs_are_counted_while_it_runs(tmp_path, mocker):
    from slurm_sns.cli.offline.requested import SpreadingOptions, requested
    from slurm_sns.sim.runners.pools import pools

    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "t.csv").write_text(HEADER + JOBS)
    options = SpreadingOptions(None, None, None, 0)
    asked = requested("rescheduling", {}, options, None, interval_s=None, age_limit_s=None)
    read = pools(str(tmp_path / "t.csv"), str(tmp_path / "nodes.csv"), asked, 1.0, None)
    report = mocker.Mock()
    read.run(report)
    assert report.call_args.args == (6,)


# What is refused


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--interval", "30"], "--interval does not go with rescheduling, which decides whenever"),
        (["--penalty", "3"], "--penalty goes with --policy dfrs-greedy"),
        (["--restart", "maybe"], "restart is 'maybe'; valid: on, off"),
        (["--suspended-memory", "some"], "suspended_memory is 'some'; valid: kept, freed"),
        (["--averages", "none"], "averages is 'none'; valid: all, suspended"),
        (["--heuristic", "idlest"], "heuristic is 'idlest'; valid: first-fit, best-fit-cores"),
        (["--virtual-pool", "random"], "virtual_pool is 'random'; valid: round-robin, availability"),
        (["--window", "31536001"], "window_s is 31536001; valid: from 1 to"),
        (["--max-moves", "9999999999"], "max_moves is 9999999999; valid: from 0 to"),
        (["--queue-depth", "5"], "--queue-depth goes with --policy max-jobs"),
        (["--age-limit", "5"], "--age-limit goes with policies that match, not with rescheduling"),
        (["--profiles", "nosuch.yaml"], "--profiles goes with --policy ce"),
        (["--user-estimates"], "--user-estimates goes with --policy easy"),
        (["--load-factor", "1000000"], "jobs are submitted after 4e+09 s"),
    ],
)
def test_options_that_do_not_go_with_it_are_refused_in_one_line(simulate, options, words):
    trace = HEADER + JOBS.replace("1000,", "5000,")
    with pytest.raises(BadInput) as refused:
        simulate(*options, trace=trace)
    assert words in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--policy", "max-jobs", "--window", "60"], "--window goes with --policy rescheduling, not with max-jobs"),
        (["--policy", "max-jobs"], "jobs of pools go with --policy rescheduling, not with max-jobs"),
        (["--policy", "first-fit"], "jobs of pools go with --policy rescheduling, not with first-fit"),
        (["--policy", "sns"], "jobs of pools go with --policy rescheduling, not with sns"),
        (["--policy", "easy"], "jobs of pools go with --policy rescheduling, not with easy"),
        (["--policy", "dfrs-greedy"], "jobs of pools go with --policy rescheduling, not with dfrs-greedy"),
    ],
)
def test_other_policies_refuse_pools_and_say_which_one_takes_them(simulate, options, words):
    with pytest.raises(BadInput) as refused:
        simulate(*options)
    assert words in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


HOSTILE = {
    "nodes without pools": ({"nodes": "name,cores,mem_gb\na1,2,8\n"}, "column pool is missing"),
    "jobs without pools": ({"trace": "job_id,submit_s,run_s,cores,mem_gb\n1,0,5,1,1\n"}, "column pool is missing"),
    "tasks": ({"trace": "job_id,submit_s,run_s,tasks,cpu_need,memory_need\n1,0,5,1,1,1\n"}, "column cores is missing"),
    "another pool": ({"trace": f"{HEADER}1,0,5,1,1,C,0\n"}, "line 2: pool is 'C'"),
    "an urgent job": ({"trace": f"{HEADER}1,0,5,1,1,A,1001\n"}, "line 2: priority is '1001'"),
    "a late job": ({"trace": f"{HEADER}1,4000000001,5,1,1,A,0\n"}, "line 2: submit_s is '4000000001'"),
    "a job for no node": ({"trace": f"{HEADER}1,0,5,9,1,A,0\n"}, "no job can run on these nodes"),
    "nothing": ({"trace": ""}, "the file is empty"),
    "a binary file": ({"trace": "job_id,\0"}, "a binary file"),
    "a partition too many": (
        {"trace": "1 0 -1 5 1 -1 -1 1 -1 -1 1 1 1 -1 0 3 -1 -1\n", "name": "t.swf"},
        "line 1: partition is 3; valid: 1 to 2",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_in_one_line(simulate, name):
    files, words = HOSTILE[name]
    with pytest.raises(BadInput) as refused:
        simulate(**files)
    assert words in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


ODD = {
    "centuries apart": "1,0,5,1,1,A,0\n2,4000000000,5,1,1,A,0\n",
    "a job of a century": "1,0,4000000000,1,1,A,0\n2,5,1,2,1,A,1\n",
    "microseconds": "1,0,0.000001,1,1,A,0\n2,0.000001,0.5,2,1,,1\n",
    "all at once": "".join(f"{at},7,30,2,4,,{at % 3}\n" for at in range(1, 60)),
    "no memory": "1,0,5,1,0,A,0\n2,1,5,2,0,A,1\n",
    "a single job": "1,3,5,1,1,,0\n",
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("memory", ["kept", "freed"])
def test_odd_traces_end(simulate, name, memory):
    trace = HEADER + ODD[name]
    rows, summary = simulate("--suspended-memory", memory, "--averages", "suspended", trace=trace)
    assert len(rows) == summary["jobs"]
    for row in rows:
        assert float(row["end_s"]) > float(row["start_s"]) >= float(row["submit_s"]) >= 0


def test_swf_on_standard_input_is_read(tmp_path, runner):
    (tmp_path / "nodes.csv").write_text(NODES)
    command = ["simulate", "-", "--nodes", str(tmp_path / "nodes.csv"), "--policy", "rescheduling", "--json"]
    done = runner.invoke(app(), command, input="1 0 -1 5 1 -1 -1 1 -1 -1 1 1 1 -1 0 -1 -1 -1\n")
    assert done.exit_code == 0, done.exception
    assert json.loads(done.stdout)["jobs"] == 1
