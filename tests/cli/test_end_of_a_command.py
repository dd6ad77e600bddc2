"""How the process of a command ends: with all that it printed, its exit status, and nothing of Python's teardown."""

import subprocess
import sys

#: A teardown of Python would print this.
LOADED = """\
import atexit, sys
atexit.register(print, "torn down")
"""
RUN = f"{LOADED}\nfrom slurm_sns.cli import run; sys.argv[1:] = %r; run()"


def ended(*words: str, command: str = RUN) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", command % (list(words),)], capture_output=True, text=True, check=False, timeout=60
    )


def test_all_that_was_printed_arrives_and_nothing_is_torn_down() -> None:
    done = ended("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("sns ")
    assert "torn down" not in done.stdout


def test_an_error_keeps_its_line_and_its_status() -> None:
    done = ended("simulate", "/no/such/trace.csv", "--policy", "nonsense")
    assert done.returncode == 2
    assert done.stderr.startswith("sns: error: ")
    assert done.stderr.count("\n") == 1


def test_a_reader_that_has_gone_is_no_error() -> None:
    shell = f'"{sys.executable}" -c "$COMMAND" | true; echo "${{PIPESTATUS[0]}}"'
    done = subprocess.run(
        ["bash", "-c", shell],
        env={"COMMAND": RUN % (["--version"],), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("0\n", "")
