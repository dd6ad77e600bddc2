"""Whether a held job's dependencies are fulfilled, as far as one observation of Slurm shows it.

Slurm checks the dependencies of a held job only once a minute (seen, 26.05; more often if MinJobAge is shorter), those
of any other job at once. A chain of short jobs must not wait for that. So a job whose dependencies we see fulfilled is
planned and placed: that releases the job, and Slurm checks its dependencies again before it starts the job. Slurm
decides: it does not start a job whose dependencies it does not find fulfilled, and the placement is then taken back. A
job whose dependency can never be fulfilled is released to Slurm, which reports that.
"""

from collections.abc import Sequence
from enum import StrEnum
from functools import cached_property

from slurm_sns.scheduler.observe.observed import Dependency, JobState, ObservedJob


class Outlook(StrEnum):
    """Whether a job's dependencies are fulfilled, may still be, or never will be; the value is its reason to wait."""

    OPEN = "waits for its dependency"
    FULFILLED = ""
    HOPELESS = "its dependency can never be fulfilled"


class Others:
    """The jobs of one observation, by id and by array; indexed when they are first needed."""

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
        if not job.waits_for:  # singleton, or another form that we do not read
            return Outlook.OPEN
        every = all if not job.any_suffices else any
        if every(self._is_fulfilled(each) for each in job.waits_for):
            return Outlook.FULFILLED
        return Outlook.HOPELESS if job.has_failed_dependency else Outlook.OPEN

    def _is_fulfilled(self, dependency: Dependency) -> bool:
        if dependency.state in ("fulfilled", "failed"):  # Slurm has checked it for the last time
            return dependency.state == "fulfilled"
        if dependency.kind not in ("afterok", "afterany"):
            return False
        others = self._named(dependency)
        has_ended = bool(others) and all(other.state is JobState.ENDED for other in others)
        return has_ended and (dependency.kind == "afterany" or all(other.has_succeeded for other in others))

    def _named(self, dependency: Dependency) -> list[ObservedJob]:
        """The jobs that the dependency names; none if Slurm no longer knows the job, or the task, that it names."""
        array = self._by_array.get(dependency.job_id)
        if array is None:
            job = self._by_id.get(dependency.job_id)
            return [] if job is None else [job]
        return array if dependency.task is None else [job for job in array if job.array_task == dependency.task]
