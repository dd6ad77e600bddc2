"""What holds for any site, jobs and parameters: capacity, completion, times, who waits, and that both engines agree.

What each job did is put together from its visits and suspensions alone, and is checked by the rules as they are
written, without the code of the policy.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pool_cases import EngineSeen, PoolCase, PoolJob, PoolNode, ReplaySeen, site_of, trace_of

from slurm_sns.policies.rescheduling.parameters import ReschedulingParameters, heuristics_of_pools
from slurm_sns.sim.replay.pool_replay import replay_pools

#: Cores and GB.
SIZES = ((1, 2), (2, 4), (2, 8), (3, 6), (4, 4))
LATEST = 100
FIRST_ID = 99  # numbers fall: a tie that is broken by number, not by place in the trace, is seen
MINUTE = 60

runs = settings(max_examples=40)


@st.composite
def cases(draw, *, units=(1, MINUTE, 300)) -> PoolCase:
    """Times are small multiples of the unit: many fall together. Every job is held by one of its pools at least.

    Next to no job of a random trace restarts. Here most jobs come in pairs, an urgent one soon after another one for
    the same node; some are followed by urgent ones from pool to pool; and in some pools the first jobs are suspended
    for long. Jobs then restart in 4 of 10 cases. Values drawn one by one are too much alike for that: hypothesis
    draws a seed.
    """
    seed, unit = draw(st.integers(0, 2**32 - 1)), draw(st.sampled_from(units))
    made = Made(Random(seed))
    made.first_jobs(draw(st.sampled_from([1, 1, 2, 0])))
    made.chases(draw(st.sampled_from([1, 2, 2, 0])))
    made.pairs(draw(st.sampled_from([12, 12, 11, 10, 1])))
    made.others(draw(st.sampled_from([0, 1, 4])))
    jobs = sorted(made.jobs, key=lambda job: job.submit_s)
    return PoolCase(
        made.nodes,
        [
            job._replace(id=FIRST_ID - at, submit_s=unit * job.submit_s, run_s=unit * job.run_s)
            for at, job in enumerate(jobs)
        ],
    )


class Made:
    """A random site, and jobs for it."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.pools = "ABCD"[: random.randint(2, 4)]
        homes = [*self.pools, *random.choices(self.pools, k=random.randint(0, 6))]
        random.shuffle(homes)
        self.nodes = [PoolNode(f"n{at}", *random.choice(SIZES), pool) for at, pool in enumerate(homes)]
        self.jobs: list[PoolJob] = []

    def first_jobs(self, pools: int) -> None:
        """In so many pools, a job for each node that is suspended for long."""
        for pool in self.random.sample(self.pools, pools):
            suspended_s = self.random.choice([5, 15, 30])
            cores = sorted((node.cores for node in self.nodes if node.pool == pool), reverse=True)
            self.jobs += [PoolJob(0, 0, 2, each, 0, pool) for each in cores]
            self.jobs += [PoolJob(0, 1, suspended_s, each, 0, pool, 1) for each in cores]

    def pairs(self, count: int) -> None:
        """So many jobs with an urgent one soon afterwards."""
        for _ in range(count):
            home, submit_s = self.random.choice(self.nodes), self.random.randint(5, LATEST)
            self._add(home, submit_s, 0)
            self._add(home, submit_s + self.random.randint(0, 4), self.random.choice([1, 1, 5]))

    def chases(self, count: int) -> None:
        """So many jobs with an urgent one soon afterwards in their pool, and then in each of the other ones."""
        for _ in range(count):
            home, submit_s = self.random.choice(self.nodes), self.random.randint(10, LATEST)
            self._add(home, submit_s, 0)
            others = self.random.sample(self.nodes, len(self.nodes))
            for node in [home, *others][: len(self.pools) + 1]:
                submit_s += self.random.randint(0, 3)
                self._add(node, submit_s, 1)

    def others(self, count: int) -> None:
        """So many jobs of any priority."""
        for _ in range(count):
            self._add(self.random.choice(self.nodes), self.random.randint(0, LATEST), self.random.choice([0, 0, 1, 5]))

    def _add(self, home: PoolNode, submit_s: int, priority: int) -> None:
        random = self.random
        allowed = self.pools if random.random() < 0.85 else random.sample(self.pools, random.randint(0, 2))
        job = PoolJob(
            0,
            submit_s,
            random.randint(1, 20),
            random.choice([home.cores, home.cores, random.randint(1, home.cores)]),
            random.choice([0, 1, home.gb // 2, random.randint(0, home.gb)]),
            home.pool if random.random() < 0.7 else "",
            priority,
            tuple(pool for pool in self.pools if pool in {home.pool, *allowed}),
        )
        self.jobs.append(job)


def parameters(**fixed) -> st.SearchStrategy[ReschedulingParameters]:
    drawn = {
        "window_s": st.sampled_from([100_000, 100_000, 100_000, 30_000, 6000, 300, 10]),
        "restart": st.sampled_from(["on", "on", "off"]),
        "suspended_memory": st.sampled_from(["kept", "freed"]),
        "averages": st.sampled_from(["all", "suspended"]),
        "max_moves": st.sampled_from([0, 0, 1, 2]),
        "heuristic": st.sampled_from(heuristics_of_pools()),
        "virtual_pool": st.sampled_from(["round-robin", "availability"]),
    }
    return st.builds(ReschedulingParameters, **drawn | {name: st.just(value) for name, value in fixed.items()})


@dataclass(frozen=True)
class Stretch:
    """What a job did in a visit, from one moment until before another one; `node` is empty while it is queued."""

    job: PoolJob
    visit: int
    state: str
    pool: str
    node: str
    from_s: int
    to_s: int


def stretches(case: PoolCase, run: EngineSeen | ReplaySeen) -> list[Stretch]:
    """What every job did, without the stretches of no length."""
    found = [stretch for job in case.jobs for stretch in life(job, run)]
    return [stretch for stretch in found if stretch.to_s > stretch.from_s]


def life(job: PoolJob, run: EngineSeen | ReplaySeen) -> Iterator[Stretch]:
    """What a job did, in this order."""
    seen = run.jobs[job.id]
    ends_s = [*(visit.joined_s for visit in seen.visits[1:]), seen.end_s]
    for number, (visit, end_s) in enumerate(zip(seen.visits, ends_s, strict=True)):
        place = (visit.pool, visit.node)
        yield Stretch(job, number, "queued", visit.pool, "", visit.joined_s, visit.start_s)
        at_s = visit.start_s
        for each in seen.suspensions:
            if each.visit == number + 1:
                yield Stretch(job, number, "running", *place, at_s, each.from_s)
                yield Stretch(job, number, "suspended", *place, each.from_s, each.to_s)
                at_s = each.to_s
        yield Stretch(job, number, "running", *place, at_s, end_s)


def instants(found: list[Stretch]) -> Iterator[list[Stretch]]:
    """What goes on after the events of each moment at which something happened."""
    for now_s in sorted({stretch.from_s for stretch in found} | {stretch.to_s for stretch in found}):
        yield [stretch for stretch in found if stretch.from_s <= now_s < stretch.to_s]


def free_on(node: PoolNode, at: list[Stretch], *, keeps_memory: bool) -> tuple[int, int]:
    """The cores and the GB that nobody holds."""
    here = [stretch for stretch in at if stretch.node == node.name]
    running = [stretch.job for stretch in here if stretch.state == "running"]
    holding = [stretch.job for stretch in here] if keeps_memory else running
    return node.cores - sum(job.cores for job in running), node.gb - sum(job.gb for job in holding)


def can_be_served(case: PoolCase, at: list[Stretch], waits: Stretch, *, keeps_memory: bool) -> bool:
    """Whether on one node there is room, or would be if all that run at lower priorities were suspended."""
    for node in case.nodes:
        if node.pool != waits.pool or waits.node not in {"", node.name}:
            continue
        cores, gb = free_on(node, at, keeps_memory=keeps_memory)
        for stretch in at:
            is_lower = stretch.job.priority < waits.job.priority
            if stretch.node == node.name and stretch.state == "running" and is_lower:
                cores += stretch.job.cores
                gb += 0 if keeps_memory else stretch.job.gb
        needed_gb = 0 if keeps_memory and waits.state == "suspended" else waits.job.gb
        if waits.job.cores <= cores and needed_gb <= gb:
            return True
    return False


@pytest.mark.long
@pytest.mark.parametrize("heuristic", heuristics_of_pools())
@given(case=cases(), data=st.data())
@runs
def test_both_engines_agree_in_every_visit_suspension_decision_and_term(heuristic, case, data):
    require_equal(case, data.draw(parameters(heuristic=heuristic)))


@pytest.mark.long
@given(case=cases(), chosen=parameters(window_s=100_000, restart="on", max_moves=0))
@settings(runs, max_examples=150)
def test_both_engines_agree_where_most_jobs_move(case, chosen):
    require_equal(case, chosen)


@pytest.mark.long
@given(
    case=cases(units=(1,)),  # else so many checks are a matter of minutes
    chosen=parameters(window_s=100_000, restart="on"),
    run_times=st.sampled_from(["known", "recent"]),
    elsewhere=st.sampled_from(["whole", "remaining"]),
    move_cost_s=st.sampled_from([0, 7, 30]),
    keeps_work=st.booleans(),
    waiting_check_s=st.sampled_from([0, 1, 5, 60]),
)
@runs
def test_both_engines_agree_with_estimated_run_times_costs_checkpoints_and_moves_of_queued_jobs(case, chosen, **more):
    known = [
        job._replace(program=("", "a", "b")[job.id % 3], limit_s=(None, 2 * job.run_s)[job.id % 2]) for job in case.jobs
    ]
    require_equal(case._replace(jobs=known), replace(chosen, **more))


def require_equal(case: PoolCase, chosen: ReschedulingParameters) -> None:
    engine, replay = EngineSeen(case, chosen), ReplaySeen(case, chosen)
    assert replay.jobs.keys() == engine.jobs.keys()
    for identity, seen in engine.jobs.items():
        assert replay.jobs[identity].visits == seen.visits
        assert replay.jobs[identity].suspensions == seen.suspensions
        assert replay.jobs[identity].end_s == seen.end_s
    assert replay.decisions == engine.decisions


@given(case=cases(), chosen=parameters())
@runs
def test_no_node_is_over_its_cores_or_memory_at_any_moment(case, chosen):
    keeps_memory = chosen.suspended_memory == "kept"
    for at in instants(stretches(case, ReplaySeen(case, chosen))):
        for node in case.nodes:
            assert min(free_on(node, at, keeps_memory=keeps_memory)) >= 0


@pytest.mark.parametrize("simulated", [EngineSeen, ReplaySeen], ids=["engine", "replay"])
@given(case=cases(), chosen=parameters())
@runs
def test_no_job_waits_for_room_that_is_there_or_that_lower_priorities_hold_on_one_node(simulated, case, chosen):
    keeps_memory = chosen.suspended_memory == "kept"
    for at in instants(stretches(case, simulated(case, chosen))):
        for stretch in at:
            if stretch.state != "running":
                assert not can_be_served(case, at, stretch, keeps_memory=keeps_memory)


@given(case=cases(), chosen=parameters())
@runs
def test_every_job_completes_once_and_its_time_is_what_it_waited_was_suspended_and_ran(case, chosen):
    run = ReplaySeen(case, chosen)
    assert sorted(run.jobs) == sorted(job.id for job in case.jobs)
    for job in case.jobs:
        seen, did = run.jobs[job.id], list(life(job, run))
        assert did[0].from_s == job.submit_s
        assert all(one.to_s == other.from_s for one, other in pairwise(did))
        assert all(stretch.from_s <= stretch.to_s for stretch in did)
        for number, visit in enumerate(seen.visits):
            assert length(did, "running", number) == visit.ran_s
            assert length(did, "suspended", number) == visit.suspended_s
        *lost, last = seen.visits
        suspended_s, wasted_s = sum(visit.suspended_s for visit in seen.visits), sum(visit.ran_s for visit in lost)
        assert last.ran_s == job.run_s
        assert seen.end_s - job.submit_s == seen.wait_s() + suspended_s + job.run_s + wasted_s


def length(did: list[Stretch], state: str, visit: int) -> int:
    return sum(each.to_s - each.from_s for each in did if (each.state, each.visit) == (state, visit))


@given(case=cases(), chosen=parameters())
@runs
def test_the_columns_of_a_run_agree_with_its_visits_and_suspensions(case, chosen):
    seen = ReplaySeen(case, chosen)
    run, site = seen.run, site_of(case)
    for at, job in enumerate(case.jobs):
        visits, suspensions = seen.jobs[job.id].visits, seen.jobs[job.id].suspensions
        assert (visits[0].joined_s, len(visits) - 1) == (job.submit_s, run.restarts[at])
        assert (site.pools[run.pool[at]], site.nodes.names[run.place[at]]) == (visits[-1].pool, visits[-1].node)
        assert (run.first_start[at], run.start[at]) == (visits[0].start_s, visits[-1].start_s)
        assert run.waited[at] == seen.jobs[job.id].wait_s()
        assert run.suspended[at] == sum(each.to_s - each.from_s for each in suspensions)
        assert run.suspensions[at] == len(suspensions)
        assert run.first_suspended[at] == (suspensions[0].from_s if suspensions else -1)
        assert run.wasted[at] == sum(visit.ran_s for visit in visits[:-1])
        assert sum(each.ended_by == "moved" for each in suspensions) == run.restarts[at]


@given(case=cases(units=(MINUTE,)), chosen=parameters())
@runs
def test_the_samples_are_what_goes_on_at_each_minute_and_sum_up_to_what_was_demanded_and_wasted(case, chosen):
    """All times are whole minutes: the samples hold everything that happens."""
    found = stretches(case, ReplaySeen(case, chosen))
    until_s = max(stretch.to_s for stretch in found) + 2 * MINUTE
    run = replay_pools(site_of(case), trace_of(case), chosen, sample_until_s=until_s)
    for minute in range(until_s // MINUTE + 1):
        at = [stretch for stretch in found if stretch.from_s <= MINUTE * minute < stretch.to_s]
        assert run.cores_used[minute] == sum(stretch.job.cores for stretch in at if stretch.state == "running")
        assert run.suspended_jobs[minute] == sum(stretch.state == "suspended" for stretch in at)
    cores = np.array([job.cores for job in case.jobs])
    demanded = cores @ np.array([job.run_s for job in case.jobs])
    assert MINUTE * run.cores_used.sum() == demanded + cores @ run.wasted


@given(case=cases(), chosen=parameters(restart="on"))
@runs
def test_a_job_moves_within_the_limit_and_only_to_pools_that_are_allowed_and_can_hold_it(case, chosen):
    run = ReplaySeen(case, chosen)
    for job in case.jobs:
        visits = run.jobs[job.id].visits
        assert chosen.max_moves == 0 or len(visits) - 1 <= chosen.max_moves
        for visit in visits:
            assert not job.allowed or visit.pool in job.allowed
            assert any(node.cores >= job.cores and node.gb >= job.gb for node in case.pools()[visit.pool])
            assert visit.node in {node.name for node in case.pools()[visit.pool]}
        assert not job.pool or visits[0].pool == job.pool
        assert all(one.pool != other.pool for one, other in pairwise(visits))


@given(case=cases(), chosen=parameters())
@runs
def test_the_highest_priority_is_never_suspended(case, chosen):
    run = ReplaySeen(case, chosen)
    highest = max(job.priority for job in case.jobs)
    for job in case.jobs:
        assert job.priority < highest or not run.jobs[job.id].suspensions


@given(case=cases(), chosen=parameters(restart="off"))
@runs
def test_without_restarts_nothing_is_decided_and_nobody_moves(case, chosen):
    run = ReplaySeen(case, chosen)
    assert run.decisions == []
    assert all(len(seen.visits) == 1 for seen in run.jobs.values())


@given(case=cases(), chosen=parameters(restart="on"))
@runs
def test_every_suspension_is_decided_on_when_it_begins_and_ends_at_once_by_a_move(case, chosen):
    run = ReplaySeen(case, chosen)
    suspensions = [each for seen in run.jobs.values() for each in seen.suspensions]
    # A job that resumes at the same moment, because another one moved, was decided on and never suspended.
    assert {(each.from_s, each.job) for each in suspensions} <= {
        (now_s, each.job_id) for now_s, _, each in run.decisions
    }
    moved = sorted((each.to_s, each.job) for each in suspensions if each.ended_by == "moved")
    assert moved == sorted((now_s, decision.job_id) for now_s, _, decision in run.decisions if decision.moves)
    assert all(each.from_s == each.to_s for each in suspensions if each.ended_by == "moved")


@pytest.mark.long
@pytest.mark.parametrize("simulated", [EngineSeen, ReplaySeen], ids=["engine", "replay"])
@given(case=cases(), chosen=parameters())
@runs
def test_the_same_input_gives_the_same_run(simulated, case, chosen):
    once, again = simulated(case, chosen), simulated(case, chosen)
    assert once.jobs == again.jobs
    assert once.decisions == again.decisions
