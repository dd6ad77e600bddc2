"""Random sequences of the test programs, as the paper runs them on its eight nodes.

The population is every (program, processes) that the profiles hold at scale 1; of the twelve shipped programs these are
14, since only BW and HC run with 28 processes. A job's run time under CE is its profile's at scale 1. All jobs of a
sequence are submitted at once, in the order in which they are drawn, uniformly. A sequence is drawn again until its
scaling ratio (the share of the core-seconds under CE that RATIO_PROGRAMS take) lies in the range of the paper's.

Source: Spread-n-Share (SC'19), sections 6.2 and 6.3. The paper's text says "scaling jobs"; its figures come from the
result parser of the authors' prototype (SSparser.py of github.com/thu-pacman/Uberun), which also counts GAN and NW.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from slurm_sns.policies.profile import Program
from slurm_sns.policies.spread_n_share.classify import ProgramClass, classify
from slurm_sns.policies.spread_n_share.parameters import REPRODUCTION
from slurm_sns.sim.traces.program_trace import ProgramJob

#: The number of jobs in a sequence, and the range of the scaling ratios of the paper's 36 sequences.
PAPER_JOBS = 20
PAPER_RATIOS = (0.4, 0.8)
#: The programs that the scaling ratio counts: the five scaling ones and, as the prototype does, GAN and NW.
RATIO_PROGRAMS = frozenset({"bw", "cg", "gan", "lu", "mg", "nw", "ts"})
#: The sweep of the scaling ratio: 28-core jobs of one scaling and one neutral program (section 6.3).
SWEEP_JOBS, SWEEP_PROCESSES, SWEEP_SCALING, SWEEP_NEUTRAL = 30, 28, "bw", "hc"


class TestProgram(NamedTuple):
    """A (program, processes) of the population that sequences are drawn from; `run_s` is its run time under CE."""

    program: str
    processes: int
    run_s: float
    kind: ProgramClass

    @property
    def core_seconds(self) -> float:
        """The core-seconds that a job takes under CE."""
        return self.processes * self.run_s


def population(programs: Mapping[str, Program]) -> tuple[TestProgram, ...]:
    """Every (program, processes) that the profiles hold, in that order."""
    members = []
    for name, program in sorted(programs.items()):
        for processes in program.process_counts:
            runs = program.at(processes)
            kind = classify(runs, REPRODUCTION, max_scale=program.max_scale).kind
            members.append(TestProgram(name, processes, runs[1].time_s, kind))
    return tuple(members)


def scaling_ratio(members: Iterable[TestProgram]) -> float:
    """The share of the core-seconds under CE that RATIO_PROGRAMS take."""
    members = list(members)
    scaling = sum(member.core_seconds for member in members if member.program in RATIO_PROGRAMS)
    return scaling / sum(member.core_seconds for member in members)


def sequence(
    members: Sequence[TestProgram], seed: int, *, jobs: int = PAPER_JOBS, ratios: tuple[float, float] = PAPER_RATIOS
) -> tuple[TestProgram, ...]:
    """The members of one sequence in the order of their submits."""
    rng = np.random.default_rng(seed)
    while True:
        drawn = tuple(members[at] for at in rng.integers(len(members), size=jobs))
        if ratios[0] <= scaling_ratio(drawn) <= ratios[1]:
            return drawn


def sweep_sequence(members: Sequence[TestProgram], scaling_jobs: int, seed: int) -> tuple[TestProgram, ...]:
    """A shuffled sequence of 30 jobs: so many of the scaling program, the others of the neutral one."""
    by_program = {member.program: member for member in members if member.processes == SWEEP_PROCESSES}
    names = [SWEEP_SCALING] * scaling_jobs + [SWEEP_NEUTRAL] * (SWEEP_JOBS - scaling_jobs)
    return tuple(by_program[names[at]] for at in np.random.default_rng(seed).permutation(SWEEP_JOBS))


def jobs_of(drawn: Iterable[TestProgram]) -> tuple[ProgramJob, ...]:
    """The members as jobs that are all submitted at 0."""
    return tuple(
        ProgramJob(identity, 0.0, member.run_s, member.program, member.processes, None)
        for identity, member in enumerate(drawn)
    )
