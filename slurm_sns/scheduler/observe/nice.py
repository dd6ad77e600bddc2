"""The nice value of a placed job: it makes the job the first of its partition until it has started.

Slurm's main pass starts nothing in a partition behind a job that cannot start. Backfill does, but runs less often than
once in `place_timeout_s`, the time that a placed job has to start. So a placed job must come before all others,
whatever the priority weights of the site are. Slurm subtracts nice from a job's priority, which has 32 bits.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from slurm_sns.scheduler.observe.observed import SLURMS_HOLD, ObservedJob
from slurm_sns.scheduler.observe.records import JobRecord
from slurm_sns.submit.mark import MOST_NICE


class Boost(NamedTuple):
    """How a boost is computed: `added` plus the owner's nice value (0 if that is above 0), but at least `least`."""

    added: int
    least: int


#: priority/multifactor: a placed job comes before every other job whose priority is below 2,000,000,000. The placed
#: job's own weighted factors may reach 2,294,967,295 before the sum exceeds 32 bits: then Slurm sets the priority to
#: 2^32 - 1 and logs that.
MULTIFACTOR = Boost(-2_000_000_000, -MOST_NICE)
#: priority/basic gives each job one less than the job before, from 4,294,901,759 on, and subtracts nice without a
#: check: with a nice value below -65,534 the priority wraps around. A placed job comes before the waiting jobs among
#: the 60,000 that were submitted before it.
BASIC = Boost(-60_000, -65_000)
#: The largest boost first.
BOOSTS = (MULTIFACTOR, BASIC)


class OwnNice(NamedTuple):
    """A job that has started, when, and the nice value that it has without our boost.

    With `checks_hold` the job is read once more before it is changed (stays_while_held).
    """

    job_id: int
    nice: int
    start_s: int = 0
    checks_hold: bool = False


def boosted(own_nice: int, priority_type: str) -> int:
    """The nice value of a placed job, always below 0.

    No user can give a job a nice value below 0, so this one marks our placement even if our records are lost.
    An unknown PriorityType gets the small boost, with which a priority of 32 bits never wraps around.
    """
    return _with(MULTIFACTOR if priority_type == "priority/multifactor" else BASIC, own_nice)


def is_boosted(nice: int, own_nice: int) -> bool:
    """Whether a job whose own nice value is known has one of our boosts, whatever PriorityType it was made for."""
    return nice < 0 and nice in [_with(boost, own_nice) for boost in BOOSTS]


def may_be_boosted(nice: int) -> bool:
    """Whether a job whose own nice value is not known may have one of our boosts.

    An administrator may have given it a value below 0, too, but hardly one as large.
    """
    return nice <= max(boost.added for boost in BOOSTS)


def without_boost(nice: int) -> int:
    """The owner's nice value, as far as the boosted value shows it: a value above 0 reads as 0."""
    added = next((boost.added for boost in BOOSTS if nice <= boost.added), min(nice, 0))
    return nice - added


def has_basic_boost(job: ObservedJob) -> bool:
    """Whether the job has the boost of priority/basic: its size says so, also when our records are lost."""
    return BASIC.least <= job.nice <= BASIC.added


def stays_while_held(job: ObservedJob) -> bool:
    """Whether the job's boost stays until whoever holds it has released it.

    Under priority/basic Slurm gives a job whose nice value changes the priority 2 if it had 0: a job that its owner
    holds would start (seen on 26.05.5). Slurm's own hold of a placement that is impossible ends when the placement is
    taken back: of such a job the boost is taken off, too.
    """
    return job.priority == 0 and job.reason != SLURMS_HOLD and has_basic_boost(job)


def started_with_boost(jobs: Iterable[ObservedJob], records: Mapping[int, JobRecord]) -> tuple[OwnNice, ...]:
    """The jobs that have started, still have our boost, and can lose it now. A completing job cannot be changed."""
    started = (each for each in jobs if each.nice < 0 and each.state.occupies_nodes and not each.is_completing)
    started = (each for each in started if not stays_while_held(each))
    known = ((job, records[job.id]) for job in started if job.id in records)
    return tuple(
        OwnNice(job.id, record.nice, job.start_s, has_basic_boost(job))
        for job, record in known
        if is_boosted(job.nice, record.nice)
    )


def _with(boost: Boost, own_nice: int) -> int:
    return max(min(own_nice, 0) + boost.added, boost.least)
