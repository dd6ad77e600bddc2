"""Orders of jobs, which allocate nothing: a stable sort by two keys, and a binary heap.

Keys are by job. On the heap the job with the least key is first, of equal ones the earlier submit; a key must not
change while its job is on the heap, and a change of the heap costs O(log jobs).
"""

from typing import Any

from numpy.typing import NDArray

from slurm_sns.policies.dfrs.fluid_arrays import Floats, Integers
from slurm_sns.policies.placement.compiled import subroutine


@subroutine
def sort_decreasing(jobs: Integers, key: Floats, other: Floats, spare: Integers) -> None:
    """Sort the jobs by `key`, decreasing, then by `other`, decreasing; equal ones keep their order.

    `spare` is working memory, at least as long as the jobs.
    """
    width = 1
    while width < len(jobs):
        for begin in range(0, len(jobs), 2 * width):
            _merge(jobs, key, other, spare, begin, min(begin + width, len(jobs)), min(begin + 2 * width, len(jobs)))
        width *= 2


@subroutine
def sort_by_submit(jobs: Integers, key: Floats, spare: Integers) -> None:
    """Sort the jobs by number, which is their order of submission; `key` is working memory."""
    for job in jobs:
        key[job] = -float(job)
    sort_decreasing(jobs, key, key, spare)


@subroutine
def _merge(  # noqa: PLR0917  compiled functions have no keyword-only arguments
    jobs: Integers, key: Floats, other: Floats, spare: Integers, begin: int, middle: int, end: int
) -> None:
    """Merge two sorted parts of the jobs that follow each other."""
    left, right = begin, middle
    for at in range(begin, end):
        takes_left = right == end
        if left < middle and right < end:
            one, two = jobs[left], jobs[right]
            takes_left = key[one] > key[two] or (key[one] == key[two] and other[one] >= other[two])
        if takes_left:
            spare[at] = jobs[left]
            left += 1
        else:
            spare[at] = jobs[right]
            right += 1
    for at in range(begin, end):
        jobs[at] = spare[at]


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
