"""Small named clusters and queues, in the paper's units: cores and GB."""

from hypothesis import strategies as st

from slurm_sns.model import Alternative, Job, Node, Plan, Resources, Snapshot, gpus_of
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import MatchingParameters

GB = 1024


def node(name: str, cores: int = 4, gb: float = 32, free: tuple[int, float] | None = None) -> Node:
    free_cores, free_gb = free or (cores, gb)
    return Node(name, Resources(cores, int(gb * GB)), Resources(free_cores, int(free_gb * GB)))


def alternative(cores: int, gb: float, nodes: int = 1, *, exclusive: bool = False) -> Alternative:
    return Alternative(nodes=nodes, demand=Resources(cores, int(gb * GB)), exclusive=exclusive)


def job(identity: int, cores: int = 1, gb: float = 1, nodes: int = 1, **fields) -> Job:
    fields.setdefault("alternatives", (alternative(cores, gb, nodes),))
    fields.setdefault("order", (identity,))
    fields.setdefault("submit_s", identity)
    return Job(id=identity, **fields)


def part_of(draw, capacity: Resources) -> Resources:
    """Any part of these amounts, drawn resource by resource."""
    *amounts, gpus = capacity
    parts = ((name, draw(st.integers(0, count))) for name, count in gpus)
    return Resources(*(draw(st.integers(0, each)) for each in amounts), tuple(part for part in parts if part[1]))


def half_of(amount: Resources) -> Resources:
    *amounts, gpus = amount
    return Resources(*(each // 2 for each in amounts), tuple((name, count // 2) for name, count in gpus if count > 1))


#: What nodes have and jobs demand: mostly no GPUs, or some of any type, of one, of several, of one that is nowhere.
GPUS_OF_NODES = st.sampled_from([(), (), (), *map(gpus_of, ({"": 4}, {"a": 2}, {"a": 4, "b": 2}, {"b": 2, "": 1}))])
GPUS_OF_JOBS = st.sampled_from(
    [(), (), (), (), *map(gpus_of, ({"": 1}, {"": 2}, {"a": 1}, {"b": 1}, {"a": 1, "b": 1}, {"a": 1, "": 1}, {"c": 1}))]
)


def queue(*sizes: tuple[int, float], first: int = 1) -> tuple[Job, ...]:
    return tuple(job(first + at, cores, gb) for at, (cores, gb) in enumerate(sizes))


def plan(nodes, waiting, *portfolio: str, projects=None, **parameters) -> Plan:
    if portfolio:
        parameters["portfolio"] = portfolio
    policy = max_jobs(MatchingParameters(**parameters))
    return policy.plan(Snapshot(tuple(nodes), tuple(waiting), projects or {}))


def placed(of: Plan) -> dict[int, str]:
    """Job -> its node, or its nodes joined by +."""
    return {start.job_id: "+".join(start.nodes) for start in of.starts}


#: The switches above a node, the lowest first: one tree, two trees, a flat network, blocks, one node that is nowhere.
NETWORKS = (
    (("a", "top"), ("b", "top"), ("c", "middle", "top"), ("d", "middle", "top")),
    (("a", "left"), ("b", "left"), ("c", "right")),
    (("a",), ("b",), ("c",)),
    (("a", "ab", "all"), ("b", "ab", "all"), ("c", "cd", "all"), ()),
)


def regions():
    """Pairs of strategies: for the weight of a node, and for the switches above it; mostly all nodes are alike."""
    weights = st.sampled_from([st.just(1), st.just(1), st.sampled_from([1, 1, 60]), st.integers(0, 5)])
    switches = st.sampled_from([st.just(()), st.just(()), *(st.sampled_from(network) for network in NETWORKS)])
    return st.tuples(weights, switches)
