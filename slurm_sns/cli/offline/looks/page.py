"""The page of the looks of `sns observe`: what slurm_sns would have started earlier, and what that means."""

from array import array
from collections.abc import Callable, Iterator, Sequence
from math import nan

from slurm_sns.cli.json_types import FollowedJobsValues, LongestWaitValues, LooksReport
from slurm_sns.cli.live.terminal import zoned_clock
from slurm_sns.cli.offline.looks.followed import FollowedJobs
from slurm_sns.durations import duration
from slurm_sns.report.document import ChartPoint, ReportChart, ReportPage, ReportSection, ReportTable

TITLE = "What slurm_sns would have started earlier"
#: A line of the chart has at most so many points.
MOST_POINTS = 200
#: A pause is a gap in the chart if it is so many times the usual one, or longer than a point stands for.
GAP = 10
#: From so long a watch on, the chart counts days.
DAYS_S = 4 * 86400
#: A shorter watch says nothing by having seen nothing.
DAY_S = 86400
#: What a table shows where there is no number.
NONE = "-"
#: A table of partitions shows so many of them.
MOST_ROWS = 30

NO_HELP = "As far as these looks show, it does not help here."
SHOWN = (
    "What it shows: at the moment of each advice the job's nodes had its cores and its memory free, under the rules "
    "that slurm_sns knows of your site. Slurm used that room for the job only later, or not at all."
)
NOT_SHOWN = (
    "What it cannot show: what the whole cluster gains. Each look begins from the state that Slurm has made. A job "
    "that starts earlier holds its nodes earlier, and others then find less room; two looks may offer the same room to "
    "two jobs. So the times must not be added up."
)
RUNS = (
    "Each run of sns observe begins anew: of a job that waited at the end of one, it is not known what became of it, "
    "unless a later run advised it again."
)
REASONS = (
    "Slurm may have had reasons that a look does not see: limits of other users' accounts, licences, a reservation "
    "made in between, or an option that it does not show."
)
NEXT = (
    "Next: sns report DUMP replays weeks of your accounting and measures the gain. One partition in the mode enforce "
    "measures it on the cluster."
)


def page_of(values: LooksReport, followed: FollowedJobs) -> ReportPage:
    """The page."""
    sections = [
        _what_slurm_did(values),
        *_by(values),
        *_longest(values),
        _queue(values, followed),
        *_left_to_slurm(values),
        _what_it_means(values),
        *_unread(values),
    ]
    return ReportPage(TITLE, [*_summary(values)], sections)


def _summary(values: LooksReport) -> Iterator[str]:
    found = values["all"]
    runs = "" if values["runs"] == 1 else f" in {values['runs']:,} runs of sns observe"
    often = "" if values["interval_s"] is None else f", one every {duration(values['interval_s'])}"
    looks = _count(values["looks"], "look")
    yield (
        f"{zoned_clock(values['began_s'])} to {zoned_clock(values['ended_s'])}: {looks}{often}, "
        f"{duration(values['watched_s'])} of watching{runs}, policy {_names(values['policies'])}, partitions "
        f"{_names(values['partitions'])}."
    )
    if not found["advised"]:
        told = "Such a watch is too short to say more." if values["watched_s"] < DAY_S else NO_HELP
        yield f"At no look would slurm_sns have started a job that waited. {told}"
        return
    yield _earlier(found)
    yield from _rest(found)
    yield (
        "This shows room that Slurm did not use at the moment. It is no forecast of the gain: that needs a replay of "
        "your accounting, sns report DUMP."
    )
    if "jobs" in values["hidden"]:
        yield "Slurm showed the user who watched only their own jobs (PrivateData), so all numbers are of these alone."


def _earlier(found: FollowedJobsValues) -> str:
    advised = _count(found["advised"], "job")
    if not found["started"]:
        return f"slurm_sns would have started {advised}. Slurm started none of them while it was watched."
    if found["mean_s"] is None:
        return (
            f"slurm_sns would have started {advised}. Slurm started {found['started']:,} of them, each as early as "
            "slurm_sns would have or at most 3 s later."
        )
    return (
        f"slurm_sns would have started {advised}. Slurm started {found['started']:,} of them, "
        f"{found['earlier']:,} ({_share(found)}) later than slurm_sns would have: {_mean(found)} on average, "
        f"{duration(found['median_s'] or 0)} in the median."
    )


def _rest(found: FollowedJobsValues) -> Iterator[str]:
    if found["still_waiting"]:
        told = duration(found["still_waiting_mean_s"] or 0)
        yield f"{found['still_waiting']:,} still waited at the last look, {told} after their advice on average."
    if found["let_wait"]:
        others = _count(found["let_wait"], "other job")
        yield f"Slurm started {others} that slurm_sns would have let wait at the look before."


def _what_slurm_did(values: LooksReport) -> ReportSection:
    found = values["all"]
    if not found["advised"]:
        return ReportSection("What Slurm did", [_let_wait(found)])
    of = found["advised"]
    rows = [
        ("started it later than slurm_sns would have", found["earlier"]),
        ("started it as early (at most 3 s later)", found["same"]),
        ("had not started it at the last look", found["still_waiting"]),
        ("nobody saw it start: cancelled, or ended between two looks", found["gone"]),
    ]
    how_much = [_seconds(found["mean_s"]), _seconds(found["median_s"]), _seconds(found["p90_s"])]
    waiting = [_seconds(found["still_waiting_mean_s"]), "", ""]
    more = {0: how_much, 2: waiting}
    table = ReportTable(
        ["what Slurm did", "jobs", "share", "mean", "median", "90 % up to"],
        [
            [name, f"{count:,}", _percent(count / of), *more.get(at, ["", "", ""])]
            for at, (name, count) in enumerate(rows)
        ],
        frozenset({1, 2, 3, 4, 5}),
        "Times are from the first look that would have started the job to Slurm's start, or to the last look.",
    )
    started, same = _count(found["started"], "job"), found["on_same_nodes"]
    on_nodes = f"Of the {started} that Slurm started, {same:,} got the nodes of the advice."
    sentences = [on_nodes, _let_wait(found), _intervals(values)]
    points = [ChartPoint(each["name"], each["jobs"]) for each in values["histogram"]]
    is_empty = not any(each["jobs"] for each in values["histogram"])
    chart = ReportChart("How much earlier slurm_sns would have started them", "bars", {"jobs": points}, ("", "jobs"))
    return ReportSection("What Slurm did with these jobs", sentences, [table], [] if is_empty else [chart])


def _let_wait(found: FollowedJobsValues) -> str:
    if not found["let_wait"]:
        return "Slurm started no job that the plan of the look before let wait."
    return (
        f"Slurm started {_count(found['let_wait'], 'other job')} that the plan of the look before let wait. Some of "
        "them may start later under slurm_sns; others it would have started in between, as it plans every second."
    )


def _intervals(values: LooksReport) -> str:
    if not values["intervals_over"]:
        return (
            "There are no intervals: they need a day of watching at least, and jobs in ten of its hours. Chance may "
            "have made much of these numbers."
        )
    is_narrow = values["intervals_over"] == "hours"
    more = " Hours of one day resemble each other, so they may be too narrow." if is_narrow else ""
    return (
        f"The intervals (95 %) come from drawing the {values['blocks']:,} {values['intervals_over']} of the watch anew "
        f"(bootstrap). They say how much another watch of the same load could differ.{more}"
    )


def _by(values: LooksReport) -> Iterator[ReportSection]:
    kinds = [("partition", values["by_partition"]), ("size", values["by_size"]), ("heuristic", values["by_heuristic"])]
    if len(values["policies"]) > 1:
        yield ReportSection(
            "By policy",
            ["Several policies planned. All other numbers of this page count a job once for each of them."],
            [_groups("policy", values["by_policy"])],
        )
    for kind, groups in kinds:
        if not groups:
            continue
        points = [
            ChartPoint(
                each["name"],
                each["mean_s"] / 60,
                None if each["mean_low_s"] is None else each["mean_low_s"] / 60,
                None if each["mean_high_s"] is None else each["mean_high_s"] / 60,
            )
            for each in groups[:MOST_ROWS]
            if each["mean_s"] is not None
        ]
        title = f"How much earlier, mean by {kind}"
        chart = ReportChart(title, "bars", {"minutes": points}, (kind, "minutes"))
        yield ReportSection(f"By {kind}", _about(kind), [_groups(kind, groups)], [chart] if len(points) > 1 else [])


def _about(kind: str) -> list[str]:
    if kind == "heuristic":
        return ["The heuristic is the one whose schedule was chosen at the look that would have started the job."]
    return []


def _groups(kind: str, groups: Sequence[FollowedJobsValues]) -> ReportTable:
    columns = {
        kind: [each["name"] for each in groups],
        "advised": [f"{each['advised']:,}" for each in groups],
        "started": [f"{each['started']:,}" for each in groups],
        "earlier": [f"{each['earlier']:,}" for each in groups],
        "share": [_percent(each["earlier_share"]) for each in groups],
        "95 % of share": [_between(_percent, each["earlier_share_low"], each["earlier_share_high"]) for each in groups],
        "mean": [_seconds(each["mean_s"]) for each in groups],
        "95 % of mean": [_between(duration, each["mean_low_s"], each["mean_high_s"]) for each in groups],
        "90 % up to": [_seconds(each["p90_s"]) for each in groups],
        "still wait": [f"{each['still_waiting']:,}" for each in groups],
        "let wait": [f"{each['let_wait']:,}" for each in groups],
    }
    if all(each["mean_low_s"] is None and each["earlier_share_low"] is None for each in groups):
        del columns["95 % of share"], columns["95 % of mean"]
    if kind == "heuristic":  # a job that was not advised has none
        del columns["let wait"]
    left = f" {len(groups) - MOST_ROWS:,} more have fewer jobs." if len(groups) > MOST_ROWS else ""
    note = (
        "Share: of the jobs that Slurm started, those that slurm_sns would have started earlier. Mean: how much "
        f"earlier.{left}"
    )
    rows = list(zip(*(cells[:MOST_ROWS] for cells in columns.values()), strict=True))
    return ReportTable(list(columns), rows, frozenset(range(1, len(columns))), note)


def _longest(values: LooksReport) -> Iterator[ReportSection]:
    if not values["longest"]:
        return
    rows = [
        [
            each["job"],
            each["partition"] or NONE,
            f"{each['cpus']:,}" if each["cpus"] else NONE,
            _shortened(each["nodes"]),
            _moment(each["advised_s"]),
            duration(each["seconds"]),
            _what_became(each),
        ]
        for each in values["longest"]
    ]
    columns = ["job", "partition", "CPUs", "nodes", "could have started", "earlier by", "then"]
    sentences = []
    if values["overtaken"]:
        told = (
            f"While {_count(values['overtaken'], 'job')} waited, Slurm started others on the nodes of their advices, "
            f"{values['overtaking']:,} times. That is no fault by itself: those jobs may come first by Slurm's "
            "priorities, or end before the waiting one could have started."
        )
        sentences = [told]
    table = ReportTable(columns, rows, frozenset({2, 5}))
    yield ReportSection("The jobs that waited longest although there was room", sentences, [table])


def _what_became(job: LongestWaitValues) -> str:
    told = "still waits" if job["still_waits"] else "Slurm started it"
    return f"{told}; meanwhile {_count(job['others'], 'other')} started there" if job["others"] else told


def _queue(values: LooksReport, followed: FollowedJobs) -> ReportSection:
    pending, managed = values["pending_mean"], values["managed_mean"]
    share = f" ({_percent(managed / pending)})" if pending else ""
    told = (
        f"{pending:,.1f} records of jobs waited on average; slurm_sns would manage {managed:,.1f} of them{share}. "
        "The waiting tasks of an array are one record."
    )
    return ReportSection("The queue", [told], charts=[_over_time(values, followed)])


def _over_time(values: LooksReport, followed: FollowedJobs) -> ReportChart:
    unit_s, unit = (86_400.0, "days") if values["ended_s"] - values["began_s"] > DAYS_S else (3600.0, "hours")
    series: dict[str, Sequence[ChartPoint]] = {
        name: _points(followed.at_s, counts, values, unit_s)
        for name, counts in (("waiting", followed.pending), ("would be managed", followed.managed))
    }
    return ReportChart("Waiting jobs", "lines", series, (f"{unit} since the first look", "jobs"))


def _points(at_s: "array[float]", counts: "array[int]", values: LooksReport, unit_s: float) -> list[ChartPoint]:
    """The means of equal periods; a period without looks is a gap if the usual pause is shorter."""
    began_s, span_s = values["began_s"], values["ended_s"] - values["began_s"]
    width_s = span_s / MOST_POINTS or 1.0
    sums: dict[int, list[float]] = {}
    for moment_s, count in zip(at_s, counts, strict=True):
        part = sums.setdefault(min(MOST_POINTS - 1, int((moment_s - began_s) / width_s)), [0, 0.0, 0.0])
        part[0] += 1
        part[1] += moment_s - began_s
        part[2] += count
    points: list[ChartPoint] = []
    longest_s = max(2.5 * width_s, GAP * (values["interval_s"] or 0.0))
    for _, (looks, place_s, total) in sorted(sums.items()):
        place = place_s / looks / unit_s
        if points and (place - float(points[-1].at)) * unit_s > longest_s:
            points.append(ChartPoint(place, nan))
        points.append(ChartPoint(place, total / looks))
    return points


def _left_to_slurm(values: LooksReport) -> Iterator[ReportSection]:
    title = "What slurm_sns would leave to Slurm"
    reasons = sorted(values["not_managed"].items(), key=lambda each: (-each[1], each[0]))
    if reasons:
        rows = [[reason, f"{count:,.1f}"] for reason, count in reasons[:MOST_ROWS]]
        table = ReportTable(["why", "waiting jobs, mean"], rows, frozenset({1}))
        yield ReportSection(
            title, ["It would leave these jobs as they are. Slurm starts them, with or without it."], [table]
        )
    elif values["managed_mean"] < values["pending_mean"]:
        left = values["pending_mean"] - values["managed_mean"]
        yield ReportSection(title, [f"{left:,.1f} waiting jobs on average. These looks do not say why."])


def _what_it_means(values: LooksReport) -> ReportSection:
    apart = "" if values["interval_s"] is None else f", and these looks were {duration(values['interval_s'])} apart"
    bound = (
        f"For a single job the time is likely too short: slurm_sns plans every second{apart}. Jobs that still wait are "
        "in no mean of started jobs, though they may be those that wait longest."
    )
    runs = [RUNS] if values["runs"] > 1 else []
    sentences = [SHOWN, NOT_SHOWN, bound, *runs, REASONS, NEXT] if values["all"]["advised"] else [NEXT]
    return ReportSection("What this shows, and what it cannot", sentences)


def _unread(values: LooksReport) -> Iterator[ReportSection]:
    rows = [[reason, f"{count:,}"] for reason, count in values["unread"].items()]
    rows += [
        [f"of Slurm's answers, the most in one look: {reason}", f"{n:,}"] for reason, n in values["left_out"].items()
    ]
    if rows:
        yield ReportSection("What could not be read", (), [ReportTable(["lines", "count"], rows, frozenset({1}))])


def _moment(at_s: float) -> str:
    """Local date and time to the minute; the head of the page has the zone."""
    return zoned_clock(at_s).rpartition(" ")[0]


def _share(found: FollowedJobsValues) -> str:
    interval = _between(_percent, found["earlier_share_low"], found["earlier_share_high"])
    return f"{_percent(found['earlier_share'])}{f'; {interval}' if interval else ''}"


def _mean(found: FollowedJobsValues) -> str:
    interval = _between(duration, found["mean_low_s"], found["mean_high_s"])
    return f"{_seconds(found['mean_s'])}{f' ({interval})' if interval else ''}"


def _between(word: Callable[[float], str], low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{word(low)} to {word(high)}"


def _percent(share: float | None) -> str:
    return NONE if share is None else f"{100 * share:.0f} %"


def _seconds(seconds: float | None) -> str:
    return NONE if seconds is None else duration(seconds)


def _names(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _shortened(nodes: str, most: int = 40) -> str:
    return nodes if len(nodes) <= most else f"{nodes[: most - 3]}..."
