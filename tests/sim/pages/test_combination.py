"""The study of the combination: its jobs, its small cases, and the rule by which a default changes."""

from itertools import product

import numpy as np
import pytest

from slurm_sns.model import Alternative, Job, Resources
from slurm_sns.policies.placement.request import compact
from slurm_sns.policies.placement.use import use
from slurm_sns.sim.pages.judge import Interval
from sns_reproductions import spread_n_share as sns
from sns_reproductions.combination.judging import DefaultDecision, decision, verdict
from sns_reproductions.combination.pieces import LOADS, REGIMES, SCARCE, parameters_of, run_parts
from sns_reproductions.combination.small_cases import BEST, best_of_all, run_case
from sns_reproductions.combination.variants import CHOICES, NOW, PARTS, TOGETHER, final_variants, rules_of
from sns_reproductions.combination.workload import programs, stream


@pytest.mark.parametrize(("scarce", "load"), [*product(SCARCE, LOADS)])
def test_the_load_of_a_stream_is_that_of_its_dominant_shares(scarce, load):
    nodes = sns.cluster(16)

    jobs = stream(SCARCE[scarce], load, nodes, seed=1)

    work = sum(job.run_s * use(compact(job.request, nodes.types), nodes) for job in jobs)
    mean_gap_s = jobs[-1].submit_s / (len(jobs) - 1)
    assert [job.submit_s for job in jobs] == sorted(job.submit_s for job in jobs)
    assert work / (mean_gap_s * len(jobs)) == pytest.approx(load, rel=0.05)
    assert {job.program for job in jobs} == set(SCARCE[scarce].programs)
    assert all(job.gb * job.processes <= job.width * 128 for job in jobs)


def test_a_part_of_the_processes_has_on_a_node_what_the_whole_has_when_it_is_spread():
    whole, half = programs()["mg"].at(16), programs()["mg"].at(8)

    assert sorted(half) == [1, 2, 4]
    assert half[1].bandwidth_gbps == whole[2].bandwidth_gbps
    assert half[1].ways == whole[2].ways


def test_the_best_of_all_assignments_finds_what_job_after_job_misses():
    """First the large job: then neither of the small ones has the node that it needs."""
    small, large = Resources(2, 4, 0, 0, 0), Resources(4, 4, 0, 0, 0)
    jobs = [
        Job(1, 0, (Alternative(1, large),)),
        Job(2, 0, (Alternative(1, small, slowdown=1.5), Alternative(2, Resources(1, 2, 0, 0, 0), slowdown=0.75))),
        Job(3, 0, (Alternative(2, Resources(2, 4, 0, 0, 0)),)),
    ]

    assert best_of_all(jobs, ((4, 8, 0, 0, 0),) * 2, (4, 8, 0, 0, 0)) == (2, -1.75)


def test_no_variant_starts_more_jobs_than_the_best_of_all_assignments():
    for seed in range(10):
        case = run_case(parameters_of(spreads=True), seed)
        assert all(tuple(value) <= tuple(case[BEST]) for value in case.values())


def test_all_variants_of_a_stream_run_all_of_its_jobs():
    found = run_parts(("parts", "bandwidth", 1.1, True, 8, 1))

    assert found.keys() == {"1", "30"}
    assert all(of.keys() == PARTS.keys() for of in found.values())
    assert len({values[0] for values in found["1"].values()}) > 10  # the variants differ


def test_all_together_has_the_rules_that_were_chosen():
    chosen = {part: list(values)[-1] for part, values in CHOICES.items()} | {"objective": "O3"}

    together = rules_of(final_variants(chosen)[TOGETHER], parameters_of(spreads=True))

    assert (together.order, together.ties, together.withhold_up_to_s) == ("adaptive", "own", 600)
    assert together.portfolio == ("worse-fit-bandwidth",)


def judged(percent: float, *, p95: float = 0.0, regimes: int = 0) -> DefaultDecision:
    """A candidate that is so many percent longer in each regime, with a worse guard in some of them."""
    now = np.ones((40, 3)) * [100, 5, 100] + np.linspace(0, 0.01, 40)[:, np.newaxis]
    runs = {}
    for at, regime in enumerate(REGIMES):
        runs[regime, NOW] = now
        runs[regime, "new"] = now * [1 + percent / 100, 1 + (p95 / 100 if at < regimes else 0), 1.0]
    return decision(runs, {}, "new", NOW)


def test_a_default_changes_by_the_rule_of_the_design():
    assert judged(-2).changes
    assert not judged(-0.5).changes
    assert not judged(0.6).changes
    assert judged(-2, p95=6, regimes=2).changes
    assert not judged(-2, p95=6, regimes=3).changes


def test_an_effect_is_named_by_its_whole_interval():
    assert verdict(Interval(-2, -3, -1.1)) == "better"
    assert verdict(Interval(2, 1.1, 3)) == "worse"
    assert verdict(Interval(-2, -3, -0.9)) == "no difference that matters"
