"""Made-up overviews, of the type that the scheduler answers with: a small cluster of all kinds, and large ones."""

import random
from typing import Any

from shown import NOW, amounts, row

from slurm_sns.scheduler.answers.overview_types import OverviewAnswer

COUNTS = {"waiting": 0, "placing": 0, "running": 0, "completing": 0, "suspended": 0, "held": 0, "never": 0}


def overview(jobs: list[dict], nodes: list[dict], **fields: Any) -> OverviewAnswer:
    """An overview with the counts of these jobs."""
    counts = dict(COUNTS)
    for each in jobs:
        state = each["state"] if each["state"] in counts else "waiting"
        counts[state] += 1
        counts["never"] += bool(each["waits"]) and each["waits"]["kind"] == "never"
    shown = {
        "at_s": NOW - 1,
        "next_s": NOW,
        "cycle_s": 0.0123,
        "mode": "enforce",
        "disabled": False,
        "trouble": "",
        "chosen": "max-jobs",
        "counts": counts,
        "jobs": jobs,
        "nodes": nodes,
        "day": [],
    }
    return {**shown, **fields}


def waiting(job_id: int, kind: str = "resources", about: str = "memory", **fields: Any) -> dict:
    reason = "no allowed node has 4 cores and 92160 MiB free; nearest: c2 lacks 24160 MiB"
    waits = {"kind": kind, "about": about, "features": ""}
    starts = {
        "low_s": NOW + 600,
        "high_s": NOW + 3000,
        "limits_s": NOW + 9000,
        "not_before_s": None,
        "waits_for": "node c2",
    }
    return {**row(job_id=job_id, state="waiting", reason=reason, starts=starts, start_s=None), "waits": waits, **fields}


def running(job_id: int, nodes: list[str], **fields: Any) -> dict:
    told = {"state": "running", "start_s": NOW - 600, "position": None, "reason": "fits best on c1", "starts": None}
    return row(job_id=job_id, nodes=nodes, **{**told, **fields})


def with_gpus(of: dict, **gpus: int) -> dict:
    return {**of, "gpus": gpus}


def share(label: str, cores: int, memory_mb: int, *, managed: bool = True, ways: int = 0, **gpus: int) -> dict:
    return {"label": label, "managed": managed, "holds": with_gpus(amounts(cores, memory_mb, ways), **gpus)}


def node(name: str, capacity: dict, jobs: list[dict] = (), **fields: Any) -> dict:
    """A node on which these jobs are."""
    held = [job["holds"] for job in jobs]
    free = {key: capacity[key] - sum(each[key] for each in held) for key in capacity if key != "gpus"}
    free["gpus"] = {
        kind: count - sum(each["gpus"].get(kind, 0) for each in held) for kind, count in capacity["gpus"].items()
    }
    shown = {
        "name": name,
        "partitions": ["main"],
        "capacity": capacity,
        "free": free,
        "stranded": amounts(0, 0),
        "unavailable": "",
        "kept_for": [],
        "jobs": list(jobs),
    }
    return {**shown, **fields}


LARGE = amounts(28, 131_072, 20)


def small() -> OverviewAnswer:
    """Six nodes and nine jobs: one of each kind that the view tells apart."""
    full = [share("4711", 20, 98_304, ways=12), share("4712_3", 4, 16_384, ways=4), share("", 2, 16_384)]
    nodes = [
        node("c1", LARGE, full, stranded=amounts(2, 0)),
        node("c2", LARGE, [share("4715", 8, 65_536, ways=8), share("88", 8, 16_384, managed=False)]),
        node("c3", LARGE, kept_for=["4720", ""]),
        node("c4", LARGE, unavailable="drained: bad disk"),
        node("s1", amounts(4, 32_768), [share("4716", 1, 24_576)]),
        node("g1", with_gpus(amounts(16, 65_536), a100=4), [share("4717", 4, 16_384, a100=3)], partitions=["gpu"]),
    ]
    jobs = [
        waiting(4720, over_aged=True, position=1, name="wide", demand={"nodes": 2, **amounts(28, 65_536)}),
        waiting(4721, position=2, name="mg.D"),
        *(
            waiting(
                2**40 + task,
                "array limit",
                "",
                label=f"4722_{task}",
                position=task,
                name="sweep",
                reason="at most 2 tasks of its array run at a time",
            )
            for task in (3, 4, 5)
        ),
        waiting(4730, "never", "dependency", position=6, user="bob", account="chemistry", name="post"),
        running(4711, ["c1"], name="cg.C"),
        running(4715, ["c2"], user="bob", name="lammps"),
        running(4717, ["g1"], partition="gpu", name="train"),
    ]
    return overview(jobs, nodes)


def large(jobs: int, nodes: int, seed: int = 1) -> OverviewAnswer:
    """So many jobs, a fifth of them running, a third of the waiting ones tasks of arrays; and so many nodes."""
    draw = random.Random(seed)
    names = [f"n{at:05}" for at in range(nodes)]
    on: dict[str, list[dict]] = {name: [] for name in names}
    rows, users = [], [f"user{at}" for at in range(200)]
    for at in range(jobs):
        job_id = 100_000 + at
        who = {"user": draw.choice(users), "account": f"acct{at % 37}", "name": f"run-{at % 997}"}
        if at % 5 == 0:
            name = draw.choice(names)
            if len(on[name]) < 14:
                on[name].append(share(str(job_id), 2, draw.randrange(1, 9) * 1024, ways=1))
            rows.append(running(job_id, [name], **who))
        else:
            label = f"{job_id // 50 * 50}_{job_id % 50}" if at % 3 == 0 else str(job_id)
            kind = draw.choice([("resources", "memory"), ("resources", "cores"), ("queue depth", "")])
            rows.append(waiting(job_id, *kind, label=label, position=at + 1, **who))
    rows.sort(key=lambda each: each["state"] != "waiting")
    return overview(rows, [node(name, LARGE, on[name], stranded=amounts(at % 3, 0)) for at, name in enumerate(names)])
