"""A binary heap of jobs: the one with the least key is first, of equal ones the earlier submit. It allocates nothing.

Keys are by job, and must not change while the job is on the heap. A change costs O(log jobs).
"""

from typing import Any

from numpy.typing import NDArray

from slurm_sns.policies.dfrs.fluid_arrays import Integers
from slurm_sns.policies.placement.compiled import subroutine


@subroutine
def push(heap: Integers, count: int, key: NDArray[Any], job: int) -> None:
    """Add a job to the `count` jobs of the heap."""
    at = count
    while at and _is_before(key, job, heap[(at - 1) // 2]):
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = job


@subroutine
def pop(heap: Integers, count: int, key: NDArray[Any]) -> int:
    """Take the first of the `count` jobs away from the heap."""
    first = heap[0]
    _sink(heap, count - 1, key, 0, heap[count - 1])
    return first


@subroutine
def order_heap(heap: Integers, key: NDArray[Any]) -> None:
    """Make a heap of jobs in any order. O(jobs)."""
    for at in range(len(heap) // 2 - 1, -1, -1):
        _sink(heap, len(heap), key, at, heap[at])


@subroutine
def _sink(heap: Integers, count: int, key: NDArray[Any], at: int, job: int) -> None:
    """Put a job at this position or, after earlier ones, below it."""
    child = 2 * at + 1
    while child < count:
        if child + 1 < count and _is_before(key, heap[child + 1], heap[child]):
            child += 1
        if _is_before(key, job, heap[child]):
            break
        heap[at] = heap[child]
        at, child = child, 2 * child + 1
    heap[at] = job


@subroutine
def _is_before(key: NDArray[Any], one: int, other: int) -> bool:
    return key[one] < key[other] or (key[one] == key[other] and one < other)
