"""The types of what `sns report DUMP --json` prints: what slurm_sns would gain, from accounting."""

from typing import NotRequired

from typing_extensions import TypedDict


class WaitValues(TypedDict):
    """Waits of a group of jobs, seconds."""

    mean_s: float
    """The mean."""
    p95_s: float
    """The 95th percentile."""


class ComparedValues(TypedDict):
    """A group of measured jobs: as recorded, under Slurm alone, and under slurm_sns."""

    name: str
    """The partition, the size, or `all jobs`."""
    jobs: int
    """How many jobs."""
    recorded: WaitValues
    """Their waits by the record."""
    slurm: WaitValues
    """Their waits under Slurm alone, simulated."""
    sns: WaitValues
    """Their waits under slurm_sns, simulated."""
    difference_s: float
    """The mean wait under slurm_sns less that under Slurm alone, seconds."""
    difference_95: list[float] | None
    """The ends of its 95 % interval; null for fewer than six weeks."""
    earlier: float
    """The part of the jobs that start more than 5 minutes earlier under slurm_sns, 0 to 1."""
    later: float
    """The part that starts more than 5 minutes later."""


class PartitionAdviceValues(TypedDict):
    """The advice on a partition."""

    partition: str
    """The partition."""
    verdict: str
    """`manage`, `do not manage`, `nothing to gain` or `cannot tell`."""
    why: str
    """Why."""


class LongerWaitValues(TypedDict):
    """A job that would wait longer."""

    job: str
    """Its number as sacct shows it: 7, or 7_3 for a task of an array."""
    partition: str
    """Its partition."""
    nodes: int
    """Its nodes."""
    cores: int
    """Its cores on each."""
    slurm_s: int
    """Its wait under Slurm alone, seconds."""
    sns_s: int
    """Its wait under slurm_sns, seconds."""


class WaitingHoursValues(TypedDict):
    """Hours of waiting under Slurm alone, by what kept the jobs."""

    partition: str
    """The partition."""
    room: float
    """Enough was free: jobs before it, or a booking."""
    memory: float
    """Memory was short."""
    cores: float
    """Cores were short."""
    both: float
    """Both were short."""
    gpus: float
    """GPUs were short."""


class IdleGpusValues(TypedDict):
    """GPUs of a type, on average while some job waits."""

    type: str
    """The type; empty for GPUs without one."""
    gpus: int
    """How many GPUs of it the nodes have."""
    idle: float
    """The part of them that is idle, 0 to 1."""
    stranded: float
    """The part that is idle and that no waiting job can use for want of cores or memory."""
    stranded_hours: float
    """The stranded GPU-hours of the replayed weeks."""


class IdleValues(TypedDict):
    """Parts of all cores, or of all memory, 0 to 1, on average while some job waits."""

    idle_cores: float
    """Idle cores."""
    stranded_cores: float
    """Idle cores that no waiting job can use for want of memory."""
    idle_memory: float
    """Idle memory."""
    stranded_memory: float
    """Idle memory that no waiting job can use for want of cores."""
    gpus: NotRequired[list[IdleGpusValues]]
    """Idle GPUs by type; missing where no node has any."""


class LeftToSlurmValues(TypedDict):
    """A reason why the submit filter leaves jobs to Slurm."""

    reason: str
    """The reason."""
    jobs: float
    """Their part of the jobs, 0 to 1."""
    core_hours: float
    """Their part of the core-hours."""


class AccountingReport(TypedDict):
    """What slurm_sns would gain, from accounting."""

    policy: str
    """The policy that was simulated."""
    seed: int
    """The seed that chose weeks and lines."""
    jobs: int
    """Jobs of the dump that can be replayed."""
    dropped: dict[str, int]
    """Lines that were left out, by reason."""
    weeks: int
    """Weeks that were replayed."""
    weeks_there: int
    """Full weeks that the dump has."""
    replayed_jobs: int
    """Jobs that were replayed, also those that are not measured."""
    overall: ComparedValues
    """All measured jobs."""
    partitions: list[ComparedValues]
    """By partition."""
    sizes: list[ComparedValues]
    """By size."""
    advice: list[PartitionAdviceValues]
    """The advice on each partition."""
    interval_s: int
    """The advised interval between two cycles, seconds."""
    mean_wait_s: dict[str, float]
    """The mean wait under slurm_sns by its interval."""
    longest: list[LongerWaitValues]
    """The ten jobs that would lose most time."""
    waiting_hours: list[WaitingHoursValues]
    """What kept jobs waiting."""
    slurm_idle: IdleValues
    """What stood idle under Slurm alone."""
    sns_idle: IdleValues
    """What stood idle under slurm_sns."""
    lines: int
    """Lines of the dump."""
    lines_judged: int
    """Lines that were judged as the submit filter does, chosen by chance."""
    left_to_slurm: list[LeftToSlurmValues] | None
    """What it would leave to Slurm; null if the dump lacks the columns."""
