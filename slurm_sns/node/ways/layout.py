"""Which cache ways each job of a node owns and may use: layouts from those before and the jobs there now. Pure.

In one cache domain:

- The guaranteed masks of the jobs are disjoint. They are contiguous; a mask has holes only on a sparse machine, where
  that avoids a move.
- The shared part, for jobs without ways of their own and the system, is at the end of the cache with more shareable
  ways (on ties the upper end, where devices write on Intel's machines). So it stays where it is, and the room for jobs
  is one span. No job owns a way of it.
- A job that holds a guaranteed mask keeps it if possible: of all layouts one with the fewest moves is taken, of these
  one with the fewest ways of moved jobs (positions.py). A job moves when its guaranteed mask changes. Jobs do not
  move for the sake of spare ways. Nor do they move to leave shareable ways; but a job that gets a mask gets one with as
  few of them as the moves allow.
- Ways that no job owns are spare. Each job may use its part of them beside its own: its granted mask. Granted masks are
  disjoint, too. Spare ways are divided in equal shares as far as the places of the guaranteed masks allow
  (spare_ways.py), anew with each layout: an arriving job takes them back.
- A job for which there are no ways or no CLOSID left runs in the shared part, and the layout says why. Jobs that hold
  masks come first, then the oldest. A job that is too large does not stop a smaller one behind it.

Without any job that owns ways the shared part is the whole cache.

With `shared_ways` 0 the jobs may own the whole cache. Then the shared part is the longest run of ways that no job owns,
on a sparse machine all such ways. Jobs may use these ways, too: they are the only case in which a granted mask and the
shared part overlap. If fewer than `least_bits` such ways are left in a row, the kernel still requires a mask of
`least_bits`: it takes as few owned ways as possible, then shareable ones, then ways of the jobs that own the most.

A node has a layout for each cache domain (`domain_layouts`). A job owns the same number of ways in every domain that
its cores touch, or none at all: where one domain has no ways left for it, its guarantee is lost, and the ways of the
others serve the other jobs. A CLOSID counts for the whole node, not for a domain: jobs that hold masks keep theirs,
then the oldest job gets the next one. A job that finds no ways takes no CLOSID.

The result depends on the arguments alone, and not on the order of `needs` or `before`.

Complexity: O(ways * jobs**2) where the new jobs fit beside the others. Else a search (positions.py) that is bounded by
a number of steps. Measured with 16 jobs, all slots in use: 20 ways 0.3 ms, at most 1.1; 32 ways 0.4 ms, at most 2.3;
64 ways 3 ms, at most 9. The search ended early on 64 ways only, for a third of the layouts without a fitting gap.

Source: Spread-n-Share (SC'19), sections 4.4 and 5: contiguous CAT masks. Moves and shareable ways are ours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from slurm_sns.errors import BadInput
from slurm_sns.node.ways.masks import Span, is_usable, spans, union, window
from slurm_sns.node.ways.positions import Room, positions
from slurm_sns.node.ways.spare_ways import with_spare_ways


class Shape(NamedTuple):
    """A cache as the kernel describes it.

    `mask`: all ways, one run from some way on. `least_bits`: the fewest ways of a mask. `shareable`: ways that devices
    use, too. `is_sparse`: masks may have holes. `groups`: how many jobs can have a CLOSID of their own beside the root
    group and the shared group.
    """

    mask: int
    least_bits: int
    shareable: int
    is_sparse: bool
    groups: int


class Need(NamedTuple):
    """A running job, the ways that it owns on this node, and a number that is smaller for jobs that came earlier.

    `domains` are the cache domains that its cores touch.
    """

    job_id: int
    ways: int
    since: int
    domains: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """The masks of a node's jobs, by job id.

    `guaranteed`: the ways that a job owns. `granted`: these and its part of the spare ways. `shared`: the ways of jobs
    without ways of their own and of the system. `without`: the jobs that were to own ways and run in the shared part,
    oldest first, with the reason. `moved`: the jobs whose guaranteed mask differs from the one that they
    had, by id; a job that had or gets none is not among them.
    """

    guaranteed: Mapping[int, int]
    granted: Mapping[int, int]
    shared: int
    without: Mapping[int, str]
    moved: tuple[int, ...]


def layout(before: Mapping[int, int], needs: Sequence[Need], shared_ways: int, shape: Shape) -> Layout:
    """The layout for the jobs of `needs`, which are all jobs on the node that are to own ways.

    `before` are the guaranteed masks in force; those of jobs that have ended are ignored, and so is a mask that is not
    valid any more (other settings, or overlapping an older job's). `shared_ways` is the size of the shared part. A
    number of ways below `least_bits` is raised to it.

    Raises:
        BadInput: the cache has no ways, its mask has holes, or it is smaller than `least_bits`.
    """
    _require_valid(shape)
    room = _room(shared_ways, shape)
    by_age = sorted(needs, key=lambda need: (need.since, need.job_id))
    held = _held(before, by_age, room)
    widths = _served(sorted(by_age, key=lambda need: need.job_id not in held), room, shape.groups)
    held = {job: mask for job, mask in held.items() if job in widths}
    oldest_first = [need.job_id for need in by_age if need.job_id in widths]
    masks = positions({job: widths[job] for job in oldest_first}, held, room)
    fixed = {job for job, mask in masks.items() if held.get(job) == mask or len(spans(mask)) > 1}
    guaranteed, granted = with_spare_ways(oldest_first, masks, fixed, room.span.mask, shape.shareable)
    return Layout(
        guaranteed=guaranteed,
        granted=granted,
        shared=_shared(guaranteed, room, shape),
        without={
            need.job_id: _why_without(need, widths, room, shape.groups) for need in by_age if need.job_id not in widths
        },
        moved=tuple(sorted(job for job, mask in guaranteed.items() if before.get(job, mask) != mask)),
    )


def ways_for_jobs(shared_ways: int, shape: Shape) -> int:
    """How many ways of such a cache the jobs may own together, beside a shared part of this size."""
    return _room(shared_ways, shape).span.ways


def _require_valid(shape: Shape) -> None:
    if len(spans(shape.mask)) != 1 or shape.mask.bit_count() < shape.least_bits:
        raise BadInput(
            f"cache mask is {shape.mask:x}, with masks of at least {shape.least_bits} bits; "
            "valid: one run of at least as many ones"
        )


def _room(shared_ways: int, shape: Shape) -> Room:
    """The ways that jobs may own: all but the shared part, which is at one end of the cache."""
    cache = spans(shape.mask)[0]
    shared = min(max(shared_ways, shape.least_bits), cache.ways) if shared_ways > 0 else 0
    left = cache.ways - shared
    lower, upper = Span(cache.start, shared), Span(cache.end - shared, shared)
    is_lower = (lower.mask & shape.shareable).bit_count() > (upper.mask & shape.shareable).bit_count()
    span = Span(lower.end if is_lower else cache.start, left)
    return Room(span, shape.shareable, max(shape.least_bits, 1), shape.is_sparse)


def _ways(need: Need, room: Room) -> int:
    return max(need.ways, room.least_bits)


def _held(before: Mapping[int, int], by_age: Sequence[Need], room: Room) -> dict[int, int]:
    """The masks that jobs could keep, oldest first: valid here, as wide as needed, and disjoint."""
    held: dict[int, int] = {}
    free = room.span.mask
    for need in by_age:
        mask = before.get(need.job_id, 0)
        if (
            need.ways > 0
            and mask & ~free == 0
            and mask.bit_count() == _ways(need, room)
            and is_usable(mask, room.least_bits, is_sparse=room.is_sparse)
        ):
            held[need.job_id] = mask
            free &= ~mask
    return held


def _served(needs: Sequence[Need], room: Room, groups: int) -> dict[int, int]:
    """The ways of each job that gets any, by this order of precedence."""
    widths: dict[int, int] = {}
    left = room.span.ways
    for need in needs:
        if need.ways > 0 and _ways(need, room) <= left and len(widths) < groups:
            widths[need.job_id] = _ways(need, room)
            left -= widths[need.job_id]
    return widths


def _why_without(need: Need, widths: Mapping[int, int], room: Room, groups: int) -> str:
    """Why a job that is not among `widths` gets no ways."""
    if need.ways <= 0:
        return "it asks for no cache ways"
    left = room.span.ways - sum(widths.values())
    if _ways(need, room) <= left:
        return f"all {groups} CLOSIDs for jobs are taken"
    verb = "is" if left == 1 else "are"
    return f"it needs {_ways(need, room)} cache ways; {left} of the {room.span.ways} for jobs {verb} free"


def _shared(guaranteed: Mapping[int, int], room: Room, shape: Shape) -> int:
    """The shared part."""
    if not guaranteed:
        return shape.mask
    if room.span.mask != shape.mask:
        return shape.mask & ~room.span.mask
    unowned = spans(shape.mask & ~union(guaranteed.values()))
    longest = max(unowned, key=lambda span: span.ways, default=Span(0, 0))
    if longest.ways < room.least_bits:
        return _fewest_owned(guaranteed, room, shape)
    if shape.is_sparse:
        usable = [span.mask for span in unowned if span.ways >= room.least_bits or span.start > longest.start]
        return union(usable)
    return longest.mask


def _fewest_owned(guaranteed: Mapping[int, int], room: Room, shape: Shape) -> int:
    """The run of `least_bits` ways with the fewest owned ones, then shareable ones, then of jobs with many ways."""

    def loss(mask: int) -> tuple[int, int, int]:
        owners = [each.bit_count() for each in guaranteed.values() if each & mask]
        owned = (mask & union(guaranteed.values())).bit_count()
        return owned, -(mask & shape.shareable).bit_count(), -min(owners, default=0)

    starts = range(room.span.start, room.span.end - room.least_bits + 1)
    return min((window(start, room.least_bits) for start in starts), key=loss)


@dataclass(frozen=True, slots=True)
class DomainLayouts:
    """A layout for each domain, and the jobs that run in the shared part although they need ways, with the reason."""

    layouts: Mapping[int, Layout]
    without: Mapping[int, str]

    def guaranteed(self) -> dict[int, Mapping[int, int]]:
        """The guaranteed masks by domain and job: `before` of the next layouts."""
        return {domain: each.guaranteed for domain, each in self.layouts.items()}


def domain_layouts(
    before: Mapping[int, Mapping[int, int]], needs: Sequence[Need], shared_ways: int, shapes: Mapping[int, Shape]
) -> DomainLayouts:
    """Lay out the domains of `shapes`; `before` are the guaranteed masks in force, by domain and job.

    A job that needs no ways is in no layout and has no reason. A domain without a shape is not partitioned.
    """
    wanting = _by_rank(before, [each for each in needs if each.ways > 0])
    waiting = [each for each in wanting if not shapes.keys().isdisjoint(each.domains)]
    without = {each.job_id: "the cache cannot be partitioned" for each in wanting if each not in waiting}
    most = min((shape.groups for shape in shapes.values()), default=0)
    while True:
        served = waiting[:most]
        layouts = {
            domain: layout(
                before.get(domain, {}), [each for each in served if domain in each.domains], shared_ways, shape
            )
            for domain, shape in shapes.items()
        }
        refused = {job_id: why for each in layouts.values() for job_id, why in each.without.items()}
        # One at a time: without it, those behind it may find ways.
        first = next((each for each in served if each.job_id in refused), None)
        if first is None:
            without |= {each.job_id: f"all {most} CLOSIDs for jobs are taken" for each in waiting[most:]}
            return DomainLayouts(layouts, without)
        without[first.job_id] = refused[first.job_id]
        waiting.remove(first)


def _by_rank(before: Mapping[int, Mapping[int, int]], needs: Sequence[Need]) -> list[Need]:
    """The jobs that hold masks, then the others; each from the oldest on."""
    holding = {job_id for masks in before.values() for job_id in masks}
    return sorted(needs, key=lambda each: (each.job_id not in holding, each.since, each.job_id))
