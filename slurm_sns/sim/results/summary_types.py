"""The types of a simulation's summary: what `sns simulate` prints with --json and writes into summary.json.

Source of the metrics: Max-Jobs paper (JSSPP 2013), section 5; the bounded stretch: Casanova et al., dynamic fractional
resource scheduling (bound 30 s); suspensions and restarts: Cost-based dynamic job rescheduling (2010), section 4.
"""

from typing import NotRequired

from typing_extensions import TypedDict


class RunSettings(TypedDict):
    """What was simulated."""

    policy: str
    """The policy, or the heuristic."""
    interval_s: NotRequired[int]
    """Seconds between cycles; 1: a cycle in each second with an event. dfrs and rescheduling have none."""
    age_limit_s: int | None
    """A job that has waited for longer goes first; null for no limit."""
    load_factor: float
    """By what the arrival times were multiplied."""
    seed: int
    """The seed of the measurement errors of --learn."""
    jobs: int
    """Jobs that were replayed."""
    dropped: dict[str, int]
    """Jobs of the trace that were left out, by reason."""


class SimulationMetrics(TypedDict):
    """The metrics of every policy.

    Queue length and utilisation are means over the time from the first to the last submit; null if all jobs are
    submitted at once.
    """

    mean_wait_s: float
    """The mean of start - submit, seconds; of rescheduling, of the time in queues."""
    mean_slowdown: float
    """The mean of (wait + run) / run."""
    max_bounded_stretch: float
    """The largest ratio of turnaround to run time, where less than 30 s count as 30 s."""
    mean_queue_length: float | None
    """Waiting jobs."""
    utilisation_cores: float | None
    """The part of all cores in use, 0 to 1."""
    utilisation_memory: float | None
    """The part of all memory in use, 0 to 1."""
    load_cores: float | None
    """Core-seconds that the jobs demand, percent of what there is."""
    load_memory: float | None
    """The same for memory."""
    cycles: int
    """Cycles."""
    cycles_with_waiting: int
    """Cycles in which jobs waited."""
    wins: dict[str, int]
    """Cycles with waiting jobs in which a heuristic matched most jobs, by heuristic; several may in one cycle."""
    wins_all_cycles: dict[str, int]
    """The same over all cycles; without waiting jobs all heuristics match equally many."""


class RunCosts(TypedDict):
    """What the simulation itself took."""

    read_s: float
    """Seconds to read the trace."""
    wall_s: float
    """Seconds to replay it."""
    jobs_per_s: float
    """Jobs replayed in a second."""
    peak_rss_mb: float
    """The process's largest memory, MiB."""


class SpreadingMetrics(TypedDict, total=False):
    """More for ce, cs, sns, combined, fcfs and easy."""

    progress: str
    """How jobs advance: `authors` or `contention`."""
    profiles: str | None
    """The name of the file of profiles; null if there was none."""
    jobs_without_profile: int
    """Jobs whose program has no profile."""
    mean_run_s: float
    """The mean run time, seconds: it depends on the placement."""
    mean_turnaround_s: float
    """The mean of end - submit, seconds."""
    user_estimates: bool
    """Whether jobs were expected to run until their time limits (fcfs, easy)."""


class LearningMetrics(TypedDict, total=False):
    """More with --learn."""

    learn: float
    """The relative standard deviation of the measurement errors."""
    programs: int
    """Programs, by number of processes, that were seen."""
    programs_learnt: int
    """Those of them that have a profile at the end."""
    exploring_runs: int
    """Runs that explored a scale."""


class FluidMetrics(TypedDict, total=False):
    """More for the policies dfrs-*, in which jobs get fractions of the CPU."""

    penalty_s: int
    """Seconds without progress after each resume and each move."""
    mean_bounded_stretch: float
    """The mean of what `max_bounded_stretch` is the largest of."""
    preemptions: int
    """Pauses of jobs."""
    migrations: int
    """Moves of jobs to other nodes."""
    tasks_moved: int
    """Tasks that left a node by these."""
    preemption_gb_per_s: float
    """Memory that is saved by pauses, GB/s over the makespan."""
    migration_gb_per_s: float
    """Memory that is moved by migrations, GB/s over the makespan."""


class PoolMetrics(TypedDict, total=False):
    """More for rescheduling, on a site with pools."""

    jobs_suspended: int
    """Jobs that were ever suspended."""
    mean_suspended_s: float | None
    """Their mean time suspended, seconds; null if there were none."""
    suspensions: int
    """Suspensions."""
    restarts: int
    """Restarts in another pool."""
    wasted_core_s: float
    """Core-seconds of the attempts that were lost."""


class SimulationSummary(
    RunSettings, SimulationMetrics, RunCosts, SpreadingMetrics, LearningMetrics, FluidMetrics, PoolMetrics
):
    """`sns simulate --json`. The policy's own parameters stand in it, too, by their names."""


PARTS = (RunSettings, SimulationMetrics, RunCosts, SpreadingMetrics, LearningMetrics, FluidMetrics, PoolMetrics)
