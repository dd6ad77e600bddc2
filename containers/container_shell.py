"""Run commands in a container, one after the other, through one `docker exec` that keeps running.

Each command runs as with `docker exec -u USER -w HOME CONTAINER bash -c COMMAND`: with the user's identity and home and
without input; its output and exit code are returned. A `docker exec` for each command would take a tenth of a second of
processor time, most of what a test on the cluster uses; here a command is one process in the container. After the
container was stopped and started, the next command starts another `docker exec`.
"""

import json
import select
import subprocess
from dataclasses import dataclass, field
from typing import Any

#: The program that runs in the container, as root. A request and an answer are one line of JSON each, in which output
#: is decoded as Latin-1, so that all bytes are kept.
_SERVER = """
import json, os, pwd, subprocess, sys
for line in sys.stdin:
    asked = json.loads(line)
    who = pwd.getpwnam(asked["user"])
    try:
        done = subprocess.run(
            ["bash", "-c", asked["command"]], stdin=subprocess.DEVNULL, capture_output=True, timeout=asked["timeout_s"],
            user=who.pw_uid, group=who.pw_gid, extra_groups=os.getgrouplist(who.pw_name, who.pw_gid),
            cwd=asked["directory"], env={**os.environ, "HOME": who.pw_dir},
        )
        answer = [done.stdout.decode("latin-1"), done.stderr.decode("latin-1"), done.returncode]
    except subprocess.TimeoutExpired:
        answer = None
    except OSError as problem:
        answer = ["", str(problem), 126]
    print(json.dumps(answer), flush=True)
"""
#: The program in the container reports a command that took too long. If it is silent, we give up this much later.
_GRACE_S = 30.0


@dataclass(frozen=True)
class Done:
    """What a command in a container printed, and its exit code."""

    stdout: str
    stderr: str
    returncode: int


@dataclass
class ContainerShell:
    """Runs commands in one container; `docker` is the command by which this user reaches the engine, as words."""

    docker: list[str]
    container: str
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def run(self, command: str, user: str, directory: str, timeout_s: float) -> Done:
        """Run a shell command to its end.

        Raises:
            subprocess.TimeoutExpired: it did not end within `timeout_s`; its shell was killed.
        """
        process = self._running()
        request = {"command": command, "user": user, "directory": directory, "timeout_s": timeout_s}
        try:
            answer = _exchange(process, request, timeout_s + _GRACE_S)
        except BaseException:  # Ctrl-C: this command's answer must not be taken for the next one's
            process.kill()
            self.close()
            raise
        if not answer:  # the container is gone, or was never there
            return Done("", self.close(), process.returncode or 1)
        found: list[Any] | None = json.loads(answer)
        if found is None:
            raise subprocess.TimeoutExpired(command, timeout_s)
        return Done(_text(found[0]), _text(found[1]), found[2])

    def close(self) -> str:
        """End the process in the container and return its standard error. The next command starts another one."""
        process, self._process = self._process, None
        # It ends when its standard input is closed.
        return process.communicate()[1].decode(errors="replace") if process is not None else ""

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is None:
            line = [*self.docker, "exec", "-i", "-u", "root", self.container, "python3", "-c", _SERVER]
            # In a session of its own: it survives Ctrl-C, so that the clean-up can still run commands.
            self._process = subprocess.Popen(
                line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
            )
        return self._process


def _exchange(process: subprocess.Popen[bytes], request: dict[str, Any], timeout_s: float) -> bytes:
    """Send the request and return the line of the answer; empty if the process has ended.

    Raises:
        subprocess.TimeoutExpired: no answer comes within `timeout_s`.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
    except BrokenPipeError:
        return b""
    readable, _, _ = select.select([process.stdout], [], [], timeout_s)
    if not readable:
        raise subprocess.TimeoutExpired(request["command"], timeout_s)
    return process.stdout.readline()


def _text(latin_1: str) -> str:
    """The output as subprocess returns it with `text=True`; invalid UTF-8 (users' names for jobs) is replaced."""
    return latin_1.encode("latin-1").decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")
