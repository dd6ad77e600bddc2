"""Drive the controller of a thousand nodes from outside its container, for the benchmarks and the load test."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


class Thousand:
    """The container: run commands in it, and ask its scheduler."""

    def __init__(self) -> None:
        self.name = f"{os.environ.get('SNS_PROJECT', 'slurm-sns')}-thousand"
        self._docker = os.environ.get("DOCKER_COMMAND", "docker").split()

    def run(self, command: str, timeout_s: float = 600) -> str:
        """Run a shell command as root and return what it prints."""
        line = [*self._docker, "exec", self.name, "bash", "-c", command]
        done = subprocess.run(line, capture_output=True, text=True, timeout=timeout_s, check=False)
        if done.returncode != 0:
            raise AssertionError(f"{command}: exit {done.returncode}: {done.stderr}{done.stdout}")
        return done.stdout

    def background(self, command: str) -> subprocess.Popen[str]:
        """Start a shell command as root without waiting for it."""
        line = [*self._docker, "exec", self.name, "bash", "-c", command]
        return subprocess.Popen(line, stdout=subprocess.PIPE, text=True)

    def load(self, *words: object, timeout_s: float = 600) -> dict[str, Any]:
        """Run one of the commands of bin/sns-load and return its JSON answer."""
        answer: dict[str, Any] = json.loads(self.run(f"sns-load {' '.join(map(str, words))}", timeout_s))
        return answer

    def status(self) -> dict[str, Any]:
        """`sns status --json`."""
        answer: dict[str, Any] = json.loads(self.run("sns status --json"))
        return answer

    def resident_kb(self) -> int:
        """The scheduler's memory (VmRSS), without the processes that send placements."""
        return int(self.run("awk '/^VmRSS/ {print $2}' /proc/$(cat /run/sns/scheduler.pid)/status"))

    def wait_for(self, what: str, holds: Callable[[], bool], timeout_s: float = 300) -> None:
        """Wait until `holds()` is true.

        Raises:
            TimeoutError: it did not become true within `timeout_s`; the message has `what` and the end of the log.
        """
        deadline_s = time.monotonic() + timeout_s
        while not holds():
            if time.monotonic() > deadline_s:
                raise TimeoutError(
                    f"not within {timeout_s} s: {what}\n{self.run('tail -n 20 /var/log/sns/scheduler.log')}"
                )
            time.sleep(0.5)

    def start_scheduler(self) -> None:
        """Start the scheduler, and wait until it has finished a cycle: from its heartbeat on, the filter gates jobs."""
        self.run("sns-daemon start scheduler")
        self.wait_for("the scheduler has finished a cycle", self.answers)

    def answers(self) -> bool:
        """Whether the scheduler answers."""
        return self.run("sns status --json > /dev/null 2>&1 && echo yes || true").strip() == "yes"


@contextmanager
def thousand(*, anew: bool = False) -> Iterator[Thousand]:
    """Bring the controller up, and take it down at the end unless it ran before.

    With `anew` a controller that runs is replaced by a new one, which is taken down at the end.
    """
    cluster = Thousand()
    script = str(HERE / "cluster.sh")
    ran = not subprocess.run(
        [*cluster._docker, "exec", cluster.name, "true"], capture_output=True, check=False
    ).returncode
    if anew or not ran:
        subprocess.run([script, "thousand"], check=True, stdout=subprocess.DEVNULL)
    try:
        yield cluster
    finally:
        if anew or not ran:
            subprocess.run([script, "thousand-down"], check=True, stdout=subprocess.DEVNULL)
