"""How files say numbers of GPUs: in a cell of our CSVs, in a node's Gres of Slurm, in TRES of sacct.

A cell says the GPUs of one node, by type: `a100:4`, `a100:2+h100:1`, or `4` of no type (of a job: of any). A `+` stands
between types, as commas are a CSV's.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from slurm_sns.errors import BadInput
from slurm_sns.gpus import MOST_OF_A_NODE
from slurm_sns.model import GPU, Gpus, gpus_of

#: Far above any real cluster; the planner has a row of numbers for each type.
MOST_TYPES = 64

VALID = f"empty, or GPUs of a node as in 4, a100:4 and a100:2+h100:1, at most {MOST_OF_A_NODE} of a type"
_PART = re.compile(r"(?:([A-Za-z0-9][A-Za-z0-9._-]{0,63}):)?([0-9]{1,5})")
#: What Slurm adds in brackets: of which sockets they are, or which ones are meant.
_BRACKETS = re.compile(r"\([^()]*\)?")
_TRES = f"gres/{GPU}"
_AMOUNT = re.compile(r"[0-9]{1,12}")


def is_gpus(cell: str) -> bool:
    """Whether a cell says numbers of GPUs, each type once."""
    parts = [_PART.fullmatch(each) for each in cell.split("+")]
    types = [part[1] for part in parts if part]
    numbers = [int(part[2]) for part in parts if part]
    return len(types) == len(parts) == len({*types}) and max(numbers) <= MOST_OF_A_NODE


def gpus_in_cell(cell: str) -> Gpus:
    """The GPUs of a cell for which `is_gpus` holds, or which is empty."""
    parts = [part for each in cell.split("+") if (part := _PART.fullmatch(each))]
    return gpus_of({part[1] or "": int(part[2]) for part in parts})


def gpus_in_gres(gres: str) -> Gpus:
    """The GPUs of a node by its Gres, as in gpu:a100:4(S:0-1),gpu:2,llc:11.

    Raises:
        BadInput: their number cannot be read, or is too large.
    """
    counts: Counter[str] = Counter()
    for word in _BRACKETS.sub("", gres).split(","):
        name, *more = word.strip().split(":")
        if name != GPU:
            continue
        number = more.pop() if more and (more[-1].isdecimal() or len(more) > 1) else "1"
        kind, *rest = more or [""]
        if rest not in ([], ["no_consume"]) or not is_gpus(f"{kind}:{number}" if kind else number):
            raise BadInput(f"Gres {word.strip()[:40]!r}; valid as gpu:4 or gpu:a100:4, at most {MOST_OF_A_NODE}")
        counts[kind] += int(number)
    return gpus_of(counts)


def is_number_of_gpus(name: str, amount: str) -> bool:
    """Whether this TRES says a number of GPUs, of all or of a type."""
    return (name == _TRES or name.startswith(f"{_TRES}:")) and _AMOUNT.fullmatch(amount) is not None


def gpus_in_tres(tres: Mapping[str, str]) -> dict[str, int]:
    """The GPUs of a job among TRES (`gres/gpu`, `gres/gpu:a100`), by type; those of any type have the empty one."""
    counts = {name[len(_TRES) + 1 :]: int(amount) for name, amount in tres.items() if is_number_of_gpus(name, amount)}
    typed = sum(count for kind, count in counts.items() if kind)
    return {**counts, "": max(0, counts.get("", 0) - typed)}


def on_each_node(gpus: Mapping[str, int], nodes: int) -> Gpus:
    """The GPUs on each of so many nodes, rounded up by type."""
    return gpus_of({kind: -(-count // nodes) for kind, count in gpus.items()})


def require_few_types(where: str, of_nodes: Iterable[Gpus]) -> None:
    """Accept nodes with so few types of GPUs that a planner can hold them.

    Raises:
        BadInput: there are too many.
    """
    names = {name for gpus in of_nodes for name, _ in gpus}
    if len(names) > MOST_TYPES + 1:
        raise BadInput(f"{where}: {len(names) - 1} types of GPUs; valid: at most {MOST_TYPES}")
