"""Run submissions on the mini cluster, with slurm_sns and with Slurm alone, and read the results from Slurm."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import floor, inf
from pathlib import Path
from typing import Any

from ClusterShell.NodeSet import NodeSet
from comparison_check import IdleWait, Job, idle_waits, mean_wait_s, violations
from comparison_profile import NodeSize, Part, Parts
from comparison_workload import LIMITED_ACCOUNT, LIMITED_CORES, USERS, Shape, Submission
from evidence import FreedNodes, Run, runs

from cluster import PYTHON, Cluster, unfold
from slurm_sns.config.configuration import load

#: containers/etc/slurm.conf.
NODES = tuple(
    [NodeSize(f"c{number}", 28, 128_000, frozenset({"main", "plain"})) for number in range(1, 5)]
    + [NodeSize(f"s{number}", 4, 32_768, frozenset({"small", "plain"})) for number in range(1, 3)]
)
SETTINGS = Path(__file__).parents[2] / "containers" / "sns.yaml"
SUBMITTER = Path(__file__).with_name("comparison_submitter.py")
#: The scheduler's settings for a comparison are those of the cluster, but capacity is withheld for a shorter time.
CONFIG, WITHHOLD_LIMIT_S = "/tmp/sns-comparison.yaml", 2
#: Accounting has whole seconds, so that a wait may look up to a second longer at either end.
WHOLE_SECONDS_S = 2
#: If jobs have not ended this long after the last submission, they are lost.
WAIT_S = 120
#: The kinds of submissions that slurm_sns never manages.
SLURMS_OWN = frozenset({"exclusive", "range", "plain", "off", "held"})


@dataclass(frozen=True)
class Pass:
    """One run of all submissions: the jobs in the order of their submission, and the end of the last one.

    `not_run_once` has a text for each job that did not run as often as it should.
    """

    jobs: tuple[Job, ...]
    ended_s: float
    not_run_once: tuple[str, ...]

    def idle_waits(self) -> list[IdleWait]:
        """The periods in which jobs could have started and did not, the longest first."""
        return idle_waits(self.jobs, NODES, self.ended_s)

    def idle_waits_as_slurm_may(self, submissions: Sequence[Submission]) -> list[IdleWait]:
        """The same periods if every job may be split over nodes as Slurm splits it.

        slurm_sns splits a job that only says its number of tasks into equal parts; Slurm need not.
        """
        jobs = [replace(job, shape=each.shape) for job, each in zip(self.jobs, submissions, strict=True)]
        return idle_waits(jobs, NODES, self.ended_s)

    def violations(self, allowed_s: float) -> list[str]:
        """The violations: jobs lost or run twice, nodes over capacity, jobs that could have started for longer."""
        return [*self.not_run_once, *violations(self.jobs, NODES, self.ended_s, allowed_s)]

    def mean_wait_s(self) -> float:
        """The mean time from submission to start."""
        return mean_wait_s(self.jobs)


def compare(cluster: Cluster, submissions: Sequence[Submission]) -> tuple[Pass, Pass]:
    """Run the submissions with slurm_sns, as it is configured, and then with Slurm alone."""
    ours = submit(cluster, submissions)
    with slurm_alone(cluster):
        return ours, submit(cluster, submissions)


def allowed_s() -> float:
    """For how long a job may wait although it could start, by the settings of the scheduler.

    The sum of: the time until the next cycle, the time after which a placement that Slurm did not start is taken back,
    and the time for which capacity is withheld, once for each user.
    """
    scheduler = load(SETTINGS).scheduler
    return scheduler.interval_s + scheduler.place_timeout_s + len(USERS) * WITHHOLD_LIMIT_S + WHOLE_SECONDS_S


@contextmanager
def prepared(cluster: Cluster) -> Iterator[None]:
    """Run the scheduler with the settings of a comparison, and have the limited account, for the time of the block."""
    setting = f"s/^matching:/&\\n  withhold_limit_s: {WITHHOLD_LIMIT_S}/"
    cluster.run(f"sed '{setting}' /etc/slurm/sns.yaml > {CONFIG}")
    with limited_account(cluster):
        cluster.daemon("restart", config=CONFIG)
        cluster.wait_for_scheduler()
        try:
            yield
        finally:
            cluster.daemon("restart")
            cluster.wait_for_scheduler()


@contextmanager
def limited_account(cluster: Cluster) -> Iterator[None]:
    """Have an account of alice's with a limit of cores, for the time of the block.

    An account that a killed run left behind is reused. The account's jobs come last in Slurm's queue: a new association
    has a fair-share factor of 0 until slurmctld recomputes the factors, every five minutes.
    """
    user = USERS[0]
    cluster.run(
        f"sacctmgr -i add account {LIMITED_ACCOUNT} cluster=mini; "
        f"sacctmgr -i add user {user} account={LIMITED_ACCOUNT} cluster=mini; "
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
    """Switch slurm_sns off for the time of the block."""
    cluster.run("sns disable", "slurm")
    try:
        yield
    finally:
        cluster.run("sns enable", "slurm")


def submit(cluster: Cluster, submissions: Sequence[Submission]) -> Pass:
    """Submit all jobs, wait until they have ended, and read from Slurm how they ran.

    It begins when all nodes are idle: one that still runs an Epilog may cost the first wide job its place.
    """
    cluster.wait_for("idle nodes", lambda: cluster.run("sinfo -hNo %T | sort -u").split() == ["idle"])
    plan = {"wait_s": WAIT_S, "jobs": [_planned(each) for each in submissions]}
    cluster.write("/tmp/comparison_submitter.py", SUBMITTER.read_text(encoding="utf-8"))
    cluster.write("/tmp/comparison.json", json.dumps(plan))
    timeout_s = submissions[-1].at_s + 2 * WAIT_S
    freed = FreedNodes(cluster)
    said = json.loads(cluster.run(f"{PYTHON} /tmp/comparison_submitter.py /tmp/comparison.json", timeout_s=timeout_s))
    cluster.wait_for("their nodes are free", lambda: not cluster.run("squeue -h -t completing").strip())
    return _evidence(cluster, submissions, said, freed.of_jobs())


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


def _evidence(
    cluster: Cluster, submissions: Sequence[Submission], said: Mapping[str, Any], freed_s: Mapping[int, float]
) -> Pass:
    numbers, released_s = said["numbers"], {int(number): at_s for number, at_s in said["released_s"].items()}
    lost = set(said["left"]) | {number for number, each in zip(numbers, submissions, strict=True) if each.never_runs}
    seen = runs(cluster, set(numbers) - lost)
    by_number = {run.job_id: run for run in seen}
    parts, submitted_s = _parts(cluster), _submitted_s(cluster, numbers)
    jobs: list[Job] = []
    for number, each in zip(numbers, submissions, strict=True):
        ready_s = max(
            submitted_s[number],
            -inf if each.after is None else jobs[each.after].free_s,
            released_s.get(number, inf) if each.is_held else -inf,
        )
        job = Job(number, _shape(each), 60 * each.limit_min, submitted_s[number], ready_s, is_limited=each.is_limited)
        if (run := by_number.get(number)) is not None:
            completing_s = max(0, floor(freed_s[number]) - run.end_s)
            job = replace(job, start_s=run.start_s, end_s=run.end_s, completing_s=completing_s, parts=parts[number])
        jobs.append(job)
    return Pass(tuple(jobs), said["ended_s"], _not_run_once(numbers, submissions, seen))


def _shape(each: Submission) -> Shape:
    """The job's shape as documented: in equal parts if slurm_sns manages it and it only says its tasks."""
    return each.shape if each.kind in SLURMS_OWN else each.shape.in_equal_parts()


def _not_run_once(numbers: Sequence[int], submissions: Sequence[Submission], seen: Sequence[Run]) -> tuple[str, ...]:
    """The jobs that did not run exactly once, and those that ran although their owner keeps them held."""
    times = Counter(run.job_id for run in seen)
    wanted = {number: int(not each.never_runs) for number, each in zip(numbers, submissions, strict=True)}
    return tuple(f"job {number} ran {times[number]} times" for number in numbers if times[number] != wanted[number])


def _submitted_s(cluster: Cluster, numbers: Sequence[int]) -> dict[int, int]:
    lines = cluster.run(f"SLURM_TIME_FORMAT=%s sacct -nPX -j {','.join(map(str, numbers))} -o JobIDRaw,Submit").split()
    return {int(number): int(at_s) for number, at_s in (line.split("|") for line in lines)}


#: Parts of a line of `scontrol show job -d -o`; slurmctld also shows jobs that have ended, for MinJobAge.
#: A record may have several lines: SubmitLine shows what `--wrap` has.
_RECORD = re.compile(r"^(?=JobId=\d+ )", re.MULTILINE)
_NUMBER = re.compile(r"^JobId=(\d+) ")
_PART = re.compile(r" Nodes=(\S+) CPU_IDs=(\S+) Mem=(\d+)")


def parts_of(line: str) -> tuple[int, Parts]:
    """A job's number and the part that it held of each of its nodes, from its line of `scontrol show job -d -o`."""
    number = _NUMBER.match(line)
    assert number, line
    return int(number[1]), {
        name: Part(len(NodeSet(f"cpu[{cpus}]")), int(memory_mb))
        for nodes, cpus, memory_mb in _PART.findall(line)
        for name in unfold(nodes)
    }


def _parts(cluster: Cluster) -> dict[int, Parts]:
    """The part that each job held of each of its nodes.

    Accounting has only the sum over the nodes, and Slurm may have split a job unevenly.
    """
    shown = cluster.run("scontrol show job -d -o")
    return dict(parts_of(each) for each in _RECORD.split(shown) if each)
