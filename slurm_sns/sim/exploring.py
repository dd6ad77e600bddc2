"""A simulated cluster that learns its programs' profiles from the jobs it runs, with errors of measurement.

Nobody knows a profile at the start. The first waiting job of a (program, processes) explores, on empty nodes (module
policies.sns.exploration); the others run as the profile so far says, or wait while there is none. A run with changing
ways takes longer, and what it gives is off by a factor drawn log-normally, point by point; so is every run time.

Source: Spread-n-Share (SC'19), sections 4.2 and 5.1.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from slurm_sns.model import Alternative, Job, Seconds
from slurm_sns.policies.placement.pool import Amounts, Pool
from slurm_sns.policies.placement.portfolio import Portfolio, Schedule
from slurm_sns.policies.placement.queue import WaitingQueue
from slurm_sns.policies.placement.request import NodeType, Request
from slurm_sns.policies.profile import Program, Run
from slurm_sns.policies.sns.alternatives import alternatives
from slurm_sns.policies.sns.drift import DriftParameters, Monitored, watched
from slurm_sns.policies.sns.evidence import Known, Measurement
from slurm_sns.policies.sns.exploration import Exploration, Step, exploring
from slurm_sns.sim.profiling import SAMPLED_WAYS, sampled
from slurm_sns.sim.progress import Placement, Progress
from slurm_sns.sim.sns_jobs import ProgramJob
from slurm_sns.sim.trace import half_up

#: Changing ways while a program runs costs it so much (section 5.1).
SAMPLING_COSTS = 0.19

Key = tuple[str, int]


@dataclass
class Laboratory:
    """What has been learnt of each (program, processes), and which steps of exploration run.

    `spread` is the standard deviation of the logarithm of every measurement's error.
    """

    true: Mapping[str, Program]
    exploration: Exploration
    types: tuple[NodeType, ...]
    spread: float
    seed: int = 0
    drift: DriftParameters = field(default_factory=DriftParameters)
    known: dict[Key, Known] = field(default_factory=dict)
    steps: dict[int, tuple[Key, Step]] = field(default_factory=dict)  #: of the jobs that explore now
    explored: list[tuple[Key, Step]] = field(default_factory=list)  #: all exploring runs that have ended

    def __post_init__(self) -> None:
        self._lots = np.random.default_rng(self.seed)

    def of(self, key: Key) -> Known:
        """What is known of it."""
        return self.known.setdefault(key, Known(*key))

    def next_step(self, key: Key, request: Request) -> Step | None:
        """The step that a job of this program may take now; None when there is none, or one runs already."""
        if any(running == key for running, _ in self.steps.values()):
            return None
        return self._missing(key, self.of(key), request)

    def _missing(self, key: Key, known: Known, request: Request) -> Step | None:
        """What is still to be run; nothing at a scale at which nobody knows how the program would truly run."""
        step = self.exploration.next_step(known, request, self.types)
        return step if step is not None and step.scale in self._runs(key) else None

    def _runs(self, key: Key) -> Mapping[int, Run]:
        """How the program truly runs, by scale."""
        program, processes = key
        return self.true[program].at(processes, nearest=self.exploration.sns.one_profile_for_all_sizes)

    def counts(self) -> dict[str, int]:
        """How many (program, processes) were seen, how many of them have a profile, and what that took."""
        profiles = sum(known.profile() is not None for known in self.known.values())
        return {"programs": len(self.known), "programs_learnt": profiles, "exploring_runs": len(self.explored)}

    def learn(self, job_id: int, key: Key, way: Alternative, request: Request) -> None:
        """Take in what a run that has ended gave."""
        run = self._runs(key)[way.scale]
        _, step = self.steps.pop(job_id, (key, None))
        known = self.of(key)
        if step is not None:
            self.explored.append((key, step))
            known = known.with_measurement(self._measured(run, step))
        elif known.profile() is not None:
            ways = way.demand.ways or run.ways[-1]
            seen = Monitored(way.scale, ways, self._off(run.ipc_at(ways)), self._off(run.bandwidth_at(ways)))
            known = watched(known, seen, self.drift)
        if known.renewal and self._missing(key, known, request) is None:
            known = known.settled()
        self.known[key] = known

    def _measured(self, run: Run, step: Step) -> Measurement:
        if not step.samples:
            return Measurement(step.scale, self._off(run.time_s))
        points = sampled(run, SAMPLED_WAYS)
        return Measurement(
            step.scale,
            None,
            {ways: self._off(ipc) for ways, ipc in zip(points.ways, points.ipc, strict=True)},
            {ways: self._off(gbps) for ways, gbps in zip(points.ways, points.bandwidth_gbps, strict=True)},
        )

    def _off(self, value: float) -> float:
        return float(value * np.exp(self._lots.normal(0.0, self.spread)))


class Exploring:
    """A policy and a model of progress that learn: both roles of one simulation."""

    def __init__(
        self, laboratory: Laboratory, policy: Portfolio, progress: Progress, jobs: Iterable[ProgramJob]
    ) -> None:
        """`jobs` are those of the trace that can be learnt from; the others keep their alternatives."""
        jobs = tuple(jobs)
        self._laboratory, self._policy, self._progress = laboratory, policy, progress
        self._keys = {each.identity: (each.program, each.processes) for each in jobs}
        self._requests = {each.identity: each.request for each in jobs}
        self._ways_by: dict[tuple[Key, Request], tuple[Known, tuple[Alternative, ...]]] = {}

    def schedule(self, pool: Pool, free: Amounts, queue: WaitingQueue) -> Schedule:
        """The matches of one cycle, with alternatives as what is known now gives them."""
        steps: dict[int, tuple[Key, Step]] = {}
        learnt = WaitingQueue(queue.projects)
        for job in (*queue.over_aged, *(job for jobs in queue.by_project.values() for job in jobs)):
            ways = self._ways(job, steps)
            if ways:
                learnt.add(replace(job, alternatives=ways))
        schedule = self._policy.schedule(pool, free, learnt)
        for match in schedule.matches:
            if match.job.id in steps and match.alternative == match.job.alternatives[0]:
                self._laboratory.steps[match.job.id] = steps[match.job.id]
        return schedule

    def _ways(self, job: Job, steps: dict[int, tuple[Key, Step]]) -> tuple[Alternative, ...]:
        """The job's alternatives; none while its program is unknown and another job explores it."""
        if job.id not in self._keys:
            return job.alternatives
        laboratory, key, request = self._laboratory, self._keys[job.id], self._requests[job.id]
        others = self._by_profile(key, request)
        step = None if key in (taken for taken, _ in steps.values()) else laboratory.next_step(key, request)
        if step is None:
            return others
        steps[job.id] = (key, step)
        return exploring(step, others, request, laboratory.types)

    def _by_profile(self, key: Key, request: Request) -> tuple[Alternative, ...]:
        """The alternatives by what is known, none while that is too little; made anew when something was learnt."""
        known = self._laboratory.of(key)
        remembered = self._ways_by.get((key, request))
        if remembered is not None and remembered[0] is known:
            return remembered[1]
        profile, exploration = known.profile(), self._laboratory.exploration
        ways = alternatives(request, profile, self._laboratory.types, exploration.sns) if profile else ()
        self._ways_by[key, request] = (known, ways)
        return ways

    def start(self, placed: Placement) -> Iterable[Placement]:
        """The job with its end; changing ways make it later."""
        _, step = self._laboratory.steps.get(placed.job.id, (None, None))
        timed = self._progress.start(placed)
        if step is None or not step.samples:
            return timed
        # It is alone on its nodes: nobody else's end changes, and nobody will change its own.
        return [replace(each, end_s=_longer(each)) for each in timed]

    def finish(self, placed: Placement) -> Iterable[Placement]:
        """Those that it disturbed; what its run gave is learnt."""
        job_id = placed.job.id
        if job_id in self._keys:
            self._laboratory.learn(job_id, self._keys[job_id], placed.alternative, self._requests[job_id])
        return self._progress.finish(placed)


def laboratory_of(
    pool: Pool, true: Mapping[str, Program], exploration: Exploration, *, spread: float, seed: int = 0
) -> Laboratory:
    """A laboratory on these nodes."""
    return Laboratory(true, exploration, pool.types, spread, seed)


def _longer(placed: Placement) -> Seconds:
    return placed.start_s + half_up(float(placed.end_s - placed.start_s) * (1 + SAMPLING_COSTS))
