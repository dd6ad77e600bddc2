"""The command `sns top`: where it runs and where not, and on a real terminal, with and without colours and Unicode."""

import signal
import sys
import threading
import time
from pathlib import Path

import overviews
import pytest
from own_terminal import LONG_S, Terminal

from slurm_sns.errors import SnsError
from slurm_sns.sockets.unix_socket import ControlSocket

WITH_COLOURS, WITH_UNICODE = ("\x1b[30;46m", "\x1b[30;42m"), "\u250c"


@pytest.fixture
def answering(config: Path):
    """A scheduler's socket with the small cluster, as of now."""
    shown = overviews.small()
    shown["at_s"] = time.time()
    shown["next_s"] = time.time() + 0.6

    def answer(request: dict, _user: int) -> object:
        if request["command"] == "release":
            return {"label": str(request["job_id"]), "jobs": 1}
        if request["command"] != "overview":
            raise SnsError("too many jobs are being explained")
        return shown

    with ControlSocket(config.parent / "scheduler.sock", answer):
        yield config


@pytest.mark.long
def test_it_is_used_on_a_terminal_and_leaves_it_as_it_was(answering: Path) -> None:
    terminal = Terminal("top", "--config", answering, columns=80, TERM="xterm-256color")
    terminal.wait_for("6 waiting, 3 running")
    terminal.type("n")
    terminal.wait_for("others' jobs")
    terminal.wait_for(WITH_UNICODE)
    terminal.type("n\r")
    terminal.wait_for("! too many jobs are being explained")
    terminal.type("r")
    terminal.wait_for("Give job 4720")
    terminal.type("y")
    terminal.wait_for("job 4720 is left to Slurm")
    terminal.type("\x03")
    assert terminal.end() == 0
    assert terminal.written.rindex("\x1b[?1049l") > terminal.written.rindex("\x1b[?1049h")
    assert "Traceback" not in terminal.written


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "variables", "has_colours", "has_unicode"),
    [
        ([], {"TERM": "xterm-256color"}, True, True),
        ([], {"TERM": "xterm-256color", "NO_COLOR": "1"}, False, True),
        (["--ascii"], {"TERM": "xterm-256color"}, True, False),
        ([], {"TERM": "vt100"}, False, False),
        ([], {"TERM": "xterm", "PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}, True, False),
    ],
)
def test_colours_and_unicode_are_left_out_where_a_terminal_has_none(
    answering: Path, options: list[str], variables: dict[str, str], has_colours: bool, has_unicode: bool
) -> None:
    terminal = Terminal("top", *options, "--config", answering, columns=160, **variables)
    terminal.wait_for("6 waiting, 3 running")
    terminal.wait_for("a100")
    terminal.type("q")
    assert terminal.end() == 0
    assert any(colour in terminal.written for colour in WITH_COLOURS) is has_colours
    assert (WITH_UNICODE in terminal.written) is has_unicode
    if not has_unicode:
        assert terminal.written.isascii()


@pytest.mark.long
def test_a_scheduler_that_does_not_answer_keeps_it_from_nothing(config: Path) -> None:
    ended = threading.Event()
    with ControlSocket(config.parent / "scheduler.sock", lambda *_: ended.wait(LONG_S)):
        terminal = Terminal("top", "--config", config, columns=80)
        terminal.wait_for("asking the scheduler")
        terminal.type("q")
        assert terminal.end() == 0
        ended.set()


@pytest.mark.long
def test_sigterm_ends_it(answering: Path) -> None:
    terminal = Terminal("top", "--config", answering, columns=80)
    terminal.wait_for("6 waiting")
    assert terminal.end(signal.SIGTERM) == 0
    assert "Traceback" not in terminal.written
    assert "\x1b[?1049l" in terminal.written


def test_without_a_terminal_it_says_what_prints(sns, config: Path) -> None:
    code, _, error = sns("top", "--config", config)
    assert code == 2
    assert "sns top needs a terminal that can move its cursor; sns queue and sns status print" in error


def test_a_wrong_option_is_told_before_the_screen_is_taken(config: Path) -> None:
    terminal = Terminal("top", "-t", "XX", "--config", config, columns=200)
    assert terminal.end() == 2
    assert "--states 'XX': valid" in terminal.written
    assert "\x1b[?1049h" not in terminal.written


def test_the_command_imports_textual_only_when_it_runs(sns) -> None:
    loaded = {name for name in sys.modules if name.partition(".")[0] == "textual"}
    code, output, _ = sns("top", "--help")
    assert code == 0
    assert "--ascii" in output
    assert {name for name in sys.modules if name.partition(".")[0] == "textual"} == loaded
