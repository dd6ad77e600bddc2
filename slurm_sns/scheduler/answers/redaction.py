"""What users are told of others' jobs: sentences that do not name them, and an overview for one user. Pure.

The web server uses it, too, so it needs nothing of the scheduler's installation.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any, cast

from slurm_sns.scheduler.answers.answer_types import QueueRow
from slurm_sns.scheduler.answers.overview_types import NodeView, OverviewAnswer
from slurm_sns.task_ids import label

#: What those see of an unavailable node who may see no job: an admin's reason may name its user.
UNAVAILABLE = "not available"
#: And of what keeps the scheduler from working.
TROUBLE = "the scheduler cannot work; its admins can see why with sns status"
#: How policies and the situation name jobs in their sentences: `job 7`, `job 7, 8 and 3 more`.
_JOBS = re.compile(r"\bjob (\d+(?:_\d+)?(?:, \d+(?:_\d+)?)*)( and \d+ more)?")
OTHERS = "another user's job"


class Redaction:
    """Redacts texts and explanations for the user who owns these jobs (None: for an admin, who may see everything)."""

    def __init__(self, own_jobs: Collection[int] | None) -> None:
        self._own = None if own_jobs is None else frozenset(own_jobs)

    def text(self, sentence: str) -> str:
        """The sentence; where it names jobs that are not all the user's own, it says "another user's job" instead."""
        return _JOBS.sub(self._redacted, sentence)

    def shows(self, job_id: int) -> bool:
        """Whether the job may be named."""
        return self._own is None or job_id in self._own

    def texts(self, sentences: Mapping[str, str]) -> dict[str, str]:
        """The sentences, each redacted; the keys stay as they are."""
        return {name: self.text(sentence) for name, sentence in sentences.items()}

    def every_text(self, told: Any) -> Any:
        """The same with every text redacted that stands in it, at any depth of its lists and dictionaries."""
        match told:
            case str():
                return self.text(told)
            case dict():
                return {self.text(name): self.every_text(value) for name, value in told.items()}
            case list() | tuple():
                return [self.every_text(value) for value in told]
            case other:
                return other

    def _redacted(self, match: re.Match[str]) -> str:
        labels = [label(int(number)) if number.isdecimal() else number for number in match.group(1).split(", ")]
        named = {int(each.partition("_")[0]) for each in labels}
        if self._own is not None and (match.group(2) or not named <= self._own):
            return OTHERS
        return f"job {', '.join(labels)}{match.group(2) or ''}"


def for_user(whole: OverviewAnswer, user: str | None) -> OverviewAnswer:
    """What an ordinary user may see of an admin's overview: their own jobs as in `sns queue`, and how full nodes are.

    None is somebody of whom nothing is known: they see counts, nodes and the last day, and no text that names anybody.
    """
    rows = [] if user is None else [row for row in whole["jobs"] if row["user"] == user]
    numbers = {row["label"].partition("_")[0] for row in rows}  # those of jobs and of arrays
    redaction = Redaction({row["job_id"] for row in rows} | set(map(int, numbers)))
    return {
        **whole,
        "trouble": TROUBLE if whole["trouble"] and user is None else whole["trouble"],
        "jobs": [_redacted(row, redaction) for row in rows],
        "nodes": [_node_for(node, numbers, redaction, names_nobody=user is None) for node in whole["nodes"]],
    }


def _redacted(row: QueueRow, redaction: Redaction) -> QueueRow:
    texts = {"reason": row["reason"], "waits": row["waits"], "starts": row["starts"]}
    return cast(QueueRow, {**row, **redaction.every_text(texts)})


def _node_for(node: NodeView, numbers: set[str], redaction: Redaction, *, names_nobody: bool) -> NodeView:
    def shown(name: str) -> str:
        return name if name.partition("_")[0] in numbers else ""

    why = node["unavailable"] and (UNAVAILABLE if names_nobody else redaction.text(node["unavailable"]))
    return {
        **node,
        "unavailable": why,
        "kept_for": [shown(each) for each in node["kept_for"]],
        "jobs": [{**each, "label": shown(each["label"])} for each in node["jobs"]],
    }
