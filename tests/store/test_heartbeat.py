"""The heartbeat and the kill switch, as the submit filter reads them."""

from pathlib import Path

import pytest

from slurm_sns.errors import SnsError
from slurm_sns.store.heartbeat import HeartbeatFile, KillSwitchFile


def test_a_beat_is_whole_unix_seconds_on_one_line(tmp_path: Path) -> None:
    beat = HeartbeatFile(tmp_path / "heartbeat")
    beat.beat(1795194262.9)
    assert (tmp_path / "heartbeat").read_text() == "1795194262\n"
    assert beat.last() == 1795194262
    assert [each.name for each in tmp_path.iterdir()] == ["heartbeat"], "it is written beside and renamed"


def test_a_stop_is_a_beat_of_1970(tmp_path: Path) -> None:
    beat = HeartbeatFile(tmp_path / "heartbeat")
    beat.beat(1795194262)
    beat.stop()
    assert beat.last() == 0


@pytest.mark.parametrize("content", [None, b"", b"soon\n", b"\xff\xff", b"12 34"])
def test_what_is_no_time_is_no_beat(tmp_path: Path, content) -> None:
    if content is not None:
        (tmp_path / "heartbeat").write_bytes(content)
    assert HeartbeatFile(tmp_path / "heartbeat").last() is None


def test_a_beat_that_cannot_be_written_is_an_error_of_one_line(tmp_path: Path) -> None:
    with pytest.raises(SnsError, match="cannot be written: No such file or directory"):
        HeartbeatFile(tmp_path / "none" / "heartbeat").beat(1)


def test_the_switch_says_whether_it_changed_anything(tmp_path: Path) -> None:
    switch = KillSwitchFile(tmp_path / "disabled")
    assert not switch.is_on()
    assert [switch.set(on=True), switch.set(on=True), switch.is_on()] == [True, False, True]
    assert [switch.set(on=False), switch.set(on=False), switch.is_on()] == [True, False, False]


def test_a_switch_that_cannot_be_set_is_not_taken_for_set(tmp_path: Path) -> None:
    with pytest.raises(SnsError, match=r"the kill switch .* cannot be changed: No such file or directory"):
        KillSwitchFile(tmp_path / "none" / "disabled").set(on=True)
