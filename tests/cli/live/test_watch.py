"""Once or again and again: on a terminal in place, in a pipe line by line, as JSON; the scheduler may come and go."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from own_terminal import LONG_S, Terminal
from shown import row, status

from slurm_sns.sockets.unix_socket import ControlSocket

SECOND_SCREEN, FIRST_SCREEN, CURSOR = "\x1b[?1049h", "\x1b[?1049l", "\x1b[?25h"


def answering(path: Path, **replies: object) -> ControlSocket:
    return ControlSocket(path, lambda request, _: replies[request["command"]])


def now_status(**fields) -> dict:
    return status(at_s=time.time(), began_s=time.time() - 60, **fields)


@pytest.fixture
def socket_path(config: Path) -> Path:
    return config.parent / "scheduler.sock"


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_watch_ends_well_and_leaves_the_last_page(config: Path, socket_path: Path, number: int) -> None:
    with answering(socket_path, status=now_status(placed=4711)):
        terminal = Terminal("status", "--watch", "0.1", "--config", config)
        begun = terminal.wait_for("every 0.1 s")
        terminal.wait_for("every 0.1 s", begun)  # a second page
        assert terminal.end(number) == 0
    assert terminal.written.count(SECOND_SCREEN) == terminal.written.count(FIRST_SCREEN) == 1
    assert CURSOR in terminal.written
    left = terminal.written[terminal.written.rindex(FIRST_SCREEN) :]
    assert "placed since the start" in left
    assert "Traceback" not in terminal.written


def test_a_watch_outlives_the_scheduler(config: Path, socket_path: Path) -> None:
    with answering(socket_path, status=now_status(placed=1)):
        terminal = Terminal("status", "--watch", "0.1", "--config", config)
        here = terminal.wait_for("placed since the start")
    away = terminal.wait_for("no scheduler answers at", here)
    terminal.wait_for("placed since the start", away)  # the last page stays
    with answering(socket_path, status=now_status(waiting=9876)):
        terminal.wait_for("9876", away)
        assert terminal.end(signal.SIGINT) == 0


def test_a_watch_may_begin_before_the_scheduler(config: Path, socket_path: Path) -> None:
    terminal = Terminal("queue", "--watch", "0.1", "--config", config)
    away = terminal.wait_for("no scheduler answers at")
    with answering(socket_path, queue=[row(user="carol", submit_s=time.time())]):
        terminal.wait_for("carol", away)
        assert terminal.end(signal.SIGINT) == 0


@pytest.mark.long
@pytest.mark.parametrize("columns", [60, 160])
def test_on_a_terminal_the_table_has_its_width(config: Path, socket_path: Path, columns: int) -> None:
    with answering(socket_path, queue=[row(submit_s=time.time(), reason="because " * 30)]):
        terminal = Terminal("queue", "--config", config, columns=columns)
        assert terminal.end() == 0
    (heading,) = [line for line in terminal.written.splitlines() if "JOBID" in line]
    assert ("PARTITION" in heading) == (columns == 160)


def lines_of(config: Path, *words: str, count: int) -> list[str]:
    """The first lines of a watch in a pipe; then it is told to end."""
    command = [sys.executable, "-c", "from slurm_sns.cli import main; main()", *words, "--config", str(config)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().rstrip("\n") for _ in range(count)]
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate(timeout=LONG_S)
        assert (process.returncode, complaints) == (0, "")
    return lines


def test_in_a_pipe_a_watch_writes_blocks_of_plain_lines(config: Path, scheduler) -> None:
    scheduler["queue"] = [row(submit_s=time.time())]
    lines = lines_of(config, "queue", "--watch", "0.1", count=8)
    assert [line.split(" ")[0] for line in lines] == ["time:", "POS", "1", "", "time:", "POS", "1", ""]


def test_a_watch_as_json_is_one_object_a_line(config: Path, scheduler) -> None:
    scheduler["status"] = now_status()
    for line in lines_of(config, "status", "--watch", "0.1", "--json", count=3):
        told = json.loads(line)
        assert told["answer"]["mode"] == "enforce"
        assert told["at_s"] > 0


def test_a_watch_as_json_says_what_is_wrong(config: Path) -> None:
    (line,) = lines_of(config, "status", "--watch", "0.1", "--json", count=1)
    assert json.loads(line)["error"].startswith("no scheduler answers at")


def test_in_a_pipe_status_is_plain_lines(sns, config: Path, scheduler) -> None:
    scheduler["status"] = now_status()
    code, output, errors = sns("status", "--config", config)
    assert (code, errors) == (0, "")
    assert output.startswith("mode: enforce\n")
    assert "\x1b" not in output


def test_the_queue_may_be_that_of_one_user_and_the_first_ones_only(sns, config: Path, scheduler) -> None:
    scheduler["queue"] = [row(job_id=each, user=user) for each, user in enumerate(["bob", "alice", "alice"], 1)]
    told = json.loads(sns("queue", "--user", "alice", "--limit", "1", "--json", "--config", config)[1])
    assert [each["job_id"] for each in told] == [2]
    assert sns("queue", "--user", "nobody", "--config", config)[1] == "no jobs\n"


@pytest.mark.parametrize("words", ["status 5", "status --watch 0", "status --watch x", "queue --limit 0", "queue -n x"])
def test_bad_use_is_one_line(sns, config: Path, words: str) -> None:
    code, output, errors = sns(*words.split(), "--config", config)
    assert (code, output, errors.count("\n")) == (2, "", 1)


def test_who_asks_in_vain_is_told_when_the_scheduler_was_there(sns, config: Path, socket_path: Path) -> None:
    heartbeat = socket_path.with_name("heartbeat")
    heartbeat.touch()
    long_ago_s = time.time() - 3 * 3600
    os.utime(heartbeat, (long_ago_s, long_ago_s))
    code, _, errors = sns("status", "--config", config)
    assert code == 1
    assert "; its last sign of life was 3.0 h ago; while it does not run" in errors


def test_a_configuration_that_its_admin_hides_hides_nopath(config: Path, mocker) -> None:
    """It may hold the database's password; users then ask the usual socket."""
    from slurm_sns.cli.live.scheduler_socket import path

    assert path(config) == config.parent / "scheduler.sock"
    mocker.patch("os.access", side_effect=lambda _path, mode: mode == os.F_OK)  # root may read every file
    assert path(config) == Path("/run/sns/scheduler.sock")
