"""What became of a run to learn from, by what Slurm shows of its job."""

from dataclasses import replace

from slurm_sns.scheduler.learning.values import Outcome, RunToLearn
from slurm_sns.scheduler.observation.observed import JobState, ObservedJob


def follow(run: RunToLearn, job: ObservedJob | None, now_s: float) -> RunToLearn | None:
    """The run as it is now; None if nothing is learnt from it.

    That is so if its placement was taken back or never reached Slurm, if the job was requeued or runs on other nodes,
    and if Slurm forgot the job before we saw how it ended. Of a completing job Slurm shows only the nodes that have not
    completed yet (seen).
    """
    if run.outcome is not Outcome.UNDER_WAY:
        return run
    if job is None or job.restarts != run.run.restarts:
        return None
    nodes = set(job.pinned_to if job.state is JobState.PENDING else job.allocated)
    is_there = nodes <= set(run.nodes) if job.is_completing else nodes == set(run.nodes)
    if job.state is JobState.ENDED:
        outcome = Outcome.SUCCEEDED if job.has_succeeded else Outcome.FAILED
        return replace(run, outcome=outcome, ended_s=now_s, was_suspended=run.was_suspended or job.suspended_s > 0)
    if not is_there:
        return None
    was_suspended = job.state is JobState.SUSPENDED or job.suspended_s > 0
    return replace(run, was_suspended=True) if was_suspended and not run.was_suspended else run
