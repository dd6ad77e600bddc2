"""The parallel jobs of LANL's Trinity on nodes of 28 cores, each as one of the test programs.

Jobs of more than one and at most 4,096 nodes are kept, with their submit times. A job keeps its number of nodes and
fills the 28 cores of each. (The converter in the authors' prototype has another rule: jobs of more than one task, 28
processes for 32 tasks, and above 28 processes only whole nodes.) With probability `ratio` a job's program is drawn
uniformly from the scaling programs, otherwise uniformly from the others. Its run time in the trace is its run time
under CE.

The trace is not part of the project (`running.shared_file`). It is rebuilt from six windows of two weeks, so
its counts are not the paper's (7,044 jobs).

Source: Spread-n-Share (SC'19), section 6.4; SSjobgenerator.py of Uberun, the prototype (github.com/thu-pacman/Uberun).
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.spread_n_share.classify import ProgramClass
from slurm_sns.sim.traces.program_trace import ProgramJob
from slurm_sns.sim.workloads.sequences import TestProgram

FILE = "trinity-2016-completed-rebuilt.swf.gz"
#: Trinity's tasks per node, and ours.
TASKS_PER_NODE, CORES = 32, 28
MOST_NODES = 4096
#: SWF's fields: job, submit, run time, requested processors (from 0).
JOB, SUBMIT_S, RUN_S, TASKS = 0, 1, 3, 7


def trinity_jobs(
    path: Path, members: Mapping[str, TestProgram], ratio: float, seed: int, *, by_converter: bool = False
) -> tuple[ProgramJob, ...]:
    """The jobs by submit time; `members`, by program, tell which programs are scaling.

    `by_converter`: the jobs and their processes are those of the converter in the authors' prototype.
    """
    fields = np.loadtxt(path, comments=";", usecols=(JOB, SUBMIT_S, RUN_S, TASKS), ndmin=2)
    processes = _converted(fields[:, 3]) if by_converter else _on_whole_nodes(fields[:, 3])
    is_kept = (processes > 0) & (fields[:, 2] > 0)
    fields, processes = fields[is_kept], processes[is_kept]
    order = np.argsort(fields[:, 1], kind="stable")
    rng = np.random.default_rng(seed)
    scaling = sorted(name for name, member in members.items() if member.kind is ProgramClass.SCALING)
    others = sorted(name for name, member in members.items() if member.kind is not ProgramClass.SCALING)
    jobs = []
    for (identity, submit_s, run_s, _), wanted in zip(fields[order].tolist(), processes[order].tolist(), strict=True):
        group = scaling if rng.random() < ratio else others
        program = group[rng.integers(len(group))]
        jobs.append(ProgramJob(int(identity), submit_s, run_s, program, int(wanted), None))
    return tuple(jobs)


def _on_whole_nodes(tasks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Processes that fill as many nodes as the job had; 0 for jobs that are left out."""
    nodes = np.ceil(tasks / TASKS_PER_NODE)
    return np.where((nodes > 1) & (nodes <= MOST_NODES), nodes * CORES, 0)


def _converted(tasks: NDArray[np.float64]) -> NDArray[np.float64]:
    """28 processes for 32 tasks; 0 for jobs of one task, and for those that would not fill their last node."""
    processes = tasks * CORES // TASKS_PER_NODE
    fills = (processes <= CORES) | (processes % CORES == 0)
    return np.where((tasks > 1) & fills & (processes <= MOST_NODES * CORES), processes, 0)
