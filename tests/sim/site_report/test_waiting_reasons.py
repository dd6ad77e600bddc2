"""Why jobs wait at an instant, and what is stranded then, in queues with known answers."""

from dataclasses import replace

import numpy as np
import pytest

from slurm_sns.model import Alternative, Node, Resources, gpus_of
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.sim.run import TraceRun
from slurm_sns.sim.site_report import waiting_reasons
from slurm_sns.sim.site_report.waiting_reasons import REASONS, STEP_S, capacity_of, gpu_types, look
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


def asking_for(run: TraceRun, *gpus: dict[str, int]) -> TraceRun:
    """The run with these GPUs of each of its jobs, on each node."""
    kinds = zip(run.trace.kinds, gpus, strict=True)
    demands = [Resources(cores, memory_mb, gpus=gpus_of(of)) for (_, cores, memory_mb, _), of in kinds]
    return replace(run, trace=replace(run.trace, given_choices=[(Alternative(1, each),) for each in demands]))


def gpu_nodes(*gpus: dict[str, int]) -> NodeArrays:
    """Nodes with 4 cores and 16 GB, and these GPUs."""
    return NodeArrays.sized(
        [f"n{at}" for at in range(len(gpus))], [Resources(4, 16 << 10, gpus=gpus_of(of)) for of in gpus]
    )


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
    run = asking_for(run, {"a": 1}, gpus)
    site = gpu_nodes({"a": 2, "b": 1})
    assert reasons(run, site) == {"p1": {reason: 0.5}}
    stranded = look(run, site, STEP_S, step_s=STEP_S).stranded.tolist()
    assert stranded[:2] == [0, 0], (
        "what the job cannot use for want of GPUs, or of more than one resource, is not stranded"
    )


class TestStrandedGpus:
    """On nodes with two GPUs of type a, one of type b and one without a type."""

    site = gpu_nodes({"a": 2, "b": 1, "": 1})

    def lost(self, run: TraceRun, site: NodeArrays | None = None) -> tuple[list[float], list[float]]:
        """The idle and the stranded GPUs in the first step, by type: a, b, none."""
        of = site or self.site
        found = look(run, of, STEP_S, step_s=STEP_S)
        assert gpu_types(of) == ("a", "b", "")
        return found.idle[2:].tolist(), found.stranded[2:].tolist()

    def waiting(self, cores: int, memory_gb: int, gpus: dict[str, int], **more) -> TraceRun:
        """Beside a job that holds 2 cores, all but 1 GB and one GPU of type a, a job that waits for this."""
        run = run_of(HUNGRY, ((1, cores, memory_gb), LATER, LATER + 1, (0,)), **more)
        return asking_for(run, {"a": 1}, gpus)

    @pytest.mark.parametrize(
        ("cores", "memory_gb", "gpus", "stranded"),
        [
            (2, 2, {"a": 1}, [1, 0, 0]),  # memory is short
            (3, 1, {"a": 1}, [1, 0, 0]),  # cores are
            (3, 2, {"a": 1}, [1, 0, 0]),  # both are
            (2, 1, {"a": 1}, [0, 0, 0]),  # it fits
            (3, 1, {"a": 2}, [0, 0, 0]),  # its GPUs are not idle: they are short
            (3, 1, {"b": 1}, [0, 1, 0]),
            (3, 1, {"a": 1, "b": 1}, [1, 1, 0]),
            (3, 1, {"": 3}, [1, 1, 1]),  # it takes GPUs of any type
            (3, 1, {"": 4}, [0, 0, 0]),
            (3, 1, {}, [0, 0, 0]),  # nobody asks for GPUs
        ],
    )
    def test_they_are_idle_where_only_cores_or_memory_are_short(self, cores, memory_gb, gpus, stranded):
        assert self.lost(self.waiting(cores, memory_gb, gpus)) == ([1, 1, 1], stranded)

    def test_a_job_without_gpus_that_fits_takes_none_of_them(self):
        run = run_of(HUNGRY, ((1, 3, 1), LATER, LATER + 1, (0,)), ((1, 1, 1), LATER, LATER + 1, (0,)))
        assert self.lost(asking_for(run, {"a": 1}, {"a": 1}, {}))[1] == [1, 0, 0]

    def test_a_job_that_fits_takes_those_that_it_asks_for(self):
        run = run_of(HUNGRY, ((1, 3, 1), LATER, LATER + 1, (0,)), ((1, 1, 1), LATER, LATER + 1, (0,)))
        assert self.lost(asking_for(run, {"a": 1}, {"": 1}, {"b": 1}))[1] == [1, 0, 1]
        assert self.lost(asking_for(run, {"a": 1}, {"b": 1}, {"": 1}))[1] == [0, 0, 0]

    def test_nodes_that_no_job_with_gpus_may_use_strand_nothing(self):
        run = self.waiting(3, 1, {"a": 1}, allowed=[None, frozenset()])
        assert self.lost(run)[1] == [0, 0, 0]

    def test_of_each_type_no_more_are_idle_than_of_all(self):
        run = run_of(((1, 4, 1), 0, LATER, (0,)), ((1, 1, 1), LATER, LATER + 1, (0,)))
        site = gpu_nodes({"a": 2}, {"b": 1, "": 1})
        assert self.lost(asking_for(run, {"": 1}, {"a": 1}), site) == ([1, 1, 1], [1, 0, 0])

    def test_they_count_at_the_instants_at_which_something_waits(self):
        run = run_of(((1, 4, 1), 0, LATER, (0,)), ((1, 1, 1), 2 * STEP_S, LATER + 1, (0,)))
        found = look(asking_for(run, {}, {"b": 1}), self.site, 4 * STEP_S, step_s=STEP_S)
        assert (found.busy, found.idle[2:].tolist(), found.stranded[2:].tolist()) == (1, [2, 1, 1], [0, 1, 0])

    def test_many_kinds_of_jobs_are_looked_at_in_blocks(self, monkeypatch):
        monkeypatch.setattr(waiting_reasons, "AT_A_TIME", 1)
        run = run_of(HUNGRY, ((1, 1, 1), LATER, LATER + 1, (0,)), ((1, 3, 1), LATER, LATER + 1, (0,)))
        assert self.lost(asking_for(run, {"a": 1}, {"b": 1}, {"": 1}))[1] == [1, 0, 1]


def test_a_site_without_gpus_has_cores_and_memory_alone():
    assert gpu_types(nodes((4, 16))) == ()
    assert capacity_of(nodes((4, 16), (4, 8))).tolist() == [8, 24 << 10]


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
