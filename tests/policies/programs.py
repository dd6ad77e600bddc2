"""Small profiles, requests and nodes of the Spread-n-Share paper's kind."""

from functools import cache
from pathlib import Path

from slurm_sns.config.profiles_yaml import read_profiles
from slurm_sns.model import Alternative, Job, Node, Resources, Snapshot
from slurm_sns.policies.base import NodeType, Request
from slurm_sns.policies.placement.request import node_types
from slurm_sns.policies.profile import Program, Provenance, Provenances, Run
from slurm_sns.policies.spread_n_share.parameters import REPRODUCTION
from slurm_sns.policies.spread_n_share.scales import choose

GB = 1024
ASSUMED = Provenances(*[Provenance.ASSUMED] * 3)
PAPER_NODE = Resources(28, 128 * GB, 20, 118)
SHIPPED = Path(__file__).parents[2] / "conf" / "profiles" / "spread-n-share.yaml"


@cache
def paper_programs() -> dict[str, Program]:
    return {program.name: program for program in read_profiles(SHIPPED)}


def run(scale=1, time_s=100.0, *, ways=(2, 20), ipc=(0.5, 1.0), bandwidth=(10.0, 10.0), processes=16) -> Run:
    return Run(processes, scale, time_s, tuple(ways), tuple(ipc), tuple(bandwidth), ASSUMED)


def program(times, name="p", max_scale=None, **curves) -> Program:
    """A program by its run times at each scale, with the same curves at all of them."""
    return Program(name, tuple(run(scale, time_s, **curves) for scale, time_s in times.items()), "", max_scale)


def paper_nodes(count: int, free: dict[str, Resources] | None = None) -> tuple[Node, ...]:
    names = [f"n{at}" for at in range(count)]
    return tuple(Node(name, PAPER_NODE, (free or {}).get(name, PAPER_NODE)) for name in names)


def types(count: int = 8) -> tuple[NodeType, ...]:
    return (NodeType(PAPER_NODE, count),)


def types_of(nodes) -> tuple[NodeType, ...]:
    return node_types(node.capacity for node in nodes)


def alternatives_of(of, tasks=16, nodes=None, parameters=REPRODUCTION, **request) -> tuple[Alternative, ...]:
    request.setdefault("memory_per_node_mb", GB)
    return choose(Request(tasks, **request), of, nodes or types(), parameters).alternatives


def snapshot(nodes, *programs, tasks=16, parameters=REPRODUCTION, **fields) -> Snapshot:
    """A queue of one job for each program, None for a job without profile."""
    waiting = tuple(
        Job(
            at,
            at,
            alternatives_of(each, tasks, types_of(nodes), parameters),
            order=(at,),
            **fields,
        )
        for at, each in enumerate(programs, start=1)
    )
    return Snapshot(tuple(nodes), waiting)


def summary(plan) -> dict[int, tuple]:
    """Job -> (scale, nodes)."""
    return {start.job_id: (start.alternative.scale, start.nodes) for start in plan.starts}
