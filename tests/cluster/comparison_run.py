"""One pass of submissions on the mini cluster, with slurm_sns or by Slurm alone, and what Slurm says of it afterwards."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from comparison_check import Job
from comparison_profile import NodeSize, Part, Parts
from comparison_workload import LIMITED_ACCOUNT, LIMITED_CORES, USERS, Submission
from ClusterShell.NodeSet import NodeSet
from evidence import runs

from cluster import PYTHON, Cluster, unfold

#: containers/etc/slurm.conf.
NODES = tuple(
    [NodeSize(f"c{number}", 28, 128_000, frozenset({"main", "plain"})) for number in range(1, 5)]
    + [NodeSize(f"s{number}", 4, 32_768, frozenset({"small", "plain"})) for number in range(1, 3)]
)
SUBMITTER = Path(__file__).with_name("comparison_submitter.py")
#: A pass that takes so much longer than its submissions has lost jobs.
WAIT_S = 120
#: The kinds that slurm_sns never manages.
SLURMS_OWN = frozenset({"exclusive", "range", "plain", "off", "held"})


@dataclass(frozen=True)
class Pass:
    """The jobs of one pass in the order of their submission, when the last had ended, and what went wrong."""

    jobs: tuple[Job, ...]
    ended_s: float
    not_run_once: tuple[str, ...]


@contextmanager
def limited_account(cluster: Cluster) -> Iterator[None]:
    """An account of alice's with a limit of cores, for as long as the block takes."""
    user = USERS[0]
    cluster.run(
        f"sacctmgr -i add account {LIMITED_ACCOUNT} cluster=mini && "
        f"sacctmgr -i add user {user} account={LIMITED_ACCOUNT} cluster=mini && "
        f"sacctmgr -i modify account {LIMITED_ACCOUNT} set GrpTRES=cpu={LIMITED_CORES}"
    )
    try:
        yield
    finally:
        cluster.run(
            f"scancel -A {LIMITED_ACCOUNT}; sacctmgr -i delete user {user} account={LIMITED_ACCOUNT} && "
            f"sacctmgr -i delete account {LIMITED_ACCOUNT}"
        )


@contextmanager
def slurm_alone(cluster: Cluster) -> Iterator[None]:
    """slurm_sns is switched off for as long as the block takes."""
    cluster.run("sns disable", "slurm")
    try:
        yield
    finally:
        cluster.run("sns enable", "slurm")


def submit(cluster: Cluster, submissions: Sequence[Submission]) -> Pass:
    """Submit all, wait for their ends, and read what became of them."""
    plan = {"wait_s": WAIT_S, "jobs": [_planned(each) for each in submissions]}
    cluster.write("/tmp/comparison_submitter.py", SUBMITTER.read_text(encoding="utf-8"))
    cluster.write("/tmp/comparison.json", json.dumps(plan))
    timeout_s = submissions[-1].at_s + 2 * WAIT_S
    said = json.loads(cluster.run(f"{PYTHON} /tmp/comparison_submitter.py /tmp/comparison.json", timeout_s=timeout_s))
    return _evidence(cluster, submissions, said)


def as_slurm_may(jobs: Sequence[Job], submissions: Sequence[Submission]) -> list[Job]:
    """The same jobs with every split of tasks over nodes that Slurm may make, also of those that only say their tasks."""
    return [replace(job, shape=each.shape) for job, each in zip(jobs, submissions, strict=True)]


def _planned(each: Submission) -> dict[str, Any]:
    return {
        "at_s": each.at_s,
        "user": each.user,
        "options": each.options(),
        "sleep_s": each.sleep_s,
        "dependency": each.dependency,
        "after": each.after,
        "release_s": each.release_s,
        "never_runs": each.never_runs,
    }


def _evidence(cluster: Cluster, submissions: Sequence[Submission], said: Mapping[str, Any]) -> Pass:
    numbers, released_s = said["numbers"], {int(number): at_s for number, at_s in said["released_s"].items()}
    ran = {number for number, each in zip(numbers, submissions, strict=True) if not each.never_runs} - set(said["left"])
    seen = runs(cluster, ran)
    by_number = {run.job_id: run for run in seen}
    parts, submitted_s = _parts(cluster), _submitted_s(cluster, numbers)
    jobs: list[Job] = []
    for number, each in zip(numbers, submissions, strict=True):
        waits_for_s = [submitted_s[number]]
        if each.after is not None:
            waits_for_s.append(jobs[each.after].end_s)
        if each.is_held:
            waits_for_s.append(released_s.get(number, float("inf")))
        shape = each.shape if each.kind in SLURMS_OWN else each.shape.in_equal_parts()
        job = Job(number, shape, 60 * each.limit_min, submitted_s[number], max(waits_for_s), is_limited=each.is_limited)
        if (run := by_number.get(number)) is not None:
            job = replace(job, start_s=run.start_s, end_s=run.end_s, parts=parts[number])
        jobs.append(job)
    times = Counter(run.job_id for run in seen)
    wanted = {number: 0 if each.never_runs else 1 for number, each in zip(numbers, submissions, strict=True)}
    return Pass(tuple(jobs), said["ended_s"], tuple(
        f"job {number} ran {times[number]} times" for number in numbers if times[number] != wanted[number]
    ))


def _submitted_s(cluster: Cluster, numbers: Sequence[int]) -> dict[int, int]:
    lines = cluster.run(f"SLURM_TIME_FORMAT=%s sacct -nPX -j {','.join(map(str, numbers))} -o JobIDRaw,Submit").split()
    return {int(number): int(at_s) for number, at_s in (line.split("|") for line in lines)}


#: Of a line of `scontrol show job -d -o`, also of a job that has ended, for as long as slurmctld knows it.
_NUMBER = re.compile(r"^JobId=(\d+) ")
_PART = re.compile(r" Nodes=(\S+) CPU_IDs=(\S+) Mem=(\d+)")


def parts_of(line: str) -> tuple[int, Parts]:
    """A job's number, and what it held of each of its nodes, from its line of `scontrol show job -d -o`."""
    number = _NUMBER.match(line)
    assert number, line
    return int(number[1]), {
        name: Part(len(NodeSet(f"cpu[{cpus}]")), int(memory_mb))
        for nodes, cpus, memory_mb in _PART.findall(line)
        for name in unfold(nodes)
    }


def _parts(cluster: Cluster) -> dict[int, Parts]:
    """What each job held of each of its nodes: accounting has the sum alone, and Slurm may have split it unevenly."""
    return dict(parts_of(line) for line in cluster.run("scontrol show job -d -o").splitlines() if line)
