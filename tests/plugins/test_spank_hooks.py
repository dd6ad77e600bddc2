"""A node's prolog and epilog are run by the plugin, and whatever they do the plugin says at most one line."""

import ctypes
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

MOST_MS = 20_000

Run = Callable[..., str]


@pytest.fixture(scope="session")
def run(parts: ctypes.CDLL) -> Run:
    """The compiled function: empty when all is well, otherwise the message."""
    parts.sns_run_hook.restype = ctypes.c_bool

    def run(folder: Path | str, most_ms: int = MOST_MS) -> str:
        message = ctypes.create_string_buffer(512)
        done = parts.sns_run_hook(str(folder).encode(), b"prolog", most_ms, message, ctypes.c_size_t(len(message)))
        assert done == (message.value == b"")
        return message.value.decode("ascii")

    return run


def script(folder: Path, text: str, mode: int = 0o755) -> Path:
    path = folder / "prolog"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(mode)
    return path


def test_it_runs_with_the_environment_and_waits_for_its_end(run: Run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("SLURM_JOB_EXTRA", "sns:1 grant=x")
    script(tmp_path, f'sleep 0.1; printf %s "$SLURM_JOB_EXTRA" > {tmp_path}/seen')
    assert run(tmp_path) == ""
    assert (tmp_path / "seen").read_text() == "sns:1 grant=x"


def test_where_there_is_none_nothing_happens(run: Run, tmp_path: Path) -> None:
    assert run(tmp_path) == run(tmp_path / "missing") == ""


def test_what_it_prints_is_one_line_without_control_characters(run: Run, tmp_path: Path) -> None:
    script(tmp_path, r"printf 'no agent\033[31m here\nmore\n' >&2; exit 1")
    assert run(tmp_path) == f"sns: {tmp_path}/prolog: no agent?[31m here"


def test_much_output_neither_stops_it_nor_overflows(run: Run, tmp_path: Path) -> None:
    script(tmp_path, f"head -c 300000 /dev/zero | tr '\\0' x; touch {tmp_path}/ended")
    assert run(tmp_path) == f"sns: {tmp_path}/prolog: {'x' * 255}"
    assert (tmp_path / "ended").exists()


def test_its_exit_code_is_nobodys_concern(run: Run, tmp_path: Path) -> None:
    script(tmp_path, "exit 3")
    assert run(tmp_path) == ""
    script(tmp_path, "kill -9 $$")
    assert run(tmp_path) == ""


@pytest.mark.parametrize(("mode", "text"), [(0o644, "exit 0"), (0o755, None)])
def test_a_file_that_cannot_be_run_is_said(run: Run, tmp_path: Path, mode: int, text: str | None) -> None:
    path = script(tmp_path, text or "", mode)
    if text is None:
        path.write_bytes(b"\x00\x01 no program")
    assert run(tmp_path).startswith(f"sns: {path}: cannot be run: ")


def has_ended(stat: Path) -> bool:
    """Whether the process is gone, or only waits to be reaped."""
    try:
        return stat.read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_one_that_hangs_is_killed_with_all_that_it_has_started(run: Run, tmp_path: Path) -> None:
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    others = set(children.read_text().split())  # of other tests
    script(tmp_path, f"trap '' TERM; sleep 600 & echo $! > {tmp_path}/child; wait")
    # Until it has started its child, it is given more time.
    for most_ms in (100, 1000, 10_000):
        said = run(tmp_path, most_ms)
        assert said == f"sns: {tmp_path}/prolog: killed after {most_ms} ms"
        if (tmp_path / "child").exists() and (tmp_path / "child").read_text():
            break
    child = Path("/proc", (tmp_path / "child").read_text().strip(), "stat")
    for _ in range(500):  # it was killed, and ends when it is next scheduled
        if has_ended(child):
            break
        time.sleep(0.01)
    assert has_ended(child)
    assert set(children.read_text().split()) <= others


@pytest.mark.parametrize("length", [200, 5000])
def test_a_directory_of_any_length_is_no_danger(run: Run, tmp_path: Path, length: int) -> None:
    said = run(f"{tmp_path}/{'x' * length}")
    assert said == ("" if length == 200 else "sns: the prolog is not run: its path is too long")
