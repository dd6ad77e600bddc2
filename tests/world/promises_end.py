"""Promises about the end: every job has ended or waits for a good reason, and nothing of ours is left on any."""

from collections.abc import Iterator, Mapping
from typing import Any

from slurm_sns.model import Resources
from world.promises_changes import is_nice_known
from world.promises_life import OUR_NICE, Life, without_notes
from world.promises_tale import Tale
from world.slurm import Slurm
from world.slurm_jobs import OCCUPYING, WAITING, ModelJob

#: So long must nothing have changed before a job that waits is said to wait for ever: longer than Slurm's and our own
#: pauses (sched_interval, the longest back-off, place_timeout_s and two cycles).
LONG_S = 75.0
#: A scheduler has so long to take back what it did last: place_timeout_s and two slow cycles.
SOON_S = 20.0
#: What a placement gives to a job, as `_differences` calls it, besides the nice value.
PLACEMENT = ("nodes", "gres", "memory")


def at_the_end(result: Any, tale: Tale) -> Iterator[str]:
    """What the end of a history shows."""
    yield from _lost(result, tale)
    yield from _not_restored(result, tale)
    yield from _kept(result, tale)
    yield from _waiting_for_ever(result, tale)


def _lost(result: Any, tale: Tale) -> Iterator[str]:
    for life in tale.lives.of.values():
        if life.state not in ("ended", "purged") and life.id not in result.slurm.jobs:
            yield f"job lost: job {life.id} is gone, and has not ended"


def _kept(result: Any, tale: Tale) -> Iterator[str]:
    """The store has records of jobs that slurmctld knows only, and no pause in them is longer than the longest."""
    if not result.alive or tale.had_two:  # a scheduler does not know the records that another one has made since
        return
    looked_s = tale.lives.looked_s.get("scheduler", 0.0)
    for job_id in sorted(result.store):
        life = tale.lives.of.get(job_id)
        if job_id not in result.slurm.jobs and (life is None or life.touched_s < looked_s - SOON_S):
            yield f"records kept: the store has a record of job {job_id}, which slurmctld does not know any more"
    if tale.services.stepped_s > 0:
        return
    wall_s = tale.wall_s
    for job_id, record in sorted(result.store.items()):
        pause_s = record.retry_s - wall_s
        if pause_s > result.settings.backoff_max_s:
            yield f"back-off too long: job {job_id} is tried again in {pause_s:.0f} s"


# --- what is left of ours


def _not_restored(result: Any, tale: Tale) -> Iterator[str]:
    for job in result.slurm.jobs.values():
        life = tale.lives.of[job.id]
        is_off_record = job.state == WAITING and tale.is_hold_off_record(life)
        if job.state in (WAITING, "RUNNING", "SUSPENDED") and not is_off_record and not _is_in_work(life, result):
            # Of two schedulers at once, which a lock file prevents, each takes the other's nodes for the owner's.
            unknown = PLACEMENT if tale.had_two and life.is_met_by_another else ()
            if tale.keeps_its_boost(life):
                unknown = (*unknown, "nice")
            for what, has, wants in _differences(job, life, result.alive):
                if what not in unknown:
                    yield (
                        f"not restored: job {job.id} ({job.state.lower()}) has {what} {has!r} at the end; "
                        f"its owner asked for {wants!r}"
                    )


def _is_in_work(life: Life, result: Any) -> bool:
    """Whether somebody still has to look after what was done to the job last."""
    began_s = max(life.placed_s, life.ours_s, life.touched_s)
    return result.end_s - began_s < SOON_S


def _differences(job: ModelJob, life: Life, is_alive: bool) -> Iterator[tuple[str, Any, Any]]:
    """The fields in which a job is not as people want it."""
    wishes, waits = life.wishes, job.state == WAITING
    if waits and job.hold and life.is_left:
        return  # it is Slurm's, held as it is: what is left of ours is taken back when it is released
    # As the state table says: an administrator's hold is left as it is where our nodes are gone.
    is_admins = "admin" in (job.hold, life.hold)
    is_left = waits and ((job.hold == "bad" and not job.required) or (is_admins and not life.placed))
    is_judged = (waits or is_alive) and not is_left and not job.fixed_priority and is_nice_known(life)
    if is_judged and job.nice != wishes["nice"]:
        yield "nice", job.nice, wishes["nice"]
    for name in ("name", "comment", "partition", "walltime_s", "dependency"):
        if getattr(job, name) != wishes[name]:
            yield name, getattr(job, name), wishes[name]
    if without_notes(job.extra) != without_notes(wishes["extra"]) and not life.overtaken:
        yield "Extra", job.extra, wishes["extra"]
    if not waits or (life.forgotten and not life.has_mark):
        return
    if job.required != tuple(wishes["required"]) and not life.overtaken and not life.is_unknown:
        yield "nodes", job.required, wishes["required"]
    if is_left:
        return
    # Without a record and our nodes, which people have cleared, nobody can tell our gres from its owner's.
    is_gres_known = not (life.forgotten and life.is_cleared)
    if (job.ways or job.bandwidth_gbps) and not wishes.get("tres") and not wishes["ways"] and is_gres_known:
        yield "gres", (job.ways, job.bandwidth_gbps), ""
    memory_mb = job.memory_per_cpu_mb, job.memory_per_node_mb
    wanted_mb = wishes["memory_per_cpu_mb"], wishes["memory_per_node_mb"]
    if memory_mb != wanted_mb and not life.forgotten:
        yield "memory", memory_mb, wanted_mb


# --- who waits for ever


def _waiting_for_ever(result: Any, tale: Tale) -> Iterator[str]:
    if result.end_s - result.quiet_from_s < LONG_S or tale.had_two:
        return
    slurm: Slurm = result.slurm
    free = _free(slurm)
    for job in slurm.jobs.values():
        life = tale.lives.of[job.id]
        if job.state != WAITING or result.end_s - life.touched_s < LONG_S or _may_wait(job, life, tale):
            continue
        if _fits(_asked(job, life), slurm, free):
            yield (
                f"waits for ever: job {job.id} of {job.user} has not started by {result.end_s:.0f} s, "
                f"though it fits and nothing keeps it ({_as_shown(job)})"
            )


def _asked(job: ModelJob, life: Life) -> Mapping[str, Any]:
    """What the job asks for.

    Where our placement may have replaced the number of tasks that people wrote just before, that is what Slurm shows.
    """
    if not life.overtaken:
        return life.wishes
    return {**life.wishes, "tasks": job.tasks, "tasks_per_node": job.tasks_per_node}


def _as_shown(job: ModelJob) -> str:
    held = f"held: {job.hold}, " if job.hold else ""
    return f"{held}reason {job.reason or 'none'}, node list {','.join(job.required) or 'none'}, nice {job.nice}"


def _may_wait(job: ModelJob, life: Life, tale: Tale) -> bool:
    """Whether people want it to wait, or a job that it depends on does."""
    if life.hold in ("owner", "admin") or life.unclear:
        return True
    if life.wishes["nice"] in OUR_NICE:  # it looks like a placement of ours
        return True
    if life.hold == "slurm" and not life.placed:  # impossible as its owner wants it
        return True
    if job.hold == "user" and not life.marked and (not life.known or life.forgotten):
        # Its mark was overwritten before we ever saw it, or the record was lost as well.
        return True
    if job.dependency_state == "failed":
        return True
    if max(job.begin_s, life.wishes["begin_s"]) > tale.wall_s - LONG_S:
        return True
    return any(_hinders(other, life) for other in _others(life, tale))


def _others(life: Life, tale: Tale) -> list[Life]:
    _, ids = life.wishes["dependency"] or ("", ())
    return [other for other in tale.lives.of.values() if other.id in ids or other.array in ids]


def _hinders(other: Life, life: Life) -> bool:
    kind = life.wishes["dependency"][0]
    is_fulfilled = other.has_succeeded or (other.has_ended and kind == "afterany")
    return other.state in ("waiting", "running", "suspended") or not (is_fulfilled or other.state == "purged")


def _free(slurm: Slurm) -> Mapping[str, Resources]:
    taken = slurm.taken()
    up = (name for name, node in slurm.nodes.items() if node.state == "up")
    return {name: slurm.nodes[name].capacity.minus(taken[name]) for name in up}


def _fits(wishes: Mapping[str, Any], slurm: Slurm, free: Mapping[str, Resources]) -> bool:
    """Whether the job fits on what is free, in equal parts; or anyhow, where its partition is empty."""
    partition = slurm.partitions[wishes["partition"]]
    if partition.state not in ("UP", "DRAIN") or wishes["gres"] or wishes.get("tres"):
        return False
    names = [name for name in partition.nodes if name in free and name not in wishes["excluded"]]
    if not set(wishes["required"]) <= set(names):
        return False
    is_empty = not any(set(names) & set(job.allocated) for job in slurm.jobs.values() if job.state in OCCUPYING)
    room = sorted((_most_tasks(wishes, free[name]) for name in names), reverse=True)
    tasks = wishes["tasks"]
    least = max(wishes["nodes_min"], len(wishes["required"]))
    most = min(wishes["nodes_max"] or tasks, tasks, len(names))
    if wishes["required"] or wishes["is_alone"]:
        # Which nodes such a job gets is more than is counted here: of these only those that fit on each are judged.
        return is_empty and least == 1 and not wishes["tasks_per_node"] and bool(room) and room[-1] >= tasks
    if wishes["tasks_per_node"]:
        number = max(least, -(-tasks // wishes["tasks_per_node"]))
        return number <= most and room[number - 1] >= wishes["tasks_per_node"]
    for number in range(least, most + 1):
        each = -(-tasks // number)
        if room[number - 1] >= each or (is_empty and sum(room[:number]) >= tasks and room[number - 1] > 0):
            return True
    return False


def _most_tasks(wishes: Mapping[str, Any], free: Resources) -> int:
    """How many of the job's tasks have room in this."""
    tasks = free.cores // wishes["cpus_per_task"]
    if wishes["ways"] > free.ways:
        return 0
    if wishes["memory_per_node_mb"]:
        return tasks if wishes["memory_per_node_mb"] <= free.memory_mb else 0
    if wishes["memory_per_cpu_mb"]:
        return min(tasks, free.memory_mb // (wishes["memory_per_cpu_mb"] * wishes["cpus_per_task"]))
    return tasks
