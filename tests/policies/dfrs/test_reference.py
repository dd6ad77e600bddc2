"""An independent exact implementation's results: all packings and all jobs of eight traces, by kernels and oracle."""

import csv
import gzip
import json
import os
from collections import Counter, defaultdict
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from fluid_cases import EngineRun, trace_of
from oracles.dfrs import instant as plain
from oracles.dfrs.priority import by_decreasing_priority
from oracles.dfrs.yield_search import search

from slurm_sns.policies.dfrs import instant
from slurm_sns.policies.dfrs.algorithms import ALGORITHMS, DYNMCB8
from slurm_sns.policies.dfrs.instant import FluidJob, Instant, Nodes
from slurm_sns.policies.dfrs.priority_kernel import choose_highest, sort_by_priority
from slurm_sns.policies.dfrs.search_kernel import DENOMINATOR, search_yield
from slurm_sns.sim.replay.fluid_replay import replay_fluid
from slurm_sns.sim.traces.fluid_trace import whole_nodes

REFERENCE = Path(os.environ.get("SNS_SHARED", Path(__file__).parents[3].parent / "shared")) / "reference" / "dfrs"
NODES = 8
PENALTIES = (0, 300)
CLOSE_S = 1e-4

pytestmark = pytest.mark.skipif(
    not (REFERENCE / "sim-jobs.csv.gz").is_file(), reason=f"{REFERENCE} is missing (SNS_SHARED names the folder)"
)


@cache
def lines(name: str) -> list[dict]:
    with gzip.open(REFERENCE / f"{name}.jsonl.gz", "rt") as file:
        return [json.loads(line) for line in file]


@cache
def table(name: str) -> list[dict[str, str]]:
    with gzip.open(REFERENCE / f"{name}.csv.gz", "rt") as file:
        return list(csv.DictReader(file))


@cache
def traces() -> dict[str, list[dict]]:
    found = defaultdict(list)
    for row in table("sim-traces"):
        known = {"submit_s": int(row["submit_s"]), "tasks": int(row["tasks"]), "run_s": int(row["run_s"])}
        found[row["trace"]].append({**known, "cpu": int(row["cpu_need_pct"]), "memory": int(row["mem_pct"])})
    return dict(found)


@cache
def ended(trace: str, algorithm: str, penalty_s: int) -> list[dict[str, str]]:
    wanted = (trace, algorithm, str(penalty_s))
    return [row for row in table("sim-jobs") if (row["trace"], row["algorithm"], row["penalty_s"]) == wanted]


def instance(given: dict) -> Instant:
    jobs = tuple(
        FluidJob(each["id"], -each["flow"], each["tasks"], each["cpu"], each["mem"], each["vt"])
        for each in given["jobs"]
    )
    return Instant(0, Nodes((100,) * given["nodes"], (100,) * given["nodes"]), jobs)


def by_node(places) -> dict[str, dict[str, int]]:
    return {str(job): {str(node): count for node, count in Counter(on).items()} for job, on in places.items()}


@pytest.mark.long
def test_the_oracle_packs_every_instance_as_the_reference_does():
    for given, expected in zip(lines("mcb8-instances"), lines("mcb8-results"), strict=True):
        at = instance(given)
        found = search(at.nodes, at.jobs, by_decreasing_priority(at.jobs, 0))
        assert (None if found.found is None else str(found.found)) == expected["y_search"], given["inst"]
        assert list(found.dropped) == expected["dropped"], given["inst"]
        assert [[str(tried), int(packed)] for tried, packed in found.tried] == expected["path"], given["inst"]
        decided = plain.decide(DYNMCB8, at)
        assert by_node(decided.places) == expected["place"], given["inst"]
        assert {str(job): str(share) for job, share in decided.yields.items()} == expected["yields"], given["inst"]


def test_the_kernel_packs_every_instance_as_the_reference_does():
    for given, expected in zip(lines("mcb8-instances"), lines("mcb8-results"), strict=True):
        at = instance(given)
        cluster, jobs = instant.arrays_of(at), np.arange(len(at.jobs))
        by_priority = jobs.copy()
        sort_by_priority(cluster, by_priority, 0.0)
        highest = cluster.space.by_priority[: choose_highest(cluster, 0.0)]
        assert highest.tolist() == by_priority[: len(highest)].tolist(), given["inst"]
        found, packed = search_yield(cluster, highest)
        left_out = [at.jobs[position].id for position in by_priority[packed:][::-1]]
        assert left_out == expected["dropped"], given["inst"]
        assert (str(Fraction(found, DENOMINATOR)) if found else None) == expected["y_search"], given["inst"]
        decided = instant.decide(DYNMCB8, at)
        assert by_node(decided.places) == expected["place"], given["inst"]
        yields = {str(job): pytest.approx(share, abs=1e-12) for job, share in decided.yields.items()}
        assert {job: float(Fraction(share)) for job, share in expected["yields"].items()} == yields, given["inst"]


def assert_ends_as(expected: list[dict[str, str]], run) -> None:
    for name in ("start_s", "end_s"):
        np.testing.assert_allclose(getattr(run, name), [float(row[name]) for row in expected], rtol=0, atol=CLOSE_S)
    for name in ("preemptions", "migrations"):
        assert getattr(run, name).tolist() == [int(row[name]) for row in expected]


def paper_name(name: str) -> str:
    known = name.removeprefix("dfrs-").upper()
    return f"{known}-600" if known.endswith("-PER") else known


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_job_of_the_replay_ends_as_in_the_reference(name):
    for trace, rows in traces().items():
        for penalty_s in PENALTIES:
            run = replay_fluid(whole_nodes(NODES), trace_of(rows), ALGORITHMS[name], penalty_s=penalty_s)
            assert_ends_as(ended(trace, paper_name(name), penalty_s), run)


@pytest.mark.long
@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_job_of_the_event_engine_with_the_oracle_ends_as_in_the_reference(name):
    for trace, rows in traces().items():
        for penalty_s in PENALTIES:
            run = EngineRun(NODES, rows, plain.PlainDfrs(ALGORITHMS[name]), penalty_s)
            assert_ends_as(ended(trace, paper_name(name), penalty_s), run)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_totals_of_each_run_are_those_of_the_reference(name):
    totals = {(row["trace"], row["algorithm"], row["penalty_s"]): row for row in table("sim-runs")}
    for trace, rows in traces().items():
        for penalty_s in PENALTIES:
            jobs = trace_of(rows)
            run = replay_fluid(whole_nodes(NODES), jobs, ALGORITHMS[name], penalty_s=penalty_s)
            expected = totals[trace, paper_name(name), str(penalty_s)]
            memory = np.array([row["memory"] for row in rows])
            assert run.tasks_moved.sum() == int(expected["tasks_moved"])
            assert (run.preemptions * jobs.tasks * memory).sum() == int(expected["mem_paused_pct"])
            assert (run.tasks_moved * memory).sum() == int(expected["mem_moved_pct"])
            assert run.end_s.max() - jobs.submit_s[0] == pytest.approx(float(expected["makespan_s"]), abs=CLOSE_S)
