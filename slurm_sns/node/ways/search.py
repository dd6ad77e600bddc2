"""Where contiguous masks of given widths go so that as few jobs as possible move: an exact search.

A job moves when it does not get the mask that it holds. Of all layouts the search finds those with the fewest moves, of
these the ones whose moved jobs have the fewest ways together, and of these one whose masks contain the fewest shareable
ways.

Method: Dijkstra's algorithm over the layouts, from the lowest way to the highest. Jobs of equal width are
interchangeable except for the masks that they hold, so a state is a way and, for each width, the number of jobs that
lie below that way. All states of one way and one cost are the bits of one integer: a step that puts another job of some
width next is an AND and a shift.

Complexity: at most ways x costs x widths operations on integers of prod(jobs of that width + 1) bits, where costs are
the distinct costs up to the best one. To fill gaps exactly is bin packing, so there is no bound that is polynomial in
the number of ways; `MOST_STEPS` limits the search.
"""

from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from itertools import accumulate
from typing import NamedTuple

from slurm_sns.node.ways.masks import Span, union, window

#: A cost is an integer: moves, then ways of the moved jobs, then shareable ways. A cache has fewer than 2**10 ways.
WAY_MOVED = 1 << 10
MOVE = 1 << 20

#: A step takes 5 to 10 microseconds. Of thousands of random layouts with 3 to 17 jobs, none on 20 ways took more than
#: 100 steps, none on 32 ways more than 300; on 64 nearly full ways some took 900.
MOST_STEPS = 400


class _Width(NamedTuple):
    """Jobs of one width: what another one adds to a state, the states that lack some of them, how many there are."""

    ways: int
    unit: int
    lacking: int
    jobs: int


class _Choice(NamedTuple):
    """What may come next above a way: a job, or an empty way (with unit 0)."""

    end: int
    cost: int
    lacking: int
    unit: int


def fewest_moves(
    widths: Mapping[int, int], held: Mapping[int, int], room: Span, shareable: int, blocked: int = 0
) -> dict[int, int] | None:
    """The mask of each job inside `room`; None if there is no layout, or none was found within `MOST_STEPS`.

    `widths` are the ways of each job, in the order in which jobs of equal width are placed, lowest first. `held` are
    disjoint contiguous masks inside `room` that some of these jobs have now, each as wide as `widths` says. No mask
    contains a way of `blocked`.
    """
    found = _Search(widths, held, room, shareable, blocked).layout()
    if found is None:
        return None
    holders = {mask: job for job, mask in held.items()}
    kept = {holders[mask]: mask for mask in found if mask in holders}
    free = [mask for mask in found if mask not in holders]
    placed = dict(kept)
    for job, ways in widths.items():
        if job not in kept:
            placed[job] = next(mask for mask in free if mask.bit_count() == ways)
            free.remove(placed[job])
    return placed


class _Search:
    """The states by cost and way. Ways count from the start of the room."""

    def __init__(
        self, widths: Mapping[int, int], held: Mapping[int, int], room: Span, shareable: int, blocked: int
    ) -> None:
        self._room = room
        self._widths = _counted(tuple(widths.values()))
        self._last_state = self._widths[-1].unit * (self._widths[-1].jobs + 1) - 1
        self._choices = _choices(
            self._widths,
            {mask >> room.start: mask.bit_count() for mask in held.values()},
            room.ways,
            shareable >> room.start,
            blocked >> room.start,
        )
        self._reached: dict[int, list[int]] = {}

    def layout(self) -> list[int] | None:
        """The masks of the best layout, lowest first."""
        cost = self._least_cost()
        return None if cost is None else self._traced_back(cost)

    def _least_cost(self) -> int | None:
        """Go through the costs, smallest first, until all jobs have a place; None if that never happens."""
        ways = self._room.ways
        possible = _possible(self._widths, ways)
        seen = [0] * (ways + 1)
        pending = {0: [1] + [0] * ways}
        costs = [0]
        steps = 0
        while costs:
            cost = heappop(costs)
            reached = self._reached[cost] = pending.pop(cost)
            pending[cost] = reached
            for at, choices in enumerate(self._choices):
                new = reached[at] = reached[at] & possible[at] & ~seen[at]
                if not new:
                    continue
                seen[at] |= new
                steps += 1
                for end, more, lacking, unit in choices:
                    states = new & lacking
                    if states:
                        total = cost + more
                        if total not in pending:
                            pending[total] = [0] * (ways + 1)
                            heappush(costs, total)
                        pending[total][end] |= states << unit
            del pending[cost]
            if reached[ways] >> self._last_state & 1:
                return cost
            if steps > MOST_STEPS:
                return None
        return None

    def _traced_back(self, cost: int) -> list[int]:
        masks = []
        at, state = self._room.ways, self._last_state
        while at:
            below, choice = self._step_before(at, state, cost)
            if choice.unit:
                masks.append(window(self._room.start + below, at - below))
            at, state, cost = below, state - choice.unit, cost - choice.cost
        return masks[::-1]

    def _step_before(self, at: int, state: int, cost: int) -> tuple[int, _Choice]:
        """A way below and the choice there that led to this way, state and cost."""
        for below in range(at - 1, -1, -1):
            for choice in self._choices[below]:
                if choice.end == at and choice.unit <= state and cost - choice.cost in self._reached:
                    states = self._reached[cost - choice.cost][below] & choice.lacking
                    if states >> (state - choice.unit) & 1:
                        return below, choice
        raise AssertionError  # every state above the lowest way was reached from another one


def _counted(widths: Sequence[int]) -> tuple[_Width, ...]:
    """The different widths, widest first. A state is a number whose digits count the jobs of each width."""
    counted, unit = [], 1
    for ways in sorted(set(widths), reverse=True):
        jobs = widths.count(ways)
        counted.append((ways, unit, jobs))
        unit *= jobs + 1
    # The states that lack a job of the width: in each period of its digit all but the last `one` states.
    return tuple(
        _Width(ways, one, window(0, jobs * one) * (window(0, unit) // window(0, (jobs + 1) * one)), jobs)
        for ways, one, jobs in counted
    )


def _choices(
    widths: Sequence[_Width], held: Mapping[int, int], ways: int, shareable: int, blocked: int
) -> list[tuple[_Choice, ...]]:
    """What may come next above each way. A job moves when its mask is passed and not kept."""
    starts = {(mask & -mask).bit_length() - 1: mask.bit_count() for mask in held}
    passed = list(accumulate((MOVE + WAY_MOVED * starts[at] if at in starts else 0 for at in range(ways)), initial=0))
    every = window(0, widths[-1].unit * (widths[-1].jobs + 1))
    choices = []
    for at in range(ways):
        here = [_Choice(at + 1, passed[at + 1] - passed[at], every, 0)]
        for width, unit, lacking, _ in widths:
            end, mask = at + width, window(at, width)
            if end <= ways and not mask & blocked:
                kept = passed[at + 1] - passed[at] if starts.get(at) == width else 0
                cost = passed[end] - passed[at] - kept + (mask & shareable).bit_count()
                here.append(_Choice(end, cost, lacking, unit))
        choices.append(tuple(here))
    return choices


def _possible(widths: Iterable[_Width], ways: int) -> list[int]:
    """For each way the states whose jobs leave no more empty ways below it than there are in all."""
    by_sum = [1] + [0] * ways
    for width in widths:
        for _ in range(width.jobs):
            for at in range(ways - width.ways, -1, -1):
                if by_sum[at]:
                    by_sum[at + width.ways] |= (by_sum[at] & width.lacking) << width.unit
    spare = ways - sum(width.ways * width.jobs for width in widths)
    return [union(by_sum[max(0, at - spare) : at + 1]) for at in range(ways + 1)]
