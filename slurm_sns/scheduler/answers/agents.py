"""What the agents say of their nodes, for status and queue."""

from collections.abc import Iterable, Mapping
from typing import Any

from slurm_sns.scheduler.observation import JobState, ObservedJob
from slurm_sns.wire.values import NodeState, RunId

#: The most nodes that a sentence about a job names.
MOST_NAMED = 3


def agents_data(states: Mapping[str, NodeState], wanted: Iterable[str]) -> dict[str, Any]:
    """Which agents are connected, as JSON values; `wanted` are the names of the nodes that need one.

    `away` are those of them without one. By node, `troubles` says what keeps an agent from working, and
    `unpartitioned` why an agent does not partition its node's cache.
    """
    names = sorted(wanted)
    return {
        "nodes": len(names),
        "connected": sum(name in states for name in names),
        "away": [name for name in names if name not in states],
        "troubles": {name: each.trouble for name, each in sorted(states.items()) if each.trouble},
        "unpartitioned": {name: why for name, each in sorted(states.items()) if (why := _unpartitioned(each))},
    }


def _unpartitioned(state: NodeState) -> str:
    if state.facts.mode != "partition":
        return "its agent only measures (sns agent --observe)"
    if state.facts.why_unpartitioned or state.facts.ways:
        return state.facts.why_unpartitioned
    return "its cache cannot be partitioned"


def whys_unpartitioned(states: Mapping[str, NodeState], jobs: Iterable[ObservedJob]) -> dict[int, str]:
    """Why running jobs do not have the ways that they were promised, on which nodes: by job id."""
    found: dict[int, str] = {}
    shared = {
        (name, there.run): there.why_shared for name, each in states.items() for there in each.jobs if there.why_shared
    }
    for job in jobs:
        if job.state is not JobState.RUNNING:
            continue
        run = RunId(job.id, job.restarts)
        by_why: dict[str, list[str]] = {}
        for name in job.allocated:
            why = shared.get((name, run), "")
            if not why and job.ways and name not in states:
                why = "no agent answers there"
            if why:
                by_why.setdefault(why, []).append(name)
        if by_why:
            found[job.id] = "; ".join(f"unpartitioned on {_named(names)}: {why}" for why, names in by_why.items())
    return found


def _named(names: list[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
