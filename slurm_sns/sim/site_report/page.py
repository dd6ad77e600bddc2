"""The report on a site as a page: sentences, tables and charts for an admin who knows nothing of the theory."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from slurm_sns.coverage.judged import MANAGED, NEVER_SHOWN
from slurm_sns.policies.baselines.parameters import SlurmParameters
from slurm_sns.report.document import ChartPoint, ReportChart, ReportPage, ReportSection, ReportTable
from slurm_sns.sim.site_report.advice import DEARER, NEAR_FACTOR, NEAR_S, is_near
from slurm_sns.sim.site_report.comparison import NOTICED_S, Compared
from slurm_sns.sim.site_report.judged_sample import left_to_slurm
from slurm_sns.sim.site_report.replays import LiveRules
from slurm_sns.sim.site_report.site_report import INTERVALS_S, Idle, IdleGpus, SiteReport
from slurm_sns.sim.site_report.windows import DAY_S, FEWEST, WEEK_S
from slurm_sns.sim.site_report.words import count, difference, listed, name, part, span

SLURM, SNS = "Slurm alone", "slurm_sns"
#: The page has so many partitions, those with the most jobs, and a chart has fewer.
MOST_ROWS, MOST_BARS = 30, 12
#: What each reason means, in the order of REASONS.
WHY = (
    "enough was free for it: jobs before it in the queue, or a booking for one of them, kept it waiting",
    "enough nodes had its cores free, but not its memory",
    "enough nodes had its memory free, but not its cores",
    "neither would have been enough",
    "enough nodes had its cores and memory free, but not its GPUs",
)
REASON_COLUMNS = ("room: others first", "memory", "cores", "both", "GPUs")
#: What the simulation leaves out, and so what a difference between recorded and simulated waits may come from.
NOT_SIMULATED = (
    "Neither simulation knows reservations, limits of users, accounts and QOS, dependencies and begin times, "
    "preemption, nodes that were down, or priorities that change while a job waits."
)


def page_of(report: SiteReport) -> ReportPage:
    """The page."""
    sections = (_advice(report), _gain(report), _harm(report), _why(report), _stranded(report))
    more = (_left_alone(report), _trust(report), _basis(report), _next())
    return ReportPage(
        f"What slurm_sns would gain: {Path(report.asked.dump).name}", [*_summary(report)], [*sections, *more]
    )


# --- in a minute


def _summary(report: SiteReport) -> Iterator[str]:
    overall = report.overall
    brackets = (
        f"There is no 95 % interval: that needs {FEWEST} weeks."
        if overall.interval is None
        else "In brackets is the 95 % interval."
    )
    yield (
        f"In a simulation of {_replayed(report)} of your accounting, a job waits {span(overall.sns[0])} on average "
        f"under {SNS}, and {span(overall.slurm[0])} under {SLURM}: "
        f"{difference(overall.difference_s, overall.interval)}. {brackets}"
    )
    by_verdict: dict[str, list[str]] = {}
    for each in report.advice:
        by_verdict.setdefault(each.verdict, []).append(name(each.partition))
    for verdict, words in (
        ("manage", "Let it manage"),
        ("do not manage", "Do not let it manage"),
        ("nothing to gain", "Nothing to gain in"),
        ("cannot tell", "This report cannot tell for"),
    ):
        if found := by_verdict.get(verdict):
            yield f"{words}: {_first(found)}."
    yield from _does_not_help(report)
    if not is_near(overall.recorded[0], overall.slurm[0]):
        yield (
            f"Take care: the record has a mean wait of {span(overall.recorded[0])}, the simulated Slurm one of "
            f"{span(overall.slurm[0])}. They are far apart, so the difference above is not to be relied on."
        )


def _does_not_help(report: SiteReport) -> Iterator[str]:
    worse = [each.name for each in report.sizes if each.interval is not None and each.interval.is_above_0]
    if worse:
        yield f"It does not help jobs of {listed(worse)}: they would wait longer."
    overall = report.overall
    if overall.later > 0:
        yield (
            f"{part(overall.later)} of the jobs would start more than {span(NOTICED_S)} later than under {SLURM}, and "
            f"{part(overall.earlier)} more than that earlier."
        )


def _replayed(report: SiteReport) -> str:
    """What was replayed: `3 weeks`, or `6.4 h` of a dump that has no full week."""
    is_weeks = report.weeks.length_s == WEEK_S
    return count(len(report.replayed), "week") if is_weeks else span(report.weeks.length_s)


# --- advice


def _advice(report: SiteReport) -> ReportSection:
    rows = [(name(each.partition), each.verdict, each.why) for each in report.advice[:MOST_ROWS]]
    by_interval = ", ".join(f"{each} s: {span(report.mean_wait_s[each])}" for each in INTERVALS_S)
    sentences = [
        (
            "That jobs would wait less or longer is said only where the 95 % interval of the difference lies on one "
            "side of 0, and where the simulated Slurm waits about as long as the record says. Other advice needs no "
            "interval."
        ),
        (
            f"If you let it manage a partition: policy {report.asked.policy}, which needs no profiles of programs, and "
            f"{report.interval_s} s between two cycles. That is the longest of "
            f"{listed([str(each) for each in INTERVALS_S])} s that costs at most "
            f"{part(DEARER)} of mean wait: {by_interval}."
        ),
    ]
    more = len(report.advice) - len(rows)
    note = f"And {more:,} more partitions, with fewer jobs; --json has them all." if more else ""
    return ReportSection("Advice", sentences, [ReportTable(("partition", "advice", "why"), rows, note=note)])


def _first(names: list[str]) -> str:
    """The first of these names, and how many more there are."""
    more = len(names) - MOST_ROWS
    return listed(names) if more <= 0 else f"{', '.join(names[:MOST_ROWS])} and {more:,} more"


# --- what would change


def _gain(report: SiteReport) -> ReportSection:
    partitions = _most_jobs(report.partitions)
    note = (
        "Mean wait, and in brackets the 95th percentile: 5 % of the jobs wait longer. The difference is that of the "
        "two simulated means, with its 95 % interval."
    )
    columns = ("jobs", "recorded", SLURM, SNS, "difference", "earlier", "later")
    tables = [
        ReportTable((first, *columns), [_row(each) for each in groups], frozenset(range(1, 8)), note)
        for first, groups in (("partition", partitions), ("size", report.sizes))
    ]
    notes = [
        (
            "Both columns of waits besides the recorded one are simulated. `earlier` and `later` are the parts of the "
            f"jobs that start more than {span(NOTICED_S)} earlier or later under {SNS}."
        )
    ]
    if len(report.partitions) > len(partitions):
        notes.append(f"Of {len(report.partitions)} partitions those with the most jobs are shown; --json has all.")
    if report.asked.partitions:
        notes.append("Measured are the jobs of the partitions that were named; all others are replayed with them.")
    charts = [
        _bars("Mean wait by partition", "partition", partitions[:MOST_BARS]),
        _bars("Mean wait by size", "size", report.sizes),
        _queue(report),
    ]
    return ReportSection("What would start earlier", notes, tables, charts)


def _most_jobs(groups: Sequence[Compared]) -> list[Compared]:
    return sorted(groups, key=lambda each: (-each.jobs, each.name))[:MOST_ROWS]


def _row(each: Compared) -> tuple[str, ...]:
    waits = (f"{span(mean)} ({span(high)})" for mean, high in (each.recorded, each.slurm, each.sns))
    shown = difference(each.difference_s, each.interval)
    return (name(each.name), f"{each.jobs:,}", *waits, shown, part(each.earlier), part(each.later))


def _bars(title: str, along: str, groups: Sequence[Compared]) -> ReportChart:
    series: dict[str, Sequence[ChartPoint]] = {
        SLURM: [ChartPoint(name(each.name), round(each.slurm[0] / 60, 3)) for each in groups],
        SNS: [ChartPoint(name(each.name), round(each.sns[0] / 60, 3)) for each in groups],
    }
    return ReportChart(title, "bars", series, (along, "minutes"))


def _queue(report: SiteReport) -> ReportChart:
    slurm, sns = (
        [ChartPoint((at + 1) * report.step_s / DAY_S, float(jobs)) for at, jobs in enumerate(waiting)]
        for waiting in report.queue
    )
    title = f"Waiting jobs in the time with the most waiting: from day {_first_day(report)} of the dump on"
    return ReportChart(title, "lines", {SLURM: slurm, SNS: sns}, ("days", "jobs"))


def _first_day(report: SiteReport) -> str:
    return f"{report.weeks.begins_s[report.queue_week] / DAY_S:.1f}"


def _harm(report: SiteReport) -> ReportSection:
    rows = [
        (each.job, name(each.partition), f"{each.nodes} x {each.cores}", span(each.slurm_s), span(each.sns_s))
        for each in report.longest
    ]
    if not rows:
        return ReportSection("What would wait longer", ["No measured job would wait longer."])
    columns = ("job", "partition", "nodes x cores", SLURM, SNS)
    sentences = [
        (
            f"These {len(rows)} jobs would lose most time. {_withholding(report.live)} In between, a job that needs "
            "many free cores or nodes at once may be overtaken by small ones."
        )
    ]
    return ReportSection("What would wait longer", sentences, [ReportTable(columns, rows, frozenset((0, 2, 3, 4)))])


def _withholding(live: LiveRules) -> str:
    """How long capacity is withheld for a job."""
    upto, old = live.rules.withhold_up_to_s, live.age_limit_s
    first = "" if upto is None else f" until it has waited {span(upto)}"
    again = "" if old is None else f", and again once it has waited {span(old)}"
    return f"{SNS} withholds capacity for the first job of the queue{first}{again}."


# --- why jobs wait


def _why(report: SiteReport) -> ReportSection:
    by_hours = sorted(report.waiting_h.items(), key=lambda each: (-sum(each[1]), each[0]))[:MOST_ROWS]
    total = [sum(column) for column in zip(*report.waiting_h.values(), strict=True)]
    if not sum(total):
        return ReportSection("What waited, and why", [f"At no instant that was looked at a job waited under {SLURM}."])
    shown = slice(None) if total[-1] else slice(-1)  # most sites have no GPUs
    rows = [
        (name(partition), f"{sum(hours):,.0f}", *(part(each / sum(hours)) for each in hours[shown]))
        for partition, hours in (("all", total), *by_hours)
    ]
    sentences = [
        (
            f"Under {SLURM}, simulated, the state of every node was looked at each {span(report.step_s)}. Each waiting "
            "job counts with its time of waiting, by the reason that kept it:"
        ),
        *(f"{column}: {why}." for column, why in zip(REASON_COLUMNS[shown], WHY[shown], strict=True)),
        (
            f"{SNS} can help against the first two: it lets other jobs use what is free, and mixes jobs so that memory "
            "and cores run out together. Against a lack of cores or GPUs it can do nothing."
        ),
    ]
    columns = ("partition", "waiting hours", *REASON_COLUMNS[shown])
    table = ReportTable(columns, rows, frozenset(range(1, len(columns))))
    return ReportSection("What waited, and why", sentences, [table])


def _stranded(report: SiteReport) -> ReportSection:
    slurm, sns = report.slurm_idle, report.sns_idle
    title = "Stranded cores, memory and GPUs" if slurm.gpus else "Stranded cores and memory"
    if not any((*slurm.idle, *sns.idle, *(each.idle for each in (*slurm.gpus, *sns.gpus)))):
        return ReportSection(title, ["Nothing stood idle while a job waited, or no job waited."])
    rows = [
        (what, *(part(getattr(each, kind)[at]) for each in (slurm, sns) for kind in ("idle", "stranded")))
        for at, what in enumerate(("cores", "memory"))
    ]
    columns = ("", f"idle, {SLURM}", f"stranded, {SLURM}", f"idle, {SNS}", f"stranded, {SNS}")
    sentences = [
        (
            "All numbers are parts of all cores, or of all memory, on average while some job waits. Cores are "
            "stranded where they are idle, no waiting job fits on their node, and some waiting job would if memory did "
            "not count."
        ),
        (
            "Memory is stranded in the same way where cores are short: where cores limit the site, most of the idle "
            "memory is."
        ),
    ]
    points: dict[str, Sequence[ChartPoint]] = {
        who: [
            *(ChartPoint(what, round(100 * each.stranded[at], 3)) for at, what in enumerate(("cores", "memory"))),
            *(ChartPoint(_gpus(of), round(100 * of.stranded, 3)) for of in each.gpus[:MOST_BARS]),
        ]
        for who, each in ((SLURM, slurm), (SNS, sns))
    }
    chart = ReportChart("Stranded while some job waits", "bars", points, ("", "% of the site"))
    tables = [ReportTable(columns, rows, frozenset(range(1, 5)))]
    if slurm.gpus:
        sentences.append(
            "GPUs of a type are stranded where they are idle, no waiting job that can use them fits on their node, and "
            "some such job would if cores and memory did not count. GPU-hours are stranded GPUs times hours, over "
            "the replayed time."
        )
        tables.append(_stranded_gpus(slurm, sns))
    return ReportSection(title, sentences, tables, [chart])


def _stranded_gpus(slurm: Idle, sns: Idle) -> ReportTable:
    columns = ("", "number", *(f"{what}, {who}" for who in (SLURM, SNS) for what in ("idle", "stranded", "GPU-hours")))
    rows = [
        (
            _gpus(one),
            f"{one.gpus:,}",
            *(text for of in (one, other) for text in (part(of.idle), part(of.stranded), f"{of.stranded_h:,.0f}")),
        )
        for one, other in zip(slurm.gpus, sns.gpus, strict=True)
    ]
    return ReportTable(columns, rows, frozenset(range(1, 8)))


def _gpus(each: IdleGpus) -> str:
    return f"GPUs {name(each.type)}" if each.type else "GPUs without a type"


# --- what it would leave alone


def _left_alone(report: SiteReport) -> ReportSection:
    judged = report.judged
    if judged.found is None:
        return ReportSection("What it would leave to Slurm", [f"The dump does not say: {judged.problem}."])
    managed = [judged.found.part(each) for each in judged.found.tallies if each.reason == MANAGED]
    of_jobs, of_hours = managed[0] if managed else (0.0, 0.0)
    sample = (
        f"All {judged.lines:,} lines were judged"
        if judged.sampled == judged.lines
        else f"{judged.sampled:,} of {judged.lines:,} lines, chosen by chance, were judged"
    )
    sentences = [
        (
            f"{sample} as the submit filter judges submissions: it would manage {part(of_jobs)} of the jobs with "
            f"{part(of_hours)} of the core-hours. The rest would stay Slurm's, by the first reason met."
        ),
        f"In the replays {SNS} places the others, too: where they are many, it gains less than is shown.",
        f"A dump does not say everything: {NEVER_SHOWN}.",
    ]
    rows = [(reason, part(jobs), part(hours)) for reason, jobs, hours in left_to_slurm(judged.found)]
    tables = [ReportTable(("reason", "jobs", "core-hours"), rows, frozenset((1, 2)))] if rows else []
    return ReportSection("What it would leave to Slurm", sentences, tables)


# --- how far to trust it


def _trust(report: SiteReport) -> ReportSection:
    overall = report.overall
    far = [name(each.name) for each in report.partitions if not is_near(each.recorded[0], each.slurm[0])]
    near = "They are" if is_near(overall.recorded[0], overall.slurm[0]) else "They are not"
    sentences = [
        (
            f"The check of the simulation: the recorded mean wait is {span(overall.recorded[0])}, that of the "
            f"simulated Slurm {span(overall.slurm[0])}. {near} within a factor of {NEAR_FACTOR:g}, or {span(NEAR_S)}, "
            "of each other."
        ),
        _scheduling(report.live.slurm),
        NOT_SIMULATED,
        "Recorded waits have all that in them, also the time in which a job waited for another one.",
    ]
    if far:
        sentences.append(f"Further apart than a factor of {NEAR_FACTOR:g}: {_first(far)}. Do not rely on their rows.")
    if not report.has_limits:
        sentences.append("The dump has no TimelimitRaw: the simulated Slurm knows how long each job will run.")
    if report.has_priorities:
        sentences.append("Both simulations take the jobs by the Priority that the dump has, which is the last one.")
    else:
        sentences.append("The dump has no Priority: both simulations take the jobs by their submits.")
    sentences.append(f"{_withholding(report.live)} On a cluster the first limit is by user.")
    return ReportSection("How far to trust it", sentences)


def _scheduling(slurm: SlurmParameters | None) -> str:
    if slurm is None:
        return f"{SLURM} has the defaults of SchedulerParameters; with --slurm-conf FILE it has those of your site."
    window = span(slurm.bf_window_s)
    return (
        f"{SLURM} has the SchedulerParameters of your slurm.conf: bf_interval {slurm.bf_interval_s} s, bf_max_job_test "
        f"{slurm.bf_max_job_test}, bf_window {window}. Its limits of jobs by user or partition are not modelled."
    )


def _basis(report: SiteReport) -> ReportSection:
    nodes, cores, memory_mb = report.site
    weeks, many = len(report.weeks.begins_s), len(report.replayed)
    replayed = (
        f"{many} of {count(weeks, 'full week')} were replayed, chosen by seed {report.asked.seed}"
        if report.weeks.length_s == WEEK_S
        else f"The dump has no full week, so all of its {span(report.weeks.length_s)} were replayed at once"
    )
    sentences = [
        (
            f"The dump has {report.trace_jobs:,} jobs that can be replayed on the {nodes:,} nodes with {cores:,} "
            f"cores and {memory_mb / 1024:,.0f} GiB."
        ),
        (
            f"{replayed}: {report.replayed_jobs:,} jobs, of which {report.overall.jobs:,} were submitted in that "
            "time and are measured. The others ran or waited at its begin, or came in the day after it."
        ),
        (
            f"Of {report.running:,} jobs that ran at the begin by the record, {report.late:,} found no place at once "
            f"under {SLURM}."
        ),
    ]
    if many < FEWEST:
        valid = "a dump of more weeks (-S now-60days)" if weeks < FEWEST else "a larger --weeks"
        sentences.append(f"An interval needs at least {FEWEST} weeks: give it {valid}.")
    rows = [(reason, f"{jobs:,}") for reason, jobs in report.dropped.items()]
    tables = []
    if rows:
        sentences.append("Lines that were left out; what such jobs used counts as free in both simulations:")
        tables = [ReportTable(("left out", "lines"), rows, frozenset((1,)))]
    return ReportSection("What it rests on", sentences, tables)


def _next() -> ReportSection:
    sentences = [
        (
            "Watch it on the live cluster before anything is installed: `sns observe`, as any user of a login node "
            "(docs/admins/observe.md)."
        ),
        (
            "Then install it in the mode observe, in which it changes no job (docs/admins/install.md), and begin "
            "with one small partition."
        ),
    ]
    return ReportSection("Next step", sentences)
