"""The nodes on which a job of the backlog can start first: the same as the oracle, ties and unknown ends too."""

from math import inf
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st
from live import NOW
from oracles import ready_times

from slurm_sns.cli.live.parts import warm_up
from slurm_sns.model import NOTHING, ActiveJob, ActiveState, Alternative, Resources, gpus_of, total
from slurm_sns.policies.placement.ready_time_kernel import ANY_MOMENT_S, earliest_start
from slurm_sns.scheduler.observation import ObservedNode
from slurm_sns.scheduler.snapshot.ready_nodes import ReadyNodes

NAMES = ("a", "b", "c", "d")
#: Beyond its time limit, now, later, at the same moment as others, not known.
ENDS_S = st.sampled_from([NOW - 60, NOW, NOW + 5, NOW + 9, None])


def resources(most: int):
    return st.builds(Resources, *(st.integers(0, most) for _ in range(5)), st.sampled_from([(), gpus_of({"a": 1})]))


@given(
    capacities=st.lists(resources(4), min_size=4, max_size=4),
    free=st.dictionaries(st.sampled_from(NAMES), resources(3), min_size=4),
    active=st.tuples(
        st.lists(
            st.builds(
                lambda nodes, end_s, demand: ActiveJob(1, ActiveState.RUNNING, nodes, demand, 0, expected_end_s=end_s),
                st.lists(st.sampled_from((*NAMES, "gone")), unique=True).map(tuple),
                ENDS_S,
                resources(2),
            ),
            max_size=12,
        ),
        st.sets(st.sampled_from((*NAMES, "gone"))),
    ),
    job=st.tuples(st.builds(Alternative, st.integers(1, 4), resources(3)), st.booleans()),
    columns=st.lists(st.integers(0, 3), unique=True).map(sorted),
)
def test_the_nodes_that_are_ready_first_are_taken_and_of_equals_those_with_the_most_free(
    capacities, free, active, job, columns
):
    alternative, takes_all = job

    def need(node: ObservedNode) -> Resources:
        return Resources(node.capacity.cores, node.capacity.memory_mb) if takes_all else alternative.demand

    nodes = [ObservedNode(name, frozenset(), *[capacity] * 2) for name, capacity in zip(NAMES, capacities, strict=True)]
    soon_s = NOW + ANY_MOMENT_S
    parts = [
        (NAMES.index(name), inf if each.expected_end_s is None else max(each.expected_end_s, soon_s), each.demand)
        for each in active[0]
        for name in each.nodes
        if name in NAMES
    ]
    for name in active[1].intersection(NAMES):
        held = total([free[name], *(demand for column, _, demand in parts if NAMES[column] == name)])
        left = nodes[NAMES.index(name)].capacity.minus(held)
        parts.append((NAMES.index(name), soon_s, left.minus(left.up_to(NOTHING))))
    able = [column for column in columns if need(nodes[column]).within(capacities[column])]
    ready_s = {
        column: ready_times.ready_s(column, need(nodes[column]), free[NAMES[column]], parts, NOW) for column in able
    }
    able.sort(key=lambda column: (-ready_s[column], *free[NAMES[column]]), reverse=True)
    chosen = able[: alternative.nodes]

    found, start_s = ReadyNodes(nodes, free, active, NOW).soonest(columns, alternative, takes_all=takes_all)

    assert found == {NAMES[column] for column in chosen}
    assert start_s == (max(ready_s[column] for column in chosen) if len(chosen) == alternative.nodes else inf)


def test_what_a_daemon_compiles_before_its_first_cycle_is_what_its_cycles_call():
    warm_up(SimpleNamespace(plan=lambda _snapshot: None))
    before = list(earliest_start.signatures)
    node = ObservedNode("a", frozenset(), *[Resources(4, 4096)] * 2)
    ready = ReadyNodes([node, node], {}, ((), ()), NOW)
    assert ready.soonest([0, 1], Alternative(1, Resources(1, 1)), takes_all=True) == ({"a"}, inf)
    assert earliest_start.signatures == before
