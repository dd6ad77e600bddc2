"""`sns simulate` where some jobs overtake others: fcfs, easy, and what Max-Jobs withholds."""

import sys

import pytest
from json_output import read

from slurm_sns.cli import main

#: Four nodes: job 1 holds two until 100, job 2 needs all of them. Job 3 ends before, job 4 asks for a day.
JOBS = [(1, 0, 100, 2, 100), (2, 1, 10, 4, 10), (3, 2, 50, 1, 50), (4, 3, 50, 1, 86_400)]


@pytest.fixture
def simulate(tmp_path, monkeypatch, capfdbinary):
    """Run `sns simulate` on a trace; return the exit code, what it prints, and the jobs' start times."""

    def simulate(*options, trace=None) -> tuple[int, dict | str, dict[str, str]]:
        nodes, swf, out = tmp_path / "nodes.csv", tmp_path / "jobs.swf", tmp_path / "out"
        nodes.write_text("name,cores,mem_gb\n" + "".join(f"n{at},1,4\n" for at in range(4)))
        swf.write_text(
            "".join(
                f"{job} {submit} -1 {run} {size} -1 -1 {size} {limit} -1 1 1 1 -1 1 -1 -1 -1\n"
                for job, submit, run, size, limit in JOBS
            )
        )
        command = ["simulate", trace or swf, "--nodes", nodes, "--out", out, "--json", *options]
        monkeypatch.setattr(sys, "argv", ["sns", *map(str, command)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed, error = capfdbinary.readouterr()
        if ended.value.code:
            return ended.value.code, error.decode(), {}
        rows = [line.split(",") for line in (out / "jobs.csv").read_text().splitlines()[1:]]
        return 0, read("sns simulate", printed), {row[0]: row[2] for row in rows}

    return simulate


@pytest.mark.parametrize(
    ("options", "starts"),
    [
        (["--policy", "fcfs"], ["0", "100", "110", "110"]),
        (["--policy", "easy"], ["0", "100", "2", "3"]),
        (["--policy", "easy", "--extra-nodes-only"], ["0", "100", "110", "110"]),
        (["--policy", "easy", "--user-estimates"], ["0", "100", "2", "110"]),
        (["--policy", "easy", "--queue-depth", "1"], ["0", "100", "110", "160"]),
        (["--policy", "easy", "--placement", "mix-fit"], ["0", "100", "2", "3"]),
        # The backfill of second 0 has not seen jobs 3 and 4. Job 2 is booked for second 120: limits are whole minutes.
        (["--policy", "slurm"], ["0", "101", "30", "30"]),
        # Job 1 ends in second 100. Without an Epilog Slurm sees that in the next second.
        (["--policy", "slurm", "--epilog"], ["0", "100", "30", "30"]),
        (["--policy", "slurm", "--bf-interval", "1"], ["0", "101", "2", "3"]),
        (["--policy", "slurm", "--bf-interval", "1", "--user-estimates"], ["0", "101", "2", "112"]),
        (["--policy", "slurm", "--bf-interval", "1", "--bf-max-job-test", "1"], ["0", "101", "112", "112"]),
    ],
)
def test_who_overtakes_whom(options, starts, simulate):
    assert list(simulate(*options)[2].values()) == starts


@pytest.mark.parametrize("policy", ["max-jobs", "combined"])
@pytest.mark.parametrize(
    ("withhold", "starts"), [("whole-wait", ["0", "100", "110", "110"]), ("until-start", ["0", "100", "2", "3"])]
)
def test_max_jobs_withholds_for_the_whole_wait_or_until_the_start(policy, withhold, starts, simulate):
    _, summary, found = simulate("--policy", policy, "--withhold", withhold, "--interval", "1")

    assert list(found.values()) == starts
    assert summary["withhold"] == withhold


def test_the_summary_says_how_jobs_were_placed_and_what_was_known(simulate):
    summary = simulate("--policy", "easy", "--placement", "cs", "--user-estimates")[1]

    assert (summary["policy"], summary["placement"], summary["user_estimates"]) == ("easy", "cs", True)
    assert summary["extra_nodes_only"] is False
    assert summary["interval_s"] == 1


@pytest.mark.parametrize("placement", ["ce", "cs", "sns"])
@pytest.mark.parametrize("policy", ["fcfs", "easy"])
def test_a_trace_of_programs_runs_with_each_way_of_placing(policy, placement, simulate, tmp_path):
    trace = tmp_path / "programs.csv"
    lines = [f"{at},{at},{100 + at},p{at % 2},{1 + at % 4}" for at in range(12)]
    trace.write_text("\n".join(["job_id,submit_s,run_s,program,processes", *lines]) + "\n")

    summary = simulate("--policy", policy, "--placement", placement, trace=trace)[1]

    assert summary["jobs"] == 12


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--policy", "easy", "--placement", "magic"], "placement is 'magic'; valid: ce, cs, sns, first-fit"),
        (["--policy", "ce", "--user-estimates"], "--user-estimates goes with --policy easy, slurm, not with ce"),
        (["--policy", "fcfs", "--user-estimates"], "--user-estimates goes with --policy easy, slurm, not with fcfs"),
        (["--policy", "easy", "--progress", "contention"], "--progress goes with policies that match, not with easy"),
        (["--policy", "easy", "--age-limit", "5"], "--age-limit goes with policies that match, not with easy"),
        (["--policy", "easy", "--ties", "own"], "--ties goes with --policy max-jobs, combined, not with easy"),
        (
            ["--policy", "easy", "--placement", "sns", "--alternatives-order", "adaptive"],
            "--alternatives-order goes with --policy sns, combined, not with easy",
        ),
        (["--policy", "max-jobs", "--ties", "fair"], "ties is 'fair'; valid: list, own, record, random"),
        (["--policy", "max-jobs", "--withhold-up-to", "-1"], "valid: from 0 to 1e9"),
        (["--policy", "easy", "--bf-interval", "5"], "--bf-interval goes with --policy slurm, not with easy"),
        (["--policy", "slurm", "--bf-resolution", "4000"], "bf_resolution_s is 4000; valid: from 1 to 3600"),
        (["--policy", "easy", "--learn", "0.1"], "--learn goes with --policy sns, combined, not with easy"),
    ],
)
def test_bad_use_is_one_line_and_exit_2(options, words, simulate):
    code, error, _ = simulate(*options)

    assert code == 2
    assert error.count("\n") == 1
    assert words in error


@pytest.mark.parametrize("policy", ["fcfs", "easy", "slurm"])
def test_tasks_for_more_nodes_than_there_are_leave_their_job_out(simulate, tmp_path, policy):
    trace = tmp_path / "tasks.csv"
    header = "job_id,submit_s,run_s,tasks,cpu_need,memory_need\n"
    trace.write_text(f"{header}1,0,100,5,0.5,0.1\n2,1,10,4,0.5,0.1\n")
    status, summary, starts = simulate("--policy", policy, trace=trace)
    assert (status, summary["dropped"], starts) == (0, {"larger than any nodes": 1}, {"2": "1"})

    trace.write_text(f"{header}1,0,100,5,0.5,0.1\n")
    message = simulate("--policy", policy, trace=trace)[1]
    assert message.endswith("no job can run on these nodes: 1 larger than any nodes\n")
