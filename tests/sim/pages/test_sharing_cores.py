"""The page on sharing cores: what is run, how it counts, and what it says."""

from itertools import product

import numpy as np
import pytest

from slurm_sns.sim.pages import FOLDERS
from slurm_sns.sim.pages.claims import PageClaims
from slurm_sns.sim.pages.judge import HOLDS
from slurm_sns.sim.pages.page import write
from slurm_sns.sim.pages.running import Options, WorkerProcesses
from slurm_sns.sim.trace import TraceArrays
from slurm_sns.sim.traces.fluid_trace import PARTS
from sns_reproductions import dfrs
from sns_reproductions.dfrs import HPC2N, SCALED, Instance, units_of
from sns_reproductions.sharing_cores import run as sharing
from sns_reproductions.sharing_cores.run import (
    EASY,
    GANG_FREE,
    GANG_PAID,
    HIGH,
    LARGEST,
    LEAST_LOSS,
    MAIN,
    MEAN,
    NO_PAUSES,
    PRIORITY,
    SCHEDULERS,
    TENTHS,
    MeasuredUnits,
    SharingScheduler,
    pausing,
    replayed,
    run_again,
    run_all,
    run_trial,
)

PAGE = PageClaims.of(FOLDERS["sharing-cores"])
DATA = PAGE.content.data
TRACE_OF = dfrs.trace_of


def trace_of(*jobs: tuple[float, float, int, float, float]) -> TraceArrays:
    """Jobs of (submit, run time, tasks, CPU need, memory need), the needs as fractions of a node."""
    submit_s, run_s, tasks, cpu, memory = zip(*jobs, strict=True)
    return TraceArrays(
        np.arange(len(jobs)),
        np.array(submit_s, np.float64),
        np.array(run_s, np.float64),
        tasks=np.array(tasks, np.int64),
        cores=np.rint(np.array(cpu) * PARTS).astype(np.int64),
        memory=np.rint(np.array(memory) * PARTS).astype(np.int64),
    )


def short_trace_of(instance: Instance) -> tuple[TraceArrays, int]:
    """The first 60 jobs of an instance."""
    trace, count = TRACE_OF(instance)
    return trace.only(slice(60)), count


@pytest.fixture(scope="module")
def units():
    return units_of(SCALED, (1, 2, 3), (0.3, 0.9))


@pytest.fixture(scope="module")
def found(units):
    """The results for short traces."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dfrs, "trace_of", short_trace_of)
        names = list(DATA["trial"])
        return {each: {**run_all(each), **run_again(each), **run_trial(each, names)} for unit in units for each in unit}


# --- what is run

#: Job 1 needs the memory of job 0.
TWO = trace_of((0, 100, 1, 1, 1), (50, 20, 1, 1, 1))


def ends(scheduler: SharingScheduler, trace: TraceArrays = TWO, lots: tuple[float, ...] = (0.05, 0.5)) -> list[float]:
    expected_s = np.full(len(trace), 1000.0)
    return replayed(scheduler, trace, 1, expected_s, np.array(lots)).end_s.tolist()


def test_jobs_with_the_lowest_lots_can_restart():
    assert ends(MAIN[NO_PAUSES[2]]) == [100, 120]
    for victims in (PRIORITY, LEAST_LOSS):
        # Job 0 has lost 50 s, and restarts in 300 s.
        assert ends(MAIN[pausing(10, "none", 2, victims)]) == [470, 70]
    assert ends(MAIN[pausing(10, "none", 2, PRIORITY)], lots=(0.15, 0.05)) == [100, 120]
    assert ends(MAIN[pausing(30, "none", 2, PRIORITY)], lots=(0.15, 0.05)) == [470, 70]


def test_checkpoints_keep_the_work_of_their_interval():
    trace = trace_of((0, 5000, 1, 1, 1), (4000, 20, 1, 1, 1))
    kept_s = {"none": 0, "15 min": 3600, "1 h": 3600}
    for checkpoints, kept in kept_s.items():
        name = pausing(100, checkpoints, 1, PRIORITY)
        assert ends(MAIN[name], trace)[0] == 4020 + 300 + 5000 - kept


def test_gang_scheduling_never_shares_memory_and_may_pay_for_its_switches():
    assert ends(MAIN[GANG_FREE[2]]) == [100, 120]
    beside = trace_of(*[(0, 60, 1, 1, 0.3)] * 3)
    assert ends(MAIN[GANG_FREE[2]], beside, (0, 0, 0)) == [120, 120, 180]
    assert ends(MAIN[GANG_FREE[float("inf")]], beside, (0, 0, 0)) == [180] * 3
    paid = ends(MAIN[GANG_PAID], beside, (0, 0, 0))
    assert paid[0] == pytest.approx(120 * 30 / 28)


def test_easy_packs_by_users_estimates():
    """Job 2 fits beside job 0 until that ends, but nobody knows that it is so short."""
    trace = trace_of((0, 100, 1, 0.5, 0.5), (1, 10, 1, 1, 0.5), (2, 50, 1, 0.5, 0.5))
    start_s = {
        estimate_s: replayed(MAIN[EASY], trace, 1, np.array([100.0, 10.0, estimate_s]), np.ones(3)).start_s.tolist()
        for estimate_s in (50.0, 500.0)
    }
    assert start_s == {50.0: [0, 100, 2], 500.0: [0, 100, 110]}


def test_what_is_examined_differs_in_one_thing_and_has_a_scheduler_to_compare_with():
    for name, scheduler in SCHEDULERS.items():
        if "; " in name:
            assert scheduler != MAIN[name.split("; ")[0]]
    assert set(DATA["trial"]) | set(DATA["drawn_by_load"].values()) <= set(MAIN)


# --- how it counts


def made(values: dict[tuple[int, float], float]) -> MeasuredUnits:
    """Units of which each scheduler has the same largest stretch, and half of its work repeated."""
    seeds = sorted({seed for seed, _ in values})
    loads = sorted({load for _, load in values})
    outcome = {MEAN: 1.0, HIGH: 1.0, TENTHS: 1.0, "repeated": 5.0, "work": 10.0, "pauses": 2.0, "jobs": 4.0}
    found = {
        (SCALED, seed, load, 300): {name: {LARGEST: value, **outcome} for name in SCHEDULERS}
        for (seed, load), value in values.items()
    }
    return MeasuredUnits(units_of(SCALED, seeds, loads), found)


def test_the_geometric_mean_is_over_all_traces_and_its_interval_over_the_seeds():
    measured = made({(1, 0.3): 1, (1, 0.9): 100, (2, 0.3): 10, (2, 0.9): 1000})
    of = measured.logarithms(EASY, LARGEST)
    assert np.exp(of) == pytest.approx([10, 100])
    assert tuple(measured.geometric(of)) == pytest.approx((1000**0.5, 10, 100))
    assert measured.average(EASY, LARGEST).mean == pytest.approx(1111 / 4)


def test_shares_are_of_sums():
    measured = made({(1, 0.3): 1, (2, 0.3): 1})
    assert tuple(measured.share(EASY, "repeated", "work", 100)) == (50, 50, 50)
    assert tuple(measured.share(EASY, "pauses", "jobs")) == (0.5, 0.5, 0.5)
    assert tuple(measured.more_repeated(EASY, GANG_PAID)) == (0, 0, 0)


def test_one_unit_alone_says_nothing_of_others():
    measured = made({(1, 0.3): 7})
    assert tuple(measured.geometric(measured.logarithms(EASY, LARGEST))) == pytest.approx((7, -np.inf, np.inf))


# --- the page


def test_the_page_has_every_scheduler_and_the_verdicts_follow_from_the_stretches(units, found, tmp_path):
    claims = write(tmp_path, PAGE, sharing.results_of(Options(tmp_path), DATA, {SCALED: units}, found))

    text = (tmp_path / "README.md").read_text()
    assert all(f"| {name} | " in text for name in MAIN)
    assert "no week of HPC2N" in text
    assert not any("HPC2N" in claim.text for claim in claims)
    assert "Of 3 seeds" in text
    assert sum(claim.group == "beside the trial" for claim in claims) == len(DATA["trial"])
    for stem in ("restartable.svg", "loads.svg", "stretches.csv", "ratios.csv", "claims.csv", "parts.csv"):
        assert (tmp_path / stem).stat().st_size > 1000

    # Whatever pauses is made a hundred times better than EASY.
    better = {
        instance: {
            name: {**of, **{each: of[each] / (100 if "100 %" in name else 1) for each in (LARGEST, MEAN, HIGH)}}
            for name, of in each.items()
        }
        for instance, each in found.items()
    }
    claims = write(tmp_path, PAGE, sharing.results_of(Options(tmp_path), DATA, {SCALED: units}, better))
    assert next(claim for claim in claims if "at most a tenth of EASY's" in claim.text).verdict == HOLDS


def test_the_quick_form_runs_by_itself(monkeypatch, tmp_path):
    monkeypatch.setattr(dfrs, "trace_of", short_trace_of)
    monkeypatch.setenv("SNS_SHARED", str(tmp_path))  # no HPC2N
    options = Options(tmp_path / "page", seeds=1, quick=True, workers=WorkerProcesses(1))
    results = sharing.run(options, DATA)
    assert results.seeds == 1
    assert {path.name for path in options.folder.glob("*/*.json")} == {"scaled-1-0.3-300.json", "scaled-1-0.9-300.json"}


def test_the_full_form_has_all_weeks_and_four_loads(monkeypatch):
    monkeypatch.setattr(dfrs, "shared_file", lambda *_: None)
    full = sharing.instances(Options(None, seeds=100))
    assert [len(full[each]) for each in (SCALED, HPC2N)] == [100, 182]
    quick = sharing.instances(Options(None, seeds=5, quick=True))
    assert [len(unit) for unit in quick[SCALED]] == [2] * 5
    assert len(quick[HPC2N]) < 10
    assert set(product((1,), (0.3, 0.9))) == {each[1:3] for each in quick[SCALED][0]}
