"""Make a dump of sacct and its nodes fit to be given away: the same trace, without the names of people and machines.

What is not known to be harmless is emptied. Numbers, times, states, TRES and the names of features stay; users,
accounts, partitions and nodes get names of ours (u1, a1, p1, n1), the same in both files. A line that is no record is
left out.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from slurm_sns.coverage import sacct
from slurm_sns.errors import BadInput, SnsError
from slurm_sns.model import GPU
from slurm_sns.node_lists import NodeLists, folded
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.sacct_trace import header_of_sacct
from slurm_sns.sim.traces.slurm_conf import SiteNode

#: Our letter for each kind of name.
_LETTERS = {"User": "u", "Account": "a", "Partition": "p", "Cluster": "c", "QOS": "q", "Group": "g"}
_LETTERS |= {"Reservation": "r", "WCKey": "w"}
#: Columns of numbers, times and amounts.
_PLAIN_NAMES = (
    "Submit Eligible Start End Elapsed ElapsedRaw Timelimit TimelimitRaw NNodes AllocNodes ReqNodes NCPUS AllocCPUS "
    "ReqCPUS ReqMem Priority ExitCode DerivedExitCode Suspended Planned Reserved CPUTime CPUTimeRAW NTasks"
)
_PLAIN_COLUMNS = frozenset(_PLAIN_NAMES.split())
_PLAIN = re.compile(
    r"[0-9]{4}(?:-[0-9]{2}){2} [0-9:.]{5,15}|[0-9][0-9A-Za-z:.+-]{0,31}|UNLIMITED|Partition_Limit|Unknown|None|INVALID|"
)
_JOB_ID = re.compile(
    r"[0-9]+(?:_[0-9]+|_\[[0-9,%:-]+\]|\+[0-9]+)?(?:\.[0-9]+|\.batch|\.extern|\.interactive)?(?:\+[0-9]+)?"
)
_TRES = re.compile(r"[A-Za-z0-9_:./-]{1,64}=[0-9.]{1,20}[KMGT]?")
_CONSTRAINT = re.compile(r"[A-Za-z0-9_.:&|()\[\]*,-]{0,1024}")
#: What the reader cannot resolve either.
_NO_CONSTRAINT = "[]"
#: Different node lists that are remembered: dumps have the same ones again and again.
_MOST_LISTS = 1 << 16


class Pseudonyms:
    """The names given so far, and how many lines of the dump were left out."""

    def __init__(self) -> None:
        self._names: dict[str, dict[str, str]] = {}
        self._lists = NodeLists()
        self._renamed_list = lru_cache(_MOST_LISTS)(self._node_list)
        self.lines = self.left_out = 0

    def count(self, column: str) -> int:
        """How many different names of the column were met."""
        return len(self._names.get(_LETTERS[column], ()))

    def dump(self, source: TraceFile) -> Iterator[str]:
        """The lines of the dump.

        Raises:
            BadInput: it is none.
        """
        header = header_of_sacct(source)
        if header is None:
            raise BadInput(f"{source.name}: no dump of sacct; try: {sacct.COMMAND}")
        delimiter, is_header, columns = header.delimiter, True, tuple[str, ...]()
        for part in source.parts():
            for line in part.decode("utf-8", "replace").replace("\r\n", "\n").split("\n"):
                if not line.strip() if is_header else not line:
                    continue
                cells = line.split(delimiter)
                if is_header:
                    columns, is_header = tuple(name.strip() for name in cells), False
                    treat = [self._treatment(name) for name in columns]
                elif len(cells) == len(columns) and all(map(_is_job, columns, cells)):
                    self.lines += 1
                    cells = [of(cell) for of, cell in zip(treat, cells, strict=True)]
                else:
                    self.left_out += 1
                    continue
                yield delimiter.join(cells) + "\n"

    def nodes(self, nodes: Iterable[SiteNode]) -> Iterator[str]:
        """The nodes as `scontrol -o show node` prints them, with what a simulation reads of it."""
        for node in nodes:
            said = {
                "NodeName": self._name("n", node.name),
                "CPUTot": node.cores * node.cpus_per_core,
                "Sockets": 1,
                "CoresPerSocket": node.cores,
                "ThreadsPerCore": node.cpus_per_core,
                "RealMemory": node.memory_mb,
                "Weight": node.weight,
                "AvailableFeatures": ",".join(sorted(node.features)) or "(null)",
                "Gres": _gres(node),
                "Partitions": ",".join(self._name("p", name) for name in sorted(node.partitions)),
            }
            yield " ".join(f"{name}={value}" for name, value in said.items() if value != "") + "\n"

    def _treatment(self, column: str) -> Callable[[str], str]:
        """What becomes of the cells of a column."""
        if column in _LETTERS:
            letter = _LETTERS[column]
            return lambda cell: ",".join(self._name(letter, name) for name in cell.split(","))
        if column in ("JobID", "JobIDRaw"):
            return str
        if column in _PLAIN_COLUMNS:
            return lambda cell: cell if _PLAIN.fullmatch(cell) else ""
        if column in ("AllocTRES", "ReqTRES"):
            return _tres
        if column == "NodeList":
            return self._renamed_list
        return {"State": _state, "Constraints": _constraint}.get(column, lambda _: "")

    def _name(self, letter: str, name: str) -> str:
        if not sacct.said({"": name}, ""):
            return name
        names = self._names.setdefault(letter, {})
        return names.setdefault(name, f"{letter}{len(names) + 1}")

    def _node_list(self, text: str) -> str:
        if not sacct.said({"": text}, "") or text == "None assigned":
            return text
        try:
            return folded(self._name("n", name) for name in self._lists.names(text))
        except SnsError:
            return ""


def _is_job(column: str, cell: str) -> bool:
    return column not in ("JobID", "JobIDRaw") or _JOB_ID.fullmatch(cell) is not None


def _state(cell: str) -> str:
    state = sacct.state_in(cell)
    return state if state in sacct.ENDED | sacct.NOT_ENDED else ""


def _gres(node: SiteNode) -> str:
    """The GPUs of the node by type; of a node without, whether it has other generic resources."""
    counts = dict(node.gpus)
    any_type = counts.pop(GPU, 0) - sum(counts.values())
    words = [f"{name}:{count}" for name, count in counts.items()]
    words += [f"{GPU}:{any_type}"] if any_type else []
    return ",".join(words) or ("gres:1" if node.has_gres else "(null)")


def _tres(cell: str) -> str:
    return ",".join(each for each in cell.split(",") if _TRES.fullmatch(each) and not each.startswith("license"))


def _constraint(cell: str) -> str:
    return cell if _CONSTRAINT.fullmatch(cell) else _NO_CONSTRAINT
