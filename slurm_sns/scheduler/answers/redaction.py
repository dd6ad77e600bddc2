"""Names jobs as Slurm does, and removes the ids of other users' jobs from what an ordinary user is shown.

Of others, an ordinary user sees what `sinfo` shows everybody: how full each node is, and how many jobs there are.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

from slurm_sns.task_ids import label

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

    def every_text(self, told: Any) -> Any:
        """The same with every text redacted that stands in it, at any depth of its lists and dictionaries."""
        match told:
            case str():
                return self.text(told)
            case dict():
                return {name: self.every_text(value) for name, value in told.items()}
            case list() | tuple():
                return [self.every_text(value) for value in told]
            case other:
                return other

    def _redacted(self, match: re.Match[str]) -> str:
        labels = [label(int(number)) if number.isdecimal() else number for number in match.group(1).split(", ")]
        named = {int(each.partition("_")[0]) for each in labels}
        if self._own is not None and (match.group(2) or not named <= set(self._own)):
            return OTHERS
        return f"job {', '.join(labels)}{match.group(2) or ''}"
