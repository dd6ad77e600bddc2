"""Read a large file of columns by pandas, part by part, while all is plain; from the first odd cell on, line by line.

Both ways give the same rows. pandas reports no error that would help: what it refuses, and what a check refuses, is
read line by line, is accepted if it is valid, and otherwise named by line and column. What is valid in a CSV is
declared by its format: a header, and checks of its columns.
"""

import csv
import io
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slurm_sns.errors import BadInput
from slurm_sns.sim.traces.files import TraceFile

if TYPE_CHECKING:
    import pandas as pd

#: The largest time, amount or job number: all stay exact in a float and far from the limits of 64-bit integers.
LARGEST = 10**12
#: A file of fewer bytes is read line by line: some ten thousand lines take less time than the import of pandas.
SMALL_BYTES = 2**20
FIRST_DATA_LINE = 2

Flags = NDArray[np.bool_]
#: Columns by name, with one entry per line.
Columns = dict[str, NDArray[Any]]
#: By each demand on a column, which cells are wrong, and what is valid.
Findings = Iterator[tuple[Flags, str]]


class NotPlain(Exception):
    """The file holds something that is to be read line by line."""


class ColumnReader(ABC):
    """Reads one file; with a `limit` only so many lines."""

    def __init__(self, source: TraceFile, limit: int | None = None) -> None:
        """Nothing is read yet."""
        self.source, self.limit = source, limit

    def parts(self) -> Iterator[Columns]:
        """The columns, part by part.

        Raises:
            BadInput: naming the line and what would be valid; it may come after some parts.
        """
        rows = 0
        seen: list[NDArray[Any]] = []
        try:
            for data in self.source.parts():
                if not seen and len(data) < SMALL_BYTES:
                    break
                part = self._plain(data, None if self.limit is None else self.limit - rows, not seen)
                seen.append(self._identities(part))
                rows += len(next(iter(part.values())))
                yield part
                if rows == self.limit:
                    break
            if rows and _are_distinct(np.concatenate(seen)):
                return
        except NotPlain:
            pass
        yield {name: column[rows:] for name, column in self._lines().items()}

    def table(self) -> Columns:
        """The columns of the whole file. Raises as `parts`."""
        parts = list(self.parts())
        return {name: np.concatenate([part.pop(name) for part in parts]) for name in list(parts[0])}

    @abstractmethod
    def _plain(self, data: bytes, limit: int | None, first: bool, /) -> Columns:
        """The columns of whole lines, the `first` of the file or others; NotPlain is raised if anything is odd."""

    @abstractmethod
    def _lines(self) -> Columns:
        """The columns of any valid file; an error names the line."""

    @abstractmethod
    def _identities(self, part: Columns) -> NDArray[Any]:
        """What must be distinct, one for each line that has one."""


@dataclass(frozen=True)
class Number:
    """A column of finite numbers from `least` to `most`; where cells may be `empty`, these are nan.

    `valid` says so if it is not "a number from ... to ...". A `rule` for the numbers besides has words of its own.
    """

    column: str
    least: float
    most: float = LARGEST
    whole: bool = False
    empty: bool = False
    valid: str = ""
    rule: tuple[Callable[[NDArray[Any]], Flags], str] | None = None

    def findings(self, numbers: NDArray[Any], _: Sequence[str] = ()) -> Findings:
        """What is wrong in the column."""
        wrong = ~((numbers >= self.least) & (numbers <= self.most))
        valid = self.valid or f"a number from {self.least:g} to {self.most:g}"
        yield wrong & ~np.isnan(numbers) if self.empty else wrong, valid
        if self.whole:
            yield numbers != np.floor(numbers), "a whole number"
        if self.rule:
            yield ~self.rule[0](numbers), self.rule[1]


@dataclass(frozen=True)
class Text:
    """A column of texts for which `holds` is true, or which may be `empty`, without the blanks around them.

    In `Columns` it has the place of each text among the different ones.
    """

    column: str
    holds: Callable[[str], bool] = lambda _: True
    valid: str = ""
    empty: bool = False

    def findings(self, places: NDArray[Any], texts: Sequence[str]) -> Findings:
        """What is wrong in the column; `texts` are the different ones."""
        wrong = [not (self.holds(text) if text else self.empty) for text in texts]
        yield np.array(wrong, np.bool_)[places], self.valid


@dataclass(frozen=True)
class Distinct:
    """The column in which no cell may be there twice; each format has one."""

    column: str


class CsvReader(ColumnReader):
    """Reads a CSV with this `header` ("a,b and optionally c,d"). Checks are made in their order, each on all lines."""

    def __init__(
        self, source: TraceFile, header: str, checks: Sequence[Number | Text | Distinct], limit: int | None = None
    ) -> None:
        """Nothing is read yet."""
        super().__init__(source, limit)
        self._header, self._checks = header, checks
        (self._identity,) = (check.column for check in checks if isinstance(check, Distinct))
        self._gaps = {check.column: [""] for check in checks if isinstance(check, Number) and check.empty}
        # The different texts of each column in the order of the file, with their places.
        self._texts: dict[str, dict[str, int]] = {check.column: {} for check in checks if isinstance(check, Text)}

    def texts(self, column: str) -> list[str]:
        """The different texts of a column, as far as it has been read."""
        return list(self._texts[column])

    def listed(self, column: str, part: Columns) -> list[str]:
        """The texts of a column in a part."""
        texts: list[str] = np.array(self.texts(column), np.object_)[part[column]].tolist()
        return texts

    def error(self, row: int, column: str, cell: str, valid: str) -> BadInput:
        """The error for one cell."""
        return self.source.error(row + FIRST_DATA_LINE, column, f"'{cell[:40]}'", valid)

    def _identities(self, part: Columns) -> NDArray[Any]:
        return part[self._identity]

    def _plain(self, data: bytes, limit: int | None, first: bool, /) -> Columns:
        if first:
            line, _, data = data.partition(b"\n")
            self._names = _names(line.decode("latin-1"))
            if self._refusal(self._names):
                raise NotPlain
        if limit is not None:
            data = b"".join(data.splitlines(keepends=True)[:limit])
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
        # pandas fills short lines, and takes a lone carriage return for an end of line.
        letters = np.frombuffer(data, np.uint8)
        commas, lines = (np.count_nonzero(letters == ord(each)) for each in ",\n")
        if commas != lines * (len(self._names) - 1) or b'"' in data or b"\r" in data:
            raise NotPlain
        texts = {name: object for name in self._names if name in self._texts}
        gaps = {"na_filter": bool(self._gaps), "na_values": self._gaps, "keep_default_na": False}
        table = plain_table(data, texts, names=self._names, skip_blank_lines=False, **gaps)
        columns: Columns = {}
        for name in self._names:
            if name in texts:
                codes, different = table[name].factorize()
                columns[name] = self._places(name, [str(text) for text in different])[codes]
            else:
                columns[name] = np.asarray(table[name], np.float64)
        if any(self._wrong(columns)):
            raise NotPlain
        return columns

    def _lines(self) -> Columns:
        text, name = self.source.text(), self.source.name
        if self.limit is not None:
            text = "\n".join(text.splitlines()[: self.limit + 1])
        first, *lines = text.rstrip().splitlines()
        header = _names(first)
        if refusal := self._refusal(header):
            raise BadInput(f"{name}: line 1: {refusal}; valid: {self._header}")
        if not lines:
            raise BadInput(f"{name}: there is no line after the header")
        for number, line in enumerate(lines, start=FIRST_DATA_LINE):
            if line.count(",") != len(header) - 1:
                raise BadInput(f"{name}: line {number} has {line.count(',') + 1} fields; the header has {len(header)}")
            if '"' in line:
                raise BadInput(f"{name}: line {number} has a quoted field; valid: fields without quotes and commas")
        rows = ([cell.strip() for cell in line.split(",")] for line in lines)
        cells = dict(zip(header, zip(*rows, strict=True), strict=True))
        self._texts = {column: {} for column in self._texts}
        columns: Columns = {}
        for column, of_column in cells.items():
            if column in self._texts:
                columns[column] = self._places(column, of_column)
            else:
                # Empty cells are nan, as in pandas, and others that say no number are infinite.
                columns[column] = np.array([number_in(cell) for cell in of_column])
                columns[column][np.isnan(columns[column]) & [cell != "" for cell in of_column]] = np.inf
        for row, column, valid in self._wrong(columns, cells):
            raise self.error(row, column, cells[column][row], valid)
        return columns

    def _places(self, column: str, texts: Sequence[str]) -> NDArray[np.int64]:
        """The places of texts among the different ones of the column; new ones are added."""
        known = self._texts[column]
        return np.array([known.setdefault(text.strip(), len(known)) for text in texts], np.int64)

    def _refusal(self, header: list[str]) -> str:
        """What is wrong with a header."""
        required, *optional = (names.split(",") for names in self._header.split(" and optionally "))
        for column in required:
            if column not in header:
                return f"column {column} is missing"
        for column in header:
            if column not in chain(required, *optional):
                return f"column '{column[:40]}' is unknown"
        return "a column is named twice" if len(set(header)) < len(header) else ""

    def _wrong(
        self, columns: Columns, cells: Mapping[str, Sequence[str]] | None = None
    ) -> Iterator[tuple[int, str, str]]:
        """By each check that fails, the first wrong cell: its row and column, and what is valid.

        Without `cells` it is not told whether they are distinct.
        """
        for check in self._checks:
            findings: Findings = iter(())
            if isinstance(check, Distinct):
                values = columns.get(check.column, cells[check.column]) if cells else ()  # 1 and 01 are one number
                findings = iter([(is_repeated(values), "each value once")] if cells else ())
            elif check.column in columns:
                findings = check.findings(columns[check.column], list(self._texts.get(check.column, ())))
            for wrong, valid in findings:
                if wrong.any():
                    yield int(np.argmax(wrong)), check.column, valid


def _names(header: str) -> list[str]:
    return [name.strip() for name in header.split(",")]


def plain_table(data: bytes, texts: Mapping[Any, Any], **options: Any) -> "pd.DataFrame":
    """Lines without a header as a table of numbers, with `texts` as objects; `options` are those of pandas.

    Raises:
        NotPlain: pandas cannot read it, or a column is not of numbers.
    """
    import pandas as pd  # noqa: PLC0415 - half a second, which writing a workload does not need

    if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):
        options["float_precision"] = "round_trip"  # later versions always read the nearest float
    options |= {"header": None, "index_col": False, "quoting": csv.QUOTE_NONE, "low_memory": False}
    with warnings.catch_warnings():
        # pandas warns of a first line with too many fields, and refuses a later one.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            table: pd.DataFrame = pd.read_csv(io.BytesIO(data), dtype=texts, **options)
        except (ValueError, pd.errors.ParserWarning):
            raise NotPlain from None
    if len(table) and any(kind.kind not in "iuf" for name, kind in table.dtypes.items() if name not in texts):
        raise NotPlain
    return table


def number_in(cell: str) -> float:
    """The number that a cell says, nan if it says none; Python alone would also take 1_000."""
    try:
        return math.nan if "_" in cell else float(cell)
    except ValueError:
        return math.nan


def is_repeated(values: Sequence[Any] | NDArray[Any]) -> Flags:
    """Of each value: whether it is there earlier, too."""
    first = {value: row for row, value in reversed([*enumerate(values)])}
    return np.array([first[value] != row for row, value in enumerate(values)], np.bool_)


def _are_distinct(numbers: NDArray[Any]) -> bool:
    return bool((numbers[1:] > numbers[:-1]).all()) or len(np.unique(numbers)) == len(numbers)  # they mostly ascend
