"""Reads sns.yaml strictly: a file with an unknown, mistyped or impossible setting is refused in one line that says why.

`load` reads the file and gives an immutable `Config`, which makes the plain values that policies and the submit filter
take.
"""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Self, TypeVar

from pydantic import ValidationError, model_validator
from pydantic_core import PydanticCustomError

from slurm_sns.closids import FEWEST, KEPT
from slurm_sns.config import problems, yaml_text
from slurm_sns.config.policy_names import HEURISTICS
from slurm_sns.config.settings import NodeEntry, SnsYaml, parameters_from
from slurm_sns.errors import BadInput
from slurm_sns.policies.base import Policy
from slurm_sns.policies.by_partition import ByPartition
from slurm_sns.policies.dfrs.shares import CoreSharing
from slurm_sns.policies.registry import specification
from slurm_sns.sharing.rules import SharingRules
from slurm_sns.submit.table import FilterTable, NodeShape, first_lease_s

__all__ = ["Config", "NodeEntry", "load"]

_Parameters = TypeVar("_Parameters")


class Config(SnsYaml):
    """A configuration whose settings also agree with each other."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        _check(self)
        return self

    @property
    def database_url(self) -> str:
        """The store's URL: as given, else SQLite in the state directory."""
        return self.store.url or f"sqlite:///{self.paths.state_dir / 'sns.db'}"

    def parameters(self, kind: type[_Parameters]) -> _Parameters:
        """A policy's parameters of this kind, with the values of the file."""
        return parameters_from(kind, self)

    def the_policy(self) -> Policy:
        """The configured policy; where some partitions share cores, with the one that plans these."""
        chosen = specification(self.policy)
        policy = chosen.policy(*map(self.parameters, chosen.parameters))
        rules = self.sharing_rules
        if rules is None:
            return policy
        return ByPartition(
            policy, CoreSharing(rules.most_to_a_core, pauses=rules.pauses and self.mode == "enforce"), rules.partitions
        )

    @property
    def sharing_rules(self) -> SharingRules | None:
        """The rules of the partitions that share cores; None where no partition does."""
        told = self.sharing
        if not told.partitions:
            return None
        return SharingRules(
            partitions=frozenset(told.partitions),
            most_to_a_core=told.most_to_a_core,
            caps=told.cpu == "caps",
            pauses=told.pause == "restartable",
            protect_s=told.protect_s,
            max_restarts=told.max_restarts,
            signal="" if told.signal == "none" else told.signal,
            grace_s=told.grace_s,
            most_lost=told.most_lost,
            most_extension=told.most_extension,
        )

    @property
    def places_gpus(self) -> bool:
        """Whether jobs that ask for GPUs are placed: some node is said to have any."""
        return any(nodes.gpus for nodes in self.nodes)

    def filter_table(self, generated_from: str = "sns.yaml") -> FilterTable:
        """The table by which the submit filter decides."""
        return FilterTable(
            mode=self.mode,
            partitions={partition: _shapes(self, partition) for partition in self.partitions},
            default_partition=self.default_partition or "",
            heuristics=HEURISTICS,
            default_memory_per_cpu_mb=self.slurm.memory_per_cpu_mb or 0,
            heartbeat_path=str(self.paths.heartbeat),
            heartbeat_timeout_s=self.scheduler.heartbeat_timeout_s,
            kill_switch_path=str(self.paths.kill_switch),
            sharing=self.sharing.partitions,
            places_gpus=self.places_gpus,
            tells_users=self.submit.tells_users,
            generated_from=generated_from,
        )


def load(path: Path) -> Config:
    """The configuration in that file.

    Raises:
        BadInput: it cannot be read, is not YAML, or a setting is unknown, missing, mistyped or impossible. One line.
    """
    content, lines = yaml_text.read(path)
    if not isinstance(content, dict):
        raise BadInput(f"{path}, line 1: not settings; valid: {', '.join(Config.model_fields)}")
    try:
        # Through JSON, where pydantic's strict mode accepts a list for a tuple and a text for a path, and nothing else.
        config: Config = Config.model_validate_json(json.dumps(content))
    except ValidationError as problem:
        raise BadInput(problems.describe(problem, Config, path, lines)) from None
    return config


def _check(settings: SnsYaml) -> None:
    """Refuse settings that contradict each other.

    Raises:
        PydanticCustomError: of the kind "contradiction"; its context holds the key (`where`) and the `words`.
    """
    _no_repeats(settings.partitions, ("partitions",))
    _no_repeats(settings.matching.portfolio or (), ("matching", "portfolio"))
    _no_repeats(tuple(map(str, settings.spread_n_share.scales)), ("spread_n_share", "scales"))
    if 1 not in settings.spread_n_share.scales:
        _refuse(
            ("spread_n_share", "scales"),
            f"{list(settings.spread_n_share.scales)} lacks 1; valid: 1 and others, such as [1, 2, 4, 8]",
        )
    _nodes_once(settings)
    _closids_are_for_jobs(settings)
    _partitions_have_nodes(settings)
    _pools_are_managed(settings)
    _shared_alone(settings)
    _viewers_are_named(settings)
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


def _shapes(settings: SnsYaml, partition: str) -> tuple[NodeShape, ...]:
    """The shapes of a partition's nodes, largest first, with how many nodes have each."""
    counts: Counter[tuple[int, int, int]] = Counter()
    for nodes in settings.nodes:
        if partition in nodes.partitions:
            counts[nodes.cores, nodes.cores * nodes.threads_per_core, nodes.memory_mb] += len(nodes.node_names)
    return tuple(sorted((NodeShape(*shape, count) for shape, count in counts.items()), reverse=True))


def _nodes_once(settings: SnsYaml) -> None:
    owners: dict[str, int] = {}
    for index, nodes in enumerate(settings.nodes):
        for name in nodes.node_names:
            if name in owners:
                _refuse(
                    ("nodes", index, "names"),
                    f"node {name} is also in nodes[{owners[name]}]; valid: each node in one entry",
                )
            owners[name] = index


def _closids_are_for_jobs(settings: SnsYaml) -> None:
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


def _partitions_have_nodes(settings: SnsYaml) -> None:
    managed = ", ".join(settings.partitions)
    for index, nodes in enumerate(settings.nodes):
        _no_repeats(nodes.partitions, ("nodes", index, "partitions"))
        for partition in nodes.partitions:
            if partition not in settings.partitions:
                _refuse(("nodes", index, "partitions"), f"partition '{partition}' is not managed; valid: {managed}")
    for index, partition in enumerate(settings.partitions):
        if not any(partition in nodes.partitions for nodes in settings.nodes):
            _refuse(("partitions", index), f"partition '{partition}' has no nodes; valid: a partition that nodes name")


def _pools_are_managed(settings: SnsYaml) -> None:
    pools = settings.rescheduling.pools
    for index, pool in enumerate(pools):
        for partition in pool:
            if partition not in settings.partitions:
                valid = ", ".join(settings.partitions)
                _refuse(("rescheduling", "pools", index), f"partition '{partition}' is not managed; valid: {valid}")
    _no_repeats((partition for pool in pools for partition in pool), ("rescheduling", "pools"))


def _viewers_are_named(settings: SnsYaml) -> None:
    """Refuse half of what a proxy needs to name a viewer: everybody would be anonymous, and nobody would know why."""
    web = settings.web
    if web.user_header and not web.trusted_addresses:
        _refuse(("web", "user_header"), f"{web.user_header} without trusted_addresses; valid: both, or null")
    for name in ("trusted_addresses", "admins"):
        if getattr(web, name) and not web.user_header:
            _refuse(("web", name), "without user_header nobody is named; valid: both, or []")


def _shared_alone(settings: SnsYaml) -> None:
    """Refuse partitions that cannot share cores.

    On a node whose cores jobs share, Slurm starts no job of a partition that does not share it (26.05: seen).
    """
    shared = settings.sharing.partitions
    _no_repeats(shared, ("sharing", "partitions"))
    for index, partition in enumerate(shared):
        where = ("sharing", "partitions", index)
        if partition not in settings.partitions:
            _refuse(where, f"partition '{partition}' is not managed; valid: {', '.join(settings.partitions)}")
        if any(partition in pool for pool in settings.rescheduling.pools):
            _refuse(where, f"'{partition}' is also in rescheduling.pools; valid: a partition in one of the two")
    if shared and settings.agents.controller is None:
        _refuse(
            ("sharing", "partitions"),
            f"[{', '.join(shared)}] without agents, which share the cores; valid: [], or also agents.controller",
        )
    for index, nodes in enumerate(settings.nodes):
        others = set(nodes.partitions).difference(shared)
        if len(nodes.partitions) > 1 and len(others) < len(nodes.partitions):
            _refuse(
                ("nodes", index, "partitions"),
                f"[{', '.join(nodes.partitions)}], and {nodes.names} share cores by sharing.partitions; "
                "valid: one partition",
            )


def _no_repeats(names: Iterable[str], where: tuple[str | int, ...]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            _refuse(where, f"'{name}' is given {count} times; valid: each once")


def _refuse(where: tuple[str | int, ...], words: str) -> None:
    raise PydanticCustomError("contradiction", "{words}", {"where": where, "words": words})
