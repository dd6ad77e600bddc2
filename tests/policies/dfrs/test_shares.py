"""The policy of partitions whose jobs share cores, and its part in a plan for a whole site."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from slurm_sns.model import (
    ActiveJob,
    ActiveState,
    Alternative,
    Job,
    JobPool,
    Node,
    Requeue,
    Resources,
    Snapshot,
    Start,
)
from slurm_sns.policies.by_partition import ByPartition
from slurm_sns.policies.dfrs.shares import CoreSharing, lost_s
from slurm_sns.policies.matching.max_jobs import max_jobs

CORES, MEMORY_MB, NOW = 4, 8000, 10_000
MOST = 2


def waiting(number, cores=1, memory_mb=1000, *, nodes=1, **fields):
    return Job(number, NOW - 100, (Alternative(nodes, Resources(cores, memory_mb)),), pool="shared", **fields)


def active(number, *nodes, cores=1, memory_mb=1000, **fields):
    told = {"since_s": NOW - 1000, "submit_s": NOW - 2000, "pool": "shared", "virtual_s": 500, **fields}
    return ActiveJob(number, ActiveState.RUNNING, nodes, Resources(cores, memory_mb), **told)


def snapshot(*jobs, names=("f1", "f2"), completing=()):
    """What is free follows from the active jobs, as the live scheduler counts it."""
    there = [job for job in jobs if isinstance(job, ActiveJob)]
    nodes = []
    for name in names:
        cores, memory_mb = (
            sum(getattr(job.demand, what) for job in there if name in job.nodes) for what in ("cores", "memory_mb")
        )
        free = Resources(min(CORES, MOST * CORES - cores), MEMORY_MB - memory_mb)
        nodes.append(Node(name, Resources(CORES, MEMORY_MB), Resources(0, 0) if name in completing else free))
    queue = tuple(job for job in jobs if isinstance(job, Job))
    shared = {"active": tuple(there), "pools": (JobPool("shared", tuple(names)),), "completing": completing}
    return Snapshot(tuple(nodes), queue, now_s=NOW, **shared)


def started(plan):
    return {each.job_id: each.nodes for each in plan.starts}


def paused(plan):
    return [each.job_id for each in plan.actions if isinstance(each, Requeue)]


def test_parts_go_to_the_nodes_with_the_lowest_load():
    busy = active(1, "f1", cores=2)
    assert started(CoreSharing().plan(snapshot(busy, waiting(5), waiting(6, cores=4)))) == {5: ("f2",), 6: ("f2",)}
    assert started(CoreSharing().plan(snapshot(busy, waiting(5, nodes=2)))) == {5: ("f1", "f2")}
    assert started(CoreSharing().plan(snapshot(busy, waiting(5, allowed=frozenset({"f1"}))))) == {5: ("f1",)}


def test_no_more_jobs_to_a_core_and_never_more_memory():
    full = [active(number, f"f{number}", cores=4) for number in (1, 2)]
    two = CoreSharing().plan(snapshot(*full, waiting(5, cores=4), waiting(6, cores=4), waiting(7)))
    assert started(two) == {5: ("f1",), 6: ("f2",)}
    assert two.waiting[7] == "no node has 1 core for it with 2 jobs to a core"
    large = CoreSharing().plan(snapshot(*full, waiting(5, memory_mb=7001)))
    assert (large.actions, large.waiting[5], large.waiting[5].about) == ((), "f1 lacks 1 MiB", "memory")
    assert CoreSharing().plan(snapshot(waiting(5, cores=5))).waiting[5].kind == "too large"


def test_a_job_lies_in_one_row_of_cores():
    """Three, three and two are eight cores of twice four, but no row has two."""
    three = [active(number, "f1", cores=3) for number in (1, 2)]
    only_f1 = {"allowed": frozenset({"f1"})}
    assert started(CoreSharing().plan(snapshot(*three, waiting(5, cores=2, **only_f1), waiting(6, **only_f1)))) == {
        6: ("f1",)
    }
    two = [active(number, "f1", cores=2) for number in (1, 2, 3)]
    assert started(CoreSharing().plan(snapshot(*two, waiting(5, cores=2, **only_f1)))) == {5: ("f1",)}


def test_an_over_aged_job_keeps_its_nodes():
    jobs = [active(1, "f1", memory_mb=5000), waiting(5, memory_mb=8000, over_aged=True, allowed=frozenset({"f1"}))]
    plan = CoreSharing().plan(snapshot(*jobs, waiting(6), waiting(7, allowed=frozenset({"f1"}))))
    assert started(plan) == {6: ("f2",)}
    assert "waited for too long" in plan.waiting[7]


def test_an_over_aged_job_keeps_nothing_where_it_could_not_start_or_may_not_withhold():
    jobs = [active(1, "f1", memory_mb=5000), waiting(5, memory_mb=8000, nodes=3, over_aged=True)]
    assert started(CoreSharing().plan(snapshot(*jobs, waiting(6)))) == {6: ("f2",)}
    jobs = [active(1, "f1", "f2", memory_mb=5000), waiting(5, memory_mb=8000, over_aged=True, withholds=False)]
    plan = CoreSharing().plan(snapshot(*jobs, waiting(6)))
    assert (started(plan), plan.report.withheld_for) == ({6: ("f1",)}, ())
    kept = CoreSharing().plan(snapshot(jobs[0], replace(jobs[1], withholds=True), waiting(6)))
    assert (started(kept), kept.report.withheld_for) == ({}, (5,))


def test_newcomers_come_before_paused_jobs_and_those_by_priority():
    jobs = [
        waiting(5, memory_mb=8000, virtual_s=900),
        waiting(6, memory_mb=8000, virtual_s=30),
        waiting(7, memory_mb=8000),
    ]
    assert started(CoreSharing().plan(snapshot(*jobs))) == {7: ("f1",), 6: ("f2",)}


class TestPauses:
    POLICY = CoreSharing(pauses=True)

    def test_a_newcomer_has_restartable_jobs_paused_and_waits_for_their_memory(self):
        jobs = [active(1, "f1", memory_mb=8000), active(2, "f2", memory_mb=8000, may_restart=True, checkpoint_s=600)]
        plan = self.POLICY.plan(snapshot(*jobs, waiting(5), waiting(6, allowed=frozenset({"f1"}))))
        assert (started(plan), paused(plan)) == ({}, [2])
        assert plan.waiting[5] == "job 2 is being paused for it"
        assert "lacks" in plan.waiting[6], "nobody there may be paused"

    def test_nobody_is_paused_for_a_job_that_was_paused_or_that_could_not_start_even_then(self):
        jobs = [active(1, "f1", memory_mb=8000, may_restart=True), active(2, "f2", memory_mb=8000, may_restart=True)]
        assert not paused(self.POLICY.plan(snapshot(*jobs, waiting(5, virtual_s=10))))
        assert not paused(self.POLICY.plan(snapshot(*jobs, waiting(5, memory_mb=8001))))

    def test_those_with_checkpoints_go_first_by_priority_then_by_the_least_loss(self):
        kept = active(1, "f1", "f2", memory_mb=2000)
        jobs = [
            active(2, "f1", memory_mb=3000, may_restart=True, since_s=NOW - 50),
            active(3, "f1", memory_mb=3000, may_restart=True, virtual_s=900, checkpoint_s=600),
            active(4, "f2", memory_mb=6000, may_restart=True, virtual_s=100, checkpoint_s=600),
        ]
        assert paused(self.POLICY.plan(snapshot(kept, *jobs, waiting(5, memory_mb=3000)))) == [3]
        assert paused(self.POLICY.plan(snapshot(kept, *jobs, waiting(5, memory_mb=5000)))) == [4], (
            "3 alone is too little"
        )
        assert (
            paused(self.POLICY.plan(snapshot(kept, jobs[0], waiting(5, memory_mb=3000, allowed=frozenset({"f1"})))))
            == []
        )
        without = [replace(job, checkpoint_s=None) for job in jobs]
        assert paused(self.POLICY.plan(snapshot(kept, *without, waiting(5, memory_mb=3000)))) == [2]
        assert [lost_s(job, NOW) for job in jobs] == [50, 600, 600]

    def test_while_a_job_leaves_nobody_else_is_paused_and_nobody_gets_its_place(self):
        other, newcomer = active(2, "f2", memory_mb=8000, may_restart=True), waiting(5, memory_mb=8000)
        plan = self.POLICY.plan(snapshot(other, newcomer, completing=("f1",)))
        assert (plan.actions, plan.waiting[5]) == ((), "waits until a job has left its nodes")
        both = self.POLICY.plan(snapshot(replace(other, may_restart=False), newcomer, waiting(6), completing=("f1",)))
        assert not both.actions


def test_a_partition_without_nodes_says_why_its_jobs_wait():
    site = replace(snapshot(waiting(5), names=()), pools=(JobPool("shared", ("f1",)),))
    plan = ByPartition(max_jobs(), CoreSharing(), frozenset({"shared"})).plan(site)
    assert set(plan.waiting) == {5}


def test_each_part_of_a_site_has_its_planner():
    site = snapshot(active(1, "f1", cores=4), waiting(5, cores=4), names=("f1",))
    whole = Node("c1", Resources(8, 8000), Resources(8, 8000))
    site = replace(
        site,
        nodes=(whole, *site.nodes),
        waiting=(*site.waiting, replace(waiting(6, cores=8), pool="main"), replace(waiting(7, cores=8), pool="main")),
        pools=(JobPool("main", ("c1",)), *site.pools),
    )
    plan = ByPartition(max_jobs(), CoreSharing(), frozenset({"shared"})).plan(site)
    assert started(plan) == {5: ("f1",), 6: ("c1",)}
    assert set(plan.waiting) == {7}


small = st.integers(1, CORES)
memory = st.sampled_from([500, 1000, 3000, 5000, 8000])
places = st.sets(st.sampled_from(["f1", "f2", "f3"]), min_size=1).map(sorted)


NAMES = ("f1", "f2", "f3")


@st.composite
def snapshots(draw):
    """Any jobs that Slurm may have started on three nodes, and any that wait."""
    there, cores, used = [], dict.fromkeys(NAMES, 0), dict.fromkeys(NAMES, 0)
    run = st.tuples(places, small, memory, st.booleans(), st.integers(0, 900), st.sampled_from([None, 60]))
    for on, need, mb, may, virtual_s, checkpoint_s in draw(st.lists(run, max_size=8)):
        if all(cores[name] + need <= MOST * CORES and used[name] + mb <= MEMORY_MB for name in on):
            for name in on:
                cores[name] += need
                used[name] += mb
            told = {"may_restart": may, "virtual_s": virtual_s, "checkpoint_s": checkpoint_s}
            there.append(active(len(there) + 1, *on, cores=need, memory_mb=mb, **told))
    asked = st.tuples(small, memory, st.integers(1, 3), st.sampled_from([0, 0, 50]), st.booleans())
    jobs = [
        waiting(100 + at, need, mb, nodes=nodes, virtual_s=virtual_s, over_aged=aged)
        for at, (need, mb, nodes, virtual_s, aged) in enumerate(draw(st.lists(asked, max_size=6)))
    ]
    return snapshot(*there, *jobs, names=NAMES, completing=draw(st.sampled_from([(), ("f2",)])))


def lie_in_rows(cores, rows):
    """Whether these jobs find rows with room for each, in any order."""
    if not cores:
        return True
    first, *others = cores
    less = [[*rows[:at], room - first, *rows[at + 1 :]] for at, room in enumerate(rows) if room >= first]
    return any(lie_in_rows(others, each) for each in less)


@given(snapshots(), st.booleans())
def test_no_plan_overcommits_a_node_loses_a_job_or_pauses_one_that_may_not_be(of, pauses):
    plan = CoreSharing(pauses=pauses).plan(of)
    starts = {each.job_id: each for each in plan.actions if isinstance(each, Start)}
    assert starts.keys() | plan.waiting.keys() == {job.id for job in of.waiting}
    assert not starts.keys() & plan.waiting.keys()
    for node in of.nodes:
        there = [(job.demand, job.id) for job in of.active if node.name in job.nodes]
        there += [(each.alternative.demand, each.job_id) for each in starts.values() if node.name in each.nodes]
        assert sum(demand.cores for demand, _ in there) <= MOST * CORES
        assert sum(demand.memory_mb for demand, _ in there) <= MEMORY_MB
        if any(number in starts for _, number in there):
            assert lie_in_rows([demand.cores for demand, _ in there], [CORES] * MOST)
    assert not any("f2" in each.nodes for each in starts.values()) or not of.completing
    may = {job.id for job in of.active if job.may_restart}
    assert set(paused(plan)) <= (may if pauses else set())
    assert plan == CoreSharing(pauses=pauses).plan(of)
