"""Every figure of an explanation, recomputed from the numbers in the profile file by other means."""

from math import ceil

import numpy as np
import pytest
import yaml
from programs import GB, SHIPPED, paper_programs, types

from slurm_sns.model import Resources
from slurm_sns.policies.base import Request
from slurm_sns.policies.spread_n_share.parameters import REPRODUCTION
from slurm_sns.policies.spread_n_share.scales import choose

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
        "GB/s": ceil(bandwidth),
        "time s": pytest.approx(time_s),
        "F-IPC": max(run["ipc"]),
        "T-IPC": pytest.approx(target),
        "IPC": pytest.approx(ipc),
        "slowdown": pytest.approx(time_s / runs[1]["time_s"] * max(run["ipc"]) / ipc),
    }


@pytest.mark.parametrize("alpha", [0.7, 0.9, 0.97])
@pytest.mark.parametrize(("name", "processes"), PAIRS)
def test_every_figure_of_an_explanation_follows_from_the_file(name, processes, alpha):
    request = Request(processes, memory_per_node_mb=GB, alpha=alpha)

    explained = choose(request, paper_programs()[name], types(), REPRODUCTION).explanation

    shared = [each for each in explained.considered if each.outcome == "on shared nodes"]
    assert shared
    for each in shared:
        expected = by_hand(name, processes, alpha, int(each.name))
        assert {figure: value for figure, value in each.figures.items() if figure in expected} == expected
    assert explained.summary[0].startswith(f"Program {name} is ")
    assert explained.summary[1] == f"It must keep {alpha:g} of its best performance (alpha)."


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

    assert choice.explanation.summary[0].startswith(f"Program {name} is {kind}")
    assert [alternative.scale for alternative in choice.alternatives] == eligible


def test_an_alternative_is_what_its_explanation_says():
    for name, processes in PAIRS:
        choice = choose(Request(processes, memory_per_node_mb=GB), paper_programs()[name], types(), REPRODUCTION)
        for alternative, each in zip(choice.alternatives, choice.explanation.considered, strict=False):
            told = each.figures
            assert alternative.demand == Resources(*(told[name] for name in ("cores", "MiB", "ways", "GB/s")))
            assert (alternative.nodes, alternative.tasks_per_node) == (told["nodes"], told["tasks"])
            assert (alternative.slowdown, str(alternative.scale)) == (told["slowdown"], each.name)
            assert each.outcome == ("on empty nodes" if alternative.exclusive else "on shared nodes")
