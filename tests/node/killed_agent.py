"""An agent that is killed by SIGKILL just before its n-th change of the tree: `python killed_agent.py ROOT`.

It reads a line of JSON for each run, {"number": n, "threads": {job: [thread, ...]}}, and answers with the exit code of
the process that ran: -9 if it was killed, 0 if there were fewer changes. Each run is a process of its own; only the
imports, which take longest, are done once.
"""

import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from node_agent import Agent, Running

from slurm_sns.node.resctrl.groups import Files

#: What is in force before: three jobs on both cache domains, or on one of them.
BEFORE = (Running(1, 4, 20), Running(2, 3, 5, {0: 4}), Running(3, 6))
#: What the killed agent was to bring into force: job 2 has ended, three have come.
AFTER = (Running(1, 4, 30), Running(3, 6), Running(4, 5, 10), Running(5, 0, 10), Running(6, 2))


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


def main() -> None:
    root = Path(sys.argv[1])
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            threads = {int(job): found for job, found in asked["threads"].items()}
            agent = WithThreads(root, threads, Killing(asked["number"]))
            agent.lay_out_after_a_restart(*AFTER)
            agent.apply(*AFTER)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201 -- it is the answer


if __name__ == "__main__":
    main()
