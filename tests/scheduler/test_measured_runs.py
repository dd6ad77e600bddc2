"""From the reports of agents to what is kept of single runs, and that a store that is away costs nothing else."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from live import BOB, NOW, running

from slurm_sns.errors import Unreachable
from slurm_sns.scheduler.measured_runs import MeasurementRecord, measured_run
from slurm_sns.scheduler.ports import MeasuredRun
from slurm_sns.wire.values import Point, RunId, RunReport

ALONE, BESIDE = Point(20, 40.0, 2.0, 10.0, 40.0, 2.0), Point(6, 60.0, 1.0, 20.0)


def report(*points: Point, job_id: int = 1, node: str = "c1", **more) -> RunReport:
    return RunReport(RunId(job_id, 1), node, NOW - 5, 120.0, points=points, **more)


def test_the_points_of_all_ways_become_one_row() -> None:
    row = measured_run(report(ALONE, BESIDE), BOB, NOW)
    assert row == MeasuredRun(RunId(1, 1), "c1", BOB, NOW - 5, 6, 20, 100.0, 1.4, 16.0, 40.0, 2.0)
    assert row.ipc_beside == pytest.approx(1.0)


def test_a_run_that_was_sampled_alone_is_not_compared_with_itself() -> None:
    row = measured_run(report(ALONE, BESIDE, was_sampled=True), BOB, NOW)
    assert row is not None
    assert (row.ipc, row.alone_s, row.ipc_alone) == (1.4, 0.0, None)


@pytest.mark.parametrize("bad", [Point(6, 60.0, 1.0, 20.0, 61.0, 9.0), Point(6, 60.0, 1.0, 20.0, 0.0, 9.0)])
def test_a_time_alone_that_cannot_be_costs_that_value_only(bad: Point) -> None:
    assert measured_run(report(ALONE, bad), BOB, NOW) == measured_run(report(ALONE, BESIDE), BOB, NOW)


def test_a_value_that_is_no_number_costs_that_value_only() -> None:
    row = measured_run(report(Point(6, 60.0, inf, 20.0)), BOB, NOW)
    assert row is not None
    assert (row.ipc, row.bandwidth_gbps) == (None, 20.0)


def test_nothing_measured_is_no_row_and_no_run_ends_in_the_future() -> None:
    assert measured_run(report(), BOB, NOW) is None
    assert measured_run(report(Point(6, 0.0, 1.0, 1.0)), BOB, NOW) is None
    early = measured_run(report(ALONE), BOB, NOW - 60)
    assert early is not None
    assert early.ended_s == NOW - 60


@given(st.floats(1, 1e6), st.floats(0.01, 10), st.floats(0, 1), st.floats(0.01, 10))
def test_ipc_beside_and_alone_make_the_ipc_of_the_run(seconds: float, ipc: float, share: float, alone: float) -> None:
    row = MeasuredRun(RunId(1), "c1", BOB, NOW, 0, 0, seconds, ipc, None, share * seconds, alone if share else None)
    if row.ipc_beside is not None:
        whole = row.ipc_beside * (seconds - row.alone_s) + (row.ipc_alone or 0) * row.alone_s
        assert whole == pytest.approx(ipc * seconds)


class Kept:
    """A store that keeps what it is given, unless it is away."""

    def __init__(self) -> None:
        self.rows: list[list[MeasuredRun]] = []
        self.is_away = False

    def record(self, runs, _now_s) -> None:
        if self.is_away:
            raise Unreachable("the store is away")
        self.rows.append(list(runs))


def test_a_report_is_written_once_while_it_waits_with_the_owner_whom_slurm_names() -> None:
    kept, log = Kept(), []
    record = MeasurementRecord(kept, log.append)
    first, second = report(ALONE), report(ALONE, job_id=2)
    for reports in ((first,), (first, second), (first, second), ()):
        record.add(reports, [running(1, "c1", user_id=BOB)], NOW)
    assert [[(each.run.job_id, each.user_id) for each in rows] for rows in kept.rows] == [[(1, BOB)], [(2, None)]]


def test_a_store_that_is_away_costs_the_record_and_one_line() -> None:
    kept, log = Kept(), []
    record = MeasurementRecord(kept, log.append)
    kept.is_away = True
    for node in ("c1", "c2"):
        record.add([report(ALONE, node=node)], [], NOW)
    assert log == ["the store is away; what was measured of single runs is lost meanwhile"]
    kept.is_away = False
    record.add([report(ALONE, node="c3")], [], NOW)
    assert [each.node for rows in kept.rows for each in rows] == ["c3"]
