"""Replay each log under Max-Jobs, and estimate the starts of jobs that wait, as docs/science/estimates.md says.

A piece of work is a log. The replay is run once; the moments of estimates are made again from it.
"""

import heapq
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.coverage.logs import EVENT
from slurm_sns.estimates.calibration import Calibration, OwnerBurst, OwnerBursts, WaitRange
from slurm_sns.estimates.look_ahead import Course, Scene
from slurm_sns.estimates.past_runs import Kin, PastRun, PastRuns
from slurm_sns.estimates.run_times import HIGH, LOW, ExpectedTimes, TimeLimits
from slurm_sns.policies.matching.max_jobs import rules_of
from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO, MatchingParameters
from slurm_sns.sim.pages.judge import Quantity
from slurm_sns.sim.pages.running import Options, PageResults
from slurm_sns.sim.replay.booked_starts import booked_starts
from slurm_sns.sim.replay.replay_moment import ReplayMoments
from slurm_sns.sim.replay.trace_replay import replay
from slurm_sns.sim.run import TraceRun
from slurm_sns.sim.trace import TraceArrays
from slurm_sns.sim.traces.slurm_events import OPTION
from slurm_sns.sim.traces.swf import SwfReader
from sns_reproductions.beside_easy.run import WITHHOLD_S, from_zero
from sns_reproductions.logs import LOGS, PARTITION, Log
from sns_reproductions.netbatch_sweeps import INTERVAL_S

NAMES = ("KTH-SP2", "SDSC-SP2", "HPC2N", "UB-HPC", "wagap-2013", "Trinity")
RULES = rules_of(MatchingParameters(portfolio=PAPER_PORTFOLIO, withhold_up_to_s=WITHHOLD_S))
COURSE = Course(interval_s=INTERVAL_S)
#: So many jobs of a log are judged; quick: of so many first jobs of the log.
JUDGED, QUICK_JUDGED, QUICK_JOBS = 2500, 400, 5000
#: The first ones only calibrate.
ONLY_CALIBRATE, QUICK_ONLY_CALIBRATE = 200, 50
#: Slurm books for so many jobs; the mean wait is that of so many.
BOOKINGS, SUCH_JOBS = 1000, 100

Floats = NDArray[np.float64]


class JudgedStart(NamedTuple):
    """A judged start: its burst, the true wait, and what was told; None: no range. In seconds."""

    burst: OwnerBurst
    wait_s: float
    told: WaitRange | None
    limits_s: float
    booked_s: float
    mean_wait_s: float


@dataclass
class KnownPast:
    """What is known at a moment of a replay: runs that have ended, starts that were estimated, waits of such jobs."""

    run: TraceRun
    kin: Sequence[Kin]
    limit_s: Floats
    waited: NDArray[np.bool_]
    past: PastRuns = field(default_factory=PastRuns)
    calibration: Calibration = field(default_factory=Calibration)
    bursts: OwnerBursts = field(default_factory=OwnerBursts)
    waits: dict[int, deque[float]] = field(default_factory=dict)
    to_learn: list[tuple[float, int, WaitRange, WaitRange, float, OwnerBurst]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._ends = iter(np.argsort(self.run.end, kind="stable").tolist())
        self._next_end = next(self._ends, None)
        begun = np.argsort(self.run.start, kind="stable")
        self._starts = iter(begun[self.waited[begun]].tolist())
        self._next_start = next(self._starts, None)
        kinds = self.run.trace.kinds
        self.size = [int(np.log2(max(1, nodes * cores))) for nodes, cores, *_ in kinds]

    def size_of(self, job: int) -> int:
        """The class of the job's size."""
        return self.size[int(self.run.trace.kind[job])]

    def advance(self, now_s: float) -> None:
        """Learn what has happened by then."""
        run = self.run
        while self._next_end is not None and run.end[self._next_end] <= now_s:
            job = self._next_end
            share = float(run.trace.run[job]) / float(self.limit_s[job])
            self.past.add(
                PastRun(job, float(run.end[job]), self.kin[job].owner, self.kin[job].program, min(1.0, share))
            )
            self._next_end = next(self._ends, None)
        while self._next_start is not None and run.start[self._next_start] <= now_s:
            job = self._next_start
            such = self.waits.setdefault(self.size_of(job), deque(maxlen=SUCH_JOBS))
            such.append(float(run.start[job] - run.trace.submit[job]))
            self._next_start = next(self._starts, None)
        while self.to_learn and self.to_learn[0][0] <= now_s:
            self.calibration.learn(*heapq.heappop(self.to_learn)[2:])

    def mean_wait_s(self, job: int) -> float:
        """The mean wait of such jobs; of all while there are none."""
        such = self.waits.get(self.size_of(job)) or [each for waits in self.waits.values() for each in waits]
        return float(np.mean(such)) if such else 0.0


def judged_starts(log: Log, *, quick: bool) -> list[JudgedStart]:
    """The starts of the log's jobs that are judged, in the order of their submits."""
    pool = log.pool()
    jobs = log.records(pool, 1.0, user_estimates=True)
    kin = kin_of(log, jobs)
    jobs = from_zero(jobs.only(slice(QUICK_JOBS)) if quick else jobs)
    limit_s = jobs.limit.astype(np.float64)
    limit_s[limit_s <= 0] = limit_s.max(initial=1.0)
    run = replay(pool, jobs, RULES, interval_s=INTERVAL_S)
    cycle_s = -(-jobs.submit // INTERVAL_S) * INTERVAL_S
    waited = run.start > cycle_s
    chosen = np.flatnonzero(waited)
    chosen = chosen[:: max(1, len(chosen) // (QUICK_JUDGED if quick else JUDGED))]
    known, moments = KnownPast(run, kin, limit_s, waited), ReplayMoments(pool, run)
    return [_judged(known, moments, job, int(cycle_s[job])) for job in chosen.tolist()]


def _judged(known: KnownPast, moments: ReplayMoments, job: int, now_s: int) -> JudgedStart:
    """Estimate the start of a job at that moment, and let the estimate be learnt from once the job has started."""
    known.advance(now_s)
    scene = Scene(RULES, moments.snapshot(now_s), COURSE)
    limits = limits_of(scene, known)
    wait_s = float(known.run.start[job] - now_s)

    def looked(times: ExpectedTimes) -> float:
        found = scene.outlook(*times, wanted={job}).starts.get(job)
        return inf if found is None else found.at_s - now_s

    low_s, high_s = (looked(limits.used(known.past, each, now_s)) for each in (LOW, HIGH))
    told, burst = None, known.bursts.of(known.kin[job].owner, now_s)
    if low_s < inf and high_s < inf:
        raw = WaitRange.of(low_s, high_s)
        told = known.calibration.told(raw)
        heapq.heappush(known.to_learn, (now_s + wait_s, job, raw, told, wait_s, burst))
    booked_s = booked_starts(scene, *limits.reached(), BOOKINGS)[scene.job_ids.index(job)] - now_s
    return JudgedStart(burst, wait_s, told, looked(limits.reached()), float(booked_s), known.mean_wait_s(job))


def limits_of(scene: Scene, known: KnownPast) -> TimeLimits:
    """The time limits of the scene's jobs."""
    waiting, active = list(scene.job_ids), [each.id for each in scene.active]
    active_s = known.limit_s[active]
    return TimeLimits(
        known.limit_s[waiting],
        [known.kin[job] for job in waiting],
        active_s,
        known.run.start[active].astype(np.float64) + active_s,
        [known.kin[job] for job in active],
    )


def kin_of(log: Log, jobs: TraceArrays) -> list[Kin]:
    """The owner and the program of each job; a log of events names no programs."""
    if log.is_events:
        owners = list(_owners_of_events(log))
        return [Kin(owners[at], "") for at in jobs.identity.tolist()]
    names = {0: "job", 10: "status", 11: "owner", 13: "program"}
    found: dict[int, Kin] = {}
    for part in SwfReader(log.source(), names).parts():
        rows = zip(*(part[name].astype(np.int64).tolist() for name in ("job", "owner", "program")), strict=True)
        found |= {job: Kin(owner, str(program)) for job, owner, program in rows}
    return [found[job] for job in jobs.identity.tolist()]


def _owners_of_events(log: Log) -> Iterator[int]:
    """The owners of the jobs that `read_events` takes, in its order."""
    numbers: dict[str, int] = {}
    for line in log.source().text().splitlines():
        found = EVENT.fullmatch(line.strip())
        if found is None:
            continue
        options = {option: value or "" for option, value in OPTION.findall(found["options"])}
        if "--gres" not in options and options.get("-p") == PARTITION:
            yield numbers.setdefault(options.get("--uid", ""), len(numbers))


def of_log(piece: tuple[str, int]) -> dict[str, Any]:
    """What is measured on a log; the piece is its name and whether the run is a quick one."""
    name, quick = piece
    starts = judged_starts(LOGS[name], quick=bool(quick))
    judged = starts[QUICK_ONLY_CALIBRATE if quick else ONLY_CALIBRATE :]
    with_range = [(each, each.told) for each in judged if each.told is not None]
    inside = [told.has(each.wait_s) for each, told in with_range]
    below = [not has and each.wait_s < told.middle_s for has, (each, told) in zip(inside, with_range, strict=True)]
    of_burst: dict[OwnerBurst, list[bool]] = {}
    for has, (each, _) in zip(inside, with_range, strict=True):
        of_burst.setdefault(each.burst, []).append(has)
    widths = [told.high_s - told.low_s for _, told in with_range]
    ratios = [max(told.high_s, 60) / max(told.low_s, 60) for _, told in with_range]
    return {
        "judged": len(with_range),
        "without": len(judged) - len(with_range),
        "coverage": 100 * float(np.mean(inside)),
        "below": 100 * float(np.mean(below)),
        "above": 100 * float(1 - np.mean(inside) - np.mean(below)),
        "bursts": len(of_burst),
        "by_burst": 100 * float(np.mean([np.mean(each) for each in of_burst.values()])),
        "wait_s": float(np.median([each.wait_s for each, _ in with_range])),
        "width_s": float(np.median(widths)),
        "ratio": float(np.median(ratios)),
        "errors": {
            "middle": _median_error((told.middle_s, each) for each, told in with_range),
            "booked": _median_error((each.booked_s, each) for each, _ in with_range),
            "mean_wait": _median_error((each.mean_wait_s, each) for each, _ in with_range),
            "limits": _median_error((each.limits_s, each) for each, _ in with_range),
        },
    }


def _median_error(answers: Iterator[tuple[float, JudgedStart]]) -> float | None:
    """The median absolute error, where no answer is as wrong as can be; None if most jobs have no answer."""
    found = float(np.median([abs(answer - start.wait_s) for answer, start in answers]))
    return found if found < inf else None


def run(options: Options, _data: Mapping[str, Any]) -> PageResults:
    """Judge the estimates of all logs."""
    for name in NAMES:
        LOGS[name].source()  # a missing log is reported before any work
    pieces = [(name, int(options.quick)) for name in reversed(NAMES)]
    found = {piece[0]: each for piece, each in options.results("logs", of_log, pieces).items()}
    logs = {name: found[name] for name in NAMES}
    met = sum(70 <= each["coverage"] <= 90 for each in logs.values())
    known: dict[str, Quantity] = {f"{name}: coverage": each["coverage"] for name, each in logs.items()}
    return PageResults(known, fields={"logs": logs, "quick": options.quick, "met": met})
