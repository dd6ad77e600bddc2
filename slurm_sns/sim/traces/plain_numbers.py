"""Read a trace with pandas while its lines are plain, and from the first line that is not with a strict reader.

Both give the same rows. What pandas refuses (a wrong number of fields, a word, a gap) the strict reader of the format
accepts if it is valid; otherwise it names the line.
"""

import csv
import io
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

#: Columns by name, with one entry per line.
Columns = dict[str, NDArray[Any]]

#: The largest time, amount or job number: all stay exact in a float and far from the limits of 64-bit integers.
LARGEST = 10**12

#: Since 3.1 pandas always reads the nearest float.
EXACT = {} if tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1) else {"float_precision": "round_trip"}


class NotPlain(Exception):
    """The file holds something other than plain numbers in range."""


def plain_first(
    plain: Callable[[], Iterable[Columns]], strict: Callable[[], Columns], identities: Callable[[Columns], NDArray[Any]]
) -> Iterator[Columns]:
    """What `plain` reads, part by part; where it raises NotPlain, the remaining lines as `strict` reads them.

    `strict` also decides about a file without lines, and about `identities` (of a part) that are not distinct.
    """
    rows, seen = 0, []
    try:
        for part in plain():
            seen.append(identities(part))
            rows += len(next(iter(part.values())))
            yield part
        if rows and _are_distinct(np.concatenate(seen)):
            return
    except NotPlain:
        pass
    yield {name: column[rows:] for name, column in strict().items()}


def joined(parts: Iterable[Columns]) -> Columns:
    """The columns of all parts together."""
    listed = list(parts)
    return {name: np.concatenate([part.pop(name) for part in listed]) for name in list(listed[0])}


def plain_table(data: bytes, **options: Any) -> pd.DataFrame:
    """Lines without a header as a table; `options` are those of pandas.

    Raises:
        NotPlain: pandas cannot read it.
    """
    with warnings.catch_warnings():
        # pandas warns of a first line with too many fields, and refuses a later one.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        options |= {"header": None, "index_col": False, "quoting": csv.QUOTE_NONE, "low_memory": False, **EXACT}
        try:
            table: pd.DataFrame = pd.read_csv(io.BytesIO(data), **options)
        except (ValueError, pd.errors.ParserWarning):
            raise NotPlain from None
    return table


def plain_columns(table: pd.DataFrame) -> dict[Any, NDArray[np.float64]]:
    """The columns of a table of numbers.

    Raises:
        NotPlain: it holds something else.
    """
    if len(table) and not all(kind.kind in "iuf" for kind in table.dtypes):
        raise NotPlain
    return {name: np.asarray(column, np.float64) for name, column in table.items()}


def number_in(cell: str) -> float:
    """The number that a cell says, nan if it says none."""
    try:
        return math.nan if "_" in cell else float(cell)  # Python alone would also take 1_000
    except ValueError:
        return math.nan


def is_repeated(values: Sequence[Any] | NDArray[Any]) -> NDArray[np.bool_]:
    """Of each value: whether it is there earlier, too."""
    return pd.Series(values, dtype=object).duplicated().to_numpy()


def _are_distinct(numbers: NDArray[Any]) -> bool:
    """Whether no number occurs twice; the common case of ascending numbers is tried first."""
    if (numbers[1:] > numbers[:-1]).all():
        return True
    ordered = np.sort(numbers)
    return bool((ordered[1:] != ordered[:-1]).all())
