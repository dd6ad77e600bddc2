"""What status says of partitions whose jobs share cores."""

from slurm_sns.scheduler.answers.answer_types import SharingStatus
from slurm_sns.scheduler.sharing.sharer import SharingView

HOUR_S = 3600.0


def sharing_status(sharing: SharingView) -> SharingStatus | None:
    """The jobs there and the pauses of the last day, of all users together; None where nothing is shared."""
    if not sharing.is_on:
        return None
    return {
        "jobs": len(sharing.yields),
        "least_yield": sharing.least_yield,
        "pauses": len(sharing.pauses),
        "lost_core_h": sharing.lost_core_s / HOUR_S,
        "most_lost_core_h": sharing.most_lost_core_s / HOUR_S,
    }
