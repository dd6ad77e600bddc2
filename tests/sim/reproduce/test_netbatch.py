"""Reproductions: the rule of the verdicts, runs that are resumed, and the pages."""

import csv
import json
from dataclasses import replace
from math import inf

import numpy as np
import pytest

from slurm_sns.errors import BadInput
from slurm_sns.sim.reproduce import figures
from slurm_sns.sim.reproduce.claims import Claim, Interval, exactly, interval, percent_more, t_quantile
from slurm_sns.sim.reproduce.kept import Keeping
from slurm_sns.sim.reproduce.netbatch import buckets, examples, full, load, traces, variants, wins, workload
from slurm_sns.sim.reproduce.options import Options
from slurm_sns.sim.reproduce.page import Page, write_page
from slurm_sns.sim.reproduce.runs import POLICIES, Sweep, records_of
from slurm_sns.sim.reproduce.work import Processes
from slurm_sns.sim.workloads.netbatch import generate
from slurm_sns.sim.workloads.netbatch_pools import POOLS
from slurm_sns.sim.workloads.netbatch_variants import VARIANTS


def claim(found, **bounds):
    return Claim("fig. 0", "a text", "a measure", Interval(sum(found) / 2, *found), **bounds)


@pytest.mark.parametrize(("freedom", "printed"), [(1, 12.706), (2, 4.303), (4, 2.776), (29, 2.045), (1000, 1.962)])
def test_the_quantiles_are_those_of_the_tables(freedom, printed):
    assert t_quantile(freedom) == pytest.approx(printed, abs=1e-3)


def test_the_interval_of_samples_is_the_one_of_a_textbook():
    found = interval([4, 5, 6, 7, 8])
    assert (found.mean, found.low, found.high) == pytest.approx((6, 6 - 1.9632, 6 + 1.9632), abs=1e-3)


def test_one_sample_says_nothing_but_a_quantity_without_chance_needs_no_more():
    assert interval([3.0]).high == inf
    assert exactly(3.0).low == exactly(3.0).high == 3.0


@pytest.mark.parametrize(
    ("found", "bounds", "verdict"),
    [
        ((1, 2), {"low": 0}, "holds"),
        ((-1, 2), {"low": 0}, "cannot tell"),
        ((-2, -1), {"low": 0}, "does not hold"),
        ((-2, -1), {"high": 0}, "holds"),
        ((0, 0), {"low": 0}, "does not hold"),
        ((-4, 4), {"low": -5, "high": 5}, "holds"),
        ((-4, 6), {"low": -5, "high": 5}, "cannot tell"),
        ((5, 6), {"low": -5, "high": 5}, "does not hold"),
        ((-inf, inf), {"low": 0}, "cannot tell"),
    ],
)
def test_the_verdict_follows_from_the_interval_and_the_bounds(found, bounds, verdict):
    assert claim(found, **bounds).verdict == verdict


def test_percentages_are_taken_pair_by_pair():
    assert percent_more(np.array([2.0, 30.0]), np.array([1.0, 40.0])).tolist() == [100, -25]


def test_the_page_says_what_was_claimed_found_and_judged(tmp_path):
    write_page(tmp_path, Page("A title", ["How."], [claim((1, 2), low=0), claim((-1, 2), low=0)]))
    text = (tmp_path / "README.md").read_text()
    assert "**2 claims: 1 holds, 1 cannot tell.**" in text
    assert "| fig. 0 | a text | a measure | above 0 | 1.5 [1, 2] | **holds** |" in text
    with (tmp_path / "claims.csv").open() as file:
        assert [row["verdict"] for row in csv.DictReader(file)] == ["holds", "cannot tell"]


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    sweep = Sweep(tmp_path_factory.mktemp("runs"), seeds=2, scale=0.005, days=0.5, betas=(0.8, 0.58))
    sweep.run(Processes(1), resume=False)
    return sweep


def test_every_pool_load_policy_and_seed_has_one_result(sweep):
    assert len(list(sweep.runs.glob("*.json"))) == 4 * 2 * len(POLICIES) * 2
    assert [sweep.complete(0.58, pool) for pool in POOLS] == [2] * 4


def test_policies_of_one_seed_saw_the_same_load_and_a_smaller_beta_raises_it(sweep):
    loads = {policy: sweep.values("A", 0.58, policy, "load_cores").tolist() for policy in POLICIES}
    assert all(load == loads["mix-fit"] for load in loads.values())
    assert loads["mix-fit"][0] != loads["mix-fit"][1]
    assert (sweep.values("A", 0.8, "mix-fit", "load_cores") < loads["mix-fit"]).all()


def test_a_resumed_sweep_runs_only_what_is_missing_and_gets_the_same(sweep):
    path = sweep.path("C", 0.8, "max-jobs", 2)
    before = {each: each.stat().st_mtime_ns for each in sweep.runs.glob("*.json")}
    kept = {**json.loads(path.read_text()), "wall_s": 0}
    path.unlink()
    assert [sweep.complete(0.8, pool) for pool in POOLS] == [2, 2, 1, 2]
    told = []
    sweep.run(Processes(1), resume=True, report=lambda done, total: told.append((done, total)))
    assert {**json.loads(path.read_text()), "wall_s": 0} == kept
    assert told == [(0, 1), (1, 1)]
    assert {each for each in before if each.stat().st_mtime_ns != before[each]} == {path}


def test_pages_of_load_and_wins_are_made_from_the_same_runs(sweep, tmp_path):
    for module, stems in ((load, ["figure-13", "figure-14", "figure-15"]), (wins, ["figure-16"])):
        options = Options(tmp_path / module.__name__, seeds=2)
        page = module.page_of(options, load.Results(sweep))
        write_page(options.out, page)
        assert [drawing.stem for drawing in page.drawings] == stems
        for stem in stems:
            assert {(options.out / f"{stem}.{kind}").stat().st_size > 0 for kind in ("png", "svg", "csv")} == {True}
        assert {found.verdict for found in page.claims} <= {"holds", "does not hold", "cannot tell"}


def test_the_examples_come_out_as_in_the_paper(tmp_path):
    page = examples.reproduce(Options(tmp_path))
    assert [found.verdict for found in page.claims] == ["holds"] * 9
    assert {path.name for path in tmp_path.glob("*.svg")} == {f"figure-{at}.svg" for at in (3, 4, 8, 9, 10)}


def test_figures_are_the_same_bytes_each_time(tmp_path):
    for folder in ("one", "two"):
        figures.bars(tmp_path / folder, "figure", {"legend": {"group": Interval(2, 1, 3)}}, ("x", "y"))
    for kind in ("png", "svg"):
        assert (tmp_path / f"one/figure.{kind}").read_bytes() == (tmp_path / f"two/figure.{kind}").read_bytes()


def test_somebody_wins_each_bucket_and_shares_are_percentages():
    won = buckets.contest(("D", 1, 4))
    for figure, members in buckets.CONTESTS.items():
        assert len(won[figure]) == len(members)
        assert 100 <= sum(won[figure]) <= 100 * len(members)


def test_paired_sizes_are_the_same_cores_and_amounts_with_the_most_memory_for_the_most_cores():
    cores, memory_gb = np.array([1.0, 4, 1, 2, 1]), np.array([8.0, 1, 64, 2, 4])
    same, given = buckets.paired((cores, memory_gb), np.random.default_rng(1))
    assert (same == cores).all()
    assert given[[1, 3]].tolist() == [64, 8]
    assert sorted(given[[0, 2, 4]]) == [1, 2, 4]


def test_on_a_bucket_that_fits_whole_all_heuristics_are_level():
    few = np.concatenate([np.full(500, 1.0), np.full(500, 9.0)])  # no machine of 8 cores can hold the others
    won = buckets.winners((few, np.ones(1000)), buckets.CONTESTS["figure-11"])
    assert won == [True] * 5


def test_who_waits_is_told_of_wide_jobs_and_others():
    # Two windows: mean wait, loads, summed waits of wide jobs and others, their numbers.
    assert traces.by_width([(5, 0, 0, 30.0, 10.0, 1, 4), (5, 0, 0, 50.0, 30.0, 1, 4)]) == (40, 5)


def test_shares_of_sizes_are_percentages_of_all_jobs():
    seen = workload.Seen(*map(np.array, workload.look(("B", 1, 0.05))))
    assert seen.cores.sum() == pytest.approx(100)
    assert seen.memory.sum() == pytest.approx(100)
    assert len(seen.bucket_gb) == POOLS["B"].jobs_at(1.0, 0.05) // 1000


def test_work_on_several_processes_comes_back_in_order():
    assert Processes(2)(abs, [-3, -2, 1]) == [3, 2, 1]


def test_results_are_kept_and_only_what_is_missing_is_done_again(tmp_path):
    done = []

    def find(piece):
        done.append(piece)
        return [piece[1] / 3]

    keeping, pieces = Keeping(find, tmp_path / "kept"), [("A", 1), ("A", 2), ("B", 0.5)]
    found = keeping.results(pieces, Processes(1), resume=True)
    assert found == [[1 / 3], [2 / 3], [0.5 / 3]]
    keeping.path(("A", 2)).unlink()
    assert keeping.results(pieces, Processes(1), resume=True) == found
    assert done == [*pieces, ("A", 2)]
    assert keeping.results(pieces[:1], Processes(1), resume=False) == found[:1]
    assert [path.name for path in keeping.folder.iterdir()] == ["A-1.json"]


def test_windows_of_a_trace_begin_at_zero_and_hold_every_job_once():
    pool = POOLS["A"].nodes(0.01)
    records = records_of(generate(POOLS["A"], scale=0.01, seed=1, days=0.1), pool, 1.0)
    windows = traces.cut(records, 7)
    assert [int(window.submit_s[0]) for window in windows] == [0] * 7
    assert np.concatenate([window.identity for window in windows]).tolist() == records.identity.tolist()
    assert max(map(len, windows)) - min(map(len, windows)) <= 1


def test_a_trace_that_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("SNS_SHARED", str(tmp_path))
    with pytest.raises(BadInput, match=r"HPC2N.*missing; valid: SNS_SHARED names a folder"):
        traces.LOGS["HPC2N"].path()


def test_the_full_size_takes_three_seeds_at_most_and_all_pools(tmp_path):
    sweep = full.sweep_of(Options(tmp_path, seeds=30))
    assert (sweep.seeds, sweep.scale, sweep.pools) == (3, 1.0, ("A", "B", "C", "D"))


def test_the_page_of_the_full_size_asks_the_same_claims_and_shows_the_waits(sweep, tmp_path):
    page = full.page_of(sweep)
    assert page.seeds == 2
    write_page(tmp_path, page)
    assert [each.text for each in page.claims] == [each.text for each in load.claims_of(load.Results(sweep))]
    assert "| mean wait (s) | pool A | pool B | pool C | pool D |" in (tmp_path / "README.md").read_text()


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_keeps_the_printed_totals_and_the_load_of_the_scarcer_resource(variant):
    for pool in POOLS.values():
        changed = VARIANTS[variant](pool)
        nodes = changed.nodes(1.0)
        assert (len(nodes.names), nodes.total.cores, changed.jobs) == (pool.machines, pool.cores, pool.jobs)
        assert changed.binding_load == pool.binding_load


def test_the_page_of_the_variants_says_under_which_of_them_a_claim_holds(tmp_path):
    options = Options(tmp_path / "page", seeds=2, quick=True, workers=Processes(1))
    sweeps = [
        replace(variants.sweep_of(options, variant), scale=0.005, days=0.5) for variant in ("as generated", "no bursts")
    ]
    for sweep in sweeps:
        options.run(sweep)
    assert len({sweep.runs for sweep in sweeps}) == 2

    write_page(options.out, variants.page_of([load.Results(sweep) for sweep in sweeps]))

    text = (options.out / "README.md").read_text()
    assert "| claim | holds |" in text
    with (options.out / "claims.csv").open() as file:
        assert {row["where"] for row in csv.DictReader(file)} == {"as generated", "no bursts"}
