"""The compiled passes over jobs with several alternatives: the same as the plain engine and the plain policies.

Nodes differ, jobs may need empty nodes or certain nodes, run times may depend on the alternative, projects have shares.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.batch.easy import EasyBackfilling
from oracles.batch.fcfs import FirstComeFirstServed
from oracles.portfolio import PlainPortfolio

from slurm_sns.model import Alternative, Job, Node, Resources, gpus_of
from slurm_sns.policies.baselines.parameters import BatchParameters, EasyParameters
from slurm_sns.policies.placement.heuristic_names import FOR_PROFILED_JOBS, IDLEST, alternative_orders, tie_rules
from slurm_sns.policies.placement.node_arrays import NodeArrays, fits_ever
from slurm_sns.policies.placement.rules import Rules
from slurm_sns.sim.engine.matching import Simulation
from slurm_sns.sim.engine.planned import PlannedSimulation
from slurm_sns.sim.progress.progress import Fixed
from slurm_sns.sim.replay.backfilling_loop import EASY, EASY_EXTRA_NODES, FCFS
from slurm_sns.sim.replay.trace_replay import replay, replay_in_order
from slurm_sns.sim.trace import Trace, TraceJob, of_values

NAMES = "abcdef"
HEURISTICS = ("first-fit", "best-fit-cores", "worse-fit-memory", "mix-fit", IDLEST)


@st.composite
def clusters(draw) -> NodeArrays:
    """Six nodes of two sizes, with GPUs or without; they may differ in weight and lie under two switches."""
    weighs, is_connected = draw(st.booleans()), draw(st.booleans())
    nodes, gpus = [], draw(st.sampled_from([({}, {}), ({"a": 2}, {"a": 1, "b": 2})]))
    for at, name in enumerate(NAMES):
        capacity = Resources(4 + 4 * (at % 2), 8192, 10, 20, gpus=gpus_of(gpus[at % 2]))
        nodes.append(Node(name, capacity, capacity, at % 3 if weighs else 0, (f"s{at // 3}",) if is_connected else ()))
    return NodeArrays.of(nodes)


@st.composite
def alternatives(draw) -> tuple[Alternative, ...]:
    """One to three ways to run a job, each on more nodes than the one before."""
    is_exclusive, cores = draw(st.integers(0, 3)) == 0, draw(st.sampled_from([1, 2, 3, 4]))
    ways, gbps = draw(st.sampled_from([0, 0, 2, 5])), draw(st.sampled_from([0, 0, 3, 9]))
    gpus = gpus_of(draw(st.sampled_from([{}, {}, {}, {"": 1}, {"a": 1}, {"b": 1}])))
    found = []
    for scale in range(1, draw(st.integers(1, 3)) + 1):
        nodes = scale * draw(st.sampled_from([1, 1, 1, 2]))
        demand = Resources(max(1, cores // scale), draw(st.sampled_from([512, 2048, 6000])), ways, gbps, 0, gpus)
        slowdown = draw(st.sampled_from([1.0, 0.8, 1.3])) if scale > 1 else 1.0
        found.append(Alternative(nodes, demand, None, scale, slowdown, is_exclusive))
    return tuple(dict.fromkeys(found))


@st.composite
def cases(draw):
    """Nodes, a trace that they can run, and the run time of each job in each of its alternatives."""
    nodes = draw(clusters())
    some = draw(st.lists(alternatives(), min_size=1, max_size=5))
    allowed = draw(st.sampled_from([(None,), (None, frozenset("abcd"))]))
    jobs = []
    for at in range(draw(st.integers(1, 30))):
        submit_s = draw(st.integers(0, 120))
        one = Job(
            at,
            submit_s,
            draw(st.sampled_from(some)),
            (submit_s,),
            project=draw(st.sampled_from(["p", "q"])),
            heuristic=draw(st.sampled_from([None, None, None, "best-fit-memory"])),
            allowed=draw(st.sampled_from(allowed)),
            expected_run_s=draw(st.sampled_from([None, 5, 40, 200])),
        )
        if all(fits_ever(nodes, each, one.allowed) for each in one.alternatives):
            jobs.append(TraceJob(one, draw(st.sampled_from([1, 10, 40, 100, 250]))))
    jobs.sort(key=lambda each: each.job.submit_s)
    return nodes, Trace(tuple(jobs), {})


def what(run) -> list[tuple]:
    """When and where each job ran, and in which alternative."""
    return [
        (start, end, tuple(run.nodes(job)), run.alternative(job))
        for job, (start, end) in enumerate(zip(run.start_s.tolist(), run.end_s.tolist(), strict=True))
    ]


def rows(cycles) -> list[list[int]]:
    return [column.tolist() for column in cycles]


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(
    cases(),
    st.tuples(
        st.sampled_from([FCFS, EASY, EASY_EXTRA_NODES]),
        st.sampled_from(HEURISTICS),
        st.sampled_from([2, 100]),
        st.sampled_from([1, 7]),
        st.sampled_from([{}, {"p": 3.0}]),
    ),
)
def test_jobs_start_as_by_the_policies_that_make_plans(case, how):
    (nodes, trace), (algorithm, heuristic, depth, interval_s, shares) = case, how
    if trace.jobs:
        both = as_by_plans(nodes, trace, algorithm, heuristic, depth=depth, interval_s=interval_s, shares=shares)
        assert both[0] == both[1]


def as_by_plans(nodes, trace, algorithm, heuristic, *, depth=100, interval_s=1, shares=None):
    """What the compiled passes do with the trace, and what the plain policies do."""
    rules = Rules((heuristic,), queue_depth=depth, reservations=0, weighs=True)
    place = PlainPortfolio(rules)
    if algorithm == FCFS:
        policy = FirstComeFirstServed(place, BatchParameters(queue_depth=depth))
    else:
        parameters = EasyParameters(queue_depth=depth, extra_nodes_only=algorithm == EASY_EXTRA_NODES)
        policy = EasyBackfilling(place, parameters)

    done = replay_in_order(nodes, of_values(trace), rules, algorithm, interval_s=interval_s, shares=shares)

    plain = PlannedSimulation(nodes, trace, policy, interval_s=interval_s, shares=shares or {}).run()
    plain_run = plain.as_run(of_values(trace))
    return (what(done), rows(done.cycles)), (what(plain_run), rows(plain_run.cycles))


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(
    cases(),
    st.tuples(
        st.lists(st.sampled_from([*HEURISTICS, *FOR_PROFILED_JOBS]), min_size=1, max_size=4, unique=True).map(tuple),
        st.sampled_from([None, 60]),
        st.builds(
            Rules,
            portfolio=st.just(()),
            queue_depth=st.just(20),
            reservations=st.integers(0, 2),
            keeper=st.sampled_from([None, IDLEST]),
            weighs=st.just(True),
            for_profiled=st.sampled_from([(), FOR_PROFILED_JOBS]),
            shared_ways=st.just(2),
            ties=st.sampled_from(tie_rules()),
            own_scorer=st.just(IDLEST),
            order=st.sampled_from(alternative_orders()),
            withhold_up_to_s=st.sampled_from([None, 0, 30, 90]),
            until_start=st.booleans(),
        ),
    ),
)
def test_a_portfolio_matches_as_in_the_plain_engine(case, how):
    (nodes, trace), (members, age_limit_s, drawn) = case, how
    if not trace.jobs:
        return
    rules = replace(drawn, portfolio=members)
    records = of_values(trace)
    factors = np.array([1.0, 0.7, 1.6])
    most = max(map(len, records.choices))
    by_choice = np.ascontiguousarray(np.rint(factors[:most, np.newaxis] * records.run_s).astype(np.int64))
    records = replace(records, run_in=by_choice)
    places = {each.job.id: at for at, each in enumerate(trace.jobs)}

    def run_s(job: Job, alternative: Alternative) -> int:
        return int(by_choice[job.alternatives.index(alternative), places[job.id]])

    done = replay(nodes, records, rules, interval_s=7, shares={"q": 0.5}, age_limit_s=age_limit_s)

    plain = Simulation(
        nodes,
        trace,
        PlainPortfolio(rules),
        queue_depth=20,
        interval_s=7,
        shares={"q": 0.5},
        age_limit_s=age_limit_s,
        progress=Fixed(run_s),
    ).run()
    plain_run = plain.as_run(records, members)
    assert what(done) == what(plain_run)
    assert rows(done.cycles) == rows(plain_run.cycles)
