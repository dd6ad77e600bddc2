"""When waiting jobs are expected to start, as JSON values."""

from slurm_sns.scheduler.answers.answer_types import StartAnswer
from slurm_sns.scheduler.answers.redaction import Redaction
from slurm_sns.scheduler.answers.view import View, named_nodes
from slurm_sns.scheduler.gate.job_status import Status
from slurm_sns.scheduler.observation import ObservedJob
from slurm_sns.scheduler.start_estimates.board import StartEstimate
from slurm_sns.task_ids import label as label_of


def start_of(view: View, job: ObservedJob, redaction: Redaction, found: StartEstimate | None) -> StartAnswer | None:
    """When a job that waits for its place is expected to start, and for what it waits."""
    status = view.situation.statuses.get(job.id, Status.GATED)  # a task of an array's record has none
    if found is None or job.id in view.situation.blocked or status not in (Status.GATED, Status.LAPSED):
        return None
    return start_answer(found, redaction)


def start_answer(found: StartEstimate, redaction: Redaction) -> StartAnswer:
    """An estimate as JSON values; of other users' jobs only the nodes are named."""
    waits_for = ""
    if found.waits_for is not None:
        on = named_nodes(found.nodes)
        is_shown = redaction.shows(found.waits_for)
        waits_for = f"job {label_of(found.waits_for)}'s nodes ({on})" if is_shown else on
    return {
        "low_s": found.low_s,
        "high_s": found.high_s,
        "limits_s": found.limits_s,
        "not_before_s": found.not_before_s,
        "waits_for": waits_for,
    }
