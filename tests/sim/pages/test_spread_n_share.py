"""Reproductions of Spread-n-Share: what their pages say of printed numbers, and the parts they are made of."""

import csv
import dataclasses
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from slurm_sns.errors import BadInput
from slurm_sns.policies.profile import Provenance
from slurm_sns.policies.spread_n_share.classify import ProgramClass
from slurm_sns.policies.spread_n_share.exploration import ExplorationStep
from slurm_sns.sim.engine.disciplines import TEXT
from slurm_sns.sim.engine.spreading_policies import CE, CS, SNS
from slurm_sns.sim.pages import FOLDERS
from slurm_sns.sim.pages.claims import PageClaims
from slurm_sns.sim.pages.judge import FAILS, HOLDS, INPUT, UNDECIDED, drawn
from slurm_sns.sim.pages.page import reproduce
from slurm_sns.sim.pages.running import Options, WorkerProcesses
from slurm_sns.sim.profiling.learning_cluster import as_profiled, sampled
from slurm_sns.sim.request import AUTHORS, CONTENTION, MODELS
from slurm_sns.sim.traces.program_trace import ProgramJob
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
from sns_reproductions.spread_n_share import (
    ARITHMETIC,
    GEOMETRIC,
    NODE,
    NUMBERS,
    POLICIES,
    Runs,
    Sequences,
    above_alpha,
    cluster,
    draws_of,
    kept,
    place,
    run_all,
    shipped_programs,
)
from sns_reproductions.spread_n_share_assumed import run as assumed
from sns_reproductions.spread_n_share_balance import run as balance
from sns_reproductions.spread_n_share_beyond import run as beyond
from sns_reproductions.spread_n_share_learning import run as learning
from sns_reproductions.spread_n_share_phases import run as phases
from sns_reproductions.spread_n_share_ratio import run as ratio
from sns_reproductions.spread_n_share_scale import run as scale
from sns_reproductions.spread_n_share_spec import run as spec
from sns_reproductions.spread_n_share_throughput import run as throughput

THROUGHPUT, RATIO, PHASES, ASSUMED, BEYOND, SCALE = (
    PageClaims.of(FOLDERS[f"spread-n-share-{name}"])
    for name in ("throughput", "ratio", "phases", "assumed", "beyond", "scale")
)
PRINTED, RECORDED = (THROUGHPUT.content.data[name] for name in ("printed", "recorded_jobs"))


@pytest.fixture(scope="module")
def members():
    return population(shipped_programs())


@pytest.fixture(scope="module")
def some(members):
    """Two sequences under every policy and model."""
    return [run_all(jobs_of(sequence(members, seed))) for seed in (1, 2)]


@pytest.mark.parametrize(("name", "drawings"), [("example", 0), ("cache", 2), ("scaling", 1)])
def test_printed_numbers_come_back(name, drawings, tmp_path):
    claims, seeds = reproduce(f"spread-n-share-{name}", Options(tmp_path))

    assert seeds is None
    assert {claim.verdict for claim in claims} == {INPUT}
    stems = re.findall(r"\(([\w-]+)\.svg\)", (tmp_path / "README.md").read_text())
    assert len(stems) == drawings
    for stem in stems:
        assert (tmp_path / f"{stem}.png").is_file()
        assert (tmp_path / f"{stem}.svg").stat().st_size > 1000


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


def test_the_scaling_ratio_counts_gan_and_nw_and_the_recorded_sequence_lies_in_the_papers_range(members):
    by_name = {f"{m.program}-{m.processes}": m for m in members}
    recorded = [by_name[name] for name in RECORDED]

    assert scaling_ratio(recorded) == pytest.approx(0.461, abs=5e-4)
    assert PAPER_RATIOS[0] <= scaling_ratio(recorded) <= PAPER_RATIOS[1]
    assert scaling_ratio([by_name["gan-16"]]) == scaling_ratio([by_name["nw-16"]]) == 1
    assert scaling_ratio([by_name["hc-28"], by_name["rnn-16"]]) == 0


def test_the_recorded_sequence_waits_and_runs_as_long_as_recorded_within_5_percent():
    assert len(RECORDED) == 20
    data = THROUGHPUT.content.data
    others = {f"{setting} {name}": drawn(np.zeros(2)) for setting in data["settings"] for name in PRINTED}
    judged = THROUGHPUT.judge(others | throughput.recorded_numbers(data), {})
    claims = [each for each in judged if (each.where, each.group) == ("prototype", data["settings"]["text"]["title"])]

    assert [claim.expected for claim in claims] == ["304 to 336", "400.9 to 443.1", "0.342 to 0.378"]
    assert [claim.verdict for claim in claims] == [HOLDS, INPUT, HOLDS]


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
            assert np.allclose(result[model][CE]["run_s"], [m.run_s for m in drawn], atol=0.5)


def test_every_printed_number_has_a_statistic(some):
    assert list(PRINTED) == list(NUMBERS)
    for model in MODELS:
        assert all(
            np.isfinite(float(number(Sequences.of([each[model] for each in some])))) for number in NUMBERS.values()
        )


def contended(results, throughput=ARITHMETIC):
    """The sequences under the contention model."""
    return Sequences.of([each[CONTENTION] for each in results], throughput)


def test_by_the_text_throughput_is_the_inverse_of_the_mean_turnaround(some):
    of = contended(some)
    ce, sns = (np.add(*some[0][CONTENTION][policy].values()).mean() for policy in (CE, SNS))

    assert of.gains(SNS)[0] == pytest.approx(100 * (ce / sns - 1))
    assert (of.gains(CE) == 0).all()


def test_by_the_prototype_throughput_is_the_geometric_mean_of_the_jobs_ratios(some):
    of = contended(some, GEOMETRIC)
    ce, sns = (np.add(*some[1][CONTENTION][policy].values()) for policy in (CE, SNS))

    assert of.gains(SNS)[1] == pytest.approx(100 * (np.prod(ce / sns) ** (1 / 20) - 1))
    assert of.gains(SNS)[1] != contended(some).gains(SNS)[1]


def hand_made(ratios):
    """One sequence of jobs that take 100 s under CE, and these shares of that under SNS and CS."""
    own, ce, waits = 100 * np.array([ratios]), np.full((1, len(ratios)), 100.0), np.zeros((1, len(ratios)))
    return Sequences(dict.fromkeys((CE, SNS, CS), waits), {CE: ce, SNS: own, CS: own})


def test_an_alpha_is_broken_above_its_inverse_and_measured_in_both_units():
    of = hand_made([1.0, 1.11, 1.2, 1.8])  # 1 / 0.9 = 1.111

    assert of.broken(SNS).tolist() == pytest.approx([1.2, 1.8])
    assert NUMBERS["broken"](of) == 2
    assert NUMBERS["broken by"](of) == pytest.approx(100 * ((1.2 * 1.8) ** 0.5 - 1))
    assert NUMBERS["broken by most"](of) == pytest.approx(80)
    assert above_alpha(of.broken(SNS)) == pytest.approx(100 * (0.08 + 0.62) / 2)
    assert of.columns(SNS)["broken"].tolist() == [50]
    assert of.columns(SNS)["broken_by"].tolist() == pytest.approx([100 * (0.08 + 0.62) / 4])


def test_without_broken_alphas_they_are_broken_by_nothing():
    of = hand_made([0.9, 1.0])

    assert [NUMBERS[name](of) for name in ("broken", "broken by", "broken by most")] == [0, 0, 0]
    assert above_alpha(of.broken(SNS)) == 0


def test_blocks_are_drawn_from_the_sequences_and_a_seed_gives_the_same_ones_again(some):
    of = contended(some)
    first, again = (draws_of(of, {"sns gain": NUMBERS["sns gain"]})["sns gain"] for _ in range(2))

    assert (first == again).all()
    assert of.gains(SNS).min() <= first.min() < first.max() <= of.gains(SNS).max()
    assert first.mean() == pytest.approx(of.gains(SNS).mean(), abs=np.ptp(of.gains(SNS)) / 10)


def test_every_setting_is_judged_by_all_printed_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(throughput, "QUICK_SEQUENCES", 4)
    claims, _ = reproduce("spread-n-share-throughput", Options(tmp_path, quick=True, workers=WorkerProcesses(1)))

    for setting in THROUGHPUT.content.data["settings"].values():
        own = [claim.text for claim in claims if claim.group == setting["title"]]
        assert [each["text"] for each in PRINTED.values()] == own[: len(PRINTED)]
    assert sum(claim.verdict == INPUT for claim in claims) == 3  # mean run times follow from those under CE


# --- the ratio of scaling jobs


def claims_on_ratio(turnaround):
    """The claims on these shares of CE's turnaround and wait at every ratio, by text: four equal draws."""
    ratios = np.array(ratio.SCALING_JOBS) / SWEEP_JOBS
    run, other = (np.repeat(np.array(each)[:, None], 4, axis=1) for each in (1 - ratios * 30 / 100, turnaround))
    data = RATIO.content.data
    found = {}
    for queue in data["queues"]:
        found |= ratio.numbers(queue, {"turnaround_s": other, "wait_s": other, "run_s": run}, ratios, data)
    return {claim.text: claim for claim in RATIO.judge(found, {}) if claim.group == data["queues"][TEXT]}


def test_a_sentence_of_figure_19_is_one_claim():
    falls = [1.0, 0.99, 0.96, 0.93, 0.85, 0.85, 0.85, 0.8, 0.89, 1.1, 1.2]
    claims = claims_on_ratio(falls)

    assert len(claims) == 5
    assert {claim.verdict for claim in claims.values()} == {HOLDS}
    better = claims["turnaround over 10 % better between 0.35 and 0.85"]
    assert better.found.mean == pytest.approx(11)  # the least of the five
    by_text = {text: claim.verdict for text, claim in claims_on_ratio([*falls[:8], 0.95, *falls[9:]]).items()}
    assert by_text["turnaround over 10 % better between 0.35 and 0.85"] == FAILS


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


def test_planning_by_less_bandwidth_leaves_it_unused():
    for each in beyond.placed(0.05, 4, **BEYOND.content.data["variants"]["sns, headroom"]):
        assert each.alternative.demand.bandwidth_gbps <= 0.8 * NODE.bandwidth_gbps


def test_measures_of_ce_beside_itself_are_nothing_and_its_cores_idle_for_part_of_the_wait(members):
    placements = place(CE, CONTENTION, jobs_of(sequence(members, 5)))
    found = Sequences.of([{CE: kept(placements)}]).columns(CE)

    assert (found["throughput"], found["run"], found["broken"], found["broken_by"]) == (0, 1, 0, 0)
    assert 0 < beyond.idle_share(placements) < 1


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


def test_the_windows_end_with_the_sequence_or_with_its_last_start():
    found = {"gbps": [[8.0] * 20 + [0.0] * 40] * 2, "last_start_s": 290.0, "last_end_s": 600.0}

    shapes = [balance.windowed(found, window).shape for window in ("all", "last_end", "last_start")]
    assert shapes == [(2, 60), (2, 20), (2, 10)]
    assert balance.spread_over_peak(balance.windowed(found, balance.ALL)) == pytest.approx((1 / 3 * 2 / 3) ** 0.5)
    assert balance.spread_over_peak(balance.windowed(found, "last_end")) == 0


# --- phases and errors


def test_without_phases_a_profile_is_sampled_as_it_is_and_long_phases_bias_it():
    run = shipped_programs()["cg"].at(16)[1]
    lots = np.random.default_rng(1)

    assert phases.sampled_in_phases(run, 0.0, 120, lots).ipc == pytest.approx(sampled(run).ipc)
    off = phases.sampled_in_phases(run, 1.0, 120, lots)
    assert off.ways == (2, 4, 8, 20)
    assert off.ipc != pytest.approx(sampled(run).ipc, rel=1e-3)
    assert off.full_ipc == pytest.approx(run.full_ipc)


def test_phases_as_long_as_two_samples_show_each_number_of_ways_one_phase_alone():
    run = shipped_programs()["cg"].at(16)[1]
    biased = phases.sampled_in_phases(run, 1.0, 10, np.random.default_rng(1))
    of = [phases.in_phase(run, 1.0, is_memory_phase=each) for each in (True, False)]

    for ways in (2, 4, 8):
        assert biased.ipc_at(ways) in [pytest.approx(each.ipc_at(ways)) for each in of]


def test_every_variant_of_broken_alphas_is_a_run_of_its_own():
    variants = PHASES.content.data["variants"]
    found = phases.run_sequence(variants, ("phases", 1))

    assert found.keys() == {CE, *variants}
    assert {len(each["wait_s"]) for each in found.values()} == {20}
    assert found["none"] != found["the prototype's scales"] != found[list(variants)[-1]]


def test_the_page_of_broken_alphas_says_of_each_row_whether_the_printed_numbers_lie_inside():
    few, many = hand_made([1.0, 1.2] * 10), hand_made([1.0] * 16 + [1.283] * 3 + [2.259])

    assert phases.is_inside(few, PRINTED) == "no, no, no"
    assert phases.is_inside(many, PRINTED) == "no, no, yes"


# --- learning


def _explored(*steps, times=None):
    times = times or [100.0] * len(steps)
    return [
        learning.Explored(("p", 16), ExplorationStep(scale, samples), time_s)
        for (scale, samples), time_s in zip(steps, times, strict=True)
    ]


def _broken(*steps, times=None):
    return {rule for rule, is_broken in learning.broken_in_a_round(_explored(*steps, times=times)).items() if is_broken}


def test_rules_of_learning_are_seen_to_be_kept_and_broken():
    timed, both = (1, False), [(1, False), (1, True)]

    assert _broken(*both, (2, False), (2, True)) == set()
    assert _broken(timed, (2, False)) == set()
    assert _broken((2, False), (1, False)) == {"order"}
    assert _broken(*both, (4, False)) == {"order"}
    assert _broken((1, True)) == {"untimed"}
    assert _broken(timed, timed, timed) == {"too_many"}
    assert _broken(*both, (2, False), (4, False), times=[100, 100, 120, 110]) == {"after_saturation"}
    assert _broken(*both, (2, False), times=[100, 100, 120]) == set()


def test_a_stream_is_learnt_by_the_rules_and_learning_costs_node_time(monkeypatch):
    monkeypatch.setattr(learning, "BATCHES", 3)
    jobs = learning.stream(1)
    placements, explored, laboratory = learning.learn(jobs, 0.0, 1)

    assert [job.submit_s for job in jobs[::20]] == [0, 1800, 3600]
    assert explored
    broken = learning.rules_broken(placements, explored, laboratory)
    assert broken.keys() == PageClaims.of(FOLDERS["spread-n-share-learning"]).content.data["rules"].keys()
    assert set(broken.values()) == {0}
    found = learning.cost(placements, explored)
    assert found["exploring_runs"] == len(explored) == len(laboratory.explored)
    assert 0 < found["exploring_share"] < 100
    assert found["renewals"] == 0


def test_a_neighbour_of_an_exploring_run_is_seen(monkeypatch):
    monkeypatch.setattr(learning, "BATCHES", 1)
    placements, explored, laboratory = learning.learn(learning.stream(1), 0.0, 1)
    mine = next(each for each in placements if each.job.id in explored)
    beside = dataclasses.replace(placements[-1], nodes=mine.nodes, start_s=mine.start_s, end_s=mine.end_s)

    broken = learning.rules_broken([*placements[:-1], beside], explored, laboratory)
    assert broken["not_alone"] >= 1


# --- data that the project does not ship


def test_missing_data_is_one_line_that_says_where_it_is_looked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("SNS_SHARED", str(tmp_path))

    with pytest.raises(BadInput, match=f"traces/{FILE} is missing; valid: SNS_SHARED names a folder"):
        scale.run_trinity((CE, TEXT, scale.OURS, 4096, 0.9, 1))


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


def test_the_converters_filter_keeps_parts_of_a_node_and_whole_nodes(tmp_path, members):
    tasks = [1, 2, 31, 32, 33, 64, 4096 * 32, 4097 * 32]
    lines = [f"{at} {at} 0 100 1 -1 -1 {wanted} 9" for at, wanted in enumerate(tasks)]
    path = tmp_path / "trinity.swf"
    path.write_text("\n".join(lines))
    by_program = {m.program: m for m in members if m.processes == 16}

    jobs = trinity_jobs(path, by_program, 0.5, 1, by_converter=True)

    assert [(job.identity, job.processes) for job in jobs] == [
        *[(1, 1), (2, 27), (3, 28), (4, 28)],
        *[(5, 56), (6, 4096 * 28)],
    ]


def test_waits_are_told_by_width_and_the_backlog_and_the_load_by_week():
    week = scale.WEEK_S
    runs = Runs(np.array([0.0, 0.5 * week]), np.array([0.0, week]), np.array([1.0, 0.5 * week]))
    nodes = np.array([1, 100])

    assert scale.by_width(runs.wait_s, nodes) == [0, None, week, None, None]
    assert scale.backlog(runs, nodes, 100)[:3] == [0.5, 0.5, 0]
    jobs = [ProgramJob(0, 0.0, week, "lu", 28, None), ProgramJob(1, 1.5 * week, week / 2, "lu", 2800, None)]
    assert scale.offered_load(jobs, nodes, 100)[:3] == [0.01, 0.5, 0]


def test_a_job_that_fills_its_nodes_has_no_scale_8(members):
    by_program = {m.program: m for m in members if m.processes == 16}
    for program in by_program:
        jobs = [ProgramJob(0, 0.0, 100.0, program, 3 * 28, None)]
        wide, narrow = (
            place(
                SNS, AUTHORS, jobs, node_arrays=cluster(64), parameters=dataclasses.replace(scale.PARAMETERS, scales=of)
            )
            for of in ((1, 2, 4, 8), (1, 2, 4))
        )
        assert wide[0].job.alternatives == narrow[0].job.alternatives


def test_the_study_has_every_queue_order_and_filter_with_ce_beside_it():
    pieces = scale.study_pieces(SCALE.content.data)

    assert len(pieces) == len(set(pieces)) == 3 * (4 * 2 + 1) + 4
    found = {
        piece: {"wait_s": 3600.0 if piece[0] == CE else 1800.0, "run_s": 10.0, "turnaround_s": 20.0}
        | {"jobs": 1, "wait_by_width_s": [None, 4.0, 4.0, 4.0, 2.0], "load": [0.0] * 14, "backlog": [0.0] * 14}
        for piece in pieces
    }
    assert all(scale.piece_of(CE, TEXT, 4096, 0.5, seed) in found for seed in (1, 2))
    table = scale.study_table(found, pieces, SCALE.content.data)
    assert len(table.rows) == 2 * (4 * 2 + 1) + 4
    assert {row[3:] for row in table.rows} == {("1.0", "-50.0", "+0.0", "+0.0", "", "+0.0", "+0.0", "+0.0", "+0.0")}


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
    found = Sequences.of([spec.run_mix(("spec", 1))])
    assert found.columns(CE)["run"] == 1
    assert found.columns(CS)["broken"] > 0


def test_pages_of_random_sequences_are_written_and_resumed(tmp_path):
    options = Options(tmp_path, seeds=2, workers=WorkerProcesses(1), resume=True)
    reproduce("spread-n-share-balance", options)
    before = (tmp_path / "README.md").read_bytes()
    reproduce("spread-n-share-balance", options)

    assert (tmp_path / "README.md").read_bytes() == before
    assert {"figure-17.png", "figure-18.svg", "balance.csv"} <= {path.name for path in tmp_path.iterdir()}


# --- what is assumed, changed


def test_only_assumed_numbers_are_changed_and_run_times_under_ce_stay():
    shipped = shipped_programs()
    for name, change in ASSUMED.content.data["variants"].items():
        for program in assumed.changed_programs(*change).values():
            for run in program.runs:
                before = shipped[program.name].at(run.processes)[run.scale]
                if run.scale == 1:
                    assert run.time_s == before.time_s
                if before.provenance.bandwidth_gbps is not Provenance.ASSUMED and "CG" not in name:
                    assert run.bandwidth_gbps == before.bandwidth_gbps
    assert assumed.changed_programs("none", 1) == shipped


def test_changed_numbers_are_changed_by_as_much_as_is_said():
    shipped = shipped_programs()
    lu, ts = shipped["lu"].at(16), shipped["ts"].at(16)
    faster = assumed.changed_programs("gains", 1.2)["lu"].at(16)
    costlier = assumed.changed_programs("losses", 1.2)["ts"].at(16)
    hungrier = assumed.changed_programs("cg_ways", 18)["cg"].at(16)

    assert lu[1].time_s / faster[8].time_s - 1 == pytest.approx(1.2 * (lu[1].time_s / lu[8].time_s - 1))
    assert 1 - costlier[1].kept_at(4) == pytest.approx(1.2 * (1 - ts[1].kept_at(4)))
    assert hungrier[1].fewest_ways(0.9, 20) == 18
    assert hungrier[1].full_ipc == shipped["cg"].at(16)[1].full_ipc


# --- what the documents say of the published pages

ROOT = Path(__file__).parents[3]
SCIENCE = ROOT / "docs" / "science"
PAGES = sorted((SCIENCE / "results").glob("spread-n-share-*/claims.csv"))
PAGE = (SCIENCE / "spread-n-share.md").read_text(encoding="utf-8")


def verdicts():
    """How many claims of the paper have each verdict, by group; inputs have a group of their own."""
    found = {}
    for page in PAGES:
        with page.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row["where"] != "ours":
                    group = INPUT if row["verdict"] == INPUT else row["group"]
                    found.setdefault(group, Counter())[row["verdict"]] += 1
    return found


def test_the_table_has_the_verdicts_of_the_pages_by_setting():
    expected = {
        f"| {group} | {sum(of.values())} | {of[HOLDS]} | {of[FAILS]} | {of[UNDECIDED]} |"
        for group, of in verdicts().items()
        if group != INPUT
    }

    table = PAGE.split("| Spread-n-Share, by | claims |")[1].split("\n\n")[0].splitlines()[2:]
    assert set(table) == expected


def test_the_number_of_inputs_is_that_of_the_pages():
    assert re.findall(r"\b(\d+) more numbers are inputs", PAGE) == [str(verdicts()[INPUT][INPUT])]


def test_every_page_is_named_on_the_page_of_its_paper():
    for page in (SCIENCE / "results").glob("spread-n-share-*/README.md"):
        assert f"](results/{page.parent.name}/README.md)" in PAGE


def test_no_claim_of_the_paper_is_judged_by_two_rules_on_one_page():
    for page in PAGES:
        with page.open(encoding="utf-8", newline="") as file:
            rows = [(row.get("group"), row["claim"], row["measure"]) for row in csv.DictReader(file)]
        assert len(rows) == len(set(rows)), page
