"""What an ordinary user is not told: the numbers of other people's jobs, in texts and in lists, and their accounts.

What he sees of others is what `sinfo` shows everybody: how full each node is, and how many jobs there are.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

#: As policies and the situation name jobs in their sentences: `job 7`, `job 7, 8 and 3 more`.
_JOBS = re.compile(r"\bjob (\d+(?:_\d+)?(?:, \d+(?:_\d+)?)*)( and \d+ more)?")
OTHERS = "another user's job"


class Discretion:
    """Tells the user with these jobs of his own; None stands for somebody who may see all."""

    def __init__(self, own_jobs: Collection[int] | None) -> None:
        self._own = own_jobs

    def text(self, sentence: str) -> str:
        """The sentence, without the numbers of jobs unless all of them are his."""
        return sentence if self._own is None else _JOBS.sub(self._said, sentence)

    def texts(self, sentences: Mapping[str, str]) -> dict[str, str]:
        """All these sentences."""
        return {name: self.text(sentence) for name, sentence in sentences.items()}

    def cycle(self, explained: dict[str, Any]) -> dict[str, Any]:
        """An explanation of the portfolio (policies.matching.explain, as a dictionary of its own), made so in place."""
        if self._own is None:
            return explained
        explained["reason"] = self.text(explained["reason"])
        for member in explained["members"]:
            for tried in member["tried"]:
                in_the_way = tried["withheld_in_the_way"]
                tried["withheld_in_the_way"] = [job_id for job_id in in_the_way if job_id in self._own]
                tried["withheld_for_others"] = len(in_the_way) - len(tried["withheld_in_the_way"])
        return explained

    def _said(self, match: re.Match[str]) -> str:
        assert self._own is not None  # noqa: S101 - `text` asked
        named = {int(number.partition("_")[0]) for number in match.group(1).split(", ")}
        return match.group(0) if named <= set(self._own) and not match.group(2) else OTHERS
