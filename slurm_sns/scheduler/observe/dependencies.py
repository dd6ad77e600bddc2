"""Whether a held job's dependencies are fulfilled, as far as this look at Slurm shows it.

Slurm looks at the dependencies of a held job every 30 s only (seen, 26.05), at those of any other job at once. A chain
of short jobs must not wait for that. So a job whose dependencies we see fulfilled is planned, and placed: that releases
it, and Slurm looks again before it starts it. Slurm stays the judge; what it does not find fulfilled it does not start,
and the placement is taken back. A job that waits for what can never come is given to Slurm, which says so.
"""

from collections.abc import Sequence
from enum import StrEnum
from functools import cached_property

from slurm_sns.scheduler.observe.observed import Dependency, JobState, ObservedJob


class Outlook(StrEnum):
    """What becomes of a job that waits for others."""

    OPEN = "waits for its dependency"
    FULFILLED = ""
    HOPELESS = "its dependency can never be fulfilled"


class Others:
    """The jobs of one look, by id and by array; sorted out when the first job asks."""

    def __init__(self, jobs: Sequence[ObservedJob]) -> None:
        self._jobs = jobs

    @cached_property
    def _by_id(self) -> dict[int, ObservedJob]:
        return {job.id: job for job in self._jobs}

    @cached_property
    def _by_array(self) -> dict[int, list[ObservedJob]]:
        arrays: dict[int, list[ObservedJob]] = {}
        for job in self._jobs:
            if job.array_id is not None:
                arrays.setdefault(job.array_id, []).append(job)
        return arrays

    def outlook(self, job: ObservedJob) -> Outlook:
        """Whether the job's dependencies are fulfilled, may be, or never will be."""
        if not job.waits_for_others:
            return Outlook.FULFILLED
        if not job.waits_for:  # singleton, or a form that we do not read
            return Outlook.OPEN
        every = all if not job.any_suffices else any
        if every(self._is_fulfilled(each) for each in job.waits_for):
            return Outlook.FULFILLED
        hopeless = any if not job.any_suffices else all
        is_hopeless = hopeless(each.state == "failed" for each in job.waits_for)
        return Outlook.HOPELESS if is_hopeless else Outlook.OPEN

    def _is_fulfilled(self, dependency: Dependency) -> bool:
        if dependency.state == "fulfilled":
            return True
        if dependency.kind not in ("afterok", "afterany"):
            return False
        others = self._named(dependency)
        has_ended = bool(others) and all(other.state is JobState.ENDED for other in others)
        return has_ended and (dependency.kind == "afterany" or all(other.has_succeeded for other in others))

    def _named(self, dependency: Dependency) -> list[ObservedJob]:
        """The jobs that are meant; none where Slurm has forgotten them, or one of them."""
        array = self._by_array.get(dependency.job_id)
        if array is None:
            job = self._by_id.get(dependency.job_id)
            return [] if job is None else [job]
        return array if dependency.task is None else [job for job in array if job.array_task == dependency.task]
