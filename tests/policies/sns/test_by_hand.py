"""Every figure of an explanation, recomputed from the numbers in the profile file by other means."""

from dataclasses import asdict
from math import ceil

import numpy as np
import pytest
import yaml
from programs import GB, SHIPPED, paper_programs, types

from slurm_sns.policies.base import Request
from slurm_sns.policies.sns.alternatives import choose
from slurm_sns.policies.sns.parameters import REPRODUCTION

FACTORS = {1: 1.0, 2: 1.02, 4: 1.05, 8: 1.15}
FILE = yaml.safe_load(SHIPPED.read_text())["programs"]
PAIRS = [(name, processes) for name in FILE for processes in {run["processes"] for run in FILE[name]["runs"]}]


def runs_in_file(name, processes):
    return {run["scale"]: run for run in FILE[name]["runs"] if run["processes"] == processes}


def by_hand(name, processes, alpha, scale):
    """What the file says of one scale on the paper's nodes, with numpy's interpolation."""
    runs = runs_in_file(name, processes)
    run = runs[scale]
    nodes = scale * ceil(processes / 28)
    cores = ceil(processes / nodes)
    time_s = run["time_s"] * FACTORS[scale]
    target = alpha * max(run["ipc"])
    ways = next(ways for ways in range(2, 21) if np.interp(ways, run["ways"], run["ipc"]) >= target - 1e-9)
    bandwidth = np.interp(ways, run["ways"], run["bandwidth_gbps"])
    ipc = np.interp(ways, run["ways"], run["ipc"])
    return {
        "nodes": ceil(processes / cores),
        "cores": cores,
        "ways": ways,
        "bandwidth_gbps": ceil(bandwidth),
        "bandwidth_exact_gbps": pytest.approx(bandwidth),
        "time_s": run["time_s"],
        "frequency_factor": FACTORS[scale],
        "corrected_time_s": pytest.approx(time_s),
        "full_ipc": max(run["ipc"]),
        "target_ipc": pytest.approx(target),
        "ipc": pytest.approx(ipc),
        "slowdown": pytest.approx(time_s / runs[1]["time_s"] * max(run["ipc"]) / ipc),
    }


@pytest.mark.parametrize("alpha", [0.7, 0.9, 0.97])
@pytest.mark.parametrize(("name", "processes"), PAIRS)
def test_every_figure_of_an_explanation_follows_from_the_file(name, processes, alpha):
    request = Request(processes, memory_per_node_mb=GB, alpha=alpha)

    explained = choose(request, paper_programs()[name], types(), REPRODUCTION).explanation

    shared = [each for each in explained.considered if not each.exclusive and not each.dropped]
    assert shared
    for each in shared:
        expected = by_hand(name, processes, alpha, each.scale)
        assert {field: value for field, value in asdict(each).items() if field in expected} == expected
    assert (explained.program, explained.processes, explained.alpha) == (name, processes, alpha)


@pytest.mark.parametrize(("name", "processes"), PAIRS)
def test_what_is_eligible_and_in_which_order_follows_from_the_file(name, processes):
    runs = runs_in_file(name, processes)
    times = {scale: run["time_s"] * FACTORS[scale] for scale, run in runs.items()}
    eligible = [scale for scale in times if times[1] / times[scale] >= 0.9 and processes % scale == 0]
    if times[1] > 1.05 * min(times.values()):
        eligible.sort(key=times.get)
        kind = "scaling"
    elif max(times.values()) > 1.05 * times[1]:
        eligible, kind = [1, 1], "compact"
    else:
        kind = "neutral"

    choice = choose(Request(processes, memory_per_node_mb=GB), paper_programs()[name], types(), REPRODUCTION)

    assert choice.explanation.kind == kind
    assert [alternative.scale for alternative in choice.alternatives] == eligible


def test_an_alternative_is_what_its_explanation_says():
    for name, processes in PAIRS:
        choice = choose(Request(processes, memory_per_node_mb=GB), paper_programs()[name], types(), REPRODUCTION)
        for alternative, each in zip(choice.alternatives, choice.explanation.considered, strict=False):
            assert alternative.demand == (each.cores, each.memory_mb, each.ways, each.bandwidth_gbps, 0)
            assert (alternative.nodes, alternative.tasks_per_node, alternative.scale) == (
                each.nodes,
                each.tasks_per_node,
                each.scale,
            )
            assert (alternative.slowdown, alternative.exclusive) == (each.slowdown, each.exclusive)
