"""Removes the ids of other users' jobs from what an ordinary user is shown, in texts and in lists.

Of others, an ordinary user sees what `sinfo` shows everybody: how full each node is, and how many jobs there are.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

#: How policies and the situation name jobs in their sentences: `job 7`, `job 7, 8 and 3 more`.
_JOBS = re.compile(r"\bjob (\d+(?:_\d+)?(?:, \d+(?:_\d+)?)*)( and \d+ more)?")
OTHERS = "another user's job"


class Redaction:
    """Redacts texts and explanations for the user who owns these jobs (None: for an admin, who may see everything)."""

    def __init__(self, own_jobs: Collection[int] | None) -> None:
        self._own = own_jobs

    def text(self, sentence: str) -> str:
        """The sentence; where it names jobs that are not all the user's own, it says "another user's job" instead."""
        return sentence if self._own is None else _JOBS.sub(self._redacted, sentence)

    def texts(self, sentences: Mapping[str, str]) -> dict[str, str]:
        """The sentences, each redacted; the keys stay as they are."""
        return {name: self.text(sentence) for name, sentence in sentences.items()}

    def cycle(self, explained: dict[str, Any]) -> dict[str, Any]:
        """An explanation of a portfolio's cycle (policies.placement.explain, as a dictionary), redacted in place."""
        if self._own is None:
            return explained
        explained["reason"] = self.text(explained["reason"])
        for member in explained["members"]:
            for tried in member["tried"]:
                in_the_way = tried["withheld_in_the_way"]
                tried["withheld_in_the_way"] = [job_id for job_id in in_the_way if job_id in self._own]
                tried["withheld_for_others"] = len(in_the_way) - len(tried["withheld_in_the_way"])
        return explained

    def _redacted(self, match: re.Match[str]) -> str:
        assert self._own is not None  # noqa: S101 - `text` has checked it
        named = {int(number.partition("_")[0]) for number in match.group(1).split(", ")}
        return match.group(0) if named <= set(self._own) and not match.group(2) else OTHERS
