"""The types of what the page's script is served as JSON: the overview, a part of the queue, why there is neither."""

from typing_extensions import TypedDict

from slurm_sns.scheduler.answers.answer_types import QueueRow
from slurm_sns.scheduler.answers.overview_types import ClusterOverview


class QueuePart(TypedDict):
    """A part of the jobs that the viewer may see; tasks of an array that wait alike are one row."""

    offset: int
    """How many rows come before these."""
    matching: int
    """How many rows there are that the filter lets through."""
    total: int
    """How many rows there are."""
    rows: list[QueueRow]
    """The rows, waiting jobs first, in queue order."""


class PageOverview(ClusterOverview):
    """The cluster on one screen, as far as the viewer may see it."""

    viewer: str | None
    """The Unix user whom the proxy has named; null for anybody."""
    is_admin: bool
    """Whether all users' jobs are shown."""
    explains: bool
    """Whether the viewer may ask for explanations."""
    jobs: QueuePart
    """The first jobs of the queue."""


class NoAnswer(TypedDict):
    """Why there is no answer."""

    error: str
    """What is wrong, in one line."""
    since_s: float | None
    """Since when the scheduler does not answer, Unix seconds; null where it is something else."""
    remedy: str
    """What to do; empty where there is nothing."""
