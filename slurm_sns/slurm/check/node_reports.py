"""The reports of nodes, which `sns check` compares with resctrl.yaml: files with the output of `sns node show --json`.

A report comes from a node, so it is taken for what anybody could have written: its size, its numbers and its names are
limited, and what is wrong with it is one line. Fields that a later version adds are ignored.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from slurm_sns.errors import BadInput

#: A report of 16 groups with 40 cache domains each has 60 KiB.
LONGEST_REPORT = 1 << 20

#: As in the kernel: a mask has at most 64 bits, a CLOSID fewer; a domain is a cache id.
HexMask = Annotated[str, Field(pattern=r"^[0-9a-f]{1,16}$")]
Domain = Annotated[str, Field(pattern=r"^[0-9]{1,10}$")]
Number = Annotated[int, Field(ge=0, le=2**40)]
Text = Annotated[str, Field(max_length=512)]
NodeName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class ReportedCache(_Part):
    """A cache that can be partitioned: its ways, and the fewest ways of a mask."""

    name: Literal["L3", "L3CODE", "L3DATA", "L2", "L2CODE", "L2DATA"]
    ways: Number
    least_ways: Number


class ReportedGroup(_Part):
    """A group in the node's tree. `masks` are its ways in the last-level cache, by domain, in hexadecimal digits.

    The kind `stray` is a group with our prefix that is no job's: the next layout removes it. `tasks` is how many
    threads are in it; a group of which the report does not say so counts as one with threads.
    """

    name: Text
    kind: Literal["root", "shared", "job", "stray", "other"]
    masks: Mapping[Domain, HexMask]
    tasks: Number = 1


class NodeReport(_Part):
    """What a node can do and what it has. `missing` says why it has no resctrl; the rest is empty then.

    `caches` has the last-level cache first; `bandwidth` is null where the machine has no control of it. `closids` is
    the smallest number of all resources, the root group's included.
    """

    format: Literal[1]
    node: NodeName
    missing: Annotated[tuple[Text, ...], Field(max_length=8)]
    mount_options: Annotated[tuple[Text, ...], Field(max_length=8)]
    caches: tuple[ReportedCache, ...]
    bandwidth: Mapping[str, object] | None
    closids: Number
    groups: tuple[ReportedGroup, ...]


@dataclass(frozen=True)
class NodeReports:
    """The reports by node, and of each file that holds none the reason, in one line."""

    reports: Mapping[str, NodeReport] = field(default_factory=dict)
    unreadable: tuple[str, ...] = ()


def read(paths: Iterable[Path]) -> NodeReports:
    """The reports in these files, and in all files of directories among them.

    Raises:
        BadInput: there is no such file or directory, or a directory is empty.
    """
    reports: dict[str, NodeReport] = {}
    unreadable = []
    for file in [file for path in paths for file in _files(path)]:
        try:
            report = _report(file)
        except BadInput as problem:
            unreadable.append(str(problem))
            continue
        if report.node in reports:
            unreadable.append(f"{file} is a second report of node {report.node}; valid: one of each node")
        reports.setdefault(report.node, report)
    return NodeReports(reports, tuple(unreadable))


def _files(path: Path) -> list[Path]:
    """The file itself, or the files of a directory; hidden ones are left out."""
    try:
        if not path.is_dir():
            path.stat()
            return [path]
        files = sorted(each for each in path.iterdir() if each.is_file() and not each.name.startswith("."))
    except OSError as problem:
        raise BadInput(f"node reports {path}: {problem.strerror}; valid: a file or a directory of files") from None
    if not files:
        raise BadInput(f"node reports {path}: the directory has no files; valid: one for each node")
    return files


def _report(file: Path) -> NodeReport:
    """The report in that file; BadInput: it holds none."""
    valid = "valid: what `sns node show --json` prints on one node"
    try:
        with file.open("rb") as stream:
            text = stream.read(LONGEST_REPORT + 1)
    except OSError as problem:
        raise BadInput(f"{file} cannot be read: {problem.strerror}; {valid}") from None
    if len(text) > LONGEST_REPORT:
        raise BadInput(f"{file} is larger than {LONGEST_REPORT} bytes; {valid}")
    try:
        return NodeReport.model_validate_json(text)
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise BadInput(f"{file} is no node report: {where[:60]}: {first['msg'][:120]}; {valid}") from None
