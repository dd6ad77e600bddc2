"""The report on partitions whose jobs share cores: what Slurm charges for their runs, and what these had of it."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from slurm_sns.cli.json_types import SharedTimeValues, SharingReport
from slurm_sns.errors import SnsError
from slurm_sns.report.document import ChartPoint, ReportChart, ReportPage, ReportSection, ReportTable

if TYPE_CHECKING:
    from slurm_sns.scheduler.ports import History
    from slurm_sns.scheduler.sharing.book import SharedTime
    from slurm_sns.sharing.rules import SharingRules

TITLE = "Shared cores"
HOUR_S, DAY_S = 3600.0, 86_400
MOST_NAMED, MOST_DAYS, MOST_POINTS = 20, 31, 120
COLUMNS = ("runs", "charged, core-hours", "had, core-hours", "part", "pauses", "lost, core-hours")
NOTHING = (
    "The store has no run yet that ended on nodes whose cores are shared, and no pause. sns status says how many jobs "
    "share cores now."
)
CHARGED = (
    "Slurm charges a run all its cores for as long as it ran, however many jobs shared them. Fair share is charged by "
    "wall time in the same way. The charge on this page is that, before weights of a partition or a QOS."
)
COUNTED = (
    "A run counts in the day in which it ended, in UTC, whoever started it. Runs that ended while the scheduler was "
    "away, and that Slurm no longer showed when it came back, are missing. Work that a pause lost was run twice: it is "
    "among the core-hours."
)


def sharing_values(history: "History", rules: "SharingRules") -> SharingReport:
    """The figures.

    Raises:
        SnsError: the store does not answer, or what it has is not readable.
    """
    from slurm_sns.scheduler.history import recall
    from slurm_sns.scheduler.sharing.book import FORM, NAME, StoredSharing

    problems: list[str] = []
    found = recall(history.load_memory(NAME), FORM, problems.append)
    if problems:
        raise SnsError(f"the store's record of shared cores: {problems[0]}")
    times = found.times if isinstance(found, StoredSharing) else ()
    return {
        "partitions": sorted(rules.partitions),
        "most_to_a_core": rules.most_to_a_core,
        # A pause that Slurm refused leaves nothing but its day.
        "times": [_values(each) for each in sorted(times) if each.runs or each.pauses],
    }


def _values(time: "SharedTime") -> SharedTimeValues:
    return {
        "day": _date(time.day),
        "account": time.account,
        "runs": time.runs,
        "charged_core_h": time.charged_core_s / HOUR_S,
        "virtual_core_h": time.virtual_core_s / HOUR_S,
        "pauses": time.pauses,
        "lost_core_h": time.lost_core_s / HOUR_S,
    }


def _date(day: int) -> str:
    return datetime.fromtimestamp(day * DAY_S, UTC).date().isoformat()


def _day(date: str) -> int:
    return int(datetime.fromisoformat(date).replace(tzinfo=UTC).timestamp()) // DAY_S


class _Sum(NamedTuple):
    """Runs or pauses of several days or accounts together; hours are core-hours."""

    runs: int
    charged_h: float
    virtual_h: float
    pauses: int
    lost_h: float

    @property
    def part(self) -> str:
        return f"{self.virtual_h / self.charged_h:.0%}" if self.charged_h else "-"

    @property
    def cells(self) -> list[str]:
        """The cells of `COLUMNS`."""
        hours = [f"{each:,.1f}" for each in (self.charged_h, self.virtual_h, self.lost_h)]
        return [f"{self.runs:,}", *hours[:2], self.part, f"{self.pauses:,}", hours[2]]


def _sum(times: Iterable[SharedTimeValues]) -> _Sum:
    times = list(times)
    return _Sum(
        sum(each["runs"] for each in times),
        sum(each["charged_core_h"] for each in times),
        sum(each["virtual_core_h"] for each in times),
        sum(each["pauses"] for each in times),
        sum(each["lost_core_h"] for each in times),
    )


def _by(key: Callable[[SharedTimeValues], str], times: Iterable[SharedTimeValues]) -> dict[str, _Sum]:
    found: dict[str, list[SharedTimeValues]] = {}
    for each in times:
        found.setdefault(key(each), []).append(each)
    return {name: _sum(alike) for name, alike in found.items()}


def sharing_page(values: SharingReport) -> ReportPage:
    """The page."""
    times = values["times"]
    if not times:
        return ReportPage(TITLE, [NOTHING], [])
    whole, first, last = _sum(times), times[0]["day"], times[-1]["day"]
    days = first if first == last else f"{first} to {last}"
    summary = [
        (
            f"{days}: {whole.runs:,} runs ended where jobs share cores. Slurm charges "
            f"{whole.charged_h:,.1f} core-hours for them; they had {whole.virtual_h:,.1f} ({whole.part})."
        ),
        f"{whole.pauses:,} pauses lost {whole.lost_h:,.1f} core-hours of work at most.",
    ]
    return ReportPage(TITLE, summary, [_by_account(times), _by_day(times), _of_slurm(values)])


def _by_account(times: list[SharedTimeValues]) -> ReportSection:
    accounts = sorted(_by(lambda each: each["account"], times).items(), key=lambda each: (-each[1].charged_h, each[0]))
    rows = [[name or "-", *account.cells] for name, account in accounts[:MOST_NAMED]]
    note = f"The {MOST_NAMED} accounts with most, of {len(accounts):,}." if len(accounts) > MOST_NAMED else ""
    return ReportSection("Shared cores by account", [], [_table("account", rows, note)])


def _by_day(times: list[SharedTimeValues]) -> ReportSection:
    days = _by(lambda each: each["day"], times)
    rows = [[day, *sums.cells] for day, sums in reversed(days.items())]
    note = f"The last {MOST_DAYS} days with any, of {len(days):,}." if len(days) > MOST_DAYS else ""
    return ReportSection("Shared cores by day", [], [_table("day", rows[:MOST_DAYS], note)], [_over_days(days)])


def _table(first: str, rows: list[list[str]], note: str) -> ReportTable:
    return ReportTable([first, *COLUMNS], rows, frozenset(range(1, 1 + len(COLUMNS))), note)


def _over_days(days: dict[str, _Sum]) -> ReportChart:
    """Core-hours by the day in which the runs ended; a day without any is 0."""
    numbers = {_day(date): each for date, each in days.items()}
    last = max(numbers)
    first = max(min(numbers), last + 1 - MOST_POINTS)
    shown = [(float(day - first), numbers.get(day)) for day in range(first, last + 1)]
    series: dict[str, Sequence[ChartPoint]] = {
        "charged by Slurm": [ChartPoint(at, 0.0 if each is None else each.charged_h) for at, each in shown],
        "had": [ChartPoint(at, 0.0 if each is None else each.virtual_h) for at, each in shown],
    }
    return ReportChart("Core-hours on shared cores", "lines", series, (f"days since {_date(first)}", "core-hours"))


def _of_slurm(values: SharingReport) -> ReportSection:
    """What Slurm's own accounting says, how to compare, and what a site can do."""
    times, partitions, most = values["times"], ",".join(values["partitions"]), values["most_to_a_core"]
    first, after = times[0]["day"], _date(_day(times[-1]["day"]) + 1)
    compare = (
        f"To compare: TZ=UTC sacct -aXDP -r {partitions} -S {first} -E {after} -o Account,End,CPUTimeRAW prints the "
        "charge of each run in seconds of CPUs, which is so many times that of cores as a core has threads. "
        f"TZ=UTC sreport -t hours cluster AccountUtilizationByUser Start={first} End={after} has the sums of all "
        "partitions, up to the last full hour."
    )
    remedy = (
        f"With at most {most} jobs to a core, TRESBillingWeights=CPU={1 / most:.4g} of the partition, or a QOS with "
        f"UsageFactor={1 / most:.4g}, makes fair share count 1/{most} of that from then on: right for runs that always "
        "shared, too little for those that were alone."
    )
    return ReportSection("Shared cores in Slurm's accounting", [CHARGED, compare, remedy, COUNTED])
