"""What `scontrol -o show` prints, as records with pyslurm's attributes, so that `translate` serves both. Pure.

A record is a line of `Key=Value`. Values may have blanks, and users write some of them: a job's name stands among
Slurm's own fields, its command, comment and paths behind them. So the parts of a job's line are read each in its way:

    JobId=7 ... JobName=<any text> UserId=alice(2001) GroupId=... <Slurm's own fields> Command=<any text> ...

- Before the first ` JobName=` nothing is a user's. There is the job's id, and its array.
- ` UserId=NAME(NUMBER) GroupId=` ends the name. A line in which that stands more than once is left out: some text of
  the job looks like Slurm's own, and which one is Slurm's cannot be told.
- From there to the first ` Command=` no key stands twice, else the line is left out.
- Behind it the first of each key counts, and none replaces one of before. A user who writes such a key into a comment
  changes what is read of this job alone.

A text with a line break goes on in the next line, up to one that begins as a record does (`JobId=8 `). If a user has
written such a line into a name, the record before it is cut off and so left out, and the line may look like the record
of another job: whoever reads this is told that lines were left out. Of two records with one id the first counts.

What scontrol does not show is None, as with pyslurm. Times are read as Unix seconds (`SLURM_TIME_FORMAT=%s`) or as
local times. Numbers may have a unit (`16K` CPUs, `4500M`, `4G`).
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

from slurm_sns.coverage.sacct import duration_s
from slurm_sns.errors import BadInput
from slurm_sns.gpus import GresTexts

Fields = Mapping[str, str]
#: How each attribute is read.
Reads = Mapping[str, Callable[[Fields], Any]]

#: Where the next key begins: `ReqB:S:C:T=`, `CPUs/Task=`.
_NEXT_KEY = re.compile(r" +(?=[A-Za-z][A-Za-z0-9_:/]*=)")
_OWNER = re.compile(r" UserId=[^=]{0,256}\([0-9]{1,10}\) GroupId=")
#: What stands behind the name of a heterogeneous job's part.
_PARTS = re.compile(r" HetJobIdSet=[0-9,-]*\Z")
#: Who gave a node's reason and when, or what else admins wrote about it.
_REASON_ENDS = re.compile(r" \[[^\]@]{1,256}@[^\]]{1,64}\]| (?:Comment|Extra)=")
_NAMED = re.compile(r"(.*)\(([0-9]{1,10})\)", re.DOTALL)
_AMOUNT = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,9})?)([KMGTP]?)", re.ASCII)
_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4, "P": 1024**5}
#: Slurm's words for "none", each in some of the fields.
_NOTHING = frozenset({"", "(null)", "N/A", "n/a", "None", "NONE", "Unknown", "*", "INVALID", "INFINITE"})
#: In the form of older releases, `DOWN*` is a node that does not respond; the other signs say what the flags say.
_SIGNS = "*~#!%$@^-+"
#: What has no fields to read: the answer of a cluster without jobs or reservations.
_EMPTY = re.compile(r"No (jobs|nodes|partitions|reservations) in the system")


class TextAnswer(NamedTuple):
    """The records of one answer, and how many lines were left out, by reason."""

    records: tuple[Any, ...]
    left_out: Counter[str]


class _TextRecord:
    """A record that converts a field when it is asked for, as pyslurm does.

    A field that cannot be read raises ValueError, which costs this field alone (translate._Tolerant).
    """

    reads: ClassVar[Reads] = {}

    def __init__(self, shown: Fields) -> None:
        self.shown = shown

    def __getattr__(self, name: str) -> Any:
        read = type(self).reads.get(name)
        if read is None:
            raise AttributeError(name)
        return read(self.shown)


def _text(key: str) -> Callable[[Fields], str | None]:
    def read(shown: Fields) -> str | None:
        value = shown.get(key, "")
        return None if value in _NOTHING else value

    return read


def _words(key: str) -> Callable[[Fields], list[str]]:
    text = _text(key)
    return lambda shown: [word for word in (text(shown) or "").split(",") if word]


def _is(key: str, *values: str) -> Callable[[Fields], bool]:
    return lambda shown: shown.get(key) in values


def amount(text: str) -> int:
    """`16`, `16K` (16,384) as a whole number.

    Raises:
        ValueError: it is none.
    """
    found = _AMOUNT.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:20]!r} is no number")
    return int(float(found[1]) * _UNITS[found[2]]) if "." in found[1] else int(found[1]) * _UNITS[found[2]]


def _number(key: str, *, zero_is_nothing: bool = False) -> Callable[[Fields], int | str | None]:
    """A number; the word UNLIMITED as it is; of a range `1-4` the first."""
    text = _text(key)

    def read(shown: Fields) -> int | str | None:
        value = text(shown)
        if value is None or value == "UNLIMITED":
            return value
        found = amount(value.partition("-")[0])
        return None if zero_is_nothing and not found else found

    return read


def _signed(key: str) -> Callable[[Fields], int | None]:
    text = _text(key)

    def read(shown: Fields) -> int | None:
        value = text(shown)
        return None if value is None else (-1 if value.startswith("-") else 1) * amount(value.removeprefix("-"))

    return read


def _last_of_range(key: str) -> Callable[[Fields], int | None]:
    """The end of a range; None where there is none."""
    text = _text(key)

    def read(shown: Fields) -> int | None:
        end = (text(shown) or "").partition("-")[2]
        return amount(end) if end else None

    return read


def _part(key: str, index: int) -> Callable[[Fields], int | None]:
    """A number of several (`0:0:*:*`); None for 0."""

    def read(shown: Fields) -> int | None:
        parts = shown.get(key, "").split(":")
        value = parts[index] if index < len(parts) else ""
        return None if value in _NOTHING else amount(value) or None

    return read


def _memory_mb(key: str) -> Callable[[Fields], int | None]:
    """Memory in MiB; None for 0, as pyslurm shows it. A number without a unit is in MiB."""
    text = _text(key)

    def read(shown: Fields) -> int | None:
        value = text(shown)
        if value is None:
            return None
        return (amount(value) if value[-1:].isdigit() else amount(value) // _UNITS["M"]) or None

    return read


def _time(key: str) -> Callable[[Fields], int | None]:
    text = _text(key)

    def read(shown: Fields) -> int | None:
        value = text(shown)
        if value is None:
            return None
        return amount(value) if value.isdecimal() else int(datetime.fromisoformat(value).timestamp())

    return read


def _minutes(key: str) -> Callable[[Fields], int | str | None]:
    text = _text(key)

    def read(shown: Fields) -> int | str | None:
        value = text(shown)
        if value is None or value in ("UNLIMITED", "Partition_Limit"):
            return "UNLIMITED" if value == "UNLIMITED" else None
        try:
            return int(duration_s(value)) // 60
        except BadInput as problem:
            raise ValueError(str(problem)) from None

    return read


def _gres_of(text: str) -> dict[str, int]:
    """`gpu:a100:2(IDX:0-1),llc:4`, `gres/llc=4` as amounts by name and type: `gpu:a100`, `llc`."""
    found: Counter[str] = Counter()
    for entry in re.split(r",(?![^(]*\))", text):
        name, *more = re.split("[:=]", re.sub(r"^gres[/:]", "", entry.partition("(")[0]))
        if name and name not in _NOTHING:
            has_amount = bool(more) and _AMOUNT.fullmatch(more[-1]) is not None
            kind = more[:-1] if has_amount else more
            found[":".join((name, *kind))] += amount(more[-1]) if has_amount else 1
    return dict(found)


def _gres(*keys: str) -> Callable[[Fields], dict[str, int]]:
    """The gres of the first of these keys that is shown."""
    return lambda shown: _gres_of(next((shown[key] for key in keys if key in shown), ""))


def _gres_of_tres(key: str) -> Callable[[Fields], dict[str, int]]:
    """The gres among TRES, such as `cpu=4,mem=8G,gres/gpu=1`."""
    tres = _words(key)
    return lambda shown: _gres_of(",".join(word for word in tres(shown) if word.startswith("gres/")))


#: Ways to ask for gres beside those of each node; `--cpus-per-task` is shown as TresPerTask, too.
_OTHER_GRES = ("TresPerJob", "TresPerSocket", "TresPerTask", "CpusPerTres", "MemPerTres")


def _gres_texts(shown: Fields) -> GresTexts:
    keys = ("TresPerNode", "TresPerTask", "TresPerJob", "TresPerSocket", "CpusPerTres", "MemPerTres")
    node, task, job, socket, cpus, memory = (_text(key)(shown) or "" for key in keys)
    # Either with Yes or No (seen: disable-binding is a No).
    has_flags = not {"GresEnforceBind", "GresOneTaskPerSharing"}.isdisjoint(shown)
    return GresTexts(node, task, job, socket, cpus, memory, has_flags)


def _any_gres(shown: Fields) -> dict[str, int]:
    found = _gres_of_tres("ReqTRES")(shown)
    for key in _OTHER_GRES:
        found |= {name: 1 for name in _gres_of(shown.get(key, "")) if name != "cpu"}
    return found


def _user_id(shown: Fields) -> int:
    found = _NAMED.fullmatch(shown.get("UserId", ""))
    if found is None:
        raise ValueError("it has no UserId")
    return int(found[2])


def _user(shown: Fields) -> str:
    found = _NAMED.fullmatch(shown.get("UserId", ""))
    return "" if found is None else found[1]


def _waiting_tasks(shown: Fields) -> str | None:
    """The tasks of an array's record that still wait; None for a single task."""
    tasks = shown.get("ArrayTaskId", "")
    return None if tasks in _NOTHING or tasks.isdecimal() else tasks.partition("%")[0]


def _task_id(shown: Fields) -> int | None:
    tasks = shown.get("ArrayTaskId", "")
    return amount(tasks) if tasks.isdecimal() else None


def _seconds(key: str) -> Callable[[Fields], int | None]:
    """The number of `30 sec`; None if there is none."""

    def read(shown: Fields) -> int | None:
        number = shown.get(key, "").partition(" ")[0]
        return amount(number) if number.isdecimal() else None

    return read


def _run_s(shown: Fields) -> int | None:
    """The seconds of RunTime, in which suspensions do not count."""
    value = _text("RunTime")(shown)
    try:
        return None if value is None else int(duration_s(value))
    except BadInput as problem:
        raise ValueError(str(problem)) from None


def _tasks_at_a_time(shown: Fields) -> int | None:
    tasks = shown.get("ArrayTaskThrottle") or shown.get("ArrayTaskId", "").partition("%")[2]
    return amount(tasks) or None if tasks else None


def _cores_or_sockets(shown: Fields) -> int | None:
    """Sockets that the job asks for, also by boards."""
    by_node = _number("Socks/Node", zero_is_nothing=True)(shown)
    return by_node if isinstance(by_node, int) else _part("ReqB:S:C:T", 1)(shown) or _part("ReqB:S:C:T", 0)(shown)


def _nodes_of_tres(shown: Fields) -> int | None:
    """The fewest nodes that the owner asked for; None where ReqTRES, in 22.05 TRES, does not say."""
    words = shown.get("ReqTRES", shown.get("TRES", "")).split(",")
    found = next((word[5:] for word in words if word.startswith("node=")), None)
    return None if found is None else amount(found)


def _is_own_estimate(shown: Fields) -> bool:
    """Whether both ends of NumNodes are one number that is not the fewest nodes of the owner's: Slurm's estimate."""
    fewest, most = _number("NumNodes")(shown), _last_of_range("NumNodes")(shown)
    asked = _nodes_of_tres(shown)
    return asked is not None and isinstance(fewest, int) and fewest == most and asked < fewest


def _has_range(shown: Fields) -> bool:
    """Whether the owner gave the end of such a range.

    Slurm shows the nodes that it plans for `-N2-4` as `4-4` (seen from 22.05 to 26.05). Of a job of -n alone that it
    has not planned yet, such as a held one, releases before 26.05 show their estimate in the same way (seen on 24.11).
    """
    return "SchedNodeList" in shown or "Exclusive" in shown


def _fewest_nodes(shown: Fields) -> int | str | None:
    is_planned = _is_own_estimate(shown) and _has_range(shown)
    return _nodes_of_tres(shown) if is_planned else _number("NumNodes")(shown)


def _most_nodes(shown: Fields) -> int | None:
    is_open = _is_own_estimate(shown) and not _has_range(shown)
    return None if is_open else _last_of_range("NumNodes")(shown)


def _constraints(shown: Fields) -> list[str]:
    text = _text("Features")(shown)
    return [] if text is None else [text]


def _sharing(shown: Fields) -> str | None:
    """How the job shares its nodes, in pyslurm's words: OK, YES, NO (alone), USER ...

    Slurm 26.05 says it in two fields; there OverSubscribe=NO is what OK was.
    """
    shared, alone = _text("OverSubscribe")(shown), shown.get("Exclusive")
    if alone is None:
        return shared
    if alone != "NO":
        return "NO" if alone == "NODE" else alone
    return "YES" if shared == "YES" else "OK"


class JobText(_TextRecord):
    """One job of `scontrol -o show job`, with the attributes of pyslurm.Job that `translate.job` reads.

    The last ones before the comment are what only the submit filter looks at.
    """

    reads: ClassVar[Reads] = {
        "id": lambda shown: amount(shown["JobId"]),
        "user_id": _user_id,
        "user": _user,
        "name": lambda shown: shown.get("JobName", ""),
        "state": _text("JobState"),
        "state_reason": _text("Reason"),
        "account": _text("Account"),
        "partition": _text("Partition"),
        "qos": _text("QOS"),
        "priority": _number("Priority"),
        "nice": _signed("Nice"),
        "requeue_count": _number("Restarts"),
        "is_requeueable": _is("Requeue", "1"),
        "is_batch_job": _is("BatchFlag", "1", "2"),
        "is_cronjob": lambda shown: "CrontabSpec" in shown or shown.get("CronJob") == "Yes",
        "heterogeneous_id": _number("HetJobId", zero_is_nothing=True),
        "federation_origin": _text("FedOrigin"),
        "dependencies": _text("Dependency"),
        "submit_time": _time("SubmitTime"),
        "eligible_time": _time("EligibleTime"),
        "start_time": _time("StartTime"),
        "end_time": _time("EndTime"),
        "suspend_time": _time("SuspendTime"),
        "run_time": _run_s,
        "deadline": _time("Deadline"),
        "time_limit": lambda shown: None if (limit := _minutes("TimeLimit")(shown)) == "UNLIMITED" else limit,
        "time_limit_min": _minutes("TimeMin"),
        "required_nodes": _text("ReqNodeList"),
        "excluded_nodes": _text("ExcNodeList"),
        "allocated_nodes": _text("NodeList"),
        "scheduled_nodes": _text("SchedNodeList"),
        "num_nodes": _fewest_nodes,
        "max_nodes": _most_nodes,
        "ntasks": _number("NumTasks"),
        "cpus": _number("NumCPUs"),
        "cpus_per_task": _number("CPUs/Task"),
        "min_cpus_per_node": _number("MinCPUsNode"),
        "ntasks_per_node": _part("NtasksPerN:B:S:C", 0),
        "memory_per_cpu": _memory_mb("MinMemoryCPU"),
        "memory_per_node": _memory_mb("MinMemoryNode"),
        "temporary_disk_per_node": _number("MinTmpDiskNode", zero_is_nothing=True),
        "sockets_per_node": _cores_or_sockets,
        "cores_per_socket": _part("ReqB:S:C:T", 2),
        "threads_per_core": _part("ReqB:S:C:T", 3),
        "array_id": _number("ArrayJobId"),
        "array_task_id": _task_id,
        "array_tasks_waiting": _waiting_tasks,
        "array_tasks_parallel": _tasks_at_a_time,
        "constraints": _constraints,
        "preferred_features": _words("Prefer"),
        "reservation": _text("Reservation"),
        "resource_sharing": _sharing,
        "requires_contiguous_nodes": lambda shown: shown.get("Contiguous", "0") != "0",
        "required_switches": _text("Switches"),
        "licenses": _words("Licenses"),
        "burst_buffer": _text("BurstBuffer"),
        "mail_types": _words("MailType"),
        "mail_user": _words("MailUser"),
        "gres_per_node": _gres("TresPerNode"),
        "gres": _any_gres,
        "gres_texts": _gres_texts,
        "tasks_per_board": _part("NtasksPerN:B:S:C", 1),
        "tasks_per_socket": _part("NtasksPerN:B:S:C", 2),
        "tasks_per_core": _part("NtasksPerN:B:S:C", 3),
        "tasks_per_tres": _number("NtasksPerTRES", zero_is_nothing=True),
        "core_spec": _number("CoreSpec"),
        "thread_spec": _number("ThreadSpec"),
        "network": lambda shown: _text("Network")(shown) or "",
        "is_spread": _is("SpreadJob", "Yes"),
        "reboot": _number("Reboot"),
        "batch_features": lambda shown: _text("BatchFeatures")(shown) or "",
        "comment": _text("Comment"),
        "admin_comment": _text("AdminComment"),
        "extra": _text("Extra"),
    }


def _node_state(shown: Fields) -> str:
    state = shown.get("State", "UNKNOWN")
    plain = state.rstrip(_SIGNS)
    return f"{plain}+NOT_RESPONDING" if "*" in state[len(plain) :] else plain


class NodeText(_TextRecord):
    """One node of `scontrol -d -o show node`, with the attributes of pyslurm.Node that `translate.node` reads."""

    reads: ClassVar[Reads] = {
        "name": lambda shown: shown["NodeName"],
        "state": _node_state,
        "reason": _text("Reason"),
        "partitions": _words("Partitions"),
        "effective_cpus": lambda shown: _number("CPUEfctv" if "CPUEfctv" in shown else "CPUTot")(shown),
        "threads_per_core": _number("ThreadsPerCore"),
        "real_memory": _number("RealMemory"),
        "memory_reserved_for_system": _number("MemSpecLimit"),
        "allocated_cpus": lambda shown: _number("CPUAlloc")(shown) or 0,
        "allocated_memory": _number("AllocMem"),
        "configured_gres": _gres("Gres"),
        "allocated_gres": lambda shown: (_gres("GresUsed") if "GresUsed" in shown else _gres_of_tres("AllocTRES"))(
            shown
        ),
        "gres_used": _gres("GresUsed"),
        "active_features": _words("ActiveFeatures"),
        "weight": _number("Weight"),
        "sockets": _number("Sockets"),
    }


class ReservationText(_TextRecord):
    """One reservation of `scontrol -o show reservation`."""

    reads: ClassVar[Reads] = {
        "name": lambda shown: shown["ReservationName"],
        "nodes": _text("Nodes"),
        "start_time": _time("StartTime"),
        "end_time": _time("EndTime"),
    }


class PartitionText(_TextRecord):
    """One partition of `scontrol -o show partition`, with what translate and `site.partition_rules` read."""

    reads: ClassVar[Reads] = {
        "name": lambda shown: shown["PartitionName"],
        "state": _text("State"),
        "priority_tier": _number("PriorityTier"),
        "min_nodes": _number("MinNodes"),
        "max_nodes": _number("MaxNodes"),
        "max_time": _minutes("MaxTime"),
        "preempt_mode": _text("PreemptMode"),
        "allowed_groups": _words("AllowGroups"),
        "allowed_accounts": _words("AllowAccounts"),
        "denied_accounts": _words("DenyAccounts"),
        "allowed_qos": _words("AllowQos"),
        "denied_qos": _words("DenyQos"),
        "is_default": _is("Default", "YES"),
        "oversubscribe": lambda shown: (
            "EXCLUSIVE" if _is("Exclusive", "NODE")(shown) else shown.get("OverSubscribe", "")
        ),
        "is_user_exclusive": lambda shown: _is("ExclusiveUser", "YES")(shown) or _is("Exclusive", "USER")(shown),
        "max_cpus_per_node": _number("MaxCPUsPerNode"),
        "max_cpus_per_socket": _number("MaxCPUsPerSocket"),
        "default_memory_per_cpu": _number("DefMemPerCPU"),
        "default_memory_per_node": _number("DefMemPerNode"),
    }


_WEIGHTS = {"age": "Age", "assoc": "Assoc", "fair_share": "FairShare", "job_size": "JobSize", "partition": "Partition"}


def _weight(key: str) -> Callable[[Fields], float]:
    text = _text(key)
    return lambda shown: float(text(shown) or 0)


def _weights_of_tres(shown: Fields) -> dict[str, float]:
    pairs = (word.partition("=") for word in _words("PriorityWeightTRES")(shown))
    return {name: float(weight) for name, has, weight in pairs if has}


class ConfigText(_TextRecord):
    """`scontrol show config`, with the attributes of pyslurm.slurmctld.Config that are read of a running Slurm."""

    reads: ClassVar[Reads] = {
        "version": lambda shown: shown.get("SLURM_VERSION", ""),
        "slurm_user_name": lambda shown: shown.get("SlurmUser", "").partition("(")[0],
        "scheduler_parameters": _words("SchedulerParameters"),
        "select_type_parameters": _words("SelectTypeParameters"),
        "kill_wait_time": _seconds("KillWait"),
        "preempt_type": _text("PreemptType"),
        "preempt_mode": _text("PreemptMode"),
        "priority_type": _text("PriorityType"),
        "priority_site_factor_plugin": _text("PrioritySiteFactorPlugin"),
        **{f"priority_weight_{ours}": _weight(f"PriorityWeight{slurms}") for ours, slurms in _WEIGHTS.items()},
        "priority_weight_qos": _weight("PriorityWeightQOS"),
        "priority_weight_tres": _weights_of_tres,
        "topology_plugin": _text("TopologyPlugin"),
        "mail_program": _text("MailProg"),
        "accounting_storage_type": _text("AccountingStorageType"),
        "default_memory_per_cpu": _number("DefMemPerCPU", zero_is_nothing=True),
        "private_data": _words("PrivateData"),
        "job_submit_plugins": _words("JobSubmitPlugins"),
        "gres_types": _words("GresTypes"),
        "accounting_storage_tres": _words("AccountingStorageTRES"),
        "priority_flags": _words("PriorityFlags"),
        "slurmctld_parameters": _words("SlurmctldParameters"),
        "plugin_dirs": lambda shown: [each for each in shown.get("PluginDir", "").split(":") if each],
        "plugin_stack_config": _text("PlugStackConfig"),
        "min_job_age": _seconds("MinJobAge"),
        "job_requeue": _is("JobRequeue", "1"),
        "max_dbd_msgs": _number("MaxDBDMsgs"),
    }


def jobs(text: str) -> TextAnswer:
    """The jobs of `scontrol -o show job`."""
    return _answer(text, "JobId", _job_fields, JobText)


def nodes(text: str) -> TextAnswer:
    """The nodes of `scontrol -d -o show node`."""
    return _answer(text, "NodeName", _node_fields, NodeText)


def partitions(text: str) -> TextAnswer:
    """The partitions of `scontrol -o show partition`."""
    return _answer(text, "PartitionName", _fields, PartitionText)


def reservations(text: str) -> TextAnswer:
    """The reservations of `scontrol -o show reservation`."""
    return _answer(text, "ReservationName", _fields, ReservationText)


def configuration(text: str) -> ConfigText:
    """The settings of `scontrol show config`, a `Name = value` in each line."""
    pairs = (line.partition("=") for line in text.split("\n"))
    return ConfigText({name.strip(): value.strip() for name, has, value in pairs if has})


def _answer(text: str, key: str, fields_of: Callable[[str], Fields], kind: type[_TextRecord]) -> TextAnswer:
    """The records, whose lines begin with this key; one bad line costs that line."""
    found: dict[str, Any] = {}
    left_out: Counter[str] = Counter()
    lines = re.split(rf"\n(?={key}=\S+ )", text)  # users' texts may have other line breaks and carriage returns
    if not text.endswith("\n") and lines.pop():
        left_out["the answer ends in the middle of a line"] += 1
    for line in lines:
        if not line.strip() or _EMPTY.fullmatch(line.strip()):
            continue
        if not line.startswith(f"{key}="):
            left_out[f"a line does not begin with {key}="] += 1
            continue
        try:
            shown = fields_of(line.removesuffix("\n"))
        except ValueError as problem:
            left_out[str(problem)] += 1
            continue
        if shown[key] in found:
            left_out[f"two records have the same {key}"] += 1
            continue
        found[shown[key]] = kind(shown)
    return TextAnswer(tuple(found.values()), left_out)


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for part in _NEXT_KEY.split(text.strip(" ")):
        key, has, value = part.partition("=")
        if has:
            yield key, value


def _fields(line: str) -> Fields:
    """The fields of a record in which only admins write: the first of each key."""
    found: dict[str, str] = {}
    for key, value in _pairs(line):
        found.setdefault(key, value)
    return found


def _node_fields(line: str) -> Fields:
    """The fields of a node's line. Its reason is an admin's free text; all that is read stands before it."""
    shown, has_reason, text = line.partition(" Reason=")
    found = _fields(shown)
    return {**found, "Reason": _REASON_ENDS.split(text, 1)[0].strip()} if has_reason else found


def _job_fields(line: str) -> Fields:
    """The fields of a job's line.

    Raises:
        ValueError: it is cut off, or a user's text in it looks like Slurm's own.
    """
    head, _, rest = line.partition(" JobName=")
    owners = [found.start() for found in _OWNER.finditer(rest)]
    if not owners:
        raise ValueError("a job's line is cut off")
    if len(owners) > 1:
        raise ValueError("a text of a job looks like Slurm's own fields")
    own, has_end, tail = rest[owners[0] :].partition(" Command=")
    if not has_end:
        raise ValueError("a job's line is cut off")
    found = {**dict(_pairs(head)), "JobName": rest[: owners[0]]}
    if "HetJobId" in found:
        found["JobName"] = _PARTS.sub("", found["JobName"])
    if not found.get("JobId", "").isdecimal():
        raise ValueError("a job's id is no number")
    for key, value in _pairs(own):
        if key in found:
            raise ValueError("a text of a job looks like Slurm's own fields")
        found[key] = value
    for key, value in _pairs(f"Command={tail}"):
        found.setdefault(key, value)
    return found
