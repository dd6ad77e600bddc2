"""The planner's lease: taken, renewed, given up, lost, taken after its end; two at one moment; files of no sense."""

import multiprocessing
import os
import time
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from slurm_sns.errors import SnsError
from slurm_sns.store.planner_lease import PlannerLease

LEASE_S = 15.0


class Steady:
    """Monotonic seconds that a test moves on."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


class Case:
    """Two hosts whose steady clocks began at different moments, and one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.steady, self.other_steady = Steady(), Steady()
        self.other_steady.now_s = 7.0
        self.ctl, self.ctl2 = self.lease("ctl", self.steady), self.lease("ctl2", self.other_steady)

    def lease(self, host: str, steady: Steady) -> PlannerLease:
        return PlannerLease(self.directory, host, LEASE_S, steady)

    def wait(self, seconds: float) -> None:
        self.steady.now_s += seconds
        self.other_steady.now_s += seconds

    @property
    def files(self) -> list[str]:
        return sorted(path.name for path in self.directory.iterdir())


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def test_the_first_who_asks_takes_it_and_the_other_learns_who_has_it(case: Case) -> None:
    assert case.ctl.holder() == ""
    assert case.ctl.take() == ""
    assert case.ctl.left_s == LEASE_S
    assert case.ctl2.take() == "ctl"
    assert case.ctl2.holder() == "ctl"
    assert case.ctl2.left_s == 0
    assert not case.ctl2.hold()
    assert case.files == ["sns-planner.1"]


def test_while_it_is_renewed_nobody_else_gets_it(case: Case) -> None:
    case.ctl.take()
    for _ in range(100):
        case.wait(5)
        assert case.ctl.hold()
        assert case.ctl.left_s == LEASE_S
        assert case.ctl2.take() == "ctl"
    assert case.files == ["sns-planner.1"]


def test_a_lease_renewed_a_moment_ago_is_not_written_again(case: Case) -> None:
    case.ctl.take()
    before = (case.directory / "sns-planner.1").stat().st_ino
    case.wait(0.9)
    assert case.ctl.hold()
    assert (case.directory / "sns-planner.1").stat().st_ino == before
    assert case.ctl.left_s == pytest.approx(LEASE_S - 0.9)


def test_what_was_given_up_is_taken_at_once(case: Case) -> None:
    case.ctl.take()
    case.ctl.give_up()
    assert not case.ctl.hold()
    assert case.ctl2.holder() == ""
    assert case.ctl2.take() == ""
    assert case.ctl.take() == "ctl2"
    assert case.files == ["sns-planner.2"], "the file of the epoch before is gone"


def test_who_has_never_had_it_gives_nothing_up(case: Case) -> None:
    case.ctl.take()
    case.ctl2.give_up()
    assert case.ctl2.take() == "ctl"


def test_it_is_taken_after_its_end_and_no_sooner_by_who_has_watched_it_all_the_time(case: Case) -> None:
    case.ctl.take()
    assert case.ctl2.take() == "ctl"
    case.wait(LEASE_S)
    assert case.ctl.left_s == 0
    assert case.ctl2.take() == "ctl", "clocks may run at different speeds"
    case.wait(1)
    assert case.ctl2.take() == ""
    assert not case.ctl.hold()
    assert case.ctl.take() == "ctl2"


def test_who_begins_to_watch_waits_for_the_whole_lease(case: Case) -> None:
    case.ctl.take()
    case.wait(1000)  # nobody has looked meanwhile, so it may have been renewed a moment ago
    assert case.ctl2.take() == "ctl"
    case.wait(LEASE_S + 1)
    assert case.ctl2.take() == ""


def test_who_only_asks_for_the_holder_watches_too(case: Case) -> None:
    case.ctl.take()
    assert case.ctl2.holder() == "ctl"
    case.wait(LEASE_S + 1)
    assert case.ctl2.take() == ""


def test_the_scheduler_of_the_same_host_goes_on_at_once_after_a_restart(case: Case) -> None:
    case.ctl.take()
    case.wait(1)
    assert case.lease("ctl", case.steady).take() == ""
    assert not case.ctl.hold()


def test_who_stood_still_past_the_end_goes_on_if_nobody_had_it_since(case: Case) -> None:
    case.ctl.take()
    case.wait(60)
    assert case.ctl.hold()
    assert case.ctl.left_s == LEASE_S
    assert case.files == ["sns-planner.2"], "by a new epoch, which two cannot take"


def test_who_stood_still_through_several_epochs_has_lost_it(case: Case) -> None:
    case.ctl.take()
    for _ in range(3):
        case.ctl2.take()
        case.wait(LEASE_S + 1)
        assert case.ctl2.take() == "" or case.ctl2.hold()
    case.ctl2.give_up()
    assert case.lease("ctl3", case.other_steady).take() == ""
    assert not case.ctl.hold()
    assert case.ctl.left_s == 0


def test_who_stands_still_while_renewing_loses_to_who_took_it_meanwhile(case: Case) -> None:
    slow = Steady()
    lease = case.lease("ctl", slow)
    lease.take()
    case.ctl2.take()
    case.wait(LEASE_S + 1)

    class Stops(Steady):
        """Gives the moment before the stop once; in the meantime the other one takes the lease."""

        def __call__(self) -> float:
            if self.now_s == 1000.0 + LEASE_S - 1:
                self.now_s += 10
                assert case.ctl2.take() == ""
                return 1000.0 + LEASE_S - 1
            return self.now_s

    stops = Stops()
    stops.now_s = 1000.0 + LEASE_S - 1
    lease._steady = stops
    assert not lease.hold()
    assert lease.left_s == 0
    assert case.ctl2.hold()


def test_setting_the_clock_changes_nothing(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    case.ctl.take()
    for wall_s in (0.0, 4e9):
        monkeypatch.setattr(time, "time", lambda wall_s=wall_s: wall_s)
        os.utime(case.directory / "sns-planner.1", (wall_s, wall_s))
        assert case.ctl2.take() == "ctl"
        case.wait(5)
        assert case.ctl.hold()


@pytest.mark.parametrize(
    "content",
    [b"", b"\0" * 100, b"{", b"[]", b"7", b'{"host": 7}', b"\xff\xfe", b"[" * 100_000, b'{"host": "a", ' + b" " * 9000],
)
def test_a_file_of_no_sense_is_a_lease_of_somebody_unknown_and_ends_as_any_other(case: Case, content: bytes) -> None:
    (case.directory / "sns-planner.4").write_bytes(content)
    assert case.ctl.take() == "an unknown host"
    case.wait(LEASE_S + 1)
    assert case.ctl.take() == ""
    assert case.files == ["sns-planner.5"]


def test_a_host_name_of_no_sense_is_one_short_line(case: Case) -> None:
    (case.directory / "sns-planner.4").write_text('{"host": "c\\n\\u001b[31m' + "x" * 500 + '"}')
    assert case.ctl.take() == "c??[31m" + "x" * 57


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/etc/passwd")])
def test_a_pipe_a_directory_or_a_link_in_its_place_stops_nobody(case: Case, make: Callable[[Path], None]) -> None:
    make(case.directory / "sns-planner.4")
    assert case.ctl.take() == "an unknown host"
    case.wait(LEASE_S + 1)
    assert case.ctl.take() == ""
    assert case.ctl2.take() == "ctl"


def test_other_files_of_the_directory_are_left_alone(case: Case) -> None:
    names = ["heartbeat", "job_state", "sns-planner.", "sns-planner.0", "sns-planner.x", "sns-planner." + "9" * 16]
    for name in names:
        (case.directory / name).write_text("")
    assert case.ctl.take() == ""
    assert case.files == sorted([*names, "sns-planner.1"])


def test_a_directory_that_is_not_there_is_an_error_of_one_line(tmp_path: Path) -> None:
    lease = PlannerLease(tmp_path / "none", "ctl", LEASE_S, Steady())
    for call in (lease.take, lease.holder):
        with pytest.raises(SnsError, match=r"none cannot be read: No such file or directory$"):
            call()


def test_a_lease_that_cannot_be_written_goes_on_until_its_end(case: Case) -> None:
    case.ctl.take()
    case.directory.rename(case.directory.with_name("moved"))
    case.wait(5)
    with pytest.raises(SnsError, match=r"the lease .*sns-planner.1 cannot be written: No such file or directory$"):
        case.ctl.hold()
    assert case.ctl.left_s == LEASE_S - 5
    case.wait(10)
    with pytest.raises(SnsError, match="cannot be read"):
        case.ctl.hold()
    assert case.ctl.left_s == 0


def _race(
    directory: Path, host: str, rounds: int, start: Barrier, won: "multiprocessing.Queue[tuple[int, str]]"
) -> None:
    for number in range(rounds):
        lease = PlannerLease(directory / str(number), host, LEASE_S, time.monotonic)
        start.wait()
        if lease.take() == "":
            won.put((number, host))


def test_of_two_processes_that_try_at_one_moment_exactly_one_gets_it(tmp_path: Path) -> None:
    rounds, context = 300, multiprocessing.get_context("fork")
    for number in range(rounds):
        (tmp_path / str(number)).mkdir()
        if number % 2:  # half of them are races for a lease that another host gave up
            former = PlannerLease(tmp_path / str(number), "ctl3", LEASE_S, time.monotonic)
            former.take()
            former.give_up()
    start, won = context.Barrier(2), context.Queue()
    racers = [context.Process(target=_race, args=(tmp_path, host, rounds, start, won)) for host in ("ctl", "ctl2")]
    for racer in racers:
        racer.start()
    winners = [won.get(timeout=60) for _ in range(rounds)]
    for racer in racers:
        racer.join(60)
        assert racer.exitcode == 0
    assert won.empty()
    assert sorted(number for number, _ in winners) == list(range(rounds))
    for number, host in winners:
        assert PlannerLease(tmp_path / str(number), "ctl3", LEASE_S, time.monotonic).holder() == host
