"""The compiled writer of result files writes what Python's own words for the numbers and texts are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_sns.sim.results import lines as writer
from slurm_sns.sim.results.lines import Lists, Numbers, Texts, lines

WHOLE = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, 9, 10, 99, 100, -1, -10, 10**18, 10**18 - 1])
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=6)


@st.composite
def columns(draw):
    """Columns of some lines, and the cells that they stand for."""
    count = draw(st.integers(0, 12))

    def listed(of, least=count, most=count):
        return draw(st.lists(of, min_size=least, max_size=most))

    found = []
    for kind in listed(st.sampled_from(["whole", "decimals", "texts"]), 1, 4):
        if kind == "whole":
            numbers = listed(WHOLE)
            found.append((Numbers(np.array(numbers, np.int64)), list(map(str, numbers))))
        elif kind == "decimals":
            numbers, decimals = listed(st.integers(0, 10**12)), draw(st.sampled_from([1, 3, 6]))
            unit = 10**decimals
            cells = [f"{each // unit}.{each % unit:0{decimals}d}" for each in numbers]
            found.append((Numbers(np.array(numbers, np.int64), decimals), cells))
        else:
            texts = listed(TEXT, 1, 4)
            places = listed(st.integers(0, len(texts) - 1))
            found.append((Texts(np.array(places, np.int64), texts), [texts[place] for place in places]))
    if draw(st.booleans()):
        texts = listed(TEXT, 1, 4)
        lists = [listed(st.integers(0, len(texts) - 1), 1, 5) for _ in range(count)]
        several = [place for each in lists if len(each) > 1 for place in each]
        counts = np.array(list(map(len, lists)), np.int8)
        begin = np.cumsum(np.where(counts > 1, counts, 0)) - np.where(counts > 1, counts, 0)
        values = np.where(counts > 1, begin, [each[0] for each in lists])
        cells = ["+".join(texts[place] for place in each) for each in lists]
        at = draw(st.integers(0, len(found)))
        found.insert(at, (Lists(values, texts, counts, np.array(several, np.int64)), cells))
    return found


@given(columns(), st.sampled_from([1, 24, 1 << 20]), st.sampled_from([1, 5, 1 << 16]))
def test_lines_are_those_of_python_whatever_room_there_is(drawn, room, part):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "ROOM", room)
        patch.setattr(writer, "PART", part)
        pieces = list(lines(*(column for column, _ in drawn)))

    rows = zip(*(cells for _, cells in drawn), strict=True)
    assert "".join(pieces) == "".join(",".join(row) + "\n" for row in rows)
    assert all(piece.endswith("\n") for piece in pieces)


def test_a_line_may_fill_its_room_to_the_last_letter(monkeypatch):
    monkeypatch.setattr(writer, "ROOM", 1)
    none = np.zeros(2, np.int64)
    for length in range(70):
        assert "".join(lines(Texts(none, ["x" * length]), Texts(none, [""]))) == 2 * ("x" * length + ",\n")
        assert "".join(lines(Texts(none, ["x" * length]))) == 2 * ("x" * length + "\n")
