"""The client programs on the mini cluster: how they are installed on its controller and run as alice."""

import json
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cluster import Cluster
from container_shell import Done

HERE = Path(__file__).parent
#: The programs, and where they work: alice's home, which nodes and controller share.
INSTALLED, WORK = "/home/alice/clients", "/home/alice/workflows"
#: Certificates of the machine that made the image, for pip; empty if it has none.
BUNDLE = "/opt/build/ca-bundle.crt"
#: A machine with few cores, busy with other work, takes this long for what takes half a minute.
PATIENCE_S = 300


class Clients:
    """The installed programs on the running cluster."""

    def __init__(self, cluster: Cluster, seconds: dict[str, float]) -> None:
        self.cluster, self._seconds, self._began_s = cluster, seconds, 0

    def install(self) -> None:
        """Install the programs as alice, unless these releases are there, and copy the workflows."""
        wanted = (HERE / "requirements.txt").read_text(encoding="utf-8")
        if self.cluster.try_run(f"cat {INSTALLED}/requirements.txt").stdout != wanted:
            self.cluster.write("/tmp/requirements.txt", wanted, "alice")
            self.cluster.run(
                f"test ! -s {BUNDLE} || export PIP_CERT={BUNDLE}; rm -rf {INSTALLED}; python3 -m venv {INSTALLED} "
                f"&& {INSTALLED}/bin/pip install -q -r /tmp/requirements.txt && mv /tmp/requirements.txt {INSTALLED}",
                "alice",
                timeout_s=6 * PATIENCE_S,
            )
        self.cluster.run(f"rm -rf {WORK}; mkdir {WORK}", "alice")
        for path in (HERE / "workflows").iterdir():
            if path.is_file():
                self.cluster.write(f"{WORK}/{path.name}", path.read_text(encoding="utf-8"), "alice")

    def begin(self) -> None:
        """Jobs submitted from now on belong to the next test."""
        self._began_s = int(self.cluster.run("sleep 1; date +%s"))

    def passed_through(self) -> list[str]:
        """The ids of this test's jobs that slurm_sns left to Slurm."""
        shown = 'squeue -a -h -t all -u alice -O "JobArrayID:|,SubmitTime:|,admin_comment:|"'
        lines = [line.split("|") for line in self.cluster.run(f"SLURM_TIME_FORMAT=%s {shown}").splitlines()]
        since = [(job, comment) for job, submit, comment, *_ in lines if int(submit) >= self._began_s]
        assert since, "this test has submitted no job"
        return [job for job, comment in since if "sns:2" not in comment or "free=" in comment]

    def try_run(self, command: str) -> Done:
        """Run a program of theirs among the workflows; never raises for its exit code."""
        line = f"export PATH={INSTALLED}/bin:$PATH; cd {WORK} && timeout {PATIENCE_S} bash -c {shlex.quote(command)}"
        return self.cluster.try_run(line, "alice", timeout_s=2 * PATIENCE_S)

    def run(self, command: str) -> str:
        """Run a program of theirs among the workflows, and return what it prints."""
        done = self.try_run(command)
        assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def report(self, script: str, *arguments: object) -> Any:
        """What a workflow reports as the last line of its output, which is JSON."""
        return json.loads(self.run(" ".join(["python", script, *map(str, arguments)])).splitlines()[-1])

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """Note the seconds of a block, to be shown at the end."""
        began = time.monotonic()
        yield
        self._seconds[what] = time.monotonic() - began
