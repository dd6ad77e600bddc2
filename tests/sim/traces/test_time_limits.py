"""How long a job of a trace is expected to run: its time limit, or its true run time."""

import pytest

from slurm_sns.errors import BadInput
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters
from slurm_sns.sim.traces import swf
from slurm_sns.sim.traces.columns import NotPlain
from slurm_sns.sim.traces.program_trace import TraceReader
from slurm_sns.sim.traces.read_trace import read_records

#: Two jobs with a time limit (field 9), the second runs longer; one without, and one with a limit of no length.
SWF = """; UnixStartTime: 0
1 0 -1 60 1 -1 -1 1 3600 -1 1 1 1 -1 1 -1 -1 -1
2 5 -1 60 1 -1 -1 1 30.5 -1 1 1 1 -1 1 -1 -1 -1
3 9 -1 60 1 -1 -1 1 -1 -1 1 1 1 -1 1 -1 -1 -1
4 9 -1 60 1 -1 -1 1 0 -1 1 1 1 -1 1 -1 -1 -1
"""
CSV = "job_id,submit_s,run_s,cores,mem_gb\n1,0,60,1,1\n"
PROGRAMS = "job_id,submit_s,run_s,program,processes\n1,0,60,mg,4\n"


def expected(trace) -> list[float | None]:
    return [each.job.expected_run_s for each in trace.jobs]


@pytest.mark.parametrize("plainly", [True, False])
def test_user_estimates_are_the_time_limits(plainly, write, small_pool, monkeypatch):
    if not plainly:
        monkeypatch.setattr(swf.SwfReader, "_plain", refuse)

    records = read_records(write("t.swf", SWF), small_pool, user_estimates=True)
    assert expected(records.values()) == [3600, 31, None, None]


@pytest.mark.parametrize(("name", "text"), [("t.swf", SWF), ("t.csv", CSV)])
def test_otherwise_run_times_are_known(name, text, write, small_pool):
    assert set(expected(read_records(write(name, text), small_pool).values())) == {60}
    assert len(read_records(write(name, text), small_pool).limit) == 0


def test_jobs_that_are_too_large_take_their_limits_with_them(write, small_pool):
    text = SWF.replace("2 5 -1 60 1 -1 -1 1 30.5", "2 5 -1 60 1 -1 -1 99 30.5")

    assert expected(read_records(write("t.swf", text), small_pool, user_estimates=True).values()) == [3600, None, None]


def test_limits_are_sorted_with_their_jobs(write, small_pool):
    lines = SWF.splitlines(keepends=True)
    text = "".join([lines[0], *reversed(lines[1:])])

    trace = read_records(write("t.swf", text), small_pool, user_estimates=True).values()

    assert [each.job.id for each in trace.jobs] == [1, 2, 4, 3]
    assert expected(trace) == [3600, 31, None, None]


@pytest.mark.parametrize(("user_estimates", "seconds"), [(True, [3600, 31, None, None]), (False, [60, 60, 60, 60])])
@pytest.mark.parametrize("policy", ["ce", "cs", "sns"])
def test_policies_that_spread_read_them_too(policy, user_estimates, seconds, write, small_pool):
    reader = TraceReader(small_pool, policy, {}, SpreadingParameters(), user_estimates)

    assert expected(reader.read(write("t.swf", SWF)).trace) == seconds


def test_a_job_of_a_program_is_expected_to_run_as_long_as_under_ce(write, small_pool):
    reader = TraceReader(small_pool, "sns", {}, SpreadingParameters())

    assert expected(reader.read(write("p.csv", PROGRAMS)).trace) == [60]


@pytest.mark.parametrize("text", [CSV, PROGRAMS])
def test_a_csv_has_no_time_limits(text, write, small_pool):
    reader = TraceReader(small_pool, "ce", {}, SpreadingParameters(), user_estimates=True)

    with pytest.raises(BadInput, match=r"t.csv: a CSV has no time limits; valid with user estimates: SWF"):
        reader.read(write("t.csv", text))


def refuse(*_):
    raise NotPlain
