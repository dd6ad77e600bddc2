"""What settings require of each other: nodes in one entry, partitions with nodes, limits in the right order."""

from collections import Counter
from collections.abc import Iterable

from pydantic_core import PydanticCustomError

from slurm_sns.closids import FEWEST, KEPT
from slurm_sns.config.settings import Settings
from slurm_sns.submit.table import NodeShape, first_lease_s


def check(settings: Settings) -> None:
    """Refuse settings that contradict each other.

    Raises:
        PydanticCustomError: of the kind "contradiction"; its context holds the key (`where`) and the `words`.
    """
    _no_repeats(settings.partitions, ("partitions",))
    _no_repeats(settings.matching.portfolio, ("matching", "portfolio"))
    _no_repeats(tuple(map(str, settings.sns.scales)), ("sns", "scales"))
    if 1 not in settings.sns.scales:
        _refuse(("sns", "scales"), f"{list(settings.sns.scales)} lacks 1; valid: 1 and others, such as [1, 2, 4, 8]")
    _nodes_once(settings)
    _closids_are_for_jobs(settings)
    _partitions_have_nodes(settings)
    scheduler = settings.scheduler
    if scheduler.heartbeat_timeout_s < 2 * scheduler.interval_s:
        _refuse(
            ("scheduler", "heartbeat_timeout_s"),
            f"{scheduler.heartbeat_timeout_s} is too short; valid: twice interval_s ({scheduler.interval_s:g}) or more",
        )
    least_lease_s = 2 * first_lease_s(scheduler.heartbeat_timeout_s)
    if scheduler.gate_lease_s < least_lease_s:
        _refuse(
            ("scheduler", "gate_lease_s"),
            f"{scheduler.gate_lease_s} is too short; valid: at least {least_lease_s}, twice the first lease, which is "
            f"twice heartbeat_timeout_s ({scheduler.heartbeat_timeout_s}) or 60",
        )
    if scheduler.backoff_max_s < scheduler.backoff_s:
        _refuse(
            ("scheduler", "backoff_max_s"),
            f"{scheduler.backoff_max_s} is too short; valid: at least backoff_s ({scheduler.backoff_s})",
        )


def shapes(settings: Settings, partition: str) -> tuple[NodeShape, ...]:
    """The shapes of a partition's nodes, largest first, with how many nodes have each."""
    counts: Counter[tuple[int, int, int]] = Counter()
    for nodes in settings.nodes:
        if partition in nodes.partitions:
            counts[nodes.cores, nodes.cores * nodes.threads_per_core, nodes.memory_mb] += len(nodes.node_names)
    return tuple(sorted((NodeShape(*shape, count) for shape, count in counts.items()), reverse=True))


def _nodes_once(settings: Settings) -> None:
    owners: dict[str, int] = {}
    for index, nodes in enumerate(settings.nodes):
        for name in nodes.node_names:
            if name in owners:
                _refuse(
                    ("nodes", index, "names"),
                    f"node {name} is also in nodes[{owners[name]}]; valid: each node in one entry",
                )
            owners[name] = index


def _closids_are_for_jobs(settings: Settings) -> None:
    for index, nodes in enumerate(settings.nodes):
        if nodes.closids and not nodes.llc_ways:
            _refuse(
                ("nodes", index, "closids"),
                f"{nodes.closids} without llc_ways: only jobs with cache ways are counted; valid: 0, or also llc_ways",
            )
        if 0 < nodes.closids < FEWEST:
            _refuse(
                ("nodes", index, "closids"),
                f"{nodes.closids} leaves none for jobs: the root group and the group of the jobs without ways have "
                f"{KEPT}; valid: {FEWEST} or more, 0 for no limit",
            )


def _partitions_have_nodes(settings: Settings) -> None:
    managed = ", ".join(settings.partitions)
    for index, nodes in enumerate(settings.nodes):
        _no_repeats(nodes.partitions, ("nodes", index, "partitions"))
        for partition in nodes.partitions:
            if partition not in settings.partitions:
                _refuse(("nodes", index, "partitions"), f"partition '{partition}' is not managed; valid: {managed}")
    for index, partition in enumerate(settings.partitions):
        if not any(partition in nodes.partitions for nodes in settings.nodes):
            _refuse(("partitions", index), f"partition '{partition}' has no nodes; valid: a partition that nodes name")


def _no_repeats(names: Iterable[str], where: tuple[str | int, ...]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            _refuse(where, f"'{name}' is given {count} times; valid: each once")


def _refuse(where: tuple[str | int, ...], words: str) -> None:
    raise PydanticCustomError("contradiction", "{words}", {"where": where, "words": words})
