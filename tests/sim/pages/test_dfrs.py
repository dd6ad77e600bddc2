"""Reproductions of the DFRS paper: statistics of results made by hand, the runs, and small versions of the pages."""

import csv
import os
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path

import numpy as np
import pytest

from slurm_sns.errors import BadInput
from slurm_sns.policies.dfrs.algorithms import ALGORITHMS
from slurm_sns.policies.dfrs.instant import FluidJob, Instant, Nodes
from slurm_sns.policies.dfrs.policy import Dfrs
from slurm_sns.sim.pages import FOLDERS
from slurm_sns.sim.pages.claims import ClaimEntry, PageClaims
from slurm_sns.sim.pages.judge import Interval, exactly, interval
from slurm_sns.sim.pages.page import reproduce, write
from slurm_sns.sim.pages.running import Options, PageResults, WorkerProcesses
from slurm_sns.sim.run import TraceRun
from slurm_sns.sim.trace import TraceArrays
from slurm_sns.sim.traces.fluid_trace import PARTS
from slurm_sns.sim.workloads.dfrs_synthetic import PAPER_NODES, offered_load, paper_trace
from sns_reproductions import dfrs
from sns_reproductions.dfrs import (
    ASAP_PER,
    FCFS,
    GREEDY,
    GREEDY_PMTN,
    NINE,
    PER,
    STRETCH_PER,
    degradation,
    jackknife,
    outcome,
    quantities,
    ratio,
    replicates,
)
from sns_reproductions.dfrs_choices import run as choices
from sns_reproductions.dfrs_load import run as load
from sns_reproductions.dfrs_table1 import run as table1
from sns_reproductions.dfrs_table2 import run as table2
from sns_reproductions.dfrs_time import run as compute_time

LOAD, TABLE_1_PAGE, TABLE_2_PAGE = (PageClaims.of(FOLDERS[f"dfrs-{name}"]) for name in ("load", "table1", "table2"))
TABLE_1, TABLE_2 = TABLE_1_PAGE.content.data["table_1"], TABLE_2_PAGE.content.data["table_2"]
VARIANTS = LOAD.content.data["variants"]
SHARED = Path(os.environ.get("SNS_SHARED", Path(__file__).parents[3].parent / "shared"))
needs_log = pytest.mark.skipif(
    not (SHARED / "traces" / dfrs.LOG).is_file(), reason=f"{SHARED}/traces/{dfrs.LOG} is missing (SNS_SHARED)"
)


def found(**stretch: float) -> dict:
    """A result in which algorithms have these largest stretches and all others 100."""
    names = {name.replace("-", "_"): name for name in (*NINE, *VARIANTS)}
    given = {names[name]: value for name, value in stretch.items()}
    return {
        "jobs": 10,
        "load": 0.5,
        "algorithms": {
            name: {
                "max_stretch": given.get(name, 100.0),
                "mean_stretch": 1.0,
                "makespan_s": 7200.0,
                "preemptions": 20,
                "migrations": 10,
                "tasks_moved": 15,
                "memory_paused": 90.0,
                "memory_moved": 9.0,
            }
            for name in (*NINE, *VARIANTS)
        },
    }


# --- statistics


def test_the_factor_is_over_the_best_of_the_nine_algorithms_and_variants_are_not_among_them():
    results = {
        ("a", 1): found(fcfs=50, dfrs_greedy=5),
        ("a", 2): found(easy=20),
        ("b", 1): found(dfrs_greedy_retry_at_events=1),
        ("b", 2): found(easy_extra_nodes_only=2, easy=4),
    }
    factors = degradation([(("a", 1), ("a", 2)), (("b", 1), ("b", 2))], results)
    assert factors["fcfs"].tolist() == [[10, 5], [1, 25]]
    assert factors["dfrs-greedy"].tolist() == [[1, 5], [1, 25]]
    assert factors["dfrs-greedy-retry-at-events"].tolist() == [[20, 5], [0.01, 25]]
    assert factors["easy-extra-nodes-only"].tolist() == [[20, 5], [1, 0.5]]


def test_the_jackknife_of_a_mean_is_the_ordinary_interval_of_the_units_means():
    values = np.array([[1.0, 3], [5, 5], [2, 10]])
    ours, ordinary = jackknife(replicates(np.mean, values)), interval(values.mean(axis=1))
    assert (ours.mean, ours.low, ours.high) == pytest.approx((ordinary.mean, ordinary.low, ordinary.high))


def test_the_jackknife_of_a_largest_value_is_as_wide_as_its_distance_to_the_next():
    alike = jackknife(replicates(np.max, np.array([[9.0], [9.0], [1.0]])))
    alone = jackknife(replicates(np.max, np.array([[9.0], [8.0], [1.0]])))
    assert alike == exactly(9)
    assert alone.high - 9 == pytest.approx(4.303 * 2 / 3, abs=1e-3)


def test_a_single_unit_never_decides():
    assert jackknife(replicates(np.mean, np.array([[1.0, 2.0]]))) == Interval(1.5, -inf, inf)


def test_quantities_of_a_small_table():
    table = {PER: np.array([[1.0], [3.0]]), GREEDY: np.array([[2.0], [8.0]]), FCFS: np.array([[4.0], [4.0]])}
    gaps = {
        "the rest - PER": {"better": [PER]},
        "GREEDY - the rest": {"worse": [GREEDY]},
        "FCFS - PER": {"figure": "largest", "worse": [FCFS], "better": [PER]},
    }
    found = {name: of.mean for name, of in quantities(table, gaps, "here: ").items()}
    assert found[f"here: deviation of {PER}"] == 1
    assert (found[f"here: largest of {GREEDY}"], found[f"here: median of {GREEDY}"]) == (8, 5)
    assert found[f"here: average of {GREEDY} - {PER}"] == 3
    assert found[f"here: average of {GREEDY} / {PER}"] == 2.5
    assert found["here: average of the rest - PER"] == 2
    assert found["here: average of GREEDY - the rest"] == 1
    assert found["here: largest of FCFS - PER"] == 1


def test_a_ratio_to_nothing_is_no_number():
    of_nothing = ratio(np.array([0.0, 1.0, 3.0]), np.array([0.0, 0.0, 2.0])).tolist()
    assert of_nothing == pytest.approx([np.nan, np.nan, 1.5], nan_ok=True)


def test_a_difference_is_judged_by_what_it_is_without_each_unit():
    """The algorithms differ by 1 on each unit, however much the units differ."""
    table = {PER: np.array([[1.0], [30.0], [7.0]]), GREEDY: np.array([[2.0], [31.0], [8.0]])}
    found = quantities(table, {})[f"average of {GREEDY} - {PER}"]
    assert (found.low, found.high) == pytest.approx((1, 1))


def test_neighbours_are_next_to_each_other_in_the_printed_order_and_equal_ones_are_no_pair():
    def of(**averages):
        return table1.neighbours({name: {"average": average} for name, average in averages.items()})

    assert of(a=3.0, b=1.0, c=2.0) == [("b", "c"), ("c", "a")]
    assert of(a=1.0, b=1.0, c=2.0) == [("a", "c"), ("b", "c")]


@pytest.mark.parametrize(
    ("printed", "ours", "verdict"),
    [
        (10, 19, "holds"),
        (10, 21, "does not hold"),
        (10, 4, "does not hold"),
        (0, 0.004, "holds"),
        (0, 0.1, "does not hold"),
    ],
)
def test_a_printed_figure_is_met_within_a_factor_of_two(printed, ours, verdict):
    entry = ClaimEntry.model_validate({"of": "it", "reads": {"near": printed}})
    page = replace(LOAD, content=LOAD.content.model_copy(update={"claims": (entry,)}))
    [claim] = page.judge({"it": exactly(ours)}, {})
    assert claim.verdict == verdict


# --- printed tables


def test_the_printed_tables_are_complete_and_begin_and_end_as_printed():
    assert {workload: len(table) for workload, table in TABLE_1.items()} == {"scaled": 9, "unscaled": 9, "hpc2n": 9}
    assert {name for table in TABLE_1.values() for name in table} == set(NINE) == set(LOAD.content.data["names"])
    assert TABLE_1["scaled"][FCFS] == {"average": 435.32, "deviation": 239.37, "largest": 1470.30}
    assert TABLE_1["hpc2n"][STRETCH_PER] == {"average": 16.01, "deviation": 78.24, "largest": 900.45}
    columns = list(table2.costs(found()["algorithms"][PER], jobs=1))
    assert all(list(row) == columns for row in TABLE_2.values())
    assert len(TABLE_2) == 6
    assert TABLE_2[PER]["preemptions per hour"] == {"average": 45.58, "largest": 110.16}


# --- runs


def test_an_outcome_has_bounded_stretches_and_the_memory_of_what_was_paused_and_moved():
    count = 3
    trace = TraceArrays(
        np.arange(count),
        np.array([100.0, 100, 200]),
        np.array([10.0, 60, 100]),
        tasks=np.array([1, 2, 4]),
        cores=np.full(count, PARTS),
        memory=np.array([0.5, 0.25, 1]) * PARTS,
    )
    # Turnarounds of 15, 120 and 400 s; both times of the first job are below the bound of 30 s.
    ran = TraceRun(
        trace,
        trace.submit,
        np.array([115.0, 220, 600]),
        np.zeros(count, np.int64),
        preemptions=np.array([0, 3, 1]),
        migrations=np.array([0, 1, 2]),
        tasks_moved=np.array([0, 1, 5]),
    )
    ours = outcome(ran)

    assert (ours["max_stretch"], ours["mean_stretch"], ours["makespan_s"]) == (4, pytest.approx(7 / 3), 500)
    assert (ours["preemptions"], ours["migrations"], ours["tasks_moved"]) == (4, 3, 6)
    assert (ours["memory_paused"], ours["memory_moved"]) == (3 * 2 * 0.25 + 4, 0.25 + 5)


def test_costs_are_per_second_hour_and_job():
    outcome_of_two_hours = found()["algorithms"][PER]
    assert tuple(table2.costs(outcome_of_two_hours, jobs=10).values()) == (0.1, 0.01, 10, 5, 2, 1)
    table = table2.cost_tables([(("scaled", 1, 0.7, 300),)], {("scaled", 1, 0.7, 300): found()}, [PER])
    assert table["preemptions per job"][PER].tolist() == [[2]]
    assert table[table2.BOTH_GBPS][PER].tolist() == [[pytest.approx(0.11)]]
    assert table[table2.PER_NODE][PER].tolist() == [[pytest.approx(110 / 128)]]


def test_scaled_traces_have_the_jobs_of_the_unscaled_one_and_their_load():
    unscaled, nodes = dfrs.trace_of(("unscaled", 7, 300))
    scaled, _ = dfrs.trace_of(("scaled", 7, 0.4, 300))
    heavier, _ = dfrs.trace_of(("scaled-by-means", 7, 0.4, 300))
    assert nodes == PAPER_NODES
    assert offered_load(scaled, nodes) == pytest.approx(0.4, rel=1e-4)
    for trace in (scaled, heavier):
        assert trace.run_s.tolist() == unscaled.run_s.tolist()
        assert trace.memory.tolist() == unscaled.memory.tolist()
    gap_s = heavier.submit_s[-1] / (len(heavier) - 1)
    means = heavier.run_s.mean() * heavier.tasks.mean() / (nodes * gap_s)
    assert means == pytest.approx(0.4, rel=0.01)


def test_an_unknown_instance_is_refused():
    with pytest.raises(BadInput, match=r"instance .* is unknown"):
        dfrs.trace_of(("scaled", 1, 300))


@pytest.fixture
def short(monkeypatch):
    """Synthetic traces of 40 jobs."""
    monkeypatch.setattr(dfrs, "paper_trace", partial(paper_trace, jobs=40))


@pytest.fixture
def without_log(tmp_path, monkeypatch):
    """No measured data."""
    monkeypatch.setenv("SNS_SHARED", str(tmp_path / "nothing"))


@pytest.mark.usefixtures("short")
def test_an_instance_is_run_under_all_algorithms_and_only_dfrs_feels_the_penalty():
    free, costly = (dfrs.run(("scaled", 1, 0.9, penalty_s))["algorithms"] for penalty_s in (0, 300))
    assert set(free) == {*NINE, *VARIANTS}
    for name in dfrs.BATCH:
        assert free[name] == costly[name]
        assert free[name]["preemptions"] == free[name]["memory_moved"] == 0
    assert free["dfrs-dynmcb8"]["migrations"] > 0
    assert costly["dfrs-dynmcb8"]["max_stretch"] > free["dfrs-dynmcb8"]["max_stretch"]


@needs_log
def test_the_log_has_182_weeks_and_each_is_an_instance():
    trace, nodes = dfrs.trace_of(("hpc2n", dfrs.WEEKS, 300))
    assert (nodes, len(trace)) == (120, 43)
    with pytest.raises(IndexError):
        dfrs.trace_of(("hpc2n", dfrs.WEEKS + 1, 300))


# --- pages


def small(out: Path, kept: Path, *, resume: bool = True) -> Options:
    return Options(out, seeds=2, quick=True, workers=WorkerProcesses(1), resume=resume, runs=kept)


@pytest.mark.usefixtures("short", "without_log")
def test_pages_share_their_results_and_repeat_only_their_own_without_resume(tmp_path):
    kept, names = tmp_path / "kept", ("load", "table1", "table2")
    for name in names:
        claims, seeds = reproduce(f"dfrs-{name}", small(tmp_path / name, kept))
        assert {claim.verdict for claim in claims} <= {"holds", "does not hold", "cannot tell"}
        assert seeds == 2
    before = {path: path.stat().st_mtime_ns for path in (kept / "dfrs").iterdir()}
    texts = {name: (tmp_path / name / "README.md").read_bytes() for name in names}

    again = {name: tmp_path / "again" / name for name in texts}
    reproduce("dfrs-load", small(again["load"], kept))
    assert {path: path.stat().st_mtime_ns for path in (kept / "dfrs").iterdir()} == before
    assert (again["load"] / "README.md").read_bytes() == texts["load"]

    reproduce("dfrs-table2", small(again["table2"], kept, resume=False))
    after = {path: path.stat().st_mtime_ns for path in (kept / "dfrs").iterdir()}
    assert after.keys() == before.keys()
    changed = {path.name for path in before if after[path] != before[path]}
    assert changed == {
        f"{workload}-{seed}-{at}-300.json"
        for workload in ("scaled", "scaled-by-means")
        for seed in (1, 2)
        for at in (0.7, 0.8, 0.9)
    }
    assert (again["table2"] / "README.md").read_bytes() == texts["table2"]


def measured_factors(**factors):
    """The quantities of the first table, from the factors of all algorithms by workload."""
    return table1.measured(TABLE_1_PAGE.content.data, factors)


def judged_factors(**factors):
    """The claims of the first table."""
    fields = {"neighbours": {workload: table1.neighbours(TABLE_1[workload]) for workload in factors}}
    return TABLE_1_PAGE.judge(measured_factors(**factors), fields)


def test_figures_of_all_weeks_are_not_random_and_those_of_some_are():
    weeks = np.linspace(1, 3, dfrs.WEEKS).reshape(-1, 1)
    all_weeks, some = dict.fromkeys(NINE, weeks), dict.fromkeys(NINE, weeks[:10])
    of_log, of_some, of_seeds = (
        measured_factors(**{workload: table})[f"{workload} average of {ASAP_PER}"]
        for workload, table in (("hpc2n", all_weeks), ("hpc2n", some), ("unscaled", all_weeks))
    )
    assert of_log == exactly(2)
    assert of_some == jackknife(replicates(np.mean, weeks[:10]))
    assert of_seeds == jackknife(replicates(np.mean, weeks))


def test_orders_are_judged_by_the_averages_and_those_with_easy_also_for_the_variant():
    table = {name: np.full((3, 1), row["average"]) for name, row in TABLE_1["scaled"].items()}
    table |= {"easy-extra-nodes-only": np.full((3, 1), 200.0), "dfrs-greedy-retry-at-events": table[GREEDY]}
    claims = judged_factors(scaled=table)
    verdicts = {claim.measure: claim.verdict for claim in claims if "is better than" in claim.text}

    assert len(verdicts) == 8 + 2
    assert {measure for measure, verdict in verdicts.items() if verdict != "holds"} == {
        "average of easy-extra-nodes-only - dfrs-greedy"
    }
    averages = [claim for claim in claims if claim.text.startswith("scaled: average")]
    assert [claim.verdict for claim in averages] == ["holds"] * 11
    assert len(claims) == 10 + 3 + 2 + 9 * 3 + 2


@pytest.mark.usefixtures("short", "without_log")
def test_table_1_without_the_log_says_so_and_leaves_that_workload_out(tmp_path):
    claims, _ = reproduce("dfrs-table1", small(tmp_path, tmp_path / "kept"))
    assert "is missing here (SNS_SHARED), so HPC2N is left out" in (tmp_path / "README.md").read_text()
    assert {claim.text.split(":")[0] for claim in claims} == {"scaled", "unscaled"}
    with (tmp_path / "table-1.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * (9 + 2) * 3
    assert rows[0]["published"] == "435.32"
    with (tmp_path / "instances.csv").open() as file:
        instances = list(csv.DictReader(file))
    assert len(instances) == 2 * 3 + 2
    assert all(min(float(row[name]) for name in NINE) == 1 for row in instances)


def test_claims_on_the_figure_are_made_of_the_loads_that_were_run():
    rng, loads = np.random.default_rng(1), (0.1, 0.3, 0.9)
    table = {name: rng.uniform(1, 2, (4, 3)) for name in (*NINE, *VARIANTS)}
    for name in dfrs.BATCH:
        table[name] += 200
    table[GREEDY] += 50
    for name in (PER, ASAP_PER, STRETCH_PER):
        table[name][:, 2] -= 1  # the best at load 0.9, and mixed with the others below
    judged = LOAD.judge(load.measured(LOAD.content.data, table, table, loads), {"loads": loads})
    verdicts = {claim.text: claim.verdict for claim in judged if claim.where == "fig. 1b"}

    assert verdicts["at load 0.9 the periodic algorithms are the best"] == "holds"
    assert "at load 0.1 GREEDY-PMTN and GREEDY-PMTN-MIGR are the best" in verdicts
    assert not any("0.3" in text for text in verdicts)
    assert verdicts["DYNMCB8 is still better than GREEDY and batch scheduling"] == "holds"
    claims = {claim.text: claim for claim in judged if claim.where == "fig. 1a"}
    assert claims["all other DFRS algorithms are better than GREEDY"].verdict == "holds"
    assert claims["the average of DYNMCB8 is 1.16"].expected == "1.08 to 1.32"


def test_what_the_figure_does_not_show_is_not_said(tmp_path):
    """EASY behind GREEDY as printed, then before it; the variant is as bad as FCFS."""

    def page(easy: float) -> str:
        table = {name: np.full((3, 2), 5.0) for name in (*NINE, *VARIANTS)}
        table |= {GREEDY: np.full((3, 2), 50.0), "easy": np.full((3, 2), easy)}
        found = load.measured(LOAD.content.data, table, table, (0.1, 0.9))
        fields = {"factors": {}, "loads": (0.1, 0.9), "algorithms": list(table), "preempting_best_pct": 50.0}
        write(tmp_path, LOAD, PageResults(found, fields=fields, seeds=3))
        return (tmp_path / "README.md").read_text()

    assert "the average of EASY is 20.0, that of GREEDY 50.0. So EASY is better than GREEDY here" in page(20)
    assert "EASY is better than GREEDY" not in page(80)


# --- periods, and the priority without the square


@pytest.mark.parametrize(("policy", "paused"), [(Dfrs, 1), (choices.UnsquaredDfrs, 2)])
def test_without_the_square_the_job_with_the_largest_share_of_virtual_time_is_paused(policy, paused):
    """Flow times 1000 and 100 s, virtual times 100 and 20 s: priorities 0.1 and 0.25, without the square 10 and 5."""
    running = FluidJob(1, 0, 1, 100, 40, 100, (0,)), FluidJob(2, 900, 1, 100, 40, 20, (0,))
    at = Instant(1000, Nodes((100,), (100,)), (*running, FluidJob(3, 1000, 1, 100, 50)), frozenset({3}))
    decided = policy(ALGORITHMS[GREEDY_PMTN]).decide(at)
    assert {1, 2, 3} - set(decided.places) == {paused}


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("name", choices.PREEMPTING)
def test_the_simulation_of_any_policy_gives_the_stretch_of_the_other_pages(name):
    instance = ("scaled", 1, 0.9, 300)
    trace, nodes = dfrs.trace_of(instance)
    largest = choices.largest_stretch(trace, nodes, Dfrs(ALGORITHMS[name]), 300)
    assert largest == pytest.approx(dfrs.run(instance)["algorithms"][name]["max_stretch"], rel=1e-6)


@pytest.mark.usefixtures("short")
def test_runs_with_the_papers_period_are_those_of_the_other_pages(tmp_path):
    claims, _ = reproduce("dfrs-choices", small(tmp_path, tmp_path / "kept"))
    assert len(claims) == 3 * (2 + 2) + 3 * (2 + 2 + 1) + 5
    with (tmp_path / "choices.csv").open() as file:
        factors = {(row["penalty_s"], row["algorithm"]): row["average_factor"] for row in csv.DictReader(file)}
    for name in choices.PERIODIC:
        assert factors["300", name] == factors["300", choices.label(name, dfrs.PERIOD_S)]
        assert factors["300", choices.label(name, 3600)] != factors["300", name]


# --- compute times


def test_decisions_are_merged_by_the_number_of_jobs_and_split_at_ten():
    timed = [[[3, 2, 0.2, 0.15], [11, 1, 0.5, 0.5]], [[3, 1, 0.1, 0.1], [20, 3, 0.9, 0.4]]]
    assert compute_time.merged(timed) == [(3, 3, pytest.approx(0.1), 0.15), (11, 1, 0.5, 0.5), (20, 3, 0.3, 0.4)]
    found = {name: of.mean for name, of in compute_time.measured(timed, small=10).items()}
    assert found == {
        "observations": 3.5,
        "many_pct": pytest.approx(100 * 4 / 7),
        "most_jobs": 20,
        "few_most_s": 0.15,
        "many_mean_s": pytest.approx(1.4 / 4),
        "many_most_s": 0.5,
    }


@pytest.mark.usefixtures("short")
def test_each_submit_and_end_is_an_observation_unless_they_coincide(tmp_path):
    claims, _ = reproduce("dfrs-time", small(tmp_path, tmp_path / "kept"))
    assert len(claims) == 6
    with (tmp_path / "times.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert 2 * 60 < sum(int(row["observations"]) for row in rows) <= 2 * 80
    assert (tmp_path / "times.svg").stat().st_size > 1000
