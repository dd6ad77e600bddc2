"""Read a trace for a site with pools: CSV (columns: module pools_table), or SWF as far as it can carry one (pools_swf).

A CSV without quotes and odd spellings is read part by part with pandas. If anything in it is not plain, the strict
reader reads it again from the beginning, accepts what is valid, and names the line that is not.
"""

import csv
import io
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from slurm_sns.sim.traces.files import STANDARD_INPUT, TraceFile
from slurm_sns.sim.traces.plain_numbers import NotPlain, are_distinct
from slurm_sns.sim.traces.pool_lines import Column, Names, PoolLines, Whole, trace_of
from slurm_sns.sim.traces.pool_trace import PoolTrace, TraceSite
from slurm_sns.sim.traces.pools_swf import read_swf_lines
from slurm_sns.sim.traces.pools_table import (
    ALLOWED_POOLS,
    LIMIT,
    OPTIONAL,
    POOL,
    PROGRAM,
    RANGES,
    REQUIRED,
    WHOLE,
    are_pools,
    lines_of,
    outside,
    read_table_lines,
)
from slurm_sns.sim.traces.programs_csv import header_of

TEXTS = (POOL, ALLOWED_POOLS, PROGRAM)


def read_pool_trace(name: str, site: TraceSite, *, load_factor: float = 1.0, limit: int | None = None) -> PoolTrace:
    """The jobs of the file `name` (`-`: SWF on standard input) that the site can hold.

    `load_factor` multiplies arrival times. With a `limit` only so many jobs from the beginning of the file are taken.

    Raises:
        BadInput: naming file, line and what would be valid.
    """
    return read_and_count_unsorted(name, site, load_factor=load_factor, limit=limit)[0]


def read_and_count_unsorted(
    name: str, site: TraceSite, *, load_factor: float = 1.0, limit: int | None = None
) -> tuple[PoolTrace, int]:
    """The trace as `read_pool_trace` reads it, and how many of its jobs come after later ones in the file.

    Raises:
        BadInput: as `read_pool_trace`.
    """
    source = TraceFile.of(name)
    names = Names(name, site.pools)
    named_csv = name != STANDARD_INPUT and name.removesuffix(".gz").endswith(".csv")
    if not named_csv and not source.first_line().startswith("job_id,"):
        lines, dropped = read_swf_lines(source, names, limit=limit)
        return trace_of(lines, names, site, load_factor=load_factor, dropped=dropped)
    try:
        lines = _read_plain(source, names, limit)
    except NotPlain:
        names = Names(name, site.pools)
        lines = read_table_lines(source, names, limit)
    return trace_of(lines, names, site, load_factor=load_factor, dropped={})


def has_pools(name: str) -> bool:
    """Whether the file is a CSV of jobs for pools."""
    return name != STANDARD_INPUT and POOL in header_of(name)


def _read_plain(source: TraceFile, names: Names, limit: int | None) -> PoolLines:
    """The lines of a file in which everything is plain: one at least, distinct job numbers, pools that are allowed.

    Raises:
        NotPlain: it holds something else.
    """
    parts = list(_plain_parts(source, names, limit))
    if not parts:
        raise NotPlain
    lines = PoolLines(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    if not are_distinct(lines.identity.astype(np.float64)) or outside(lines, names).any():
        raise NotPlain
    return lines


def _plain_parts(source: TraceFile, names: Names, limit: int | None) -> Iterator[PoolLines]:
    header = [column.strip() for column in source.first_line().split(",")]
    if len(set(header)) < len(header) or not set(REQUIRED) <= set(header) <= {*REQUIRED, *OPTIONAL}:
        raise NotPlain
    is_first = True
    for part in source.parts():
        data = part.partition(b"\n")[2] if is_first else part
        is_first = False
        if limit is not None:
            data = b"".join(data.splitlines(keepends=True)[:limit])
            limit -= data.count(b"\n")
        if data:
            table = _table(data, header)
            yield lines_of(_numbers(table), _names(table, names), names)
        if limit == 0:
            return


def _table(data: bytes, header: list[str]) -> pd.DataFrame:
    """Whole lines as a table; columns of text are categories."""
    # pandas fills short lines, and takes a lone carriage return for an end of line.
    commas = data.count(b"\n") * (len(header) - 1)
    if data.count(b",") != commas or b'"' in data or data.count(b"\r") != data.count(b"\r\n"):
        raise NotPlain
    with warnings.catch_warnings():
        # pandas warns of a first line with too many fields, and refuses a later one.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            return pd.read_csv(
                io.BytesIO(data),
                header=None,
                names=header,
                index_col=False,
                skip_blank_lines=False,
                dtype={name: "category" for name in TEXTS if name in header},
                na_values={LIMIT: [""]} if LIMIT in header else {},
                keep_default_na=False,
                quoting=csv.QUOTE_NONE,
                low_memory=False,
            )
        except (ValueError, pd.errors.ParserWarning):
            raise NotPlain from None


def _numbers(table: pd.DataFrame) -> dict[str, Column]:
    """The columns of numbers, each within its range."""
    numbers: dict[str, Column] = {}
    for name, (least, most) in RANGES.items():
        if name not in table:
            continue
        if table[name].dtype.kind not in "iuf":
            raise NotPlain
        column = numbers[name] = np.asarray(table[name], np.float64)
        valid = (column >= least) & (column <= most)
        if name == LIMIT:
            valid |= np.isnan(column)
        if not valid.all() or (name in WHOLE and (column != np.floor(column)).any()):
            raise NotPlain
    return numbers


def _names(table: pd.DataFrame, names: Names) -> dict[str, Whole]:
    """The columns of names, as numbers."""

    def pool(text: str) -> int:
        return names.pool(_known(names, text, [text]))

    def allowed(text: str) -> int:
        return names.allowed(_known(names, text, text.split("+")))

    numbers = {POOL: pool, ALLOWED_POOLS: allowed, PROGRAM: names.program}
    return {name: _numbered(table[name], number) for name, number in numbers.items() if name in table}


def _known(names: Names, text: str, pools: list[str]) -> str:
    if text and not are_pools(names, pools):
        raise NotPlain
    return text


def _numbered(column: "pd.Series[Any]", number: Callable[[str], int]) -> Whole:
    """The numbers of a column of names, in the order in which the names appear."""
    categories, codes = column.cat.categories.tolist(), np.asarray(column.cat.codes)
    numbers = np.zeros(len(categories), dtype=np.int64)
    for code in pd.unique(codes).tolist():
        numbers[code] = number(categories[code].strip())
    found: Whole = numbers[codes]
    return found
