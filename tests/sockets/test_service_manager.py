"""What systemd hears of a daemon, and that no systemd can stop one."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm_sns.sockets.service_manager import SignOfLife, notify


@pytest.fixture(params=["{}/notify", "@{}/notify"])
def systemd(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """systemd's end, in the file system or in the abstract name space."""
    address = request.param.format(tmp_path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
        end.bind(address.replace("@", "\0"))
        end.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        yield end


def heard(systemd: socket.socket) -> list[str]:
    """One message as lines; the next one stays."""
    return systemd.recv(4096).decode().split("\n")


def test_systemd_hears_the_variables(systemd: socket.socket) -> None:
    notify(READY="1", STATUS="enforce; 12 waiting; cycle 12 ms")
    assert heard(systemd) == ["READY=1", "STATUS=enforce; 12 waiting; cycle 12 ms"]


def test_no_text_begins_a_variable_of_its_own_or_makes_the_message_too_long(systemd: socket.socket) -> None:
    notify(STATUS="away\nMAINPID=1" + "\udcff\x1b[2J" + "\N{SNOWMAN}" * 4000)
    [line] = heard(systemd)
    assert line.startswith("STATUS=away?MAINPID=1??[2J\N{SNOWMAN}")
    assert len(line.encode()) < 4096


@pytest.mark.parametrize("address", [None, "", "/nowhere/notify", "@nobody-listens", "/" + "x" * 200])
def test_without_a_systemd_that_listens_nothing_happens(address: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    if address is not None:
        monkeypatch.setenv("NOTIFY_SOCKET", address)
    notify(READY="1")


def test_a_systemd_that_reads_nothing_stops_no_daemon(systemd: socket.socket) -> None:
    for number in range(10_000):  # the kernel queues some hundred at most (net.unix.max_dgram_qlen)
        notify(STATUS=str(number))
    assert heard(systemd) == ["STATUS=0"]


class TestSignOfLife:
    def test_the_same_is_said_once_a_second_and_news_at_once(self, systemd: socket.socket) -> None:
        status, now_s = "a", 100.0
        lives = SignOfLife(lambda: status, lambda: now_s)

        def hears(what: str | None) -> bool:
            lives()
            try:
                return heard(systemd) == ["WATCHDOG=1", f"STATUS={what}"]
            except BlockingIOError:
                return what is None

        assert hears("a")
        assert hears(None)
        now_s += 1.0
        assert hears("a")
        status = "b"
        assert hears("b")
        assert hears(None)
