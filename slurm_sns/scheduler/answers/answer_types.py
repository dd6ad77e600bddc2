"""The types of the scheduler's answers, which the commands print with --json. The reference on the site shows them."""

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from slurm_sns.gpus import by_type
from slurm_sns.model import Resources


class ResourceAmounts(TypedDict):
    """Amounts of the resources of a node, of several, or of what a job demands on each of its nodes."""

    cores: int
    """Slurm's cores, not CPUs."""
    memory_mb: int
    """Memory, MiB."""
    ways: int
    """Last-level-cache ways."""
    bandwidth_gbps: int
    """Memory bandwidth, GB/s."""
    closids: int
    """CLOSIDs; 0 where nobody counts them."""
    gpus: dict[str, int]
    """GPUs by type, under the empty name those without a type or of any; empty where there are none."""


class JobDemand(ResourceAmounts):
    """What a job asks for: on how many nodes, and how much on each."""

    nodes: int
    """The number of nodes."""


class QueuedJobBase(TypedDict):
    """A managed job without its place in the queue."""

    job_id: int
    """Slurm's job id; of a task that stands in its array's record, a larger number of slurm_sns."""
    label: str
    """The job as users write it: `41`, or `41_7` for a task of an array."""
    user: str
    """The owner."""
    account: str
    """The account that it runs under."""
    name: str
    """The job's name."""
    partition: str
    """Its partitions, separated by commas."""
    tasks: int | None
    """The tasks asked for; null if only nodes were."""
    cpus: int
    """The CPUs asked for."""
    state: str
    """What the job is to slurm_sns, such as `waiting`, `running`, `held`; `would be placed` where nothing is placed."""
    submit_s: float
    """When it was submitted, Unix seconds."""
    start_s: float | None
    """When it started, Unix seconds; null until then."""
    nodes: list[str]
    """The nodes that it has or is placed on."""
    reason: str
    """Why it waits, or why it was placed there; of a running job that shares its cores, how it goes on."""


class WaitCause(TypedDict):
    """What a job waits for, in fields by which jobs can be counted. The reason says it in a sentence."""

    kind: str
    """One of `resources`, `nodes`, `too large`, `withheld`, `next`, `queue depth`, `kept`, `held`, `dependency`,
    `begin time`, `limit`, `array limit`, `partition`, `new sizes`, `retry`, `never`, `other`."""
    about: str
    """What the kind is about: the resources that the nearest node lacks, the job for which capacity is withheld and
    its nodes, the limit, the partitions, who holds the job; empty where the kind says all."""
    features: str
    """The features that its nodes must have (`--constraint`), where it waits for nodes; else empty."""


class StartAnswer(TypedDict):
    """When a waiting job is expected to start, in Unix seconds."""

    low_s: float | None
    """The earlier end of a range made so that four of five starts lie in it; null if the look ahead shows no start."""
    high_s: float | None
    """The later end."""
    limits_s: float | None
    """Its start if all jobs run until their time limits; null if that lies beyond the look ahead."""
    not_before_s: float | None
    """How far was looked ahead, where there is no range."""
    waits_for: str
    """Whose nodes it waits for by then: of jobs only the user's own are named."""


class QueueRow(QueuedJobBase):
    """A managed job."""

    waits: WaitCause | None
    """What it waits for; null for a job that does not wait for slurm_sns."""

    position: int | None
    """Its place in the queue, from 1; null for a job that does not wait."""
    over_aged: bool
    """Whether it has waited so long that capacity is withheld for it."""
    demand: JobDemand | None
    """What it asks for: of several ways to run it, the one that was taken or is preferred."""
    starts: StartAnswer | None
    """When it is expected to start; null while nothing is known, and for a job that does not wait."""


class GateCounts(TypedDict):
    """The gates of the waiting jobs."""

    gated: int
    """The jobs that a gate holds back."""
    renewed_per_minute: int
    """The gates that were renewed during the last minute."""
    nearest_s: float | None
    """When the first gate would open if nobody renewed it, Unix seconds."""
    lease_s: int
    """For how long a gate is renewed, seconds."""


class AlikeNodes(TypedDict):
    """Nodes that have the same, and of which as much is free."""

    names: list[str]
    """Their names."""
    capacity: ResourceAmounts
    """What each of them has."""
    free: ResourceAmounts
    """What is free on each of them."""


class ProjectUse(TypedDict):
    """An account's share and what it uses now."""

    share: float
    """Its share, on the scale of the configuration."""
    used: ResourceAmounts
    """What its running and placed jobs hold."""


class ConnectedAgents(TypedDict):
    """The agents of the nodes."""

    nodes: int
    """The nodes that need an agent."""
    connected: int
    """Those of them whose agent is connected."""
    away: list[str]
    """Those without an agent."""
    troubles: dict[str, str]
    """What keeps an agent from working, by node."""
    unpartitioned: dict[str, str]
    """Why an agent does not partition its node's cache, by node."""
    confined: list[str]
    """Those nodes whose jobs share cores on which a job may use some of the CPUs only."""


class LearningCounts(TypedDict):
    """What is being learnt."""

    programs: int
    """Programs, by number of processes, of which something is measured."""
    exploring_runs: int
    """The jobs that explore now."""
    exploring_nodes: int
    """The nodes that they hold."""


class AgentsAndLearning(TypedDict, total=False):
    """What is only said where there are agents."""

    agents: ConnectedAgents
    """The agents; missing where the configuration has none."""
    learning: LearningCounts
    """What is being learnt, if the configuration has agents."""


class EstimateRecord(TypedDict):
    """How good the estimated starts of the last week were."""

    starts: int
    """The starts that had been estimated."""
    inside: int
    """How many of them lay in the range that was told first."""


class UserRestarts(TypedDict):
    """The restarts of one user's suspended jobs in the last 24 hours."""

    user: str
    """The user's name; the id if none of their jobs is in Slurm."""
    restarts: int
    """How often jobs were restarted."""
    lost_core_h: float
    """The work that they have lost at most, core-hours."""
    proposed: int
    """How often a restart was only proposed."""
    proposed_core_h: float
    """The work that those would have lost at most, core-hours."""


class SharingStatus(TypedDict):
    """How it stands where jobs share cores. The pauses are those of the last 24 hours."""

    jobs: int
    """The jobs that run on nodes whose cores are shared, whoever placed them."""
    least_yield: float
    """The smallest part of its cores that one of them gets, 0 to 1; 1 if none runs."""
    pauses: int
    """How often jobs were paused, which is a requeue."""
    lost_core_h: float
    """The work that they have lost at most, core-hours."""
    most_lost_core_h: float
    """The work that pauses may lose (`sharing.most_lost`), core-hours."""


class JobCounts(TypedDict):
    """How many managed jobs are in which state."""

    waiting: int
    """Managed jobs that wait."""
    placing: int
    """Jobs that were placed and that Slurm has not started yet."""
    running: int
    """Managed jobs that run."""
    completing: int
    """Managed jobs that have ended but not left all of their nodes."""
    suspended: int
    """Managed jobs that are suspended."""
    held: int
    """Waiting jobs that somebody holds; they count as waiting, too."""


class StatusAnswer(JobCounts, AgentsAndLearning):
    """The scheduler's state. An ordinary user sees only what concerns their own jobs of it."""

    mode: str
    """`observe`, `advise` or `enforce`."""
    disabled: bool
    """Whether `sns disable` has turned slurm_sns off."""
    at_s: float
    """When the last cycle ended, Unix seconds."""
    cycle_s: float
    """How long the last cycle took, seconds."""
    cycle_p50_s: float
    """The median of the last 600 cycles, seconds."""
    cycle_p99_s: float
    """The time within which 99 % of the last 600 cycles ended, seconds."""
    began_s: float
    """When the first cycle began, Unix seconds."""
    trouble: str
    """What keeps the scheduler from working, such as a Slurm that does not answer; empty if nothing does."""
    cycles: int
    """Cycles since the scheduler began."""
    placed: int
    """Jobs placed since the scheduler began."""
    gates: GateCounts
    """The gates of the waiting jobs."""
    nodes: int
    """The nodes that may be used now."""
    nodes_unavailable: dict[str, str]
    """Why the other nodes may not be used, by node."""
    unreadable: dict[str, str]
    """Jobs and nodes whose records cannot be read, with the reason."""
    differences: dict[str, str]
    """Jobs that Slurm shows otherwise than slurm_sns has changed them, with the difference."""
    node_groups: list[AlikeNodes]
    """How full each usable node is: the equally full ones together."""
    capacity: ResourceAmounts
    """What the usable nodes have, together."""
    free: ResourceAmounts
    """What is free on them, together."""
    chosen: str
    """The heuristic whose schedule the last cycle used; empty if it had nothing to plan."""
    matched: dict[str, int]
    """How many jobs each heuristic would have started in the last cycle."""
    projects: dict[str, ProjectUse]
    """The accounts' shares and use, by account."""
    restarts: list[UserRestarts]
    """Suspended jobs that were restarted elsewhere, or of which that was proposed, in 24 hours, by owner."""
    estimates: EstimateRecord | None
    """What came of the last week's estimated starts; null while there are none."""
    sharing: SharingStatus | None
    """How it stands where jobs share cores; null where no partition shares, or nothing is placed."""


class ConsideredRow(TypedDict):
    """Something that was considered for the job, such as a scale, a node or a heuristic."""

    name: str
    """What was considered."""
    outcome: str
    """What came of it, in a few words."""
    reason: str
    """Why."""
    figures: dict[str, float | str | None]
    """The numbers that led to it, by the headings of their columns."""


class ExplanationValues(TypedDict):
    """What a policy says of one job."""

    summary: list[str]
    """Sentences above the table."""
    heading: str
    """What the rows of the table are."""
    considered: list[ConsideredRow]
    """The table."""
    details: list[str]
    """Sentences below the table."""


class DecisionLine(TypedDict):
    """A line of the decision record."""

    job_id: int
    """The job's id at that time."""
    user_id: int
    """The owner's user id."""
    at_s: float
    """When, Unix seconds."""
    action: str
    """`start`; `restart` of a suspended job, or `proposal` of one; `note` for anything else."""
    nodes: list[str]
    """The nodes that it was placed on, or those on which there was a place for a restart."""
    reason: str
    """Why."""
    cycle_id: int
    """The cycle's number in the database."""
    chosen: str
    """The heuristic whose schedule that cycle used."""
    matched: dict[str, int]
    """How many jobs each heuristic would have started."""
    scale: int
    """On so many times its fewest nodes it was placed."""
    exclusive: bool
    """Whether it got its nodes alone."""
    demand: dict[str, int]
    """What it got on each node, by resource; `gpu` are all GPUs, `gpu:a100` those of a type. Empty for a note."""
    considered: ExplanationValues | None
    """How a spreadable job's alternatives came about, or the terms of a restart; null otherwise."""
    times: int
    """How many times in a row a note came."""


class StartingChange(TypedDict):
    """A change of the request with which the job would have started in the last cycle. The next cycle may differ."""

    kind: str
    """What is changed: `time`, `memory`, `scale`, `tasks per node` or `cpus per task`."""
    options: str
    """The options of `sbatch` that say it, such as `--mem=48G`."""
    nodes: list[str]
    """The nodes on which it would have started."""


class ExplainAnswer(TypedDict):
    """Why a job was placed where it was, or why not yet."""

    job_id: int
    """Slurm's job id."""
    label: str
    """The job as it was asked for: `41`, or `41_7`."""
    pass_through: str | None
    """Why slurm_sns leaves the job to Slurm; null for a managed job."""
    array: str
    """How many tasks of its array are in which state; empty for other jobs."""
    job: QueueRow | None
    """The job as `sns queue` shows it; null when Slurm no longer knows it."""
    decisions: list[DecisionLine]
    """What was decided about it, oldest first."""
    order: str | None
    """By what the queue is ordered, `slurm` or `fair-now`; null for a job that does not wait."""
    considered: ExplanationValues | None
    """How the alternatives of a spreadable job came about."""
    cycle: ExplanationValues | None
    """What the last cycle decided for it, or the one that placed it."""
    would_start: list[StartingChange]
    """The smallest changes that would start a waiting job now, at most one of each kind."""
    unavailable: dict[str, str]
    """Why nodes may not be used, by node."""
    learning: NotRequired[str]
    """What the job explores, or why it does not; only if the configuration has agents."""


class TriedAlternative(TypedDict):
    """A way to run the job that was tried, and how it fits now."""

    demand: JobDemand
    """On how many nodes, and how much of each."""
    scale: int
    """So many times the fewest nodes."""
    exclusive: bool
    """Whether it takes empty nodes."""
    slowdown: float
    """The predicted run time as a multiple of that on the fewest nodes; 1 if nothing is known."""
    fitting: int | None
    """The nodes that had enough at the job's turn; null if the cycle did not come so far."""
    chosen: bool
    """Whether the job would start so now."""


class TryAnswer(TypedDict):
    """Where a job would start if it were submitted now. Nothing is submitted."""

    judgement: Literal["managed", "passes through", "refused"]
    """What the submit filter would do with it."""
    why: str
    """Why it would be refused, or left to Slurm; empty for a managed job."""
    when: Literal["now", "waits", "slurm decides", "never"]
    """`now`: it would have started in the last cycle."""
    nodes: list[str]
    """The nodes on which it would start now."""
    reason: str
    """Why it would start there, or wait."""
    starts: StartAnswer | None
    """When a job that would wait is expected to start; null where it starts now, and where nothing says."""
    position: int | None
    """Its place in the queue, from 1; null for a job that is not planned."""
    waiting: int
    """How many jobs would wait for a plan, with it."""
    alternatives: list[TriedAlternative]
    """The ways to run it, the best first."""
    would_start: list[StartingChange]
    """The smallest changes that would start it now, if it would wait."""
    assumed: list[str]
    """What was assumed where the options do not say."""
    at_s: float
    """When the cycle that was planned again had ended, Unix seconds."""


class SmallerRequestAnswer(TypedDict):
    """What a smaller request for memory would have won a job that slurm_sns placed."""

    placed_s: float
    """When it was placed, Unix seconds."""
    earlier_s: float | None
    """The first of these cycles in which it would have started with the smaller request; null if in none."""
    cycles: int
    """How many recorded cycles were planned again, that of earlier_s included."""


class MeasuredOnNode(TypedDict):
    """What the agent of a node has measured of a job's run there, once it has ended; null is unknown."""

    node: str
    """The node."""
    restarts: int
    """How often the job had been restarted before this run."""
    ended_s: float
    """When the run ended there, Unix seconds."""
    seconds: float
    """For how long it was measured, seconds."""
    least_ways: int
    """The fewest cache ways that it had for itself meanwhile; 0 where the cache is not partitioned."""
    most_ways: int
    """The most cache ways that it had for itself meanwhile."""
    bandwidth_gbps: float | None
    """Its mean memory bandwidth, GB/s."""
    ipc: float | None
    """Its mean instructions per cycle."""
    alone_s: float
    """For how long of these seconds its IPC was measured while no other job was on the node."""
    ipc_alone: float | None
    """Its mean instructions per cycle in that time."""
    ipc_beside: float | None
    """Its mean instructions per cycle in the other time, beside other jobs."""


class MeasuredAnswer(TypedDict):
    """What was measured of jobs, as far as they are the caller's."""

    has_agents: bool
    """Whether the site has agents on its nodes."""
    jobs: dict[str, list[MeasuredOnNode]]
    """The nodes of the last run of each job, by job id; a job of which nothing is known is not in it."""


class JobAnswer(TypedDict):
    """How far a job is: what `sns wait` asks for again and again."""

    label: str
    """The job, or the task of the array that has started."""
    state: Literal["waiting", "started", "ended", "gone"]
    """`ended`: without having started. `gone`: Slurm no longer knows it."""
    nodes: list[str]
    """The nodes of a job that has started; of one that is gone, where it was placed last."""
    reason: str
    """Why it waits."""


class EstimateValues(TypedDict):
    """A measured quantity."""

    count: int
    """Of how many samples."""
    mean: float
    """The mean."""
    spread: float
    """Their standard deviation; 0 with one run."""


class MeasuredPoint(TypedDict):
    """What was measured with so many cache ways."""

    ways: int
    """Cache ways on each node."""
    ipc: EstimateValues | None
    """Instructions per cycle."""
    bandwidth_gbps: EstimateValues | None
    """Memory bandwidth on each node, GB/s."""


class MeasuredScale(TypedDict):
    """What was measured on so many times the fewest nodes."""

    scale: int
    """The scale factor."""
    time_s: EstimateValues | None
    """Run time, seconds."""
    points: list[MeasuredPoint]
    """By cache ways."""


class ExploringJob(TypedDict):
    """A job that explores a scale now."""

    job_id: int | None
    """Its id; null for users who may not see the job."""
    scale: int
    """The scale that it explores."""
    samples: bool
    """Whether its cache ways are changed while it runs."""


class LearntValues(TypedDict):
    """What is learnt of a program with one number of processes."""

    serves: Literal["measured", "imported"] | None
    """The profile by which jobs run; null while there is none."""
    is_explored: bool
    """Whether all scales are explored."""
    strange_runs: int
    """How many of the last runs differ from the profile."""
    given_up: dict[int, int]
    """How many exploring runs in a row gave no measurement, by scale."""
    exploring: ExploringJob | None
    """The job that explores now."""
    measured: list[MeasuredScale]
    """What is measured."""
    re_measurement: list[MeasuredScale] | None
    """What is measured again so far; null if nothing is."""


#: The class of a program with one number of processes. It has a field `class`, which no class body can have.
ProgramClassValues = TypedDict(
    "ProgramClassValues",
    {
        "processes": Annotated[int, Field(description="The number of processes.")],
        "class": Annotated[str, Field(description="`scaling`, `compact` or `neutral`.")],
        "ideal_scale": Annotated[int, Field(description="The scale with the shortest run time.")],
        "bottleneck": Annotated[str | None, Field(description="What the program is short of; null if of nothing.")],
    },
)


class ProgramSummary(TypedDict):
    """A program and its classes."""

    program: str
    """The program's name."""
    source: str
    """Where its profile comes from, in words; empty while it is only explored."""
    max_scale: int | None
    """The largest scale that it may run at; null for no limit."""
    classes: list[ProgramClassValues]
    """Its class at each profiled number of processes."""
    learnt: NotRequired[dict[int, LearntValues]]
    """What is learnt of it, by number of processes, if anything is."""


def amounts(of: Resources) -> ResourceAmounts:
    """The resources as JSON values."""
    return {
        "cores": of.cores,
        "memory_mb": of.memory_mb,
        "ways": of.ways,
        "bandwidth_gbps": of.bandwidth_gbps,
        "closids": of.closids,
        "gpus": by_type(of.gpus),
    }
