"""The policy as a whole: two cases by hand, moves and their limits, the order of one moment, and what a plan says."""

from dataclasses import replace

import pytest
from oracles.rescheduling.history import Account, ReschedulingHistory, Sample, Visit
from oracles.rescheduling.policy import Rescheduling
from pool_cases import EngineSeen, PoolCase, PoolJob, PoolNode, ReplaySeen, VisitSeen

from slurm_sns.model import (
    ActiveJob,
    ActiveState,
    Alternative,
    Job,
    JobPool,
    Node,
    Requeue,
    Resources,
    Resume,
    Snapshot,
    Start,
    Suspend,
)
from slurm_sns.policies.rescheduling.parameters import ReschedulingParameters

Run = EngineSeen | ReplaySeen


@pytest.fixture(params=[EngineSeen, ReplaySeen], ids=["engine", "replay"])
def run(request):
    def of(nodes: list[PoolNode], *jobs: PoolJob, **more: object) -> Run:
        in_order = sorted(jobs, key=lambda job: job.submit_s)
        return request.param(PoolCase(nodes, in_order), ReschedulingParameters(**more))

    return of


def visits(seen: Run, number: int) -> list[VisitSeen]:
    return seen.jobs[number].visits


def suspensions(seen: Run) -> dict[int, list[tuple[int, int, str]]]:
    return {
        number: [(each.from_s, each.to_s, each.ended_by) for each in job.suspensions]
        for number, job in seen.jobs.items()
        if job.suspensions
    }


def decisions(seen: Run) -> list[tuple[int, int, str, list[str]]]:
    """Time, job, where it goes on, and the estimates."""
    return [
        (now_s, each.job_id, each.chosen, [f"{term.pool} {term.estimate_s}" for term in each.terms])
        for now_s, _, each in seen.decisions
    ]


# By hand, as in the reference's two cases

A1_B1 = [PoolNode("a1", 2, 8, "A"), PoolNode("b1", 2, 8, "B")]
CASE_1 = (
    PoolJob(1, 0, 300, 1, 2, "A"),
    PoolJob(2, 0, 200, 1, 2, "B"),
    PoolJob(3, 100, 150, 2, 4, "A", 1),
    PoolJob(4, 400, 900, 1, 2, "A"),
    PoolJob(5, 460, 400, 2, 4, "A", 1),
    PoolJob(6, 1000, 100, 2, 4, "B", 1),
)


def test_case_1_a_job_moves_to_the_pool_where_it_completes_sooner_and_stays_when_it_does_not(run):
    seen = run(A1_B1, *CASE_1)
    assert decisions(seen) == [
        (100, 1, "A", ["A 200"]),
        (460, 4, "B", ["A 990", "B 900"]),
        (1000, 4, "B", ["B 360", "A 1050"]),
    ]
    assert suspensions(seen) == {1: [(100, 250, "resumed")], 4: [(460, 460, "moved"), (1000, 1100, "resumed")]}
    assert visits(seen, 4) == [VisitSeen("A", 400, 400, "a1", 0, 60), VisitSeen("B", 460, 460, "b1", 100, 900)]
    assert {number: job.end_s for number, job in seen.jobs.items()} == {
        1: 450,
        2: 200,
        3: 250,
        4: 1460,
        5: 860,
        6: 1100,
    }


def test_case_1_without_restarts_the_job_resumes_where_it_was(run):
    seen = run(A1_B1, *CASE_1, restart="off")
    assert decisions(seen) == []
    assert suspensions(seen) == {1: [(100, 250, "resumed")], 4: [(460, 860, "resumed")]}
    assert (seen.jobs[4].end_s, visits(seen, 6)[0].start_s) == (1700, 1000)


@pytest.mark.parametrize(
    ("memory", "ends", "suspended"),
    [
        ("kept", {6: 480, 2: 910, 1: 1000, 4: 420, 3: 120, 5: 240}, {2: [(20, 420, "resumed")]}),
        (
            "freed",
            {6: 180, 2: 610, 1: 1300, 4: 330, 3: 120, 5: 240},
            {2: [(20, 120, "resumed")], 1: [(30, 330, "resumed")]},
        ),
    ],
)
def test_case_2_memory_that_suspended_jobs_keep_or_free(run, memory, ends, suspended):
    only_a = ("A",)
    seen = run(
        [PoolNode("a1", 4, 8, "A"), PoolNode("b1", 2, 8, "B")],
        PoolJob(1, 0, 1000, 2, 2, allowed=only_a),
        PoolJob(2, 10, 500, 1, 2, allowed=only_a),
        PoolJob(3, 20, 100, 2, 2, priority=1, allowed=only_a),
        PoolJob(4, 30, 300, 2, 4, priority=1, allowed=only_a),
        PoolJob(5, 40, 200, 1, 2),
        PoolJob(6, 50, 60, 1, 2, allowed=only_a),
        suspended_memory=memory,
    )
    assert {number: job.end_s for number, job in seen.jobs.items()} == ends
    assert suspensions(seen) == suspended
    assert visits(seen, 5)[0] == VisitSeen("B", 40, 40, "b1", 0, 200)


# Moves. In pool A job 91 is suspended for 200 s before all else.

ONE_CORE_EACH = [PoolNode("a", 1, 8, "A"), PoolNode("b", 1, 8, "B")]
FIRST = (PoolJob(91, 0, 20, 1, 0, "A"), PoolJob(92, 10, 200, 1, 0, "A", 1))


def urgent(number: int, submit_s: int, pool: str = "A", *, cores: int = 1, run_s: int = 100) -> PoolJob:
    return PoolJob(number, submit_s, run_s, cores, 0, pool, 1)


@pytest.mark.parametrize(("ran_s", "pool"), [(199, "B"), (200, "A"), (201, "A")])
def test_equal_estimates_are_a_reason_to_stay(run, ran_s, pool):
    seen = run(ONE_CORE_EACH, *FIRST, PoolJob(1, 300, 900, 1, 0, "A"), urgent(2, 300 + ran_s))
    own, other = 200 + 900 - ran_s, 900
    assert decisions(seen)[1:] == [(300 + ran_s, 1, pool, [f"A {own}", f"B {other}"])]


@pytest.mark.parametrize(
    ("waits_s", "pool", "estimates"),
    [
        ([0, 0, 1], "B", ["A 2702/3", "B 2701/3"]),
        ([0, 0, 2], "A", ["A 2702/3", "B 2702/3"]),
        ([0, 1], "B", ["A 2702/3", "B 1801/2"]),
        ([0, 1, 1, 1], "A", ["A 2702/3", "B 3603/4"]),
        ([0, 0, 3], "A", ["A 2702/3", "B 901"]),
    ],
)
def test_estimates_are_compared_to_the_fraction_of_a_second(run, waits_s, pool, estimates):
    """Of three jobs that completed in A one was suspended for 200 s. In B jobs completed with these waits."""
    more = [PoolJob(80 + at, 230 + 10 * at, 5, 1, 0, "A") for at in range(2)]
    others = [PoolJob(70 + at, 20 * at - wait_s, 20, 1, 0, "B") for at, wait_s in enumerate(waits_s)]
    seen = run(ONE_CORE_EACH, *FIRST, *more, *others, PoolJob(1, 300, 900, 1, 0, "A"), urgent(2, 366))
    assert decisions(seen)[1:] == [(366, 1, pool, estimates)]


def test_of_equal_pools_the_first_in_list_order_is_taken(run):
    nodes = [PoolNode(name, 1, 8, name.upper()) for name in "acb"]
    seen = run(nodes, *FIRST, PoolJob(1, 300, 900, 1, 0, "A"), urgent(2, 310))
    assert decisions(seen)[1:] == [(310, 1, "C", ["A 1090", "C 900", "B 900"])]


def test_a_move_ends_the_suspension_at_once_wastes_the_attempt_and_keeps_priority_and_submit_time(run):
    seen = run(ONE_CORE_EACH, *FIRST, PoolJob(1, 300, 900, 1, 0, "A"), urgent(2, 350), urgent(3, 400, "B"))
    assert visits(seen, 1)[0] == VisitSeen("A", 300, 300, "a", 0, 50)
    assert suspensions(seen)[1] == [(350, 350, "moved"), (400, 500, "resumed")]
    assert seen.jobs[1].end_s - 300 == 50 + 100 + 900


def test_a_job_that_moved_joins_the_end_of_the_queue(run):
    """Both wait in B for job 4 to end at 600; job 3 is submitted later and joins earlier."""
    quick = PoolJob(90, 250, 1, 1, 0, "B")  # a sample without waiting
    jobs = PoolJob(4, 260, 340, 1, 0, "B"), PoolJob(1, 300, 900, 1, 0, "A"), PoolJob(3, 310, 50, 1, 0, "B")
    seen = run(ONE_CORE_EACH, *FIRST, quick, *jobs, urgent(2, 320))
    assert decisions(seen)[1:] == [(320, 1, "B", ["A 1080", "B 900"])]
    assert (visits(seen, 3)[0].start_s, visits(seen, 1)[1].start_s) == (600, 650)


def test_a_job_that_moved_suspends_lower_priorities_there(run):
    """Job 1 of priority 1 moves from A to B, where job 3 of priority 0 runs."""
    first = PoolJob(91, 0, 20, 1, 0, "A", 1), PoolJob(92, 10, 200, 1, 0, "A", 2), PoolJob(90, 250, 1, 1, 0, "B", 1)
    jobs = PoolJob(1, 300, 900, 1, 0, "A", 1), PoolJob(3, 300, 900, 1, 0, "B"), PoolJob(2, 310, 90, 1, 0, "A", 2)
    seen = run(ONE_CORE_EACH, *first, *jobs)
    assert decisions(seen)[1:] == [(310, 1, "B", ["A 1090", "B 900"]), (310, 3, "B", ["B 890"])]
    assert suspensions(seen)[3] == [(310, 1210, "resumed")]


def test_a_job_is_decided_on_once_while_its_suspension_lasts(run):
    """The first sample comes at 320, while job 1 is suspended and B has room."""
    seen = run(ONE_CORE_EACH, PoolJob(1, 300, 900, 1, 0, "A"), PoolJob(3, 300, 20, 1, 0, "B"), urgent(2, 310))
    assert decisions(seen) == [(310, 1, "A", ["A 890"])]
    assert suspensions(seen) == {1: [(310, 410, "resumed")]}


def test_it_is_decided_on_again_when_it_is_suspended_again(run):
    jobs = PoolJob(1, 300, 900, 1, 0, "A"), urgent(2, 310), urgent(3, 450)
    seen = run([ONE_CORE_EACH[0]], *FIRST, *jobs)
    assert decisions(seen)[1:] == [(310, 1, "A", ["A 1090"]), (450, 1, "A", ["A 1050"])]


def test_a_job_that_resumes_at_the_moment_of_its_suspension_is_neither_decided_on_nor_counted(run):
    """At 10 jobs 3 and 4 take job 2's core and one of job 1's two cores: job 2 resumes on the other one.

    At 300 the average is over job 1 only, which was suspended for 50 s.
    """
    nodes = [PoolNode("a", 3, 8, "A"), PoolNode("b", 1, 8, "B")]
    jobs = (
        PoolJob(1, 0, 100, 2, 0, "A"),
        PoolJob(2, 5, 100, 1, 0, "A"),
        urgent(3, 10, run_s=50),
        urgent(4, 10, run_s=50),
    )
    later = PoolJob(5, 250, 910, 1, 0, "A"), urgent(6, 300, cores=3)
    seen = run(nodes, *jobs, *later, averages="suspended")
    assert decisions(seen) == [(10, 1, "A", ["A 90"]), (300, 5, "A", ["A 910", "B 910"])]
    assert 2 not in suspensions(seen)


def test_jobs_of_every_priority_but_the_highest_are_decided_on(run):
    first = PoolJob(91, 0, 20, 1, 0, "A", 1), PoolJob(92, 10, 200, 1, 0, "A", 2)
    jobs = PoolJob(1, 300, 900, 1, 0, "A", 1), PoolJob(2, 310, 90, 1, 0, "A", 2)
    seen = run(ONE_CORE_EACH, *first, *jobs)
    assert decisions(seen)[1:] == [(310, 1, "B", ["A 1090", "B 900"])]


def test_victims_are_decided_on_in_their_order_and_each_sees_the_moves_before_it(run):
    """Job 3, the latest, takes the only free core of B. For job 1 the means of the site count there: 200 s."""
    nodes = [PoolNode("a", 2, 8, "A"), PoolNode("b", 1, 8, "B")]
    first = PoolJob(91, 0, 20, 2, 0, "A"), urgent(92, 10, cores=2, run_s=200)
    jobs = PoolJob(1, 300, 900, 1, 0, "A"), PoolJob(3, 305, 800, 1, 0, "A"), urgent(2, 310, cores=2)
    seen = run(nodes, *first, *jobs)
    assert decisions(seen)[1:] == [(310, 3, "B", ["A 995", "B 800"]), (310, 1, "A", ["A 1090", "B 1100"])]
    assert visits(seen, 3)[1].start_s == 310


def test_memory_that_a_move_gives_back_lets_others_start_at_once(run):
    """Job 4 has a core at 310, when job 1 is suspended, and memory when job 1 has moved."""
    nodes = [PoolNode("a", 2, 8, "A"), PoolNode("b", 2, 8, "B")]
    first = PoolJob(91, 0, 20, 2, 0, "A"), urgent(92, 10, cores=2, run_s=200)
    jobs = PoolJob(1, 300, 900, 2, 6, "A"), PoolJob(4, 305, 50, 1, 4, "A"), urgent(2, 310)
    assert visits(run(nodes, *first, *jobs), 4)[0].start_s == 310
    assert visits(run(nodes, *first, *jobs, restart="off"), 4)[0].start_s == 410 + 890


# The limit of moves


@pytest.mark.parametrize(("max_moves", "pools"), [(0, "ABC"), (1, "AB"), (2, "ABC")])
def test_a_job_moves_as_often_as_max_moves_allows(run, max_moves, pools):
    """Nobody has completed in C, which has room."""
    nodes = [PoolNode(name, 1, 8, name.upper()) for name in "abc"]
    jobs = PoolJob(1, 300, 900, 1, 0, "A"), urgent(2, 310), urgent(3, 320, "B"), PoolJob(4, 300, 15, 1, 0, "C")
    seen = run(nodes, *FIRST, *jobs, max_moves=max_moves, averages="suspended")
    assert "".join(visit.pool for visit in visits(seen, 1)) == pools
    compared = ["B 1090"] if max_moves == 1 else ["B 1090", "A 1100", "C 900"]
    assert decisions(seen)[1:] == [
        (310, 1, "B", ["A 1090", "B 900", "C 1100"]),
        (320, 1, pools[-1], compared),
    ]


# One moment


def test_what_completes_at_the_moment_of_a_decision_counts(run):
    """Job 3 completes in B at 310: it is the only sample, and its core is free."""
    seen = run(ONE_CORE_EACH, PoolJob(3, 0, 310, 1, 0, "B"), PoolJob(1, 300, 900, 1, 0, "A"), urgent(2, 310))
    assert decisions(seen) == [(310, 1, "A", ["A 890", "B 900"])]
    late = run(ONE_CORE_EACH, PoolJob(3, 0, 311, 1, 0, "B"), PoolJob(1, 300, 900, 1, 0, "A"), urgent(2, 310))
    assert decisions(late) == [(310, 1, "A", ["A 890"])]


def test_decisions_come_after_all_pools_have_served(run):
    """Job 3 is submitted to B at 310, the later pool of the list: its core is taken when job 1 is decided on."""
    seen = run(ONE_CORE_EACH, *FIRST, PoolJob(1, 300, 900, 1, 0, "A"), urgent(2, 310), PoolJob(3, 310, 50, 1, 0, "B"))
    assert decisions(seen)[1:] == [(310, 1, "A", ["A 1090", "B 1100"])]
    assert visits(seen, 3)[0].start_s == 310


# Plans

NODE, ONE = Resources(1, 4096), Resources(1, 1024)
POOLS = JobPool("A", ("a",)), JobPool("B", ("b",))
RUNNING = ActiveJob(1, ActiveState.RUNNING, ("a",), ONE, 200, may_restart=True)
ACCOUNT = Account(
    Visit("A"), joined=1, since_s=200, place=1, attempt_s=200, expected_run_s=900, priority=0, is_running=True
)
URGENT = Job(2, 300, (Alternative(1, ONE),), pool="A", priority=1, expected_run_s=100)


def snapshot(*jobs: Job, active: ActiveJob = RUNNING, account: Account = ACCOUNT) -> Snapshot:
    """At 300. Job 1 runs in A since 200, where a job was suspended for 200 s; these jobs wait, and B is empty."""
    nodes = Node("a", NODE, NODE.minus(ONE)), Node("b", NODE, NODE)
    past = Sample(250, "A", 0, 0, 200, was_suspended=True)
    history = ReschedulingHistory({1: account}, (past,), joined=1)
    return Snapshot(nodes, jobs, now_s=300, active=(active,), pools=POOLS, history=history)


def test_a_plan_suspends_starts_moves_and_starts_in_this_order_and_says_why():
    plan = Rescheduling().plan(snapshot(URGENT))
    suspended, started, moved, restarted = plan.actions
    assert suspended == Suspend(1, "job 2 of priority 1 needs its node")
    assert started == Start(2, ("a",), Alternative(1, ONE))
    assert moved == Requeue(1, "B", "expected to complete in 900 s in B, not 1000 s in A")
    assert restarted == Start(1, ("b",), Alternative(1, ONE))


def test_a_job_that_may_not_restart_stays():
    plan = Rescheduling().plan(snapshot(URGENT, active=replace(RUNNING, may_restart=False)))
    assert [type(action) for action in plan.actions] == [Suspend, Start]
    (decision,) = plan.history.decisions
    assert [term.pool for term in decision.terms] == ["A"]
    assert plan.waiting[1].endswith("it stays: expected to complete in 1000 s in A")


def test_a_job_of_unknown_run_time_stays():
    plan = Rescheduling().plan(snapshot(URGENT, account=replace(ACCOUNT, expected_run_s=None)))
    assert [type(action) for action in plan.actions] == [Suspend, Start]
    assert not plan.history.decisions[0].moves


def test_a_job_that_has_run_longer_than_expected_has_nothing_left():
    (decision,) = Rescheduling().plan(snapshot(URGENT, account=replace(ACCOUNT, expected_run_s=90))).history.decisions
    assert [(term.pool, term.run_s) for term in decision.terms] == [("A", 0), ("B", 90)]


def test_a_queued_job_is_told_why_it_waits():
    plan = Rescheduling().plan(snapshot(replace(URGENT, priority=0)))
    assert plan.actions == ()
    assert plan.waiting == {
        2: "its pool has no room for it, and no jobs of lower priority that could make room on one node"
    }


def test_freed_memory_goes_to_storage_and_comes_back_on_the_same_node():
    policy = Rescheduling(ReschedulingParameters(restart="off", suspended_memory="freed"))
    first = policy.plan(snapshot(URGENT))
    assert [(type(action), action.job_id) for action in first.actions] == [(Suspend, 1), (Start, 2)]
    assert first.actions[0].to_storage
    stored = replace(RUNNING, state=ActiveState.SUSPENDED, since_s=300, in_storage=True)
    later = Snapshot((Node("b", NODE, NODE), Node("a", NODE, NODE)), (), now_s=400, active=(stored,), pools=POOLS)
    assert policy.plan(replace(later, history=first.history)).actions == (Resume(1, ("a",)),)


def test_a_running_job_that_the_history_does_not_name_is_left_alone():
    plan = Rescheduling().plan(replace(snapshot(URGENT), history=None))
    assert plan.actions == ()
    assert list(plan.waiting) == [2]
