"""Where the guaranteed masks of a node's jobs go: with the fewest moves of the jobs that hold masks.

1. While the new jobs fit beside the masks that are held, nobody moves. The widest new job goes first, into the widest
   gap without shareable ways.
2. Otherwise `way_search` finds a layout with the fewest moves, which may be none.
3. On a sparse machine no job moves as long as a mask with holes avoids it.
4. Where the search takes too long (seen on 64 ways only), the smallest row of neighbouring jobs that makes enough room
   is laid out anew. That may move more jobs than necessary.
"""

from collections.abc import Mapping
from typing import NamedTuple

from slurm_sns.node.ways.masks import Span, is_usable, spans, union, window
from slurm_sns.node.ways.search import fewest_moves


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
