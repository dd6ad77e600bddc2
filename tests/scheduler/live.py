"""Builders of small live cases: nodes, jobs with our record, tries, and the observation and situation made of them.

Nodes have 28 cores and 128,000 MiB, as on the mini cluster.
"""

from dataclasses import replace
from typing import Any

from default_settings import SETTINGS

from slurm_sns.model import Alternative, Resources
from slurm_sns.scheduler.gate.failed_placements import Try
from slurm_sns.scheduler.gate.orders import BOOST, LEAST_BOOSTED, OPEN, GateOrder
from slurm_sns.scheduler.observation import JobState, Observation, ObservedJob, ObservedNode
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.backlog_claims import NO_BACKLOG
from slurm_sns.scheduler.snapshot.geometry import geometry as geometry_on_kinds
from slurm_sns.scheduler.snapshot.node_sets import kinds_of
from slurm_sns.scheduler.snapshot.situation import Carried, Situation, read_situation
from slurm_sns.sharing.rules import SharingRules
from slurm_sns.submit import record as records
from slurm_sns.submit.record import Record

NOW = 100_000.0
SUBMIT = 99_000
GATE = int(NOW) + 7000
ALICE, BOB = 2001, 2002
ENFORCE = replace(SETTINGS, partitions=frozenset({"main", "small", "urgent"}))
#: The rules where the jobs of partition small share cores.
SHARING = SharingRules(frozenset({"small"}), 2, False, False, 600, 5, "USR1", 60, 0.1, 4.0)
#: The fields of a job that is not ours.
FOREIGN: dict[str, Any] = {"admin_comment": "", "begin_s": 0}
#: Those of a job that the filter has marked in the mode advise, and of one that we have left to Slurm.
ADVISED: dict[str, Any] = {"admin_comment": "sns:2 free=advise", "begin_s": 0}
SLURMS: dict[str, Any] = {"admin_comment": "sns:2 free=clean-stop", "begin_s": 0}
HELD: dict[str, Any] = {"priority": 0, "reason": "JobHeldUser"}


def node(name: str, cores: int = 28, memory_mb: int = 128_000, *, taken: tuple[int, int] = (0, 0), **fields):
    fields.setdefault("partitions", frozenset({"small" if name.startswith("s") else "main"}))
    return ObservedNode(name, capacity=Resources(cores, memory_mb), allocated=Resources(*taken), **fields)


def comment(words: str = "", **noted) -> str:
    """An AdminComment with these hints and these fields of a record."""
    hints = records.read(f"sns:2 {words}".strip()).hints
    return records.written("", Record(hints, **{"gate_s": GATE, **noted}))


def job(identity: int, words: str = "", **fields) -> ObservedJob:
    """A gated job of ours, submitted with -n1; `words` are its hints, `fields` change it."""
    asked = ObservedJob(
        id=identity,
        user_id=ALICE,
        user="alice",
        submit_s=SUBMIT,
        state=JobState.PENDING,
        priority=1500,
        account="physics",
        partitions=("main",),
        admin_comment=comment(words),
        begin_s=GATE,
        nodes_min=1,
        nodes_max=1,
        memory_per_cpu_mb=1000,
        walltime_s=3600,
    )
    return replace(asked, **fields)


def tasks(identity: int, number: int, words: str = "", **fields) -> ObservedJob:
    """A gated job of ours, submitted with -n only."""
    return job(identity, words, tasks=number, cpus=number, nodes_max=1 if number == 1 else None, **fields)


def pinned(identity: int, *nodes: str, words: str = "", noted=None, **fields) -> ObservedJob:
    """A job that we placed a second ago and that Slurm has not started yet; `noted` is more of its record."""
    placed_s = int(NOW) - 1
    mark = comment(words, **{"nodes": nodes, "placed_s": placed_s, **(noted or {})})
    shown = {"admin_comment": mark, "begin_s": placed_s, "priority": 1500 + BOOST, "pinned_to": nodes}
    return job(identity, **{**shown, **fields})


def running(identity: int, *nodes: str, **fields) -> ObservedJob:
    return pinned(identity, *nodes, **{"state": JobState.RUNNING, "priority": 1500, "allocated": nodes, **fields})


def tried(identity: int, **fields) -> Try:
    """What is remembered of a job whose last placement failed."""
    return Try(**{"job_id": identity, "submit_s": SUBMIT, "failures": 1, "tried_s": NOW - 1, **fields})


def applied(of: ObservedJob, order: GateOrder, now_s: float) -> ObservedJob:
    """The job as slurmctld has it after this order (`_update_job` in job_mgr.c, as far as orders use it)."""
    changes: dict[str, Any] = {"admin_comment": order.admin_comment, "extra": order.extra, "pinned_to": order.nodes}
    changes["partitions"] = order.partitions
    if order.begin_s is not None:
        changes["begin_s"] = max(order.begin_s, int(now_s))
        assert order.begin_s in (OPEN, changes["begin_s"])
    if order.gres is not None:
        changes |= {"ways": order.gres[0], "bandwidth_gbps": order.gres[1], "has_other_gres": False}
    if order.site_factor is not None and of.priority > 0:
        changes["priority"] = order.site_factor + of.priority - (BOOST if of.priority >= LEAST_BOOSTED else 0)
    changes = {name: value for name, value in changes.items() if value is not None}
    if order.limit_s is not None:
        changes["walltime_s"] = order.limit_s
    if order.tasks_per_node is not None:
        changes |= {"tasks_per_node": order.tasks_per_node or None, "tasks": order.tasks}
    if order.memory is not None:
        by_cpu, mb = order.memory.is_by_cpu, order.memory.mb
        changes |= {"memory_per_cpu_mb": mb if by_cpu else None, "memory_per_node_mb": None if by_cpu else mb}
    return replace(of, **changes)


def look(*jobs: ObservedJob, nodes=None, **fields) -> Observation:
    return Observation(jobs, (node("c1"), node("c2")) if nodes is None else tuple(nodes), **fields)


def situation(
    observation: Observation, *tries: Try, settings: Settings = ENFORCE, now_s=NOW, before=NO_BACKLOG, **more
) -> Situation:
    known = {each.job_id: each for each in tries}
    return read_situation(observation, known, settings, now_s, carried=Carried(backlog=before), **more)


def geometry(of: ObservedJob, nodes) -> Alternative:
    """The alternative of the job with its own geometry, on some of these nodes."""
    return geometry_on_kinds(of, kinds_of(nodes))


def planned(of: Situation) -> list[int]:
    return [each.id for each in of.snapshot.waiting]


def sent(of: Situation) -> dict[int, str]:
    """The kinds of the orders of the state table, by job id."""
    return {order.job_id: order.kind.value for order, _ in of.follow_ups}


def free(of: Situation) -> dict[str, tuple[int, int]]:
    return {each.name: (each.free.cores, each.free.memory_mb) for each in of.snapshot.nodes}
