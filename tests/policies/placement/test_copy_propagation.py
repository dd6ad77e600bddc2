"""Inlined functions have no copies of their callers' variables, and compute what they computed with them."""

from typing import NamedTuple

import numpy as np
import pytest
from numba import njit

from slurm_sns.policies.placement import copy_propagation
from slurm_sns.policies.placement.compiled import OPTIONS, inlined


class Pair(NamedTuple):
    left: np.ndarray
    right: np.ndarray


class Pairs(NamedTuple):
    first: Pair


@inlined
def _same(number: int) -> int:
    return number


@inlined
def _total(pair: Pair, at: int) -> int:
    return pair.left[at] + pair.right[at]


@inlined
def _total_of_next(pair: Pair, at: int) -> int:
    at += 1
    return _total(pair, at) if at < len(pair.left) else 0


def _sum_of_totals(pairs: Pairs, at: int) -> int:
    pair = pairs.first
    found = _total(pair, at) + 1000 * _total_of_next(pair, at)
    while at < len(pair.left):
        found = 2 * found + _total(pair, at)
        at += 1
    return found


def _last_below(most: int) -> int:
    before = number = 0
    while number < most:
        before = _same(number)
        number += 1
    return before


def _turned(number: int) -> int:
    digits, moved = [1, 2, 3], number
    for at in range(3):
        moved, digits[at] = digits[at], moved
    return digits[0] + 10 * digits[1] + 100 * digits[2] + 1000 * moved


@pytest.fixture
def replaced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What stands now for a copy of it, one name for each copy."""
    seen: list[str] = []
    replace = copy_propagation.replace_vars

    def note(blocks, source) -> None:
        seen.extend(of.name for of in source.values())
        replace(blocks, source)

    monkeypatch.setattr(copy_propagation, "replace_vars", note)
    return seen


def test_there_are_no_copies_of_a_tree_of_arrays_at_any_depth(replaced: list[str]) -> None:
    pairs = Pairs(Pair(np.arange(4), np.array([10, 20, 30, 40])))
    found = njit(_sum_of_totals, **OPTIONS)(pairs, 1)
    assert found == njit(_sum_of_totals)(pairs, 1) == 256_359
    assert replaced.count("pair") == 4, "of three calls, and of the call in one of them"


@pytest.mark.parametrize(("function", "expected"), [(_last_below, 6), (_turned, 3217)])
def test_what_changes_in_a_loop_does_not_change_with_its_copies(function, expected: int) -> None:
    numbas_own = njit(function)(7)
    assert njit(function, **{**OPTIONS, "_nrt": True})(7) == numbas_own == expected
