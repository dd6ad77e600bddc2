"""The page beyond the DFRS paper: what its variants change, how it counts, and what it says."""

from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest

from slurm_sns.policies.placement.node_arrays import CORES, MEMORY
from slurm_sns.sim.pages.judge import FAILS, HOLDS
from slurm_sns.sim.pages.running import Options
from slurm_sns.sim.replay.fluid_replay import SiteVariant
from slurm_sns.sim.reproduce.dfrs import beyond, beyond_limits, beyond_runs, runs
from slurm_sns.sim.reproduce.dfrs.beyond_runs import (
    DFRS,
    EQUAL,
    EVERY,
    FEWER,
    GENERATIONS,
    LARGE_FIRST,
    MOST_OVERESTIMATED,
    PAPER,
    TODAY,
    TWO,
    UNEQUAL,
    UNLIKE_MEMORY,
    VARIANTS,
    baseline,
    estimates,
    fitting,
    label,
    measured,
    nodes_like,
    replay,
    run,
)
from slurm_sns.sim.reproduce.dfrs.runs import ASAP_PER, EASY, HPC2N, SCALED, Instance, scaled_units
from slurm_sns.sim.reproduce.page import write_page
from slurm_sns.sim.traces.fluid_trace import PARTS, FluidTrace

LOADS = (0.3, 0.9)


def trace_of(*jobs: tuple[float, int, float, float, float]) -> FluidTrace:
    """Jobs of (run time, tasks, CPU need, memory need, limit), submitted at 0."""
    run_s, tasks, cpu, memory, limit_s = zip(*jobs, strict=True)
    return FluidTrace(
        np.arange(len(jobs)),
        np.zeros(len(jobs)),
        np.array(run_s, np.float64),
        np.array(tasks, np.int64),
        np.rint(np.array(cpu) * PARTS).astype(np.int64),
        np.rint(np.array(memory) * PARTS).astype(np.int64),
        np.array(limit_s, np.float64),
    )


def short_trace_of(instance: Instance) -> tuple[FluidTrace, int]:
    """The first 150 jobs of an instance."""
    trace, count = runs.trace_of(instance)
    names = ("identity", "submit_s", "run_s", "tasks", "cpu", "memory", "limit_s")
    return replace(trace, **{name: getattr(trace, name)[:150] for name in names}), count


@pytest.fixture(scope="module")
def units():
    return scaled_units(2, 300, LOADS)


@pytest.fixture(scope="module")
def found(units):
    """The results for short traces."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beyond_runs, "trace_of", short_trace_of)
        return {instance: run(instance) for unit in units for instance in unit}


#: Two jobs that lose nothing; one that runs for twice its run time of 100 s, on two nodes, with a limit of 150 s.
WEEK = {
    "longer": 3,
    "run_s": [10.0, 10.0, 100.0],
    "limit_s": [20.0, 10.0, 150.0],
    "tasks": [1, 1, 2],
    "wall_s": {name: [10.0, 10.0, 201.0] for name in DFRS},
    "free_wall_s": {name: [10.0, 10.0, 140.0] for name in DFRS},
    "killed": {name: [False, False, True] for name in DFRS},
    "limited_wall_s": {name: [10.0, 10.0, 150.0] for name in DFRS},
}


# --- what a variant changes


@pytest.mark.parametrize("count", [120, 128])
@pytest.mark.parametrize("shape", [EQUAL, GENERATIONS, LARGE_FIRST, UNLIKE_MEMORY])
def test_unequal_nodes_have_as_much_together_as_equal_ones(shape, count):
    capacity = nodes_like(shape, count).capacity

    assert capacity[CORES].sum() == capacity[MEMORY].sum() == count * PARTS
    assert capacity.shape[1] == count


def test_jobs_are_left_out_that_do_not_fit_on_unequal_nodes():
    """64 nodes have 1.5 times the memory of a reference node: 64 tasks of 0.8 fit there, and none on the others."""
    clusters = [nodes_like(shape, 128) for shape in UNEQUAL]
    trace = trace_of((1, 64, 1, 0.8, nan), (1, 65, 1, 0.8, nan), (1, 64, 1, 1.0, nan), (1, 128, 1, 0.3, nan))

    assert fitting(trace, clusters).identity.tolist() == [0, 2, 3]
    assert fitting(trace, [nodes_like(EQUAL, 128)]).identity.tolist() == [0, 1, 2, 3]


def test_a_need_is_measured_too_low_or_too_high_and_never_above_a_node():
    trace = trace_of(*[(1, 1, 0.5, 0.1, nan)] * 50, *[(1, 1, 1, 0.1, nan)] * 50)
    known, ratio = measured(trace, (-0.1, 0.1), np.random.default_rng(1))

    assert set(known.cpu[:50].tolist()) == {450_000, 550_000}
    assert set(known.cpu[50:].tolist()) == {900_000, 1_000_000}
    assert np.array_equal(known.cpu, ratio * trace.cpu)
    assert set(ratio.tolist()) == {0.9, 1.0, 1.1}


def test_estimates_are_the_limits_where_there_are_any_and_else_one_to_five_times_the_run_time():
    trace = trace_of((100, 1, 1, 1, 60), *[(100, 1, 1, 1, nan)] * 200)
    found = estimates(trace, np.random.default_rng(1))

    assert found[0] == 60
    assert 100 <= found[1:].min() < 110
    assert 100 * MOST_OVERESTIMATED - 10 < found[1:].max() <= 100 * MOST_OVERESTIMATED


def test_each_variant_is_compared_with_the_papers_model_and_the_same_jobs():
    for name, variant in EVERY.items():
        plain = EVERY[baseline(name)]
        assert plain.few == variant.few
        assert plain._replace(few=False) == EVERY[PAPER]
        assert set(variant.algorithms) <= {*TODAY, *DFRS}


def test_factors_are_over_the_best_of_easy_and_dfrs_with_the_same_jobs():
    largest = {label(name, each): np.array([[100.0]]) for name, of in EVERY.items() for each in of.algorithms}
    largest[label(PAPER, ASAP_PER)] = np.array([[4.0]])
    largest[label(FEWER, ASAP_PER)] = np.array([[2.0]])
    factors = beyond.factors_of(largest)

    assert factors[label(PAPER, ASAP_PER)] == 1
    assert factors[label(PAPER, EASY)] == 25
    assert factors[label(TWO, ASAP_PER)] == 50


def test_in_the_papers_model_the_runs_are_those_of_the_other_pages(units, found, monkeypatch):
    trace_and_count = short_trace_of(units[0][0])
    monkeypatch.setattr(runs, "trace_of", lambda _: trace_and_count)
    theirs = runs.run(units[0][0])["algorithms"]
    ours = found[units[0][0]]["runs"][PAPER]

    for name in (EASY, *DFRS):
        assert ours[name] == [theirs[name]["max_stretch"], theirs[name]["mean_stretch"]]


def test_the_same_instance_gives_the_same_result_again(units, found, monkeypatch):
    monkeypatch.setattr(beyond_runs, "trace_of", short_trace_of)

    assert run(units[0][0]) == found[units[0][0]]


# --- time limits


def test_shares_of_a_week_by_hand():
    table = beyond_limits.tabulate([WEEK, WEEK])
    shares = [beyond_limits.share(ASAP_PER, measure)(table) for measure in beyond_limits.SHARES]

    killed, wasted, late, late_time, lost, lost_of_run, slower, late_without = shares
    assert killed == pytest.approx(100 / 3)
    assert wasted == pytest.approx(100 * 300 / 320)
    assert late == pytest.approx(100 / 3)  # a job that ends at its limit is in time
    assert late_time == pytest.approx(100 * 2 * 51 / 330)
    assert lost == pytest.approx(100 * 2 * 101 / 330)
    assert lost_of_run == pytest.approx(100 * 2 * 101 / 220)
    assert slower == pytest.approx(100 / 3)
    assert late_without == 0


def test_claims_on_limits_do_not_hold_where_a_third_of_the_jobs_is_killed():
    claims = beyond_limits.claims(beyond_limits.tabulate([WEEK] * 3))

    assert {claim.verdict for claim in claims} == {FAILS}


def test_a_week_is_run_without_limits_and_with_them(monkeypatch):
    """Five jobs share a node at a yield of 0.2; job 3 would run too long even alone, and has no limit."""
    trace = trace_of(
        *[(100, 1, 1, 0.1, limit_s) for limit_s in (100, 500, 10_000)],
        (100, 1, 1, 0.1, 99),
        (100, 1, 1, 0.1, inf),
    )
    monkeypatch.setattr(beyond_limits, "trace_of", lambda _: (trace, 1))
    week = beyond_limits.run((HPC2N, 1, 300))

    assert week["longer"] == 1
    assert week["limit_s"] == [100, 500, 10_000, inf]
    for name in DFRS:
        assert week["wall_s"][name] == pytest.approx([500] * 4)
        assert week["killed"][name] == [True, False, False, False]
        assert week["limited_wall_s"][name][0] == 100
    assert replay(nodes_like(EQUAL, 1), trace, ASAP_PER, 0, SiteVariant()).killed.sum() == 0


# --- the page


def test_the_page_has_a_row_for_each_variant_and_its_claims(units, found, tmp_path):
    page = beyond.page_of(Options(tmp_path), {SCALED: units}, found, [WEEK, WEEK])
    write_page(tmp_path, page)

    assert page.shown is not None
    assert [row[1].strip("*") for row in page.shown.rows] == list(EVERY)
    assert {row[1] for row in page.numbers[0].rows} == set(EVERY)
    survives = [claim for claim in page.claims if "stays 10 times better" in claim.text]
    assert len(survives) == len(VARIANTS) - 1
    assert survives[0].found.mean > 1
    text = (tmp_path / "README.md").read_text()
    assert "no week of HPC2N" in text
    assert "6 of 12 jobs run longer than their limits" in text
    for stem in ("factors", "limits"):
        assert (tmp_path / f"{stem}.svg").stat().st_size > 1000


def test_without_the_log_hpc2n_and_time_limits_are_left_out(units, found, tmp_path, monkeypatch):
    monkeypatch.setenv("SNS_SHARED", str(tmp_path))
    options = Options(tmp_path, seeds=100)

    assert list(beyond.units_of(options)) == [SCALED]
    assert len(beyond.units_of(options)[SCALED]) == beyond.MOST_SEEDS
    page = beyond.page_of(options, {SCALED: units}, found, [])
    assert [table.stem for table in page.numbers] == ["variants"]
    assert not any("HPC2N" in claim.text for claim in page.claims)


def test_a_verdict_follows_from_the_factors(units, found, tmp_path):
    """The largest stretches of EASY are made a thousand times those of DFRS."""
    changed = {
        instance: {**each, "runs": {name: {**of} for name, of in each["runs"].items()}}
        for instance, each in found.items()
    }
    for each in changed.values():
        for plain in (PAPER, FEWER):
            each["runs"][plain][EASY] = [1000 * each["runs"][plain][ASAP_PER][0], 1.0]
    page = beyond.page_of(Options(tmp_path), {SCALED: units}, changed, [])

    assert next(claim for claim in page.claims if "paper's model" in claim.text).verdict == HOLDS
