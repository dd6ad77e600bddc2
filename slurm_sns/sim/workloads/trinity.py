"""The parallel jobs of LANL's Trinity on nodes of 28 cores, each as one of the test programs.

Jobs of more than one and at most 4,096 nodes are kept, with their submit times. A job keeps its number of nodes and
fills the 28 cores of each. With probability `ratio` its program is drawn uniformly from the scaling programs, otherwise
uniformly from the others. Its run time in the trace is its run time under CE.

The trace is not part of the project (module sim.reproduce.shared_data). It is rebuilt from six windows of two weeks, so
its counts are not the paper's (7,044 jobs).

Source: Spread-n-Share (SC'19), section 6.4.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from slurm_sns.policies.sns.classify import ProgramClass
from slurm_sns.sim.traces.programs_csv import ProgramJob
from slurm_sns.sim.workloads.sequences import TestProgram

FILE = "trinity-2016-completed-rebuilt.swf.gz"
#: Trinity's tasks per node, and ours.
TASKS_PER_NODE, CORES = 32, 28
MOST_NODES = 4096
#: SWF's fields: job, submit, run time, requested processors (from 0).
JOB, SUBMIT_S, RUN_S, TASKS = 0, 1, 3, 7


def trinity_jobs(path: Path, members: Mapping[str, TestProgram], ratio: float, seed: int) -> tuple[ProgramJob, ...]:
    """The jobs by submit time; `members`, by program, tell which programs are scaling."""
    fields = np.loadtxt(path, comments=";", usecols=(JOB, SUBMIT_S, RUN_S, TASKS), ndmin=2)
    nodes = np.ceil(fields[:, 3] / TASKS_PER_NODE)
    kept = fields[(nodes > 1) & (nodes <= MOST_NODES) & (fields[:, 2] > 0)]
    kept = kept[np.argsort(kept[:, 1], kind="stable")]
    rng = np.random.default_rng(seed)
    scaling = sorted(name for name, member in members.items() if member.kind is ProgramClass.SCALING)
    others = sorted(name for name, member in members.items() if member.kind is not ProgramClass.SCALING)
    jobs = []
    for identity, submit_s, run_s, tasks in kept.tolist():
        group = scaling if rng.random() < ratio else others
        program = group[rng.integers(len(group))]
        processes = int(np.ceil(tasks / TASKS_PER_NODE)) * CORES
        jobs.append(ProgramJob(int(identity), submit_s, run_s, program, processes, None))
    return tuple(jobs)
