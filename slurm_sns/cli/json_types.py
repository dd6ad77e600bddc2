"""The types of what commands print with --json, beside the answers of the scheduler and those about a node."""

from typing import NotRequired

from typing_extensions import TypedDict

from slurm_sns.scheduler.answers.answer_types import ProgramSummary


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
    """The version of this form: 1."""
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


class WatchLine(TypedDict):
    """A line of `--watch --json`: an object for each answer, with `answer` or `error`."""

    at_s: float
    """When it was asked, Unix seconds."""
    answer: NotRequired[object]
    """The answer, as without --watch."""
    error: NotRequired[str]
    """Why there is none, in one line."""
