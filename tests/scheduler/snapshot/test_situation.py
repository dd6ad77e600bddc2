"""From an observation of Slurm to the jobs that can be planned, and the capacity that is taken."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live import (
    ENFORCE,
    FOREIGN,
    HELD,
    NOW,
    SHARING,
    SUBMIT,
    comment,
    free,
    job,
    look,
    node,
    pinned,
    planned,
    running,
    sent,
    situation,
    tasks,
    tried,
)

from slurm_sns.model import NOTHING, Resources
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.scheduler.gate.job_status import Status
from slurm_sns.scheduler.gate.survey import survey
from slurm_sns.scheduler.observation import ObservedPartition, ObservedReservation
from slurm_sns.scheduler.snapshot.situation import read_situation

# --- free capacity


def test_what_slurm_has_allocated_is_not_free() -> None:
    seen = situation(look(running(1, "c1"), nodes=[node("c1", taken=(3, 3000)), node("c2")]))
    assert free(seen) == {"c1": (25, 125_000), "c2": (28, 128_000)}


def test_a_suspended_job_holds_its_memory_when_slurm_says_so() -> None:
    seen = situation(look(running(1, "c1"), nodes=[node("c1", taken=(0, 3000))]))
    assert free(seen) == {"c1": (28, 125_000)}


def test_a_placed_job_is_taken_before_slurm_starts_it() -> None:
    placed = pinned(1, "c1", tasks=3, nodes_max=None, tasks_per_node=3)
    assert free(situation(look(placed))) == {"c1": (25, 125_000), "c2": (28, 128_000)}


def test_a_placed_job_of_whole_nodes_leaves_nothing_free_there() -> None:
    placed = pinned(1, "c1", tasks=2, nodes_max=None, tasks_per_node=2, is_alone=True)
    assert free(situation(look(placed))) == {"c1": (0, 0), "c2": (28, 128_000)}


def test_an_overdue_job_still_counts_as_taken_because_it_may_start_before_it_is_unpinned() -> None:
    seen = situation(look(pinned(1, "c1", noted={"placed_s": 0})))
    assert free(seen)["c1"] == (27, 127_000)
    assert planned(seen) == []


def test_a_job_that_is_split_by_slurm_counts_with_the_most_that_it_may_take_on_each_node() -> None:
    placed = pinned(1, "c1", "c2", tasks=16, nodes_min=2, nodes_max=2)
    assert free(situation(look(placed))) == {"c1": (13, 113_000), "c2": (13, 113_000)}


@pytest.mark.parametrize(
    "waiting",
    [pinned(1, "c1", **HELD), pinned(1, "c1", restarts=1), job(1, begin_s=SUBMIT), pinned(1, "c9")],
    ids=["held by its owner", "requeued", "opened by its owner", "on a node that is gone"],
)
def test_a_job_that_slurm_is_not_about_to_start_takes_nothing(waiting) -> None:
    assert free(situation(look(waiting))) == {"c1": (28, 128_000), "c2": (28, 128_000)}


def test_running_jobs_without_profile_are_taken_to_draw_bandwidth() -> None:
    profiled = replace(running(1, "c1"), cpus=8, bandwidth_gbps=40)
    both = node("c1", taken=(12, 3000))
    both = replace(
        both, capacity=both.capacity._replace(bandwidth_gbps=118), allocated=both.allocated._replace(bandwidth_gbps=40)
    )
    seen = read_situation(
        look(profiled, running(2, "c1"), nodes=[both]), {}, replace(ENFORCE, unmanaged_gbps_per_core=1.5), NOW
    )
    assert seen.snapshot.nodes[0].free.bandwidth_gbps == 118 - 40 - 6


def test_a_node_that_cannot_be_used_is_left_out_with_its_reason() -> None:
    seen = situation(look(job(1), nodes=[node("c1", unavailable="drain: disk"), node("c2")]))
    assert list(free(seen)) == ["c2"]
    assert seen.snapshot.unavailable == {"c1": "drain: disk"}
    assert planned(seen) == [1]


@pytest.mark.parametrize("since_s", [0, 1, 99])
def test_no_job_is_placed_on_a_node_on_which_a_job_is_completing(since_s) -> None:
    ending = replace(running(8, "c1"), is_completing=True, end_s=int(NOW - since_s))
    waiting = [job(number) for number in (1, 2)]
    plan = max_jobs(MatchingParameters()).plan(situation(look(ending, *waiting)).snapshot)
    assert [start.nodes for start in plan.starts] == [("c2",), ("c2",)]


def test_the_capacity_of_a_node_on_which_a_job_is_completing_is_coming() -> None:
    ending = replace(running(8, "c1"), is_completing=True, end_s=int(NOW))
    seen = situation(look(ending, nodes=[node("c1"), node("c2", unavailable="down")]))
    assert seen.snapshot.unavailable == {"c2": "down"}
    assert free(seen) == {"c1": (0, 0)}
    assert seen.snapshot.nodes[0].capacity.cores == 28


def test_a_job_of_two_nodes_keeps_the_free_one_while_a_job_is_completing_on_the_other() -> None:
    ending = replace(running(8, "c1"), is_completing=True, end_s=int(NOW))
    both = job(1, tasks=56, cpus=56, nodes_min=2, nodes_max=2)
    plan = max_jobs(MatchingParameters()).plan(situation(look(ending, both, tasks(2, 28))).snapshot)
    assert plan.starts == ()
    assert plan.report.withheld_for == (1,)


# --- which jobs may use which nodes


def reservation(start_s: float, end_s: float, *nodes: str) -> ObservedReservation:
    return ObservedReservation("maintenance", frozenset(nodes), int(start_s), int(end_s))


@pytest.mark.parametrize(
    ("walltime_s", "start_s", "end_s", "usable"),
    [
        (3600, NOW + 3599, NOW + 9999, {"c2"}),
        (3600, NOW + 3600, NOW + 9999, {"c1", "c2"}),
        (3600, NOW - 100, NOW + 1, {"c2"}),
        (3600, NOW - 100, NOW, {"c1", "c2"}),
        (None, NOW + 10**8, NOW + 10**9, {"c2"}),
    ],
    ids=["begins before the end", "begins after the end", "has begun", "is over", "no time limit"],
)
def test_nodes_reserved_before_the_job_would_end_are_not_for_it(walltime_s, start_s, end_s, usable) -> None:
    seen = situation(look(job(1, walltime_s=walltime_s), reservations=(reservation(start_s, end_s, "c1"),)))
    assert seen.snapshot.waiting[0].allowed == usable


def test_reservations_add_up() -> None:
    both = (reservation(0, NOW + 9, "c1"), reservation(NOW + 5, NOW + 9, "c2"))
    long, short = job(1), job(2, walltime_s=4)
    seen = situation(look(long, short, reservations=both))
    assert [each.allowed for each in seen.snapshot.waiting] == [frozenset(), {"c2"}]


MIXED = (node("c1"), node("c2"), node("s1", 4, 32_768), node("s2", 4, 32_768))


def test_a_job_may_use_the_nodes_of_its_partition_only() -> None:
    seen = situation(look(job(1), job(2, partitions=("small",)), nodes=MIXED))
    assert [each.allowed for each in seen.snapshot.waiting] == [{"c1", "c2"}, {"s1", "s2"}]


def test_a_job_of_one_node_may_use_any_node_of_its_partitions() -> None:
    seen = situation(look(tasks(1, 4, partitions=("main", "small")), nodes=MIXED))
    assert seen.snapshot.waiting[0].allowed == {"c1", "c2", "s1", "s2"}


def test_a_job_of_several_nodes_is_planned_in_one_of_its_partitions_because_slurm_runs_it_in_one() -> None:
    two = job(1, "fixed", tasks=2, nodes_min=2, nodes_max=2, partitions=("small", "main"))
    large = replace(two, id=2, tasks=40, nodes_min=2, nodes_max=2)
    seen = situation(look(two, large, nodes=MIXED))
    assert [each.allowed for each in seen.snapshot.waiting] == [{"s1", "s2"}, {"c1", "c2"}]


# --- queue order


def test_an_over_aged_job_comes_first_and_the_oldest_of_them_before_all() -> None:
    old = NOW - 21_601
    jobs = [job(1, submit_s=int(NOW)), job(2, submit_s=int(old)), job(3, submit_s=int(old) - 5, nice=100)]
    seen = situation(look(*jobs))
    assert planned(seen) == [3, 2, 1]
    assert [each.over_aged for each in seen.snapshot.waiting] == [True, True, False]


def test_age_counts_from_when_the_job_could_begin() -> None:
    delayed = job(1, submit_s=5, admin_comment=comment(begin_s=int(NOW) - 60))
    assert not situation(look(delayed)).snapshot.waiting[0].over_aged


def test_nobody_is_over_aged_without_an_age_limit() -> None:
    seen = situation(look(job(1, submit_s=0)), settings=replace(ENFORCE, age_limit_s=None))
    assert not seen.snapshot.waiting[0].over_aged


TIERS = (ObservedPartition("main", tier=1), ObservedPartition("urgent", tier=2))


def test_the_queue_goes_by_tier_then_qos_then_nice_then_submit_time() -> None:
    jobs = [
        job(1),
        job(2, submit_s=SUBMIT - 1),
        job(3, nice=-1),
        job(4, nice=5, qos="high"),
        job(5, nice=9, partitions=("urgent",)),
    ]
    nodes = [node("c1", partitions=frozenset({"main", "urgent"}))]
    seen = situation(look(*jobs, nodes=nodes, partitions=TIERS, qos_priorities=(("high", 10), ("normal", 0))))
    assert planned(seen) == [5, 4, 3, 2, 1]


def test_a_job_of_several_partitions_has_the_best_of_their_tiers() -> None:
    jobs = [job(1), job(2, partitions=("main", "urgent"))]
    assert planned(situation(look(*jobs, partitions=TIERS))) == [2, 1]


BY_SLURM = replace(ENFORCE, queue_order="slurm")


def test_by_slurms_priorities_the_queue_is_slurms_own() -> None:
    """As sort_job_queue2 of slurmctld: partition tier, priority, submit time, id; no fair share of ours on top."""
    jobs = [
        job(1, priority=10),
        job(2, priority=90, account="chemistry"),
        job(3, priority=50, nice=-1000, qos="high"),
        job(4, priority=10, submit_s=SUBMIT - 1),
        job(5, priority=1, partitions=("urgent",)),
        job(6, priority=90),
    ]
    nodes = [node("c1", partitions=frozenset({"main", "urgent"}))]
    seen = look(*jobs, nodes=nodes, partitions=TIERS, qos_priorities=(("high", 10),), shares=(("chemistry", 0.001),))
    assert planned(situation(seen, settings=BY_SLURM)) == [5, 2, 6, 3, 4, 1]
    assert {each.project for each in situation(seen, settings=BY_SLURM).snapshot.waiting} == {""}


@pytest.mark.parametrize(
    ("queue_order", "has_priorities", "first"),
    [("slurm", False, 2), ("fair-now", True, 1), (None, True, 2), (None, False, 1)],
)
def test_the_order_is_slurms_where_it_is_set_or_slurm_computes_priorities(queue_order, has_priorities, first) -> None:
    settings = replace(ENFORCE, queue_order=queue_order)
    seen = look(job(1, priority=5), job(2, priority=6), has_priorities=has_priorities)
    assert planned(situation(seen, settings=settings))[0] == first


def test_by_slurms_priorities_only_the_first_job_is_over_aged_so_that_none_goes_before_another() -> None:
    """Whole nodes or capacity are kept for it alone."""
    old = {"submit_s": int(NOW) - ENFORCE.age_limit_s - 1}
    aged = situation(look(job(1, priority=9, **old), job(2, priority=8, **old), job(3)), settings=BY_SLURM)
    assert [(each.id, each.over_aged) for each in aged.snapshot.waiting] == [(3, False), (1, False), (2, False)]
    jobs = [job(1, priority=2000, **old), job(2, priority=8, **old), job(3)]
    aged = situation(look(*jobs), settings=BY_SLURM)
    assert [(each.id, each.over_aged) for each in aged.snapshot.waiting] == [(1, True), (3, False), (2, False)]


def test_tasks_of_an_array_have_its_priority_and_their_own_order() -> None:
    array = job(7, priority=50, array_id=7, array_tasks="3-5")
    seen = situation(look(array, job(9, priority=60), job(10, priority=40)), settings=BY_SLURM)
    assert [seen.job(each).label for each in planned(seen)] == ["9", "7_3", "7_4", "7_5", "10"]


def test_a_hint_for_a_heuristic_reaches_the_planner() -> None:
    seen = situation(look(job(1, "heuristic=mix-fit")))
    assert seen.snapshot.waiting[0].heuristic == "mix-fit"


# --- shares


def test_a_project_uses_what_its_running_and_placed_jobs_hold() -> None:
    holds = Resources(4, 4000)
    jobs = [
        running(1, "c1", occupies=holds),
        pinned(2, "c1", occupies=holds),
        running(3, "c1", occupies=holds, account="chemistry", **FOREIGN),
        job(4, occupies=holds),
    ]
    projects = situation(look(*jobs)).snapshot.projects
    assert {name: each.used for name, each in projects.items()} == {
        "physics": Resources(8, 8000),
        "chemistry": Resources(4, 4000),
    }


def test_shares_come_from_the_settings_or_else_from_slurm() -> None:
    told = replace(ENFORCE, shares={"physics": 3.0})
    seen = look(job(1), shares=(("physics", 7.0), ("biology", 2.0)))
    assert {name: each.share for name, each in situation(seen, settings=told).snapshot.projects.items()} == {
        "physics": 3.0
    }
    assert {name: each.share for name, each in situation(seen).snapshot.projects.items()} == {
        "physics": 7.0,
        "biology": 2.0,
    }


# --- jobs that cannot be planned now


@pytest.mark.parametrize(
    ("never", "why"),
    [
        (job(1, partitions=("small",)), "no node in partition small"),
        (job(1, partitions=("main", "plain")), "partition plain is not managed"),
        (
            job(1, "fixed", nodes_min=1, nodes_max=3),
            "asks for 1 to 3 nodes: how many it gets is Slurm's choice",
        ),
    ],
)
def test_a_gated_job_that_cannot_be_managed_after_all_is_given_to_slurm_with_the_reason(never, why) -> None:
    seen = situation(look(never))
    assert (planned(seen), seen.blocked) == ([], {1: why})
    assert [(order.kind, told) for order, told in seen.follow_ups] == [("free", f"left to Slurm: {why}")]


@pytest.mark.parametrize(("partitions", "is_freed"), [(("main", "small"), True), (("main", "urgent"), False)])
def test_a_job_whose_owner_adds_a_partition_to_one_that_shares_cores_is_slurms(partitions, is_freed: bool) -> None:
    seen = situation(look(job(1, partitions=partitions)), settings=replace(ENFORCE, sharing=SHARING))
    assert [order.kind for order, _ in seen.follow_ups] == (["free"] if is_freed else [])
    assert (seen.blocked.get(1, "").startswith("it names a partition whose jobs share cores")) is is_freed


def test_a_placed_job_takes_no_more_than_its_nodes_have_whatever_its_owner_wrote_since() -> None:
    huge = pinned(1, "c1", memory_per_cpu_mb=2**40, cpus_per_task=65_000, tasks=2**31, ways=2**24)
    seen = situation(look(huge, pinned(2, "c1", memory_per_cpu_mb=2**40)))
    assert free(seen) == {"c1": (-1, -128_000), "c2": (28, 128_000)}


def test_a_job_that_gets_all_memory_of_nodes_that_differ_in_it_is_slurms_choice() -> None:
    """With --mem=0, also if the owner sets it later, the memory of a job depends on the nodes that Slurm takes."""
    unlike = (node("c1"), node("c2", memory_mb=64_000))
    whole = job(1, memory_per_cpu_mb=None)
    assert planned(situation(look(whole))) == [1]
    ((order, told),) = situation(look(whole, nodes=unlike)).follow_ups
    why = (
        "it gets all the memory of its nodes, and the nodes of its partitions differ in memory: Slurm must choose them"
    )
    assert (order.kind, told.startswith(f"left to Slurm: {why}")) == ("free", True)


@pytest.mark.parametrize(
    ("runs", "how"),
    [
        (running(1, "c1", "c2"), ""),
        (running(1, "c1", "c2", allocated=("c2", "c1")), ""),
        (running(1, "c1", "c2", allocated=("c1",)), "runs on c1, planned on c1,c2"),
        (running(1, "c1", "c2", allocated=("c1", "c3")), "runs on c1,c3, planned on c1,c2"),
        (running(1, "c1", allocated=("c2",), is_completing=True), ""),
        (running(1, "c1", pinned_to=("c2",), allocated=("c2",)), ""),  # its owner's nodes
        (running(1, "c1", allocated=("c2",), **FOREIGN), ""),
    ],
)
def test_a_running_job_is_compared_with_its_placement(runs, how: str) -> None:
    assert situation(look(runs)).differences == ({1: how} if how else {})


# --- properties


@st.composite
def clusters(draw):
    """A few nodes and jobs in every status, with capacity that Slurm has not overcommitted, and some tries."""
    names = ["c1", "c2", "c3"]
    nodes = [node(name, 4, 8000, taken=(draw(st.integers(0, 4)), draw(st.integers(0, 8)) * 1000)) for name in names]
    jobs, known = [], {}
    for identity in range(1, draw(st.integers(1, 12)) + 1):
        kind = draw(st.sampled_from(["gated", "placed", "overdue", "requeued", "running", "lapsed", "array", "slurms"]))
        where = tuple(draw(st.sets(st.sampled_from(names), min_size=1, max_size=2)))
        fields = {"tasks": draw(st.integers(1, 6)), "nodes_max": None, **draw(st.sampled_from([{}, HELD]))}
        if kind in ("placed", "overdue", "requeued"):
            noted = {"placed_s": 0} if kind == "overdue" else None
            jobs.append(pinned(identity, *where, noted=noted, **{**fields, "restarts": int(kind == "requeued")}))
        elif kind == "running":
            jobs.append(running(identity, *where, **fields))
        elif kind == "array":
            jobs.append(
                job(identity, array_id=identity, array_tasks="0-9", array_limit=draw(st.integers(0, 3)), **fields)
            )
        else:
            more = {"lapsed": {"begin_s": 0}, "slurms": {"begin_s": SUBMIT}, "gated": {}}[kind]
            jobs.append(job(identity, **fields, **more))
        if draw(st.booleans()):
            limit = draw(st.sampled_from(["", "AssocGrpCpuLimit"]))
            known[identity] = tried(identity, failures=draw(st.integers(1, 9)), limited_by=limit)
    return look(*jobs, nodes=nodes), known


@settings(max_examples=60)
@given(clusters())
def test_no_node_is_planned_over_what_slurm_and_placed_jobs_leave(case) -> None:
    observation, known = case
    seen = read_situation(observation, known, ENFORCE, NOW)
    plan = max_jobs(MatchingParameters()).plan(seen.snapshot)
    left = {each.name: each.free for each in seen.snapshot.nodes}
    for start in plan.starts:
        for name in start.nodes:
            left[name] = left[name].minus(start.alternative.demand)
            assert NOTHING.within(left[name])


@settings(max_examples=60)
@given(clusters())
def test_a_job_is_planned_or_blocked_or_taken_and_never_two_of_them(case) -> None:
    observation, known = case
    seen = read_situation(observation, known, ENFORCE, NOW)
    found = {each: {job_id for job_id, status in seen.statuses.items() if status is each} for each in Status}
    arrays = {each.array_id for each in seen.tasks.values()}
    waiting = {job_id for job_id in planned(seen) if job_id not in seen.tasks} | arrays
    groups = [waiting, set(seen.blocked), found[Status.PLACED] | found[Status.OVERDUE], found[Status.RUNNING]]
    assert sum(map(len, groups)) == len(set.union(*groups))
    assert found[Status.GATED] <= waiting | set(seen.blocked)
    assert waiting <= found[Status.GATED]


@pytest.mark.long
@settings(max_examples=60)
@given(clusters(), st.sampled_from(["enforce", "advise", "observe"]))
def test_what_each_job_is_and_what_to_send_needs_the_jobs_alone(case, mode) -> None:
    observation, known = case
    mode = replace(ENFORCE, mode=mode)
    seen, first = read_situation(observation, known, mode, NOW), survey(observation.jobs, known, mode, NOW)
    assert seen.surveyed == first
    assert seen.follow_ups[: len(first.follow_ups)] == first.follow_ups
    assert set(sent(seen).values()) <= {"regate", "free", "renew", "unboost"}
    assert first.blocked.items() <= seen.blocked.items()
    assert read_situation(observation, known, mode, NOW) == seen, "the same values give the same result"
