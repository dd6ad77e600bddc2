"""GPUs are planned like cores, by type, and are looked at only where a job demands them."""

import numpy as np
import pytest
from clusters import GB, job, node, placed, plan

from slurm_sns.gpus import MOST_OF_A_NODE
from slurm_sns.model import Alternative, Node, Resources, gpus_of
from slurm_sns.policies.base import JobRequest, NodeType, Request
from slurm_sns.policies.baselines.compact import exclusive_alternatives, shared_alternatives
from slurm_sns.policies.baselines.parameters import CompactParameters
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.heuristics import HEURISTICS, mix_fit
from slurm_sns.policies.placement.kernel_matching import ROWS, KindTable, kernel_table
from slurm_sns.policies.placement.node_arrays import GPUS, WAYS, NodeArrays, scored
from slurm_sns.policies.placement.rules import Rules
from slurm_sns.policies.placement.use import use
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters
from slurm_sns.policies.spread_n_share.scales import alternatives as spreading_alternatives
from slurm_sns.sim.traces.gpus import MOST_TYPES


def with_gpus(
    name: str, gpus: dict[str, int], free: dict[str, int] | None = None, cores: int = 8, gb: int = 32
) -> Node:
    capacity = Resources(cores, gb * GB, gpus=gpus_of(gpus))
    return Node(name, capacity, capacity if free is None else capacity._replace(gpus=gpus_of(free)))


def wanting(identity: int, gpus: dict[str, int], nodes: int = 1, **fields):
    demand = Resources(1, GB, gpus=gpus_of(gpus))
    return job(identity, alternatives=(Alternative(nodes, demand, **fields),))


TWO_TYPES = with_gpus("mixed", {"a": 2, "b": 1})


@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_a_job_is_placed_where_it_finds_its_gpus(heuristic):
    nodes = [node("plain"), with_gpus("a", {"a": 1}), with_gpus("b", {"b": 2})]

    assert placed(plan(nodes, [wanting(1, {"b": 2}), wanting(2, {"": 1}), wanting(3, {"": 1})], heuristic)) == {
        1: "b",
        2: "a",
    }


def test_no_more_jobs_start_than_there_are_gpus_of_the_type_and_in_all():
    typed = [wanting(at, {"a": 1}) for at in (1, 2, 3)]
    assert placed(plan([TWO_TYPES], typed, "first-fit")) == {1: "mixed", 2: "mixed"}
    untyped = [wanting(1, {"": 2}), wanting(2, {"a": 2}), wanting(3, {"b": 1})]
    assert placed(plan([TWO_TYPES], untyped, "first-fit")) == {1: "mixed", 3: "mixed"}


def test_an_exclusive_job_takes_all_gpus_of_its_nodes():
    waiting = [wanting(1, {"a": 1}, exclusive=True), wanting(2, {"b": 1})]

    assert placed(plan([TWO_TYPES], waiting, "first-fit")) == {1: "mixed"}


def test_a_node_with_a_gpu_in_use_is_not_empty():
    nodes = [with_gpus("used", {"a": 2}, {"a": 1}), with_gpus("empty", {"a": 2})]

    assert placed(plan(nodes, [wanting(1, {}, exclusive=True)], "first-fit")) == {1: "empty"}


def test_gpus_of_a_type_that_no_node_has_fit_nowhere_and_the_reason_names_them():
    for nodes in ([TWO_TYPES], [node("plain")]):
        result = plan(nodes, [wanting(1, {"c": 2}), wanting(2, {})], "mix-fit", "idlest", reservations=1)

        assert placed(result) == {2: nodes[0].name}
        why = "needs 1 core, 2 c GPUs and 1024 MiB; of the nodes that can be planned on now 0 are large enough"
        assert result.waiting == {1: why}


@pytest.mark.parametrize(
    ("free", "demand", "lacks"),
    [
        ({"a": 1, "b": 1}, {"a": 2}, "1 a GPU"),
        ({"a": 2}, {"b": 1}, "1 b GPU"),
        ({"": 1}, {"": 3}, "2 GPUs"),
        ({}, {"a": 2, "b": 1}, "2 a GPUs and 1 b GPU"),
    ],
)
def test_a_job_without_room_is_told_which_gpus_the_nearest_node_lacks(free, demand, lacks):
    result = plan([with_gpus("c1", {"a": 2, "b": 1}, free)], [wanting(1, demand)], "first-fit", reservations=0)

    assert result.waiting[1].endswith(f"free; nearest: c1 lacks {lacks}")
    assert result.waiting[1].about == "GPUs"


def test_scores_look_at_gpus_only_where_they_are_demanded():
    even, uneven = with_gpus("even", {"a": 4}), with_gpus("uneven", {"a": 4}, {"a": 2})

    assert placed(plan([uneven, even], [wanting(1, {})], "mix-fit")) == {1: "uneven"}
    assert placed(plan([uneven, even], [wanting(1, {"a": 1})], "idlest")) == {1: "even"}


def test_jobs_without_gpus_go_where_no_gpu_is_idle_and_jobs_with_gpus_where_few_are():
    nodes = [
        with_gpus("idle", {"a": 4}),
        with_gpus("partly", {"a": 4}, {"a": 2}),
        with_gpus("none idle", {"b": 4}, {}),
        node("none"),
    ]
    few_cores = [job(1, 7), job(2, 4), job(3, 1)]
    assert placed(plan(nodes, few_cores, "best-fit-gpus")) == {1: "none idle", 2: "none", 3: "none idle"}
    assert placed(plan(nodes, [wanting(1, {"": 1}), wanting(2, {"a": 2})], "best-fit-gpus")) == {1: "partly", 2: "idle"}


def test_best_fit_gpus_is_best_fit_cores_where_no_node_has_gpus_and_costs_nothing_more():
    plain, gpus = (kernel_table(2.0, NodeArrays.of([each])) for each in (node("plain"), TWO_TYPES))
    one, other = ROWS["best-fit-gpus"], ROWS["best-fit-cores"]

    assert plain.of[one].tolist() == plain.of[other].tolist()
    assert gpus.of[one].tolist() != gpus.of[other].tolist()
    assert len(plain.angle) == len({tuple(each) for each in plain.of.tolist()})


def test_the_largest_number_of_gpus_still_ranks_before_cores():
    whole = {f"t{at}": MOST_OF_A_NODE for at in range(MOST_TYPES)}
    most = with_gpus("most", whole, cores=1000)
    fewer = with_gpus("fewer", whole, whole | {"t0": MOST_OF_A_NODE - 1}, cores=1000)

    assert placed(plan([most, fewer], [job(1, 8), job(2, 992), job(3, 8)], "best-fit-gpus")) == {
        1: "fewer",
        2: "fewer",
        3: "most",
    }


def test_of_a_typed_demand_the_row_of_the_type_is_scored_and_not_that_of_all():
    arrays = NodeArrays.of([TWO_TYPES])
    assert arrays.gpu_names == ("gpu", "gpu:a", "gpu:b")
    assert scored(arrays.demand(Resources(1, GB, 2, gpus=gpus_of({"b": 1})))) == (WAYS, GPUS + 2)
    assert scored(arrays.demand(Resources(1, GB, gpus=gpus_of({"": 1})))) == (GPUS,)
    demand = arrays.demand(Resources(4, 16 * GB, gpus=gpus_of({"a": 1})))

    assert mix_fit(arrays.capacity, arrays.capacity, np.array([0]), demand).tolist() == [0]  # a half of each


def test_columns_and_values_are_the_same_amounts():
    arrays = NodeArrays.of([TWO_TYPES, node("plain")])

    assert arrays.resources(arrays.demand(TWO_TYPES.capacity)) == TWO_TYPES.capacity
    demands = [Resources(1, GB), TWO_TYPES.capacity, Resources(1, GB, gpus=gpus_of({"c": 1}))]
    assert arrays.demands(demands).tolist() == [[*arrays.demand(each)] for each in demands]
    assert arrays.demands([]).shape == (0, 8)
    assert arrays.capacity.tolist() == arrays.amounts([TWO_TYPES.capacity, node("plain").capacity]).tolist()
    assert arrays.total == TWO_TYPES.capacity.plus(node("plain").capacity)
    assert [each.number for each in arrays.types] == [1, 1]
    assert arrays.node(0, TWO_TYPES.capacity).capacity == TWO_TYPES.capacity


def test_there_are_as_many_cases_as_sets_of_resources_that_jobs_demand():
    arrays = NodeArrays.of([with_gpus("many", {f"t{at}": 1 for at in range(30)})])
    table = KindTable(arrays, Rules(("first-fit",), 10))
    for at in range(30):
        table.kind(wanting(2 * at, {f"t{at}": 1}))
        table.kind(wanting(2 * at + 1, {}))

    assert len(table.cases) == 31


def test_the_dominant_share_may_be_of_gpus():
    arrays = NodeArrays.of([with_gpus("n", {"a": 4, "b": 4}, cores=100, gb=1000)])

    assert use(Alternative(1, Resources(1, GB, gpus=gpus_of({"": 2}))), arrays) == 2 / 8
    assert use(Alternative(1, Resources(1, GB, gpus=gpus_of({"a": 2}))), arrays) == 2 / 4


def test_a_job_with_gpus_keeps_its_own_geometry_whatever_its_request():
    own = Alternative(2, Resources(4, GB, gpus=gpus_of({"a": 1})))
    types = (NodeType(Resources(8, 32 * GB, gpus=gpus_of({"a": 4})), 8),)
    asked = JobRequest(own, Request(tasks=8))

    assert spreading_alternatives(SpreadingParameters(), asked, types).alternatives == (own,)
    assert shared_alternatives(CompactParameters(), asked, types).alternatives == (own,)
    (exclusive,) = exclusive_alternatives(asked, types).alternatives
    assert (exclusive.nodes, exclusive.demand) == (own.nodes, own.demand)


def test_a_portfolio_of_all_heuristics_fills_a_cluster_of_two_types():
    nodes = [with_gpus(f"n{at}", {"a": 2} if at % 2 else {"b": 1, "a": 1}) for at in range(8)]
    waiting = [wanting(at, {"a": 1} if at % 3 else {"b": 1}) for at in range(40)]
    starts = plan(nodes, waiting, *HEURISTICS, queue_depth=MatchingParameters().queue_depth).starts

    assert sum(start.alternative.demand.gpus == gpus_of({"a": 1}) for start in starts) == 12
    assert sum(start.alternative.demand.gpus == gpus_of({"b": 1}) for start in starts) == 4
