"""The quick form of tests/fuzz/run.py: some thousand cases of every target, new ones with every new seed here."""

from random import Random

import pytest
from targets import TARGETS, Configurations

CASES = {"hints": 10_000, "records": 20_000, "config": 1_000, "requests": 1_500, "jobs": 4_000}


@pytest.mark.long
@pytest.mark.parametrize("name", TARGETS)
def test_nothing_that_anybody_writes_breaks_the_promise(name: str, tmp_path) -> None:
    with TARGETS[name](tmp_path) as target:
        target.check(Random(20_130_524), CASES[name])


def test_some_of_the_configurations_are_sound_ones(tmp_path) -> None:
    with Configurations(tmp_path) as target:
        target.check(Random(1), 300)
    assert target.sound > 30
