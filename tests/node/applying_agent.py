"""An agent as processes of their own, which may be killed at any change: `python applying_agent.py ROOT`.

It reads a line of JSON for each run:

    {"jobs": [[job, ways, gbps], ...], "threads": {job: [thread, ...]}, "killed_before": n}

and answers with the exit code of the process that ran: -9 if it was killed by SIGKILL just before its n-th change of
the tree; 0 if it made fewer changes, or if there is no number. What was in force before it takes from the tree. Only
the imports, which take longest, are done once.
"""

import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from node_agent import Agent, Running

from slurm_sns.node.resctrl.groups import Files


class WithThreads(Agent):
    """An agent that is told which threads each job has."""

    def __init__(self, root: Path, threads: Mapping[int, Sequence[int]], files: Files | None = None) -> None:
        super().__init__(root, files)
        self._threads = threads

    def threads(self, job: Running) -> Sequence[int]:
        return self._threads.get(job.job_id, ())


class Killing(Files):
    """The tree as it is; the process is killed before the change with this number."""

    def __init__(self, number: int) -> None:
        self._left = number

    def write(self, path: Path, text: str) -> None:
        self._count()
        super().write(path, text)

    def make_directory(self, path: Path) -> None:
        self._count()
        super().make_directory(path)

    def remove_directory(self, path: Path) -> None:
        self._count()
        super().remove_directory(path)

    def _count(self) -> None:
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1


def run(root: Path, asked: Mapping[str, Any]) -> None:
    """Bring the layouts for these jobs into force."""
    threads = {int(job): found for job, found in asked["threads"].items()}
    number = asked.get("killed_before")
    agent = WithThreads(root, threads, None if number is None else Killing(number))
    jobs = [Running(*fields) for fields in asked["jobs"]]
    agent.lay_out_after_a_restart(*jobs)
    agent.apply(*jobs)


def main() -> None:
    root = Path(sys.argv[1])
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            run(root, json.loads(line))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201 -- it is the answer


if __name__ == "__main__":
    main()
