"""A simulated cluster that learns its programs' profiles from the jobs it runs, with errors of measurement.

Module policies.spread_n_share.learning decides, as on a live cluster, what is explored and what follows from a
measurement. This module adds what only a simulation needs. The given profiles are how the programs truly run. A run
with changing ways takes longer. Each point that it measures has an error: a factor that is drawn log-normally. So
has every run time.

A profile is sampled at a few numbers of ways and linear between them. The paper's prototype samples 2, 4, 8 and all
ways, 5 s each in turn. What that misses (phases, the curve between the points) is the paper's explanation for most of
the jobs that break their alpha. Errors are drawn once for each point: a run is long enough for its noise to average
out, not for its phases.

Source: Spread-n-Share (SC'19), sections 4.2, 5.1 and 6.2; the size of the errors is our parameter.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from slurm_sns.model import Alternative, Seconds
from slurm_sns.policies.placement.kernel_arrays import Releases
from slurm_sns.policies.placement.node_arrays import Amounts, NodeArrays
from slurm_sns.policies.placement.pass_record import Schedule
from slurm_sns.policies.placement.ready_time_kernel import NOTHING_COMES_FREE
from slurm_sns.policies.placement.waiting_queue import WaitingQueue
from slurm_sns.policies.profile import Program, Run
from slurm_sns.policies.spread_n_share.drift import Monitored
from slurm_sns.policies.spread_n_share.evidence import KnownEvidence, Measurement
from slurm_sns.policies.spread_n_share.exploration import Exploration, ExplorationStep
from slurm_sns.policies.spread_n_share.learning import Key, LearnableJob, Learning
from slurm_sns.sim.engine.matching import Matcher
from slurm_sns.sim.progress.progress import PlacedRun, Progress
from slurm_sns.sim.trace import half_up
from slurm_sns.sim.traces.program_trace import ProgramJob

#: The share by which changing ways makes a run longer (section 5.1).
SAMPLING_COSTS = 0.19
#: The numbers of ways at which the prototype samples (section 5.1).
SAMPLED_WAYS = (2, 4, 8, 20)


def sampled(run: Run, points: tuple[int, ...] = SAMPLED_WAYS) -> Run:
    """The run as the profiler sees it: sampled at these numbers of cache ways and at all of them."""
    known = (*points[: bisect_left(points, run.ways[-1])], run.ways[-1])
    return replace(
        run,
        ways=known,
        ipc=tuple(run.ipc_at(each) for each in known),
        bandwidth_gbps=tuple(run.bandwidth_at(each) for each in known),
    )


def as_profiled(
    programs: Mapping[str, Program], seed: int, spread: float, points: tuple[int, ...] = SAMPLED_WAYS
) -> dict[str, Program]:
    """The programs as profiled once; `spread` is the standard deviation of the logarithm of each point's error."""
    rng = np.random.default_rng(seed)

    def measured(values: tuple[float, ...]) -> tuple[float, ...]:
        return tuple((np.array(values) * np.exp(rng.normal(0.0, spread, len(values)))).tolist())

    profiled = {}
    for name, program in sorted(programs.items()):
        runs = [sampled(run, points) for run in program.runs]
        noisy = [replace(run, ipc=measured(run.ipc), bandwidth_gbps=measured(run.bandwidth_gbps)) for run in runs]
        profiled[name] = replace(program, runs=tuple(noisy))
    return profiled


class Truth:
    """How the programs truly run, and what measurements with errors show of that."""

    def __init__(self, programs: Mapping[str, Program], *, nearest: bool, spread: float, seed: int) -> None:
        """`nearest`: for a number of processes without runs, a program's runs at the nearest number are used.

        `spread` is the standard deviation of the logarithm of every error, `seed` the seed of the errors.
        """
        self._programs, self._nearest, self._spread = programs, nearest, spread
        self._rng = np.random.default_rng(seed)

    def has(self, key: Key, scale: int) -> bool:
        """Whether it is known how the program truly runs at this scale."""
        return scale in self._runs(key)

    def measured(self, key: Key, step: ExplorationStep) -> Measurement:
        """The measurement of this exploring run: its time, or points of its curves."""
        run = self._runs(key)[step.scale]
        if not step.samples:
            return Measurement(step.scale, self._off(run.time_s))
        points = sampled(run, SAMPLED_WAYS)
        return Measurement(
            step.scale,
            None,
            {ways: self._off(ipc) for ways, ipc in zip(points.ways, points.ipc, strict=True)},
            {ways: self._off(gbps) for ways, gbps in zip(points.ways, points.bandwidth_gbps, strict=True)},
        )

    def monitored(self, key: Key, alternative: Alternative) -> Monitored:
        """What monitoring sees of an ordinary run; it had all ways if its alternative demands none."""
        run = self._runs(key)[alternative.scale]
        ways = alternative.demand.ways or run.ways[-1]
        return Monitored(alternative.scale, ways, self._off(run.ipc_at(ways)), self._off(run.bandwidth_at(ways)))

    def _runs(self, key: Key) -> Mapping[int, Run]:
        """How the program truly runs, by scale."""
        program, processes = key
        return self._programs[program].at(processes, nearest=self._nearest)

    def _off(self, value: float) -> float:
        return float(value * np.exp(self._rng.normal(0.0, self._spread)))


@dataclass
class Laboratory:
    """The truth about the programs, and what has been learnt of it; `explored` are the exploring runs that ended."""

    truth: Truth
    learning: Learning
    explored: list[tuple[Key, ExplorationStep]] = field(default_factory=list)

    @property
    def steps(self) -> Mapping[int, tuple[Key, ExplorationStep]]:
        """The exploring runs under way, by job id."""
        return self.learning.steps

    def of(self, key: Key) -> KnownEvidence:
        """What is known of this program and number of processes."""
        return self.learning.of(key)

    def counts(self) -> dict[str, int]:
        """How many (program, processes) were seen, how many have a profile, and how many exploring runs ended."""
        known = self.learning.known.values()
        profiles = sum(each.profile() is not None for each in known)
        return {"programs": len(known), "programs_learnt": profiles, "exploring_runs": len(self.explored)}

    def observe(self, job: LearnableJob, alternative: Alternative) -> None:
        """Measure a run that has ended, and learn from it; an ordinary one is compared with its profile."""
        step = self.learning.ended(job.id)
        if step is not None:
            self.explored.append((job.key, step))
            self.learning.measured(job, self.truth.measured(job.key, step))
        elif self.learning.of(job.key).profile() is not None:
            self.learning.monitored(job, self.truth.monitored(job.key, alternative))


class LearningCluster:
    """The scheduler and the progress model of a simulation in which profiles are learnt.

    As a scheduler it is the given policy, on the alternatives that each job is offered now. As a progress model it is
    the given model, with the cost of changing ways added, and it observes each run that ends.
    """

    def __init__(self, laboratory: Laboratory, policy: Matcher, progress: Progress, jobs: Iterable[ProgramJob]) -> None:
        """`jobs` are those of the trace that can be learnt from; the others keep their alternatives."""
        self._laboratory, self._policy, self._progress = laboratory, policy, progress
        self._learnable = {
            each.identity: LearnableJob(each.identity, (each.program, each.processes), each.request) for each in jobs
        }

    @property
    def asks_for_ends(self) -> bool:
        """Whether the policy does."""
        return self._policy.asks_for_ends

    def schedule(
        self, node_arrays: NodeArrays, free: Amounts, queue: WaitingQueue, coming: Releases = NOTHING_COMES_FREE
    ) -> Schedule:
        """The matches of one cycle, with the alternatives that follow from what is known now."""
        learning = self._laboratory.learning
        waiting = (*queue.over_aged, *(job for jobs in queue.by_project.values() for job in jobs))
        offers = learning.offers(self._learnable[job.id] for job in waiting if job.id in self._learnable)
        offered = WaitingQueue(queue.projects, now_s=queue.now_s)
        for job in waiting:
            if job.id not in offers:
                offered.add(job)
            elif offers[job.id].alternatives:
                offered.add(replace(job, alternatives=offers[job.id].alternatives))
        schedule = self._policy.schedule(node_arrays, free, offered, coming)
        for job, alternative, _ in schedule.matches:
            step = offers[job.id].step if job.id in offers else None
            if step is not None and alternative == job.alternatives[0]:
                learning.started(self._learnable[job.id], step)
        return schedule

    def start(self, placed: PlacedRun) -> Iterable[PlacedRun]:
        """The job with its end; changing ways make it later."""
        _, step = self._laboratory.steps.get(placed.job.id, (None, None))
        timed = self._progress.start(placed)
        if step is None or not step.samples:
            return timed
        # The job is alone on its nodes: no other job's end changes, and no other job will change its end.
        return [replace(each, end_s=_longer(each)) for each in timed]

    def finish(self, placed: PlacedRun) -> Iterable[PlacedRun]:
        """The jobs whose ends change; the job's run is observed."""
        job = self._learnable.get(placed.job.id)
        if job is not None:
            self._laboratory.observe(job, placed.alternative)
        return self._progress.finish(placed)


def laboratory_of(
    node_arrays: NodeArrays, true: Mapping[str, Program], exploration: Exploration, *, spread: float, seed: int = 0
) -> Laboratory:
    """A laboratory on these nodes, in which nothing is known yet."""
    truth = Truth(true, nearest=exploration.spreading.one_profile_for_all_sizes, spread=spread, seed=seed)
    return Laboratory(truth, Learning(exploration, node_arrays.types, can_run=truth.has))


def _longer(placed: PlacedRun) -> Seconds:
    return placed.start_s + half_up(float(placed.end_s - placed.start_s) * (1 + SAMPLING_COSTS))
