"""A CSV file as a checked table: known columns, no gaps, and errors that name file, line and column."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slurm_sns.errors import BadInput

#: The largest time, amount or job number: all stay exact in a float and far from the limits of 64-bit integers.
LARGEST = 10**12

FIRST_DATA_LINE = 2


@dataclass(frozen=True)
class Table:
    """The text cells of a CSV file, one row per line after the header."""

    name: str
    cells: Mapping[str, Sequence[str]]

    def __len__(self) -> int:
        return len(next(iter(self.cells.values())))

    def has(self, column: str) -> bool:
        """Whether the file has this column."""
        return column in self.cells

    def texts(self, column: str, valid: Callable[[str], bool], wording: str, *, empty: bool = False) -> list[str]:
        """The cells of a column, each of which must be `valid`; `wording` describes what is valid.

        `empty` allows empty cells.
        """
        texts = [text.strip() for text in self.cells[column]]
        for row, text in enumerate(texts):
            if not (valid(text) if text else empty):
                raise self.error(row, column, text, wording)
        return texts

    def numbers(self, column: str, least: float, most: float = LARGEST) -> NDArray[np.float64]:
        """A column of finite numbers from `least` to `most`."""
        cells = self.cells[column]
        numbers = np.array([_number(text) for text in cells], dtype=np.float64)
        with np.errstate(invalid="ignore"):
            wrong = ~((numbers >= least) & (numbers <= most))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise self.error(row, column, cells[row], f"a number from {least:g} to {most:g}")
        return numbers

    def integers(self, column: str, least: int, most: int = LARGEST) -> NDArray[np.int64]:
        """A column of whole numbers from `least` to `most`."""
        numbers = self.numbers(column, least, most)
        wrong = numbers != np.floor(numbers)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise self.error(row, column, self.cells[column][row], "a whole number")
        return numbers.astype(np.int64)

    def require_distinct(self, column: str) -> None:
        """Accept a column whose cells all differ.

        Raises:
            BadInput: naming the line of the first repetition.
        """
        seen: set[str] = set()
        for row, cell in enumerate(self.cells[column]):
            if cell.strip() in seen:
                raise self.error(row, column, cell, "each value once")
            seen.add(cell.strip())

    def error(self, row: int, column: str, value: str, valid: str) -> BadInput:
        """The error for one cell."""
        return BadInput(
            f"{self.name}: line {row + FIRST_DATA_LINE}: {column} is '{value.strip()[:40]}'; valid: {valid}"
        )


def read_table(name: str, text: str, required: Collection[str], optional: Collection[str]) -> Table:
    """The table of a CSV text.

    Raises:
        BadInput: missing, unknown or repeated columns, a line of another length, or no line but the header.
    """
    lines = text.rstrip().splitlines()
    header = [column.strip() for column in lines[0].split(",")]
    valid = f"{','.join(required)}" + (f" and optionally {','.join(optional)}" if optional else "")
    missing = [column for column in required if column not in header]
    unknown = [column for column in header if column not in required and column not in optional]
    if missing:
        raise BadInput(f"{name}: line 1: column {missing[0]} is missing; valid: {valid}")
    if unknown:
        raise BadInput(f"{name}: line 1: column '{unknown[0][:40]}' is unknown; valid: {valid}")
    if len(set(header)) < len(header):
        raise BadInput(f"{name}: line 1: a column is named twice; valid: {valid}")
    if len(lines) < FIRST_DATA_LINE:
        raise BadInput(f"{name}: there is no line after the header")
    for number, line in enumerate(lines[1:], start=FIRST_DATA_LINE):
        if line.count(",") != len(header) - 1:
            raise BadInput(f"{name}: line {number} has {line.count(',') + 1} fields; the header has {len(header)}")
        if '"' in line:
            raise BadInput(f"{name}: line {number} has a quoted field; valid: fields without quotes and commas")
    rows = [line.split(",") for line in lines[1:]]
    return Table(name, dict(zip(header, zip(*rows, strict=True), strict=True)))


def _number(text: str) -> float:
    """The number that the text says, or nan."""
    try:
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan
