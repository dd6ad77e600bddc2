"""The page beyond the DFRS paper: what its variants change, how it counts, and what it says."""

from math import inf

import numpy as np
import pytest

from slurm_sns.policies.placement.node_arrays import CORES, MEMORY
from slurm_sns.sim.pages import FOLDERS
from slurm_sns.sim.pages.claims import PageClaims
from slurm_sns.sim.pages.judge import FAILS, HOLDS
from slurm_sns.sim.pages.page import write
from slurm_sns.sim.pages.running import Options
from slurm_sns.sim.replay.fluid_replay import SiteVariant
from slurm_sns.sim.trace import TraceArrays
from slurm_sns.sim.traces.fluid_trace import PARTS
from sns_reproductions import dfrs
from sns_reproductions.dfrs import HPC2N, SCALED, Instance, units_of
from sns_reproductions.dfrs_beyond import run as beyond
from sns_reproductions.dfrs_beyond.run import (
    ASAP_PER,
    DFRS,
    EASY,
    EQUAL,
    FEWER,
    GREEDY_PMTN,
    MOST_OVERESTIMATED,
    PAPER,
    TODAY,
    UNLIKE,
    estimates,
    fitting,
    label,
    measured,
    nodes_like,
    replay,
    replay_sharing,
    run_limits,
    run_variants,
    shares_of,
    variants_of,
)

PAGE = PageClaims.of(FOLDERS["dfrs-beyond"])
DATA = PAGE.content.data
EVERY = variants_of(DATA)
GENERATIONS, UNLIKE_MEMORY = EVERY["two generations"].nodes, EVERY[UNLIKE].nodes
LOADS = (0.3, 0.9)
TRACE_OF = dfrs.trace_of


def trace_of(*jobs: tuple[float, int, float, float, float]) -> TraceArrays:
    """Jobs of (run time, tasks, CPU need, memory need, limit), submitted at 0."""
    run_s, tasks, cpu, memory, limit_s = zip(*jobs, strict=True)
    return TraceArrays(
        np.arange(len(jobs)),
        np.zeros(len(jobs)),
        np.array(run_s, np.float64),
        limit=np.array(limit_s, np.float64),
        tasks=np.array(tasks, np.int64),
        cores=np.rint(np.array(cpu) * PARTS).astype(np.int64),
        memory=np.rint(np.array(memory) * PARTS).astype(np.int64),
    )


def short_trace_of(instance: Instance) -> tuple[TraceArrays, int]:
    """The first 150 jobs of an instance."""
    trace, count = TRACE_OF(instance)
    return trace.only(slice(150)), count


@pytest.fixture(scope="module")
def units():
    return units_of(SCALED, (1, 2), LOADS)


@pytest.fixture(scope="module")
def found(units):
    """The results for short traces."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dfrs, "trace_of", short_trace_of)
        return {instance: run_variants(instance, EVERY) for unit in units for instance in unit}


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


def written(out, units, found, weeks=()):
    """The claims of the page on these results, which is written."""
    return write(out, PAGE, beyond.results_of(Options(out), DATA, {SCALED: units}, found, weeks))


def with_easy_behind(found):
    """The results with largest stretches of EASY that are a thousand times those of DFRS."""
    changed = {instance: {**each, "runs": dict(each["runs"])} for instance, each in found.items()}
    for each in changed.values():
        for plain in (PAPER, FEWER):
            of_dfrs = each["runs"][label(plain, ASAP_PER)]
            each["runs"][label(plain, EASY)] = {**of_dfrs, "largest": 1000 * of_dfrs["largest"]}
    return changed


# --- what a variant changes


@pytest.mark.parametrize("count", [120, 128])
@pytest.mark.parametrize("shape", [EQUAL, *(variant.nodes for variant in EVERY.values())])
def test_unequal_nodes_have_as_much_together_as_equal_ones(shape, count):
    capacity = nodes_like(shape, count).capacity

    assert capacity[CORES].sum() == capacity[MEMORY].sum() == count * PARTS
    assert capacity.shape[1] == count


def test_jobs_are_left_out_that_do_not_fit_on_unequal_nodes():
    """64 nodes have 1.5 times the memory of a reference node: 64 tasks of 0.8 fit there, and none on the others."""
    clusters = [nodes_like(shape, 128) for shape in (GENERATIONS, UNLIKE_MEMORY)]
    trace = trace_of((1, 64, 1, 0.8, 0), (1, 65, 1, 0.8, 0), (1, 64, 1, 1.0, 0), (1, 128, 1, 0.3, 0))

    assert fitting(trace, clusters).identity.tolist() == [0, 2, 3]
    assert fitting(trace, [nodes_like(EQUAL, 128)]).identity.tolist() == [0, 1, 2, 3]


def test_a_need_is_measured_too_low_or_too_high_and_never_above_a_node():
    trace = trace_of(*[(1, 1, 0.5, 0.1, 0)] * 50, *[(1, 1, 1, 0.1, 0)] * 50)
    known, ratio = measured(trace, (-0.1, 0.1), np.random.default_rng(1))

    assert set(known.cores[:50].tolist()) == {450_000, 550_000}
    assert set(known.cores[50:].tolist()) == {900_000, 1_000_000}
    assert np.array_equal(known.cores, ratio * trace.cores)
    assert set(ratio.tolist()) == {0.9, 1.0, 1.1}


def test_estimates_are_the_limits_where_there_are_any_and_else_one_to_five_times_the_run_time():
    trace = trace_of((100, 1, 1, 1, 60), *[(100, 1, 1, 1, 0)] * 200)
    found = estimates(trace, np.random.default_rng(1))

    assert found[0] == 60
    assert 100 <= found[1:].min() < 110
    assert 100 * MOST_OVERESTIMATED - 10 < found[1:].max() <= 100 * MOST_OVERESTIMATED


def test_easy_on_shared_nodes_gives_tasks_their_cores_and_memory_and_those_of_a_job_different_nodes():
    """On two nodes: one half is beside the two halves of a job; then a node is full by CPU, the other by memory."""
    trace = trace_of((9, 2, 0.5, 0.3, 0), (9, 1, 0.5, 0.3, 0), (5, 1, 0.25, 0.5, 0), (5, 1, 0.25, 0.3, 0))
    ran = replay_sharing(2, trace, trace.run_s)

    assert ran.start_s.tolist() == [0, 0, 0, 5]
    assert ran.spread.tolist() == [0, 1]
    assert ran.place[1:3].tolist() == [0, 1]


def test_each_variant_is_compared_with_the_papers_model_and_the_same_jobs():
    for variant in EVERY.values():
        plain = EVERY[variant.baseline]
        assert plain.few == variant.few
        assert plain._replace(few=False) == EVERY[PAPER]
        assert set(variant.algorithms) <= {*TODAY, *DFRS}


def test_factors_are_over_the_best_of_easy_and_dfrs_with_the_same_jobs():
    baselines = {label(name, each): of.baseline for name, of in EVERY.items() for each in of.algorithms}
    largest = {key: np.array([[100.0]]) for key in baselines}
    largest[label(PAPER, ASAP_PER)] = np.array([[4.0]])
    largest[label(FEWER, ASAP_PER)] = np.array([[2.0]])
    factors = beyond.factors_of(largest, baselines)

    assert factors[label(PAPER, ASAP_PER)] == 1
    assert factors[label(PAPER, EASY)] == 25
    assert factors[label("two generations", ASAP_PER)] == 50


def test_in_the_papers_model_the_runs_are_those_of_the_other_pages(units, found, monkeypatch):
    monkeypatch.setattr(dfrs, "trace_of", short_trace_of)
    theirs = dfrs.run(units[0][0])["algorithms"]
    ours = found[units[0][0]]["runs"]

    for name in (EASY, *DFRS):
        of_page = theirs["easy" if name == EASY else f"dfrs-{name.lower()}"]
        ran = ours[label(PAPER, name)]
        assert (ran["largest"], ran["mean"]) == (of_page["max_stretch"], of_page["mean_stretch"])


def test_the_same_instance_gives_the_same_result_again(units, found, monkeypatch):
    monkeypatch.setattr(dfrs, "trace_of", short_trace_of)

    assert run_variants(units[0][0], EVERY) == found[units[0][0]]


def test_the_job_with_the_largest_stretch_is_told(found):
    for each in found.values():
        for ran in each["runs"].values():
            assert ran["largest"] == max(ran["turnaround_s"], 30) / max(ran["run_s"], 30)
            assert 0 <= ran["wait_s"] <= ran["turnaround_s"] - ran["run_s"] + 1e-6


# --- time limits


def test_shares_of_a_week_by_hand():
    shares = [share.mean for share in shares_of(DATA, [WEEK, WEEK], ASAP_PER).values()]

    killed, wasted, late, late_time, lost, lost_of_run, slower, late_without = shares
    assert killed == pytest.approx(100 / 3)
    assert wasted == pytest.approx(100 * 300 / 320)
    assert late == pytest.approx(100 / 3)  # a job that ends at its limit is in time
    assert late_time == pytest.approx(100 * 2 * 51 / 330)
    assert lost == pytest.approx(100 * 2 * 101 / 330)
    assert lost_of_run == pytest.approx(100 * 2 * 101 / 220)
    assert slower == pytest.approx(100 / 3)
    assert late_without == 0


def test_claims_on_limits_do_not_hold_where_a_third_of_the_jobs_is_killed(units, found, tmp_path):
    claims = written(tmp_path, units, found, [WEEK] * 3)

    assert [claim.verdict for claim in claims if claim.text.startswith("HPC2N, ")] == [FAILS] * 3 * len(DFRS)


def test_a_week_is_run_without_limits_and_with_them(monkeypatch):
    """Five jobs share a node at a yield of 0.2; job 3 would run too long even alone, and has no limit."""
    trace = trace_of(
        *[(100, 1, 1, 0.1, limit_s) for limit_s in (100, 500, 10_000)],
        (100, 1, 1, 0.1, 99),
        (100, 1, 1, 0.1, inf),
    )
    monkeypatch.setattr(dfrs, "trace_of", lambda _: (trace, 1))
    week = run_limits((HPC2N, 1, 300))

    assert week["longer"] == 1
    assert week["limit_s"] == [100, 500, 10_000, inf]
    for name in DFRS:
        assert week["wall_s"][name] == pytest.approx([500] * 4)
        assert week["killed"][name] == [True, False, False, False]
        assert week["limited_wall_s"][name][0] == 100
    assert replay(nodes_like(EQUAL, 1), trace, ASAP_PER, 0, SiteVariant()).killed.sum() == 0


# --- the page


def test_the_page_has_a_row_for_each_variant_and_its_claims(units, found, tmp_path):
    results = beyond.results_of(Options(tmp_path), DATA, {SCALED: units}, found, [WEEK, WEEK])
    claims = write(tmp_path, PAGE, results)

    assert {row[1] for row in results.tables[0].rows} == set(EVERY)
    survives = [claim for claim in claims if "stays 10 times better" in claim.text]
    assert len(survives) == len([variant for variant in EVERY.values() if not variant.is_cause]) - 1
    assert survives[0].found.mean > 1
    text = (tmp_path / "README.md").read_text()
    rows = [line.split(" | ")[1].strip("*") for line in text.splitlines() if line.startswith("| scaled | ")]
    assert rows == list(EVERY)
    assert "no week of HPC2N" in text
    assert "6 of 12 jobs run longer than their limits" in text
    for stem in ("factors", "limits"):
        assert (tmp_path / f"{stem}.svg").stat().st_size > 1000


def test_without_the_log_hpc2n_and_time_limits_are_left_out(units, found, tmp_path, monkeypatch):
    monkeypatch.setenv("SNS_SHARED", str(tmp_path))
    options = Options(tmp_path, seeds=100)

    assert list(beyond.instances(options)) == [SCALED]
    assert len(beyond.instances(options)[SCALED]) == beyond.MOST_SEEDS
    results = beyond.results_of(options, DATA, {SCALED: units}, found, [])
    assert [table.stem for table in results.tables] == ["variants"]
    assert not any("HPC2N" in claim.text for claim in write(tmp_path, PAGE, results))


def test_a_verdict_follows_from_the_factors(units, found, tmp_path):
    """The largest stretches of EASY are made a thousand times those of DFRS."""
    claims = written(tmp_path, units, with_easy_behind(found))

    assert next(claim for claim in claims if "paper's model" in claim.text).verdict == HOLDS


def test_sentences_have_the_numbers_of_this_run_and_what_it_does_not_show_is_not_said(units, found, tmp_path):
    unhurt = {**WEEK, "killed": {name: [False] * 3 for name in DFRS}}
    written(tmp_path, units, with_easy_behind(found), [unhurt] * 3)
    text = (tmp_path / "README.md").read_text()
    starved = max((each["runs"][label(UNLIKE, GREEDY_PMTN)] for each in found.values()), key=lambda of: of["largest"])

    assert "DYNMCB8-ASAP-PER is 1000 times better than EASY in the paper's model" in text
    assert f"a job of {starved['run_s']:.0f} s starts after {starved['wait_s']:.0f} s, is paused" in text
    assert "limits that count wall time kill: DYNMCB8-ASAP-PER 0.0 %" in text
    assert "time limits must not count wall time" not in text
    written(tmp_path, units, found, [WEEK] * 3)
    assert "time limits must not count wall time" in (tmp_path / "README.md").read_text()
