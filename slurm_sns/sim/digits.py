"""Read plain numbers from text, compiled: lines of fields with decimal digits, as nearly every trace has them.

What is anything else (another number of fields, a word, an exponent, more than 15 digits) is not judged here: reading
stops, and the plain reader decides what it is.
"""

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.placement.compiled import compiled, entry_point

Bytes = NDArray[np.uint8]

NEWLINE, RETURN, SPACE, TAB, COMMA, SEMICOLON, POINT, MINUS, PLUS, ZERO, NINE = (ord(sign) for sign in "\n\r \t,;.-+09")

#: Integers below 1e15 and powers of ten to 1e15 are exact in floating point, so that their quotient is rounded once.
MOST_DIGITS = 15
POWERS = 10.0 ** np.arange(MOST_DIGITS + 1)

AT, ROWS = range(2)


@entry_point
def read_lines(
    data: Bytes, place: NDArray[np.int64], commas: bool, column: NDArray[np.int64], values: NDArray[np.float64]
) -> bool:
    """Read complete lines until `values` is full; False when a line is not plain.

    `place` is where to begin (byte, 0) and, afterwards, where reading ended and how many rows it gave.
    Fields are separated by commas, or by blanks; then `;` begins a comment and empty lines are skipped. Field f goes
    to `values[row, column[f]]`, unless that is negative.
    """
    while place[ROWS] < len(values) and place[AT] < len(data):
        row = place[ROWS]
        at = place[AT] if commas else _skip_blanks(data, place[AT])
        if not commas and (data[at] == NEWLINE or data[at] == SEMICOLON):
            at = _end_of_line(data, at)
        else:
            at = _read_fields(data, at, commas, column, values[row])
            if at < 0:
                return False
            place[ROWS] += 1
        place[AT] = at + 1
    return True


@compiled
def _read_fields(data: Bytes, at: int, commas: bool, column: NDArray[np.int64], row: NDArray[np.float64]) -> int:
    """The place of the end of the line, or -1 when the line is not plain."""
    fields = len(column)
    for field in range(fields):
        at = _read_number(data, at, row, column[field])
        if at < 0:
            return -1
        if not commas:
            at = _skip_blanks(data, at)
        elif data[at] == RETURN:
            at += 1
        if field < fields - 1:
            if data[at] == NEWLINE or (commas and data[at] != COMMA):
                return -1
            at += commas
    return at if data[at] == NEWLINE else -1


@compiled
def _ends_number(sign: int) -> bool:
    return sign in (COMMA, SPACE, TAB, RETURN, NEWLINE)


@compiled
def _read_number(data: Bytes, at: int, row: NDArray[np.float64], column: int) -> int:
    """Read the number that begins here; the place after it, or -1."""
    negative = data[at] == MINUS
    at += negative or data[at] == PLUS
    number, digits, decimals, point = 0, 0, 0, False
    while True:
        sign = data[at]
        if ZERO <= sign <= NINE:
            number = 10 * number + (int(sign) - ZERO)
            digits += 1
            decimals += point
        elif sign == POINT and not point:
            point = True
        else:
            break
        at += 1
    if digits == 0 or digits > MOST_DIGITS:
        return -1
    if not _ends_number(sign):
        return -1
    if column >= 0:
        value = number / POWERS[decimals]
        row[column] = -value if negative else value
    return at


@compiled
def _skip_blanks(data: Bytes, at: int) -> int:
    while data[at] == SPACE or data[at] == TAB or data[at] == RETURN:
        at += 1
    return at


@compiled
def _end_of_line(data: Bytes, at: int) -> int:
    while data[at] != NEWLINE:
        at += 1
    return at
