"""Builders of small live cases: nodes, jobs with our mark, records, and the observation and situation made of them.

Nodes have 28 cores and 128,000 MiB, as on the mini cluster.
"""

from dataclasses import replace

from slurm_sns.model import Resources
from slurm_sns.scheduler.cycle_input import Situation, read_situation
from slurm_sns.scheduler.observe.observed import JobState, Observation, ObservedJob, ObservedNode
from slurm_sns.scheduler.observe.records import JobRecord, Stage
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.backlog_claims import NO_BACKLOG
from slurm_sns.submit import mark

NOW = 100_000.0
SUBMIT = 99_000
ALICE, BOB = 2001, 2002
ENFORCE = Settings(mode="enforce", partitions=frozenset({"main", "small", "urgent"}))


def node(name: str, cores: int = 28, memory_mb: int = 128_000, *, taken: tuple[int, int] = (0, 0), **fields):
    fields.setdefault("partitions", frozenset({"small" if name.startswith("s") else "main"}))
    return ObservedNode(name, capacity=Resources(cores, memory_mb), allocated=Resources(*taken), **fields)


def job(identity: int, **fields) -> ObservedJob:
    """A held job of ours, submitted with -n1; `fields` change it."""
    asked = ObservedJob(
        id=identity,
        user_id=ALICE,
        user="alice",
        submit_s=SUBMIT,
        state=JobState.PENDING,
        account="physics",
        partitions=("main",),
        extra="sns:1",
        nodes_min=1,
        nodes_max=1,
        memory_per_cpu_mb=1000,
        walltime_s=3600,
    )
    return rewritten(asked, **fields)


def rewritten(of: ObservedJob, **fields) -> ObservedJob:
    """The job with these fields, and with the hints that its `extra` contains."""
    changed = replace(of, **fields)
    return changed if "hints" in fields else replace(changed, hints=mark.read(changed.extra))


def tasks(identity: int, number: int, **fields) -> ObservedJob:
    """A held job of ours, submitted with -n only."""
    return job(identity, tasks=number, cpus=number, nodes_max=1 if number == 1 else None, **fields)


def pinned(identity: int, *nodes: str, **fields) -> ObservedJob:
    """A job that we placed and that Slurm has not started yet."""
    return job(identity, **{"priority": 1500, "nice": -60_000, "pinned_to": nodes, **fields})


def running(identity: int, *nodes: str, **fields) -> ObservedJob:
    shown = {"state": JobState.RUNNING, "priority": 1500, "pinned_to": nodes, "allocated": nodes}
    return job(identity, **{**shown, **fields})


def record(identity: int, stage: Stage = Stage.PLACED, **fields) -> JobRecord:
    nodes = () if stage is Stage.HELD else ("c1",)
    given = {"job_id": identity, "submit_s": SUBMIT, "stage": stage, "nodes": nodes, "placed_s": NOW - 1}
    return JobRecord(**{**given, **fields})


def look(*jobs: ObservedJob, nodes=None, **fields) -> Observation:
    return Observation(jobs, (node("c1"), node("c2")) if nodes is None else tuple(nodes), **fields)


def situation(
    observation: Observation, *records: JobRecord, settings: Settings = ENFORCE, now_s=NOW, before=NO_BACKLOG
) -> Situation:
    return read_situation(observation, {each.job_id: each for each in records}, settings, now_s, backlog_before=before)


def planned(of: Situation) -> list[int]:
    return [each.id for each in of.snapshot.waiting]


def free(of: Situation) -> dict[str, tuple[int, int]]:
    return {each.name: (each.free.cores, each.free.memory_mb) for each in of.snapshot.nodes}
