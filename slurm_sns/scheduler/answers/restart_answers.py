"""What status says of restarts of suspended jobs."""

from slurm_sns.scheduler.answers.answer_types import UserRestarts
from slurm_sns.scheduler.answers.view import View
from slurm_sns.scheduler.restarts.ledger import HOUR_S


def restarts_by_user(view: View, only_user: int | None) -> list[UserRestarts]:
    """The restarts of the last day, by owner; only those of `only_user`'s jobs if it is given."""
    shown = [each for each in view.restarts.restarted if only_user in (None, each.user_id)]
    names = {job.user_id: job.user for job in view.situation.observed} if shown else {}
    found: list[UserRestarts] = []
    for user_id in sorted({each.user_id for each in shown}):
        sent = [each.lost_core_s for each in shown if each.user_id == user_id and not each.is_proposal]
        proposed = [each.lost_core_s for each in shown if each.user_id == user_id and each.is_proposal]
        found.append(
            {
                "user": names.get(user_id, str(user_id)),
                "restarts": len(sent),
                "lost_core_h": sum(sent) / HOUR_S,
                "proposed": len(proposed),
                "proposed_core_h": sum(proposed) / HOUR_S,
            }
        )
    return found
