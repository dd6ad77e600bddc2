"""What must hold for any input: the checks that fuzzing runs, one class per target.

`check(random, cases)` runs so many cases, each made from `random`; an AssertionError shows the one that broke the
promise.
"""

import json
import os
import socket
import tempfile
from pathlib import Path
from random import Random
from typing import Any, Self

import material
from live import ALICE, BOB, NOW, job, look, running, situation, tasks
from lua_judge import LuaJudge

from slurm_sns.config import Config, load
from slurm_sns.errors import BadInput
from slurm_sns.model import Plan
from slurm_sns.render.texts import texts
from slurm_sns.scheduler.answers import Answers
from slurm_sns.scheduler.loop import View
from slurm_sns.scheduler.recent import Recent
from slurm_sns.submit import mark
from slurm_sns.submit.judge import Manage, Refuse, judge
from slurm_sns.submit.submission import Submission
from slurm_sns.submit.table import FilterTable, NodeShape
from slurm_sns.web.control import ControlSocket

#: Jobs that Lua is told at once: their lines and its answers fit into a pipe (64 KiB).
BATCH = 50

TABLE = FilterTable(
    mode="enforce",
    partitions={"big": (NodeShape(28, 28, 128000, 4),), "small": (NodeShape(4, 8, 32768, 2),)},
    default_partition="big",
    heuristics=("first-fit", "best-fit-memory", "mix-fit"),
    default_memory_per_cpu_mb=4500,
    heartbeat_path="/run/sns/heartbeat",
    heartbeat_timeout_s=10,
    kill_switch_path="/var/lib/sns/disabled",
)


class Target:
    """What all have: a `with` block, at whose end nothing runs any more."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to end."""


class Hints(Target):
    """Lua and Python say the same of the same bytes, in one printable line; what they write is a mark that is read."""

    def __init__(self, folder: Path) -> None:
        self._lua = LuaJudge(folder)

    def check(self, random: Random, cases: int) -> None:
        for begin in range(0, cases, BATCH):
            self._check([material.submission(random) for _ in range(min(BATCH, cases - begin))])

    def _check(self, jobs: list[Submission]) -> None:
        for job_, said in zip(jobs, self._lua.judge_all(jobs, TABLE, 1000, 1000, False), strict=True):
            verdict = judge(job_, TABLE, 1000, 1000, False)
            assert said == verdict, (job_.comment, job_.options)
            if isinstance(verdict, Refuse):
                assert verdict.message.isascii(), (verdict, job_.comment)
                assert verdict.message.isprintable(), (verdict, job_.comment)
            if isinstance(verdict, Manage):
                assert mark.is_marked(verdict.extra), (verdict, job_.comment)

    def __exit__(self, *_: object) -> None:
        self._lua.close()


class Marks(Target):
    """A job's Extra is our mark in its one form, or nothing to us."""

    def __init__(self, _folder: Path) -> None:
        """Nothing is kept."""

    def check(self, random: Random, cases: int) -> None:
        for _ in range(cases):
            extra = material.extra(random)
            hints = mark.read(extra)
            assert hints is None or mark.write(hints) == extra, extra


class Configurations(Target):
    """A file is a configuration, of which every rendered text can be made, or one printable line says why not."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "sns.yaml"
        self.sound = 0

    def check(self, random: Random, cases: int) -> None:
        for _ in range(cases):
            self._check(material.configuration(random))

    def _check(self, data: bytes) -> None:
        self._path.write_bytes(data)
        try:
            config = load(self._path)
        except BadInput as problem:
            said = str(problem)
        else:
            said = ""
            self._render(config)
        assert said.isprintable(), (said, data)

    def _render(self, config: Config) -> None:
        self.sound += 1
        if self.sound % 20 != 1:  # templates are slow
            return
        for name, text in texts(config, Path("/etc/slurm/sns.yaml")).items():
            lines = text.removesuffix("\n").split("\n")
            assert all(line.isprintable() for line in lines), (name, text)
            if name.endswith(".conf"):  # a value never begins a line of its own
                assert all(line == "" or line.startswith(("#", *DIRECTIVES[name])) for line in lines), (name, text)


#: Nothing that a caller may have written himself, by accident.
OTHER = "somebody-else's"

DIRECTIVES = {
    "slurm.conf": (
        "JobSubmitPlugins=",
        "GresTypes=",
        "AccountingStorageTRES=",
        "PriorityFlags=",
        "SchedulerParameters=",
    ),
    "gres.conf": ("NodeName=",),
    "plugstack.conf": ("optional ",),
}


class Requests(Target):
    """Whatever a caller sends is answered with one line, of his own jobs alone, and the next caller is served."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "socket"
        seen = situation(look(tasks(1, 2), job(2, user_id=BOB, user=OTHER), running(3, "c1", user_id=BOB, user=OTHER)))
        view = View(NOW, 0.01, "enforce", False, 1, 0, seen, Plan(waiting={1: "w", 2: "w"}))
        recent = Recent()
        recent.publish(view)
        answers = Answers(recent, _NoDecisions(), _NoPolicy(), frozenset({0}))
        self._socket = ControlSocket(
            self._path, lambda request, _: answers.answer(request, ALICE), trusted=frozenset({os.getuid()})
        )
        self._socket.__enter__()

    def check(self, random: Random, cases: int) -> None:
        for _ in range(cases):
            line = material.request_line(random)
            reply = json.loads(self._answer(line))
            assert reply.keys() in ({"answer"}, {"error", "bad_input"}), (line, reply)
            assert OTHER not in json.dumps(reply), (line, reply)
            if "error" in reply:
                assert reply["bad_input"] is True, (line, reply)

    def _answer(self, line: bytes) -> bytes:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(60)
            connection.connect(str(self._path))
            connection.sendall(line)
            connection.shutdown(socket.SHUT_WR)
            with connection.makefile("rb") as stream:
                answer = stream.readline()
                assert stream.read() == b"", line
        return answer

    def __exit__(self, *_: object) -> None:
        self._socket.__exit__()


class _NoDecisions:
    def of_job(self, _job_id: int) -> list[Any]:
        return []


class _NoPolicy:
    pass


TARGETS = {"hints": Hints, "marks": Marks, "config": Configurations, "requests": Requests}


def folder() -> "tempfile.TemporaryDirectory[str]":
    """Where a target may write; in memory where the machine has such a place."""
    memory = Path("/dev/shm")
    return tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)
