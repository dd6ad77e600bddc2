"""Spare ways: those of the room that no job owns, given to the jobs in equal shares.

A contiguous mask can only be widened into ways next to it, so a gap between two masks is divided between these two
jobs. The lower job gets the lower ways.

Rule: in rounds, oldest first, each job gets one more way, as long as it can get one from the gaps next to it; a
neighbour that has taken ways of such a gap gives them back if it can take ways on its other side instead. Without
limits by gaps these are equal shares, and the oldest jobs get one way each of the remainder. With these limits no other
division gives the job with the fewest spare ways more (max-min fairness; the sets of jobs that can get one more way
form a polymatroid, for which such rounds are exact). Every spare way is given to some job.

A job that has just got its place may still move inside its gap, between the neighbours that keep their masks: it goes
where the spare ways between it and its neighbours are as the shares say. Gaps with shareable ways are left as they are,
so that the guaranteed masks stay off these ways.

Complexity: O(ways * jobs**2): each way, and each job that can get no more, costs one walk over the gaps.

Limits: a job between two neighbours without a gap gets nothing, although others do: nobody moves for the sake of spare
ways. A sparse machine's masks are widened in the same way.

Source: Spread-n-Share (SC'19), section 4.4: unowned ways go to the jobs of the node in equal shares. The rest is ours.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from slurm_sns.node.ways.masks import Span, spans, union, window


class _Gap(NamedTuple):
    """Ways between fixed masks, the jobs that go into it, lowest first, and the jobs on both sides."""

    span: Span
    inside: tuple[int, ...]
    below: int | None
    above: int | None

    @property
    def members(self) -> tuple[int, ...]:
        """The jobs that can have its spare ways."""
        sides = {each for each in (self.below, self.above) if each is not None}
        return (*sorted(sides), *self.inside)


def with_spare_ways(
    by_age: Sequence[int], masks: Mapping[int, int], fixed: Iterable[int], room: int, shareable: int
) -> tuple[dict[int, int], dict[int, int]]:
    """The guaranteed masks, with the jobs that are not `fixed` at their final places, and the granted masks.

    `by_age` are the jobs, oldest first; `masks` what each owns; `room` all ways that jobs may have. A job that is not
    fixed has a contiguous mask.
    """
    gaps = _gaps(masks, set(fixed), room, shareable)
    spare = [gap.span.ways - sum(masks[job].bit_count() for job in gap.inside) for gap in gaps]
    shares = _Shares(gaps, spare).given(by_age)
    guaranteed = {job: masks[job] for job in by_age}
    granted = dict(guaranteed)
    for gap, given in zip(gaps, shares, strict=True):
        for job, own, mask in _laid_out(gap, given, masks):
            if job in gap.inside:
                guaranteed[job] = granted[job] = own
            granted[job] |= mask
    return guaranteed, granted


def _gaps(masks: Mapping[int, int], fixed: set[int], room: int, shareable: int) -> list[_Gap]:
    """The gaps between the masks that stay where they are."""
    loose = sorted(masks.keys() - fixed, key=masks.__getitem__)
    for span in spans(room & ~union(masks[job] for job in fixed)):
        if span.mask & shareable:
            fixed |= {job for job in loose if masks[job] & span.mask}
    staying = {job: masks[job] for job in masks if job in fixed}
    gaps = []
    for span in spans(room & ~union(staying.values())):
        inside = tuple(job for job in loose if job not in fixed and masks[job] & span.mask)
        below = _owner(span.start - 1, staying) if span.start else None
        gaps.append(_Gap(span, inside, below, _owner(span.end, staying)))
    return gaps


def _owner(way: int, masks: Mapping[int, int]) -> int | None:
    return next((job for job, mask in masks.items() if mask >> way & 1), None)


class _Shares:
    """How many spare ways of each gap each job gets."""

    def __init__(self, gaps: Sequence[_Gap], spare: Sequence[int]) -> None:
        self._left = list(spare)
        self._given: list[dict[int, int]] = [dict.fromkeys(gap.members, 0) for gap in gaps]

    def given(self, by_age: Sequence[int]) -> list[dict[int, int]]:
        """The spare ways by gap and job."""
        open_jobs = list(by_age)
        while open_jobs:
            open_jobs = [job for job in open_jobs if self._takes_one(job, {job})]
        return self._given

    def _takes_one(self, job: int, asked: set[int]) -> bool:
        """Give the job one more way, from a gap with ways left or from a neighbour that can replace it; False if none.

        `asked` are the jobs that cannot replace a way, or are being asked.
        """
        mine = [at for at, given in enumerate(self._given) if job in given]
        for at in mine:
            if self._left[at]:
                self._left[at] -= 1
                self._given[at][job] += 1
                return True
        for at in mine:
            for other, ways in self._given[at].items():
                if ways and other not in asked:
                    asked.add(other)
                    if self._takes_one(other, asked):
                        self._given[at][other] -= 1
                        self._given[at][job] += 1
                        return True
        return False


def _laid_out(gap: _Gap, given: Mapping[int, int], masks: Mapping[int, int]) -> Iterable[tuple[int, int, int]]:
    """Each job at the gap, with the ways that it owns in the gap, and these with its spare ways.

    Of two jobs side by side, the spare ways lie between them where possible: fewer and longer runs of spare ways mean
    fewer moves when the next job arrives.
    """
    at = gap.span.start
    if gap.below is not None:
        yield gap.below, 0, window(at, given[gap.below])
        at += given[gap.below]
    for place, job in enumerate(gap.inside):
        ways = masks[job].bit_count()
        spare_first = (place % 2 == 0) == (gap.below is not None)
        yield job, window(at + given[job] if spare_first else at, ways), window(at, ways + given[job])
        at += ways + given[job]
    if gap.above is not None and gap.above != gap.below:
        yield gap.above, 0, window(at, given[gap.above])
