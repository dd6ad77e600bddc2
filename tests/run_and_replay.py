"""Jobs that a real Slurm runs and the policy `slurm` replays: the workload, the replay, and what is compared.

All jobs become eligible in one second, and Slurm's backfill may have run at any time before. So the jobs are replayed
once for each time that is left until the next one, and the waits are means over these replays.
"""

import random
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.model import Alternative, Job, Node, Resources
from slurm_sns.policies.baselines.parameters import SlurmParameters
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.sim.replay.trace_replay import replay_as_slurm
from slurm_sns.sim.trace import Trace, TraceJob, of_values

JOBS, SEED = 300, 1
#: Of the jobs: nodes, cores and MiB on each, and how often they come. They are 80 s of work for four nodes of 28 cores.
SHAPES = (
    (1, 1, 2000, 16),
    (1, 2, 20_000, 8),
    (1, 4, 8000, 6),
    (1, 7, 60_000, 2),
    (1, 14, 30_000, 2),
    (1, 28, 100_000, 0.5),
    (2, 4, 10_000, 2),
    (2, 14, 30_000, 0.5),
    (4, 7, 20_000, 0.5),
)
#: Bookings are rounded to whole minutes of the day, so the replay begins in the same second of an hour.
HOUR_S = 3600


class Asked(NamedTuple):
    """What a job asks for, and how long it sleeps."""

    nodes: int
    cores: int
    memory_mb: int
    sleep_s: int
    limit_min: int

    def options(self) -> str:
        """The options of sbatch.

        With --ntasks-per-node Slurm sees no more idle cores on a node than these tasks need, and no tightest node.
        """
        tasks = f"-n{self.cores}" if self.nodes == 1 else f"--ntasks-per-node={self.cores}"
        return f"-N{self.nodes} {tasks} --mem={self.memory_mb} -t {self.limit_min}"


def workload() -> list[Asked]:
    """Random jobs; short ones are more frequent, and limits are minutes, as owners give them."""
    draw = random.Random(SEED)
    shapes = draw.choices([each[:3] for each in SHAPES], [each[3] for each in SHAPES], k=JOBS)
    return [Asked(*shape, min(20, 1 + int(draw.expovariate(1 / 5))), draw.choice((1, 2, 3, 5))) for shape in shapes]


def widened(asked: Sequence[Asked], most: int, seed: int = SEED) -> list[Asked]:
    """The same jobs on 1 to 19 times as many nodes, at most so many: the work of ten times as many nodes."""
    draw = random.Random(seed)
    return [each._replace(nodes=min(most, each.nodes * draw.randint(1, 19))) for each in asked]


def parameters_of(config: str, *, epilog: bool) -> SlurmParameters:
    """Those of a running Slurm, from what `scontrol show config` prints."""
    line = next(each for each in config.splitlines() if each.startswith("SchedulerParameters"))
    given = {name: int(value) for name, value in re.findall(r"\b(bf_\w+|batch_sched_delay)=(\d+)", line)}
    default = SlurmParameters()
    return SlurmParameters(
        bf_interval_s=given.get("bf_interval", default.bf_interval_s),
        bf_max_job_test=given.get("bf_max_job_test", default.bf_max_job_test),
        bf_window_s=60 * given.get("bf_window", default.bf_window_s // 60),
        bf_resolution_s=given.get("bf_resolution", default.bf_resolution_s),
        bf_window_linear_s=given.get("bf_window_linear", default.bf_window_linear_s),
        batch_sched_delay_s=given.get("batch_sched_delay", default.batch_sched_delay_s),
        epilog=epilog,
    )


class Replayed(NamedTuple):
    """How long each job waits in each of the replays, shape (replays, jobs)."""

    wait_s: NDArray[np.int64]

    def mean_wait_s(self) -> float:
        """The mean over all jobs and replays."""
        return float(self.wait_s.mean())

    def out_of_order(self, real_s: NDArray[np.int64]) -> float:
        """The share of pairs that start in another order than really, the mean over the replays."""
        return float(np.mean([out_of_order(real_s, each) for each in self.wait_s]))


def replayed(
    asked: Sequence[Asked], runs_s: Sequence[int], sizes: Sequence[Resources], begin_s: int, using: SlurmParameters
) -> Replayed:
    """The replays of jobs that run for so long and become eligible in this second, in Unix seconds."""
    nodes = NodeArrays.of([Node(f"n{at:04}", size, size) for at, size in enumerate(sizes)])
    second_s = begin_s % HOUR_S + HOUR_S
    jobs = [
        _job(at, second_s, each, max(1, run_s)) for at, (each, run_s) in enumerate(zip(asked, runs_s, strict=True), 2)
    ]
    waits = []
    for left_s in range(1, using.bf_interval_s):
        # A job fills all nodes until then, another waits: so the backfill runs that long before its next time.
        before_s = second_s - (using.bf_interval_s - left_s)
        fill_s = second_s - before_s - (0 if using.epilog else 1)
        filler = Asked(len(sizes), min(each.cores for each in sizes), min(each.memory_mb for each in sizes), 0, 1)
        first = [_job(0, before_s, filler, fill_s), _job(1, before_s, Asked(1, 1, 1, 0, 1), 1)]
        run = replay_as_slurm(nodes, of_values(Trace((*first, *jobs), {})), using)
        waits.append(np.asarray(run.start_s)[2:] - second_s)
    return Replayed(np.array(waits))


def _job(at: int, submit_s: int, asked: Asked, run_s: int) -> TraceJob:
    alternatives = (Alternative(asked.nodes, Resources(asked.cores, asked.memory_mb)),)
    return TraceJob(Job(at, submit_s, alternatives, (submit_s,), expected_run_s=60 * asked.limit_min), run_s)


def out_of_order(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    """The share of the pairs of jobs that start in different seconds in both, and in another order."""
    first, second = np.sign(one[:, None] - one), np.sign(other[:, None] - other)
    ordered = (first != 0) & (second != 0)
    return float((first != second)[ordered].mean()) if ordered.any() else 0.0
