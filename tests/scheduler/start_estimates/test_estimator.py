"""Estimates of a cycle's waiting jobs: what is told, what is learnt of it, and that nothing of it stops a cycle."""

from dataclasses import replace

import pytest
from live import BOB, ENFORCE, HELD, NOW, job, look, node, pinned, running, situation

from slurm_sns.errors import Unreachable
from slurm_sns.estimates.past_runs import PastRun
from slurm_sns.log import Outage
from slurm_sns.policies.baselines.compact import compact_exclusive
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.scheduler.observation import JobState, ObservedJob
from slurm_sns.scheduler.ports import EstimatedStart
from slurm_sns.scheduler.start_estimates.board import EstimateBoard
from slurm_sns.scheduler.start_estimates.estimate_thread import EstimateThread, rest_s
from slurm_sns.scheduler.start_estimates.estimator import (
    ALL_EVERY_S,
    FIRST_JOBS,
    RECORD_S,
    Estimator,
    WeekOfStarts,
    rules_of,
)

HOUR = 3600
ONE_NODE = [node("c1", cores=4)]
RULES = rules_of(max_jobs())


def full(identity: int, **fields) -> ObservedJob:
    """A job of a whole node for an hour."""
    fields = {"tasks": 4, "cpus": 4, "min_cpus_per_node": 4, "memory_per_cpu_mb": 100, **fields}
    return job(identity, **fields)


def on_c1(identity: int, **fields) -> ObservedJob:
    """One that has run on c1 for ten minutes."""
    began = int(NOW) - 600
    fields = {"start_s": began, "end_s": began + HOUR, "occupies": ONE_NODE[0].capacity, **fields}
    return running(identity, "c1", tasks=4, cpus=4, min_cpus_per_node=4, walltime_s=HOUR, **fields)


def seen(*jobs: ObservedJob, now_s=NOW):
    nodes = [replace(ONE_NODE[0], allocated=ONE_NODE[0].capacity)] if any(each.allocated for each in jobs) else ONE_NODE
    return situation(look(*jobs, nodes=nodes), now_s=now_s)


def estimator(runs=(), starts=()) -> Estimator:
    return Estimator(RULES, ENFORCE, lambda: 0.0, runs, starts)


def runs_of(share: float, count: int = 10) -> list[PastRun]:
    return [PastRun(900 + at, at, 2001, "", share) for at in range(count)]


def test_by_limits_a_job_starts_when_those_before_it_have_reached_theirs():
    makes = estimator()
    makes.round(seen(on_c1(1), full(2), full(3)), ())

    found = makes.now.of
    assert found[2].limits_s == NOW + 3000
    assert found[3].limits_s == pytest.approx(NOW + 3000 + HOUR, abs=70), "coarsened by up to 60 s"
    assert [found[each].waits_for for each in (2, 3)] == [1, 2]
    assert found[2].nodes == ("c1",)


def test_the_range_is_earlier_where_owners_use_little_of_their_limits():
    makes = estimator(runs_of(0.25))
    makes.round(seen(on_c1(1), full(2), full(3)), ())

    for job_id in (2, 3):
        assert makes.now.of[job_id].low_s < makes.now.of[job_id].high_s < makes.now.of[job_id].limits_s


def test_a_job_behind_an_endless_one_has_no_range():
    makes = estimator()
    makes.round(seen(on_c1(1), full(2, walltime_s=None), full(3)), ())

    assert makes.now.of[3].low_s is None
    assert makes.now.of[3].not_before_s > NOW


def test_placed_and_held_jobs_are_not_estimated():
    makes = estimator()
    makes.round(seen(on_c1(1), full(2), full(3, **HELD), full(4)), {2})

    assert list(makes.now.of) == [4]


def test_a_start_is_judged_by_the_first_estimate_and_kept():
    makes = estimator()
    makes.round(seen(on_c1(1), full(2)), ())
    first = makes.now.of[2]
    makes.round(seen(on_c1(1), full(2), now_s=NOW + 900), ())
    started_s = int(NOW) + 3000

    learnt = makes.round(seen(on_c1(2, start_s=started_s, end_s=started_s + HOUR), now_s=NOW + 3100), ())

    (start,) = learnt.starts
    assert (start.job_id, start.started_s, start.made_s) == (2, started_s, NOW)
    assert (start.made_s + start.low_s, start.made_s + start.high_s) == (first.low_s, first.high_s)
    assert (makes.now.starts, makes.now.inside) == (1, 1)


def test_a_task_is_judged_when_it_starts_under_an_id_of_its_own():
    makes, started_s = estimator(), int(NOW) + 3000
    makes.round(seen(on_c1(1), full(40, array_id=40, array_tasks="1-3")), ())
    task = on_c1(41, array_id=40, array_task=1, start_s=started_s, end_s=started_s + HOUR)

    learnt = makes.round(seen(task, now_s=NOW + 3100), ())

    assert [start.job_id for start in learnt.starts] == [41]


def test_a_placed_job_is_judged_when_it_starts():
    makes, started_s = estimator(), int(NOW) + 3000
    makes.round(seen(on_c1(1), full(2)), ())
    makes.round(seen(on_c1(1), pinned(2, "c1"), now_s=NOW), ())

    learnt = makes.round(seen(on_c1(2, start_s=started_s, end_s=started_s + HOUR), now_s=NOW + 3100), ())

    assert [start.job_id for start in learnt.starts] == [2]


def test_a_job_that_was_held_or_cancelled_is_judged_by_nobody():
    makes = estimator()
    makes.round(seen(on_c1(1), full(2), full(3)), ())
    makes.round(seen(on_c1(1), full(2, **HELD), now_s=NOW + 60), ())
    ended = [
        replace(each, state=JobState.RUNNING, allocated=("c1",), start_s=int(NOW) + 90) for each in (full(2), full(3))
    ]

    assert makes.round(seen(*ended, now_s=NOW + 100), ()).starts == ()


def test_ended_jobs_are_runs_of_the_past_once():
    ended = on_c1(1, end_s=int(NOW) - 300, state=JobState.ENDED)
    makes = estimator()

    (run,) = makes.round(seen(ended), ()).runs

    assert (run.job_id, run.owner, run.share) == (1, 2001, 300 / HOUR)
    assert makes.round(seen(ended), ()).runs == ()
    assert estimator([run]).round(seen(ended), ()).runs == (), "nor again after a restart"


def test_a_jobs_name_that_is_no_text_can_be_stored():
    ended = replace(on_c1(1, end_s=int(NOW) - 300, state=JobState.ENDED), name="mg\udc80")

    (run,) = estimator().round(seen(ended), ()).runs

    assert run.program == "mg?"


def test_the_record_of_before_a_restart_counts_for_a_week():
    day = 86400

    def start(at: int, waited_s: float) -> EstimatedStart:
        started_s = NOW - at * day
        made_s = started_s - waited_s
        return EstimatedStart(at, started_s, made_s, 1001, made_s, 500, 700, 300, 600, 900)

    makes = estimator(starts=[*(start(at, 600) for at in (9, 3, 2)), start(1, 9000)])
    makes.round(seen(on_c1(1), full(2)), ())

    assert (makes.now.starts, makes.now.inside) == (3, 2)


def test_the_first_jobs_are_estimated_in_every_round_and_the_others_now_and_then():
    jobs = [full(each) for each in range(2, FIRST_JOBS + 12)]
    makes = estimator()
    makes.round(seen(on_c1(1), *jobs), ())
    makes.round(seen(on_c1(1), *jobs, now_s=NOW + 5), ())

    assert [makes.now.of[each].made_s for each in (2, FIRST_JOBS + 11)] == [NOW + 5, NOW]
    makes.round(seen(on_c1(1), *jobs, now_s=NOW + ALL_EVERY_S), ())
    assert makes.now.of[FIRST_JOBS + 11].made_s == NOW + ALL_EVERY_S


def test_an_array_shows_the_estimate_of_its_first_task():
    makes = estimator()
    makes.round(seen(on_c1(1), full(40, array_id=40, array_tasks="1-3")), ())

    assert makes.now.of[40].limits_s == NOW + 3000


def test_only_a_policy_that_matches_by_a_portfolio_is_looked_ahead_on():
    assert rules_of(compact_exclusive()) is not None
    assert rules_of(object()) is None


class Store:
    def __init__(self, problem: Exception | None = None) -> None:
        self.problem, self.saved = problem, []

    def save(self, runs, starts) -> None:
        if self.problem:
            raise self.problem
        self.saved.append((runs, starts))


class Stopped:
    def now(self) -> float:
        return NOW

    def steady(self) -> float:
        return 0.0


def thread(makes, store=None, lines=None) -> tuple[EstimateThread, EstimateBoard]:
    board = EstimateBoard()
    log = (lines if lines is not None else []).append
    return EstimateThread(makes, board, store or Store(), Stopped(), Outage(log)), board


def test_a_round_is_on_the_board_when_the_block_ends():
    worker, board = thread(estimator())
    with worker:
        worker.show(seen(on_c1(1), full(2)), ())
        for _ in range(500):
            if board.now.of:
                break
            worker._is_over.wait(0.01)

    assert board.by_limits(2) == NOW + 3000
    assert board.by_limits(77) is None


@pytest.mark.parametrize(("took_s", "rests_s"), [(0.0, 0.0), (0.02, 0.18), (0.5, 4.5), (3.0, 7.0), (12.0, 0.0)])
def test_the_thread_rests_nine_times_as_long_as_a_round_took_but_begins_one_every_ten_seconds(took_s, rests_s):
    assert rest_s(took_s) == pytest.approx(rests_s)


def test_a_defect_is_logged_once_and_leaves_no_estimates():
    class Broken:
        def round(self, *_):
            raise ZeroDivisionError

    lines: list[str] = []
    worker, board = thread(Broken(), lines=lines)
    for _ in range(3):
        worker.round(seen(full(2)), ())

    assert "ZeroDivisionError" in board.trouble
    assert board.now.of == {}
    assert len([line for line in lines if line.startswith("defect")]) == 1


def test_estimates_are_told_while_the_store_is_away():
    worker, board = thread(estimator(), Store(Unreachable("the disk is full")))
    worker.round(seen(on_c1(1), full(2), on_c1(7, end_s=int(NOW) - 300, state=JobState.ENDED, user_id=BOB)), ())

    assert board.by_limits(2) == NOW + 3000
    assert board.trouble == "estimates: the disk is full"


def test_a_store_that_is_away_is_said_once_and_gets_all_when_it_is_back():
    lines, store = [], Store(Unreachable("the disk is full"))
    worker, board = thread(estimator(), store, lines)
    ended = on_c1(7, start_s=int(NOW) - 900, end_s=int(NOW) - 300, state=JobState.ENDED)
    for jobs in ((ended,), (ended, on_c1(1)), (ended, on_c1(1), full(2))):
        worker.round(seen(*jobs), ())
    assert lines == ["estimates: the disk is full"]
    store.problem = None
    worker.round(seen(ended), ())
    worker.round(seen(ended), ())

    assert [[run.job_id for run in runs] for runs, _ in store.saved] == [[7]]
    assert board.trouble == ""


def test_the_starts_of_a_week_are_counted_by_the_hour():
    """Whatever the number of starts, no more is kept than the hours of a week; older ones, and those ahead, go."""
    week = WeekOfStarts()
    for at in range(20_000):
        week.add(NOW + at % RECORD_S, is_inside=at % 4 == 0)
    week.forget(NOW + RECORD_S)
    assert week.counts() == (20_000, 5_000)
    assert len(week._of_hours) <= RECORD_S / HOUR + 1

    week.forget(NOW + RECORD_S + 24 * HOUR)
    assert week.counts() < (20_000, 5_000)
    week.forget(NOW + 3 * RECORD_S)
    assert week.counts() == (0, 0)

    week.add(NOW + 2 * RECORD_S, is_inside=True)
    week.forget(NOW)  # the clock was set back
    assert week.counts() == (0, 0)
