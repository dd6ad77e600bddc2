"""No garbage collection interrupts a cycle; however the cycle ends, collections are enabled again afterwards."""

import gc

import pytest

from slurm_sns.scheduler.loop import uncollected


@uncollected()
def is_collecting() -> bool:
    return gc.isenabled()


def test_there_are_no_collections_inside_and_there_are_again_afterwards():
    for _ in range(2):
        assert not is_collecting()
        assert gc.isenabled()


def test_an_error_inside_changes_nothing():
    with pytest.raises(ZeroDivisionError), uncollected():
        _ = 1 / 0
    assert gc.isenabled()


def test_collections_that_were_disabled_before_stay_disabled():
    gc.disable()
    try:
        assert not is_collecting()
        assert not gc.isenabled()
    finally:
        gc.enable()
