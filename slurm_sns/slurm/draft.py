"""A first sns.yaml for a site, from what its Slurm runs with. Pure."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

import yaml
from ClusterShell.NodeSet import NodeSet

from slurm_sns.errors import BadInput
from slurm_sns.gpus import written
from slurm_sns.scheduler.observation import ObservedNode
from slurm_sns.scheduler.settings import BY_SLURM, FAIR_NOW
from slurm_sns.slurm.check.files import SETTINGS
from slurm_sns.slurm.site import Site

_HEADER = "# Made by `sns draft` from the running Slurm. conf/sns.yaml explains these settings and all others.\n"


def draft(
    site: Site,
    words: Mapping[str, tuple[str, ...]],
    partitions: Iterable[str],
    *,
    llc_ways: int = 0,
    bandwidth_gbps: int = 0,
) -> str:
    """The text of sns.yaml in the mode observe, with these managed partitions; with none named, the default partition.

    `words` are the site's own words in slurm.conf, by option. `llc_ways` and `bandwidth_gbps` are the capacity of each
    node for which Slurm shows no such gres.

    Raises:
        BadInput: Slurm has no such partition, or no partition was named and Slurm has no default one.
    """
    managed = list(partitions) or [site.default_partition or ""]
    for name in managed:
        if name not in site.partitions:
            raise BadInput(f"partition {name!r}: Slurm has {', '.join(site.partitions)}; name one with --partition")
    nodes = [node for node in site.nodes if node.partitions & set(managed)]
    with_gres = any((llc_ways, bandwidth_gbps, *(each.capacity.ways for each in nodes)))
    settings = {
        "mode": "observe",
        "policy": "combined" if with_gres else "max-jobs",
        "partitions": managed,
        "default_partition": site.default_partition,
        "matching": {"queue_order": BY_SLURM if site.has_priorities else FAIR_NOW},
        "nodes": _entries(nodes, managed, llc_ways, bandwidth_gbps),
        "slurm": {
            "user": site.user,
            "memory_per_cpu_mb": site.memory_of(managed),
            **{SETTINGS[name]: list(said) for name, said in words.items() if said},
            **({} if site.keeps_accounts else {"accounting_tres": None}),
        },
    }
    return _HEADER + yaml.safe_dump(settings, sort_keys=False, default_flow_style=None, width=120)


def _entries(
    nodes: Iterable[ObservedNode], managed: list[str], llc_ways: int, bandwidth_gbps: int
) -> list[dict[str, Any]]:
    """One entry for all nodes with equal managed partitions and equal capacity."""

    def shape(node: ObservedNode) -> tuple[Any, ...]:
        has = node.capacity
        gres = (has.ways or llc_ways, has.bandwidth_gbps or bandwidth_gbps)
        own = [name for name in managed if name in node.partitions]
        return own, has.cores, node.threads_per_core, has.memory_mb, *gres, written(has.gpus)

    names = ("partitions", "cores", "threads_per_core", "memory_mb", "llc_ways", "bandwidth_gbps", "gpus")
    return [
        {
            "names": str(NodeSet.fromlist([node.name for node in alike])),
            **{name: value for name, value in zip(names, values, strict=True) if value != ""},
        }
        for values, alike in groupby(sorted(nodes, key=shape), shape)
    ]
