"""The calls of pyslurm that slurm_sns makes, on a C library of our own, for releases for which there is no pyslurm.

plugins/libslurm/sns_slurm.c is compiled against the slurm.h of the site, so one source serves Slurm 24.11 to 26.05.
Names, records and attributes are pyslurm's, so `translate` and all other modules serve both; a test on the cluster
compares what they read. Configuration, partitions and reservations come as scontrol prints them (scontrol_text): admins
alone write these. Jobs come as numbers and texts, each with its length, whatever their owners have written.

ctypes releases the interpreter lock during each call.
"""

import ctypes
import re
import struct
import sysconfig
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from slurm_sns.gpus import GresTexts
from slurm_sns.scheduler.gate.arrays import listed
from slurm_sns.scheduler.observation import UNREADABLE
from slurm_sns.slurm import scontrol_text

#: Where plugins/libslurm/Makefile installs the library: in the environment that runs this, beside slurm_sns.
PATH = Path(sysconfig.get_path("platlib")) / "sns_slurm.so"
__version__ = "of slurm_sns"

Fields = Mapping[str, Any]
#: How each attribute is read.
Reads = Mapping[str, Callable[[Fields], Any]]

#: What the library writes for Slurm's "none" and "unlimited" of any width.
_NONE, _UNLIMITED = -(1 << 63), (1 << 63) - 1
#: What libraries of earlier versions do not have.
_NEWEST_FUNCTION = "sns_jobs_of_user"
#: slurm.h, enum job_states.
_PENDING, _RUNNING, _SUSPENDED = 0, 1, 2
#: What is in parentheses in `gpu:a100:2(IDX:0,2),llc:4`. It takes linear time in any text.
_PARENTHESES = re.compile(r"\([^()]*\)")


class RPCError(Exception):
    """Slurm's answer to a request is an error; `errno` is its number."""

    def __init__(self, number: int) -> None:
        self.errno = number
        super().__init__((_library().sns_error(number) or b"").decode(errors="replace"))


class _Answer(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("size", ctypes.c_uint64),
        ("ends", ctypes.c_void_p),
        ("count", ctypes.c_uint64),
        ("room", ctypes.c_uint64),
        ("is_short_of_memory", ctypes.c_bool),
    )


#: The numbers of an update, then its texts.
_NUMBERS = (
    *("begin_time", "ntasks", "ntasks_per_node", "memory_per_cpu", "memory_per_node", "site_factor", "time_limit"),
    *("cpus", "min_cpus_per_node"),
)
_TEXTS = ("admin_comment", "required_nodes", "gres_per_node", "extra", "partitions")


#: A record of an answer begins with a number: the job's id, or in an answer about several tasks Slurm's error number.
_NUMBER, _LENGTH = struct.Struct("=q"), struct.Struct("=i")
#: The first two numbers of a job's record: its id and that of its user.
_ID_AND_USER = struct.Struct("=qq")
#: A job's id, its state, and how many tasks of its array wait in its record.
_STATE = struct.Struct("=qqq")
#: slurm_errno.h, ESLURM_INVALID_JOB_ID.
_NO_SUCH_JOB = 2017


class _Change(ctypes.Structure):
    _fields_ = (*((name, ctypes.c_int64) for name in _NUMBERS), *((name, ctypes.c_char_p) for name in _TEXTS))


@cache
def _library() -> ctypes.CDLL:
    """The library, whose functions return error numbers.

    Raises:
        ImportError: it is not installed, not for the libslurm of this machine, or of another version of slurm_sns.
    """
    try:
        # With RTLD_GLOBAL: Slurm's plugins, which libslurm opens, look for its symbols among those of the process.
        library = ctypes.CDLL(str(PATH), mode=ctypes.RTLD_GLOBAL)
    except OSError as problem:
        raise ImportError(str(problem)) from None
    other = ImportError(f"{PATH} was made for another version of slurm_sns; make it again: plugins/libslurm/Makefile")
    if not hasattr(library, "sns_change_size") or library.sns_change_size() != ctypes.sizeof(_Change):
        raise other
    library.sns_error.restype = library.sns_job_fields.restype = library.sns_node_fields.restype = ctypes.c_char_p
    if not hasattr(library, _NEWEST_FUNCTION):
        raise other
    library.sns_built_for.restype = ctypes.c_uint
    library.sns_free.restype = library.sns_start.restype = None
    return library


def slurm_init() -> None:
    """Read slurm.conf.

    Raises:
        ImportError: as `_library`.
    """
    _library().sns_start()


def built_for() -> int:
    """SLURM_VERSION_NUMBER of the headers that the library was compiled against."""
    return int(_library().sns_built_for())


def _asked(function: str, *arguments: Any) -> list[bytes]:
    """The records of an answer."""
    library, answer = _library(), _Answer()
    try:
        _check(getattr(library, function)(ctypes.byref(answer), *arguments))
        data = ctypes.string_at(answer.data, answer.size) if answer.size else b""
        ends = list((ctypes.c_uint64 * answer.count).from_address(answer.ends))
    finally:
        library.sns_free(ctypes.byref(answer))
    return [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _check(number: int) -> None:
    if number:
        raise RPCError(number)


class _Layout:
    """How a record of one kind is written."""

    def __init__(self, described: bytes) -> None:
        names = [word.split(":") for word in described.decode().split()]
        self.names = tuple(name for _, name in names)
        numbers = sum(kind == "n" for kind, _ in names)
        self._numbers, self._lengths = struct.Struct(f"={numbers}q"), struct.Struct(f"={len(names) - numbers}i")

    def first_text(self, raw: bytes) -> str:
        """The first text, without reading the others; empty for none."""
        (length,) = _LENGTH.unpack_from(raw, self._numbers.size)
        at = self._numbers.size + self._lengths.size
        return _text(raw[at : at + max(0, length)])

    def read(self, raw: bytes) -> dict[str, Any]:
        """The values by name: numbers, None, or `UNLIMITED`; texts, those that are not UTF-8 as `UNREADABLE`."""
        values: list[Any] = [
            None if each == _NONE else "UNLIMITED" if each == _UNLIMITED else each
            for each in self._numbers.unpack_from(raw)
        ]
        at = self._numbers.size + self._lengths.size
        for length in self._lengths.unpack_from(raw, self._numbers.size):
            if length < 0:
                values.append(None)
                continue
            values.append(_text(raw[at : at + length]))
            at += length
        return dict(zip(self.names, values, strict=True))


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return UNREADABLE


def _words(text: str | None) -> list[str]:
    return text.split(",") if text else []


def _amounts(text: str | None) -> dict[str, int]:
    """`gres/gpu:a100:2(IDX:0,2),llc` as amounts by name and type; 1 where none is given."""
    found = {}
    for word in _words(_PARENTHESES.sub("", text or "")):
        name, _, amount = word.rpartition(":")
        known = name and amount.isascii() and amount.isdecimal()
        found[(name if known else word).removeprefix("gres:")] = int(amount) if known else 1
    return found


def _gres_of_tres(text: str | None) -> dict[str, int]:
    """The gres of `cpu=4,mem=8G,gres/llc=4`."""
    pairs = (word.partition("=") for word in _words(text) if word.startswith("gres/"))
    return {name.removeprefix("gres/"): scontrol_text.amount(amount or "1") for name, _, amount in pairs}


def _run_s(shown: Fields) -> int:
    """How long a job has run, suspensions not counted, as pyslurm and scontrol compute it."""
    start, end, since = (shown[name] for name in ("start_time", "end_time", "suspend_time"))
    if shown["base_state"] == _PENDING or not start:
        return 0
    before: int = shown["pre_suspension_time"]
    if shown["base_state"] == _SUSPENDED:
        return before
    end_s = int(time.time()) if shown["base_state"] == _RUNNING or not end else end
    return int(before + end_s - since if since else end_s - start)


def _gres(shown: Fields) -> dict[str, int]:
    return _gres_of_tres(shown["allocated_tres" if shown["base_state"] == _RUNNING else "requested_tres"])


def _gres_texts(shown: Fields) -> GresTexts:
    names = ("tres_per_node", "tres_per_task", "tres_per_job", "tres_per_socket", "cpus_per_tres", "mem_per_tres")
    node, task, job, socket, cpus, memory = (shown[name] or "" for name in names)
    return GresTexts(node, task, job, socket, cpus, memory, bool(shown["has_gres_flags"]))


def _waiting_tasks(shown: Fields) -> str | None:
    """The tasks `1-9` of `1-9%2`."""
    tasks = shown["array_tasks"]
    return tasks.rpartition("%")[0] or tasks if tasks else None


#: What pyslurm makes of the fields that sns_slurm.c names, by attribute.
_OF_JOB: Reads = {
    "constraints": lambda shown: _words(shown["features"]),
    "preferred_features": lambda shown: _words(shown["prefer"]),
    "gres_per_node": lambda shown: _amounts(shown["tres_per_node"]),
    "gres": _gres,
    "gres_texts": _gres_texts,
    "licenses": lambda shown: _words(shown["license_names"]),
    "dependencies": lambda shown: shown["dependency"] or None,
    "mail_user": lambda shown: _words(shown["mail_addresses"]),
    "mail_types": lambda shown: ["FAIL"] if shown["mails_failure"] else [],
    "array_tasks_waiting": _waiting_tasks,
    "run_time": _run_s,
}
_OF_NODE: Reads = {
    "partitions": lambda shown: _words(shown["partition_names"]),
    "configured_gres": lambda shown: _amounts(shown["gres"]),
    "allocated_gres": lambda shown: _gres_of_tres(shown["allocated_tres"]),
    "gres_used": lambda shown: _amounts(shown["gres_used_text"]),
    "active_features": lambda shown: _words(shown["features"]),
}


@cache
def _layout(function: str) -> _Layout:
    return _Layout(getattr(_library(), function)())


class RawRecord:
    """A record that is read when an attribute is first asked for; equal `raw` bytes are equal records.

    An attribute that cannot be read raises ValueError, which costs this attribute alone (translate._Tolerant).
    """

    def __init__(self, raw: bytes, described_by: str, reads: Reads) -> None:
        self.raw, self._described_by, self._reads = raw, described_by, reads

    def but(self, names: Collection[str]) -> Fields:
        """The fields as Slurm has them, without these."""
        return {name: value for name, value in _layout(self._described_by).read(self.raw).items() if name not in names}

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        if "_shown" not in own:
            own["_shown"] = _layout(self._described_by).read(self.raw)
            own.update(own["_shown"])
            return getattr(self, name)
        read = self._reads.get(name)
        if read is None:
            raise AttributeError(name)
        return read(own["_shown"])


def _jobs(function: str = "sns_jobs", *arguments: int) -> dict[int, RawRecord]:
    shown = _asked(function, *map(ctypes.c_uint32, arguments))
    return {_NUMBER.unpack_from(raw)[0]: RawRecord(raw, "sns_job_fields", _OF_JOB) for raw in shown}


def _job_or_array(job_id: int) -> dict[int, RawRecord]:
    """The job of this id, and all records of the array of this id; none if slurmctld has forgotten it."""
    try:
        return _jobs("sns_job", job_id)
    except RPCError as error:
        if error.errno == _NO_SUCH_JOB:
            return {}
        raise


def _jobs_of_user(user_id: int) -> dict[int, RawRecord]:
    return _jobs("sns_jobs_of_user", user_id)


def _users(jobs: Iterable[RawRecord]) -> set[int]:
    """The ids of the users of these jobs, without reading all of each record."""
    return {_ID_AND_USER.unpack_from(job.raw)[1] for job in jobs}


def _job_states() -> dict[int, tuple[int, int]]:
    """By job id what changes when a job begins, ends, or when tasks leave an array's record."""
    (shown,) = _asked("sns_job_states")
    return {job_id: (state, tasks) for job_id, state, tasks in _STATE.iter_unpack(shown)}


def _job(job_id: int) -> RawRecord:
    found = _jobs("sns_job", job_id)
    return found[job_id] if job_id in found else next(iter(found.values()))


def _nodes() -> dict[str, RawRecord]:
    name_of = _layout("sns_node_fields").first_text
    return {name_of(raw): RawRecord(raw, "sns_node_fields", _OF_NODE) for raw in _asked("sns_nodes")}


def _lines(function: str, read: Callable[[str], scontrol_text.TextAnswer]) -> dict[str, Any]:
    text = b"".join(_asked(function)).decode(errors="replace")
    return {record.name: record for record in read(text).records}


def _configuration() -> scontrol_text.ConfigText:
    return scontrol_text.configuration(b"".join(_asked("sns_configuration")).decode(errors="replace"))


def _database_queue() -> SimpleNamespace:
    length = ctypes.c_int64()
    _check(_library().sns_database_queue(ctypes.byref(length)))
    return SimpleNamespace(dbd_agent_queue_size=length.value)


def JobSubmitDescription(**fields: Any) -> _Change:  # noqa: N802  pyslurm's name
    """The changed fields of a job; what is None stays as it is. An empty text, list or mapping clears the field.

    `own_gres`, which pyslurm does not have: the text of gres that stays in front of `gres_per_node`. pyslurm does not
    have `cpus` and `min_cpus_per_node` of an update either, and it sends no empty text.
    """
    change = _Change(*(_NONE if fields.get(name) is None else int(fields[name]) for name in _NUMBERS))
    texts = {**fields}
    if (gres := fields.get("gres_per_node")) is not None:
        entries = [f"gres:{name}:{amount}" for name, amount in gres.items()]
        texts["gres_per_node"] = ",".join(filter(None, (fields.get("own_gres"), *entries)))
    for name in ("required_nodes", "partitions"):
        texts[name] = None if fields.get(name) is None else ",".join(fields[name])
    for name in _TEXTS:
        setattr(change, name, None if texts.get(name) is None else texts[name].encode())
    return change


class JobHandle:
    """A job to be changed."""

    def __init__(self, job_id: int) -> None:
        self._id = ctypes.c_uint32(job_id)

    @staticmethod
    def load(job_id: int) -> RawRecord:
        """Read this job."""
        return _job(job_id)

    def modify(self, changes: _Change) -> None:
        """Change these fields of the record with this id, also if it is that of several tasks of an array."""
        _check(_library().sns_change(self._id, ctypes.byref(changes)))

    def requeue(self) -> None:
        """Requeue it."""
        _check(_library().sns_requeue(self._id))


def modify_tasks(array_id: int, tasks: Sequence[int], changes: _Change) -> dict[int, int]:
    """Change these fields of tasks of an array by one RPC; Slurm's error number of each task that it answers for.

    pyslurm has nothing like it. Tasks of the array's record are split off it, unless they are all that it has left.

    Raises:
        RPCError: Slurm has changed none of them.
    """
    name = f"{array_id}_[{','.join(map(str, tasks))}]"
    answered: dict[int, int] = {}
    for raw in _asked("sns_change_tasks", name.encode(), ctypes.byref(changes)):
        (error,) = _NUMBER.unpack_from(raw)
        whose = raw[_NUMBER.size :].decode(errors="replace").partition("_")[2].strip("[]")
        answered |= dict.fromkeys(listed(whose), error)
    return answered


#: Whose symbols are those of libslurm, too (pyslurm: the file of its module `api`).
api = SimpleNamespace(__file__=str(PATH))
Job = JobHandle
Jobs = SimpleNamespace(load=_jobs, of=_job_or_array, of_user=_jobs_of_user, states=_job_states, users=_users)
Nodes = SimpleNamespace(load=_nodes)
Reservations = SimpleNamespace(load=lambda: _lines("sns_reservations", scontrol_text.reservations))
Partitions = SimpleNamespace(load=lambda: _lines("sns_partitions", scontrol_text.partitions))
slurmctld = SimpleNamespace(Config=SimpleNamespace(load=_configuration), diag=_database_queue)
