"""Many texts read at once are what each of them is by itself, or nan."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from slurm_sns.coverage import sacct
from slurm_sns.errors import BadInput
from slurm_sns.sim.traces.plain_texts import plain_moments_s, plain_numbers

MOMENTS = st.datetimes().map(lambda each: each.replace(microsecond=0).isoformat())
ODD = st.text(max_size=24) | st.text("0123456789-T:", min_size=17, max_size=20) | st.from_regex(r"\d{1,12}")


@given(st.lists(MOMENTS | ODD, max_size=20))
@example(["2026-02-30T00:00:00", "2026-02-28T00:00:00"])
@example(["0000-01-01T00:00:00", "٢026-01-01T00:00:00", "2026-01-01T24:00:00", "Unknown", ""])
def test_moments_are_those_that_each_text_says(texts):
    for text, found in zip(texts, plain_moments_s(texts).tolist(), strict=True):
        assert math.isnan(found) or found == sacct.moment_s(text)


@given(st.lists(ODD, max_size=20))
@example(["1", "0123456789", "12345678901", "+1", " 1", "1\x00", "²", "1_2", "1.batch"])
def test_numbers_are_those_that_each_text_says(texts):
    for text, found in zip(texts, plain_numbers(texts).tolist(), strict=True):
        assert math.isnan(found) or found == sacct.job_number(text)


def test_plain_texts_are_all_read():
    assert plain_moments_s(["1970-01-01T00:01:00", "1970-01-02T00:00:00"]).tolist() == [60, 86_400]
    assert plain_numbers(["7", "4294967295"]).tolist() == [7, 4294967295]
    with pytest.raises(BadInput):
        sacct.moment_s("2026-02-30T00:00:00")


@pytest.mark.parametrize("text", ["7", "7_0", "7_3", "4294967295_12"])
def test_the_number_of_a_job_is_shown_as_sacct_shows_it(text):
    assert sacct.job_text(sacct.job_number(text)) == text
