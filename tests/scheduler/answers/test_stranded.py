"""What is stranded on a node: free cores without memory, and free GPUs without cores and memory beside them."""

from dataclasses import replace

import pytest
from live import look, node, situation, tasks

from slurm_sns.gpus import NODE, GpuRequest
from slurm_sns.model import Alternative, Node, Resources, gpus_of
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.scheduler.answers.stranded import left_free, needs_of, stranded, waiting_needs
from slurm_sns.scheduler.answers.view import View

POLICY = max_jobs(MatchingParameters())
CAPACITY = Resources(32, 1000, gpus=gpus_of({"a100": 4, "h100": 2, "": 2}))


def asks(cores: int, memory_mb: int, **gpus: int) -> Alternative:
    """One node with these cores, memory and GPUs; `any` stands for any type."""
    named = {"" if kind == "any" else kind: count for kind, count in gpus.items()}
    return Alternative(1, Resources(cores, memory_mb, gpus=gpus_of(named)))


def lost(*waiting: Alternative, cores: int, memory_mb: int, **gpus: int) -> tuple[int, dict[str, int]]:
    """The stranded cores and GPUs of a node where so much is free; `none` stands for GPUs without a type."""
    named = {"" if kind == "none" else kind: count for kind, count in gpus.items()}
    found = stranded(needs_of(waiting), Node("g1", CAPACITY, Resources(cores, memory_mb, gpus=gpus_of(named))))
    assert (found.memory_mb, found.ways, found.bandwidth_gbps, found.closids) == (0, 0, 0, 0)
    return found.cores, dict(found.gpus)


def test_cores_are_stranded_where_each_waiting_job_needs_more_memory() -> None:
    assert lost(asks(1, 200), asks(1, 101), cores=8, memory_mb=100) == (8, {})
    assert lost(asks(1, 200), asks(64, 100), cores=8, memory_mb=100) == (0, {}), "the second finds its memory"
    assert lost(cores=8, memory_mb=0) == (0, {}), "nothing waits"


def test_gpus_are_stranded_where_cores_are_short_and_where_memory_is() -> None:
    assert lost(asks(4, 100, a100=1), cores=3, memory_mb=1000, a100=2) == (0, {"gpu": 2, "gpu:a100": 2})
    assert lost(asks(4, 100, a100=1), cores=32, memory_mb=99, a100=2) == (32, {"gpu": 2, "gpu:a100": 2})
    assert lost(asks(4, 100, a100=1), cores=4, memory_mb=100, a100=2) == (0, {})


def test_a_job_with_few_cores_and_one_with_little_memory_do_not_make_one_that_fits() -> None:
    waiting = [asks(1, 500, a100=1), asks(8, 50, a100=1)]
    assert lost(*waiting, cores=4, memory_mb=100, a100=1) == (0, {"gpu": 1, "gpu:a100": 1})
    assert lost(*waiting, asks(4, 100, a100=1), cores=4, memory_mb=100, a100=1) == (0, {})


def test_gpus_of_a_type_that_nobody_asks_for_are_free_and_not_stranded() -> None:
    waiting = [asks(8, 10, a100=1), asks(1, 1)]
    assert lost(*waiting, cores=4, memory_mb=100, h100=2, none=1) == (0, {})
    assert lost(asks(8, 10), cores=4, memory_mb=100, a100=2) == (0, {}), "no job with GPUs waits"


def test_a_job_for_any_type_strands_gpus_of_each_type_and_one_that_fits_frees_only_its_own() -> None:
    anything = asks(8, 10, any=1)
    free = {"cores": 4, "memory_mb": 100, "a100": 2, "h100": 1, "none": 1}
    assert lost(anything, **free) == (0, {"gpu": 4, "gpu:a100": 2, "gpu:h100": 1})
    assert lost(anything, asks(4, 10, a100=1), **free) == (0, {"gpu": 2, "gpu:h100": 1})
    assert lost(anything, asks(4, 10, any=1), **free) == (0, {})


def test_each_way_to_run_a_job_counts() -> None:
    assert lost(asks(8, 10, a100=4), asks(4, 10, a100=2), cores=4, memory_mb=100, a100=2) == (0, {})


@pytest.mark.parametrize(("mode", "gpus_left"), [("enforce", 1), ("observe", 2)])
def test_what_a_cycle_places_is_neither_free_nor_does_its_job_wait(mode: str, gpus_left: int) -> None:
    waiting = [tasks(each, 20, gpus=GpuRequest(NODE, (("a100", 1),))) for each in (1, 2, 3)]
    has = Resources(28, 128_000, gpus=gpus_of({"a100": 2}))
    seen = situation(look(*waiting, nodes=[replace(node(name), capacity=has) for name in ("c1", "c2")]))
    plan = POLICY.plan(seen.snapshot)
    of = View(1.0, 0.0, mode, False, 3, 2, 5, seen, plan)
    assert len(plan.starts) == 2
    assert [dict(each.free.gpus).get("gpu", 0) for each in left_free(of)] == [gpus_left] * 2
    assert waiting_needs(of).beside_gpus == {"a100": ((20, 20_000),)}
