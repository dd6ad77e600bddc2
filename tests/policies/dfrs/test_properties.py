"""What holds for every algorithm on any jobs: capacity, one yield per job, work, and that kernels and oracle agree."""

from fractions import Fraction

import numpy as np
import pytest
from fluid_cases import BOTH, PERCENT, EngineRun, trace_of
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from oracles.dfrs.instant import PlainDfrs
from oracles.dfrs.priority import by_decreasing_priority

from slurm_sns.model import ActiveState, SetShare, Start
from slurm_sns.policies.dfrs.algorithms import ALGORITHMS, GANG, GREEDY, GREEDY_RETRY_AT_EVENTS, Algorithm
from slurm_sns.policies.dfrs.fluid_arrays import Scale
from slurm_sns.policies.dfrs.instant import FluidJob, Instant, Nodes
from slurm_sns.policies.dfrs.parameters import PeriodicParameters
from slurm_sns.sim.replay.fluid_replay import replay_fluid
from slurm_sns.sim.traces.fluid_trace import whole_nodes

NODES = 3
EVERY = {**ALGORITHMS, "retry-at-events": GREEDY_RETRY_AT_EVENTS, "gang": GANG}

jobs = st.lists(
    st.fixed_dictionaries(
        {
            "submit_s": st.integers(0, 2000) | st.integers(0, 8000).map(lambda quarters: quarters / 4),
            "tasks": st.integers(1, 2 * NODES),
            "cpu": st.sampled_from([25, 50, 100]),
            "memory": st.sampled_from([0, 10, 30, 50]),
            "run_s": st.sampled_from([1, 45, 600, 1200, 5000]),
        }
    ),
    min_size=1,
    max_size=12,
).map(lambda rows: sorted(rows, key=lambda row: row["submit_s"]))

runs = settings(
    max_examples=40, suppress_health_check=[*settings.default.suppress_health_check, HealthCheck.filter_too_much]
)


class Watched(PlainDfrs):
    """Checks each plan, with the exact numbers of the oracle."""

    def plan(self, snapshot):
        decided = super().plan(snapshot)
        memory = {node.name: 0 for node in snapshot.nodes}
        cpu = {node.name: Fraction(0) for node in snapshot.nodes}
        shares = {job.id: job.cpu_share for job in snapshot.active}
        placed = {job.id: (job.nodes, job.demand) for job in snapshot.active if job.state is ActiveState.RUNNING}
        known = {job.id: job.demand for job in snapshot.active}
        for action in decided.actions:
            match action:
                case Start():
                    placed[action.job_id] = (action.nodes, action.alternative.demand)
                    shares[action.job_id] = action.cpu_share
                case SetShare():
                    shares[action.job_id] = action.cpu_share
                case _ if getattr(action, "to_storage", False):
                    del placed[action.job_id]
                case _:
                    placed[action.job_id] = (action.nodes, known[action.job_id])
                    shares[action.job_id] = action.cpu_share
        for identity, (nodes, demand) in placed.items():
            assert 0 < shares[identity] <= 1
            for name in nodes:
                memory[name] += demand.memory_mb
                cpu[name] += Fraction(shares[identity]) * demand.cores
        assert max(memory.values()) <= 100
        assert max(cpu.values()) <= 100 + (Fraction(1, 10**6) if self.algorithm.minimises_stretch else 0)
        return decided


@pytest.mark.long
@pytest.mark.parametrize("algorithm", EVERY.values(), ids=EVERY)
@given(rows=jobs, penalty_s=st.sampled_from([0, 300]), period_s=st.sampled_from([60, 300, 600]))
@runs
def test_no_node_is_over_its_capacity_and_both_engines_agree(algorithm: Algorithm, rows, penalty_s, period_s):
    engine = EngineRun(NODES, rows, Watched(algorithm, PeriodicParameters(period_s)), penalty_s)
    if algorithm.minimises_stretch:  # each run makes rounding errors up to ten times as large
        assume(engine.end_s.max() <= 10 * period_s)
    replayed = replay_fluid(whole_nodes(NODES), trace_of(rows), algorithm, period_s=period_s, penalty_s=penalty_s)
    np.testing.assert_allclose(replayed.end_s, engine.end_s, rtol=0, atol=1e-4)
    np.testing.assert_allclose(replayed.start_s, engine.start_s, rtol=0, atol=1e-4)
    for name in ("preemptions", "migrations", "tasks_moved"):
        assert getattr(replayed, name).tolist() == getattr(engine, name).tolist()


@pytest.mark.long
def test_priorities_that_rounding_errors_alone_tell_apart_are_equal():
    rows = [
        dict(zip(("submit_s", "tasks", "cpu", "memory", "run_s"), each, strict=True))
        for each in (
            (0, 2, 50, 50, 90.5),
            (0, 3, 50, 0, 600),
            (0, 6, 50, 30, 600),
            (10, 2, 25, 0, 90.5),
            (600, 1, 100, 60, 1),
            (1437, 2, 25, 10, 3000),
        )
    ]
    algorithm, parameters = ALGORITHMS["dfrs-dynmcb8-per"], PeriodicParameters(7)
    engine = EngineRun(2, rows, PlainDfrs(algorithm, parameters), 300)
    replayed = replay_fluid(whole_nodes(2), trace_of(rows), algorithm, period_s=7, penalty_s=300)
    assert replayed.preemptions.tolist() == engine.preemptions.tolist()
    assert engine.preemptions[1] == 36


class Recorded(PlainDfrs):
    """Keeps the share of each job that runs, from each decision on."""

    def __init__(self, algorithm: Algorithm) -> None:
        super().__init__(algorithm)
        self.shares: list[tuple[float, dict[int, float]]] = []

    def decide(self, at):
        decided = super().decide(at)
        self.shares.append((at.now_s, dict(decided.yields)))
        return decided


@pytest.mark.long
@pytest.mark.parametrize("algorithm", EVERY.values(), ids=EVERY)
@given(rows=jobs)
@runs
def test_the_integral_of_a_jobs_yield_until_its_end_is_its_run_time(algorithm: Algorithm, rows):
    policy = Recorded(algorithm)
    run = EngineRun(NODES, rows, policy, 0)
    ends = [placed.end_s for placed in run.simulation.placements.values()]
    moments = [*(time_s for time_s, _ in policy.shares), max(ends)]
    for identity, row in enumerate(rows):
        did = sum(
            shares.get(identity, 0) * (until - since)
            for (since, shares), until in zip(policy.shares, moments[1:], strict=True)
        )
        assert did == pytest.approx(row["run_s"], abs=1e-6)


@given(
    virtual_s=st.fractions(Fraction(1, 10), 10**6),
    flow_s=st.integers(31, 10**6),
    longer_s=st.integers(1, 10**6),
)
def test_the_priority_of_a_paused_job_grows_without_limit(virtual_s, flow_s, longer_s):
    """It overtakes any job that goes on: that job's virtual time grows with the flow time."""
    now_s = flow_s + longer_s
    paused = FluidJob(0, 0, 1, 100, 10, virtual_s)
    earlier = FluidJob(1, longer_s, 1, 100, 10, virtual_s)  # as the paused one was `longer_s` ago
    assert [job.id for job in by_decreasing_priority([paused, earlier], now_s)] == [0, 1]
    far_s = 100 * (now_s + int(virtual_s) + 1) ** 2
    goes_on = FluidJob(2, 0, 1, 100, 10, virtual_s + far_s)
    assert [job.id for job in by_decreasing_priority([goes_on, paused], far_s)] == [0, 2]


@pytest.mark.long
@pytest.mark.parametrize("algorithm", EVERY.values(), ids=EVERY)
@given(rows=jobs, penalty_s=st.sampled_from([0, 300]))
@runs
def test_every_job_ends_after_at_least_its_run_time_and_each_resume_and_move_costs_the_penalty(
    algorithm: Algorithm, rows, penalty_s
):
    run = replay_fluid(whole_nodes(NODES), trace_of(rows), algorithm, penalty_s=penalty_s)
    run_s = np.array([row["run_s"] for row in rows])
    held_s = run.wall_s
    assert (held_s >= run_s - 1e-6).all()
    assert (run.end_s >= run.start_s + run_s - 1e-6).all()
    undisturbed = (run.preemptions == 0) & (run.migrations == 0)
    assert (held_s >= run_s + penalty_s - 1e-6)[~undisturbed].all()  # the last one is never cut short
    np.testing.assert_allclose((run.end_s - run.start_s)[undisturbed], held_s[undisturbed], atol=1e-6)


@given(rows=jobs)
@runs
def test_greedy_gives_the_jobs_that_are_worst_off_the_yield_that_the_highest_load_allows(rows):
    listed = tuple(
        FluidJob(at, row["submit_s"], row["tasks"], row["cpu"], row["memory"]) for at, row in enumerate(rows)
    )
    at = Instant(2000, Nodes((100,) * NODES, (100,) * NODES), listed, newcomers=frozenset(range(len(listed))))
    for decide in BOTH.values():
        found = decide(GREEDY, at)
        needed = [0] * NODES
        for each in listed:
            for node in found.places.get(each.id, ()):
                needed[node] += each.cpu
        assert min(found.yields.values()) == pytest.approx(1 / max(1, max(needed) / 100))


@pytest.mark.long
@given(rows=jobs, penalty_s=st.sampled_from([0, 300]))
@runs
def test_the_same_trace_gives_the_same_run(rows, penalty_s):
    once, again = (
        replay_fluid(whole_nodes(NODES), trace_of(rows), ALGORITHMS["dfrs-dynmcb8-per"], penalty_s=penalty_s)
        for _ in range(2)
    )
    assert once.end_s.tolist() == again.end_s.tolist()
    assert once.spread.tolist() == again.spread.tolist()


@given(rows=jobs)
@runs
def test_what_jobs_held_is_their_work_while_nothing_is_lost(rows):
    """With all submits before the first end, what is counted from the first submit to the last is at most the work."""
    trace = trace_of(rows)
    run = replay_fluid(whole_nodes(NODES), trace, ALGORITHMS["dfrs-dynmcb8"])
    span_s = trace.submit_s[-1] - trace.submit_s[0]
    assert run.used[0] <= NODES * 100 * PERCENT * span_s * (1 + 1e-9)
    assert run.used[0] <= float((trace.cores * trace.tasks * trace.run_s).sum()) * (1 + 1e-9)
    assert run.used[1] <= NODES * 100 * PERCENT * span_s * (1 + 1e-9)


unlike_nodes = st.lists(st.sampled_from([(64, 131072), (64, 8192), (6, 131072), (4, 8192)]), min_size=1, max_size=4)


@pytest.mark.parametrize("algorithm", [ALGORITHMS["dfrs-dynmcb8"], GREEDY, GANG], ids=["dynmcb8", "greedy", "gang"])
@given(
    capacities=unlike_nodes,
    listed=st.lists(
        st.tuples(st.integers(1, 6), st.integers(1, 64), st.sampled_from([0, 512, 4096, 8192]), st.integers(0, 500)),
        min_size=1,
        max_size=8,
    ),
)
@runs
def test_kernels_and_oracle_decide_alike_on_unlike_nodes(algorithm: Algorithm, capacities, listed):
    cores, memory = zip(*capacities, strict=True)
    scale = Scale.of(cores, memory)
    nodes = Nodes(tuple(scale.cpu * each for each in cores), tuple(scale.memory * each for each in memory))
    jobs = tuple(
        FluidJob(at, at, tasks, scale.cpu * need, scale.memory * mb, virtual)
        for at, (tasks, need, mb, virtual) in enumerate(listed)
    )
    at = Instant(1000, nodes, jobs, newcomers=frozenset(range(len(jobs))))
    plain, fast = (decide(algorithm, at) for decide in (BOTH["plain"], BOTH["compiled"]))
    assert fast.places == plain.places
    assert fast.yields == {job: pytest.approx(float(share)) for job, share in plain.yields.items()}
