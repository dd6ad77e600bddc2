"""The n-th smallest of many distinct integers, and sorting (compiled)."""

from slurm_sns.policies.placement.compiled import compiled
from slurm_sns.policies.placement.kernel_arrays import Integers

GAPS = (1750, 701, 301, 132, 57, 23, 10, 4, 1)


@compiled
def nth_smallest(scratch: Integers, values: Integers, nth: int) -> int:
    """The nth smallest value, counted from 1.

    `scratch` has the length of `values` and is overwritten; `values` stays as it is. Linear time on average. Source:
    Hoare's quickselect, with the median of three as the pivot.
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


@compiled
def sort(values: Integers) -> None:
    """Put the values into ascending order; quick when they nearly are in order, as nodes of equal score are.

    Source: Shell's sort, with Ciura's gaps.
    """
    if len(values) < 2:
        return
    for gap in GAPS:
        for at in range(gap, len(values)):
            value, to = values[at], at
            while to >= gap and values[to - gap] > value:
                values[to] = values[to - gap]
                to -= gap
            values[to] = value
