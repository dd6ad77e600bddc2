"""`sns wait`: it ends when the job starts, or will not start any more; it asks seldom and outlives the scheduler."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from slurm_sns.cli.live import wait
from slurm_sns.errors import BadInput, Unreachable
from slurm_sns.sockets.unix_socket import ControlSocket

WAITS = {"label": "41", "state": "waiting", "nodes": [], "reason": "c1 lacks 2 cores"}
STARTED = {**WAITS, "state": "started", "nodes": ["c1", "c2"]}
UNKNOWN = BadInput("job 41: no job of yours that Slurm or slurm_sns knows")


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def clock(mocker) -> Clock:
    return mocker.patch.object(wait, "time", Clock())


@pytest.fixture
def waited(sns, config: Path, mocker, clock):  # noqa: ARG001  no time passes
    """What `sns wait` prints while the scheduler answers so, one after the other, the last one again and again."""

    def run(*answers, words=()) -> tuple[int, str, str]:
        left = list(answers)

        def ask():
            answer = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(answer, Exception):
                raise answer
            return answer

        mocker.patch.object(wait, "asker", lambda _, request: ask if request["command"] == "job" else None)
        return sns("wait", "41", *words, "--config", config)

    return run


def test_it_ends_when_the_job_starts_and_says_where(waited, clock: Clock) -> None:
    assert waited(WAITS, WAITS, STARTED) == (0, "job 41 has started on c[1-2]\n", "")
    assert clock.now_s == 2 * wait.ASKED_EVERY_S


@pytest.mark.parametrize(
    ("last", "said"),
    [
        ({**WAITS, "state": "ended"}, "job 41 ended without having started"),
        ({**WAITS, "state": "gone"}, "job 41 is no longer in Slurm"),
        (UNKNOWN, "job 41 is no longer in Slurm"),
    ],
)
def test_a_job_that_will_not_start_any_more_is_a_failure(waited, last, said: str) -> None:
    assert waited(WAITS, last) == (1, "", f"sns: error: {said}\n")


def test_a_placed_job_that_slurm_has_forgotten_has_started(waited) -> None:
    gone = {**WAITS, "state": "gone", "nodes": ["c1"]}
    assert waited(WAITS, gone) == (0, "job 41 has started on c1\n", "")


def test_a_job_of_an_earlier_count_of_numbers_is_not_the_one_that_was_submitted_just_now(waited) -> None:
    gone = {**WAITS, "state": "gone", "nodes": ["c9"]}
    assert waited(gone, gone, WAITS, STARTED)[1] == "job 41 has started on c[1-2]\n"


def test_when_the_time_is_up_it_says_why_the_job_waits(waited, clock: Clock) -> None:
    late = "sns: error: job 41 has not started in time: c1 lacks 2 cores\n"
    assert waited(WAITS, words=("--timeout", 10)) == (1, "", late)
    assert clock.now_s == 10
    assert waited(WAITS, words=("--timeout", 0)) == (1, "", late)


def test_a_job_that_was_submitted_just_now_is_found_with_the_next_cycle(waited) -> None:
    assert waited(UNKNOWN, UNKNOWN, STARTED)[0] == 0


def test_a_job_that_stays_unknown_is_wrong_input(waited, clock: Clock) -> None:
    assert waited(UNKNOWN) == (2, "", f"sns: error: {UNKNOWN}\n")
    assert wait.UNSEEN_S <= clock.now_s < 2 * wait.UNSEEN_S


def test_a_scheduler_that_goes_away_is_asked_again_but_one_that_was_never_there_is_not(waited) -> None:
    away = Unreachable("no scheduler answers")
    assert waited(WAITS, away, away, STARTED)[0] == 0
    assert waited(away, STARTED) == (1, "", "sns: error: no scheduler answers\n")
    assert waited(WAITS, away, words=("--timeout", 9))[2].endswith("in time: no scheduler answers\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_without_a_word(config: Path, number: int) -> None:
    asked: list[object] = []
    with ControlSocket(config.parent / "scheduler.sock", lambda request, _: asked.append(request) or WAITS):
        command = [sys.executable, "-c", "from slurm_sns.cli import main; main()", "wait", "41", "--config", config]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONUTF8": "1"}
        )
        while not asked:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(number)
        said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, (b"", b""))
