"""The rule of the verdicts: intervals, draws, claims of several parts, inputs, differences."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from slurm_sns.sim.pages.judge import (
    FAILS,
    HOLDS,
    IDENTICAL,
    INPUT,
    INPUT_LOST,
    INPUT_UNDECIDED,
    UNDECIDED,
    Claim,
    Interval,
    count_verdicts,
    drawn,
    exactly,
    found_of,
    interval,
    joint,
    percent_above,
    percent_more,
    t_quantile,
)


def claim(found, **bounds):
    return Claim("fig. 0", "a text", "a measure", Interval(sum(found) / 2, *found), **bounds)


@pytest.mark.parametrize(("freedom", "printed"), [(1, 12.706), (2, 4.303), (4, 2.776), (29, 2.045), (1000, 1.962)])
def test_the_quantiles_are_those_of_the_tables(freedom, printed):
    assert t_quantile(freedom) == pytest.approx(printed, abs=1e-3)


def test_the_interval_of_samples_is_the_one_of_a_textbook():
    found = interval([4, 5, 6, 7, 8])
    assert (found.mean, found.low, found.high) == pytest.approx((6, 6 - 1.9632, 6 + 1.9632), abs=1e-3)


def test_one_sample_says_nothing_but_a_quantity_without_chance_needs_no_more():
    assert interval([3.0]).high == inf
    assert exactly(3.0).low == exactly(3.0).high == 3.0


@pytest.mark.parametrize(
    ("found", "bounds", "verdict"),
    [
        ((1, 2), {"low": 0}, "holds"),
        ((-1, 2), {"low": 0}, "cannot tell"),
        ((-2, -1), {"low": 0}, "does not hold"),
        ((-2, -1), {"high": 0}, "holds"),
        ((0, 0), {"low": 0}, "does not hold"),
        ((-4, 4), {"low": -5, "high": 5}, "holds"),
        ((-4, 6), {"low": -5, "high": 5}, "cannot tell"),
        ((5, 6), {"low": -5, "high": 5}, "does not hold"),
        ((-inf, inf), {"low": 0}, "cannot tell"),
    ],
)
def test_the_verdict_follows_from_the_interval_and_the_bounds(found, bounds, verdict):
    assert claim(found, **bounds).verdict == verdict


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        ([(1, 2), (3, 4)], "holds"),
        ([(1, 2), (-1, 2)], "cannot tell"),
        ([(-1, 2), (-2, -1), (1, 2)], "does not hold"),
    ],
)
def test_a_sentence_of_several_parts_is_one_claim_with_the_worst_of_their_verdicts(parts, verdict):
    found = joint("both", *(claim(each, low=0) for each in parts))
    assert (found.verdict, found.text, len(found.parts)) == (verdict, "both", len(parts))
    assert replace(found, where="elsewhere").verdict == verdict


def test_percentages_are_taken_pair_by_pair():
    assert percent_more(np.array([2.0, 30.0]), np.array([1.0, 40.0])).tolist() == [100, -25]


def test_weeks_are_drawn_together_for_both_policies():
    weeks = np.array([10.0, 1000.0, 50.0])
    assert percent_above(1.2 * weeks, weeks) == Interval(*[pytest.approx(20)] * 3)
    one_bad_week = percent_above(weeks + np.array([0, 500.0, 0]), weeks)
    assert one_bad_week.low == 0 < one_bad_week.mean < one_bad_week.high


def test_where_nobody_waits_policies_do_not_differ_and_where_one_waits_it_is_infinitely_more():
    assert percent_above(np.zeros(3), np.zeros(3)) == Interval(0, 0, 0)
    assert percent_above(np.ones(3), np.zeros(3)).high == inf


# --- draws

HUNDRED = np.arange(1.0, 101.0)


def number(printed, draws=HUNDRED, halves=()):
    return Claim("fig. 1", "a text", "a measure", drawn(draws, halves), printed=printed)


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
    statement = Claim("fig. 1", "a text", "a measure", drawn(HUNDRED), low=low)

    assert statement.verdict == verdict
    assert statement.words == f"{verdict}: true of {100 - low} % of our draws"


def test_a_statement_needs_both_halves_too():
    assert Claim("", "", "", drawn(HUNDRED, (HUNDRED[:50], HUNDRED[50:])), low=5).verdict == HOLDS
    assert Claim("", "", "", drawn(HUNDRED, (HUNDRED[:50], HUNDRED[50:])), low=8).verdict == UNDECIDED


def test_inputs_are_never_counted_as_successes():
    found = (exactly(1.0), exactly(3.0), Interval(1.0, 0.5, 3.0))
    inputs = [Claim("", "", "", each, 0, 2, is_input=True) for each in found]

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


def test_a_quantity_is_samples_draws_an_interval_or_a_number():
    assert found_of(np.array([1.0, 3.0])) == interval([1, 3])
    assert found_of(2) == found_of(np.float64(2)) == exactly(2)
    assert found_of(Interval(1, 0, 2)) == Interval(1, 0, 2)
    assert found_of(drawn(HUNDRED)).mean == 50.5


def test_a_difference_that_is_exactly_0_says_nothing_about_the_claim():
    same = Claim("", "", "", interval(np.zeros(3)), -5, 5, is_difference=True)
    assert same.verdict == IDENTICAL
    assert count_verdicts([same]) == {HOLDS: 0, FAILS: 0, UNDECIDED: 0, IDENTICAL: 1}
    assert joint("", same, claim((1, 2), low=0)).verdict == IDENTICAL
    assert joint("", same, claim((-2, -1), low=0)).verdict == FAILS
    assert replace(same, is_difference=False).verdict == HOLDS
