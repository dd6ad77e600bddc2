"""The figures of the looks together: what the JSON of the report holds and its page shows."""

from collections.abc import Callable, Iterable, Sequence
from math import ceil
from pathlib import Path
from statistics import fmean, median
from typing import TypeVar

from slurm_sns.cli.json_types import FollowedJobsValues, HistogramValues, LongestWaitValues, LooksReport
from slurm_sns.cli.offline.looks.followed import (
    EARLIER,
    GONE,
    SAME,
    SIZES,
    WAITS,
    FollowedJob,
    FollowedJobs,
    LetWait,
)
from slurm_sns.cli.offline.looks.intervals import Sums, WatchedBlocks
from slurm_sns.cli.offline.looks.lines import LookLines
from slurm_sns.errors import BadInput

#: The ranges of the histogram, each up to so many seconds.
RANGES = (
    (60.0, "up to 1 min"),
    (300.0, "1 to 5 min"),
    (900.0, "5 to 15 min"),
    (3600.0, "15 to 60 min"),
    (14_400.0, "1 to 4 h"),
    (86_400.0, "4 to 24 h"),
    (float("inf"), "more than 24 h"),
)
_Item = TypeVar("_Item")

#: So many jobs are named that waited longest.
MOST_NAMED = 10
ALL, NO_HEURISTIC, NOT_SAID = "all", "none", "not recorded"


def read(path: Path) -> tuple[FollowedJobs, LooksReport]:
    """Read the file, and put its looks together.

    Raises:
        BadInput: it cannot be read, or has no look.
    """
    lines, followed = LookLines(path), FollowedJobs()
    for look in lines:
        followed.add(look)
    if not followed.at_s:
        unread = "; ".join(f"{count:,} times {reason}" for reason, count in sorted(lines.unread.items()))
        raise BadInput(
            f"{path}: there is no look in it{f' ({unread})' if unread else ''}; valid: what `sns observe` appends to "
            "looks.jsonl in its directory"
        )
    followed.close()
    return followed, _values(path, followed, dict(lines.unread))


def _values(path: Path, followed: FollowedJobs, unread: dict[str, int]) -> LooksReport:
    blocks = WatchedBlocks(followed.at_s)
    groups = JobGroups(followed, blocks)
    looks = len(followed.at_s)
    return {
        "file": str(path),
        "began_s": min(followed.at_s),
        "ended_s": max(followed.at_s),
        "watched_s": sum(run.ended_s - run.began_s for run in followed.runs.values()),
        "looks": looks,
        "runs": len(followed.runs),
        "interval_s": median(followed.pauses_s) if followed.pauses_s else None,
        "policies": sorted({run.policy for run in followed.runs.values()}),
        "partitions": sorted(followed.partitions),
        "pending_mean": fmean(followed.pending),
        "managed_mean": fmean(followed.managed),
        "all": groups.of(ALL, followed.jobs, followed.let_wait),
        "by_policy": groups.by(lambda job: job.policy),
        "by_partition": groups.by(lambda job: job.partition or NOT_SAID),
        "by_size": sorted(groups.by(lambda job: job.size), key=lambda group: SIZES.index(group["name"])),
        "by_heuristic": groups.by_heuristic(),
        "histogram": _histogram(followed.jobs),
        "longest": _longest(followed.jobs),
        "overtaken": sum(job.others > 0 for job in followed.jobs),
        "overtaking": sum(job.others for job in followed.jobs),
        "not_managed": {
            reason: count / followed.looks_with_reasons for reason, count in sorted(followed.not_managed.items())
        },
        "intervals_over": blocks.over,
        "blocks": blocks.count,
        "left_out": dict(sorted(followed.left_out.items())),
        "hidden": sorted(followed.hidden),
        "unread": dict(sorted(unread.items())),
    }


class JobGroups:
    """Groups the followed jobs, the largest group first."""

    def __init__(self, followed: FollowedJobs, blocks: WatchedBlocks) -> None:
        self._followed, self._blocks = followed, blocks

    def by(self, name: Callable[[FollowedJob | LetWait], str]) -> list[FollowedJobsValues]:
        """A group for each name."""
        jobs, let_wait = _sorted_out(self._followed.jobs, name), _sorted_out(self._followed.let_wait, name)
        groups = [self.of(each, jobs.get(each, []), let_wait.get(each, [])) for each in {**jobs, **let_wait}]
        return sorted(groups, key=lambda group: (-group["advised"], group["name"]))

    def by_heuristic(self) -> list[FollowedJobsValues]:
        """A group for each heuristic."""
        jobs = _sorted_out(self._followed.jobs, lambda job: job.heuristic or NO_HEURISTIC)
        groups = [self.of(name, each, []) for name, each in jobs.items()]
        return sorted(groups, key=lambda group: (-group["advised"], group["name"]))

    def of(self, name: str, jobs: Sequence[FollowedJob], let_wait: Sequence[LetWait]) -> FollowedJobsValues:
        """The figures of these jobs."""
        earlier = [job for job in jobs if job.became == EARLIER]
        started = [job for job in jobs if job.became in (EARLIER, SAME)]
        waiting = [job for job in jobs if job.became == WAITS]
        seconds = sorted(job.seconds for job in earlier)
        share = self._blocks.interval((job.at_s, Sums(float(job.became == EARLIER), 1.0)) for job in started)
        mean = self._blocks.interval((job.at_s, Sums(job.seconds, 1.0)) for job in earlier)
        return {
            "name": name,
            "advised": len(jobs),
            "started": len(started),
            "earlier": len(earlier),
            "same": len(started) - len(earlier),
            "on_same_nodes": sum(job.on_same_nodes for job in started),
            "gone": sum(job.became == GONE for job in jobs),
            "still_waiting": len(waiting),
            "earlier_share": len(earlier) / len(started) if started else None,
            "earlier_share_low": None if share is None else share[0],
            "earlier_share_high": None if share is None else share[1],
            "mean_s": fmean(seconds) if seconds else None,
            "mean_low_s": None if mean is None else mean[0],
            "mean_high_s": None if mean is None else mean[1],
            "median_s": median(seconds) if seconds else None,
            "p90_s": seconds[ceil(0.9 * len(seconds)) - 1] if seconds else None,
            "still_waiting_mean_s": fmean(job.seconds for job in waiting) if waiting else None,
            "let_wait": len(let_wait),
        }


def _sorted_out(items: Iterable[_Item], name: Callable[[_Item], str]) -> dict[str, list[_Item]]:
    found: dict[str, list[_Item]] = {}
    for item in items:
        found.setdefault(name(item), []).append(item)
    return found


def _histogram(jobs: Iterable[FollowedJob]) -> list[HistogramValues]:
    counts = dict.fromkeys((name for _, name in RANGES), 0)
    for job in jobs:
        if job.became == EARLIER:
            counts[next(name for most_s, name in RANGES if job.seconds <= most_s)] += 1
    return [{"name": name, "jobs": count} for name, count in counts.items()]


def _longest(jobs: Iterable[FollowedJob]) -> list[LongestWaitValues]:
    waited = sorted(
        (job for job in jobs if job.became in (EARLIER, WAITS) and job.seconds > 0),
        key=lambda job: (-job.seconds, job.at_s, job.label),
    )
    return [
        {
            "job": job.label,
            "partition": job.partition,
            "cpus": job.cpus,
            "nodes": job.nodes,
            "advised_s": job.at_s,
            "seconds": job.seconds,
            "still_waits": job.became == WAITS,
            "others": job.others,
        }
        for job in waited[:MOST_NAMED]
    ]
