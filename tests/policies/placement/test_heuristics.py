import numpy as np
import pytest
from clusters import job, node, placed, plan

from slurm_sns.errors import BadInput
from slurm_sns.model import GPU, Resources, gpus_of
from slurm_sns.policies.placement.heuristic_names import heuristics
from slurm_sns.policies.placement.heuristics import HEURISTICS
from slurm_sns.policies.placement.node_arrays import amounts

# Free: a 6 cores 10 GB of 64, b 2 cores 40 GB of 64, c 4 cores 8 GB of 32, d 8 cores 32 GB of 32.
MACHINES = (
    node("a", 8, 64, free=(6, 10)),
    node("b", 8, 64, free=(2, 40)),
    node("c", 8, 32, free=(4, 8)),
    node("d", 8, 32, free=(8, 32)),
)


def test_the_names_that_need_no_numpy_are_those_of_the_heuristics():
    assert heuristics() == tuple(HEURISTICS)


@pytest.mark.parametrize(
    ("heuristic", "taken"),
    [
        ("first-fit", "a"),
        ("best-fit-cores", "b"),
        ("best-fit-memory", "c"),
        ("worse-fit-cores", "d"),
        ("worse-fit-memory", "b"),
        ("mix-fit", "d"),
        ("best-fit-gpus", "b"),
        ("memory-first-best", "c"),
        ("memory-first-worse", "d"),
    ],
)
def test_each_heuristic_takes_its_own_node(heuristic, taken):
    assert placed(plan(MACHINES, [job(1, 2, 8)], heuristic)) == {1: taken}


def scores_of(free, capacity, demand):
    """What each heuristic scores, by the words of the papers; free and capacity by resource."""
    cores, _, ways, gbps, _, *gpus = (capacity - free) / capacity
    gpus_free = free[5]  # of all types, whatever is demanded
    occupied = cores + (gbps if demand.bandwidth_gbps else 0) + (2.0 * ways if demand.ways else 0)
    counts = dict(demand.gpus)
    if len(counts) > 1:
        counts.pop(GPU)  # of a type
    occupied += sum(share for name, share in zip(GPU_NAMES, gpus, strict=True) if name in counts)
    return {
        "first-fit": np.arange(free.shape[1]),
        "best-fit-cores": free[0],
        "best-fit-memory": free[1],
        "worse-fit-cores": -free[0],
        "worse-fit-memory": -free[1],
        "best-fit-gpus": 2.0**21 * gpus_free + free[0],
        "memory-first-best": 1000 * capacity[1] + free[1],
        "memory-first-worse": 1000 * capacity[1] - free[1],
        "best-fit-ways": free[2] * (demand.ways > 0),
        "worse-fit-ways": -free[2] * (demand.ways > 0),
        "best-fit-bandwidth": free[3] * (demand.bandwidth_gbps > 0),
        "worse-fit-bandwidth": -free[3] * (demand.bandwidth_gbps > 0),
        "idlest": np.round(occupied, 9),
    }


GPU_NAMES = (GPU, "gpu:a", "gpu:b")


@pytest.mark.parametrize(
    "demand",
    [
        Resources(1, 1),
        Resources(1, 1, 4),
        Resources(1, 1, 0, 9),
        Resources(2, 3, 4, 5),
        Resources(1, 1, gpus=gpus_of({"": 2})),
        Resources(1, 1, gpus=gpus_of({"b": 2})),
        Resources(2, 3, 4, 5, gpus=gpus_of({"a": 1, "b": 1})),
    ],
)
def test_each_heuristic_scores_what_its_paper_says(demand):
    rng = np.random.default_rng(1)
    free = rng.integers(5, 100, (8, 50))
    capacity = free + rng.integers(0, 50, (8, 50))
    column = amounts([demand], GPU_NAMES)[:, 0].tolist()
    expected = scores_of(free, capacity, demand)

    assert {*expected, "mix-fit"} == set(HEURISTICS)
    for heuristic, scores in expected.items():
        found = HEURISTICS[heuristic](capacity, free, np.arange(50), column)
        assert found.tolist() == pytest.approx(scores.tolist(), abs=2e-9), heuristic


@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_a_tie_goes_to_the_node_that_comes_first_in_the_list(heuristic):
    assert placed(plan([node("z"), node("a"), node("m")], [job(1, 1, 8)], heuristic)) == {1: "z"}


@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_no_heuristic_takes_a_node_on_which_one_resource_is_short(heuristic):
    machines = (node("few-cores", free=(1, 32)), node("little-memory", free=(4, 7)), node("fits", free=(2, 8)))

    assert placed(plan(machines, [job(1, 2, 8)], heuristic)) == {1: "fits"}


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"portfolio": ("mix-fit", "magic")}, "heuristic 'magic' is unknown; valid: first-fit, best-fit-cores"),
        ({"portfolio": ()}, "portfolio is empty"),
        ({"portfolio": ("mix-fit", "mix-fit")}, "twice"),
        ({"default_heuristic": "magic"}, "default_heuristic: heuristic 'magic' is unknown"),
        ({"queue_depth": 0}, "queue_depth is 0; valid: 1 or more"),
        ({"reservations": -1}, "reservations is -1; valid: 0 or more"),
    ],
)
def test_impossible_parameters_are_refused_with_what_is_valid(parameters, words):
    with pytest.raises(BadInput, match=words):
        plan(MACHINES, [], **parameters)
