"""Steps of the table of Slurm's rules: what one line of it means, and how a case is carried out.

A line is who does what. `WHO` is alice or bob (users), root (an administrator) or slurm (our own executor). A job is
named by a label: `a`, a task of an array `a_3`, several tasks `a_[3-5]`.

    WHO: submit a OPTIONS           sbatch with these options; the job sleeps for an hour, or `run=S` seconds, `fail=S`,
                                    or `stubborn=1`: SIGTERM does not end it
    WHO: hold|uhold|release|requeue|requeuehold|suspend|resume a        scontrol
    WHO: update a FIELD=VALUE ...                           scontrol update
    WHO: cancel a                                           scancel
    root: node c1 drain|undrain|down|up
    root: partition t FIELD=VALUE                           scontrol update
    root: limit ACCOUNT CORES, root: qos-limit QOS CORES, root: user-limit USER JOBS    sacctmgr; `none` lifts it
    root: reserve NAME NODE IN_S SECONDS, root: unreserve NAME
    root: preempt                   from now on jobs of a higher tier suspend those of a lower one, and there are the
                                    partitions low and high
    root: save                      slurmctld saves its state, for the last time until it is killed
    root: kill                      slurmctld is killed and started again; all nodes have registered
    slurm: place a NODE[,NODE] FIELD=VALUE ...              our placement; it opens the gate unless it has `begin=S`
    slurm: regate a S [keeps_nodes] [keeps_gres] [no_extra] FIELD=VALUE ...     takes it back, gated for S seconds
    slurm: free a [S] FIELD=VALUE ...                       the same, open, or with a begin time S seconds ahead
    slurm: renew a S, unboost a, requeue a
    until a WORD ...                waits for: pending running completing suspended ended succeeded quiet held free
                                    planned restarts=N REASON. `quiet`: it is not completing; `free`: it waits for
                                    no other job
    until node c1 WORD              waits until this is why no job may start there
    pause S                         waits
    see a [but FIELD[,FIELD]]       the job's record, without these fields
    see node c1                     what is allocated on the node, and whether jobs may start there
    start the watch, see the watch under|over S             whether so many seconds have passed since

What was seen, and every answer, is a row. The same steps on the model and on a real Slurm must give the same rows.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from slurm_sns.errors import Refused
from slurm_sns.scheduler.gate.orders import BOOST, OPEN, GateOrder, Order, OrderKind, RequeueOrder
from slurm_sns.submit import record as records
from slurm_sns.submit.record import MemoryRequest, Record
from slurm_sns.task_ids import task_id, task_of

Shown = Mapping[str, Any]
#: A row: the line of the table, and what was seen or answered.
Row = tuple[str, Mapping[str, Any]]

#: The longest wait is for Slurm's look at the dependencies of held jobs, once a minute. What has not come true after
#: this many seconds does not come true.
TIMEOUT_S = 90.0
DONE = "done"
#: The messages of Slurm, and ours; an answer is compared as the one that it contains.
MESSAGES = (
    "it is no longer suspended by preemption",
    *("Access/permission denied", "Invalid job id specified", "Job is no longer pending execution"),
    *("Job has already finished", "Requested operation is presently disabled", "Requested nodes not in this partition"),
    *("Requested operation is not possible in the job's present state", "Invalid node name specified"),
    *("Job/step already completing or completed", "Requested node configuration is not available"),
    *("Invalid partition name specified", "Job is pending execution", "Requested operation not supported"),
    *("Job is in held state", "Invalid user id", "Job resizing not supported for job arrays", "Job is not suspended"),
    *("Required partition not available", "Job dependency problem", "Task count specification invalid"),
    *("CPU count specification invalid", "Invalid generic resource (gres) specification"),
)
_LABEL = re.compile(r"([a-h])(_\S+)?")


class Slurm(Protocol):
    """A Slurm to carry out the steps on: the model, or a real one. Addresses are Slurm's: `41`, `41_3`."""

    def submit(self, who: str, options: Sequence[str], run_s: float, how: str) -> int:
        """`how` is fail (it ends with an error), stubborn (SIGTERM does not end it) or anything else."""
        ...

    def scontrol(self, who: str, words: Sequence[str]) -> str: ...

    def cancel(self, who: str, addresses: Sequence[str]) -> str: ...

    def node(self, name: str, state: str) -> str: ...

    def partition(self, name: str, fields: Mapping[str, str]) -> str: ...

    def limit(self, account: str, cores: int | None) -> str: ...

    def qos_limit(self, qos: str, cores: int | None) -> str: ...

    def user_limit(self, user: str, jobs: int | None) -> str: ...

    def reserve(self, name: str, node: str, in_s: int, lasting_s: int) -> str: ...

    def unreserve(self, name: str) -> str: ...

    def preempt(self) -> str: ...

    def save(self) -> str: ...

    def kill(self) -> str: ...

    def order(self, order: Order) -> str: ...

    def jobs(self) -> Sequence[Shown]:
        """All jobs, as the fields of ObservedJob."""
        ...

    def see_node(self, name: str) -> Shown:
        """The node, as the fields of ObservedNode."""
        ...

    def now_s(self) -> float:
        """Slurm's clock."""
        ...


@dataclass
class Running:
    """One case under way: its jobs by label, and the rows until now."""

    slurm: Slurm
    lines: Sequence[str]
    ids: dict[str, int] = field(default_factory=dict)
    submitted_s: dict[str, int] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    watch_s: float = 0.0
    #: How many lines have been carried out.
    done: int = 0

    def steps(self, between: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Carry out the case; yields while it waits. A condition that never comes true ends it."""
        for line in self.lines:
            between()
            words = shlex.split(line)
            if words[:2] == ["see", "the"]:
                took_s, bound_s = self.slurm.now_s() - self.watch_s, float(words[4])
                self.rows.append((line, {"is so": took_s < bound_s if words[3] == "under" else took_s > bound_s}))
            elif words[0] == "start":
                self.watch_s = self.slurm.now_s()
            elif words[0] == "see":
                self.rows.append((line, self._see(words[1:])))
            elif words[0] in ("until", "pause"):
                holds = self._condition(words)
                began_s = self.slurm.now_s()
                while not holds():
                    if self.slurm.now_s() - began_s > TIMEOUT_S:
                        seen = {name: self._record(name) for name in words[1].split(",") if name != "node"}
                        why = {name: f"{job.get('state')} {job.get('reason')}" for name, job in seen.items()}
                        self.rows.append((line, {"waited": "in vain", **why}))
                        return
                    yield
            else:
                answer = self._act(words[0].rstrip(":"), words[1], words[2:])
                self.rows.append((line, {"answer": answer}))
            self.done += 1

    def _act(self, who: str, what: str, words: Sequence[str]) -> str:  # noqa: PLR0912 - one case for each command
        if what == "submit":
            return self._submit(who, words[0], words[1:])
        if who == "slurm":
            name, *rest = words
            job = {} if name.isdigit() else self._record(name)
            order = _order(what, self._id(name), rest, job, int(self.slurm.now_s()))
            return _in_short(self.slurm.order(order))
        match what:
            case "cancel":
                return _in_short(self.slurm.cancel(who, [self._address(each) for each in words[0].split(",")]))
            case "node":
                return _in_short(self.slurm.node(*words))
            case "partition":
                return _in_short(self.slurm.partition(words[0], _fields(words[1:])))
            case "limit":
                return self.slurm.limit(words[0], None if words[1] == "none" else int(words[1]))
            case "qos-limit":
                return self.slurm.qos_limit(words[0], None if words[1] == "none" else int(words[1]))
            case "user-limit":
                return self.slurm.user_limit(words[0], None if words[1] == "none" else int(words[1]))
            case "reserve":
                return self.slurm.reserve(words[0], words[1], int(words[2]), int(words[3]))
            case "unreserve":
                return self.slurm.unreserve(words[0])
            case "preempt":
                return self.slurm.preempt()
            case "save":
                return self.slurm.save()
            case "kill":
                return self.slurm.kill()
            case "update":
                return _in_short(self.slurm.scontrol(who, (what, f"JobId={self._address(words[0])}", *words[1:])))
            case _:
                return _in_short(self.slurm.scontrol(who, (what, self._address(words[0]))))

    def _submit(self, who: str, label: str, words: Sequence[str]) -> str:
        given = _fields(words)
        options = [re.sub(r"\{(\w)\}", lambda found: str(self.ids[found[1]]), word) for word in words]
        options = [word for word in options if word.partition("=")[0] not in given]
        # Unless the line says something else: an hour, and memory of which all cases together find enough.
        if not any(word.startswith("--mem") for word in options):
            options.insert(0, "--mem-per-cpu=100")
        how = next(iter(given), "")
        run_s = float(given.get("run", given.get("fail", 3600.0)))
        try:
            self.ids[label] = self.slurm.submit(who, ["-t", "60", *options], run_s, how)
        except Refused as refusal:
            return _in_short(str(refusal))
        self.submitted_s[label] = self._record(label)["submit_s"]
        return DONE

    def _condition(self, words: Sequence[str]) -> Callable[[], bool]:
        if words[0] == "pause":
            until_s = self.slurm.now_s() + float(words[1])
            return lambda: self.slurm.now_s() >= until_s
        if words[1] == "node":
            return lambda: self.slurm.see_node(words[2])["unavailable"].startswith(words[3])
        names, wanted = words[1].split(","), words[2:]
        return lambda: all(_is(self._record(name), word) for name in names for word in wanted)

    def _see(self, words: Sequence[str]) -> dict[str, Any]:
        if words[0] == "node":
            node = self.slurm.see_node(words[1])
            return {"allocated": node["allocated"], "unavailable": node["unavailable"].split(":")[0]}
        left_out = set(words[2].split(",")) if len(words) > 1 else set()
        found = {}
        for name in words[0].split(","):
            job = self._record(name)
            seen = _shown(job, self.submitted_s.get(name.split("_")[0], 0), self.slurm.now_s()) if job else {}
            found |= {f"{name}.{each}": value for each, value in seen.items() if each not in left_out}
        return found

    def _record(self, name: str) -> Shown:
        """The record of a job, of one task, or of several waiting tasks; empty if Slurm has none."""
        label, task = _split(name)
        number = self.ids[label]
        for job in self.slurm.jobs():
            if task is None and job["id"] == number:
                return job
            if task is not None and job["array_id"] == number and job["array_task"] == task:
                return job
        return {}

    def _id(self, name: str) -> int:
        if name.isdigit():
            return int(name)
        job, (label, task) = self._record(name), _split(name)
        if job:
            return int(job["id"])
        return self.ids[label] if task is None else task_id(self.ids[label], task)

    def _address(self, name: str) -> str:
        found = _LABEL.fullmatch(name)
        return f"{self.ids[found[1]]}{found[2] or ''}" if found else name


def _split(name: str) -> tuple[str, int | None]:
    label, _, task = name.partition("_")
    return label, int(task) if task else None


def _fields(words: Sequence[str]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words if "=" in word and not word.startswith("-"))


def _order(what: str, job_id: int, words: Sequence[str], job: Shown, now_s: int) -> Order:
    """The order to our executor; `job` is the job as it is, empty for a task that is in its array's record."""
    given = _fields(words)
    match what:
        case "requeue":
            return RequeueOrder(job_id)
        case "unboost":
            return GateOrder(job_id, OrderKind.UNBOOST, site_factor=0)
        case "renew":
            gate_s = now_s + int(words[0])
            return GateOrder(job_id, OrderKind.RENEW, _noted(job, gate_s=gate_s), gate_s)
    task = task_of(job_id)
    per_node, tasks = (int(given[name]) if name in given else None for name in ("per_node", "tasks"))
    memory = MemoryRequest(int(given["memory"])) if "memory" in given else None
    later_s = now_s + int(given["begin"]) if "begin" in given else None
    order = GateOrder(
        job_id,
        OrderKind.PLACE,
        begin_s=later_s or OPEN,
        tasks_per_node=per_node,
        tasks=tasks,
        memory=MemoryRequest(int(given["per_cpu"]), is_by_cpu=True) if "per_cpu" in given else memory,
        extra=given.get("extra", "" if "no_extra" in words else None),
        address="" if task is None else f"{task[0]}_{task[1]}",
    )
    if what == "place":
        nodes, gres = tuple(words[0].split(",")), (int(given.get("ways", 0)), int(given.get("bandwidth", 0)))
        note = _noted(job, nodes=nodes, placed_s=now_s, gate_s=later_s or now_s + 60)
        return replace(order, admin_comment=note, nodes=nodes, gres=gres if any(gres) else None, site_factor=BOOST)
    later_s = now_s + int(words[0]) if words and words[0].isdigit() else None
    record = records.read(job.get("admin_comment", ""))
    is_placed = record is not None and record.is_placed
    return replace(
        order,
        kind=OrderKind.REGATE if what == "regate" else OrderKind.FREE,
        admin_comment=_noted(job, gate_s=later_s) if what == "regate" else _noted(job, free_why="test"),
        begin_s=later_s or OPEN,
        nodes=() if is_placed and "keeps_nodes" not in words else None,
        gres=(0, 0) if is_placed and "keeps_gres" not in words else None,
        site_factor=0 if is_placed else None,
    )


def _noted(job: Shown, **words: Any) -> str:
    """AdminComment with a record of these words."""
    return records.written(job.get("admin_comment", ""), Record(**words))


def _in_short(answer: str) -> str:
    return next((each for each in MESSAGES if each in answer), answer)


def _is(job: Shown, word: str) -> bool:
    """Whether a word of `until` is true of the job."""
    if not job:
        return word == "gone"
    name, _, value = word.partition("=")
    match name:
        case "pending" | "suspended" | "ended":
            return bool(job["state"] == name)
        case "running":
            return job["state"] == "running" and not job["is_completing"]
        case "completing":
            return bool(job["is_completing"])
        case "quiet":
            return not job["is_completing"]
        case "held":
            return job["state"] == "pending" and job["priority"] == 0
        case "planned":
            return bool(job["planned_on"])
        case "succeeded":
            return bool(job["has_succeeded"])
        case "free":
            return not job["waits_for_others"]
        case "restarts":
            return bool(job["restarts"] == int(value))
        case _:
            return word in (_reason(job), str(job["reason"]).partition(",")[0])


#: Fields of ObservedJob that are compared as they are.
COMPARED = (
    *("state", "is_completing", "has_succeeded", "user", "account", "qos", "partitions", "nice", "restarts", "extra"),
    *("comment", "pinned_to", "excluded", "allocated", "tasks", "cpus", "cpus_per_task", "tasks_per_node"),
    *("has_open_nodes", "memory_per_cpu_mb", "memory_per_node_mb", "walltime_s", "may_restart", "ways"),
    *("bandwidth_gbps", "has_other_gres", "waits_for_others", "array_task", "array_tasks", "array_limit", "asks_for"),
    *("is_alone", "is_countable", "nodes_min", "nodes_max"),
)
#: Which of these reasons Slurm shows for a job that is not held is a matter of timing; "" is None.
_WAITS = ("", "Priority", "Resources", "BeginTime", "ReqNodeNotAvail", "Nodes required for job are DOWN")
#: A priority above this comes before all jobs without our boost.
FIRST = 1_000_000_000


def _shown(job: Shown, submitted_s: int, now_s: float) -> dict[str, Any]:
    """What is compared of a job's record: times and priorities as far as they are determined."""
    row = {name: job[name] for name in COMPARED}
    waits = job["state"] == "pending"
    row["admin_comment"] = re.sub(r"\d{9,}", "T", job["admin_comment"])
    row["priority_is_0"] = job["priority"] == 0
    row["is_first"] = job["priority"] > FIRST
    row["reason"] = _reason(job)
    if row["nodes_max"] is None:
        del row["nodes_min"]  # Slurm's own estimate
    row["is_for_later"] = _is_for_later(job, now_s)
    ahead_s = job["begin_s"] - job["submit_s"] if waits and job["restarts"] else 0
    row["begins_in_s"] = (
        ahead_s if 3 < ahead_s < 100 else 0
    )  # Slurm's own delay after a requeue; others depend on timing
    row["is_resubmitted"] = bool(submitted_s and job["submit_s"] != submitted_s)
    row["has_started"] = not waits and job["start_s"] > 0
    is_running = job["state"] == "running" and not job["is_completing"]
    row["runs_for_min"] = (job["end_s"] - job["start_s"]) // 60 if is_running else 0
    if not job["pinned_to"]:  # any node will do
        row["allocated"] = len(job["allocated"])
    row["was_suspended"] = job["suspended_s"] > 0
    row["is_array"] = job["array_id"] is not None
    return row


def _is_for_later(job: Shown, now_s: float) -> bool:
    return job["state"] == "pending" and job["begin_s"] > now_s + 60


def _reason(job: Shown) -> str:
    """The reason, without what timing decides, and without Slurm's explanations after a comma.

    For a moment a job that has started waits for its nodes' prolog; requeued then, it keeps that to the next pass.
    """
    reason = str(job["reason"]).partition(",")[0]
    if reason == "Prolog":
        reason = ""
    return "it waits" if job["state"] == "pending" and reason in _WAITS else reason


def differences(case: str, model: Sequence[Row], real: Sequence[Row]) -> list[str]:
    """What differs between the rows of a case on the model and on the real Slurm, in words.

    After a condition that came true on one of them only, nothing more is compared.
    """
    found = []
    for (line, ours), (_, theirs) in zip(model, real, strict=False):
        unlike = {name: (theirs.get(name), ours.get(name)) for name in ours | theirs}
        if "waited" in ours or "waited" in theirs:
            found.append(f"{case}: {line}: in vain on {'the model' if 'waited' in ours else 'Slurm'}: {unlike}")
            break
        for name, (slurm, ours_is) in unlike.items():
            if slurm != ours_is:
                found.append(f"{case}: {line}: {name}: Slurm {slurm!r}, the model {ours_is!r}")
    return found
