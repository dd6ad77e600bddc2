"""Reproductions of Spread-n-Share: what their pages say of printed numbers, and the parts they are made of."""

import csv

import numpy as np
import pytest

from slurm_sns.errors import BadInput
from slurm_sns.policies.profile import Provenance
from slurm_sns.policies.sns.classify import ProgramClass
from slurm_sns.sim.engine.sns_policies import AUTHORS, CE, CONTENTION, CS, MODELS, SNS
from slurm_sns.sim.profiling.sampled_profiles import as_profiled, sampled
from slurm_sns.sim.reproduce.claims import HOLDS
from slurm_sns.sim.reproduce.options import Options
from slurm_sns.sim.reproduce.page import write_page
from slurm_sns.sim.reproduce.sns import assumed, balance, cache, example, ratio, scale, scaling, spec
from slurm_sns.sim.reproduce.sns.beyond import VARIANTS, idle_share, measures
from slurm_sns.sim.reproduce.sns.recorded import RECORDED, recorded_claims
from slurm_sns.sim.reproduce.sns.runs import NODE, POLICIES, Runs, cluster, place, run_all, runs_of, shipped_programs
from slurm_sns.sim.reproduce.sns.statistics import NUMBERS, Sequences
from slurm_sns.sim.reproduce.sns.throughput import PRINTED
from slurm_sns.sim.reproduce.work import Processes
from slurm_sns.sim.workloads.sequences import (
    PAPER_RATIOS,
    SWEEP_JOBS,
    jobs_of,
    population,
    scaling_ratio,
    sequence,
    sweep_sequence,
)
from slurm_sns.sim.workloads.trinity import FILE, trinity_jobs


@pytest.fixture(scope="module")
def members():
    return population(shipped_programs())


@pytest.fixture(scope="module")
def some(members):
    """Two sequences under every policy and model."""
    return [run_all(jobs_of(sequence(members, seed))) for seed in (1, 2)]


@pytest.mark.parametrize("module", [example, cache, scaling])
def test_printed_numbers_come_back(module, tmp_path):
    page = module.reproduce(Options(tmp_path))
    write_page(tmp_path, page)

    assert {claim.measure: claim.verdict for claim in page.claims} == dict.fromkeys(
        [claim.measure for claim in page.claims], HOLDS
    )
    text = (tmp_path / "README.md").read_text()
    for drawing in page.drawings:
        assert f"{drawing.stem}.png" in text
        assert (tmp_path / f"{drawing.stem}.svg").stat().st_size > 1000


# --- sequences


def test_the_population_is_the_14_pairs_and_their_classes_the_papers(members):
    assert len(members) == 14
    assert {(m.program, m.processes) for m in members if m.processes == 28} == {("bw", 28), ("hc", 28)}
    assert {m.program for m in members if m.kind is ProgramClass.SCALING} == {"mg", "cg", "lu", "ts", "bw"}


def test_sequences_lie_between_the_papers_ratios_and_a_seed_gives_the_same_one_again(members):
    for seed in range(30):
        drawn = sequence(members, seed)
        assert len(drawn) == 20
        assert PAPER_RATIOS[0] <= scaling_ratio(drawn) <= PAPER_RATIOS[1]
        assert drawn == sequence(members, seed)


def test_the_recorded_sequence_waits_and_runs_as_long_as_recorded_within_5_percent():
    assert len(RECORDED) == 20
    claims = recorded_claims()

    assert [claim.expected for claim in claims] == ["304 to 336", "400.9 to 443.1", "0.342 to 0.378"]
    assert {claim.verdict for claim in claims} == {HOLDS}


def test_the_sweep_goes_from_no_scaling_job_to_scaling_jobs_only(members):
    ratios = [scaling_ratio(sweep_sequence(members, jobs, 1)) for jobs in ratio.SCALING_JOBS]

    assert ratios[0] == 0
    assert ratios[-1] == 1
    assert ratios == sorted(ratios)
    assert all(len(sweep_sequence(members, jobs, 1)) == SWEEP_JOBS for jobs in ratio.SCALING_JOBS)


# --- runs


def test_under_ce_both_models_run_jobs_as_long_as_the_trace_says(some, members):
    for seed, result in enumerate(some, start=1):
        drawn = sequence(members, seed)
        for model in MODELS:
            assert np.allclose(runs_of(result, CE, model).run_s, [m.run_s for m in drawn], atol=0.5)


def test_sns_keeps_alpha_by_its_own_model_and_cs_does_not_care(some):
    of = Sequences(some, AUTHORS)

    assert len(of.broken(SNS)) == 0
    assert len(Sequences(some, CONTENTION).broken(CS)) > 0


def test_every_printed_number_has_a_statistic(some):
    assert {printed.number for printed in PRINTED} == NUMBERS.keys()
    for model in MODELS:
        assert all(np.isfinite(float(number(Sequences(some, model)))) for number in NUMBERS.values())


def test_throughput_is_the_inverse_of_the_mean_turnaround(some):
    of = Sequences(some, CONTENTION)
    ce, sns = (runs_of(some[0], policy, CONTENTION).turnaround_s.mean() for policy in (CE, SNS))

    assert of.gains(SNS)[0] == pytest.approx(100 * (ce / sns - 1))
    assert (of.gains(CE) == 0).all()


@pytest.mark.parametrize("policy", POLICIES)
def test_no_node_is_over_its_cores_ways_or_bandwidth_at_any_moment(policy, members):
    placements = place(policy, CONTENTION, jobs_of(sequence(members, 3)))
    for moment in {each.start_s for each in placements}:
        for node in range(8):
            here = [e.alternative for e in placements if e.start_s <= moment < e.end_s and node in e.nodes]
            alone = any(way.exclusive for way in here)
            assert len(here) == 1 if alone else sum(way.demand.cores for way in here) <= NODE.cores
            assert sum(way.demand.ways for way in here) <= NODE.ways
            assert sum(way.demand.bandwidth_gbps for way in here) <= NODE.bandwidth_gbps


# --- profiles with errors


def test_a_sampled_curve_is_exact_where_it_was_sampled_and_straight_between():
    run = shipped_programs()["cg"].at(16)[1]
    known = sampled(run)

    assert known.ways == (2, 4, 8, 20)
    assert [known.ipc_at(ways) for ways in known.ways] == [run.ipc_at(ways) for ways in known.ways]
    assert known.ipc_at(14) == pytest.approx((run.ipc_at(8) + run.ipc_at(20)) / 2)


def test_errors_are_drawn_once_and_none_of_no_size_is_made():
    true = shipped_programs()

    assert as_profiled(true, 1, 0.05) == as_profiled(true, 1, 0.05)
    assert as_profiled(true, 1, 0.05) != as_profiled(true, 2, 0.05)
    exact = as_profiled(true, 1, 0.0)["mg"].at(16)[1]
    assert exact.ipc == pytest.approx(sampled(true["mg"].at(16)[1]).ipc)


def test_planning_by_less_bandwidth_leaves_it_unused(members):
    jobs = jobs_of(sequence(members, 4))
    for each in VARIANTS["sns, headroom"].placements(jobs, 4):
        assert each.alternative.demand.bandwidth_gbps <= 0.8 * NODE.bandwidth_gbps


def test_measures_of_ce_beside_itself_are_nothing_and_its_cores_idle_for_part_of_the_wait(members):
    placements = place(CE, CONTENTION, jobs_of(sequence(members, 5)))
    found = measures(placements, Runs.of(placements))

    assert (found["throughput"], found["run"], found["broken"]) == (0, 1, 0)
    assert 0 < idle_share(placements) < 1


# --- balance


def test_what_nodes_move_is_what_their_jobs_move(members):
    """Alone under CE a job moves what its profile says for as long as it runs."""
    jobs = jobs_of(sequence(members, 6)[:4])
    placements = place(CE, CONTENTION, jobs)
    moved = balance.episodes(placements, jobs)

    expected = 0.0
    for each in placements:
        job = jobs[each.job.id]
        run = shipped_programs()[job.program].at(job.processes)[1]
        expected += run.bandwidth_at(NODE.ways) * (each.end_s - each.start_s)
    assert moved.sum() * balance.EPISODE_S == pytest.approx(expected, rel=1e-3)
    assert moved.max() <= NODE.bandwidth_gbps


# --- data that the project does not ship


def test_missing_data_is_one_line_that_says_where_it_is_looked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("SNS_SHARED", str(tmp_path))

    with pytest.raises(BadInput, match=f"traces/{FILE} is missing; valid: SNS_SHARED names a folder"):
        scale.run((4096, 0.9, 1))


def test_parallel_jobs_of_trinity_keep_their_nodes_and_the_others_are_left_out(tmp_path, members):
    lines = ["; a header", *(f"{at} {10 * at} 0 {run} 1 -1 -1 {tasks} 9" for at, run, tasks in _TRINITY)]
    path = tmp_path / "trinity.swf"
    path.write_text("\n".join(lines))
    by_program = {m.program: m for m in members if m.processes == 16}

    jobs = trinity_jobs(path, by_program, 1.0, 1)

    assert [(job.identity, job.processes) for job in jobs] == [(2, 2 * 28), (3, 4096 * 28)]
    assert all(by_program[job.program].kind is ProgramClass.SCALING for job in jobs)
    runs = Runs.of(place(SNS, AUTHORS, jobs[:1], node_arrays=cluster(8), parameters=scale.PARAMETERS))
    assert runs.run_s[0] < 100


#: (job, run time, tasks): one node; two; 4,096; more; no run time.
_TRINITY = [(1, 100, 32), (2, 100, 33), (3, 100, 4096 * 32), (4, 100, 4096 * 32 + 1), (5, 0, 64)]


def test_measured_programs_have_the_curves_of_the_file_and_pairs_are_set_beside_what_was_measured(
    tmp_path, monkeypatch
):
    folder = tmp_path / "profiles"
    folder.mkdir()
    with (folder / "spec-way-curves.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("program", "ways", "ipc", "bandwidth_mbps"))
        writer.writerows(("lbm", ways, 1 + ways / 10, 5000 - 100 * ways) for ways in range(1, 12))
    with (folder / "corun-measurements.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("kind", "cores", "suite", "case", "program", "runtime_s", "mean_llc_MB", "mem_GBps"))
        writer.writerow(("solorun", "8core", "NPB", "SP", "SP", 100, 40, 30))
        writer.writerow(("solorun", "8core", "rodinia", "nn", "nn", 50, 37, 10))
        writer.writerow(("corun", "8core", "pair", "nn-sp", "nn", 60, 11, 10))
        writer.writerow(("corun", "8core", "pair", "nn-sp", "SP", 105, 29, 30))
    monkeypatch.setenv("SNS_SHARED", str(tmp_path))

    run_of = spec.spec_programs(0)["lbm"].runs[0]
    nn, sp = sorted(spec.predict(), key=lambda each: each.program, reverse=True)

    assert run_of.ways == tuple(range(1, 12))
    assert run_of.bandwidth_gbps[0] == 4.9
    assert (nn.cache_mb, nn.measured_cache_mb, nn.measured_slowdown) == (10, 11, 1.2)
    assert (sp.cache_mb, sp.measured_slowdown) == (30, 1.05)
    assert nn.slowdown > 1
    found = spec.run(("spec", 1))
    assert found[CE]["run"] == 1
    assert found[CS]["broken"] > 0


def test_pages_of_random_sequences_are_written_and_resumed(tmp_path):
    options = Options(tmp_path, seeds=2, workers=Processes(1), resume=True)
    page = balance.reproduce(options)
    write_page(tmp_path, page)
    before = (tmp_path / "README.md").read_bytes()
    write_page(tmp_path, balance.reproduce(options))

    assert (tmp_path / "README.md").read_bytes() == before
    assert {"figure-17.png", "figure-18.svg", "balance.csv"} <= {path.name for path in tmp_path.iterdir()}


# --- what is assumed, changed


def test_only_assumed_numbers_are_changed_and_run_times_under_ce_stay():
    shipped = shipped_programs()
    for name, vary in assumed.VARIANTS.items():
        for program in vary(shipped).values():
            for run in program.runs:
                before = shipped[program.name].at(run.processes)[run.scale]
                if run.scale == 1:
                    assert run.time_s == before.time_s
                if before.provenance.bandwidth_gbps is not Provenance.ASSUMED and "CG" not in name:
                    assert run.bandwidth_gbps == before.bandwidth_gbps
    assert assumed.VARIANTS["as shipped"](shipped) == shipped


def test_changed_numbers_are_changed_by_as_much_as_is_said():
    shipped = shipped_programs()
    lu, ts = shipped["lu"].at(16), shipped["ts"].at(16)
    faster = assumed.gains_changed(shipped, 1.2)["lu"].at(16)
    costlier = assumed.losses_changed(shipped, 1.2)["ts"].at(16)
    hungrier = assumed.cg_hungrier(shipped)["cg"].at(16)

    assert lu[1].time_s / faster[8].time_s - 1 == pytest.approx(1.2 * (lu[1].time_s / lu[8].time_s - 1))
    assert 1 - costlier[1].kept_at(4) == pytest.approx(1.2 * (1 - ts[1].kept_at(4)))
    assert hungrier[1].fewest_ways(0.9, 20) == 18
    assert hungrier[1].full_ipc == shipped["cg"].at(16)[1].full_ipc
