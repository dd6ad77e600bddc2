"""Jobs that urgent ones suspend: with slurm_sns, which restarts them on free nodes, and by Slurm alone.

    make cluster-up
    PYTHONPATH=containers:tests/cluster python tests/cluster/restart_comparison.py [--urgent-s 120] [--work-s 60]
        [--rounds 3] [--as-a-site]

SNS_PROJECT names the cluster, which nobody else may use meanwhile. Twelve jobs of four cores run on four nodes, four on
c1 and on c2, two on c3 and on c4. Then urgent jobs take c1 and c2 as a whole, and c3 and c4 have room for everybody.
--as-a-site: with KillWait=30 and requeue_delay=120, as many sites have them, instead of the cluster's 10 s and 5 s.
Prints JSON. For each round and side: the mean time from submission to completion of the jobs that were suspended, of
the others and of all, the work lost in restarts, and what went wrong.
"""

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any
from uuid import uuid4

from comparison_run import slurm_alone
from evidence import begin, runs, written
from slurm_conf import suspending_urgent

from cluster import Cluster

JOBS, CORES = 12, 4
#: The nodes that the urgent jobs take, and the cores that other jobs hold at first so that each node has room for the
#: right number of our jobs.
TAKEN = ("c1", "c2")
FILLED = {"c1": 28 - 4 * CORES, "c2": 28 - 4 * CORES, "c3": 28 - 2 * CORES, "c4": 28 - 2 * CORES}
#: In minutes. A job whose program is unknown is expected to run until its limit.
LIMIT_MIN, URGENT_LIMIT_MIN = 10, 5
#: The least gain of a restart.
GAIN_S = 60
#: The work of a second, or of less where a job was suspended meanwhile.
TICK = "echo tick >> work/$SLURM_JOB_ID; sleep 1"


@dataclass(frozen=True)
class Scene:
    """How much work each job has (seconds), how much of it is done when the urgent jobs come, and how long they run."""

    work_s: int
    done_s: int
    urgent_s: int


@dataclass(frozen=True)
class Outcome:
    """How the jobs of a scene ended: seconds from submission to completion and of work lost, by job."""

    completion_s: Mapping[int, float]
    suspended: frozenset[int]
    lost_s: Mapping[int, int]
    problems: tuple[str, ...]

    def mean_suspended_s(self) -> float:
        """The mean time to completion of the jobs that were suspended."""
        return self._mean_s(self.suspended)

    def figures(self) -> dict[str, Any]:
        """The reported figures."""
        return {
            "suspended_completion_s": round(self.mean_suspended_s(), 1),
            "other_completion_s": round(self._mean_s(set(self.completion_s) - self.suspended), 1),
            "all_completion_s": round(self._mean_s(self.completion_s), 1),
            "last_completion_s": round(max(self.completion_s.values()), 1),
            "restarted": sum(lost_s > 0 for lost_s in self.lost_s.values()),
            "lost_core_s": CORES * sum(self.lost_s.values()),
            "problems": self.problems,
        }

    def _mean_s(self, jobs: Iterable[int]) -> float:
        times_s = [self.completion_s[job] for job in jobs]
        return sum(times_s) / len(times_s)


def restarting(restart: str) -> str:
    """The sed command that adds these settings of restarts to the mini cluster's sns.yaml."""
    return f'$a rescheduling: {{restart: "{restart}", least_suspended_s: 2, gain_s: {GAIN_S}}}'


@contextmanager
def prepared(cluster: Cluster, *, as_a_site: bool = False) -> Iterator[None]:
    """Have the partition `urgent`, and restarts, for the time of the block."""
    lines, changes = (), ""
    if as_a_site:
        lines, changes = ("KillWait=30",), "s/requeue_delay=5/requeue_delay=120/; "
    with suspending_urgent(cluster, *lines, sns_yaml=changes + restarting("on")):
        yield


def new_name() -> str:
    """A job name of which there are no earlier runs, by which run times would be expected."""
    return f"job-{uuid4().hex[:12]}"


def urgent(cluster: Cluster, node: str, limit_min: int, run_s: int) -> int:
    """Submit a job that takes all cores of the node, and return its number."""
    options = f"-p urgent -w {node} -N1 -n28 -t{limit_min} --mem-per-cpu=1G -J {new_name()}"
    return cluster.submit(options, f"sleep {run_s}", "bob")


def are(cluster: Cluster, numbers: Iterable[int], *states: str) -> bool:
    """Whether all these jobs are in one of the states."""
    seen = cluster.jobs()
    return all(seen[number].state in states for number in numbers)


def compare(cluster: Cluster, scene: Scene) -> tuple[Outcome, Outcome]:
    """Play the scene with slurm_sns, as it is configured, and then with Slurm alone."""
    ours = play(cluster, scene)
    with slurm_alone(cluster):
        return ours, play(cluster, scene)


def play(cluster: Cluster, scene: Scene) -> Outcome:
    """Play the scene until all jobs have ended, and read from Slurm and from what they wrote how they ran."""
    begin(cluster)
    cluster.wait_for("idle nodes", lambda: cluster.run("sinfo -hNo %T | sort -u").split() == ["idle"])
    fillers = cluster.submit_all(
        [(f"-p plain -w {node} -n{cores} --mem-per-cpu=1G", "sleep 3600") for node, cores in FILLED.items()], "bob"
    )
    cluster.wait_for("the nodes are filled", lambda: are(cluster, fillers, "RUNNING"))
    submitted_s = float(cluster.run("date +%s.%N"))
    options = f"-N1 -n{CORES} -t{LIMIT_MIN} --mem-per-cpu=1G --sns-restartable --requeue -J {new_name()}"
    work = f"echo start >> work/$SLURM_JOB_ID; for tick in $(seq {scene.work_s}); do {TICK}; done"
    numbers = cluster.submit_all([(options, work)] * JOBS)
    cluster.wait_for("they run", lambda: are(cluster, numbers, "RUNNING"))
    cluster.wait_for("they work", lambda: min(_ticks(cluster, numbers).values()) >= scene.done_s)
    seen = cluster.jobs()
    suspended = frozenset(number for number in numbers if seen[number].nodes[0] in TAKEN)
    cluster.run(f"scancel {' '.join(map(str, fillers))}")
    cluster.wait_for("there is room on c3 and c4", lambda: are(cluster, fillers, "CANCELLED"))
    urgent_jobs = [urgent(cluster, node, URGENT_LIMIT_MIN, scene.urgent_s) for node in TAKEN]
    cluster.wait_for("the urgent jobs run", lambda: are(cluster, urgent_jobs, "RUNNING"))
    cluster.wait_for_end(numbers, timeout_s=scene.urgent_s + 3 * scene.work_s + 300)
    cluster.run(f"scancel {' '.join(map(str, urgent_jobs))}")
    return _outcome(cluster, scene, numbers, submitted_s, suspended)


def _outcome(
    cluster: Cluster, scene: Scene, numbers: list[int], submitted_s: float, suspended: frozenset[int]
) -> Outcome:
    wrote, completed = written(cluster), [run for run in runs(cluster, numbers) if run.state == "COMPLETED"]
    times = Counter(run.job_id for run in completed)
    last = {number: len(wrote[number]) - 1 - wrote[number][::-1].index("start") for number in numbers}
    lost_s = {number: wrote[number][: last[number]].count("tick") for number in numbers}
    problems = [f"job {number} completed {times[number]} times" for number in numbers if times[number] != 1]
    problems += [
        f"the completed run of job {number} did not do all of its work"
        for number in numbers
        if wrote[number][last[number] :].count("tick") != scene.work_s
    ]
    if len(suspended) != sum(4 for _ in TAKEN):
        problems.append(f"{len(suspended)} jobs were suspended")
    return Outcome({run.job_id: run.end_s - submitted_s for run in completed}, suspended, lost_s, tuple(problems))


def _ticks(cluster: Cluster, numbers: Iterable[int]) -> dict[int, int]:
    """The ticks of work that each job has begun."""
    wrote = written(cluster)
    return {number: wrote.get(number, []).count("tick") for number in numbers}


def main() -> None:
    """Play the scene with both sides and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--urgent-s", type=int, default=120)
    parser.add_argument("--work-s", type=int, default=60)
    parser.add_argument("--done-s", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--as-a-site", action="store_true")
    given = parser.parse_args()
    scene, rounds, cluster = Scene(given.work_s, given.done_s, given.urgent_s), [], Cluster()
    with prepared(cluster, as_a_site=given.as_a_site):
        for _ in range(given.rounds):
            ours, alone = compare(cluster, scene)
            load = round(os.getloadavg()[0], 1)
            rounds.append({"with_slurm_sns": ours.figures(), "slurm_alone": alone.figures(), "load": load})
    cluster.close()
    said = {"scene": asdict(scene), "as_a_site": given.as_a_site, "rounds": rounds}
    sys.stdout.write(json.dumps(said, indent=1) + "\n")


if __name__ == "__main__":
    main()
