"""What is learnt, as JSON values for `sns profile`, and who may see it.

The names of learnt programs come from users' jobs. So a program without an imported profile is shown to admins, and to
those users from whose runs it was learnt.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from slurm_sns.policies.profile import Program
from slurm_sns.policies.sns.estimate import Estimate
from slurm_sns.policies.sns.evidence import Scales
from slurm_sns.policies.sns.learning import Key
from slurm_sns.scheduler.learning.serving import serves
from slurm_sns.scheduler.learning.values import NOTHING_LEARNT, LearningState, Learnt, RunToLearn

NO_PROGRAMS: Mapping[str, Program] = {}


class Known:
    """All that is known of programs: the profiles that jobs run by, those that were imported, and what is learnt."""

    def __init__(
        self,
        programs: Mapping[str, Program],
        imported: Mapping[str, Program] = NO_PROGRAMS,
        learning: LearningState = NOTHING_LEARNT,
    ) -> None:
        self.programs, self._imported, self._learning = programs, imported, learning
        self._exploring = {run.key: run for run in learning.runs.values() if run.explores_now}
        self._counts: dict[str, set[int]] = {}
        for name, processes in (*learning.learnt, *self._exploring):
            self._counts.setdefault(name, set()).add(processes)

    def names(self, user_id: int | None) -> list[str]:
        """The names of the programs that this user may see, sorted; None: of all programs."""
        if not self._counts:
            return list(self.programs)
        return sorted({*(self.programs if user_id is None else self._imported), *self._learnt_by(user_id)})

    def learnt_of(self, name: str, user_id: int | None) -> dict[int, dict[str, Any]]:
        """What is learnt of this program, by number of processes; this user may see the program."""
        return {processes: self._data((name, processes), user_id) for processes in sorted(self._counts.get(name, ()))}

    def _learnt_by(self, user_id: int | None) -> Iterator[str]:
        """The programs that are learnt, or explored for the first time, from runs of this user (None: of anybody)."""
        for (name, _), learnt in self._learning.learnt.items():
            if user_id is None or user_id in learnt.users:
                yield name
        for (name, _), run in self._exploring.items():
            if user_id in (None, run.user_id):
                yield name

    def _data(self, key: Key, user_id: int | None) -> dict[str, Any]:
        learnt = self._learning.learnt.get(key)
        return learnt_data(learnt, self._source(key, learnt), self._exploring.get(key), user_id)

    def _source(self, key: Key, learnt: Learnt | None) -> str | None:
        """Which profile jobs run by: `measured`, `imported` or None."""
        imported = self._imported.get(key[0])
        if learnt is not None and serves(learnt.known, imported) and learnt.known.profile() is not None:
            return "measured"
        return "imported" if imported is not None and imported.at(key[1]) else None


def learnt_data(
    learnt: Learnt | None, source: str | None, exploring: RunToLearn | None, user_id: int | None
) -> dict[str, Any]:
    """What is learnt of one (program, processes). `source` is the profile that jobs run by.

    `exploring` is the exploring run of now; other users than its owner (`user_id`; None: an admin) get no job id.
    """
    known = None if learnt is None else learnt.known
    return {
        "serves": source,
        "is_explored": known is not None and known.is_explored,
        "strange_runs": 0 if known is None else known.strange,
        "given_up": {} if learnt is None else {scale: each.runs for scale, each in sorted(learnt.failures.items())},
        "exploring": None
        if exploring is None or exploring.step is None
        else {
            "job_id": exploring.run.job_id if user_id in (None, exploring.user_id) else None,
            "scale": exploring.step.scale,
            "samples": exploring.step.samples,
        },
        "measured": [] if known is None else _scales_data(known.current),
        "re_measurement": None if known is None or known.renewal is None else _scales_data(known.renewal),
    }


def _scales_data(scales: Scales) -> list[dict[str, Any]]:
    return [
        {
            "scale": scale,
            "time_s": _estimate_data(each.time_s),
            "points": [
                {
                    "ways": ways,
                    "ipc": _estimate_data(each.ipc[ways]),
                    "bandwidth_gbps": _estimate_data(each.bandwidth_gbps[ways]),
                }
                for ways in sorted(each.ipc.keys() & each.bandwidth_gbps.keys())
            ],
        }
        for scale, each in sorted(scales.items())
    ]


def _estimate_data(estimate: Estimate) -> dict[str, float] | None:
    """Count, mean and standard deviation; None if nothing was measured."""
    if not estimate.count:
        return None
    return {"count": estimate.count, "mean": estimate.mean, "spread": estimate.spread}
