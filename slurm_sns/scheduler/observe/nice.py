"""The nice value of a placed job: it makes the job the first of its partition until it has started.

Slurm's main pass starts nothing in a partition behind a job that cannot start; backfill, which does, comes more seldom
than `place_timeout_s` lets a placed job wait. So a placed job must stand before all others, whatever the weights of the
site are. Slurm subtracts nice from a job's priority, which has 32 bits.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from slurm_sns.scheduler.observe.observed import ObservedJob
from slurm_sns.scheduler.observe.records import JobRecord
from slurm_sns.submit.mark import MOST_NICE


class Boost(NamedTuple):
    """`added` to the owner's nice value, or to 0 where that is above 0; the sum is no less than `least`."""

    added: int
    least: int


#: priority/multifactor: a placed job is before every other whose priority is below 2,000,000,000. A placed job's own
#: weighted factors may come to 2,294,967,295 before the sum exceeds 32 bits: then Slurm makes 2^32 - 1 of it, and says
#: so in its log.
MULTIFACTOR = Boost(-2_000_000_000, -MOST_NICE)
#: priority/basic gives each job one less than the one before, from 4,294,901,759 on, and subtracts nice without a
#: check: below -65,534 the priority wraps around. A placed job is before those that wait since up to 60,000 jobs ago.
BASIC = Boost(-60_000, -65_000)
#: What a placed job was given before the boost followed Slurm's PriorityType: one may still wait, or run, with it.
EARLIER = Boost(-500, -MOST_NICE)
#: The largest first.
BOOSTS = (MULTIFACTOR, BASIC, EARLIER)


class OwnNice(NamedTuple):
    """A job that has started, and the nice value that it has without our boost."""

    job_id: int
    nice: int


def boosted(own_nice: int, priority_type: str) -> int:
    """The nice value of a placed job, always below 0.

    No user can give a job a nice value below 0, so that it marks a placement of ours even if our records are lost.
    A PriorityType that is not known gets the small boost, which no arithmetic of 32 bits turns around.
    """
    return _with(MULTIFACTOR if priority_type == "priority/multifactor" else BASIC, own_nice)


def is_boosted(nice: int, own_nice: int) -> bool:
    """Whether a job whose own nice value is known has one of our boosts, under whichever PriorityType it got it."""
    return nice < 0 and nice in [_with(boost, own_nice) for boost in BOOSTS]


def without_boost(nice: int) -> int:
    """The owner's nice value, as far as the boosted one still shows it: one above 0 counts as 0."""
    added = next((boost.added for boost in BOOSTS if nice <= boost.added), min(nice, 0))
    return nice - added


def started_with_boost(jobs: Iterable[ObservedJob], records: Mapping[int, JobRecord]) -> tuple[OwnNice, ...]:
    """The jobs that have started and still have our boost. One that completes can be changed no more."""
    started = (each for each in jobs if each.nice < 0 and each.state.occupies_nodes and not each.is_completing)
    known = ((job, records[job.id]) for job in started if job.id in records)
    return tuple(OwnNice(job.id, record.nice) for job, record in known if is_boosted(job.nice, record.nice))


def _with(boost: Boost, own_nice: int) -> int:
    return max(min(own_nice, 0) + boost.added, boost.least)
