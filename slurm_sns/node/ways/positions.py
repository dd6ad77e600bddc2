"""Where the guaranteed masks of a node's jobs go: with the fewest moves of the jobs that hold masks.

1. While the new jobs fit beside the masks that are held, nobody moves. The widest new job goes first, into the widest
   gap without shareable ways.
2. Otherwise an exact search (`fewest_moves`) finds a layout with the fewest moves, which may be none.
3. On a sparse machine no job moves as long as a mask with holes avoids it.
4. Where the search takes too long (seen on 64 ways only), the smallest row of neighbouring jobs that makes enough room
   is laid out anew. That may move more jobs than necessary.

In the search, a job moves when it does not get the mask that it holds. Of all layouts the search finds those with the
fewest moves, of these the ones whose moved jobs have the fewest ways together, and of these one whose masks contain
the fewest shareable ways.

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

from slurm_sns.node.ways.masks import Span, is_usable, spans, union, window

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


class Room(NamedTuple):
    """The ways that jobs may own, as one span, and the rules for masks in it."""

    span: Span
    shareable: int
    least_bits: int
    is_sparse: bool


def positions(widths: Mapping[int, int], held: Mapping[int, int], room: Room) -> dict[int, int]:
    """The mask of each job, as wide as `widths` says.

    `widths`, in order of arrival, are at most as many ways as the room has. `held` are disjoint masks in the room that
    some of these jobs hold now, each as wide as `widths` says.
    """
    new = {job: ways for job, ways in widths.items() if job not in held}
    free = room.span.mask & ~union(held.values())
    beside = _into_widest_gaps(new, free & ~room.shareable)
    if beside is None and room.is_sparse:
        others = room.span.mask & ~free
        beside = fewest_moves(new, {}, room.span, room.shareable, others) or _with_holes(new, free, room)
    if beside is not None:
        return {**held, **beside}
    contiguous = {job: mask for job, mask in held.items() if len(spans(mask)) == 1}
    found = fewest_moves(widths, contiguous, room.span, room.shareable)
    return found or _row_laid_out_anew(widths, contiguous, room.span)


def _into_widest_gaps(new: Mapping[int, int], free: int) -> dict[int, int] | None:
    """The widest new job into the widest gap, and so on; None if one of them does not fit."""
    gaps = spans(free)
    placed = {}
    for job in sorted(new, key=new.__getitem__, reverse=True):
        gap = max(gaps, key=lambda each: each.ways, default=Span(0, 0))
        if gap.ways < new[job]:
            return None
        placed[job] = window(gap.start, new[job])
        gaps[gaps.index(gap)] = Span(gap.start + new[job], gap.ways - new[job])
    return placed


def _with_holes(new: Mapping[int, int], free: int, room: Room) -> dict[int, int] | None:
    """Masks of any free ways, with holes where no gap is wide enough; None if the kernel would not take one of them."""
    placed = {}
    for job in sorted(new, key=new.__getitem__, reverse=True):
        gaps = sorted(spans(free), key=lambda gap: ((gap.mask & room.shareable) != 0, -gap.ways))
        fitting = next((window(gap.start, new[job]) for gap in gaps if gap.ways >= new[job]), None)
        mask = _gathered(new[job], gaps) if fitting is None else fitting
        if not is_usable(mask, room.least_bits, is_sparse=True):
            return None
        placed[job] = mask
        free &= ~mask
    return placed


def _gathered(ways: int, gaps: list[Span]) -> int:
    """The first ways of these gaps."""
    mask = 0
    for gap in gaps:
        mask |= window(gap.start, min(gap.ways, ways - mask.bit_count()))
    return mask


def _row_laid_out_anew(widths: Mapping[int, int], held: Mapping[int, int], room: Span) -> dict[int, int]:
    """All other jobs go into one row between two jobs that keep their masks, from its lowest way on."""
    row = sorted(held, key=held.__getitem__)
    for moving in range(len(row) + 1):
        for first in range(len(row) - moving + 1):
            keeping = {job: held[job] for job in (*row[:first], *row[first + moving :])}
            at = spans(keeping[row[first - 1]])[0].end if first else room.start
            end = spans(keeping[row[first + moving]])[0].start if first + moving < len(row) else room.end
            others = [job for job in widths if job not in keeping]
            if sum(widths[job] for job in others) <= end - at:
                for job in others:
                    keeping[job] = window(at, widths[job])
                    at += widths[job]
                return keeping
    raise AssertionError  # with all jobs moving, the row is the room
