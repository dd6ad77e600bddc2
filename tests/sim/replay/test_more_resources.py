"""Replays of jobs that demand further resources: what fits, and which heuristics look at them."""

from dataclasses import replace

import numpy as np
import pytest

from slurm_sns.model import Alternative, Resources
from slurm_sns.policies.matching.max_jobs import rules_of
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.node_arrays import BANDWIDTH, CORES, MEMORY, WAYS, NodeArrays, amounts
from slurm_sns.sim.replay.trace_replay import replay
from slurm_sns.sim.traces.trace_builder import RecordBuilder
from slurm_sns.sim.workloads.netbatch import generate
from slurm_sns.sim.workloads.netbatch_pools import POOLS
from sns_reproductions.netbatch_resources import run as resources
from sns_reproductions.netbatch_sweeps import records_of

NODES = NodeArrays(("one", "two"), amounts([Resources(4, 32 * 1024, 10, 10)] * 2))


def jobs(memory_gb):
    """One job of one core for each amount of memory, all submitted at once."""
    count = len(memory_gb)
    builder = RecordBuilder(NODES, 1.0)
    builder.add(
        identity=np.arange(count, dtype=np.float64),
        submit_s=np.zeros(count),
        run_s=np.full(count, 60.0),
        nodes=np.ones(count),
        cores=np.ones(count),
        memory_mb=1024 * np.array(memory_gb, dtype=np.float64),
    )
    return builder.records("jobs")


def run(records, bandwidth, heuristic, *, seen=True):
    """Each job is of a kind of its own, and demands this much bandwidth."""
    kinds = [
        (nodes, cores, memory_mb, "")
        for nodes, cores, memory_mb, _ in map(records.kinds.__getitem__, records.kind.tolist())
    ]
    choices = [
        (Alternative(nodes, Resources(cores, memory_mb, 0, gbps)),)
        for (nodes, cores, memory_mb, _), gbps in zip(kinds, bandwidth, strict=True)
    ]
    demanding = replace(records, kind=np.arange(len(kinds), dtype=np.int32), kinds=kinds, given_choices=choices)
    rules = rules_of(MatchingParameters(portfolio=(heuristic,)))
    return replay(NODES, demanding, rules, interval_s=30, only_cores_and_memory=not seen)


@pytest.mark.parametrize("seen", [True, False])
def test_a_job_waits_for_a_further_resource_whether_or_not_the_heuristic_looks_at_it(seen):
    records = jobs([1, 2, 3])
    replayed = run(records, [6, 6, 6], "mix-fit", seen=seen)
    assert replayed.start_s.tolist() == [0, 0, 60]
    assert replayed.place[:2].tolist() == [0, 1]


def test_a_heuristic_of_the_further_resource_goes_by_it():
    records = jobs([1, 2])
    assert run(records, [3, 3], "best-fit-bandwidth").place.tolist() == [0, 0]
    assert run(records, [3, 3], "worse-fit-bandwidth").place.tolist() == [0, 1]


def test_mix_fit_balances_a_further_resource_only_where_it_sees_it():
    # The first job takes half of the memory of node one and nearly all of its bandwidth. By cores and memory the second
    # brings node one nearer to balance; by all three it goes to node two.
    records = jobs([16, 1])
    assert run(records, [9, 1], "mix-fit", seen=False).place.tolist() == [0, 0]
    assert run(records, [9, 1], "mix-fit").place.tolist() == [0, 1]


def test_the_further_resources_are_as_scarce_as_the_scarcer_of_cores_and_memory():
    pool = POOLS["B"].nodes(0.05)
    records = records_of(generate(POOLS["B"], scale=0.05, seed=1, days=1), pool, 0.58)
    changed_pool, changed = resources.with_more(pool, records, 2, np.random.default_rng(1))

    held = np.array([[each.nodes * amount for amount in each.demand[:4]] for (each,) in changed.choices])
    held[:, 2:] //= np.array([[each.nodes] for (each,) in changed.choices])
    work = (held[changed.kind] * changed.run_s[:, np.newaxis]).sum(axis=0)
    cores, memory, ways, bandwidth = work / changed_pool.capacity[[CORES, MEMORY, WAYS, BANDWIDTH]].sum(axis=1)
    assert ways == pytest.approx(max(cores, memory), rel=0.03)
    assert bandwidth == pytest.approx(max(cores, memory), rel=0.03)
    assert [changed.kinds[each][:3] for each in changed.kind] == [records.kinds[each][:3] for each in records.kind]


def test_every_job_with_further_resources_fits_on_some_machine_and_all_policies_run_it():
    waits = resources.compare(("A", 4, 1, 0.01, 0.2))
    assert list(waits) == list(resources.policies(4))
    assert all(wait >= 0 for wait in waits.values())


def test_with_two_resources_there_is_nothing_further_to_see():
    assert resources.MIX_OF_TWO not in resources.policies(2)
    assert resources.policies(3)[resources.MIX_OF_TWO] == (("mix-fit",), False)
    assert resources.policies(3)[resources.WITH_PAIRS][0][-2:] == ("best-fit-bandwidth", "worse-fit-bandwidth")
