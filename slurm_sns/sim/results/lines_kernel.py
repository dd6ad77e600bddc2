"""The lines of a result file in compiled code: columns of whole numbers and of texts become bytes."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.placement.compiled import compiled, entry_point

Integers = NDArray[np.int64]
Letters = NDArray[np.uint8]

COMMA, NEWLINE, MINUS, PLUS, POINT, ZERO = (ord(letter) for letter in ",\n-+.0")
#: Kinds of columns; a column of numbers has how many decimals there are.
TEXTS, LISTS = -1, -2
TEN, MOST_DIGITS = np.uint64(10), 19
POWERS = np.array([10**digits for digits in range(MOST_DIGITS)], np.uint64)
#: The digits, a sign, a point, and what ends the cell.
LONGEST_NUMBER = MOST_DIGITS + 3


class LineLayout(NamedTuple):
    """What is the same for all lines: by column its kind, and where its texts begin among all.

    Text t has the `letters` from `begin[t]` to `begin[t + 1]`. `listed` are the texts of lists, one after the other.
    """

    kinds: Integers
    first: Integers
    letters: Letters
    begin: Integers
    listed: NDArray[np.integer]


@entry_point
def fill_lines(
    layout: LineLayout, columns: Integers, counts: NDArray[np.integer], out: Letters, line: int
) -> tuple[int, int]:
    """Write lines from `line` on, as many as fit; return the first that does not, and how many bytes are written.

    `columns` have the shape (columns, lines): numbers, in units of their last decimal and not negative if they have
    decimals; places of texts; and for a list, of which `counts` has the length, the place of its first text in
    `listed`, or that text if it is the only one. The texts of a list are joined by `+`.
    """
    at, last = 0, len(columns) - 1
    while line < columns.shape[1]:
        begin = at
        for column in range(last + 1):
            value, kind, first = columns[column, line], layout.kinds[column], layout.first[column]
            if kind >= 0:
                at = _put_number(out, at, value, kind)
            elif kind == TEXTS or counts[line] == 1:
                at = _put_text(out, at, layout, first + value)
            else:
                for place in range(value, value + counts[line]):
                    at = _put_text(out, at, layout, first + layout.listed[place])
                    if at < 0:
                        return line, begin
                    out[at] = PLUS
                    at += 1
                at -= 1
            if at < 0:
                return line, begin
            out[at] = NEWLINE if column == last else COMMA
            at += 1
        line += 1
    return line, at


@compiled
def _put_text(out: Letters, at: int, layout: LineLayout, place: int) -> int:
    """Where it ends, with room for a letter more; -1 if there is none."""
    begin, end = layout.begin[place], layout.begin[place + 1]
    if at + end - begin >= len(out):
        return -1
    for letter in range(begin, end):
        out[at] = layout.letters[letter]
        at += 1
    return at


@compiled
def _put_number(out: Letters, at: int, value: int, decimals: int) -> int:
    """The same of a number."""
    if at + LONGEST_NUMBER > len(out):
        return -1
    rest = np.uint64(value)
    if value < 0:
        out[at] = MINUS
        at += 1
        rest = np.uint64(0) - rest
    length = decimals + 1
    while length < MOST_DIGITS and rest >= POWERS[length]:
        length += 1
    end = at + length + (1 if decimals else 0)
    at = end
    for digit in range(length):
        if decimals and digit == decimals:
            at -= 1
            out[at] = POINT
        at -= 1
        out[at] = ZERO + rest % TEN
        rest //= TEN
    return end
