"""Ties between members, the order of a job's alternatives, and how long capacity is withheld."""

from dataclasses import replace

import numpy as np
import pytest
from clusters import GB, node
from oracles.portfolio import plainly

from slurm_sns.model import Alternative, Job, Node, Resources, Snapshot
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.policies.placement.portfolio import Portfolio
from slurm_sns.policies.placement.rules import Rules
from slurm_sns.policies.placement.ties import BY_CHANCE, BY_RECORD, FIXED, WINDOW, remember, take_turns, tie_record
from slurm_sns.policies.placement.use import by_use, use

NODE = Resources(8, 16 * GB, 11, 100)
NODES = tuple(Node(name, NODE, NODE) for name in "abcd")
ARRAYS = NodeArrays.of(NODES)


def alternative(nodes=1, cores=1, ways=0, gbps=0, slowdown=1.0, *, exclusive=False) -> Alternative:
    return Alternative(nodes, Resources(cores, GB, ways, gbps), slowdown=slowdown, exclusive=exclusive)


def waiting(*jobs: tuple[Alternative, ...]) -> tuple[Job, ...]:
    return tuple(Job(at, at, each, order=(at,)) for at, each in enumerate(jobs, start=1))


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (alternative(cores=4), 4 / 32),
        (alternative(nodes=2, cores=1, ways=11), 22 / 44),
        (alternative(gbps=90, slowdown=2.0), 2 * 90 / 400),
        (alternative(nodes=3, exclusive=True, slowdown=0.5), 0.5 * 3 / 4),
    ],
)
def test_use_is_slowdown_times_the_largest_share_of_the_cluster(asked, expected):
    assert use(asked, ARRAYS) == pytest.approx(expected)


def test_a_resource_that_no_node_has_is_nobodys_share():
    without = NodeArrays.of([Node("a", NODE._replace(ways=0), NODE._replace(ways=0))])

    assert use(alternative(cores=2, ways=3), without) == pytest.approx(2 / 8)


def test_alternatives_of_equal_use_keep_their_order():
    assert by_use((alternative(cores=4), alternative(cores=2), alternative(cores=4)), ARRAYS) == [1, 0, 2]


# --- the order of alternatives

#: Fast on whole nodes, slower with half of the cores.
FAST, FRUGAL = alternative(cores=8, slowdown=0.75), alternative(cores=4)


@pytest.mark.parametrize("make", [Portfolio, plainly])
@pytest.mark.parametrize(
    ("order", "jobs", "cores", "best_first"),
    [
        ("paper", 5, [8] * 4, None),
        ("adaptive", 4, [8] * 4, None),
        ("adaptive", 5, [4] * 5, 4),
        ("adaptive", 9, [4] * 8, 4),
    ],
)
def test_alternatives_are_tried_by_use_unless_the_whole_queue_starts(order, jobs, cores, best_first, make):
    policy = Portfolio(Rules(("best-fit-memory", "idlest"), reservations=0, order=order, weighs=True))
    policy = policy if make is Portfolio else make(policy)

    plan = policy.plan(Snapshot(NODES, waiting(*[(FAST, FRUGAL)] * jobs)))

    assert [start.alternative.demand.cores for start in plan.starts] == cores
    assert plan.record.best_first == best_first


def test_a_queue_without_a_choice_is_gone_through_once():
    policy = Portfolio(Rules(("best-fit-memory",), reservations=0, order="adaptive"))

    plan = policy.plan(Snapshot(NODES, waiting(*[(FAST,)] * 5)))

    assert len(plan.starts) == 4
    assert plan.record.best_first is None


@pytest.mark.parametrize("make", [Portfolio, plainly])
def test_without_nodes_nothing_starts(make):
    """As while all nodes are drained."""
    policy = Portfolio(Rules(("idlest",), reservations=0, order="adaptive"))
    policy = policy if make is Portfolio else make(policy)

    plan = policy.plan(Snapshot((), waiting((replace(FAST, exclusive=True), FRUGAL))))

    assert plan.starts == ()
    assert list(plan.waiting) == [1]


def test_the_first_jobs_that_a_cycle_looks_at_are_the_whole_queue():
    policy = Portfolio(Rules(("best-fit-memory",), queue_depth=4, reservations=0, order="adaptive"))

    plan = policy.plan(Snapshot(NODES, waiting(*[(FAST, FRUGAL)] * 9)))

    assert [start.alternative.demand.cores for start in plan.starts] == [8] * 4


@pytest.mark.parametrize(
    ("jobs", "words"),
    [
        (
            [(FAST, FRUGAL)] * 9,
            "by slowdown times dominant share, the least first, because best first only 4 of the jobs",
        ),
        ([(FAST, FRUGAL)] * 4, "best first, because the whole queue starts so (alternatives_order: adaptive)."),
        ([(FAST,)] * 5, "best first, because no job that was looked at has them in another order"),
        ([(alternative(cores=9), alternative(cores=10))], "best first, because no job that was looked at can start"),
    ],
)
def test_explain_says_which_order_ruled_and_why(jobs, words):
    policy = Portfolio(Rules(("best-fit-memory",), reservations=0, order="adaptive"))
    snapshot = Snapshot(NODES, waiting(*jobs))

    told = policy.explain(snapshot, policy.plan(snapshot), 1).summary

    assert any(line.startswith(f"Alternatives were tried {words}") for line in told)


def test_explain_says_nothing_of_the_order_where_it_is_the_papers():
    policy = Portfolio(Rules(("best-fit-memory",)))
    snapshot = Snapshot(NODES, waiting((FAST, FRUGAL)))

    assert not any("Alternatives" in line for line in policy.explain(snapshot, policy.plan(snapshot), 1).summary)


# --- ties


def chosen(ties: str, own_scorer: str | None = "mix-fit") -> str:
    policy = Portfolio(Rules(("first-fit", "best-fit-cores", "mix-fit"), ties=ties, own_scorer=own_scorer))
    return policy.plan(Snapshot((node("a"), node("b")), waiting((alternative(),)))).report.chosen


def test_the_list_or_the_policys_own_scorer_decides_a_tie():
    assert chosen("list") == "first-fit"
    assert chosen("own") == "mix-fit"
    assert chosen("own", None) == "first-fit"


def turns(ties: int, record, members: int = 3) -> list[int]:
    turn = np.zeros(members, np.int64)
    take_turns(ties, np.arange(members), record, turn)
    return turn.tolist()


def test_the_member_that_was_best_most_often_goes_first():
    record = tie_record(3)
    for best in (0b100, 0b110, 0b001):
        remember(record, best)

    assert turns(BY_RECORD, record) == [2, 0, 1]
    assert turns(FIXED, record) == [0, 1, 2]


def test_what_lies_behind_the_window_is_forgotten():
    record = tie_record(2)
    for best in (*[0b10] * 5, *[0b01] * (WINDOW - 2)):
        remember(record, best)

    assert record.times.tolist() == [WINDOW - 2, 2]


def test_by_chance_every_member_has_each_turn_about_equally_often():
    record = tie_record(3)

    first = [turns(BY_CHANCE, record)[0] for _ in range(3000)]

    assert min(first.count(member) for member in range(3)) > 900


@pytest.mark.parametrize("ties", ["record", "random"])
def test_kernel_and_twin_take_the_same_turns_from_pass_to_pass(ties):
    rules = Rules(("first-fit", "best-fit-cores", "worse-fit-memory", "idlest"), ties=ties, weighs=True)
    ours, theirs = Portfolio(rules), plainly(Portfolio(rules))
    draw = np.random.default_rng(3)
    for _ in range(40):
        free = [NODE._replace(cores=int(draw.integers(0, 9)), memory_mb=int(draw.integers(1, 17)) * GB) for _ in NODES]
        nodes = tuple(replace(each, free=left) for each, left in zip(NODES, free, strict=True))
        jobs = [(alternative(cores=int(draw.integers(1, 9))), alternative(cores=2, slowdown=1.5)) for _ in range(6)]
        plans = [policy.plan(Snapshot(nodes, waiting(*jobs))) for policy in (ours, theirs)]
        assert plans[0] == plans[1]


# --- withholding


@pytest.mark.parametrize("make", [Portfolio, plainly])
@pytest.mark.parametrize(("limit_s", "now_s", "starts"), [(None, 900, []), (60, 61, []), (60, 62, [2])])
def test_capacity_is_withheld_up_to_the_limit(limit_s, now_s, starts, make):
    policy = Portfolio(Rules(("best-fit-memory",), reservations=1, withhold_up_to_s=limit_s))
    policy = policy if make is Portfolio else make(policy)
    half = Node("a", NODE, NODE._replace(cores=4))

    plan = policy.plan(Snapshot((half,), waiting((alternative(cores=8),), (alternative(),)), now_s=now_s))

    assert [start.job_id for start in plan.starts] == starts
