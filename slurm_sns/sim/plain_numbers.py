"""Columns of plain numbers from a file, part by part."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slurm_sns.sim.digits import ROWS, read_lines
from slurm_sns.sim.files import Source
from slurm_sns.sim.table import LARGEST

#: A part of so many bytes has at most half as many fields.
SHORTEST_FIELD = 2


class NotPlain(Exception):
    """There is something in the file that is not a plain number in range."""


@dataclass(frozen=True)
class Layout:
    """How the fields of a line lie: their number, what separates them, and our names of those that matter."""

    fields: int
    commas: bool
    names: Mapping[int, str]


def columns(
    source: Source, layout: Layout, *, skip_lines: int = 0, limit: int | None = None
) -> Iterator[dict[str, NDArray[np.float64]]]:
    """The named columns of each part of the file, at most `limit` rows together.

    Raises:
        NotPlain: a line is not what `digits` reads, or a number is out of range.
        BadInput: the file is truncated, binary or empty.
    """
    column = np.full(layout.fields, -1, dtype=np.int64)
    column[list(layout.names)] = np.arange(len(layout.names))
    left = limit
    for part in source.parts():
        if left == 0:
            return
        data = np.frombuffer(_without_lines(part, skip_lines), dtype=np.uint8)
        skip_lines = 0
        most = len(data) // (SHORTEST_FIELD * layout.fields) + 1
        rows = most if left is None else min(most, left)
        values = np.empty((rows, len(layout.names)))
        place = np.zeros(2, np.int64)
        plain = read_lines(data, place, layout.commas, column, values)
        values = values[: place[ROWS]]
        if not plain or not (np.abs(values) <= LARGEST).all():
            raise NotPlain
        if left is not None:
            left -= int(place[ROWS])
        yield dict(zip(layout.names.values(), values.T, strict=True))


def _without_lines(part: bytes, count: int) -> bytes:
    for _ in range(count):
        part = part.partition(b"\n")[2]
    return part


def are_distinct(numbers: NDArray[np.float64]) -> bool:
    """Whether no number is there twice; those of most traces ascend."""
    if (numbers[1:] > numbers[:-1]).all():
        return True
    ordered = np.sort(numbers)
    return bool((ordered[1:] != ordered[:-1]).all())
