"""A job's constraint (--constraint) on the features of its nodes: read as slurmctld reads it, and asked of a node.

A constraint has names, `&`, `|` and parentheses, which do not nest. Slurm has no precedence: it combines what it has so
far with the next name or the next parentheses, from left to right, so `a|b&c` is `(a|b)&c` (26.05: compared with
`sbatch --test-only`). A comma means `&`. What else Slurm accepts says how many nodes are to have a feature (`a*2`), or
that all nodes are to have the same one (`[a|b]`): that is for Slurm to choose, and is not read here.
"""

import re
from collections.abc import Set
from functools import lru_cache
from typing import NamedTuple

from slurm_sns.errors import BadInput

#: A longer constraint is left to Slurm: the submit filter looks at it while slurmctld waits.
MOST_BYTES = 1024
_NAME = r"[^&|()]+"
_CLAUSE = rf"(?:{_NAME}|\({_NAME}(?:[&|]{_NAME})*\))"
_WHOLE = re.compile(rf"(?:{_CLAUSE}(?:[&|]{_CLAUSE})*)?")
#: Each clause, and each name of a clause, with the operator before it.
_CLAUSES, _NAMES = re.compile(rf"([&|]?)({_CLAUSE})"), re.compile(rf"([&|]?)({_NAME})")
_LEFT_TO_SLURM = re.compile(r"[][*]")


class Clause(NamedTuple):
    """One clause, from left to right: the names in it, each with its operator, and how it is combined.

    `is_and`, here and for each name: whether it is combined by `&` with what comes before, else by `|`.
    """

    is_and: bool
    names: tuple[tuple[bool, str], ...]


Constraint = tuple[Clause, ...]


def is_left_to_slurm(text: str) -> bool:
    """Whether the constraint asks for what only Slurm can choose, or is too long to be read at submission."""
    return len(text.encode("utf-8", "surrogateescape")) > MOST_BYTES or _LEFT_TO_SLURM.search(text) is not None


@lru_cache(maxsize=1024)
def read(text: str) -> Constraint:
    """The clauses of the constraint; an empty text has none.

    Raises:
        BadInput: Slurm would choose, or the text is none of Slurm's.
    """
    if is_left_to_slurm(text):
        raise BadInput("a constraint with counts or brackets, or a long one: valid are names, &, | and parentheses")
    text = text.replace(",", "&")
    if not _WHOLE.fullmatch(text):
        raise BadInput("not a constraint of Slurm's: valid are names, &, | and parentheses that do not nest")
    return tuple(
        Clause(operator != "|", tuple((inner != "|", name) for inner, name in _NAMES.findall(clause)))
        for operator, clause in _CLAUSES.findall(text)
    )


def admits(constraint: Constraint, features: Set[str]) -> bool:
    """Whether a node with these features is one that the constraint asks for."""
    found = True
    for is_and, names in constraint:
        inner = True
        for inner_is_and, name in names:
            inner = inner and name in features if inner_is_and else inner or name in features
        found = found and inner if is_and else found or inner
    return found
