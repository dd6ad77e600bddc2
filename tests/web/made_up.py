"""A made-up cluster as the scheduler tells it to an admin, with any number of jobs and nodes."""

import random
from typing import Any

AT_S = 1_800_000_000.0
USERS = ("alice", "bob", "carol")
#: Names that somebody may give a job: markup, a change of direction, control characters, ten thousand letters.
HOSTILE = (
    "</script><img src=x onerror=alert(1)>",
    "\u202egnp.exe\u202c",
    "a\x00b\x1b[31m\r\nc\u2028d",
    "n" * 10_000,
    "{{7*7}}${7*7}",
    '"><svg onload=alert(1)>',
    "\ud800",
)


def amounts(cores: int = 0, memory_mb: int = 0, ways: int = 0, gpus: int = 0) -> dict[str, Any]:
    return {
        "cores": cores,
        "memory_mb": memory_mb,
        "ways": ways,
        "bandwidth_gbps": 0,
        "closids": 0,
        "gpus": {"a100": gpus} if gpus else {},
    }


def row(number: int, user: str, draws: random.Random, at_s: float, **more: Any) -> dict[str, Any]:
    cores = draws.choice((1, 2, 4, 8, 16))
    low_s = at_s + draws.randrange(60, 40_000)
    return {
        "job_id": number,
        "label": str(number),
        "user": user,
        "account": {"alice": "physics", "bob": "chemistry"}.get(user, "biology"),
        "name": draws.choice(("relax", "train", "md-run", "cfd", "blast", "post")) + f"-{draws.randrange(100)}",
        "partition": "main",
        "tasks": cores,
        "cpus": cores,
        "state": "waiting",
        "submit_s": at_s - draws.randrange(10, 50_000),
        "start_s": None,
        "nodes": [],
        "reason": f"fits no node now: n{draws.randrange(1, 9):03}, the nearest, lacks {draws.randrange(1, 60)} GiB",
        "waits": {"kind": "resources", "about": "memory", "features": ""},
        "position": None,
        "over_aged": False,
        "demand": {"nodes": draws.choice((1, 1, 1, 2)), **amounts(cores, cores * 4096)},
        "starts": {
            "low_s": low_s,
            "high_s": low_s + draws.randrange(300, 20_000),
            "limits_s": low_s + 30_000,
            "not_before_s": None,
            "waits_for": "nodes of others",
        },
        **more,
    }


def _node(name: str, numbers: list[int], draws: random.Random) -> tuple[dict[str, Any], list[tuple[int, str]]]:
    capacity, shares, placed = amounts(32, 192_000, 11, gpus=4 if name.endswith(("1", "6")) else 0), [], []
    left = {"cores": 32, "memory_mb": 192_000, "ways": 11, "gpus": sum(capacity["gpus"].values())}
    while numbers and left["cores"] > 6 and left["memory_mb"] > 6000 and len(shares) < 5:
        held = {
            "cores": draws.randrange(2, min(14, left["cores"])),
            "memory_mb": draws.randrange(3000, min(96_000, left["memory_mb"])),
            "ways": min(left["ways"], draws.choice((0, 2, 3))),
            "gpus": min(left["gpus"], draws.choice((0, 1, 2))),
        }
        left = {key: left[key] - held[key] for key in left}
        managed = draws.random() > 0.15
        number = numbers.pop()
        shares.append({"label": str(number) if managed else "", "managed": managed, "holds": amounts(**held)})
        if managed:
            placed.append((number, name))
    shares.sort(key=lambda each: -each["holds"]["cores"])
    is_short = left["memory_mb"] < 30_000
    return {
        "name": name,
        "partitions": ["main"],
        "capacity": capacity,
        "free": amounts(**left),
        "stranded": amounts(left["cores"] if is_short else 0),
        "unavailable": "",
        "kept_for": [],
        "jobs": shares,
    }, placed


def overview(jobs: int = 40, nodes: int = 12, at_s: float = AT_S, *, hostile: bool = False) -> dict[str, Any]:
    """An overview with so many waiting jobs and nodes."""
    draws = random.Random(7)
    made, running = [], []
    numbers = list(range(1000 + 5 * nodes, 1000, -1))
    for place in range(1, nodes + 1):
        node, placed = _node(f"n{place:03}", numbers, draws)
        made.append(node)
        running += [
            row(
                number,
                draws.choice(USERS),
                draws,
                at_s,
                state="running",
                start_s=at_s - draws.randrange(5000),
                nodes=[name],
                reason="",
                waits=None,
                starts=None,
            )
            for number, name in placed
        ]
    first = 5000
    waiting = [row(first + each, draws.choice(USERS), draws, at_s, position=each + 1) for each in range(jobs)]
    if waiting:
        waiting[0]["over_aged"] = True
        made[1]["kept_for"] = [waiting[0]["label"]]
    if len(waiting) > 5 and not hostile:
        for task, each in enumerate(waiting[2:5]):
            each |= {"label": f"4900_{task + 1}", "user": "alice", "account": "physics", "reason": waiting[2]["reason"]}
    made[-1] |= {"unavailable": "drained: fan", "jobs": [], "free": amounts(), "stranded": amounts()}
    if hostile:
        for each, name in zip(waiting, HOSTILE, strict=False):
            each |= {"name": name, "account": name[:50], "user": "alice"}
    day = [
        {
            "at_s": at_s - 300 * (288 - each),
            "waiting_cores": 300 + 4 * abs(each - 150) + draws.randrange(60),
            "stranded_cores": max(0, 90 - each // 3 + draws.randrange(25)),
            "wait_p50_s": 60.0 + draws.randrange(300) if each % 7 else None,
            "wait_p90_s": 900.0 + draws.randrange(3000) if each % 7 else None,
        }
        for each in range(288)
    ]
    return {
        "at_s": at_s,
        "next_s": at_s + 1,
        "cycle_s": 0.012,
        "mode": "enforce",
        "disabled": False,
        "trouble": "",
        "chosen": "worse-fit-memory",
        "counts": {
            "waiting": len(waiting),
            "placing": 0,
            "running": len(running),
            "completing": 0,
            "suspended": 0,
            "held": 0,
            "never": 0,
        },
        "jobs": waiting + running,
        "nodes": made,
        "day": day,
    }


def explanation(job: dict[str, Any], label: str = "") -> dict[str, Any]:
    """What the scheduler would say of this row."""
    return {
        "job_id": job["job_id"],
        "label": label or job["label"],
        "pass_through": None,
        "array": "",
        "job": job,
        "decisions": [],
        "order": "slurm",
        "considered": None,
        "cycle": {
            "summary": ["worse-fit-memory matched most jobs: 31."],
            "heading": "heuristic",
            "considered": [
                {"name": name, "outcome": "no node", "reason": job["reason"], "figures": {"matched": 31 - place}}
                for place, name in enumerate(("worse-fit-memory", "best-fit-cores", "mix-fit"))
            ],
            "details": [],
        },
        "would_start": [{"kind": "memory", "options": "--mem=12G", "nodes": ["n003"]}],
        "unavailable": {"n012": "drained: fan"},
    }
