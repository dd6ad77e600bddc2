"""Promises that must hold for any input: the checks that fuzzing runs, one class for each target.

`check(random, cases)` runs this many cases, each made from `random`; an AssertionError shows the case that breaks the
promise.
"""

import json
import os
import socket
import tempfile
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, Self

import material
from job_records import RawJob, job_record
from live import ALICE, BOB, ENFORCE, FOREIGN, NOW, job, look, node, running, situation, tasks
from lua_judge import LuaJudge

from slurm_sns.config.configuration import Config, load
from slurm_sns.config.profiles_yaml import read_profiles
from slurm_sns.errors import BadInput
from slurm_sns.model import Plan, Resources, Snapshot, gpus_of
from slurm_sns.package_files import shared_path
from slurm_sns.policies.base import no_explanation
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.render.texts import texts
from slurm_sns.scheduler.answers.requests import Answers
from slurm_sns.scheduler.answers.trying import SubmissionRules
from slurm_sns.scheduler.answers.view import RecentCycles, View
from slurm_sns.scheduler.gate.failed_placements import Try
from slurm_sns.scheduler.gate.job_status import Status
from slurm_sns.scheduler.gate.orders import free
from slurm_sns.scheduler.observation import ObservedJob
from slurm_sns.scheduler.ports import MeasuredRun
from slurm_sns.slurm import translate
from slurm_sns.sockets.unix_socket import ControlSocket
from slurm_sns.submit import record as submit_record
from slurm_sns.submit.judge import Manage, Refuse, judge
from slurm_sns.submit.submission import Submission
from slurm_sns.submit.table import FilterTable, NodeShape
from slurm_sns.wire import grants
from slurm_sns.wire.values import RunId

#: Jobs that are sent to Lua at a time: their lines and Lua's answers fit into a pipe (64 KiB).
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
    """Base of all targets: a context manager that ends what the target has started."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to end."""


class Hints(Target):
    """Lua and Python give the same verdict on the same bytes.

    A refusal is one printable ASCII line. The record that they write can be read, and what stood before it stays.
    """

    def __init__(self, folder: Path) -> None:
        self._lua = LuaJudge(folder)

    def check(self, random: Random, cases: int) -> None:
        for begin in range(0, cases, BATCH):
            self._check([material.submission(random) for _ in range(min(BATCH, cases - begin))])

    def _check(self, jobs: list[Submission]) -> None:
        for job_, said in zip(jobs, self._lua.judge_all(jobs, TABLE, 1000, 1000, False), strict=True):
            verdict = judge(job_, TABLE, 1000, 1000, False)
            assert said == verdict, job_
            if isinstance(verdict, Refuse):
                assert verdict.message.isascii(), (verdict, job_.comment)
                assert verdict.message.isprintable(), (verdict, job_.comment)
            if isinstance(verdict, Manage):
                noted = submit_record.read(verdict.admin_comment)
                assert noted is not None, (verdict, job_)
                assert (noted.gate_s, noted.free_why) == (verdict.begin_s, ""), (verdict, job_)
                assert verdict.admin_comment.startswith(job_.admin_comment), (verdict, job_)

    def __exit__(self, *_: object) -> None:
        self._lua.close()


class Records(Target):
    """Any AdminComment can be read: a record in its only form, or none. A record written into it is read back.

    The same text as a job's Extra: a grant written into it is found there, and taken off without a trace.
    """

    TOKEN = "1:key:41.0"

    def __init__(self, _folder: Path) -> None:
        """Nothing is kept."""

    def check(self, random: Random, cases: int) -> None:
        for _ in range(cases):
            text = material.admin_comment(random)
            noted = submit_record.read(text)
            if noted is not None and noted.free_why != submit_record.UNREADABLE:
                assert submit_record.segment(noted) in text, text
            gated = submit_record.Record(gate_s=5)
            assert submit_record.read(submit_record.written(text, gated)) == gated, text
            granted = grants.with_grant(text, self.TOKEN)
            if granted is not None:
                assert grants.grant_in(granted) == self.TOKEN, text
                owners = grants.without_grant(text)
                assert grants.without_grant(granted) == (text if owners is None else owners), text


class Configurations(Target):
    """A file is a configuration from which all texts can be rendered, or one printable line says why it is not."""

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


#: A text of another user's jobs that no random request contains by accident.
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
    """Any request is answered with one line, which shows only the caller's own jobs, and the next caller is served."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "socket"
        others = {"user_id": BOB, "user": OTHER, "name": OTHER}
        pass_through = {**FOREIGN, "priority": 900}
        jobs = (
            tasks(1, 2),
            job(2, **others),
            running(3, "c1", **others),
            job(4, **pass_through),
            job(5, **pass_through, **others),
            job(6, array_id=6, array_tasks="2-9", **pass_through),
        )
        self._own = {each.id for each in jobs if each.user_id == ALICE}
        seen = situation(look(*jobs))
        profiles = {each.name: each for each in read_profiles(shared_path("conf/profiles/spread-n-share.yaml"))}
        view = View(NOW, 0.01, "enforce", False, 1, 0, 0, seen, Plan(waiting={1: "w", 2: "w"}), profiles)
        recent = RecentCycles()
        recent.publish(view)
        self._asked = set()
        table = FilterTable("enforce", {"main": ()}, "main", (), 1000, "", 15, "")
        answers = Answers(
            recent,
            _NoDecisions(),
            _NoPolicy(),
            frozenset({0}),
            settings=ENFORCE,
            asked=self._asked,
            rules=SubmissionRules(table),
            measurements=_OneOfEachUser(),
        )
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
            assert self._asked <= self._own, (line, reply)
            self._asked.clear()
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

    def job_of_task(self, _array_id: int, _task: int) -> int | None:
        return None


class _OneOfEachUser:
    """Of each of two users a job was measured; the node of the other one's tells whose it is."""

    def of_jobs(self, job_ids: Collection[int]) -> list[MeasuredRun]:
        runs = {1: ("c1", ALICE), 2: (OTHER, BOB)}
        return [MeasuredRun(RunId(each), *runs[each], NOW, 4, 8, 60.0) for each in job_ids if each in runs]


class _NoPolicy:
    explain = staticmethod(no_explanation)

    @staticmethod
    def plan(_snapshot: Snapshot) -> Plan:
        return Plan()


class JobRecords(Target):
    """Whatever users write into jobs, the observation can be read and planned, and the valid job in it is placed."""

    def __init__(self, _folder: Path) -> None:
        self._policy = max_jobs(MatchingParameters())
        self.unreadable = 0

    def check(self, random: Random, cases: int) -> None:
        for begin in range(0, cases, LOOK):
            count = min(LOOK, cases - begin)
            self._check([job_record(random, identity) for identity in range(1, count + 1)], random)

    def _check(self, records: list[RawJob], random: Random) -> None:
        sound = job(GOOD, submit_s=1, partitions=("quiet",), account="quiet")
        seen = [translate.job(record, shows_estimates=random.random() < 0.5) for record in records]
        for each, raw in zip(seen, records, strict=True):
            assert each.id == raw.id
            self._bounded(each)
            order = free(each, "tested", NOW)
            assert order is None or submit_record.read(order.admin_comment).is_slurms, (raw.raw, order)
        self.unreadable += sum(bool(each.unreadable) for each in seen)
        with_gpus = replace(node("c1"), capacity=Resources(28, 128_000, gpus=gpus_of({"a": 2, "b": 2, "": 1})))
        nodes = (with_gpus, node("c2"), node("s1", 4), node("q1", partitions=frozenset({"quiet"})))
        tries = [Try(each.id, each.submit_s, failures=1) for each in seen if random.random() < 0.5]
        of = situation(look(sound, *seen, nodes=nodes), *tries, settings=QUIET)
        plan = self._policy.plan(of.snapshot)
        assert [start.nodes for start in plan.starts if start.job_id == GOOD] == [("q1",)]
        assert all(-(2**62) < amount < 2**62 for each in of.snapshot.nodes for amount in each.free[:-1])
        for settings in (QUIET, replace(QUIET, mode="observe", places_gpus=True)):
            found = situation(look(sound, *seen, nodes=nodes), *tries, settings=settings).statuses
            assert found.keys() == {GOOD, *(each.id for each in seen)}
            assert found[GOOD] is Status.GATED

    def _bounded(self, seen: ObservedJob) -> None:
        for name in ("tasks", "cpus", "cpus_per_task", "memory_per_cpu_mb", "memory_per_node_mb", "ways", "walltime_s"):
            assert 0 <= (getattr(seen, name) or 0) <= 2**40, (name, seen)
        assert max(seen.occupies[:-1]) <= 2**40


#: The number of the job with no odd field, and the number of job records in one observation.
GOOD, LOOK = 10**9, 200
QUIET = replace(ENFORCE, partitions=ENFORCE.partitions | {"quiet"})

TARGETS = {"hints": Hints, "records": Records, "config": Configurations, "requests": Requests, "jobs": JobRecords}


def folder() -> "tempfile.TemporaryDirectory[str]":
    """Where a target may write; in memory where the machine has such a place."""
    memory = Path("/dev/shm")
    return tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)
