"""The jobs of the study: a stream of the test programs in which one resource is scarce, or two are."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np

from slurm_sns.policies.base import Request
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.policies.placement.request import compact
from slurm_sns.policies.placement.use import use
from slurm_sns.policies.profile import Program
from slurm_sns.sim.traces.program_trace import ProgramJob
from slurm_sns.sim.workloads.sequences import TestProgram
from sns_reproductions import spread_n_share as sns

MIB_PER_GB = 1024
#: Jobs for each node of the cluster.
JOBS_PER_NODE = 667 / 64
#: How many times its pair's processes a job has, and with which probability.
WIDTHS: Mapping[float, float] = {0.25: 0.2, 0.5: 0.2, 1: 0.3, 2: 0.2, 4: 0.1}
WIDEST = max(WIDTHS)
#: The range of the memory of a process where memory is scarce, in GB.
LEAST_GB, MOST_GB = 4, 12


class Scarce(NamedTuple):
    """The programs of which jobs are drawn, and whether their processes have much memory."""

    programs: tuple[str, ...]
    much_memory: bool


@dataclass(frozen=True, slots=True)
class SizedJob(ProgramJob):
    """A job whose processes have so much memory each, and which has `width` times its pair's processes."""

    gb: int = 1
    width: float = 1

    @property
    def request(self) -> Request:
        """What the job asks for."""
        return Request(self.processes, memory_per_cpu_mb=self.gb * MIB_PER_GB, alpha=self.alpha)


@cache
def programs() -> Mapping[str, Program]:
    """The test programs, also with a half and a quarter of their processes: on a node as the whole at scale 2 or 4."""
    found = {}
    for name, program in sns.shipped_programs().items():
        smaller = [
            replace(run, processes=run.processes // part, scale=run.scale // part)
            for run in program.runs
            for part in (2, 4)
            if run.scale % part == 0
        ]
        runs = sorted((*program.runs, *smaller), key=lambda run: (run.processes, run.scale))
        found[name] = replace(program, runs=tuple(runs))
    return found


def drawn(
    scarce: Scarce, count: int, rng: np.random.Generator, widths: Mapping[float, float] = WIDTHS
) -> list[SizedJob]:
    """This many jobs, all submitted at 0; each pair of a program and its processes is equally likely."""
    pairs = [each for each in sns.members() if each.program in scarce.programs]
    jobs = []
    for identity in range(count):
        pair = pairs[rng.integers(len(pairs))]
        width = float(rng.choice([*widths], p=[*widths.values()]))
        gb = _gb(pair, rng) if scarce.much_memory else 1
        jobs.append(
            SizedJob(identity, 0.0, pair.run_s, pair.program, int(width * pair.processes), None, gb=gb, width=width)
        )
    return jobs


def _gb(pair: TestProgram, rng: np.random.Generator) -> int:
    """Log-uniform in whole GB, at most what lets the pair's processes onto one node."""
    drawn_gb = round(float(np.exp(rng.uniform(np.log(LEAST_GB), np.log(MOST_GB)))))
    return min(drawn_gb, sns.NODE.memory_mb // MIB_PER_GB // pair.processes)


def stream(scarce: Scarce, load: float, node_arrays: NodeArrays, seed: int) -> list[SizedJob]:
    """A Poisson stream of jobs whose run times under CE times dominant shares under CS make up this load."""
    rng = np.random.default_rng(seed)
    count = round(JOBS_PER_NODE * len(node_arrays.names))
    jobs = drawn(scarce, count, rng)
    share = cache(lambda request: use(compact(request, node_arrays.types), node_arrays))
    span_s = sum(job.run_s * share(job.request) for job in jobs) / load
    gaps = rng.exponential(size=count)
    at_s = np.rint((np.cumsum(gaps) - gaps[0]) / gaps.sum() * span_s)
    return [replace(job, submit_s=second) for job, second in zip(jobs, at_s.tolist(), strict=True)]
