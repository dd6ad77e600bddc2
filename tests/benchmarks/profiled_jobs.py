"""An observation of a cluster whose queue is full of profiled jobs.

Assumptions: the nodes are Spread-n-Share's (28 cores, 128 GB, 20 ways, 118 GB/s); other jobs take a part of each. Four
jobs of five run one of the twelve programs of the shipped profiles, all equally often, with 16 processes, for which
every program has a profile. Their owners ask for one of a few alphas and one of a few amounts of memory. The other jobs
have no profile, and their sizes have the frequencies of pool-a.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from pool_a import SIZES

sys.path.append(str(Path(__file__).parents[1]))

import default_settings

from slurm_sns.config.profiles_yaml import read_profiles
from slurm_sns.model import Resources
from slurm_sns.policies.profile import Program
from slurm_sns.scheduler.observation import JobState, Observation, ObservedJob, ObservedNode
from slurm_sns.submit.hints import NO_HINTS, Hints
from slurm_sns.submit.record import Record, segment

PROFILES = Path(__file__).parents[2] / "conf" / "profiles" / "spread-n-share.yaml"
PAPER_NODE = Resources(28, 128 * 1024, 20, 118)
PARTITION = "all"
SETTINGS = replace(default_settings.SETTINGS, partitions=frozenset({PARTITION}), age_limit_s=None)
#: Every waiting job is gated for so long.
GATE = 2_000_000
PROCESSES = 16
PROFILED = 0.8
ALPHAS = (None, 0.8, 0.85, 0.95)
MEMORY_GB = (1, 2, 4, 8)


def programs() -> dict[str, Program]:
    """The shipped profiles."""
    return {program.name: program for program in read_profiles(PROFILES)}


def observation_of(jobs: int, nodes: int, busy: float, seed: int) -> Observation:
    """This many waiting managed jobs, and nodes of whose capacity the fraction `busy` is taken on average."""
    rng = np.random.default_rng(seed)
    return Observation(
        jobs=tuple(_job(number, rng) for number in range(1, jobs + 1)),
        nodes=tuple(_node(number, busy, rng) for number in range(nodes)),
    )


def running_jobs(nodes: int, first: int) -> list[ObservedJob]:
    """A job on each node that takes 24 of its cores."""
    return [
        ObservedJob(
            id=first + at,
            user_id=1000 + at % 50,
            user=f"user{at % 50}",
            submit_s=0,
            state=JobState.RUNNING,
            partitions=(PARTITION,),
            allocated=(f"n{at:05}",),
            cpus=24,
            occupies=Resources(24, 96 * 1024),
            start_s=1,
        )
        for at in range(nodes)
    ]


def _node(number: int, busy: float, rng: np.random.Generator) -> ObservedNode:
    taken = Resources(*(int(rng.binomial(amount, busy)) for amount in PAPER_NODE.all_but_gpus))
    return ObservedNode(f"n{number:05}", frozenset({PARTITION}), PAPER_NODE, taken)


def _job(number: int, rng: np.random.Generator) -> ObservedJob:
    hints, tasks, memory_gb = NO_HINTS, PROCESSES, int(rng.choice(MEMORY_GB))
    if rng.random() < PROFILED:
        hints = Hints(alpha=ALPHAS[rng.integers(len(ALPHAS))], program=NAMES[rng.integers(len(NAMES))])
    else:
        share = np.array(list(SIZES.values())) / sum(SIZES.values())
        tasks, memory_gb = list(SIZES)[rng.choice(len(SIZES), p=share)]
    return ObservedJob(
        id=number,
        user_id=1000 + number % 50,
        user=f"user{number % 50}",
        submit_s=number,
        state=JobState.PENDING,
        account=f"account-{number % 20}",
        partitions=(PARTITION,),
        admin_comment=segment(Record(hints, gate_s=GATE)),
        begin_s=GATE,
        priority=1000,
        tasks=tasks,
        memory_per_node_mb=memory_gb * 1024,
        walltime_s=3600,
    )


NAMES = sorted(programs())
