"""Names jobs as Slurm does, and removes the ids of other users' jobs from what an ordinary user is shown.

Of others, an ordinary user sees what `sinfo` shows everybody: how full each node is, and how many jobs there are.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

from slurm_sns.task_ids import label, task_of

#: How policies and the situation name jobs in their sentences: `job 7`, `job 7, 8 and 3 more`.
_JOBS = re.compile(r"\bjob (\d+(?:_\d+)?(?:, \d+(?:_\d+)?)*)( and \d+ more)?")
OTHERS = "another user's job"


class Redaction:
    """Redacts texts and explanations for the user who owns these jobs (None: for an admin, who may see everything)."""

    def __init__(self, own_jobs: Collection[int] | None) -> None:
        self._own = own_jobs

    def text(self, sentence: str) -> str:
        """The sentence; where it names jobs that are not all the user's own, it says "another user's job" instead."""
        return _JOBS.sub(self._redacted, sentence)

    def texts(self, sentences: Mapping[str, str]) -> dict[str, str]:
        """The sentences, each redacted; the keys stay as they are."""
        return {name: self.text(sentence) for name, sentence in sentences.items()}

    def cycle(self, explained: dict[str, Any]) -> dict[str, Any]:
        """An explanation of a portfolio's cycle (policies.placement.explain, as a dictionary), redacted in place."""
        explained["reason"] = self.text(explained["reason"])
        for member in explained["members"]:
            for tried in member["tried"]:
                in_the_way = tried["withheld_in_the_way"]
                own = [job_id for job_id in in_the_way if self._own is None or _owned_as(job_id) in self._own]
                tried["withheld_in_the_way"] = list(map(label, own))
                tried["withheld_for_others"] = len(in_the_way) - len(tried["withheld_in_the_way"])
        return explained

    def _redacted(self, match: re.Match[str]) -> str:
        labels = [label(int(number)) if number.isdecimal() else number for number in match.group(1).split(", ")]
        named = {int(each.partition("_")[0]) for each in labels}
        if self._own is not None and (match.group(2) or not named <= set(self._own)):
            return OTHERS
        return f"job {', '.join(labels)}{match.group(2) or ''}"


def _owned_as(job_id: int) -> int:
    """The job, or the array of a task that has no id of Slurm's."""
    return (task_of(job_id) or (job_id,))[0]
