"""Read a CSV file by the columns that its format declares: known columns, no gaps, each cell checked.

Most files are read by pandas, part by part. A file in which anything is not plain (quotes, odd spellings, a wrong cell)
is read again line by line, and an error names file, line and column.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from slurm_sns.errors import BadInput
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.plain_numbers import (
    LARGEST,
    Columns,
    NotPlain,
    is_repeated,
    number_in,
    plain_columns,
    plain_first,
    plain_table,
)

FIRST_DATA_LINE = 2

Flags = NDArray[np.bool_]
#: Of a column, the wrong cells, and what is valid.
Findings = Iterator[tuple[Flags, str]]


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

    def findings(self, numbers: NDArray[Any], _: Sequence[str]) -> Findings:
        """What is wrong in the column."""
        wrong = ~((numbers >= self.least) & (numbers <= self.most))
        yield (
            wrong & ~np.isnan(numbers) if self.empty else wrong,
            (self.valid or f"a number from {self.least:g} to {self.most:g}"),
        )
        if self.whole:
            yield numbers != np.floor(numbers), "a whole number"
        if self.rule:
            holds, valid = self.rule
            yield ~holds(numbers), valid


@dataclass(frozen=True)
class Text:
    """A column of texts for which `holds` is true, or which may be `empty`, without the blanks around them.

    As a column of `Columns` it has the place of each text among the different ones.
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
    """The column in which no cell may be there twice."""

    column: str


class CsvReader:
    """Reads one file of a format; with a `limit` only so many lines.

    `required` and `optional` name its columns, joined by commas. `checks` are made in their order, each on all lines.
    """

    def __init__(
        self,
        source: TraceFile,
        required: str,
        optional: str,
        checks: Sequence[Number | Text | Distinct],
        limit: int | None = None,
    ) -> None:
        """Nothing is read yet."""
        self.source = source
        self._required, self._optional, self._checks, self._limit = required, optional, checks, limit
        (self._identity,) = (check.column for check in checks if isinstance(check, Distinct))
        self._gaps = {check.column: [""] for check in checks if isinstance(check, Number) and check.empty}
        # The different texts of each column in the order of the file, with their places.
        self._texts: dict[str, dict[str, int]] = {check.column: {} for check in checks if isinstance(check, Text)}

    def parts(self) -> Iterator[Columns]:
        """The columns, part by part.

        Raises:
            BadInput: naming the line and what would be valid; it may come after some parts.
        """
        return plain_first(self._read_plain, self._read_lines, lambda part: part[self._identity])

    def texts(self, column: str) -> list[str]:
        """The different texts of a column, as far as it has been read."""
        return list(self._texts[column])

    def listed(self, column: str, part: Columns) -> list[str]:
        """The texts of a column in a part."""
        texts: list[str] = np.array(self.texts(column), np.object_)[part[column]].tolist()
        return texts

    def error(self, row: int, column: str, cell: str, valid: str) -> BadInput:
        """The error for one cell."""
        return self.source.error(row + FIRST_DATA_LINE, column, f"'{cell.strip()[:40]}'", valid)

    def _read_plain(self) -> Iterator[Columns]:
        """The columns of a file in which all is plain and valid."""
        header, left = None, self._limit
        for part in self.source.parts():
            data = part
            if header is None:
                line, _, data = part.partition(b"\n")
                header = _names(line.decode("latin-1"))
                if self._refusal(header):
                    raise NotPlain
            if left is not None:
                data = b"".join(data.splitlines(keepends=True)[:left])
                left -= data.count(b"\n")
            if data:
                columns = self._plain_part(data, header)
                if any(self._findings(columns, {})):
                    raise NotPlain
                yield columns
            if left == 0:
                return

    def _plain_part(self, data: bytes, header: list[str]) -> Columns:
        """The columns of whole lines."""
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
        # pandas fills short lines, and takes a lone carriage return for an end of line.
        letters = np.frombuffer(data, np.uint8)
        commas, lines = (np.count_nonzero(letters == ord(each)) for each in ",\n")
        if commas != lines * (len(header) - 1) or b'"' in data or b"\r" in data:
            raise NotPlain
        texts = [name for name in header if name in self._texts]
        table = plain_table(
            data,
            names=header,
            skip_blank_lines=False,
            dtype=dict.fromkeys(texts, object),
            na_filter=bool(self._gaps),
            na_values=self._gaps,
            keep_default_na=False,
        )
        return plain_columns(table.drop(columns=texts)) | {name: self._places(name, table[name]) for name in texts}

    def _places(self, name: str, column: "pd.Series[Any]") -> NDArray[np.int64]:
        """The place of each text among the different ones of the column."""
        codes, texts = pd.factorize(column)
        known = self._texts[name]
        places = np.array([known.setdefault(text.strip(), len(known)) for text in texts])
        return places[codes]

    def _read_lines(self) -> Columns:
        """The columns of any valid file; an error names the line that is wrong."""
        text, name = self.source.text(), self.source.name
        if self._limit is not None:
            text = "\n".join(text.splitlines()[: self._limit + 1])
        first, *lines = text.rstrip().splitlines()
        header = _names(first)
        if refusal := self._refusal(header):
            optional = f" and optionally {self._optional}" if self._optional else ""
            raise BadInput(f"{name}: line 1: {refusal}; valid: {self._required}{optional}")
        if not lines:
            raise BadInput(f"{name}: there is no line after the header")
        for number, line in enumerate(lines, start=FIRST_DATA_LINE):
            if line.count(",") != len(header) - 1:
                raise BadInput(f"{name}: line {number} has {line.count(',') + 1} fields; the header has {len(header)}")
            if '"' in line:
                raise BadInput(f"{name}: line {number} has a quoted field; valid: fields without quotes and commas")
        rows = ([cell.strip() for cell in line.split(",")] for line in lines)
        cells = dict(zip(header, zip(*rows, strict=True), strict=True))
        columns = {column: self._of_cells(column, cells[column]) for column in header}
        for row, column, valid in self._findings(columns, cells):
            raise self.error(row, column, cells[column][row], valid)
        return columns

    def _of_cells(self, name: str, cells: Sequence[str]) -> NDArray[Any]:
        """A column as pandas reads it where it is plain, infinite where a cell says no number."""
        if name in self._texts:
            known = self._texts[name] = {text: place for place, text in enumerate(dict.fromkeys(cells))}
            return np.array([known[cell] for cell in cells])
        numbers = np.array([number_in(cell) for cell in cells])
        return np.where(np.isnan(numbers) & [cell != "" for cell in cells], np.inf, numbers)

    def _refusal(self, header: list[str]) -> str:
        """What is wrong with a header."""
        required, optional = self._required.split(","), self._optional.split(",")
        for column in required:
            if column not in header:
                return f"column {column} is missing"
        for column in header:
            if column not in required and column not in optional:
                return f"column '{column[:40]}' is unknown"
        return "a column is named twice" if len(set(header)) < len(header) else ""

    def _findings(self, columns: Columns, cells: Mapping[str, Sequence[str]]) -> Iterator[tuple[int, str, str]]:
        """By each check that fails, the first wrong cell: its row and column, and what is valid.

        Without `cells` it is not told whether they are distinct.
        """
        for check in self._checks:
            findings: Findings = iter(())
            if isinstance(check, Distinct):
                findings = iter([(is_repeated(cells.get(check.column, ())), "each value once")])
            elif check.column in columns:
                findings = check.findings(columns[check.column], list(self._texts.get(check.column, ())))
            for wrong, valid in findings:
                if wrong.any():
                    yield int(np.argmax(wrong)), check.column, valid


def _names(header: str) -> list[str]:
    return [column.strip() for column in header.split(",")]
