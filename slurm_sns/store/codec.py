"""Snapshots as bytes and back: JSON in zlib, lists instead of objects where there are many of them.

The format is our own store's only; it is versioned, and an unknown version is refused rather than guessed.
"""

import json
import zlib
from typing import Any

from slurm_sns.errors import SnsError
from slurm_sns.model import Alternative, Job, Node, Project, Resources, Snapshot

VERSION = 1


def pack(snapshot: Snapshot) -> bytes:
    """The snapshot as bytes. Sets of allowed nodes that jobs share are written once."""
    allowed: dict[frozenset[str] | None, int] = {}
    for job in snapshot.waiting:
        allowed.setdefault(job.allowed, len(allowed))
    value = {
        "version": VERSION,
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
            ]
            for job in snapshot.waiting
        ],
        "projects": {name: [project.share, project.used] for name, project in snapshot.projects.items()},
        "unavailable": dict(snapshot.unavailable),
    }
    return zlib.compress(json.dumps(value, separators=(",", ":")).encode(), level=1)


def unpack(data: bytes) -> Snapshot:
    """The snapshot that `pack` wrote.

    Raises:
        SnsError: the bytes are of another version, or damaged.
    """
    try:
        value: dict[str, Any] = json.loads(zlib.decompress(data))
        if value["version"] != VERSION:
            raise SnsError(f"a recorded snapshot is of version {value['version']}; this is version {VERSION}")
        allowed = [None if names is None else frozenset(names) for names in value["allowed"]]
        return Snapshot(
            nodes=tuple(Node(name, Resources(*capacity), Resources(*free)) for name, capacity, free in value["nodes"]),
            waiting=tuple(_job(row, allowed) for row in value["waiting"]),
            projects={name: Project(share, Resources(*used)) for name, (share, used) in value["projects"].items()},
            unavailable=value["unavailable"],
        )
    except (zlib.error, ValueError, KeyError, TypeError, IndexError, AttributeError) as problem:
        raise SnsError(f"a recorded snapshot cannot be read: {problem}") from None


def _job(row: list[Any], allowed: list[frozenset[str] | None]) -> Job:
    # Rows written before there was a limit of withholding have no last field.
    job_id, submit_s, ways, order, project, heuristic, allowed_index, over_aged, withholds = (*row, True)[:9]
    alternatives = tuple(
        Alternative(nodes, Resources(*demand), tasks_per_node, scale, slowdown, exclusive)
        for nodes, demand, tasks_per_node, scale, slowdown, exclusive in ways
    )
    return Job(
        job_id,
        submit_s,
        alternatives,
        tuple(order),
        project,
        heuristic,
        allowed[allowed_index],
        bool(over_aged),
        bool(withholds),
    )
