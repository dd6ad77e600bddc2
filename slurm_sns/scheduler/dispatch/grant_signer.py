"""The grant of a placement: what the run may have on each of its nodes, signed for the agents there."""

from collections.abc import Callable

from slurm_sns.errors import SnsError
from slurm_sns.log import Log
from slurm_sns.model import Start
from slurm_sns.scheduler.observation import ObservedJob
from slurm_sns.wire.values import Grant, RunId

#: Makes the token of a grant, with the newest key. It raises SnsError where there is no key.
Sign = Callable[[Grant], str]


class GrantSigner:
    """Signs the grants of placements. A placement whose grant cannot be signed is sent without one."""

    def __init__(self, sign: Sign | None, log: Log) -> None:
        """`sign` is None where there are no agents: then nothing is granted."""
        self._sign, self._log = sign, log
        self._problem = ""

    def of(self, start: Start, job: ObservedJob, *, samples: bool = False) -> str | None:
        """The token of this placement's grant; None where there are no agents, or it cannot be signed.

        `samples`: the run's ways are to be changed, so that its curves are measured.
        """
        if self._sign is None:
            return None
        try:
            token = self._sign(grant(start, job, samples=samples))
        except SnsError as problem:
            self._say(f"placements are sent without grants: {problem}")
            return None
        self._say("")
        return token

    def _say(self, problem: str) -> None:
        """Log what keeps grants from being signed when that begins, and when it is over."""
        if problem != self._problem:
            self._log(problem or "placements are sent with grants again")
        self._problem = problem


def grant(start: Start, job: ObservedJob, *, samples: bool = False) -> Grant:
    """What the placement gives the next run of this job.

    `start.job_id` is our id of an array's task if the task is placed straight from the array's record, which is `job`.
    """
    alternative = start.alternative
    return Grant(
        RunId(start.job_id, job.restarts),
        start.nodes,
        alternative.demand.ways,
        alternative.demand.bandwidth_gbps,
        float(start.cpu_share),
        has_nodes_alone=alternative.exclusive,
        samples=samples,
    )
