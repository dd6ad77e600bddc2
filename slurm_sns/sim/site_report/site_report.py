"""Make the report on a site: read its accounting, choose weeks, replay them, compare. Values, no texts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.config.settings import SchedulerSection
from slurm_sns.errors import BadInput
from slurm_sns.policies.baselines.parameters import SlurmParameters
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.sim.pages.running import ReportProgress, Workers, no_report
from slurm_sns.sim.site_report.advice import PartitionAdvice, advise, longest_interval
from slurm_sns.sim.site_report.comparison import (
    SIZES,
    Compared,
    LongerWait,
    Waits,
    by_group,
    compared,
    longest,
    size_of,
)
from slurm_sns.sim.site_report.judged_sample import Judged, LineSample, judge_sample
from slurm_sns.sim.site_report.replays import MAX_JOBS, SLURM_ALONE, LiveRules, Piece, WeekRun, live_rules, run_piece
from slurm_sns.sim.site_report.waiting_reasons import Instants, capacity_of, gpu_types
from slurm_sns.sim.site_report.windows import Weeks, WeekWindow, chosen, cut, weeks_of, work_of
from slurm_sns.sim.trace import TraceArrays, no_job_left
from slurm_sns.sim.traces.cluster_nodes import read_site_cluster
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.sacct_trace import header_of_sacct, read_sacct

#: The interval of a cluster by default, and longer ones.
INTERVALS_S = (round(SchedulerSection().interval_s), 5, 30, 60)
#: Weeks are chosen until so many jobs are replayed: what two cores replay in a minute.
MOST_WORK = 300_000.0


@dataclass(frozen=True)
class ReportRequest:
    """What is asked for. `partitions`: only their jobs are measured, all others are replayed with them; none for all.

    `weeks`: how many are replayed, 0 for all; None: as many as are quick.
    """

    dump: str
    nodes: str
    policy: str = MAX_JOBS
    partitions: Sequence[str] = ()
    weeks: int | None = None
    seed: int = 0


class IdleGpus(NamedTuple):
    """GPUs of a type (empty: without one) that stand idle while something waits: how many there are, and which parts.

    `stranded_h` are the stranded GPU-hours of the replayed weeks.
    """

    type: str
    gpus: int
    idle: float
    stranded: float
    stranded_h: float


class Idle(NamedTuple):
    """Parts of the site that stand idle while something waits: all of it, and what is stranded; cores, then memory.

    `gpus` has the types of GPUs that nodes have.
    """

    idle: tuple[float, float]
    stranded: tuple[float, float]
    gpus: Sequence[IdleGpus] = ()


@dataclass(frozen=True)
class SiteReport:
    """What was found. `mean_wait_s` is that of slurm_sns by its interval; the comparisons are those of the first one.

    `waiting_h` are hours of waiting under Slurm alone by partition, for each of REASONS. `queue` is the number of
    waiting jobs at the instants, one each `step_s`, of the week `queue_week` in which most wait, under Slurm alone and
    under slurm_sns.
    """

    asked: ReportRequest
    trace_jobs: int
    dropped: Mapping[str, int]
    site: tuple[int, int, int]  #: nodes, cores, memory in MiB
    live: LiveRules
    has_limits: bool
    has_priorities: bool
    weeks: Weeks
    replayed: Sequence[int]
    #: Jobs that were replayed, those at the begins of the weeks and in their tails, too; and those late at the begins.
    replayed_jobs: int
    running: int
    late: int
    judged: Judged
    overall: Compared
    partitions: Sequence[Compared]
    sizes: Sequence[Compared]
    advice: Sequence[PartitionAdvice]
    longest: Sequence[LongerWait]
    mean_wait_s: Mapping[int, float]
    waiting_h: Mapping[str, Sequence[float]]
    slurm_idle: Idle
    sns_idle: Idle
    queue_week: int
    step_s: int
    queue: tuple[Sequence[int], Sequence[int]] = field(default=((), ()))

    @property
    def interval_s(self) -> int:
        """The advised interval."""
        return longest_interval(self.mean_wait_s)


class Sample(NamedTuple):
    """The lines to judge, as a piece of work beside the replays."""

    name: str
    text: str
    lines: int
    sampled: int


class SiteRecord(NamedTuple):
    """What was read: the nodes, the trace in order, a sample of the lines, the dump's columns, how Slurm schedules."""

    node_arrays: NodeArrays
    trace: TraceArrays
    sample: LineSample
    columns: frozenset[str]
    slurm: SlurmParameters | None


def read_record(asked: ReportRequest, report: ReportProgress = no_report) -> SiteRecord:
    """Read the dump and the nodes; `report` counts bytes.

    Raises:
        BadInput: a file cannot be read, or says too little; the message says what is valid.
    """
    live_rules(asked.policy)  # a wrong name is told before the reading
    site = read_site_cluster(asked.nodes)
    source, sample = TraceFile.of(asked.dump), LineSample(asked.seed)
    header = header_of_sacct(source)
    if header is None:
        raise BadInput(f"{asked.dump}: no dump of sacct; valid: {VALID_DUMP}")
    total = source.size()

    def see(data: bytes) -> None:
        sample.see(data)
        report(sample.letters, max(total, sample.letters))

    trace = read_sacct(
        source,
        site.node_arrays,
        site.partitions,
        user_estimates=bool(LIMITS & {*header.columns}),
        recorded=True,
        on_part=see,
    )
    ordered = trace.in_order(by_number=True)
    return SiteRecord(site.node_arrays, ordered, sample, frozenset(header.columns), site.slurm)


def site_report(
    asked: ReportRequest, record: SiteRecord, workers: Workers, report: ReportProgress = no_report
) -> SiteReport:
    """The report. The same files and seed give the same one, in whatever order the lines stand.

    Raises:
        BadInput: the record says too little; the message says what is valid.
    """
    trace = record.trace
    live = replace(live_rules(asked.policy), slurm=record.slurm)
    weeks = weeks_of(trace)
    replayed = _chosen_weeks(asked, trace, weeks)
    windows = [_window(asked, trace, weeks, week) for week in replayed]
    sample = Sample(asked.dump, *_lines(record.sample))
    judged, runs = _worked(windows, record.node_arrays, live, sample, lambda pieces: workers(work, pieces, report))
    return _report(asked, record, live, judged, _Replayed(weeks, replayed, windows, runs))


#: An error names so many partitions.
MOST_NAMES = 20
LIMITS = {"TimelimitRaw", "Timelimit"}
VALID_DUMP = "what `sacct -aPX --delimiter=$'\\t' ...` prints, with its header (docs/admins/report.md)"


#: Of each week the run as SLURM_ALONE and with each interval.
_Runs = list[dict[int, WeekRun]]


class _Replayed(NamedTuple):
    """The weeks of the trace, which of them were replayed, each as a window, and the runs of each."""

    weeks: Weeks
    weeks_replayed: Sequence[int]
    windows: Sequence[WeekWindow]
    runs: _Runs


def _lines(sample: LineSample) -> tuple[str, int, int]:
    text, sampled = sample.text()
    return text, sample.lines, sampled


def _chosen_weeks(asked: ReportRequest, trace: TraceArrays, weeks: Weeks) -> list[int]:
    work = work_of(trace, weeks)
    count = len(work) if asked.weeks == 0 else asked.weeks
    found = chosen(work, MOST_WORK, count, asked.seed)
    if not found:
        raise no_job_left(asked.dump, trace.dropped)
    return found


def _window(asked: ReportRequest, trace: TraceArrays, weeks: Weeks, week: int) -> WeekWindow:
    window = cut(trace, weeks.begins_s[week], weeks.length_s)
    if not asked.partitions:
        return window
    there = [trace.partitions[each] for each in np.unique(trace.partition).tolist()]
    if unknown := sorted({*asked.partitions} - {*there}):
        valid = ", ".join(there[:MOST_NAMES]) + (", ..." if len(there) > MOST_NAMES else "")
        raise BadInput(f"--partition {unknown[0][:40]}: no job of it in the dump; valid: {valid}")
    places = [trace.partitions.index(each) for each in asked.partitions]
    return replace(window, measured=window.measured & np.isin(window.trace.partition, places))


def _worked(
    windows: Sequence[WeekWindow],
    node_arrays: NodeArrays,
    live: LiveRules,
    sample: Sample,
    work_on: Callable[[Sequence["Piece | Sample"]], Sequence["WeekRun | Judged"]],
) -> tuple[Judged, _Runs]:
    """Do the replays and judge the sample; what takes longest begins first."""
    largest = sorted(range(len(windows)), key=lambda each: -len(windows[each].trace))
    runs = [(week, interval_s) for interval_s in (SLURM_ALONE, *INTERVALS_S) for week in largest]
    pieces: list[Piece | Sample] = [
        Piece(week, interval_s, windows[week], node_arrays, live, interval_s in (SLURM_ALONE, INTERVALS_S[0]))
        for week, interval_s in runs
    ]
    judged, *done = work_on([sample, *pieces])
    assert isinstance(judged, Judged)  # noqa: S101  for mypy: the first piece is the sample
    found: _Runs = [{} for _ in windows]
    for (week, interval_s), run in zip(runs, done, strict=True):
        assert isinstance(run, WeekRun)  # noqa: S101  for mypy
        found[week][interval_s] = run
    return judged, found


def work(piece: Piece | Sample) -> WeekRun | Judged:
    """One piece of work."""
    return judge_sample(*piece) if isinstance(piece, Sample) else run_piece(piece)


def _report(
    asked: ReportRequest,
    record: SiteRecord,
    live: LiveRules,
    judged: Judged,
    done: "_Replayed",
) -> SiteReport:
    weeks, replayed, windows, runs = done
    if not any(window.measured.any() for window in windows):
        raise BadInput(f"{asked.dump}: no job was submitted in the replayed weeks; valid: another --seed, or --weeks 0")
    first = INTERVALS_S[0]
    waits = _waits(windows, [(run[SLURM_ALONE].wait_s, run[first].wait_s) for run in runs])
    seed, partitions, node_arrays = asked.seed, record.trace.partitions, record.node_arrays
    of_partitions = by_group(waits, waits.partition, partitions, seed)
    busiest = int(np.argmax([run[SLURM_ALONE].wait_s.sum() for run in runs]))
    slurm, sns = ([_looked(run[each]) for run in runs] for each in (SLURM_ALONE, first))
    waiting_h = np.sum([each.waiting_h for each in slurm], axis=0)
    total = node_arrays.total
    return SiteReport(
        asked,
        len(record.trace),
        record.trace.dropped,
        (len(node_arrays.names), total.cores, total.memory_mb),
        live,
        bool(LIMITS & record.columns),
        "Priority" in record.columns,
        weeks,
        replayed,
        replayed_jobs=sum(len(window.trace) for window in windows),
        running=sum(window.running for window in windows),
        late=sum(run[SLURM_ALONE].late for run in runs),
        judged=judged,
        overall=compared(waits, "all jobs", np.ones(len(waits.identity), np.bool_), seed),
        partitions=of_partitions,
        sizes=by_group(waits, waits.size, SIZES, seed),
        advice=[
            advise(each, judged.managed.get(each.name))
            for each in sorted(of_partitions, key=lambda each: (-each.jobs, each.name))
        ],
        longest=longest(waits, partitions),
        mean_wait_s={each: float(np.concatenate([run[each].wait_s for run in runs]).mean()) for each in INTERVALS_S},
        waiting_h={name: row.tolist() for name, row in zip(partitions, waiting_h, strict=True) if row.any()},
        slurm_idle=_idle(slurm, node_arrays),
        sns_idle=_idle(sns, node_arrays),
        queue_week=replayed[busiest],
        step_s=slurm[busiest].step_s,
        queue=(slurm[busiest].waiting.tolist(), sns[busiest].waiting.tolist()),
    )


def _looked(run: WeekRun) -> Instants:
    assert run.instants is not None  # noqa: S101  for mypy: these runs are looked at
    return run.instants


def _waits(windows: Sequence[WeekWindow], runs: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]]) -> Waits:
    """The measured jobs of all windows."""

    def all_of(columns: Sequence[NDArray[np.integer]]) -> NDArray[np.int64]:
        return np.concatenate(columns).astype(np.int64)

    traces = [window.trace.only(window.measured) for window in windows]
    return Waits(
        identity=all_of([each.identity for each in traces]),
        week=np.repeat(np.arange(len(traces)), [len(each) for each in traces]),
        partition=all_of([each.partition for each in traces]),
        size=all_of([size_of(each.kinds)[each.kind] for each in traces]),
        nodes=all_of([np.array([kind[0] for kind in each.kinds])[each.kind] for each in traces]),
        cores=all_of([np.array([kind[1] for kind in each.kinds])[each.kind] for each in traces]),
        recorded_s=all_of([window.recorded_wait_s[window.measured] for window in windows]),
        slurm_s=all_of([slurm for slurm, _ in runs]),
        sns_s=all_of([sns for _, sns in runs]),
    )


def _idle(instants: Sequence[Instants], node_arrays: NodeArrays) -> Idle:
    """Parts of the site, on average over the instants at which something waits; 0 if there are none."""
    busy = max(1, sum(each.busy for each in instants))
    has = capacity_of(node_arrays)
    whole = np.maximum(1, has * busy)
    idle, stranded = (
        (np.sum([getattr(each, name) for each in instants], axis=0) / whole).tolist() for name in ("idle", "stranded")
    )
    busy_h = sum(each.busy * each.step_s for each in instants) / 3600
    of_types = zip(gpu_types(node_arrays), has[2:].astype(int).tolist(), idle[2:], stranded[2:], strict=True)
    gpus = [
        IdleGpus(kind, there, idle_part, stranded_part, stranded_part * there * busy_h)
        for kind, there, idle_part, stranded_part in of_types
        if there
    ]
    return Idle((idle[0], idle[1]), (stranded[0], stranded[1]), gpus)
