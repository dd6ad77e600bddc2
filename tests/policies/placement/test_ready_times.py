"""The sweep over releases finds when a job has room: the same as the oracle, node by node."""

from math import inf

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from oracles import ready_times

from slurm_sns.model import GPU, NOTHING, Resources, gpus_of
from slurm_sns.policies.placement.kernel_arrays import NOBODY
from slurm_sns.policies.placement.node_arrays import amounts
from slurm_sns.policies.placement.ready_time_kernel import earliest_start, in_order_of_ends, node_room

NOW_S = 10.0
NODES = 5
GPU_NAMES = GPU, "gpu:a"
GPUS = st.sampled_from([(), (), *map(gpus_of, ({"": 1}, {"a": 1}, {"a": 2}, {"a": 1, "": 2}))])
SOME = st.builds(Resources, *(st.integers(0, 3) for _ in range(5)), GPUS)
#: Few different ends, so that many coincide; one is now, one is not known.
ENDS_S = st.sampled_from([NOW_S, 11.0, 12.0, 12.5, inf])
RELEASES = st.lists(st.tuples(st.integers(0, NODES - 1), ENDS_S, SOME), max_size=20)


def swept(needs, free, part, wanted, releases) -> tuple[float, list[float]]:
    """The start, and the ready times of the nodes."""
    coming = in_order_of_ends(
        np.array([end_s for _, end_s, _ in releases], np.float64),
        np.array([node for node, _, _ in releases], np.int64),
        amounts([amount for *_, amount in releases], GPU_NAMES).T,
    )
    numbers = np.array([NOBODY if each is None else each for each in part], np.int64)
    room = node_room(amounts(needs, GPU_NAMES) - amounts(free, GPU_NAMES), numbers)
    return earliest_start(room, wanted, coming, NOW_S), room.ready_s.tolist()


@given(
    needs=st.lists(SOME, min_size=NODES, max_size=NODES),
    free=st.lists(SOME, min_size=NODES, max_size=NODES),
    part=st.lists(st.sampled_from([0, 0, 0, 1, None]), min_size=NODES, max_size=NODES),
    wanted=st.integers(1, NODES),
    releases=RELEASES,
)
@example([NOTHING] * NODES, [NOTHING] * NODES, [0, 1, 0, 1, None], 3, [])
def test_nodes_are_ready_and_the_job_starts_when_the_oracle_says(needs, free, part, wanted, releases):
    start_s, found = swept(needs, free, part, wanted, releases)

    ready_s = [
        ready_times.ready_s(node, needs[node], free[node], releases, NOW_S) if part[node] is not None else inf
        for node in range(NODES)
    ]
    assert start_s == ready_times.start_s(ready_s, part, wanted)
    assert found == [each if each <= start_s else inf for each in ready_s]


def test_a_node_that_is_ready_after_the_start_is_not_looked_at():
    core = Resources(1, 0)
    releases = [(1, 12.0, core), (0, 11.0, core)]
    assert swept([core] * 2, [NOTHING] * 2, [0, 0], 1, releases) == (11.0, [11.0, inf])
    assert swept([core] * 2, [NOTHING] * 2, [0, 0], 2, releases) == (12.0, [11.0, 12.0])


def test_nodes_that_no_switch_joins_do_not_count_together():
    core = Resources(1, 0)
    releases = [(0, 11.0, core), (1, 12.0, core), (2, 13.0, core)]
    assert swept([core] * 3, [NOTHING] * 3, [0, 1, 0], 2, releases)[0] == 13.0
