"""The types of what commands print with --json, beside the answers of the scheduler and those about a node."""

from typing import NotRequired

from typing_extensions import TypedDict

from slurm_sns.scheduler.answers.answer_types import MeasuredOnNode, ProgramSummary, SmallerRequestAnswer, WaitCause
from slurm_sns.sim.site_report.report_types import AccountingReport


class PolicyLine(TypedDict):
    """A policy of this installation."""

    name: str
    """Its name in sns.yaml and for `sns simulate`."""
    help: str
    """What it does, in one line."""
    runs: str
    """`cluster, simulator`, or `simulator` alone."""
    package: str
    """The package that brings it."""


class PoliciesJson(TypedDict):
    """`sns policies --json`."""

    policies: list[PolicyLine]
    """The policies."""
    problems: list[str]
    """Why policies of other packages cannot be used."""


class WaitGroup(WaitCause):
    """Jobs that wait for the same."""

    jobs: int
    """How many; waiting tasks of an array that wait alike count as one job."""
    first: str
    """The first of them in queue order."""
    words: str
    """What they wait for, in words."""


class RenderJson(TypedDict):
    """`sns render --json`."""

    directory: str
    """The directory of the files."""
    changed: list[str]
    """The files that were written; with --check, that differ."""
    unchanged: list[str]
    """The files that were right already."""
    written: bool
    """False with --check."""


class FindingValues(TypedDict):
    """Something that was checked. Where nothing is wrong, only `ok`, `what`, `found` and `wanted` are there."""

    ok: bool
    """Whether it is right; true for a warning, too."""
    what: str
    """What was checked."""
    found: NotRequired[str]
    """What was found."""
    wanted: NotRequired[str]
    """What is wanted."""
    file: NotRequired[str]
    """The file to edit."""
    remove: NotRequired[str]
    """The lines to replace, exactly as the file has them."""
    add: NotRequired[str]
    """The lines to put in their place, or to add at the end of the file."""
    run: NotRequired[str]
    """The commands to run."""
    advice: NotRequired[str]
    """What else to do, or the disadvantage that a warning is about."""
    warning: NotRequired[bool]
    """True for a warning: no fault, but a setting with a disadvantage."""


class KeyLine(TypedDict):
    """A key, without its secret."""

    id: str
    """The key's ID."""
    fingerprint: str
    """The key's fingerprint: equal where the keys are equal."""
    signs: bool
    """Whether it signs; the others only verify."""


class KeyFileJson(TypedDict):
    """`sns key check --json`."""

    file: str
    """The key file."""
    owner: int
    """Its owner's user id."""
    keys: list[KeyLine]
    """The keys, in the order of the file."""


class ImportedJson(TypedDict):
    """`sns profile import --json`."""

    added: list[str]
    """The programs that had no profile before."""
    replaced: list[str]
    """The programs whose profile was replaced."""


class RunDemand(TypedDict):
    """What a job asks for at the given alpha, on each node; null if no number of ways suffices."""

    ways: int | None
    """The fewest cache ways that keep alpha of the IPC."""
    ipc_kept: float | None
    """The part of the best IPC that it keeps with them."""
    bandwidth_gbps: float | None
    """The memory bandwidth that it draws with them, GB/s."""


class RunProvenance(TypedDict):
    """Where the numbers of a run come from: `printed` in the source, `measured` or `assumed`."""

    time_s: str
    """The run time."""
    ipc: str
    """The instructions per cycle."""
    bandwidth_gbps: str
    """The memory bandwidth."""


class ProfiledRun(TypedDict):
    """A program's run with one number of processes at one scale."""

    processes: int
    """The number of processes."""
    scale: int
    """On so many times the fewest nodes."""
    time_s: float
    """The run time with the nodes alone, seconds."""
    ways: list[int]
    """The numbers of cache ways at which it was measured."""
    ipc: list[float]
    """Instructions per cycle at each of them."""
    bandwidth_gbps: list[float]
    """GB/s of each node at each of them."""
    provenance: RunProvenance
    """Where these numbers come from."""
    demand: RunDemand
    """What a job asks for."""


class ProfileJson(ProgramSummary):
    """`sns profile show --json`."""

    alpha: float
    """The part of its best performance that a job keeps."""
    runs: list[ProfiledRun]
    """The runs of the profile."""


class TallyValues(TypedDict):
    """The jobs that have the same first reason."""

    reason: str
    """`managed`, or why the jobs are left to Slurm or refused."""
    jobs: int
    """How many jobs."""
    core_hours: float
    """Their core-hours."""
    users: int
    """How many users they belong to."""


class CoverageJson(TypedDict):
    """`sns coverage --json`."""

    tallies: list[TallyValues]
    """The managed jobs first, then by core-hours."""
    users: int
    """All users in the log."""
    users_managed_entirely: int
    """Those whose jobs would all be managed."""
    users_not_managed: int
    """Those of whose jobs none would be managed."""
    left_out: dict[str, int]
    """Records that could not be read, by reason."""


class ReproductionJson(TypedDict):
    """`sns reproduce --json`."""

    name: str
    """The reproduction."""
    seeds: int | None
    """How many seeds went into the page; null where nothing is random."""
    quick: bool
    """Whether it was run with --quick."""
    verdicts: dict[str, int]
    """How many claims have each verdict."""
    wall_s: float
    """How long it took, seconds."""


class AdviceValues(TypedDict):
    """A job that slurm_sns would start now."""

    job: str
    """The job, as `41`; a task of an array as `41_7`."""
    user: str
    """Its owner's name if that is who asks, else `-`."""
    tasks: int
    """Its number of tasks."""
    nodes: str
    """The nodes, as a node list."""
    heuristic: str
    """The heuristic whose schedule was chosen; empty for a policy without any."""
    partition: str
    """The partition, or several with commas between them."""
    cpus: int
    """Its number of CPUs as Slurm counts them."""


class AdviceOutcomeValues(TypedDict):
    """What Slurm did about a job."""

    job: str
    """The job."""
    comparison: str
    """`earlier`: slurm_sns would have started it before Slurm did; `same`: at the same time; `later`: Slurm started it,
    and the plan of the look before let it wait; `gone`: nobody saw it start."""
    seconds: float | None
    """How much earlier, seconds; null for `later` and `gone`."""
    nodes: str
    """The nodes on which Slurm started it."""
    on_same_nodes: bool
    """Whether they are those of the advice."""
    partition: str
    """The partition, or several with commas between them."""
    cpus: int
    """Its number of CPUs as Slurm counts them."""


class OvertakenValues(TypedDict):
    """A job that an earlier look would have started, and on whose nodes Slurm has started others since the last one."""

    job: str
    """The job."""
    since_s: float
    """For how long it would have run by now, seconds."""
    others: list[str]
    """The jobs that Slurm has started there."""


class AdviceSummaryValues(TypedDict):
    """The sum of the looks so far."""

    looks: int
    """Looks."""
    advised: int
    """Jobs that slurm_sns would have started."""
    earlier: int
    """Of these, the ones that Slurm started later."""
    earlier_mean_s: float | None
    """By how much, seconds on average; null without any."""
    same: int
    """Those that Slurm started at the same time."""
    on_same_nodes: int
    """Those that Slurm started on the same nodes."""
    later: int
    """Jobs that Slurm started while the plan of the look before let them wait."""
    gone: int
    """Jobs that nobody saw start."""
    still_waiting: int
    """Jobs that slurm_sns would have started, and that wait."""


class ObserveJson(TypedDict):
    """A line of `sns observe --json`, and of looks.jsonl in its directory: one look."""

    version: int
    """The version of this form: 2. Version 1 had no began_s, not_managed, partition and cpus."""
    began_s: float
    """When the first look of this run of `sns observe` was, Unix seconds."""
    at_s: float
    """When, Unix seconds."""
    read_s: float
    """How long Slurm took to answer, seconds."""
    plan_s: float
    """How long reading the answer and planning took, seconds."""
    policy: str
    """The policy."""
    partitions: list[str]
    """The partitions that count as managed."""
    pending: int
    """Records of jobs that wait in Slurm."""
    managed: int
    """Those that slurm_sns would manage."""
    not_managed: dict[str, int]
    """How many others there are, by the reason why they are Slurm's own."""
    advices: list[AdviceValues]
    """The jobs that it would start now, and no earlier look would have."""
    as_before: int
    """How many more it would start now that an earlier look would have started."""
    outcomes: list[AdviceOutcomeValues]
    """What Slurm has done since the look before."""
    overtaken: list[OvertakenValues]
    """Jobs of earlier looks that still wait while Slurm has started others on their nodes."""
    left_out: dict[str, int]
    """Lines of Slurm's answers that could not be read, by reason."""
    hidden: list[str]
    """What Slurm hides from ordinary users (PrivateData)."""
    summary: AdviceSummaryValues
    """The sum so far."""


class MemoryBoundsValues(TypedDict):
    """Memory on the fullest node, MiB."""

    at_least_mb: int
    """The largest task of a step: a node had that much."""
    about_mb: int
    """The best guess: the mean of the nodes, or the largest task; steps that ran at the same time add up."""
    at_most_mb: int
    """As if every task there had been as large as the largest one; steps that ran at the same time add up."""


class StepUseValues(TypedDict):
    """A step of a job."""

    step: str
    """`batch`, `extern` or its number."""
    state: str
    """Its state, in Slurm's words."""
    nodes: list[str]
    """Its nodes."""
    tasks: int
    """Its tasks on all nodes."""
    largest_task_mb: int | None
    """The peak of its largest task, MiB (MaxRSS); null where accounting has none."""
    memory: MemoryBoundsValues | None
    """What it used on its fullest node; null where accounting has none."""


class MeasuredUseValues(TypedDict):
    """What agents have measured of a job, over its nodes; null is unknown."""

    nodes: list[MeasuredOnNode]
    """Each node of the last run."""
    least_ways: int
    """The fewest cache ways that it had for itself on a node; 0 where the cache is not partitioned."""
    most_ways: int
    """The most cache ways that it had for itself on a node."""
    bandwidth_gbps: float | None
    """Its mean memory bandwidth on a node, GB/s."""
    ipc: float | None
    """Its mean instructions per cycle."""
    ipc_alone: float | None
    """Its mean instructions per cycle alone on a node, of the nodes where it also was beside other jobs."""
    ipc_beside: float | None
    """Its mean instructions per cycle beside other jobs, of the nodes where it also was alone."""
    neighbours_cost: float | None
    """The share of its IPC alone that it lost beside other jobs; below 0 if it was faster there."""


class JobUseValues(TypedDict):
    """What a job asked for and what it used."""

    job: str
    """The job, as `41`; a task of an array as `41_7`."""
    job_id: int
    """Slurm's job id."""
    state: str
    """Its state, in Slurm's words."""
    nodes: list[str]
    """Its nodes."""
    submit_s: float | None
    """When it was submitted, Unix seconds."""
    start_s: float | None
    """When it started; null before."""
    end_s: float | None
    """When it ended; null before."""
    ran_s: float | None
    """For how long it ran, seconds."""
    limit_s: float | None
    """Its time limit, seconds; null without one."""
    cpus: int | None
    """The CPUs that it had."""
    busy_cpus: float | None
    """How many of them it kept busy, on average; null before its end and where accounting has no CPU time."""
    asked_mb: int | None
    """The memory that it asked for, on each node, MiB."""
    memory: MemoryBoundsValues | None
    """What it used on its fullest node; null where accounting has none."""
    steps: list[StepUseValues]
    """Its steps."""
    program: str
    """The program that its owner named; empty if none."""
    ways: int
    """The cache ways that slurm_sns gave it on each node; 0 without."""
    bandwidth_gbps: int
    """The memory bandwidth that slurm_sns gave it on each node, GB/s; 0 without."""
    measured: MeasuredUseValues | None
    """What agents have measured of it; null where nothing was, or no scheduler answers here."""
    not_measured: str
    """Why `measured` is null, in a few words; empty if it is not, and before the job's start."""
    enough_mb: int | None
    """The memory on each node that should be enough the next time: the upper bound and a fifth, in MiB, or null."""
    smaller_request: SmallerRequestAnswer | None
    """What it would have won by asking for `enough_mb`.

    Null where less memory is no gain, no scheduler answers here, it is not recorded, or too many jobs were asked for.
    """
    advice: list[str]
    """What its owner may do better the next time."""


class FollowedJobsValues(TypedDict):
    """Jobs that slurm_sns would have started, by partition, size, heuristic or policy, and what Slurm did."""

    name: str
    """The partition, the size, the heuristic or the policy; `all`."""
    advised: int
    """Jobs that slurm_sns would have started."""
    started: int
    """Of these, the ones that Slurm has started: `earlier` and `same`."""
    earlier: int
    """Those that Slurm started later than slurm_sns would have."""
    same: int
    """Those that it started at the same time."""
    on_same_nodes: int
    """Those that it started on the nodes of the advice."""
    gone: int
    """Those that nobody saw start."""
    still_waiting: int
    """Those that waited at the last look of their run."""
    earlier_share: float | None
    """`earlier` divided by `started`; null without any."""
    earlier_share_low: float | None
    """The lower end of its 95 % interval; null where there is too little for one."""
    earlier_share_high: float | None
    """The upper end."""
    mean_s: float | None
    """How much earlier the jobs counted by `earlier` would have started, seconds on average; null without any."""
    mean_low_s: float | None
    """The lower end of its 95 % interval; null where there is too little for one."""
    mean_high_s: float | None
    """The upper end."""
    median_s: float | None
    """The median of the same."""
    p90_s: float | None
    """The 90th percentile of the same (nearest rank)."""
    still_waiting_mean_s: float | None
    """How long those that still wait would have been running, seconds on average; null without any."""
    let_wait: int
    """Other jobs: Slurm started them, and the plan of the look before let them wait."""


class LongestWaitValues(TypedDict):
    """A job that waited long after the look that would have started it."""

    job: str
    """The job."""
    partition: str
    """Its partition; empty where a look does not say."""
    cpus: int
    """Its CPUs; 0 where a look does not say."""
    nodes: str
    """The nodes of the advice."""
    advised_s: float
    """When the advice was given, Unix seconds."""
    seconds: float
    """How much earlier it would have started; if it still waits, how long it would have been running."""
    still_waits: bool
    """Whether it still waited at the last look."""
    others: int
    """How many jobs Slurm started on these nodes meanwhile."""


class HistogramValues(TypedDict):
    """Jobs that slurm_sns would have started earlier, by how much."""

    name: str
    """The range, such as `1 to 5 min`."""
    jobs: int
    """The jobs in it."""


class LooksReport(TypedDict):
    """What the looks of `sns observe` show together."""

    file: str
    """The file of the looks."""
    began_s: float
    """The first look, Unix seconds."""
    ended_s: float
    """The last look."""
    watched_s: float
    """How long it watched: from the first to the last look of each run, in all."""
    looks: int
    """Looks."""
    runs: int
    """Runs of `sns observe`."""
    interval_s: float | None
    """The time from look to look, the median; null for one look."""
    policies: list[str]
    """The policies that planned."""
    partitions: list[str]
    """The partitions that counted as managed."""
    pending_mean: float
    """Records of waiting jobs, on average over the looks."""
    managed_mean: float
    """Those that slurm_sns would manage."""
    all: FollowedJobsValues
    """All jobs; a job that several policies would have started counts for each."""
    by_policy: list[FollowedJobsValues]
    """By policy."""
    by_partition: list[FollowedJobsValues]
    """By partition."""
    by_size: list[FollowedJobsValues]
    """By size."""
    by_heuristic: list[FollowedJobsValues]
    """By heuristic; `let_wait` is 0 here, as those jobs have none."""
    histogram: list[HistogramValues]
    """By how much earlier."""
    longest: list[LongestWaitValues]
    """The ten that waited longest after their advice."""
    overtaken: int
    """Jobs on whose nodes Slurm started others while they waited."""
    overtaking: int
    """How many times it did so."""
    not_managed: dict[str, float]
    """Waiting jobs that slurm_sns would leave to Slurm, by reason: how many, on average over the looks that say so."""
    intervals_over: str
    """What is drawn anew for the intervals: `hours` or `days`; empty where there are none."""
    blocks: int
    """How many such hours or days there are."""
    left_out: dict[str, int]
    """Lines of Slurm's answers that could not be read, by reason: the most in one look."""
    hidden: list[str]
    """What Slurm hid from the user who watched (PrivateData)."""
    unread: dict[str, int]
    """Lines of the file that could not be read, by reason."""


class PlannedStartValues(TypedDict):
    """A job that the scheduler planned to start in a mode that sends nothing."""

    job: str
    """The job."""
    first_s: float
    """When its start was first planned, Unix seconds."""
    plans: int
    """How many times it was planned: again on other nodes, or after a plan without it."""
    nodes: str
    """The nodes of the first plan."""
    heuristic: str
    """The heuristic whose schedule was chosen; empty for a policy without any."""
    cpus: int
    """Its cores on all nodes."""
    waited_on_s: float | None
    """It certainly waited so long after that plan: a kept snapshot shows it; null where none does."""


class StoreReport(TypedDict):
    """What the store of a scheduler in the mode observe or advise says of its plans."""

    mode: str
    """The mode of sns.yaml; the store does not say in which mode a plan was made."""
    policy: str
    """The policy of sns.yaml."""
    began_s: float | None
    """The first recorded plan, Unix seconds; null without any."""
    ended_s: float | None
    """The last one."""
    cycles: int
    """Cycles that planned a start that the cycle before had not."""
    jobs: int
    """Jobs whose start was planned."""
    starts: int
    """Planned starts; a job may have several."""
    by_size: dict[str, int]
    """Jobs by size."""
    by_heuristic: dict[str, int]
    """Jobs by the heuristic of their first plan."""
    snapshots: int
    """Snapshots of the queue that are kept."""
    read: int
    """Those that were read for `waited_on_s`."""
    unread: dict[str, int]
    """Snapshots that could not be read, by reason."""
    plans: list[PlannedStartValues]
    """The jobs, by the time of their first plan."""


class RestartValues(TypedDict):
    """A restart of a suspended job, or a proposal of one, by what was expected then."""

    job: str
    """The job's id; of an array's task `41_7`."""
    user: str
    """Its owner."""
    at_s: float
    """When it was decided, Unix seconds."""
    proposal: bool
    """Whether it was only proposed."""
    stays_s: float
    """In how many seconds it would have completed where it was."""
    restarts_s: float
    """In how many elsewhere."""
    lost_core_h: float
    """The work that the restart loses at most, core-hours."""


class RestartsReport(TypedDict):
    """What the store of a scheduler says of restarts of suspended jobs."""

    restarts: int
    """How many there were."""
    proposals: int
    """How many were only proposed."""
    decisions: list[RestartValues]
    """Both, oldest first."""


class SharedTimeValues(TypedDict):
    """The runs of an account on nodes that share cores, and its pauses there, in a day."""

    day: str
    """The day in which the runs ended, UTC: `2026-11-28`."""
    account: str
    """The account."""
    runs: int
    """How many runs ended; a job that was requeued has several."""
    charged_core_h: float
    """All cores of these runs for as long as they ran, core-hours, without weights of a partition or a QOS."""
    virtual_core_h: float
    """What they had of that, core-hours."""
    pauses: int
    """How often jobs were paused."""
    lost_core_h: float
    """The work that these pauses lost at most, core-hours."""


class SharingReport(TypedDict):
    """What the store of a scheduler says of partitions whose jobs share cores, in the last year."""

    partitions: list[str]
    """The partitions that share now."""
    most_to_a_core: int
    """So many jobs to a core at most."""
    times: list[SharedTimeValues]
    """By day and account, oldest first."""


class ReportJson(TypedDict):
    """`sns report --json`."""

    about: str
    """What is reported on: `accounting`, `looks`, `store`, `restarts` or `sharing`; the field of the same name has it.
    A scheduler that restarts jobs and lets others share cores has `restarts` here, and both fields."""
    title: str
    """The title of the page."""
    summary: list[str]
    """The sentences at its top."""
    accounting: NotRequired[AccountingReport]
    """What slurm_sns would gain, from a dump of sacct."""
    looks: NotRequired[LooksReport]
    """The looks of `sns observe`."""
    store: NotRequired[StoreReport]
    """The plans in a scheduler's store."""
    restarts: NotRequired[RestartsReport]
    """The restarts of suspended jobs in a scheduler's store."""
    sharing: NotRequired[SharingReport]
    """What runs on shared cores had, in a scheduler's store."""


class WatchLine(TypedDict):
    """A line of `--watch --json`: an object for each answer, with `answer` or `error`."""

    at_s: float
    """When it was asked, Unix seconds."""
    answer: NotRequired[object]
    """The answer, as without --watch."""
    error: NotRequired[str]
    """Why there is none, in one line."""
