"""Where the live rule and the paper's are the same, its decisions are those of an independent exact implementation."""

import csv
import gzip
import os
from collections import defaultdict
from fractions import Fraction
from functools import cache
from itertools import groupby
from pathlib import Path

import pytest

from slurm_sns.restarts.decision import Basis, SuspendedJob, decide
from slurm_sns.restarts.past_jobs import PastJob, PastJobs

SHARED = Path(os.environ.get("SNS_SHARED", Path(__file__).parents[2].parent / "shared"))
REFERENCE = SHARED / "reference" / "rescheduling"

pytestmark = pytest.mark.skipif(
    not (REFERENCE / "jobs.csv.gz").is_file(), reason=f"{REFERENCE} is missing (SNS_SHARED names the folder)"
)

BASES = {Basis.PARTITION: "pool", Basis.SITE: "site", Basis.PLACE: "room"}


@cache
def table(name: str) -> list[dict[str, str]]:
    with gzip.open(REFERENCE / f"{name}.csv.gz", "rt") as file:
        return list(csv.DictReader(file))


def variant(row):
    return row["trace"], row["restart"], row["memory"], row["averages"]


def numbers(row, name):
    return [int(each) for each in row[name].split("+")]


def past_job(row, asked) -> PastJob:
    """As the rule sees it: it counts in the pool where it completed, with its waits and suspensions there."""
    pools = row["pools"].split("+")
    visits = zip(
        pools, numbers(row, "joined_s"), numbers(row, "start_s"), numbers(row, "suspended_s_per_visit"), strict=True
    )
    there = [(start - joined, suspended) for pool, joined, start, suspended in visits if pool == pools[-1]]
    return PastJob(
        job_id=int(row["job_id"]),
        ended_s=int(row["end_s"]),
        partition=pools[-1],
        tier=int(asked["priority"]),
        user_id=0,
        name="",
        wait_s=sum(wait for wait, _ in there),
        suspended_s=sum(suspended for _, suspended in there),
        was_suspended=row["suspensions"] != "0",
        run_s=int(asked["run_s"]),
    )


def test_all_decisions_are_those_of_the_reference():
    asked = {(row["trace"], row["job_id"]): row for row in table("traces-jobs")}
    windows_s = {row["trace"]: int(row["window_s"]) for row in table("traces")}
    ended = defaultdict(list)
    for row in table("jobs"):
        ended[variant(row)].append(past_job(row, asked[row["trace"], row["job_id"]]))
    decided = 0
    for (key, _, now_s), rows in groupby(table("decisions"), lambda row: (variant(row), row["seq"], row["time_s"])):
        own, *others = rows
        past = PastJobs(windows_s[key[0]], only_suspended=key[3] == "suspended")
        past.learn((job for job in ended[key] if job.ended_s <= int(now_s)), int(now_s))
        job = asked[key[0], own["job_id"]]
        suspended = SuspendedJob(own["pool"], int(job["run_s"]), int(job["run_s"]) - int(own["run_s"]))
        averages = {row["pool"]: past.averages(row["pool"], int(job["priority"]), int(now_s)) for row in (own, *others)}
        places = [(row["pool"], ("a node",) if row["basis"] == "room" else ()) for row in others]
        found = decide(suspended, averages, places, least_gain_s=0)
        decided += 1
        if own["basis"] == "none":
            assert found is None
            continue
        chosen = own["pool"] if found.restart is None else found.restart.partition
        assert chosen == own["chosen_pool"]
        assert [
            (
                term.partition,
                BASES[term.basis],
                *map(Fraction, (term.wait_s, term.suspended_s, term.run_s, term.total_s)),
            )
            for term in (found.stays, *found.others)
        ] == [
            (
                row["pool"],
                row["basis"],
                *(Fraction(row[name]) for name in ("wait_avg_s", "suspend_avg_s", "run_s", "estimate_s")),
            )
            for row in (own, *others)
        ]
    assert decided == 895
