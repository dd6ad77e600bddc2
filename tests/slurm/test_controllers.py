"""The controllers of slurm.conf, and slurmctld's own record of which of them acts."""

import struct
from pathlib import Path

import pytest

from slurm_sns import conf_text
from slurm_sns.errors import BadInput, SnsError
from slurm_sns.slurm.controllers import Controllers, controllers, hosts

TWO = "SlurmctldHost=ctl(10.0.0.1)\nslurmctldhost=ctl2\nStateSaveLocation=/shared/state\nMessageTimeout=20\n"


def lines(path: Path, text: str) -> tuple[conf_text.Line, ...]:
    (path / "slurm.conf").write_text(text)
    return conf_text.read(path / "slurm.conf")


def test_one_controller_is_nothing_to_care_for_whatever_this_host_is_called(tmp_path: Path) -> None:
    assert controllers(lines(tmp_path, "SlurmctldHost=ctl\n"), lambda: "login") is None
    assert controllers((), lambda: "login") is None


@pytest.mark.parametrize("own", ["ctl2", "ctl2.site.example"])
def test_several_are_named_in_order_and_this_host_is_one_of_them(tmp_path: Path, own: str) -> None:
    found = controllers(lines(tmp_path, TWO), lambda: own)
    assert found == Controllers(("ctl", "ctl2"), 1, Path("/shared/state"), 20.0)
    assert found.own_host == "ctl2"


@pytest.mark.parametrize(("own", "place"), [("b", 1), ("a.one", 0), ("a.two", 2), ("c", None)])
def test_a_domain_may_stand_on_one_side_alone_and_the_whole_name_goes_first(
    tmp_path: Path, own: str, place: int | None
) -> None:
    named = lines(tmp_path, "SlurmctldHost=a.one\nSlurmctldHost=b.one\nSlurmctldHost=a.two\n")
    if place is None:
        with pytest.raises(BadInput, match="this host is called c"):
            controllers(named, lambda: own)
    else:
        assert controllers(named, lambda: own).own == place


def test_slurms_own_values_hold_where_slurm_conf_says_nothing(tmp_path: Path) -> None:
    found = controllers(lines(tmp_path, "SlurmctldHost=a\nSlurmctldHost=b\n"), lambda: "a")
    assert found == Controllers(("a", "b"), 0, Path("/var/spool"), 10.0)


def test_a_host_that_is_none_of_them_is_told_which_are(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"this host is called login; valid: a SlurmctldHost of slurm.conf: ctl, ctl2$"):
        controllers(lines(tmp_path, TWO), lambda: "login")


def test_the_names_are_those_before_the_addresses(tmp_path: Path) -> None:
    assert hosts(lines(tmp_path, TWO)) == ("ctl", "ctl2")


@pytest.mark.parametrize(("place", "host"), [(0, "ctl"), (1, "ctl2")])
def test_the_heartbeat_names_the_acting_one(tmp_path: Path, place: int, host: str) -> None:
    (tmp_path / "heartbeat").write_bytes(struct.pack("!QQ", 1_795_952_192, place))
    assert Controllers(("ctl", "ctl2"), 0, tmp_path, 10).acting() == host


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"", "has another length than 16 bytes"),
        (b"\0" * 17, "has another length than 16 bytes"),
        (struct.pack("!QQ", 1, 2), "names controller 2; slurm.conf has 2"),
        (b"\xff" * 16, "names controller 18446744073709551615; slurm.conf has 2"),
    ],
)
def test_a_heartbeat_of_no_sense_is_an_error_of_one_line(tmp_path: Path, content: bytes | None, problem: str) -> None:
    if content is not None:
        (tmp_path / "heartbeat").write_bytes(content)
    with pytest.raises(SnsError, match=f"heartbeat {problem}$"):
        Controllers(("ctl", "ctl2"), 0, tmp_path, 10).acting()
