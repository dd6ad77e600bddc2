"""`sns check`: compares sns.yaml, the running Slurm and the files. A module for each thing that is looked at. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ClusterShell.NodeSet import NodeSet

#: Makes slurmctld and the slurmds read their files again, plugins included (Slurm 23.11 and later).
RECONFIGURE = "scontrol reconfigure"


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether `what` is right; if not, what was found, what is wanted, and the remedy.

    A `warning` is no fault (`ok` is True) but has a disadvantage, which `advice` names.

    The remedy is an edit of `file`, a command to `run`, or only `advice`. An edit replaces the lines `remove`, given
    exactly as the file has them, by the lines `add`. With nothing to remove, `add` goes to the end of the file.
    """

    ok: bool
    what: str
    found: str = ""
    wanted: str = ""
    file: str = ""
    remove: str = ""
    add: str = ""
    run: str = ""
    advice: str = ""
    warning: bool = False

    @property
    def is_well(self) -> bool:
        """Whether it is right and has no warning."""
        return self.ok and not self.warning


def warning(is_well: bool, what: str, found: str, wanted: str, advice: str) -> Finding:
    """A warning, or if `is_well` that there is none."""
    return Finding(ok=True, warning=not is_well, what=what, found=found, wanted=wanted, advice=advice)


def merged(of_nodes: Iterable[tuple[str, Finding]]) -> Iterator[Finding]:
    """Merge equal findings of several nodes into one, because a cluster has thousands of nodes."""
    names: dict[Finding, list[str]] = {}
    for name, finding in of_nodes:
        names.setdefault(finding, []).append(name)
    for finding, alike in names.items():
        nodes = f"node{'s' if len(alike) > 1 else ''} {NodeSet.fromlist(alike)}"
        yield replace(finding, what=finding.what.replace("NODES", nodes))
