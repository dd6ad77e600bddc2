"""One layout for each cache domain of a node, from the jobs whose cores touch it. Pure.

A job owns the same number of ways in every domain that its cores touch, or none at all: where one domain has no ways
left for it, its guarantee is lost, and the ways of the others serve the other jobs. A CLOSID counts for the whole node,
not for a domain: jobs that hold masks keep theirs, then the oldest job gets the next one. A job that finds no ways
takes no CLOSID.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from slurm_sns.node.ways.layout import Layout, Need, Shape, layout


class DomainNeed(NamedTuple):
    """The ways that a job owns, and the cache domains that its cores touch."""

    need: Need
    domains: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DomainLayouts:
    """A layout for each domain, and the jobs that run in the shared part although they need ways, with the reason."""

    layouts: Mapping[int, Layout]
    without: Mapping[int, str]

    def guaranteed(self) -> dict[int, Mapping[int, int]]:
        """The guaranteed masks by domain and job: `before` of the next layouts."""
        return {domain: each.guaranteed for domain, each in self.layouts.items()}


def domain_layouts(
    before: Mapping[int, Mapping[int, int]],
    needs: Sequence[DomainNeed],
    shared_ways: int,
    shapes: Mapping[int, Shape],
) -> DomainLayouts:
    """Lay out the domains of `shapes`; `before` are the guaranteed masks in force, by domain and job.

    A job that needs no ways is in no layout and has no reason. A domain without a shape is not partitioned.
    """
    wanting = _by_rank(before, [each for each in needs if each.need.ways > 0])
    waiting = [each for each in wanting if not shapes.keys().isdisjoint(each.domains)]
    without = {each.need.job_id: "the cache cannot be partitioned" for each in wanting if each not in waiting}
    most = min((shape.groups for shape in shapes.values()), default=0)
    while True:
        served = waiting[:most]
        layouts = {
            domain: layout(
                before.get(domain, {}), [each.need for each in served if domain in each.domains], shared_ways, shape
            )
            for domain, shape in shapes.items()
        }
        refused = {job_id: why for each in layouts.values() for job_id, why in each.reasons.items()}
        # One at a time: without it, those behind it may find ways.
        first = next((each for each in served if each.need.job_id in refused), None)
        if first is None:
            without |= {each.need.job_id: f"all {most} CLOSIDs for jobs are taken" for each in waiting[most:]}
            return DomainLayouts(layouts, without)
        without[first.need.job_id] = refused[first.need.job_id]
        waiting.remove(first)


def _by_rank(before: Mapping[int, Mapping[int, int]], needs: Sequence[DomainNeed]) -> list[DomainNeed]:
    """The jobs that hold masks, then the others; each from the oldest on."""
    holding = {job_id for masks in before.values() for job_id in masks}
    return sorted(needs, key=lambda each: (each.need.job_id not in holding, each.need.since, each.need.job_id))
