"""Reproductions of Max-Jobs: what claims say of results made by hand, runs that are resumed, and small pages."""

import csv
import json
import time
from dataclasses import replace

import numpy as np
import pytest

from slurm_sns.errors import BadInput
from slurm_sns.policies.matching.max_jobs import rules_of
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.sim.pages import FOLDERS
from slurm_sns.sim.pages.claims import ClaimEntry, PageClaims
from slurm_sns.sim.pages.judge import IDENTICAL, INPUTS, Claim, Interval, count_verdicts, exactly, joint
from slurm_sns.sim.pages.page import write
from slurm_sns.sim.pages.running import Options, PageResults, WorkerProcesses
from slurm_sns.sim.replay.trace_replay import replay
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.workloads.netbatch import SubmittedJobs, generate
from slurm_sns.sim.workloads.netbatch_pools import CALIBRATED_BETAS, POOLS, VARIANT_BETAS, VARIANTS, WAITS_S
from slurm_sns.sim.workloads.write import write_pieces
from sns_reproductions.netbatch import (
    METRICS,
    Results,
    Shares,
    above,
    call,
    comparisons,
    finished,
    points,
    wins_of,
)
from sns_reproductions.netbatch_buckets import run as buckets
from sns_reproductions.netbatch_corner import run as corner
from sns_reproductions.netbatch_depth import run as depth
from sns_reproductions.netbatch_examples import run as examples
from sns_reproductions.netbatch_full import run as full
from sns_reproductions.netbatch_generator import run as generator
from sns_reproductions.netbatch_load import run as load
from sns_reproductions.netbatch_lookahead import run as lookahead
from sns_reproductions.netbatch_machines import run as machines
from sns_reproductions.netbatch_resources import run as resources
from sns_reproductions.netbatch_site import run as site
from sns_reproductions.netbatch_sweeps import (
    HIGHEST_LOAD,
    MAX_JOBS,
    POLICIES,
    ROWS,
    Sweep,
    lines_of,
    records_of,
    restore,
    run_sweeps,
    workload_digest,
)
from sns_reproductions.netbatch_traces import run as traces
from sns_reproductions.netbatch_variants import run as variants
from sns_reproductions.netbatch_wins import run as wins
from sns_reproductions.netbatch_workload import run as workload

PAGES = {
    name: PageClaims.of(FOLDERS[f"netbatch-{name}"])
    for name in (
        "buckets", "corner", "depth", "examples", "full", "generator", "load", "lookahead", "machines", "resources",
        "site", "traces", "variants", "wins", "workload",
    )
}  # fmt: skip
DATA = PAGES["load"].content.data
READINGS = PAGES["load"].content.readings
HEURISTICS = tuple(each for each, members in POLICIES.items() if members == (each,) and each != "first-fit")


def judged(name, results):
    """The claims of a page on these results."""
    return PAGES[name].judge(results.quantities, results.fields)


def reads(reading, found, text="", **names):
    """A claim that reads a word of the paper."""
    entry = ClaimEntry.model_validate({"text": text, "of": "it", "reads": reading})
    page = replace(PAGES["load"], content=PAGES["load"].content.model_copy(update={"claims": (entry,)}))
    [claim] = page.judge({"it": found}, names)
    return claim


def claim(found, **bounds):
    return Claim("fig. 0", "a text", "a measure", Interval(sum(found) / 2, *found), **bounds)


def test_policies_with_the_same_schedules_neither_meet_nor_miss_a_claim_on_their_difference():
    same = reads("the_same", np.zeros(3))
    assert (same.verdict, reads("poor", exactly(0)).verdict) == (IDENTICAL, IDENTICAL)
    assert count_verdicts([same]) == {"holds": 0, "does not hold": 0, "cannot tell": 0, IDENTICAL: 1}
    assert joint("", same, claim((1, 2), low=0)).verdict == IDENTICAL
    assert joint("", same, claim((-2, -1), low=0)).verdict == "does not hold"
    # A share of 0 % and a quantity without chance are no differences.
    assert reads({"share": 5}, exactly(0), unit="%").verdict == "holds"
    assert Claim("", "", "", exactly(0), -0.5, 0.5).verdict == "holds"


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    sweep = Sweep(tmp_path_factory.mktemp("runs"), seeds=2, scale=0.005, days=0.5, betas=(0.8, 0.58))
    run_sweeps(Options(sweep.folder, workers=WorkerProcesses(1)), [sweep])
    return sweep


def values(sweep, beta, policy, metric="load_cores"):
    """One metric of pool A by seed."""
    return np.array([run[metric] for run in sweep.read("A", beta, policy)])


def test_every_pool_load_policy_and_seed_has_one_result(sweep):
    assert len(list(sweep.runs.glob("*.json"))) == 4 * 2 * len(POLICIES) * 2
    assert [sweep.complete(0.58, pool) for pool in POOLS] == [2] * 4


def test_policies_of_one_seed_saw_the_same_load_and_a_smaller_beta_raises_it(sweep):
    loads = {policy: values(sweep, 0.58, policy).tolist() for policy in POLICIES}
    assert all(load == loads["mix-fit"] for load in loads.values())
    assert loads["mix-fit"][0] != loads["mix-fit"][1]
    assert (values(sweep, 0.8, "mix-fit") < loads["mix-fit"]).all()


def test_a_resumed_sweep_runs_only_what_is_missing_and_gets_the_same(sweep, tmp_path):
    path = sweep.path("C", 0.8, "max-jobs", 2)
    before = {each: each.stat().st_mtime_ns for each in sweep.runs.glob("*.json")}
    kept = {**json.loads(path.read_text()), "wall_s": 0}
    path.unlink()
    assert [sweep.complete(0.8, pool) for pool in POOLS] == [2, 2, 1, 2]
    told = []
    options = Options(tmp_path, workers=WorkerProcesses(1), resume=True, report=lambda *counts: told.append(counts))
    run_sweeps(options, [sweep])
    assert {**json.loads(path.read_text()), "wall_s": 0} == kept
    assert told == [(0, 1), (1, 1)]
    assert {each for each in before if each.stat().st_mtime_ns != before[each]} == {path}


def test_the_page_of_the_load_draws_the_three_figures(sweep, tmp_path):
    results = load.results_of(Options(tmp_path, seeds=2), DATA, list(finished({"": sweep}).values()))
    claims = write(tmp_path, PAGES["load"], results)
    text = (tmp_path / "README.md").read_text()
    assert [stem for stem in ("figure-13", "figure-14", "figure-15", "figure-16") if f"({stem}.png)" in text] == [
        "figure-13",
        "figure-14",
        "figure-15",
    ]
    for stem in ("figure-13", "figure-14", "figure-15"):
        assert {(tmp_path / f"{stem}.{kind}").stat().st_size > 0 for kind in ("png", "svg", "csv")} == {True}
    assert {found.verdict for found in claims} <= {"holds", "does not hold", "cannot tell", IDENTICAL}


def test_the_page_of_the_load_keeps_its_rows_beside_it(tmp_path, monkeypatch):
    monkeypatch.setattr(load, "QUICK_SCALE", 0.005)
    monkeypatch.setattr(load, "QUICK_DAYS", 0.2)
    monkeypatch.setattr(load, "QUICK_BETAS", (0.8, 0.58))
    load.run(Options(tmp_path / "page", seeds=2, quick=True, workers=WorkerProcesses(1)), DATA)
    rows = TraceFile.of(str(tmp_path / "page" / ROWS)).text().splitlines()
    assert len(rows) == 4 * 2 * len(POLICIES) * 2


def test_a_page_of_the_load_without_finished_runs_says_so(tmp_path):
    results = load.results_of(Options(tmp_path, seeds=2), DATA, list(finished({"": Sweep(tmp_path, 2)}).values()))
    claims = write(tmp_path, PAGES["load"], results)
    assert (results.seeds, claims) == (0, [])
    assert "No run is finished." in (tmp_path / "README.md").read_text()


def won(mix, memory=50.0, cores=50.0):
    shares = dict.fromkeys(HEURISTICS, 40.0) | {
        "mix-fit": mix,
        "best-fit-memory": memory,
        "worse-fit-cores": cores,
    }
    return {name: np.array([share, share + 0.1, share - 0.1]) for name, share in shares.items()}


def claims_on_wins(shares, buckets_won=None):
    """The claims on these shares by pool; without buckets those of the variants."""
    known = {**points([Shares(shares)], buckets_won)}
    fields = {"shares": [Shares(shares)], "with_buckets": buckets_won is not None}
    return PAGES["wins"].judge(known, fields)


@pytest.mark.parametrize(
    ("share", "verdict"), [(60.0, "does not hold"), (73.0, "holds"), (79.0, "holds"), (95.0, "does not hold")]
)
def test_the_printed_share_of_wins_is_a_value_to_be_met_not_a_lower_bound(share, verdict):
    claims = claims_on_wins({"A": won(share)}, {"A": won(20.0)})
    assert [each.verdict for each in claims if "as low as 73%" in each.text] == [verdict]


def test_markedly_more_wins_needs_a_margin_and_every_pool_is_asked():
    shares = {"A": won(75.0, 70.0, 50.0), "B": won(80.0, 55.0, 50.0)}
    claims = claims_on_wins(shares, dict.fromkeys("AB", won(90.0)))
    marked = {each.text[0]: each.verdict for each in claims if 'markedly better than Worse-Fit-Cores"' in each.text}
    assert marked == {"A": "holds", "B": "does not hold"}
    assert {each.verdict for each in claims if "buckets experiment" in each.text} == {"does not hold"}
    (especially,) = [each for each in claims if "especially" in each.text]
    assert [part.measure for part in especially.parts] == ["points of lead, A", "points of lead, A - B"]
    assert especially.verdict == "holds"


def test_a_heuristic_that_is_behind_is_not_especially_far_ahead():
    shares = {"A": won(75.0, 40.0, 50.0), "B": won(80.0, 20.0, 50.0)}
    (especially,) = [each for each in claims_on_wins(shares) if "especially" in each.text]
    assert [part.verdict for part in especially.parts] == ["does not hold", "holds"]
    assert especially.verdict == "does not hold"


def test_a_heuristic_that_is_not_dominant_is_not_even_more_dominant_than_in_the_buckets():
    def more(mix):
        claims = claims_on_wins({"A": won(mix, 70.0)}, {"A": won(20.0)})
        return [each.verdict for each in claims if "even more" in each.text]

    assert (more(75.0), more(60.0)) == (["holds"], ["does not hold"])


def test_the_least_share_of_all_pools_is_one_claim():
    shares = {"A": won(75.0), "B": won(80.0), "C": won(70.0)}
    (least,) = [each for each in claims_on_wins(shares) if "least in A" in each.text]
    assert ([part.verdict for part in least.parts], least.verdict) == (["holds", "does not hold"], "does not hold")


def test_the_examples_come_out_as_in_the_paper(tmp_path):
    claims = judged("examples", examples.run(Options(tmp_path), PAGES["examples"].content.data))
    assert [found.verdict for found in claims] == ["holds"] * 9
    assert {path.name for path in tmp_path.glob("*.svg")} == {f"figure-{at}.svg" for at in (3, 4, 8, 9, 10)}


def test_somebody_wins_each_bucket_and_shares_are_percentages():
    won = buckets.contest(("D", 1, 0.02))
    for figure, members in buckets.CONTESTS.items():
        assert len(won[figure]) == len(members)
        assert 100 <= sum(won[figure]) <= 100 * len(members)


def test_a_contest_takes_every_whole_bucket_of_the_days_once(monkeypatch):
    seen = []
    monkeypatch.setattr(buckets, "AT_A_TIME", 2)
    monkeypatch.setattr(
        buckets, "matches", lambda sizes, members: seen.append(len(sizes[0])) or np.ones((len(sizes[0]), len(members)))
    )
    buckets.contest(("A", 1, 0.02))
    assert sum(seen) == 2 * (POOLS["A"].jobs_at(1.0, 0.02) // 1000 * 1000)  # as generated, and paired
    assert max(seen) == 2000


def test_a_bucket_is_matched_as_a_replay_of_it_alone():
    rng = np.random.default_rng(3)
    sizes = rng.choice([1.0, 2, 4, 9], 3000), rng.choice([1.0, 8, 16, 64], 3000)
    members = ("worse-fit-cores", "mix-fit", "best-fit-memory")
    together = buckets.matches(sizes, members)
    for at, matched in enumerate(together):
        one = tuple(each[at * 1000 : (at + 1) * 1000] for each in sizes)
        records = records_of([SubmittedJobs(np.zeros(1000), np.ones(1000), *one, np.ones(1000))], buckets.EMPTY, 1.0)
        for member, count in zip(members, matched.tolist(), strict=True):
            parameters = MatchingParameters(portfolio=(member,), queue_depth=1000, reservations=0)
            assert replay(buckets.EMPTY, records, rules_of(parameters), interval_s=30).cycles.started[0] == count


def test_paired_sizes_are_the_same_cores_and_amounts_with_the_most_memory_for_the_most_cores(monkeypatch):
    monkeypatch.setattr(buckets, "BUCKET", 5)
    cores, memory_gb = np.array([1.0, 4, 1, 2, 1] * 2), np.array([8.0, 1, 64, 2, 4, 1, 1, 1, 1, 2])
    same, given = buckets.paired((cores, memory_gb), np.random.default_rng(1))
    assert (same == cores).all()
    assert given[[1, 3]].tolist() == [64, 8]
    assert sorted(given[[0, 2, 4]]) == [1, 2, 4]
    assert given[6] == 2
    assert sorted(given[5:]) == [1, 1, 1, 1, 2]


def test_on_a_bucket_that_fits_whole_all_heuristics_are_level():
    few = np.concatenate([np.full(500, 1.0), np.full(500, 9.0)])  # no machine of 8 cores can hold the others
    won = buckets.winners(buckets.matches((few, np.ones(1000)), buckets.CONTESTS["figure-11"]))
    assert won.tolist() == [[True] * 5]


def test_smaller_differences_need_a_lead():
    level = dict.fromkeys(buckets.CONTESTS[buckets.FIGURE_7], 40.0)
    by_pool = {
        name: {member: np.full(2, 80.0 - behind if member == "worse-fit-cores" else share) + np.arange(2)
               for member, share in level.items()}
        for name, behind in (("A", 0), ("B", 20), ("C", 60), ("D", 0))
    }  # fmt: skip
    entries = PAGES["buckets"].content.claims[:1]
    page = replace(PAGES["buckets"], content=PAGES["buckets"].content.model_copy(update={"claims": entries}))
    shares = Shares(by_pool, buckets.FIGURE_7)
    smaller = [each for each in page.judge(points([shares]), {"of_four": shares}) if "smaller" in each.text]
    assert [each.verdict for each in smaller] == ["holds", "does not hold", IDENTICAL]


def test_each_word_has_its_bounds_beside_the_quotation():
    found = reads("slightly_better", Interval(-23, -24, -22), '"slightly outperforms"')
    assert found.text == '"slightly outperforms" (slightly better: -10 to 0 %)'
    assert (found.expected, found.verdict) == ("-10 to 0", "does not hold")
    assert reads("slightly_worse", Interval(4, 3, 5)).verdict == "holds"
    assert READINGS["poor"].told == "poor: above 5 %"
    assert reads({"printed": -22}, exactly(1)).text == " (-22 %: -29 to -15 %)"


def test_the_words_on_the_page_are_the_bounds_that_are_judged():
    for name in READINGS:
        claim = reads({name: 50}, exactly(1), unit="%")
        told = claim.text.rsplit(": ", 1)[1].rstrip(")")
        assert told.startswith(claim.expected), name


def test_the_same_is_one_number_on_every_page():
    alike = [READINGS["the_same"], READINGS["little_difference"]]
    assert {(each.low, each.high) for each in alike} == {(-5, 5)}
    assert READINGS["best_or_the_same"].high == READINGS["poor"].low == READINGS["the_same"].high
    slight, marked = READINGS["slightly_worse"].high, READINGS["markedly_more"].low
    assert slight == marked == -READINGS["markedly_better"].high == 2 * READINGS["the_same"].high


BETAS = (1.0, 0.68, 0.58)
#: How waits differ from seed to seed.
BY_SEED = (1.0, 1.001, 0.999)


def with_waits(waits, scale=0.05, wait_of=None):
    """Results whose mean waits are given: pool -> policy -> seconds, the same at each load and seed.

    `wait_of` gives another number for (policy, metric, beta, seed), or None.
    """

    def number(wait, *at):
        return (wait_of and wait_of(*at)) or wait * BY_SEED[at[-1]]

    runs = {
        (pool, beta): {
            policy: [{metric: number(wait, policy, metric, beta, seed) for metric in METRICS} for seed in range(3)]
            for policy, wait in of_pool.items()
        }
        for pool, of_pool in waits.items()
        for beta in BETAS
    }
    return Results(Sweep(None, 3, scale=scale, betas=BETAS, pools=tuple(waits)), runs)


def claims_on_load(results):
    """The claims on one sweep."""
    return PAGES["load"].judge(comparisons([results]), {"results": [results]})


LEVEL = dict.fromkeys(POLICIES, 100.0)


def verdicts(pool, text, **waits):
    """The verdicts on the rows whose text has these words, where waits differ from 100 s as given."""
    given = {policy.replace("_", "-"): wait for policy, wait in waits.items()}
    results = with_waits({pool: LEVEL | given})
    return [claim.verdict for claim in claims_on_load(results) if text in claim.text]


def test_a_heuristic_that_is_first_is_not_second_best():
    text = "second-best heuristic on pool A"
    assert verdicts("A", text, best_fit_memory=80, mix_fit=90) == ["does not hold"]
    assert verdicts("A", text, best_fit_memory=90, mix_fit=80) == ["holds"]
    assert verdicts("A", text, best_fit_memory=99, best_fit_cores=90, mix_fit=80) == ["does not hold"]


def test_a_quarter_less_is_not_slightly_less():
    text = "slightly outperform Mix-Fit"
    assert verdicts("B", text, best_fit_memory=75) == ["does not hold"] * 2
    assert verdicts("B", text, best_fit_memory=95) == ["holds"] * 2
    assert verdicts("B", text, best_fit_memory=105) == ["does not hold"] * 2


def test_mix_fits_reduction_is_against_the_best_and_the_mean_of_the_others_not_the_worst():
    against_best, against_mean = (f"A, waiting time, against the {rival} of" for rival in ("best", "mean"))
    for waits, best, mean in (
        ({"mix_fit": 78}, "holds", "holds"),
        ({"mix_fit": 78, "worse_fit_memory": 200}, "holds", "does not hold"),
        ({"mix_fit": 78, "best_fit_memory": 80}, "does not hold", "holds"),
    ):
        assert verdicts("A", against_best, **waits) == [best]
        assert verdicts("A", against_mean, **waits) == [mean]


def test_readings_of_one_sentence_and_pools_are_claims_of_their_own():
    texts = [each.text for each in claims_on_load(with_waits(dict.fromkeys(POOLS, LEVEL)))]
    assert len(texts) == len(set(texts))


def test_metrics_are_similar_where_mix_fits_distance_is_the_same_in_all_of_them():
    assert verdicts("C", "similar between the metrics", mix_fit=80) == [IDENTICAL]  # one number for all metrics

    def slower(policy, metric, _beta, seed):
        return 80 * BY_SEED[seed] + 20 if (policy, metric) == ("mix-fit", "mean_slowdown") else None

    claims = claims_on_load(with_waits({"C": LEVEL | {"mix-fit": 80.0}}, wait_of=slower))
    assert [each.verdict for each in claims if "similar between" in each.text] == ["does not hold"]


def test_mix_fit_improves_only_where_it_is_ahead_of_the_best_of_the_others():
    text = "usually improves upon the single-resource heuristics"
    assert verdicts("C", text, mix_fit=90) == ["holds"]
    assert verdicts("C", text, mix_fit=90, best_fit_cores=80) == ["does not hold"]


def test_especially_in_the_mid_range_needs_a_lead_there():
    for ahead, verdict in (({0.68: -8, 0.58: -2}, "holds"), ({0.68: 5, 0.58: 20}, "does not hold")):

        def wait(policy, _metric, beta, seed, ahead=ahead):
            if policy != "best-fit-memory":
                return None
            return (100 + ahead.get(beta, 0)) * BY_SEED[seed] + (0, 0.1, -0.1)[seed]

        claims = claims_on_load(with_waits({"B": LEVEL}, wait_of=wait))
        assert [each.verdict for each in claims if "mid-range" in each.text] == [verdict]


def test_that_all_are_level_at_the_original_load_is_an_input_at_full_size_alone():
    for scale, expected in ((1, {"input"}), (0.05, {IDENTICAL})):
        claims = claims_on_load(with_waits({"C": LEVEL}, scale))
        assert {each.verdict for each in claims if "original load" in each.text} == expected


def test_max_jobs_reduction_is_the_largest_of_all_pools_and_loads():
    text = "22% reduction in the average wait"
    results = with_waits({"C": LEVEL, "D": LEVEL | {"max-jobs": 78.0}})
    assert [claim.verdict for claim in claims_on_load(results) if text in claim.text] == ["holds", "holds"]
    assert verdicts("C", text, max_jobs=90) == ["does not hold", "does not hold"]


@pytest.mark.parametrize(
    ("text", "waits", "expected"),
    [
        ('original load "all heuristics performed the same"', {"worse_fit_cores": 103}, "holds"),
        ('original load "all heuristics performed the same"', {"worse_fit_cores": 110}, "does not hold"),
        ('First-Fit "performs poorly', {"first_fit": 110}, "holds"),
        ('First-Fit "performs poorly', {"first_fit": 103}, "does not hold"),
        ("is the best scheme all around", {"max_jobs": 103}, "holds"),
        ("is the best scheme all around", {"max_jobs": 110}, "does not hold"),
    ],
)
def test_sentences_about_every_pool(text, waits, expected):
    assert verdicts("D", text, **waits) == [expected]


def test_what_the_generator_was_given_is_an_input(tmp_path):
    options = Options(tmp_path, seeds=2, quick=True, workers=WorkerProcesses(1))
    claims = judged("workload", workload.run(options, PAGES["workload"].content.data))
    assert {claim.verdict for claim in claims} <= INPUTS
    assert len(claims) == 31


def test_who_waits_is_told_of_wide_jobs_and_others():
    # Two weeks: summed waits of wide jobs and others, their numbers.
    assert traces.by_width(np.array([[30.0, 10, 1, 4], [50, 30, 1, 4]])) == (40, 5)
    assert traces.mean_wait_s(np.array([[30.0, 10, 1, 4], [50, 30, 1, 4]])) == 12


def test_shares_of_sizes_are_percentages_of_all_jobs():
    seen = workload.Seen(*map(np.array, workload.look(("B", 1, 0.05))))
    assert seen.cores.sum() == pytest.approx(100)
    assert seen.memory.sum() == pytest.approx(100)
    assert len(seen.bucket_gb) == POOLS["B"].jobs_at(1.0, 0.05) // 1000


def test_every_job_of_a_log_is_in_the_week_of_its_submission():
    pool = POOLS["A"].nodes(0.01)
    records = records_of(generate(POOLS["A"], scale=0.01, seed=1, days=0.1), pool, 1.0)
    started = records.submit_s + np.arange(len(records))
    weeks = traces.by_week(records, started, 1000.0)
    of_week = (records.submit_s - records.submit_s[0]) // 1000
    assert weeks[:, 2:].sum(axis=1).tolist() == np.bincount(of_week).tolist()
    assert weeks[1, :2].sum() == np.flatnonzero(of_week == 1).sum()
    assert len(traces.first(records, 10)) == 10


def test_a_trace_that_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("SNS_SHARED", str(tmp_path))
    with pytest.raises(BadInput, match=r"HPC2N.*missing; valid: SNS_SHARED names a folder"):
        traces.LOGS["HPC2N"].source()


def tiny(sweeps):
    return {name: replace(each, scale=0.005, days=0.2) for name, each in sweeps.items()}


def test_the_full_size_is_four_days_of_all_machines_at_the_papers_betas_and_at_those_of_equal_queueing(tmp_path):
    papers, equal = full.sweeps_of(Options(tmp_path, seeds=30)).values()
    assert {(each.seeds, each.scale, each.days, each.pools) for each in (papers, equal)} == {
        (30, 1.0, 4.0, tuple(POOLS)),
        (30, 1.0, 4.0, tuple(CALIBRATED_BETAS)),
    }
    assert [papers.beta_of(name, 0.58) for name in POOLS] == [0.58] * 4
    assert [replace(equal, variant="daily cycle").beta_of(name, 0.58) for name in POOLS] == [0.61, 0.58, 0.61, 0.545]
    assert VARIANT_BETAS.keys() <= VARIANTS.keys()
    assert [equal.beta_of(name, 0.58) for name in equal.pools] == [of[0.58] for of in CALIBRATED_BETAS.values()]
    assert papers.runs != equal.runs


def test_pages_of_the_full_size_and_of_its_wins_rest_on_pools_with_two_complete_seeds(tmp_path):
    options = Options(tmp_path / "page", seeds=2, quick=True, workers=WorkerProcesses(1))
    sweeps = tiny(full.sweeps_of(options))
    run_sweeps(options, list(sweeps.values()))
    sweeps[full.PAPER].path("C", 0.58, "mix-fit", 2).unlink()

    live = tiny({full.LIVE: full.live_sweep(options)})
    run_sweeps(options, list(live.values()))

    papers, equal = finished(sweeps).values()
    [every_second] = finished(live).values()
    claims = write(options.out, PAGES["full"], full.results_of(options, DATA, [papers, equal], every_second))
    text = (options.out / "README.md").read_text(encoding="utf-8")
    shares = wins_of(papers).won
    write(options.out, PAGES["wins"], wins.results_of(options, [papers, equal], dict.fromkeys(POOLS, won(50.0))))

    assert (papers.pools, equal.pools) == (("A", "B", "D"), tuple(CALIBRATED_BETAS))
    assert {claim.group for claim in claims} == {"the paper's betas", "equal queueing"}
    with (options.out / "intervals.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["pool"], row["policy"]) for row in rows] == [
        (pool, policy) for pool in CALIBRATED_BETAS for policy in (*HEURISTICS, MAX_JOBS)
    ]
    for row in rows:
        waits = (each.mean(row["pool"], row["policy"]) for each in (every_second, equal))
        shown = (float(row[f"mean wait (s) at {seconds} s"]) for seconds in (1, 30))
        assert tuple(shown) == pytest.approx(tuple(waits), rel=1e-3)
    assert {row["seeds"] for row in rows} == {"2"}
    assert "2 at mid load, 2 at the highest load (beta A 0.55, 0.53; B 0.535, 0.52;" in text
    assert not [claim for claim in claims if claim.group == "equal queueing" and "beta" in claim.measure]
    assert [stem for stem in ("figure-13", "figure-14", "figure-15") if f"({stem}.png)" in text] == [*DATA["figures"]]
    figure = (options.out / "figure-13.svg").read_text(encoding="utf-8")
    assert figure.count("the paper's betas") == 3
    assert figure.count("equal queueing") == 4
    assert {name: set(of) for name, of in shares.items()} == {name: set(HEURISTICS) for name in "ABD"}
    assert all(0 <= share <= 100 for of in shares.values() for values in of.values() for share in values)
    assert (options.out / "figure-16.svg").stat().st_size > 0


def test_the_page_of_wins_needs_no_runs_but_those_of_max_jobs(tmp_path):
    options = Options(tmp_path / "page", seeds=2, quick=True, workers=WorkerProcesses(1))
    sweeps = tiny(wins.sweeps_of(options))
    run_sweeps(options, list(sweeps.values()))
    results = wins.results_of(options, list(finished(sweeps).values()), dict.fromkeys(POOLS, won(50.0)))
    claims = judged("wins", results)
    assert len(claims) > 0
    assert all(claim.group for claim in claims)


def test_the_grid_of_cycles_has_every_depth_and_reservation_and_equal_shares_of_a_twentieth(tmp_path):
    options = Options(tmp_path, seeds=30)
    grid, small = depth.sweeps_of(options), depth.small_sweeps_of(options)
    assert {(each.queue_depth, each.reservations) for each in grid.values()} == {
        (looked, kept) for looked in (1000, 20_000, None) for kept in (1, 20, None)
    }
    assert {(each.scale, each.days, each.seeds) for each in grid.values()} == {(1.0, 4.0, 30)}
    pairs = {(*cell, each.queue_depth, each.reservations) for cell, each in small.items()}
    assert pairs == {
        (1000, 20, 50, 1), (20_000, 20, 1000, 1), (None, 20, None, 1),
        (1000, None, 50, None), (20_000, None, 1000, None), (None, None, None, None),
    }  # fmt: skip
    assert {each.scale for each in small.values()} == {0.05}
    assert len({each.runs for each in (*grid.values(), *small.values())}) == 15


def test_no_limit_means_every_job_and_a_reservation_for_each(tmp_path):
    parameters = Sweep(tmp_path, 1, queue_depth=None, reservations=None).parameters("mix-fit", 77)
    assert (parameters.queue_depth, parameters.reservations, parameters.portfolio) == (77, 77, ("mix-fit",))


def test_the_page_of_cycles_judges_what_is_finished_and_says_on_how_many_seeds(tmp_path):
    options = Options(tmp_path / "page", seeds=2, quick=True, workers=WorkerProcesses(1))
    one, two = depth.Cell(1000, 1), depth.Cell(None, 20)
    grid = tiny({cell: depth.sweeps_of(options)[cell] for cell in (one, two)})
    small = {two: replace(depth.small_sweeps_of(options)[two], scale=0.001, days=0.2)}
    run_sweeps(options, [*grid.values(), *small.values()])
    rest, last = grid[one].pools[:-1], grid[one].pools[-1]
    grid[one].path(last, 0.58, "mix-fit", 2).unlink()

    claims = write(options.out, PAGES["depth"], depth.results_of(grid, small))

    text = (options.out / "README.md").read_text()
    whole, part = (" ".join(f"{pool} 2" for pool in pools) for pools in ((*rest, last), rest))
    assert f"depth 1,000, 1 reservation: {part}; depth all, 20 reservations: {whole}." in text
    assert {claim.group for claim in claims} == {str(one), str(two)}
    with (options.out / "sizes.csv").open() as file:
        assert [row["pool"] for row in csv.DictReader(file)] == [*rest, last]
    assert text.index("| cycle | claims | hold |") < text.index("| source |")


def test_depths_that_the_queue_never_reaches_are_one_kind_of_cycle_and_compared_once(tmp_path):
    options = Options(tmp_path / "page", seeds=2, quick=True, workers=WorkerProcesses(1))
    kinds = (depth.Cell(20_000, None), depth.Cell(None, None))
    grid = tiny({cell: depth.sweeps_of(options)[cell] for cell in kinds})
    small = {cell: replace(depth.small_sweeps_of(options)[cell], scale=0.001, days=0.2) for cell in kinds}
    run_sweeps(options, [*grid.values(), *small.values()])

    claims = write(options.out, PAGES["depth"], depth.results_of(grid, small))

    assert {claim.group for claim in claims} == {"depth 20,000 or all, one reservation for each unmatched job"}
    with (options.out / "sizes.csv").open() as file:
        assert [row["pool"] for row in csv.DictReader(file)] == list(POOLS)
    with (options.out / "waits.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["size"] for row in rows} == {"full", "a twentieth"}
    assert all(float(row["mean_queue_length"]) >= 0 and 0 < float(row["utilisation_memory"]) <= 1 for row in rows)


def test_a_page_without_finished_runs_says_so(tmp_path):
    options = Options(tmp_path, seeds=2)
    results = depth.results_of(depth.sweeps_of(options), depth.small_sweeps_of(options))
    claims = write(tmp_path, PAGES["depth"], results)
    assert (results.seeds, claims) == (0, [])
    assert "Complete seeds: none." in (tmp_path / "README.md").read_text()


def test_after_the_last_moment_no_pool_is_begun(tmp_path):
    late = Sweep(tmp_path, 2, scale=0.005, days=0.2)
    run_sweeps(Options(tmp_path, workers=WorkerProcesses(1), until_s=time.time() - 1), [late])
    assert list(late.runs.glob("*.json")) == []


def test_whole_seeds_of_all_sweeps_come_before_the_next_seed(tmp_path):
    begun = []

    def note(_function, pieces, _report):
        begun.extend((sweep.queue_depth, pool, seed) for sweep, pool, beta, seed in pieces)

    sweeps = [Sweep(tmp_path, 2, betas=(0.58,), pools=("A", "B"), queue_depth=looked) for looked in (10, 20)]
    run_sweeps(Options(tmp_path, workers=note), sweeps)
    assert begun == [(looked, pool, seed) for seed in (1, 2) for looked in (10, 20) for pool in "AB"]


def test_a_later_run_goes_on_from_the_rows_beside_the_page(tmp_path):
    def options(name, resume):
        return Options(tmp_path / "page", seeds=2, workers=WorkerProcesses(1), runs=tmp_path / name, resume=resume)

    def of(chosen):
        return Sweep(
            chosen.folder, 2, scale=0.005, days=0.2, betas=(0.58,), pools=("A",), policies=("mix-fit", "max-jobs")
        )

    first, second = options("one", False), options("two", True)
    run_sweeps(first, [of(first)])
    rows = TraceFile.of(str(tmp_path / "page" / ROWS)).text()
    assert len(rows.splitlines()) == 4
    write_pieces(tmp_path / "page" / ROWS, rows.splitlines(keepends=True)[:-1])

    done = []
    run_sweeps(replace(second, report=lambda *counts: done.append(counts)), [of(second)])

    assert done == [(0, 1), (1, 1)]
    again = [json.loads(line) for line in TraceFile.of(str(tmp_path / "page" / ROWS)).text().splitlines()]
    for row, known in zip(again, map(json.loads, rows.splitlines()), strict=True):
        assert {**row["result"], "wall_s": 0} == {**known["result"], "wall_s": 0}


def test_runs_at_other_betas_are_neither_written_nor_restored_nor_are_those_of_other_sweeps(tmp_path):
    sweep = Sweep(
        tmp_path / "runs", 1, betas=(0.58,), pools=("A",), policies=("mix-fit",), variant="daily cycle", calibrated=True
    )
    sweep.runs.mkdir(parents=True)
    for name in ("A-0.61-mix-fit-1", "A-0.53-mix-fit-1", "A-0.61-max-jobs-1"):
        (sweep.runs / f"{name}.json").write_text("{}")
    lines = lines_of([sweep])
    assert [json.loads(line)["run"] for line in lines] == ["A-0.61-mix-fit-1"]

    other = {**json.loads(lines[0]), "run": "A-0.53-mix-fit-1"}
    write_pieces(tmp_path / ROWS, [*lines, json.dumps(other) + "\n"])
    again = replace(sweep, folder=tmp_path / "again")
    restore(tmp_path / ROWS, [again])
    assert [path.name for path in again.runs.iterdir()] == ["A-0.61-mix-fit-1.json"]


def test_rows_of_another_generator_do_not_count_and_other_text_is_refused(tmp_path):
    sweep = Sweep(tmp_path / "runs", 1)
    row = {"sweep": sweep.name, "run": "A-0.58-mix-fit-1", "workload": "another", "result": {"mean_wait_s": 1.0}}
    write_pieces(tmp_path / ROWS, [json.dumps(row) + "\n"])
    restore(tmp_path / ROWS, [sweep])
    assert not sweep.path("A", 0.58, "mix-fit", 1).is_file()
    write_pieces(tmp_path / ROWS, [json.dumps({**row, "workload": workload_digest()}) + "\n"])
    restore(tmp_path / ROWS, [sweep])
    assert json.loads(sweep.path("A", 0.58, "mix-fit", 1).read_text()) == {"mean_wait_s": 1.0}
    write_pieces(tmp_path / ROWS, ["{}\n"])
    with pytest.raises(BadInput, match="line 1 is no finished run; valid: what `sns reproduce` wrote"):
        restore(tmp_path / ROWS, [sweep])


def test_the_page_of_the_generator_lists_what_was_chosen_as_inputs(tmp_path):
    options = Options(tmp_path, seeds=2, quick=True, workers=WorkerProcesses(1))
    original, calibrated = generator.sweeps_of(options)
    sweeps = generator.Sweeps(tiny(original), replace(calibrated, scale=0.005, days=0.2))
    run_sweeps(options, [*sweeps.original.values(), sweeps.calibrated])
    claims = write(tmp_path, PAGES["generator"], generator.results_of(sweeps))
    assert {each.verdict for each in claims} <= INPUTS
    assert len(claims) == len(POOLS) + len(CALIBRATED_BETAS) * len(WAITS_S)
    sweeps.original["as generated"].path("B", 1.0, "mix-fit", 2).unlink()
    write(tmp_path, PAGES["generator"], generator.results_of(sweeps))
    with (tmp_path / "levels.csv").open() as file:
        rows = [(row["generator"], row["pool"]) for row in csv.DictReader(file)]
    assert rows[:3] == [("as generated", pool) for pool in "ACD"]
    assert "0.72 to 0.67, 0.68 to 0.6, 0.95 to 0.85, 0.65 to 0.6" in (tmp_path / "README.md").read_text()


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_keeps_the_printed_totals_and_the_load_of_the_scarcer_resource(variant):
    for pool in POOLS.values():
        changed = VARIANTS[variant](pool)
        nodes = changed.nodes(1.0)
        assert (len(nodes.names), nodes.total.cores, changed.jobs) == (pool.machines, pool.cores, pool.jobs)
        assert changed.binding_load == pool.binding_load


def test_the_page_of_the_variants_says_what_each_claim_hangs_on(tmp_path):
    options = Options(tmp_path / "page", seeds=2, quick=True, workers=WorkerProcesses(1))
    sweeps = tiny({name: variants.sweeps_of(options)[name] for name in ("as generated", "no bursts")})
    run_sweeps(options, list(sweeps.values()))
    assert len({sweep.runs for sweep in sweeps.values()}) == 2

    write(options.out, PAGES["variants"], variants.results_of(list(finished(sweeps).values())))

    text = (options.out / "README.md").read_text()
    assert "| claim | called |" in text
    assert "| variant | pool A | pool B | pool C | pool D |" in text
    assert "before run times are cut at a day" in text
    with (options.out / "claims.csv").open() as file:
        assert {row["where"] for row in csv.DictReader(file)} == {"as generated", "no bursts"}


HELD, FAILED, OPEN = (1, 2), (-2, -1), (-1, 2)


@pytest.mark.parametrize(
    ("found", "called"),
    [
        ([HELD, HELD], "holds everywhere"),
        ([FAILED, FAILED], "fails everywhere"),
        ([HELD, FAILED], "hangs on it: holds with v0; fails with v1"),
        ([HELD, OPEN], "holds where it can be told: with v0; cannot tell: v1"),
        ([FAILED, OPEN], "fails where it can be told: with v0; cannot tell: v1"),
        ([OPEN, OPEN], "cannot tell: v0, v1"),
        ([HELD, FAILED, OPEN], "hangs on it: holds with v0; fails with v1; cannot tell: v2"),
    ],
)
def test_a_claim_is_called_by_its_verdicts_under_all_variants(found, called):
    claims = [replace(claim(each, low=0), where=f"v{at}") for at, each in enumerate(found)]
    assert call(claims, "a text") == called


def test_a_variant_with_identical_results_does_not_call_a_claim():
    same = replace(reads("the_same", exactly(0)), where="v1")
    held = replace(same, where="v0", found=Interval(1, 0.5, 1.5))
    assert call([held, same], same.text) == "holds everywhere; identical with v1"
    assert call([same], same.text) == IDENTICAL


def test_a_daily_cycle_moves_arrivals_within_the_day_and_keeps_their_number():
    flat, daily = (
        np.concatenate([part.submit_s for part in generate(change(POOLS["A"]), scale=0.02, seed=1, days=2)])
        for change in (VARIANTS["as generated"], VARIANTS["daily cycle"])
    )
    assert len(flat) == len(daily)
    assert (np.diff(daily) >= 0).all()
    day = 86_400
    first_half = [np.mean(each[each < day] < day / 2) for each in (flat, daily)]
    assert first_half[0] == pytest.approx(0.5, abs=0.06)
    assert first_half[1] == pytest.approx(0.5 + 0.5 / np.pi, abs=0.06)


@pytest.mark.parametrize(("cores", "gb_per_core"), [(8, 8), (16, 4), (32, 12)])
def test_other_machines_have_512_cores_too(cores, gb_per_core):
    made = buckets.machines_of(cores, gb_per_core)
    assert (made.total.cores, made.total.memory_mb) == (512, 512 * gb_per_core * 1024)
    assert len(made.names) == 512 // cores


def test_buckets_on_machines_of_8_cores_and_64_gb_are_those_of_figure_11():
    sizes = next(buckets.buckets_of("A", 1, 0.02))
    five = buckets.CONTESTS[buckets.FIGURE_11]
    usual = buckets.matches(sizes, five)
    assert (buckets.matches(sizes, five, buckets.machines_of(8, 8)) == usual).all()
    assert (buckets.matches(sizes, five, buckets.machines_of(8, 4)) < usual).any()


@pytest.mark.parametrize("pool", POOLS)
def test_the_angle_at_the_top_right_corner_matches_as_many_jobs_as_mix_fit(pool):
    [sizes] = buckets.buckets_of(pool, 1, 0.02)
    ours = corner.matched_by_angle(sizes, corner.TOP_RIGHT)
    assert ours.matched.tolist() == buckets.matches(sizes, ("mix-fit",))[:, 0].tolist()
    assert (corner.matched_by_angle(sizes, corner.ORIGIN).matched != ours.matched).any()


def test_angles_at_both_corners_of_a_machine_by_hand():
    """Half of the cores and a quarter of the memory, then the configured ratio."""
    used = np.array([[0.5, 0.5], [0.25, 0.5]])
    assert np.degrees(corner.angle_at(corner.ORIGIN, used)) == pytest.approx([18.43, 0], abs=0.01)
    assert np.degrees(corner.angle_at(corner.TOP_RIGHT, used)) == pytest.approx([11.14, 0], abs=0.01)


def test_the_page_of_other_machines_calls_each_claim(tmp_path):
    shares = [Shares({pool: won(mix) for pool in POOLS}, name) for name, mix in (("one", 51.0), ("two", 80.0))]
    write(tmp_path, PAGES["machines"], machines.results_of(shares, 3, 1.0))
    with (tmp_path / "called.csv").open() as file:
        small_margin = [row["called"] for row in csv.DictReader(file) if "small margin" in row["claim"]]
    assert small_margin == ["hangs on it: holds with one; fails with two"]
    assert "Figure 7, the contest without Mix-Fit, is not varied" in (tmp_path / "README.md").read_text()


@pytest.mark.parametrize(("name", "module"), [("lookahead", lookahead), ("resources", resources)])
def test_a_page_on_future_work_says_on_how_many_seeds_it_rests_and_is_resumed(name, module, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "QUICK_SIZE", (0.005, 0.05))
    told = []
    options = Options(tmp_path, seeds=2, quick=True, workers=WorkerProcesses(1), resume=True)
    results = module.run(options, DATA)
    claims = write(tmp_path, PAGES[name], results)
    assert "2 seeds" in (tmp_path / "README.md").read_text()
    assert results.seeds == 2

    again = module.run(replace(options, report=lambda done, total: told.append((done, total))), DATA)
    assert set(told) == {(0, 0)}
    assert [claim.found for claim in judged(name, again)] == [claim.found for claim in claims]


def test_section_6_is_judged_by_the_joint_choice_and_section_5_by_the_next_cycle_whatever_comes_out():
    level = dict.fromkeys((MAX_JOBS, *lookahead.LOOKAHEADS), np.array([100.0, 101]))
    better = level | {
        "known 30 s, ties": np.array([90.0, 91]),
        "known 30 s, sum": np.array([101.0, 102]),
        "recent 30 s, sum": np.array([99.0, 100]),
    }
    waits = {(name, 0.58): better if name == "A" else level for name in POOLS}
    jointly = {
        (name, 30): {MAX_JOBS: np.array([100.0, 101]), lookahead.JOINT: np.array([wait, wait + 1])}
        for name, wait in zip(POOLS, (80.0, 99.0, 100.0, 101.0), strict=True)
    }
    fields = {"pools": list(POOLS), "highest_load": HIGHEST_LOAD, "short_s": lookahead.SHORT_S, "interval_s": 30}
    results = PageResults({**above(waits), **above(jointly)}, fields=fields)
    found = {(claim.where, claim.measure): claim.verdict for claim in judged("lookahead", results)}
    assert len(found) == 12
    assert found["sec. 5", "A: % known 30 s, ties above max-jobs"] == "holds"
    assert found["sec. 5", "A: % known 30 s, sum above max-jobs"] == "does not hold"
    assert found["sec. 5", "B: % known 30 s, sum above max-jobs"] == IDENTICAL
    assert [found["sec. 6", f"{name}: % joint choice above max-jobs"] for name in POOLS] == [
        "holds",
        "does not hold",
        IDENTICAL,
        "does not hold",
    ]


@pytest.mark.long
def test_a_week_of_a_site_keeps_to_its_weights_and_fabrics():
    """The first jobs of the week: none across fabrics, and GPU nodes last."""
    try:
        site.site()
    except BadInput as missing:
        pytest.skip(str(missing))
    found = {name: site.replay_week((name, 300)) for name in site.RUNS}
    results = site.results_of(found, 300)
    weeks = results.fields["weeks"]
    assert {each["jobs"] for each in weeks.values()} == {300}
    assert weeks["Max-Jobs"]["across"] == 0
    assert weeks["Max-Jobs"]["gpu_percent"] <= weeks["Max-Jobs without weights"]["gpu_percent"]
    assert len(judged("site", results)) == 5
