"""The n-th smallest of many distinct integers, in place and in linear time on average (compiled)."""

from slurm_sns.policies.placement.arrays import Integers
from slurm_sns.policies.placement.compiled import compiled


@compiled
def nth_smallest(scratch: Integers, values: Integers, nth: int) -> int:
    """The nth smallest value, counted from 1; `scratch` has the length of `values`, which stay as they are.

    Source: Hoare's quickselect, with the median of three as the pivot.
    """
    for at in range(len(values)):
        scratch[at] = values[at]
    low, high, wanted = 0, len(scratch) - 1, nth - 1
    while low < high:
        pivot = _median(scratch[low], scratch[(low + high) >> 1], scratch[high])
        left, right = low, high
        while left <= right:
            while scratch[left] < pivot:
                left += 1
            while scratch[right] > pivot:
                right -= 1
            if left <= right:
                scratch[left], scratch[right] = scratch[right], scratch[left]
                left += 1
                right -= 1
        if wanted <= right:
            high = right
        elif wanted >= left:
            low = left
        else:
            break
    return scratch[wanted]


@compiled
def _median(one: int, two: int, three: int) -> int:
    return max(min(one, two), min(max(one, two), three))
