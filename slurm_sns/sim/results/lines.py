"""The lines of a result file, from its columns of whole numbers, of texts, and of lists of texts."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.sim.results.lines_kernel import LISTS, TEXTS, LineLayout, fill_lines

Integers = NDArray[np.integer]

#: How many lines are converted at a time.
PART = 1 << 16
#: So many letters are handed on at a time. A line that is longer than that gets more room.
ROOM = 1 << 20


class Numbers(NamedTuple):
    """Whole numbers, in units of the last of so many decimals; with decimals none is negative."""

    values: Integers
    decimals: int = 0


class Texts(NamedTuple):
    """Of each line the place of its text among these."""

    values: Integers
    texts: Sequence[str]


class Lists(NamedTuple):
    """Lists of texts, at most one column of a file. A line has so many as `counts` says, joined by `+`.

    Its value is the place of the first one in `listed`, which has their places among the texts; a list of one has the
    place of its text itself.
    """

    values: Integers
    texts: Sequence[str]
    counts: Integers
    listed: Integers


def lines(*columns: Numbers | Texts | Lists) -> Iterator[str]:
    """The lines, in pieces of many."""
    kinds: list[int] = []
    first: list[int] = []
    texts: list[bytes] = []
    counts = listed = np.zeros(0, np.int32)
    for column in columns:
        first.append(len(texts))
        if isinstance(column, Numbers):
            kinds.append(column.decimals)
            continue
        texts += [text.encode() for text in column.texts]
        kinds.append(TEXTS)
        if isinstance(column, Lists):
            kinds[-1], counts, listed = LISTS, *(each.astype(np.int32, copy=False) for each in column[2:])
    begin = np.cumsum([0, *map(len, texts)])
    layout = LineLayout(np.array(kinds), np.array(first), np.frombuffer(b"".join(texts), np.uint8), begin, listed)
    out = np.empty(ROOM, np.uint8)
    for at in range(0, len(columns[0].values), PART):
        part = np.array([column.values[at : at + PART] for column in columns])
        part = part.astype(np.int64, casting="safe", copy=False)  # safe: a float would lose its decimals
        line = 0
        while line < part.shape[1]:
            line, length = fill_lines(layout, part, counts[at : at + PART], out, line)
            if length:
                yield out[:length].tobytes().decode()
            else:
                out = np.empty(2 * len(out), np.uint8)
