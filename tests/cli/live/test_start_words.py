"""When a job is expected to start, in words."""

from datetime import datetime

import pytest

from slurm_sns.cli.live.start_words import by_limits, sentence, start_range

NOON = datetime(2026, 11, 27, 12, 0).astimezone().timestamp()  # a Friday, in local time
HOUR = 3600


def row(low: float | None, high: float | None = None, limits: float | None = None, waits_for: str = "", **more) -> dict:
    moments = {"low_s": low, "high_s": high, "limits_s": limits, "not_before_s": None, "waits_for": waits_for, **more}
    return {
        "starts": {
            name: NOON + each * HOUR if isinstance(each, int | float) else each for name, each in moments.items()
        }
    }


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (2.18, 4.6, "14:10 to 16:40"),
        (0.51, 0.76, "12:30 to 12:46"),
        (-1, 0.5, "now to 12:30"),
        (-1, 0, "late"),
        (0.01, 0.01, "now to 12:01"),
        (2, 20, "14:00 to Sat 08:00"),
        (2, 24 * 9, "14:00 to 06 Dec 12:00"),
    ],
)
def test_a_range_is_told_in_local_time_rounded_outward(low, high, text):
    assert start_range(row(low, high), NOON) == text


def test_a_start_beyond_the_look_ahead_is_told_as_after_it():
    assert start_range(row(None, not_before_s=24 * 7), NOON) == "after 04 Dec 12:00"
    assert sentence(row(None, not_before_s=24), NOON) == "starts after Sat 12:00"


def test_what_is_over_is_never_told_as_a_start_to_come():
    assert sentence(row(-2, -1, 3, "node c1"), NOON) == "is later than its expected range"
    over = row(None, not_before_s=0)
    assert (start_range(over, NOON), sentence(over, NOON)) == ("-", "")


def test_a_job_without_an_estimate_has_a_dash_and_no_sentence():
    assert [start_range({"starts": None}, NOON), by_limits({}, NOON), sentence({}, NOON)] == ["-", "-", ""]


def test_the_sentence_says_what_is_waited_for():
    assert sentence(row(2.18, 4.6, 10.08, "job 41's nodes (node c1)"), NOON) == (
        "starts between 14:10 and 16:40 (by limits 22:04), when job 41's nodes (node c1) come free"
    )
    assert sentence(row(2, 2, None, "node c1"), NOON) == "starts 14:00, when node c1 comes free"
    assert sentence(row(2, 2, None, "nodes c1, c2"), NOON) == "starts 14:00, when nodes c1, c2 come free"
