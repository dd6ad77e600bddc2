"""Options of slurm.conf as pyslurm gives them: a list, or a mapping."""

import pytest

from slurm_sns.slurm.parameters import backfill_window_s, words


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["defer", "bf_window=60"], ("defer", "bf_window=60")),
        ({"defer": True, "bf_window": 60}, ("defer", "bf_window=60")),
        (None, ()),
    ],
    ids=str,
)
def test_options_are_words(given, said) -> None:
    assert words(given) == said


@pytest.mark.parametrize("parameters", [["bf_window=2880"], {"bf_window": 2880}, {"bf_window": "2880"}], ids=str)
def test_slurms_window_is_in_minutes(parameters) -> None:
    assert backfill_window_s(parameters) == 2 * 86_400


@pytest.mark.parametrize("parameters", [None, [], ["bf_window"], ["bf_window=x"], ["bf_window=0"], ["bf_windows=5"]])
def test_without_one_it_is_a_day(parameters) -> None:
    assert backfill_window_s(parameters) == 86_400
