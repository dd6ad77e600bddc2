"""Job records as users can cause them, read through a stand-in for pyslurm that raises where pyslurm raises.

`RawJob` holds what slurmctld stores: texts as their owners wrote them (any bytes but NUL), and numbers of Slurm's
widths, with its values for "not given". Its attributes convert these as pyslurm 25.11.2's Job does: texts must be
UTF-8, the counts of a gres must be whole numbers in the place where pyslurm expects them.
"""

import re
from random import Random
from typing import Any

from material import _bytes, _piece, admin_comment

from slurm_sns.gpus import GresTexts

NO_VAL16, INFINITE16 = 0xFFFE, 0xFFFF
NO_VAL, INFINITE = 0xFFFFFFFE, 0xFFFFFFFF
NO_VAL64 = 0xFFFFFFFFFFFFFFFE
MEM_PER_CPU = 1 << 63
#: pyslurm's word for the largest number of a width.
UNLIMITED = "UNLIMITED"

NUMBERS = (0, 1, 2, 3, 4, 8, 28, 64, 1000, 2**15, NO_VAL16 - 1, NO_VAL16, INFINITE16)
WIDE = (*NUMBERS, 2**20, 2**31 - 1, 2**31, NO_VAL - 1, NO_VAL, INFINITE)
MEMORY = (
    0,
    1,
    1000,
    4500,
    128_000,
    2**40,
    2**62 - 1,
    2**63 - 1,
    MEM_PER_CPU,
    MEM_PER_CPU + 4500,
    MEM_PER_CPU + 2**62 - 1,
)
TIMES = (0, 1, 99_000, 100_060, 107_000, 2**31, 2**32 + 7, 2**62, NO_VAL)
GRES = (
    *("gres:llc:4", "gres/llc:4", "llc:4,membw:10", "a:b:0k", "gpu:a100:2,nvme", "gpu", "fpga:1", "fpga:20K", "llc:1G"),
    *(
        "gpu:2(IDX:0-1)",
        "gpu:a:2(IDX:N/A)",
        ":",
        "::",
        ",",
        "llc:",
        ":4",
        "llc:-1",
        "llc:9" + "9" * 30,
        "gres:",
        "a:b:c:d",
    ),
    *("gres/llc:4,gres/membw:60", "llc:\u0664", "llc:4:IDX", "x" * 300 + ":1", "gpu:tesla:1,llc:2,nvme:3(IDX:1)"),
)
GPUS = (
    *("gpu", "gres/gpu:1", "gres/gpu:a:2", "gres:gpu:b=1", "gpu:a:1,gpu:b:1", "gpu:a:1,gpu:a:1", "gpu:1g.5gb:2"),
    *(
        "gpu:0",
        "gpu:99999999999",
        "gpu:999999999",
        "cpu=2,gres/gpu=1",
        "gres/gpu:4096",
        "gpu:" + "a" * 300,
        "gpu:1," * 400,
    ),
)
TRES = ("cpu=1,mem=4500M,node=1,billing=1", "cpu=2,mem=9000M,node=1,billing=2,gres/llc=4,gres/membw=10", "gres/fpga=1")
BAD_TRES = ("gres/gpu:a100=2", "gres/x=20K", "gres/=", "mem=", "gres/gpu:a:b=1", "cpu=\u0664,mem=1X")
NODES = ("", "", "", "c1", "c[1-2]", "c2,c1", "c1,c1", "c[1", "@all", "c1!c2", "c1&c2", "c9", "é", "c[1-2][3-4]")
DEPENDENCIES = ("", "", "", "afterok:52(unfulfilled)", "afterany:41_*(failed)", "singleton(unfulfilled)", "satisfy:1")
STATES = (*("PENDING",) * 8, "RUNNING", "SUSPENDED", "COMPLETING", "COMPLETED", "REQUEUED", "CONFIGURING", "INVALID")
REASONS = ("None", "BeginTime", "JobHeldUser", "JobHeldAdmin", "BadConstraints", "Resources", "Priority", "QOSx")
SHARING = ("OK", "OK", "OK", "OK", "NO", "YES", "USER", "MCS", "TOPO")
ARRAYS = ("", "", "0-9", "0-9%2", "1-2,5,190,...", "3", "0-900:3", "%", "x", "9-1", "-", "1-", "0-4000000")


class RawJob:
    """One job record; its attributes are those that module translate reads, converted as pyslurm does."""

    def __init__(self, **fields: Any) -> None:
        self.raw = fields

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return READ[name](self.raw[RENAMED.get(name, name)])


def _text(stored: bytes) -> str | None:
    """As pyslurm's cstr.to_unicode: raises UnicodeDecodeError if the bytes are not UTF-8."""
    return stored.decode() or None


def _list(stored: bytes) -> list[str]:
    return stored.decode().split(",") if stored else []


def _number(width: int):
    unset, infinite = (NO_VAL16, INFINITE16) if width == 16 else (NO_VAL, INFINITE)
    return lambda stored: None if stored in (0, unset) else UNLIMITED if stored == infinite else stored


def _zero_too(stored: int) -> int | str | None:
    return UNLIMITED if stored == INFINITE else None if stored == NO_VAL else stored


def _user(stored: int) -> int | None:
    return None if stored in (NO_VAL, INFINITE) else stored


def _or_one(width: int):
    return lambda stored: 1 if stored in (0, 2**width - 2) else UNLIMITED if stored == 2**width - 1 else stored


def _flag(stored: int) -> bool:
    return stored not in (0, NO_VAL16)


def _time(stored: int) -> int | None:
    return None if stored in (0, NO_VAL, INFINITE) else stored


def _gres(stored: bytes) -> dict[str, Any]:
    """As pyslurm's cstr.to_gres_dict: int() of the text at the place of the count."""
    found: dict[str, Any] = {}
    for item in re.split(",(?=[^,]+?:)", stored.decode()) if stored else ():
        parts = re.split(":(?=[^:]+?)", item.replace("gres:", "").replace("(", ":", 1).replace(")", ""))
        name, kind = parts[0], parts[1] if len(parts) > 1 else "1"
        if kind.isdigit():
            found[name] = int(kind)
        elif len(parts) > 2:
            found[f"{name}:{kind}"] = int(parts[2])
        if "IDX" in parts:
            found[name] = {"count": found.get(name), "indexes": parts[3 if kind.isdigit() else 4]}
    return found


def _tres_gres(stored: bytes) -> dict[str, int]:
    """As pyslurm's TrackableResources.from_cstr: int() of every count; memory may have one of the known units."""
    found = {}
    for entry in stored.decode().split(",") if stored else ():
        name, has_count, count = entry.partition("=")
        if has_count and name == "mem":
            float(count.rstrip("KMGTPEZ"))
        elif has_count:
            number = int(count)
            if name.startswith("gres/"):
                kind = name.removeprefix("gres/")
                if kind.startswith("gpu:"):
                    _, _ = kind.split(":")
                found[kind] = number
    return found


def _gres_texts(stored: tuple[bytes, ...] | None) -> GresTexts:
    """As libslurm's record shows them; pyslurm's has no such attribute."""
    if stored is None:
        raise AttributeError("gres_texts")
    texts = [each.decode(errors="replace") for each in stored]
    return GresTexts(*texts, has_flags=texts[0] == "gpu")


def _dependencies(stored: bytes) -> dict[str, Any] | None:
    text = stored.decode()
    if not text:
        return None
    found: dict[str, Any] = {"afterok": [], "afterany": [], "singleton": False, "satisfy": "all"}
    for item in text.split(","):
        kind, has_jobs, jobs = item.partition(":")
        if has_jobs and kind in found:
            for each in jobs.split(":"):
                found[kind].append(int(each) if each.isdigit() else each)
    return found


def _per_cpu(stored: int) -> int | None:
    return stored - MEM_PER_CPU or None if stored != NO_VAL64 and stored & MEM_PER_CPU else None


def _per_node(stored: int) -> int | None:
    return stored or None if stored != NO_VAL64 and not stored & MEM_PER_CPU else None


def _array(stored: bytes) -> str | None:
    text = stored.decode()
    return (text[: text.rindex("%")] if "%" in text else text) or None


def _same(stored: Any) -> Any:
    return stored


RENAMED = {"memory_per_cpu": "memory", "memory_per_node": "memory"}

#: Attribute -> how it is converted, and the values from which the stored one is drawn.
FIELDS: dict[str, tuple[Any, Any]] = {
    **dict.fromkeys(
        ("name", "account", "qos", "comment", "reservation", "burst_buffer", "federation_origin"), (_text, "text")
    ),
    **dict.fromkeys(("admin_comment", "extra"), (_text, "note")),
    "partition": (_text, "partition"),
    **dict.fromkeys(("constraints", "preferred_features", "batch_constraints", "licenses"), (_list, "text")),
    "cluster_constraints": (_list, "text"),
    "mail_user": (_list, "text"),
    "mail_types": (_list, ("FAIL", "BEGIN,END,FAIL", "")),
    **dict.fromkeys(("required_nodes", "excluded_nodes", "allocated_nodes", "scheduled_nodes"), (_text, NODES)),
    **dict.fromkeys(("state", "state_reason", "resource_sharing"), (_same, None)),
    **dict.fromkeys(("num_nodes", "max_nodes", "temporary_disk_per_node", "min_cpus_per_node"), (_number(32), WIDE)),
    **dict.fromkeys(("array_tasks_parallel", "required_switches"), (_number(32), WIDE)),
    **dict.fromkeys(("sockets_per_node", "cores_per_socket", "threads_per_core"), (_number(16), NUMBERS)),
    **dict.fromkeys(("ntasks_per_node", "cores_reserved_for_system"), (_number(16), NUMBERS)),
    "threads_reserved_for_system": (_number(16), NUMBERS),
    "ntasks": (_or_one(32), WIDE),
    "cpus": (_or_one(32), WIDE),
    "cpus_per_task": (_or_one(16), NUMBERS),
    "user_id": (_user, WIDE),
    "priority": (_zero_too, WIDE),
    "nice": (lambda stored: None if stored == NO_VAL else stored - 2**31, (2**31, 2**31, 2**31 - 500, *WIDE)),
    "requeue_count": (lambda stored: {NO_VAL16: 0, INFINITE16: UNLIMITED}.get(stored, stored), NUMBERS),
    **dict.fromkeys(
        ("is_batch_job", "requires_contiguous_nodes", "is_cronjob", "requires_node_reboot", "is_requeueable"),
        (_flag, NUMBERS),
    ),
    **dict.fromkeys(("submit_time", "eligible_time", "start_time", "end_time", "deadline"), (_time, TIMES)),
    "suspend_time": (_time, TIMES),
    "run_time": (_number(64), TIMES),
    **dict.fromkeys(("time_limit", "time_limit_min"), (_time, WIDE)),
    "memory": (_same, MEMORY),
    "memory_per_cpu": (_per_cpu, None),
    "memory_per_node": (_per_node, None),
    "gres_per_node": (_gres, GRES),
    "gres": (_tres_gres, (*TRES, *BAD_TRES)),
    "gres_texts": (_gres_texts, "gres texts"),
    "dependencies": (_dependencies, DEPENDENCIES),
    "array_id": (_number(32), (0, 0, 0, 41)),
    "array_task_id": (_number(32), (0, 7, NO_VAL)),
    "array_tasks_waiting": (_array, ARRAYS),
    "heterogeneous_id": (lambda stored: 0 if stored == NO_VAL else stored, (0, 0, 0, 0, 7)),
    "id": (_same, None),
}
READ = {name: convert for name, (convert, _) in FIELDS.items()}

#: A gated job of ours as Slurm stores it; `job_record` changes some of its fields.
GATED: dict[str, Any] = {
    **{name: b"" for name, (convert, _) in FIELDS.items() if convert in (_text, _list, _gres, _array, _dependencies)},
    **{name: 0 for name, (convert, _) in FIELDS.items() if convert in (_flag, _time)},
    **dict.fromkeys(("temporary_disk_per_node", "array_tasks_parallel", "required_switches"), NO_VAL),
    **dict.fromkeys(("sockets_per_node", "cores_per_socket", "threads_per_core", "ntasks_per_node"), NO_VAL16),
    **dict.fromkeys(("cores_reserved_for_system", "threads_reserved_for_system"), NO_VAL16),
    "admin_comment": b"sns:2 g=107000",
    "eligible_time": 107_000,
    "partition": b"main",
    "account": b"physics",
    "state": "PENDING",
    "state_reason": "BeginTime",
    "resource_sharing": "OK",
    "num_nodes": 1,
    "max_nodes": 1,
    "ntasks": 1,
    "cpus": 1,
    "cpus_per_task": 1,
    "min_cpus_per_node": 1,
    "user_id": 2001,
    "priority": 1500,
    "nice": 2**31,
    "requeue_count": 0,
    "is_batch_job": 1,
    "submit_time": 99_000,
    "time_limit": 60,
    "memory": MEM_PER_CPU + 1000,
    "gres": TRES[0].encode(),
    "gres_texts": None,
    "array_id": 0,
    "array_task_id": NO_VAL,
    "heterogeneous_id": 0,
}


def _stored(random: Random, name: str) -> Any:
    """A value of this field that Slurm could hold."""
    choices = FIELDS[name][1]
    if name == "state":
        return random.choice(STATES)
    if name == "state_reason":
        return random.choice(REASONS)
    if name == "resource_sharing":
        return random.choice(SHARING)
    if choices == "note":
        return admin_comment(random).encode("utf-8", "surrogateescape")
    if choices == "gres texts":
        texts = (random.choice((*GPUS, *GRES)) if random.random() < 0.3 else "" for _ in range(6))
        return tuple(each.encode() for each in texts)
    if choices == "partition":
        return random.choice((b"main", b"main", b"main,small", b"small", b"plain", b"", b",", b"\xff"))
    if choices == "text" or isinstance(choices[0], str):
        known = () if choices == "text" else choices
        text = random.choice(known) if known and random.random() < 0.8 else random.choice((_bytes, _piece))(random)
        return text.encode("utf-8", "surrogateescape").replace(b"\0", b"")
    return random.choice(choices)


_WRITABLE = [name for name in FIELDS if name not in ("id", "memory_per_cpu", "memory_per_node")]


def job_record(random: Random, identity: int) -> RawJob:
    """A job of which some fields, sometimes all, have extreme, malformed or merely unusual values."""
    names = _WRITABLE if random.random() < 0.05 else random.sample(_WRITABLE, random.randint(0, 6))
    if random.random() < 0.3:
        names = [*names, "required_nodes", "nice"]
    return RawJob(**{**GATED, "id": identity, **{name: _stored(random, name) for name in names}})
