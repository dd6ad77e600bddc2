"""The terms of a job's priority, from what `sprio` prints."""

import pytest

from slurm_sns.errors import Refused
from slurm_sns.slurm import priority


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (
            "2526|12|0|514|0|2000|0|cpu=0,mem=3|0|0\n",
            "priority 2526: age 12, fair-share 514, partition 2000, TRES cpu=0,mem=3",
        ),
        ("      1|         0|0|0|0|0|0|0|0|-20\n", "priority 1: nice -20"),
        ("7|0|0|0|0|0|0|0|0|0\n", "priority 7"),
        ("", "its priority is not known: sprio does not list the job"),
    ],
)
def test_the_terms_are_named_by_sprios_words(mocker, shown: str, said: str) -> None:
    run = mocker.patch.object(priority, "run", return_value=shown)
    assert priority.terms(41) == said
    assert "--jobs=41" in run.call_args.args


def test_without_sprio_it_says_why(mocker) -> None:
    mocker.patch.object(priority, "run", side_effect=Refused("sprio: not running priority/multifactor"))
    assert priority.terms(41) == "its priority is not known: sprio: not running priority/multifactor"
