"""The parameters of the policies with which the papers compare their own."""

from dataclasses import dataclass

from slurm_sns.policies.placement.heuristic_names import heuristics
from slurm_sns.policies.placement.request import EVEN_SCALES_ONLY, SCALES
from slurm_sns.policies.specification import (
    DEFAULT_QUEUE_DEPTH,
    QUEUE_DEPTH,
    GeometryChoice,
    Setting,
    Specification,
    parameter,
)

#: The policies whose way of placing FCFS and EASY may use. A heuristic's name means jobs with their own geometry.
PLACING_POLICIES = ("ce", "cs", "sns")
#: A year: longer windows and intervals of a backfill make no difference.
LONGEST_S = 31_536_000


def placements() -> tuple[str, ...]:
    """The valid values of `placement`."""
    return *PLACING_POLICIES, *heuristics()


PLACEMENT = Setting(
    "How a job is placed: as ce (whole nodes), cs or sns places it, or by one heuristic.",
    choices=placements,
    option=True,
)


@dataclass(frozen=True, slots=True)
class CompactParameters:
    """How compact policies place jobs.

    `scales` are the scale factors that CS may use, with `even_scales_only` those only whose nodes divide the tasks
    evenly; CE ignores both. `queue_depth` is how many jobs a cycle looks at.
    """

    scales: tuple[int, ...] = parameter((1, 2, 4, 8), SCALES)
    even_scales_only: bool = parameter(False, EVEN_SCALES_ONLY)
    queue_depth: int = parameter(DEFAULT_QUEUE_DEPTH, QUEUE_DEPTH)


CE = Specification(
    "ce",
    "Compact and exclusive: each job on its fewest nodes, alone there.",
    (CompactParameters,),
    "slurm_sns.policies.baselines.compact:compact_exclusive",
    geometry=GeometryChoice.COMPACT,
    simulated=(CompactParameters(even_scales_only=True),),
    runner="slurm_sns.sim.runners.spreading:programs",
)


@dataclass(frozen=True, slots=True)
class BatchParameters:
    """How FCFS places jobs, and how many jobs of the queue a cycle looks at."""

    placement: str = parameter("ce", PLACEMENT)
    queue_depth: int = parameter(DEFAULT_QUEUE_DEPTH, QUEUE_DEPTH)


@dataclass(frozen=True, slots=True)
class EasyParameters(BatchParameters):
    """The same for EASY.

    With `extra_nodes_only` a job that ends before the head job's start is no reason to start it: it must leave the head
    job's place alone. The program of the DFRS paper's authors (vcsim) does so.
    """

    extra_nodes_only: bool = parameter(
        False, Setting("Backfill only jobs that leave the head job's place alone, whenever they end.", option=True)
    )


@dataclass(frozen=True, slots=True)
class SlurmParameters:
    """How Slurm alone schedules: its SchedulerParameters of the same names and defaults, all times in seconds.

    With `exclusive` each job has its nodes alone, as in a partition with OverSubscribe=EXCLUSIVE; otherwise jobs share
    nodes by cores and memory (select/cons_tres, CR_Core_Memory).
    """

    bf_interval_s: int = parameter(
        30, Setting("Seconds from one backfill pass to the next, as in Slurm.", least=1, most=LONGEST_S, option=True)
    )
    bf_max_job_test: int = parameter(
        500, Setting("Jobs that a backfill pass looks at, as in Slurm.", least=1, most=1_000_000, option=True)
    )
    bf_window_s: int = parameter(
        86_400,
        Setting(
            "How many seconds ahead backfill looks. Slurm's own bf_window is in minutes.",
            least=1,
            most=LONGEST_S,
            option=True,
        ),
    )
    bf_resolution_s: int = parameter(
        60,
        Setting("Bookings for waiting jobs are of whole steps of so many seconds.", least=1, most=3600, option=True),
    )
    bf_window_linear_s: int = parameter(
        0,
        Setting(
            "By how much each group of expected ends is longer than the last one, as in Slurm. 0: twice as long.",
            least=0,
            most=LONGEST_S,
            option=True,
        ),
    )
    batch_sched_delay_s: int = parameter(
        3,
        Setting(
            "Seconds from one main pass to the next, after submissions and ends, as in Slurm.",
            least=0,
            most=LONGEST_S,
            option=True,
        ),
    )
    epilog: bool = parameter(
        False, Setting("Nodes run an Epilog: its message starts the main pass at once after each end.", option=True)
    )
    exclusive: bool = parameter(False, Setting("Each job has its nodes alone.", option=True))


SLURM = Specification(
    "slurm",
    "Slurm alone: priority order, and backfill that books nodes for each job that has to wait.",
    (SlurmParameters,),
    geometry=GeometryChoice.COMPACT,
    plans_by_run_times=True,
    is_simulated_only=True,
    runner="slurm_sns.sim.runners.in_order:slurm_alone",
)


CS = Specification(
    "cs",
    "Compact and shared: the smallest scale that fits now, on shared nodes, without profiles.",
    (CompactParameters,),
    "slurm_sns.policies.baselines.compact:compact_shared",
    geometry=GeometryChoice.ANY_SCALE,
    simulated=(CompactParameters(even_scales_only=True),),
    runner="slurm_sns.sim.runners.spreading:programs",
)
