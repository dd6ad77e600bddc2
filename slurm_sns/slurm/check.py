"""The configuration against the running Slurm: what differs, and the line that mends it. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from slurm_sns.config import Config
from slurm_sns.model import Resources
from slurm_sns.slurm.site import Site


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: whether it is right, what it is, and what to do where it is not."""

    ok: bool
    what: str
    advice: str = ""


def expected_options(fragment: str) -> dict[str, tuple[str, ...]]:
    """`Name=a,b` lines of the rendered slurm.conf fragment, as words."""
    lines = (line for line in fragment.splitlines() if line and not line.startswith("#") and "=" in line)
    return {name: tuple(words.split(",")) for name, words in (line.split("=", 1) for line in lines)}


def check(config: Config, site: Site, expected: Mapping[str, tuple[str, ...]]) -> Iterator[Finding]:
    """Every finding, in the order in which an admin would mend them."""
    yield Finding(
        site.user == config.slurm.user,
        f"SlurmUser is {site.user}",
        f"sns.yaml, slurm: user: {site.user}",
    )
    yield from _options(site, expected)
    yield from _memory(config, site)
    yield from _partitions(config, site)
    yield from _nodes(config, site)


def _options(site: Site, expected: Mapping[str, tuple[str, ...]]) -> Iterator[Finding]:
    for name, words in expected.items():
        present = {word.lower() for word in site.options.get(name, ())}
        missing = [word for word in words if word.lower() not in present]
        yield Finding(
            not missing,
            f"slurm.conf {name}" + (f" lacks {','.join(missing)}" if missing else f" has {','.join(words)}"),
            f"include the rendered slurm.conf at the end of the site's: {name}={','.join(words)}",
        )


def _memory(config: Config, site: Site) -> Iterator[Finding]:
    said = config.slurm.memory_per_cpu_mb
    yield Finding(
        said == site.memory_per_cpu_mb,
        f"DefMemPerCPU is {site.memory_per_cpu_mb or 'unset'} in Slurm, {said or 'unset'} in sns.yaml",
        f"sns.yaml, slurm: memory_per_cpu_mb: {site.memory_per_cpu_mb or 'null'}",
    )
    if site.memory_per_cpu_mb is None:
        yield Finding(
            ok=False,
            what="no DefMemPerCPU: a job without --mem takes a whole node's memory, and no job can share its node",
            advice="slurm.conf: DefMemPerCPU=<RealMemory / CPUs>",
        )


def _partitions(config: Config, site: Site) -> Iterator[Finding]:
    for name in config.partitions:
        yield Finding(
            name in site.partitions,
            f"partition {name}",
            f"sns.yaml, partitions: Slurm has {', '.join(site.partitions)}",
        )
    yield Finding(
        config.default_partition == site.default_partition,
        f"default partition {site.default_partition or 'none'} in Slurm, {config.default_partition or 'none'} here",
        f"sns.yaml: default_partition: {site.default_partition or 'null'}",
    )


def _nodes(config: Config, site: Site) -> Iterator[Finding]:
    managed = {node.name: node for node in site.nodes if node.partitions & set(config.partitions)}
    described = {name: nodes for nodes in config.nodes for name in nodes.node_names}
    for name in sorted(managed.keys() | described.keys()):
        if name not in described:
            yield Finding(ok=False, what=f"node {name} is in no entry", advice=f"sns.yaml, nodes: add {name}")
            continue
        if name not in managed:
            advice = "sns.yaml, nodes: take it out, or add it to a managed partition in slurm.conf"
            yield Finding(ok=False, what=f"node {name} is in no managed partition of Slurm", advice=advice)
            continue
        said = described[name]
        shape = Resources(said.cores, said.memory_mb, said.llc_ways, said.bandwidth_gbps)
        runs = managed[name].capacity
        differing = [
            f"{field} {there} in Slurm, {here} here"
            for field, there, here in zip(Resources._fields, runs, shape, strict=True)
            if there != here
        ]
        yield Finding(
            not differing,
            f"node {name}" + (f": {'; '.join(differing)}" if differing else ""),
            f"make sns.yaml (nodes: {said.names}) and slurm.conf (NodeName, Gres=) say the same",
        )
