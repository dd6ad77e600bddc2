"""Printed numbers and statements beside our own draws."""

import numpy as np
import pytest

from slurm_sns.sim.reproduce.claims import (
    FAILS,
    HOLDS,
    INPUT,
    INPUT_LOST,
    INPUT_UNDECIDED,
    UNDECIDED,
    Claim,
    Input,
    Interval,
    count_verdicts,
    exactly,
)
from slurm_sns.sim.reproduce.draws import PrintedNumber, Statement
from slurm_sns.sim.reproduce.page import INPUT_RULE, Page, write_page

HUNDRED = np.arange(1.0, 101.0)


def number(printed, draws=HUNDRED, halves=()):
    return PrintedNumber("fig. 1", "a text", "a measure", printed, np.asarray(draws, dtype=float), halves)


@pytest.mark.parametrize(("printed", "verdict"), [(50, HOLDS), (6, HOLDS), (95, HOLDS), (5, FAILS), (96.5, FAILS)])
def test_a_printed_number_holds_inside_the_central_nine_tenths_of_our_draws(printed, verdict):
    assert number(printed).verdict == verdict


def test_the_words_say_on_which_side_it_lies():
    assert number(50).words == "holds: inside 90 % of our draws"
    assert number(3).words == "does not hold: outside, 97 % of our draws are larger"
    assert number(200).words == "does not hold: outside, 100 % of our draws are smaller"


def test_halves_that_disagree_leave_it_open_on_both_sides():
    low, high = HUNDRED[:50], HUNDRED[50:]

    assert number(30, halves=(low, high)).verdict == UNDECIDED
    assert number(50, halves=(HUNDRED, HUNDRED)).verdict == HOLDS
    assert number(200, halves=(low, high)).verdict == FAILS
    assert "do not agree" in number(30, halves=(low, high)).words


def test_a_count_that_all_draws_share_is_met_exactly_or_not_at_all():
    assert number(36, np.full(50, 36.0)).verdict == HOLDS
    assert number(35, np.full(50, 36.0)).verdict == FAILS


@pytest.mark.parametrize(("low", "verdict"), [(0, HOLDS), (10, HOLDS), (11, UNDECIDED), (89, UNDECIDED), (90, FAILS)])
def test_a_statement_holds_if_it_is_true_of_nine_tenths_of_our_draws(low, verdict):
    statement = Statement("fig. 1", "a text", "a measure", HUNDRED, low=low)

    assert statement.verdict == verdict
    assert statement.words == f"{verdict}: true of {100 - low} % of our draws"


def test_a_statement_needs_both_halves_too():
    assert Statement("", "", "", HUNDRED, low=5, halves=(HUNDRED[:50], HUNDRED[50:])).verdict == HOLDS
    assert Statement("", "", "", HUNDRED, low=8, halves=(HUNDRED[:50], HUNDRED[50:])).verdict == UNDECIDED


def test_inputs_are_never_counted_as_successes():
    found = (exactly(1.0), exactly(3.0), Interval(1.0, 0.5, 3.0))
    inputs = [Input("", "", "", each, 0, 2) for each in found]

    assert [each.verdict for each in inputs] == [INPUT, INPUT_LOST, INPUT_UNDECIDED]
    assert count_verdicts([*inputs, Claim("", "", "", exactly(1.0), 0, 2)]) == {
        HOLDS: 1,
        FAILS: 0,
        UNDECIDED: 0,
        INPUT: 1,
        INPUT_LOST: 1,
        INPUT_UNDECIDED: 1,
    }
    assert count_verdicts([]) == {HOLDS: 0, FAILS: 0, UNDECIDED: 0}


def test_a_page_has_a_table_for_each_group_and_says_what_an_input_is(tmp_path):
    claims = [number(50), number(200), Input("", "an input", "", exactly(1.0), 0, 2)]
    write_page(tmp_path, Page("A page", [], claims, groups=["the text", "another queue", "the text"]))

    text = (tmp_path / "README.md").read_text()
    assert "**the text: 2 claims: 1 holds, 1 input.**" in text
    assert "**another queue: 1 claims: 1 does not hold.**" in text
    assert INPUT_RULE in text
    rows = (tmp_path / "claims.csv").read_text().splitlines()
    assert rows[0] == "group,where,claim,measure,expected,mean,low,high,verdict"
    assert [row.split(",")[0] for row in rows[1:]] == ["the text", "another queue", "the text"]
