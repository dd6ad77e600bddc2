"""A stable sort of jobs by two keys, which allocates nothing."""

from slurm_sns.policies.dfrs.fluid_arrays import Floats, Integers
from slurm_sns.policies.placement.compiled import subroutine


@subroutine
def sort_decreasing(jobs: Integers, key: Floats, other: Floats, spare: Integers) -> None:
    """Sort the jobs by `key`, decreasing, then by `other`, decreasing; equal ones keep their order.

    Both keys are by job. `spare` is working memory, at least as long as the jobs.
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
