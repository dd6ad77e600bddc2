"""Why jobs wait at an instant, and what is stranded then, in queues with known answers."""

from dataclasses import replace

import numpy as np
import pytest

from slurm_sns.model import Alternative, Node, Resources, gpus_of
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.sim.run import TraceRun
from slurm_sns.sim.site_report.waiting_reasons import REASONS, STEP_S, look
from slurm_sns.sim.trace import TraceArrays


def nodes(*sizes: tuple[int, int]) -> NodeArrays:
    shapes = [Resources(cores, memory_gb << 10) for cores, memory_gb in sizes]
    return NodeArrays.of([Node(f"n{at}", each, each, 1, ()) for at, each in enumerate(shapes)])


def run_of(*jobs: tuple[tuple[int, int, int], int, int, tuple[int, ...]], allowed=None) -> TraceRun:
    """The run of jobs that were submitted at 0: nodes, cores and memory in GB on each; start, end, and places."""
    count = len(jobs)
    spread = [place for *_, places in jobs for place in (places if len(places) > 1 else ())]
    begins = np.cumsum([0, *(len(places) if len(places) > 1 else 0 for *_, places in jobs)])
    trace = TraceArrays(
        np.arange(count),
        np.zeros(count, np.int64),
        np.ones(count, np.int64),
        kind=np.arange(count, dtype=np.int32),
        kinds=[(on, cores, memory_gb << 10, "") for (on, cores, memory_gb), *_ in jobs],
        project=np.zeros(count, np.int32),
        projects=[""],
        allowed_nodes=allowed,
        partition=np.arange(count, dtype=np.int32),
        partitions=[f"p{at}" for at in range(count)],
    )
    place = [places[0] if len(places) == 1 else begins[at] for at, (*_, places) in enumerate(jobs)]
    start, end = (np.array([job[at] for job in jobs], np.int64) for at in (1, 2))
    return TraceRun(trace, start, end, np.array(place), spread=np.array(spread, np.int32))


LATER = 10 * STEP_S
#: A running job that holds 2 of 4 cores, and all but 1 GB of 16.
HUNGRY = ((1, 2, 15), 0, LATER, (0,))


def reasons(run: TraceRun, site: NodeArrays) -> dict[str, dict[str, float]]:
    """By partition the hours of waiting of each reason that there is, in the first step."""
    found = look(run, site, STEP_S, step_s=STEP_S)
    return {
        name: {reason: hours for reason, hours in zip(REASONS, row, strict=True) if hours}
        for name, row in zip(run.trace.partitions, found.waiting_h.tolist(), strict=True)
        if any(row)
    }


@pytest.mark.parametrize(
    ("asked", "reason"),
    [((1, 2, 2), "memory"), ((1, 3, 1), "cores"), ((1, 3, 2), "both"), ((1, 2, 1), "room"), ((2, 1, 1), "both")],
)
def test_what_a_job_waits_for(asked, reason):
    run = run_of(HUNGRY, (asked, LATER, LATER + 1, (0,) * asked[0]))
    assert reasons(run, nodes((4, 16))) == {"p1": {reason: 0.5}}


@pytest.mark.parametrize(
    ("gpus", "memory_gb", "reason"),
    [({"a": 2}, 1, "gpus"), ({"": 3}, 1, "gpus"), ({"a": 1}, 1, "room"), ({"a": 2}, 2, "memory")],
)
def test_a_job_with_gpus_waits_for_them_where_enough_of_the_rest_is_free(gpus, memory_gb, reason):
    run = run_of(HUNGRY, ((1, 2, memory_gb), LATER, LATER + 1, (0,)))
    demands = [Resources(2, 15 << 10, gpus=gpus_of({"a": 1})), Resources(2, memory_gb << 10, gpus=gpus_of(gpus))]
    run = replace(run, trace=replace(run.trace, given_choices=[(Alternative(1, each),) for each in demands]))
    size = Resources(4, 16 << 10, gpus=gpus_of({"a": 2, "b": 1}))
    site = NodeArrays.sized(["n0"], [size])
    assert reasons(run, site) == {"p1": {reason: 0.5}}
    stranded = look(run, site, STEP_S, step_s=STEP_S).stranded.tolist()
    assert stranded == [0, 0], "what the job cannot use for want of GPUs, or of more than one resource, is not stranded"


def test_nodes_that_a_job_may_not_use_are_no_room_for_it():
    run = run_of(HUNGRY, ((1, 2, 2), LATER, LATER + 1, (0,)), allowed=[None, frozenset({"n0"})])
    assert reasons(run, nodes((4, 16), (4, 16))) == {"p1": {"memory": 0.5}}


def test_memory_that_is_short_strands_cores():
    run = run_of(HUNGRY, ((1, 2, 2), LATER, LATER + 1, (0,)))
    found = look(run, nodes((4, 16)), STEP_S, step_s=STEP_S)
    assert found.idle.tolist() == [2, 1024]
    assert found.stranded.tolist() == [2, 0]  # the waiting job asks for 2 GB, so 1 GB would be of no use to it
    assert (found.busy, found.waiting.tolist()) == (1, [1])


def test_cores_that_are_short_strand_memory():
    run = run_of(((1, 4, 1), 0, LATER, (0,)), ((1, 1, 2), LATER, LATER + 1, (0,)))
    assert look(run, nodes((4, 16)), STEP_S, step_s=STEP_S).stranded.tolist() == [0, 15 << 10]


def test_nothing_is_stranded_where_some_waiting_job_fits():
    run = run_of(HUNGRY, ((1, 2, 2), LATER, LATER + 1, (0,)), ((1, 1, 1), LATER, LATER + 1, (0,)))
    assert look(run, nodes((4, 16)), STEP_S, step_s=STEP_S).stranded.tolist() == [0, 0]


def test_without_a_waiting_job_nothing_counts_as_idle():
    found = look(run_of(HUNGRY), nodes((4, 16)), 4 * STEP_S, step_s=STEP_S)
    assert (found.busy, found.idle.tolist(), found.waiting.tolist()) == (0, [0, 0], [0] * 4)


def test_a_job_on_several_nodes_holds_each_of_them_until_its_end():
    run = run_of(((2, 4, 8), 0, 2 * STEP_S, (0, 2)), ((1, 4, 8), 3 * STEP_S, LATER, (0,)))
    found = look(run, nodes((4, 16), (4, 16), (4, 16)), 3 * STEP_S, step_s=STEP_S)
    assert found.waiting.tolist() == [1, 1, 0]
    # At the first instant one node is free, at the second all: the job ends there.
    assert found.idle.tolist() == [4 + 12, (32 + 48) << 10]


def test_a_short_time_is_looked_at_more_often():
    found = look(run_of(HUNGRY, ((1, 2, 2), LATER, LATER + 1, (0,))), nodes((4, 16)), 600)
    assert (found.step_s, found.busy, len(found.waiting)) == (2, 300, 300)
