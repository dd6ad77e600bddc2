"""An independent exact implementation's results: every visit, suspension and decision, in all variants."""

import csv
import gzip
import os
from collections import defaultdict
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest
from pool_cases import EngineSeen, PoolCase, PoolJob, PoolNode, ReplaySeen

from slurm_sns.policies.rescheduling.parameters import ReschedulingParameters

SHARED = Path(os.environ.get("SNS_SHARED", Path(__file__).parents[3].parent / "shared"))
REFERENCE = SHARED / "reference" / "rescheduling"
TRACES = [str(number) for number in range(12)]
VARIANTS = [("off", memory, "-") for memory in ("kept", "freed")] + [
    ("on", memory, averages) for memory in ("kept", "freed") for averages in ("all", "suspended")
]

pytestmark = pytest.mark.skipif(
    not (REFERENCE / "jobs.csv.gz").is_file(), reason=f"{REFERENCE} is missing (SNS_SHARED names the folder)"
)

Key = tuple[str, str, str, str]


@cache
def table(name: str) -> list[dict[str, str]]:
    with gzip.open(REFERENCE / f"{name}.csv.gz", "rt") as file:
        return list(csv.DictReader(file))


@cache
def by_run(name: str) -> dict[Key, list[dict[str, str]]]:
    found = defaultdict(list)
    for row in table(name):
        found[row["trace"], row["restart"], row["memory"], row["averages"]].append(row)
    return dict(found)


@cache
def case(trace: str) -> PoolCase:
    nodes = [
        PoolNode(row["name"], int(row["cores"]), int(row["mem_gb"]), row["pool"])
        for row in table("traces-nodes")
        if row["trace"] == trace
    ]
    jobs = [
        PoolJob(
            *(int(row[name]) for name in ("job_id", "submit_s", "run_s", "cores", "mem_gb")),
            row["pool"],
            int(row["priority"]),
            tuple(row["allowed_pools"].split("+")) if row["allowed_pools"] else (),
        )
        for row in table("traces-jobs")
        if row["trace"] == trace
    ]
    return PoolCase(nodes, jobs)


def parameters(trace: str, restart: str, memory: str, averages: str) -> ReschedulingParameters:
    window_s = next(int(row["window_s"]) for row in table("traces") if row["trace"] == trace)
    return ReschedulingParameters(
        window_s, restart=restart, suspended_memory=memory, averages="all" if averages == "-" else averages
    )


@pytest.mark.long
@pytest.mark.parametrize("variant", VARIANTS, ids="-".join)
@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.parametrize("simulated", [EngineSeen, ReplaySeen], ids=["engine", "replay"])
def test_every_visit_suspension_and_decision_is_as_in_the_reference(trace, variant, simulated):
    run = simulated(case(trace), parameters(trace, *variant))
    key = (trace, *variant)
    for row in by_run("jobs")[key]:
        seen = run.jobs[int(row["job_id"])]
        visits = seen.visits
        found = {
            "pools": joined(visit.pool for visit in visits),
            "joined_s": joined(visit.joined_s for visit in visits),
            "start_s": joined(visit.start_s for visit in visits),
            "hosts": joined(visit.node for visit in visits),
            "suspended_s_per_visit": joined(visit.suspended_s for visit in visits),
            "ran_s_per_visit": joined(visit.ran_s for visit in visits),
            "wait_s": str(seen.wait_s()),
            "suspensions": str(len(seen.suspensions)),
            "restarts": str(len(visits) - 1),
            "wasted_s": str(sum(visit.ran_s for visit in visits[:-1])),
            "end_s": str(seen.end_s),
            "end_host": visits[-1].node,
        }
        assert found == {name: row[name] for name in found}, row["job_id"]
    suspensions = [each for job in sorted(run.jobs) for each in run.jobs[job].suspensions]
    assert [tuple(map(str, each)) for each in suspensions] == [
        tuple(row[name] for name in ("job_id", "visit", "host", "from_s", "to_s", "ended_by"))
        for row in by_run("suspensions").get(key, [])
    ]
    assert decisions_of(run) == [tuple(row[name] for name in DECISION) for row in by_run("decisions").get(key, [])]


DECISION = (
    "seq",
    "time_s",
    "job_id",
    "from_pool",
    "chosen_pool",
    "pool",
    "samples",
    "basis",
    "wait_avg_s",
    "suspend_avg_s",
    "run_s",
    "estimate_s",
)


def decisions_of(run: EngineSeen | ReplaySeen) -> list[tuple[str, ...]]:
    return [
        (
            *map(str, (number, now_s, decision.job_id, own, decision.chosen, term.pool, term.samples)),
            str(term.basis),
            *(str(Fraction(each)) for each in (term.wait_s, term.suspend_s, term.run_s, term.estimate_s)),
        )
        for number, (now_s, own, decision) in enumerate(run.decisions)
        for term in decision.terms
    ]


def joined(values) -> str:
    return "+".join(map(str, values))
