"""Snapshots as bytes and back: JSON in zlib. Nodes, jobs and pools, of which there are many, are lists, not objects.

Only our own store uses the format. It has a version, and an unknown version is refused rather than guessed. Version 1
knew nodes, waiting jobs and projects only. Seconds are numbers; a Fraction is a list of its numerator and denominator.
"""

import json
import zlib
from fractions import Fraction
from typing import Any

from slurm_sns.errors import SnsError
from slurm_sns.model import (
    ActiveJob,
    ActiveState,
    Alternative,
    Job,
    JobPool,
    Node,
    Project,
    QueueStatistics,
    Resources,
    Seconds,
    Snapshot,
)
from slurm_sns.policies.base import HistoryFormat
from slurm_sns.scheduler.history import history_of, text_of

VERSION = 2
#: The keys that version 2 added, with the values that a snapshot of version 1 gets for them.
SINCE_VERSION_2: dict[str, Any] = {"now_s": 0, "active": [], "pools": [], "history": None}
#: Values of the fields that an older row of a waiting job lacks at its end: `withholds`, then `pool` and `priority` of
#: version 2.
LATER_FIELDS = (True, "", 0)
#: The number of fields that every row of a waiting job has.
FIRST_FIELDS = 8


def pack(snapshot: Snapshot, form: HistoryFormat | None = None) -> bytes:
    """The snapshot as bytes. Its history is written in the given form; without a form it is left out.

    A set of allowed nodes that several jobs share is written once.

    Raises:
        ValueError: the history is not of the form's type.
    """
    allowed: dict[frozenset[str] | None, int] = {}
    for job in snapshot.waiting:
        allowed.setdefault(job.allowed, len(allowed))
    value = {
        "version": VERSION,
        "now_s": snapshot.now_s,
        "nodes": [[node.name, node.capacity, node.free] for node in snapshot.nodes],
        "allowed": [None if names is None else sorted(names) for names in allowed],
        "waiting": [
            [
                job.id,
                job.submit_s,
                [[a.nodes, a.demand, a.tasks_per_node, a.scale, a.slowdown, a.exclusive] for a in job.alternatives],
                job.order,
                job.project,
                job.heuristic,
                allowed[job.allowed],
                job.over_aged,
                job.withholds,
                job.pool,
                job.priority,
            ]
            for job in snapshot.waiting
        ],
        "active": [
            [
                job.id,
                job.state,
                job.nodes,
                job.demand,
                job.since_s,
                job.submit_s,
                job.project,
                job.pool,
                job.priority,
                job.may_restart,
                job.cpu_share,
            ]
            for job in snapshot.active
        ],
        "pools": [
            [
                pool.name,
                pool.nodes,
                pool.statistics.samples,
                pool.statistics.mean_wait_s,
                pool.statistics.mean_suspended_s,
            ]
            for pool in snapshot.pools
        ],
        "projects": {name: [project.share, project.used] for name, project in snapshot.projects.items()},
        "unavailable": dict(snapshot.unavailable),
        "history": None if form is None or snapshot.history is None else _packed_history(snapshot.history, form),
    }
    text = json.dumps(value, separators=(",", ":"), default=_fraction)
    return zlib.compress(text.encode(), level=1)


def unpack(data: bytes, form: HistoryFormat | None = None) -> Snapshot:
    """The snapshot that `pack` wrote.

    Its history is left out if it is damaged, or of another type or version than the form.

    Raises:
        SnsError: the bytes are of an unknown version, or damaged.
    """
    try:
        value: dict[str, Any] = json.loads(zlib.decompress(data))
        if value["version"] == 1:
            value = {**SINCE_VERSION_2, **value}
        elif value["version"] != VERSION:
            raise SnsError(
                f"a recorded snapshot is of version {value['version']}; this slurm_sns reads versions 1 and {VERSION}"
            )
        allowed = [None if names is None else frozenset(names) for names in value["allowed"]]
        return Snapshot(
            nodes=tuple(Node(name, Resources(*capacity), Resources(*free)) for name, capacity, free in value["nodes"]),
            waiting=tuple(_job(row, allowed) for row in value["waiting"]),
            projects={name: Project(share, Resources(*used)) for name, (share, used) in value["projects"].items()},
            unavailable=value["unavailable"],
            now_s=_seconds(value["now_s"]),
            active=tuple(_active(row) for row in value["active"]),
            pools=tuple(
                JobPool(name, tuple(nodes), QueueStatistics(*statistics)) for name, nodes, *statistics in value["pools"]
            ),
            history=_history(value["history"], form),
        )
    except (zlib.error, ValueError, KeyError, TypeError, IndexError, AttributeError, ZeroDivisionError) as problem:
        raise SnsError(f"a recorded snapshot cannot be read: {problem}") from None


def _job(row: list[Any], allowed: list[frozenset[str] | None]) -> Job:
    complete = (*row, *LATER_FIELDS[len(row) - FIRST_FIELDS :]) if len(row) >= FIRST_FIELDS else row
    job_id, submit_s, choices, order, project, heuristic, allowed_index, over_aged, withholds, pool, priority = complete
    alternatives = tuple(
        Alternative(nodes, Resources(*demand), tasks_per_node, scale, slowdown, exclusive)
        for nodes, demand, tasks_per_node, scale, slowdown, exclusive in choices
    )
    return Job(
        job_id,
        _seconds(submit_s),
        alternatives,
        tuple(order),
        project,
        heuristic,
        allowed[allowed_index],
        bool(over_aged),
        bool(withholds),
        pool,
        priority,
    )


def _active(row: list[Any]) -> ActiveJob:
    job_id, state, nodes, demand, since_s, submit_s, project, pool, priority, may_restart, cpu_share = row
    return ActiveJob(
        job_id,
        ActiveState(state),
        tuple(nodes),
        Resources(*demand),
        _seconds(since_s),
        _seconds(submit_s),
        project,
        pool,
        priority,
        bool(may_restart),
        _seconds(cpu_share),
    )


def _fraction(value: object) -> list[int]:
    """A Fraction as a list, for `json.dumps`, which cannot write it."""
    if isinstance(value, Fraction):
        return [value.numerator, value.denominator]
    raise TypeError(f"{value!r} is no value of a snapshot")


def _seconds(value: Any) -> Seconds:
    if isinstance(value, int | float):
        return value
    numerator, denominator = value
    return Fraction(numerator, denominator)


def _packed_history(history: object, form: HistoryFormat) -> list[Any]:
    # With the type's name, because the recorded cycle may be that of another policy with the same version.
    return [form.type.__name__, form.version, text_of(form, history)]


def _history(packed: list[Any] | None, form: HistoryFormat | None) -> object | None:
    if packed is None or form is None:
        return None
    name, version, text = packed
    if (name, version) != (form.type.__name__, form.version):
        return None
    try:
        return history_of(form, text)
    except ValueError:
        return None
