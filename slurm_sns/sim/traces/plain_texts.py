"""Texts of the plainest form as numbers, many at once: times as sacct prints them, and numbers of a few digits.

What has another form is nan, and to be read one by one: `2026-11-27T20:00:00` is plain, `2026-11-27T20:00:00+01:00` is
not, nor is a day that no calendar has.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from slurm_sns.sim.trace import Column, Flags

_MOMENT = "0000-00-00T00:00:00"
_AT_DIGITS = np.array([letter == "0" for letter in _MOMENT])
_BETWEEN = np.array([ord(letter) for letter in _MOMENT], np.uint32)
#: Job numbers have fewer.
_MOST_DIGITS = 10


def plain_moments_s(texts: Sequence[str]) -> Column:
    """Local times as if they were UTC, seconds since 1970."""
    found = np.full(len(texts), np.nan)
    rows = np.flatnonzero(_lengths(texts) == len(_MOMENT))
    words, letters = _letters([texts[row] for row in rows.tolist()], len(_MOMENT))
    plain = np.where(_AT_DIGITS, _is_digit(letters), letters == _BETWEEN).all(axis=1)
    plain &= (letters[:, :4] != ord("0")).any(axis=1)  # numpy has a year 0
    try:
        found[rows[plain]] = words[plain].astype("datetime64[s]").astype(np.int64)
    except ValueError:
        return np.full(len(texts), np.nan)  # some day or hour does not exist: each is read by itself
    return found


def plain_numbers(texts: Sequence[str]) -> Column:
    """Whole numbers of digits alone."""
    found = np.full(len(texts), np.nan)
    lengths = _lengths(texts)
    rows = np.flatnonzero((lengths > 0) & (lengths <= _MOST_DIGITS))
    words, letters = _letters([texts[row] for row in rows.tolist()], _MOST_DIGITS)
    plain = (_is_digit(letters) | (np.arange(_MOST_DIGITS) >= lengths[rows][:, np.newaxis])).all(axis=1)
    found[rows[plain]] = words[plain].astype(np.int64)
    return found


def _lengths(texts: Sequence[str]) -> NDArray[np.int64]:
    return np.fromiter(map(len, texts), np.int64, len(texts))


def _letters(texts: Sequence[str], width: int) -> tuple[NDArray[np.str_], NDArray[np.uint32]]:
    """The texts, and their letters as numbers, shape (texts, width)."""
    words = np.array(texts, f"U{width}")
    return words, words.view(np.uint32).reshape(len(texts), width)


def _is_digit(letters: NDArray[np.uint32]) -> Flags:
    digits: Flags = (letters >= ord("0")) & (letters <= ord("9"))
    return digits
