from math import ceil

import numpy as np
import pytest
from programs import paper_programs, program, run

from slurm_sns.errors import BadInput
from slurm_sns.policies.spread_n_share.classify import ProgramClass, classify
from slurm_sns.policies.spread_n_share.parameters import (
    PAPER_FREQUENCY_FACTORS,
    REPRODUCTION,
    SpreadingParameters,
    require_valid,
)

#: The paper's classes (section 6.1), and what the text of figures 6 and 12 says of ways.
PAPER_CLASSES = {
    **dict.fromkeys(["mg", "lu", "ts", "bw"], (ProgramClass.SCALING, 8)),
    "cg": (ProgramClass.SCALING, 2),
    "bfs": (ProgramClass.COMPACT, 1),
    **dict.fromkeys(["ep", "wc", "nw", "hc"], (ProgramClass.NEUTRAL, 1)),
}
PAPER_WAYS = {"mg": 3, "cg": 10, "bfs": 18, "ep": 2, "hc": 2}


def test_a_curve_is_linear_between_its_points_and_constant_beyond():
    curve = run(ways=(2, 4, 8, 20), ipc=(0.4, 0.8, 0.9, 1.0), bandwidth=(10, 20, 30, 0))

    assert [curve.ipc_at(ways) for ways in (1, 2, 4, 8, 20, 30)] == [0.4, 0.4, 0.8, 0.9, 1.0, 1.0]
    assert curve.ipc_at(3) == pytest.approx(0.6)
    assert curve.bandwidth_at(14) == 15


def test_the_fewest_ways_are_at_least_two_and_reach_the_target():
    curve = run(ways=(1, 10), ipc=(0.1, 1.0))

    assert curve.fewest_ways(0.05, 20) == 2
    assert curve.fewest_ways(0.9, 20) == 9  # the ninth point of the line is 0.9 but for the last bit
    assert curve.fewest_ways(0.91, 20) == 10
    assert curve.fewest_ways(0.91, 9) is None


def test_the_full_ipc_is_the_best_even_where_the_curve_is_noisy():
    noisy = run(ways=(2, 4, 8, 20), ipc=(0.5, 0.9, 1.01, 1.0))

    assert noisy.full_ipc == 1.01
    assert noisy.kept_at(20) == pytest.approx(1 / 1.01)


@pytest.mark.parametrize(
    ("times", "kind", "ideal"),
    [
        ({1: 100}, ProgramClass.NEUTRAL, 1),
        ({1: 105.0, 2: 100}, ProgramClass.NEUTRAL, 1),  # exactly 5 %
        ({1: 105.1, 2: 100}, ProgramClass.SCALING, 2),
        ({1: 100, 2: 105}, ProgramClass.NEUTRAL, 1),
        ({1: 100, 2: 105.1}, ProgramClass.COMPACT, 1),
        ({1: 100, 2: 90, 4: 120}, ProgramClass.SCALING, 2),  # scaling comes first
        ({1: 100, 2: 80, 4: 80, 8: 80}, ProgramClass.SCALING, 2),
    ],
)
def test_classes_by_run_times(times, kind, ideal):
    found = classify(program(times).at(16), SpreadingParameters())

    assert (found.kind, found.ideal_scale) == (kind, ideal)


def test_run_times_are_multiplied_by_the_frequency_factor_first():
    raw = program({1: 100, 8: 90}).at(16)  # faster on empty nodes: 90 * 1.15 = 103.5 on shared ones

    assert classify(raw, SpreadingParameters(frequency_factors=PAPER_FREQUENCY_FACTORS)).kind is ProgramClass.NEUTRAL
    assert classify(raw, SpreadingParameters()).kind is ProgramClass.SCALING


def test_a_scale_between_those_listed_has_the_factor_of_the_one_below():
    papers = SpreadingParameters(frequency_factors=PAPER_FREQUENCY_FACTORS)
    few = SpreadingParameters(frequency_factors=(1.0, 1.1))

    assert [papers.frequency_factor(scale) for scale in (1, 2, 3, 4, 7, 8, 16)] == [
        1,
        1.02,
        1.02,
        1.05,
        1.05,
        1.15,
        1.15,
    ]
    assert [few.frequency_factor(scale) for scale in (1, 2, 4, 8)] == [1, 1.1, 1.1, 1.1]
    assert {SpreadingParameters().frequency_factor(scale) for scale in (1, 2, 8)} == {1}


@pytest.mark.parametrize(
    ("factors", "said"),
    [((), "is empty; valid: one factor or more"), ((1.0, 0.0), "is 0.0; valid: from 0.1 to 10"), ((11.0,), "is 11.0")],
)
def test_factors_that_cannot_be_used_are_refused(factors, said):
    with pytest.raises(BadInput, match=said):
        require_valid(SpreadingParameters(frequency_factors=factors))


@pytest.mark.parametrize(
    ("bandwidth", "ways", "named"),
    [
        (90, 3, "bandwidth"),
        (20, 10, "cache"),
        (90, 10, "bandwidth and cache"),
        (20, 9, "cache"),  # neither limit is reached: the nearer one
        (80, 3, "bandwidth"),
    ],
)
def test_the_bottleneck_is_named(bandwidth, ways, named):
    curves = {"ways": (2, ways, 20), "ipc": (0.2, 0.9, 1.0), "bandwidth": [bandwidth] * 3}

    found = classify(program({1: 200, 2: 100}, **curves).at(16), REPRODUCTION, node_bandwidth_gbps=118)

    assert found.bottleneck == named


@pytest.mark.parametrize("name", PAPER_CLASSES)
def test_the_shipped_programs_have_the_papers_classes(name):
    kind, ideal = PAPER_CLASSES[name]
    found = classify(paper_programs()[name].at(16), REPRODUCTION)
    assert (found.kind, found.ideal_scale) == (kind, ideal)
    for processes in paper_programs()[name].process_counts:
        assert classify(paper_programs()[name].at(processes), REPRODUCTION).kind is kind


def test_the_shipped_programs_have_the_papers_bottlenecks():
    programs = paper_programs()
    named = {name: classify(programs[name].at(16), REPRODUCTION).bottleneck for name in ("mg", "lu", "bw", "cg", "ts")}

    assert named == {"mg": "bandwidth", "lu": "bandwidth", "bw": "bandwidth", "cg": "cache", "ts": "cache"}


@pytest.mark.parametrize(("name", "ways"), PAPER_WAYS.items())
def test_the_shipped_programs_need_the_papers_ways_for_nine_tenths(name, ways):
    assert paper_programs()[name].at(16)[1].fewest_ways(0.9, 20) == ways


def test_the_shipped_programs_are_the_papers_fourteen_pairs_with_its_bandwidths():
    programs = paper_programs()

    assert sum(len(each.process_counts) for each in programs.values()) == 14
    assert {name for name, each in programs.items() if 28 in each.process_counts} == {"bw", "hc"}
    assert {name for name, each in programs.items() if each.max_scale == 1} == {"gan", "rnn"}
    full = {name: programs[name].at(16)[1].bandwidth_at(20) for name in ("mg", "cg", "ep", "bfs")}
    assert full == {"mg": 112.0, "cg": 42.9, "ep": 0.09, "bfs": 0.12}
    assert programs["mg"].at(16)[2].bandwidth_at(20) == 67.6


def test_a_program_that_cannot_leave_its_node_is_neutral_unless_told():
    gan = paper_programs()["gan"]

    assert classify(gan.at(16), REPRODUCTION, max_scale=1).kind is ProgramClass.NEUTRAL
    assert (
        classify(gan.at(16), SpreadingParameters(unspreadable_is_compact=True), max_scale=1).kind
        is ProgramClass.COMPACT
    )


def test_the_nearest_process_count_serves_only_when_asked():
    bw = paper_programs()["bw"]

    assert bw.at(20) == {}
    assert bw.at(20, nearest=True)[1].processes == 16
    assert bw.at(22, nearest=True)[1].processes == 16  # as near to 28: the smaller
    assert bw.at(1000, nearest=True)[1].processes == 28


# --- the shipped file follows the rules that its README states ---

EVERY_RUN = [(name, run) for name, each in paper_programs().items() for run in each.runs]


@pytest.mark.parametrize(("name", "run"), EVERY_RUN, ids=lambda value: getattr(value, "scale", value))
def test_assumed_way_curves_follow_from_the_share_of_the_cache_that_a_process_has(name, run):
    base = paper_programs()[name].at(16)[1]
    on_a_node = -(-run.processes // run.scale)

    for ways, ipc in zip(run.ways, run.ipc, strict=True):
        assert ipc == pytest.approx(base.ipc_at(ways * 16 / on_a_node), abs=1e-4)


@pytest.mark.parametrize(("name", "run"), EVERY_RUN, ids=lambda value: getattr(value, "scale", value))
def test_assumed_bandwidth_follows_from_the_bytes_that_a_process_moves(name, run):
    at_one = paper_programs()[name].at(run.processes)[1]
    share = -(-run.processes // run.scale) / run.processes
    with_all_ways = at_one.bandwidth_at(20) * share * at_one.time_s / run.time_s
    if name == "bfs":
        with_all_ways = 0.12

    for ways, bandwidth in zip(run.ways, run.bandwidth_gbps, strict=True):
        kept = 1.0 if name in {"ep", "bfs"} else run.kept_at(ways)
        assert bandwidth == pytest.approx(min(112.0, with_all_ways / kept), rel=2e-3, abs=1e-3)


def test_all_that_is_not_in_the_paper_or_its_records_is_marked_assumed():
    marked = {
        (name, run.scale): tuple(map(str, (run.provenance.time_s, run.provenance.ipc))) for name, run in EVERY_RUN
    }

    assert {times for (_, scale), (times, _) in marked.items() if scale == 1} == {"measured"}
    assert {times for (_, scale), (times, _) in marked.items() if scale > 1} == {"assumed"}
    assert {ipc for _, ipc in marked.values()} == {"assumed"}
    printed = {(name, run.scale) for name, run in EVERY_RUN if str(run.provenance.bandwidth_gbps) == "printed"}
    assert printed == {("mg", 1), ("ep", 1), ("bfs", 1)}


# --- programs of independent copies: how many there are on a node is all that matters


COPIES = ("bw", "hc")


def test_only_programs_of_copies_are_shipped_with_several_process_counts():
    assert tuple(sorted(name for name, each in paper_programs().items() if len(each.process_counts) > 1)) == COPIES


@pytest.mark.parametrize("name", COPIES)
def test_so_many_copies_on_a_node_take_as_long_however_many_run_on_other_nodes(name):
    program = paper_programs()[name]
    by_copies = {16 // scale: each.time_s for scale, each in program.at(16).items()}
    counts = sorted(by_copies)

    for scale, found in program.at(28).items():
        copies = ceil(28 / scale)
        if copies > max(counts):  # measured
            assert found.time_s > by_copies[max(counts)]
        else:
            expected_s = np.interp(copies, counts, [by_copies[count] for count in counts])
            assert found.time_s == pytest.approx(expected_s, abs=0.01)


@pytest.mark.parametrize("name", COPIES)
def test_every_copy_moves_the_same_bytes(name):
    moved = [
        each.bandwidth_at(20) * each.time_s / ceil(each.processes / each.scale) for each in paper_programs()[name].runs
    ]

    assert moved == pytest.approx([moved[0]] * len(moved), rel=2e-3)


def test_as_many_copies_on_a_node_have_the_same_curves():
    by_16, by_28 = paper_programs()["bw"].at(16)[4], paper_programs()["bw"].at(28)[8]  # 4 copies on a node

    assert (by_28.time_s, by_28.ways, by_28.ipc) == (by_16.time_s, by_16.ways, by_16.ipc)
    assert by_28.bandwidth_gbps == by_16.bandwidth_gbps
