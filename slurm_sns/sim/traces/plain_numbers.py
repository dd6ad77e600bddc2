"""Read columns of plain numbers from a file, part by part, with pandas.

Reading stops with NotPlain at anything that pandas does not read as numbers (a wrong number of fields, a word, a gap).
The strict reader of the format then decides whether it is valid, and names the line if it is not.
"""

import csv
import io
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from slurm_sns.sim.traces.csv_table import LARGEST
from slurm_sns.sim.traces.files import TraceFile


class NotPlain(Exception):
    """The file holds something other than plain numbers in range."""


@dataclass(frozen=True)
class ColumnLayout:
    """The fields of a line: their number, their separator, and our names of those that are read, by position from 0.

    Fields are separated by commas or by blanks. With blanks, `;` begins a comment and empty lines are skipped.
    """

    fields: int
    commas: bool
    names: Mapping[int, str]


def columns(
    source: TraceFile, layout: ColumnLayout, *, skip_lines: int = 0, limit: int | None = None
) -> Iterator[dict[str, NDArray[np.float64]]]:
    """The named columns of each part of the file, at most `limit` rows in total.

    Raises:
        NotPlain: a line does not hold as many numbers as the layout says, or one is out of range.
        BadInput: the file is truncated, binary or empty.
    """
    left = limit
    for part in source.parts():
        if left == 0:
            return
        table = _table(part, layout, skip_lines, left)
        skip_lines = 0
        if left is not None:
            left -= len(table)
        yield {name: _in_range(table[field]) for field, name in layout.names.items()}


def _table(part: bytes, layout: ColumnLayout, skip_lines: int, rows: int | None) -> pd.DataFrame:
    with warnings.catch_warnings():
        # pandas warns of a first line with too many fields, and refuses a later one.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            table = pd.read_csv(
                io.BytesIO(part),
                sep="," if layout.commas else r"\s+",
                comment=None if layout.commas else ";",
                header=None,
                names=range(layout.fields),
                index_col=False,
                skiprows=skip_lines,
                nrows=rows,
                skip_blank_lines=not layout.commas,
                na_filter=False,
                quoting=csv.QUOTE_NONE,
                low_memory=False,
            )
        except (ValueError, pd.errors.ParserWarning):
            raise NotPlain from None
    if len(table) and not all(kind.kind in "iuf" for kind in table.dtypes):
        raise NotPlain
    return table


def _in_range(column: "pd.Series[float]") -> NDArray[np.float64]:
    numbers = np.asarray(column, np.float64)
    if not (np.abs(numbers) <= LARGEST).all():
        raise NotPlain
    return numbers


def are_distinct(numbers: NDArray[np.float64]) -> bool:
    """Whether no number occurs twice; the common case of ascending numbers is tried first."""
    if (numbers[1:] > numbers[:-1]).all():
        return True
    ordered = np.sort(numbers)
    return bool((ordered[1:] != ordered[:-1]).all())
