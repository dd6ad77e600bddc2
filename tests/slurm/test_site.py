"""Options of slurm.conf as pyslurm gives them: a list, or a mapping."""

import pytest

from slurm_sns.scheduler.observation import Backfill
from slurm_sns.slurm.site import backfill, words


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


@pytest.mark.parametrize("parameters", [["bf_window=2880", "bf_interval=60"], {"bf_window": 2880, "bf_interval": "60"}])
def test_slurms_window_is_in_minutes_and_its_interval_in_seconds(parameters) -> None:
    assert backfill(parameters) == Backfill(2 * 86_400, 60)


@pytest.mark.parametrize("parameters", [None, [], ["bf_window"], ["bf_window=x"], ["bf_interval=0"], ["bf_windows=5"]])
def test_without_them_they_are_slurms_own(parameters) -> None:
    assert backfill(parameters) == Backfill(86_400, 30)
