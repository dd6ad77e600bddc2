"""The compiled replay: the reference results line for line, and the same as the plain engine."""

import gzip
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.portfolio import plainly

from slurm_sns.model import Resources
from slurm_sns.policies.matching.max_jobs import max_jobs, rules_of
from slurm_sns.policies.matching.parameters import UNTIL_START, MatchingParameters, ways_to_withhold
from slurm_sns.policies.placement.heuristics import HEURISTICS
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts
from slurm_sns.sim.engine.matching import Simulation
from slurm_sns.sim.replay.trace_replay import replay
from slurm_sns.sim.results.metrics import measure
from slurm_sns.sim.results.result_files import result_files
from slurm_sns.sim.traces.nodes_csv import read_nodes
from slurm_sns.sim.traces.read_trace import read_records
from slurm_sns.sim.traces.trace_builder import RecordBuilder

DATA = Path(__file__).parents[2] / "data" / "netbatch"
SHARED = Path(os.environ.get("SNS_SHARED", Path(__file__).parents[3].parent / "shared"))
POOL_A = SHARED / "reference" / "netbatch"

AUTHORS_PORTFOLIO = ("best-fit-memory", "worse-fit-memory", "best-fit-cores", "worse-fit-cores", "mix-fit")
AUTHORS_PORTFOLIO += ("memory-first-best", "memory-first-worse")
REFERENCES = ("first-fit", "best-fit-cores", "best-fit-memory", "worse-fit-cores", "worse-fit-memory", "mix-fit")
REFERENCES += ("max-jobs-7",)
#: How many jobs a cycle of the references looked at.
DEPTH = 1000

needs_pool_a = pytest.mark.skipif(
    not (POOL_A / "pool-a.jobs.csv.gz").is_file(), reason=f"{POOL_A} is missing (SNS_SHARED names the folder)"
)


def parameters(reference: str) -> MatchingParameters:
    return MatchingParameters(AUTHORS_PORTFOLIO if reference == "max-jobs-7" else (reference,), queue_depth=DEPTH)


def lines(folder: Path, name: str) -> list[str]:
    return gzip.decompress((folder / f"{name}.csv.gz").read_bytes()).decode().splitlines()[1:]


def by_kernel(folder: Path, trace: str, reference: str) -> list[str]:
    node_arrays = read_nodes(str(folder / f"{trace}.nodes.csv"))
    records = read_records(str(folder / f"{trace}.jobs.csv.gz"), node_arrays)
    done = replay(node_arrays, records, rules_of(parameters(reference)), interval_s=30)
    rows = zip(records.identity.tolist(), done.start_s.tolist(), done.place.tolist(), strict=True)
    return [f"{identity},{start_s},{node_arrays.names[node]}" for identity, start_s, node in rows]


def by_twin(folder: Path, trace: str, reference: str) -> list[str]:
    node_arrays = read_nodes(str(folder / f"{trace}.nodes.csv"))
    jobs = read_records(str(folder / f"{trace}.jobs.csv.gz"), node_arrays).values()
    outcome = Simulation(
        node_arrays, jobs, plainly(max_jobs(parameters(reference))), queue_depth=DEPTH, interval_s=30
    ).run()
    return [f"{each.job.id},{each.start_s},{node_arrays.names[each.nodes[0]]}" for each in outcome.placements]


@pytest.mark.parametrize("reference", REFERENCES)
def test_the_kernel_reproduces_the_small_reference_line_for_line(reference):
    assert by_kernel(DATA, "small", reference) == lines(DATA, f"small.{reference}")


@pytest.mark.long
@pytest.mark.parametrize("reference", REFERENCES)
def test_the_twin_reproduces_the_small_reference_line_for_line(reference):
    assert by_twin(DATA, "small", reference) == lines(DATA, f"small.{reference}")


@needs_pool_a
@pytest.mark.parametrize("reference", REFERENCES)
def test_the_kernel_reproduces_pool_a_line_for_line(reference):
    assert by_kernel(POOL_A, "pool-a", reference) == lines(POOL_A, f"pool-a.{reference}")


@pytest.mark.long
@needs_pool_a
@pytest.mark.parametrize("reference", REFERENCES)
def test_the_twin_reproduces_pool_a_line_for_line(reference):
    assert by_twin(POOL_A, "pool-a", reference) == lines(POOL_A, f"pool-a.{reference}")


def node_arrays_of(*nodes: tuple[int, float]) -> NodeArrays:
    names = tuple(f"n{at}" for at in range(len(nodes)))
    return NodeArrays(names, amounts([Resources(cores, int(gb * 1024)) for cores, gb in nodes]))


SMALL = node_arrays_of((4, 8), (4, 16), (8, 8), (4, 8), (8, 8))


@st.composite
def runs(draw):
    """A trace with ties, several nodes, projects and own heuristics, and a way to replay it."""
    job = st.tuples(
        st.integers(0, 300),
        st.integers(0, 400),
        st.sampled_from([1, 1, 1, 2, 3]),
        st.integers(1, 4),
        st.integers(1, 8),
        st.sampled_from(["p", "q", "r"][: draw(st.integers(1, 3))]),
        st.sampled_from(["", "", "", *HEURISTICS]),
        st.sampled_from([0, 1, 60, 400, 400]),
    )
    rows = draw(st.lists(job, min_size=1, max_size=40))
    columns = [np.array(column, dtype=np.float64) for column in list(zip(*rows, strict=True))[:5]]
    builder = RecordBuilder(SMALL, draw(st.sampled_from([1.0, 0.58])))
    builder.add(
        identity=np.arange(len(rows), dtype=np.float64),
        submit_s=columns[0],
        run_s=columns[1],
        nodes=columns[2],
        cores=columns[3],
        memory_mb=columns[4] * 1024,
        project=[row[5] for row in rows],
        heuristic=[row[6] for row in rows],
        limit_s=np.array([row[7] for row in rows], dtype=np.float64),
    )
    portfolio = draw(st.lists(st.sampled_from(list(HEURISTICS)), min_size=1, max_size=4, unique=True).map(tuple))
    withhold = draw(st.sampled_from(ways_to_withhold()))
    chosen = MatchingParameters(portfolio, draw(st.integers(1, 20)), draw(st.integers(0, 3)), withhold)
    return builder.records("drawn"), chosen, draw(st.sampled_from([1, 7, 30]))


@pytest.mark.long
@settings(max_examples=100)
@given(runs(), st.sampled_from([{}, {"p": 3.0}]), st.sampled_from([None, None, 1, 60, 300]))
def test_replay_and_engine_give_the_same_bytes_and_metrics(run, shares, age_limit_s):
    records, chosen, interval_s = run
    done = replay(SMALL, records, rules_of(chosen), interval_s=interval_s, shares=shares, age_limit_s=age_limit_s)
    plain = Simulation(
        SMALL,
        records.values(),
        plainly(max_jobs(chosen)),
        queue_depth=chosen.queue_depth,
        interval_s=interval_s,
        shares=shares,
        age_limit_s=age_limit_s,
    ).run()
    plain_run = plain.as_run(records, chosen.portfolio)

    fast, slow = (result_files(each, SMALL) for each in (done, plain_run))
    for name in ("jobs.csv", "cycles.csv"):
        assert list(fast[name]) == list(slow[name])
    assert measure(done, SMALL) == measure(plain_run, SMALL)


class Watched:
    """The policy, with the promise to the first job without a place in each cycle."""

    asks_for_ends = True

    def __init__(self, policy) -> None:
        self._policy = policy
        self.promised: list[tuple[int, float]] = []

    def schedule(self, node_arrays, free, queue, coming):
        assert (free >= 0).all()  # no node is over its capacity
        schedule = self._policy.schedule(node_arrays, free, queue, coming)
        self.promised += [(each.job.id, each.start_s) for each in schedule.withheld[:1]]
        return schedule


@settings(max_examples=60, deadline=None)
@given(runs())
def test_a_promised_start_never_moves_later_where_limits_hold_and_the_job_starts_then(run):
    """Jobs are of one project: none comes before one that waits already."""
    records, chosen, interval_s = run
    chosen = replace(chosen, reservations=1, withhold=UNTIL_START)
    records = replace(
        records,
        limit=np.maximum(np.maximum(records.limit, records.run), 1),
        project=np.zeros(len(records), np.int32),
        projects=("",),
    )
    watched = Watched(max_jobs(chosen))
    Simulation(SMALL, records.values(), watched, queue_depth=chosen.queue_depth, interval_s=interval_s).run()
    done = replay(SMALL, records, rules_of(chosen), interval_s=interval_s)

    latest_s = {}
    for job, start_s in watched.promised:
        assert start_s <= latest_s.get(job, start_s)
        latest_s[job] = start_s
    started_s = dict(zip(records.identity.tolist(), done.start_s.tolist(), strict=True))
    assert all(started_s[job] <= -(-start_s // interval_s) * interval_s for job, start_s in latest_s.items())


def test_a_replay_that_takes_many_parts_is_the_same(monkeypatch):
    at_once = by_kernel(DATA, "small", "mix-fit")
    monkeypatch.setattr("slurm_sns.sim.replay.trace_replay.CYCLES_AT_A_TIME", 1)

    assert by_kernel(DATA, "small", "mix-fit") == at_once


def test_the_same_metrics_as_the_reference():
    expected = json.loads((DATA / "small.summary.json").read_text())["small"]
    node_arrays = read_nodes(str(DATA / "small.nodes.csv"))
    records = read_records(str(DATA / "small.jobs.csv.gz"), node_arrays)

    for reference in REFERENCES:
        rules = rules_of(parameters(reference))
        metrics = measure(replay(node_arrays, records, rules, interval_s=30), node_arrays)
        assert metrics.mean_wait_s == pytest.approx(expected[reference]["mean_wait_s"], abs=1e-4)
        assert metrics.mean_slowdown == pytest.approx(expected[reference]["mean_slowdown"], abs=1e-4)
