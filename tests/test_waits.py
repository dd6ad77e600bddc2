"""What the demo and the scripts of the mini cluster say while somebody waits, and what the demo says at its end."""

import io
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from rich.console import Console

import demo
from cluster import Seen
from slurm_sns.cli.app import app
from waits import Durations, TellingCluster, durations

ROOT = Path(__file__).parents[1]


def seen(number: int, state: str) -> Seen:
    return Seen(number, "alice", state, "None", 1, (), (), 0, 0, 1)


ENDED = {number: seen(number, "COMPLETED") for number in (1, 2)}
TIMED = ROOT / "containers" / "timed.sh"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "slurm_sns" / "durations"


def timed(name: str, command: str) -> subprocess.CompletedProcess[str]:
    line = [str(TIMED), name, "making it", *shlex.split(command)]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def test_a_first_wait_is_announced_as_one_and_the_next_with_its_time(cache: Path) -> None:
    assert timed("it", "true").stderr == "== making it (the first time: some minutes)\n"
    cache.write_text("it\t41\nother\t7\n")
    assert timed("it", "true").stderr == "== making it (the last time: 41 s)\n"
    assert cache.read_text() == "other\t7\nit\t0\n"


def test_a_command_that_fails_leaves_no_time_and_its_exit_code(cache: Path) -> None:
    done = timed("it", "sh -c 'echo broken >&2; exit 3'")
    assert (done.returncode, done.stderr.splitlines()[1:]) == (3, ["broken"])
    assert not cache.exists()


def test_where_nothing_can_be_noted_the_command_runs_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert timed("it", "echo done").stdout == "done\n"
    durations().note("it", 3)
    assert durations().last_s("it") is None


def test_the_demo_reads_and_keeps_what_the_scripts_have_noted(cache: Path) -> None:
    timed("it", "true")
    durations().note("demo", 151.24)
    assert cache.read_text() == "it\t0\ndemo\t151.2\n"
    assert durations().last_s("demo") == 151.2
    assert timed("demo", "true").stderr == "== making it (the last time: 151.2 s)\n"


def test_lines_that_are_no_notes_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "durations"
    path.write_bytes(b"\xff\nit\tsoon\nother\t4\n")
    assert (Durations(path).last_s("it"), Durations(path).last_s("other")) == (None, 4.0)


@pytest.fixture
def said(tmp_path: Path) -> tuple[TellingCluster, io.StringIO, Durations]:
    told, known = io.StringIO(), Durations(tmp_path / "durations")
    return TellingCluster(Console(file=told, width=200), known), told, known


def test_each_wait_says_what_it_waits_for(said: tuple[TellingCluster, io.StringIO, Durations]) -> None:
    cluster, told, known = said
    known.note("demo 1: 1 jobs end", 10.4)
    known.note("demo 2: 1 jobs end", 1.0)
    for what in ("the scheduler answers", "1 jobs end", "1 jobs end", "11 jobs end"):
        cluster.wait_for(what, lambda: True)
    assert told.getvalue().splitlines() == [
        "  waiting until the scheduler answers",
        "  waiting until the job ends (10 s the last time)",
        "  waiting until 11 jobs end",
    ]
    assert known.last_s("demo 1: 1 jobs end") == 0.0


def test_the_demos_end_names_commands_that_exist() -> None:
    demo = (ROOT / "containers" / "demo.py").read_text(encoding="utf-8")
    commands = re.findall(r'^    \("([^"]+)", ', demo.split("NEXT = (")[1].split("\n)")[0], re.MULTILINE)
    assert len(commands) == 3
    names = {command.name or command.callback.__name__ for command in app().registered_commands}
    targets = re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for command in commands:
        program, *words = command.split()
        assert set(words) <= set(targets) if program == "make" else words[0] in names, command


def test_make_demo_says_at_its_end_what_to_do_next() -> None:
    done = subprocess.run(
        ["make", "--no-print-directory", "-n", "-o", ".venv/.test", "demo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == ".venv/bin/python containers/demo.py --next"
    assert os.access(TIMED, os.X_OK)


def test_the_demo_shows_how_many_jobs_have_ended(
    monkeypatch: pytest.MonkeyPatch, said: tuple[TellingCluster, io.StringIO, Durations]
) -> None:
    cluster, told, known = said
    monkeypatch.setattr(demo, "console", Console(file=told, width=200))
    monkeypatch.setattr(demo.time, "sleep", lambda _: None)
    looks = iter([{1: seen(1, "RUNNING")}, {1: seen(1, "COMPLETED"), 2: seen(2, "RUNNING")}, ENDED])
    monkeypatch.setattr(cluster, "jobs", lambda: next(looks))
    assert demo.finished(cluster, [2, 1]) == [ENDED[2], ENDED[1]]
    assert [" ".join(line.split()) for line in told.getvalue().splitlines()] == [
        "waiting until 2 jobs end",
        "1 running, 0 of 2 done",
        "1 running, 1 of 2 done",
        "0 running, 2 of 2 done",
    ]
    assert known.last_s("demo 1: 2 jobs end") is not None
