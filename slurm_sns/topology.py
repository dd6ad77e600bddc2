"""How Slurm says that nodes are connected: topology.conf for trees and blocks, or topology.yaml with one topology.

slurmctld does not show this through pyslurm, so the files are read, as it reads them itself when it starts or is
reconfigured. A file that was changed since is read before slurmctld reads it; Slurm checks every placement again.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import takewhile
from pathlib import Path

import yaml

from slurm_sns.conf_text import Line, options, read
from slurm_sns.errors import BadInput
from slurm_sns.node_lists import NodeLists

CONF, YAML = "topology.conf", "topology.yaml"
TREE, BLOCK = "topology/tree", "topology/block"
#: What TopologyPlugin is where all nodes are connected alike.
_FLAT = frozenset({"", "topology/flat", "topology/default", "topology/none"})
#: Longest text of an error, in characters.
MOST_CHARACTERS = 200
#: What joins the nodes of all blocks.
ALL_BLOCKS = "all blocks"

_names = NodeLists().names


@dataclass(frozen=True, slots=True)
class Topology:
    """How the nodes are connected: of each node the switches above it, by name, the lowest first.

    Without any switches all nodes are connected alike. `unknown` says why jobs on several nodes cannot be placed.
    """

    switches: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unknown: str = ""

    def path(self, node: str) -> tuple[str, ...]:
        """The switches above the node; one of its own if it is under none, none if all are connected alike."""
        return self.switches.get(node) or ((node,) if self.switches else ())

    def without(self, names: Collection[str]) -> "Topology":
        """The same without these switches and what is above them: what only they join is not connected."""
        left = {node: tuple(takewhile(lambda each: each not in names, path)) for node, path in self.switches.items()}
        return replace(self, switches=left) if names else self


#: All nodes are connected alike.
FLAT = Topology()


def topology(directory: Path, plugin: str) -> Topology:
    """The topology by this TopologyPlugin and the files beside slurm.conf, which are read again when one has changed.

    `unknown` says why a topology cannot be used.
    """
    paths = (directory / YAML, directory / CONF)
    return _read(plugin, *paths, tuple(map(_version, paths)))


def _version(path: Path) -> tuple[int, ...] | None:
    """What differs when the file has changed; None: there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size


@lru_cache(maxsize=1)
def _read(plugin: str, yaml_path: Path, conf_path: Path, _versions: object) -> Topology:
    try:
        if yaml_path.exists():
            return of_yaml(yaml_path.read_text(encoding="utf-8"))
        if plugin in _FLAT:
            return FLAT
        if plugin not in (TREE, BLOCK):
            return Topology(unknown=f"TopologyPlugin is {plugin}")
        if not conf_path.exists():
            return Topology(unknown=f"there is no {conf_path}")
        conf_path.read_bytes()  # `read` takes a file that cannot be read for an empty one
        return of_conf(plugin, read(conf_path))
    except Exception as problem:  # noqa: BLE001 - yaml raises errors of many types; none may stop the scheduler
        why = " ".join(str(problem).split()) or type(problem).__name__
        return Topology(unknown=f"the topology cannot be read: {why[:MOST_CHARACTERS]}")


def of_conf(plugin: str, lines: Iterable[Line]) -> Topology:
    """The topology that the lines of topology.conf say.

    Raises:
        BadInput: a line, or what the lines say together, is no topology.
    """
    said = [line.content for line in lines]
    found = [options(content) for content in said if content and not content.lower().startswith("include")]
    if plugin == TREE:
        switches = [each for each in found if "switchname" in each]
        return _tree(
            (name, each.get("nodes", ""), each.get("switches", ""))
            for each in switches
            for name in _names(each["switchname"])
        )
    sizes = next((each["blocksizes"] for each in found if "blocksizes" in each), "")
    return _blocks([each.get("nodes", "") for each in found if "blockname" in each], sizes.split(",") if sizes else [])


def of_yaml(text: str) -> Topology:
    """The topology that topology.yaml says.

    Raises:
        BadInput: it does not have Slurm's form.
        yaml.YAMLError: it is no YAML.
    """
    listed = yaml.safe_load(text)
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise BadInput(f"{YAML} is no list of topologies")
    if len(listed) != 1:
        return Topology(unknown=f"{YAML} has {len(listed)} topologies")
    (only,) = listed
    try:
        if "tree" in only:
            switches = only["tree"]["switches"]
            return _tree(
                (str(each["switch"]), str(each.get("nodes") or ""), str(each.get("children") or ""))
                for each in switches
            )
        if "block" in only:
            block = only["block"]
            return _blocks(
                [str(each.get("nodes") or "") for each in block["blocks"]], [str(each) for each in block["block_sizes"]]
            )
    except (KeyError, TypeError, AttributeError) as problem:
        raise BadInput(f"{YAML} has not the form of Slurm's: {type(problem).__name__} {problem}") from None
    return FLAT if "flat" in only else Topology(unknown=f"{YAML} has a topology that is neither tree, block nor flat")


def _tree(switches: Iterable[tuple[str, str, str]]) -> Topology:
    """The tree of switches, each given by its name, its nodes and the switches below it."""
    leaves: dict[str, str] = {}
    above: dict[str, str] = {}
    for name, nodes, below in switches:
        for node in _names(nodes):
            leaves.setdefault(node, name)
        for child in _names(below):
            above.setdefault(child, name)
    if not leaves:
        raise BadInput("no switch has nodes")
    return Topology({node: _upwards(leaf, above.get) for node, leaf in leaves.items()})


def _upwards(switch: str, above: Callable[[str], str | None]) -> tuple[str, ...]:
    path = [switch]
    while (upper := above(path[-1])) is not None:
        if upper in path:
            raise BadInput(f"switch {upper} is above itself")
        path.append(upper)
    return tuple(path)


def _blocks(blocks: list[str], sizes: list[str]) -> Topology:
    """Blocks in their order, and the aggregated blocks of BlockSizes: so many blocks that follow each other are one."""
    numbers = [int(size) for size in sizes]
    if not blocks or any(size < 1 for size in numbers):
        raise BadInput("no blocks, or a block size that is not positive")
    steps = [size // numbers[0] for size in numbers[1:]]
    switches: dict[str, tuple[str, ...]] = {}
    for at, nodes in enumerate(blocks):
        path = (f"block {at + 1}", *(f"{step} blocks {at // step + 1}" for step in steps if step), ALL_BLOCKS)
        switches |= dict.fromkeys(_names(nodes), path)
    return Topology(switches)
