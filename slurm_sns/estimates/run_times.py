"""How long jobs are expected to run: until their limits, or for the share of them that the past suggests."""

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.estimates.past_runs import Kin, PastRuns

#: The quantiles of run times between which the raw range lies: that of the low look ahead and of the high one.
LOW, HIGH = 0.25, 0.75

Floats = NDArray[np.float64]


class ExpectedTimes(NamedTuple):
    """What a look ahead is given: the run times of waiting jobs, and the ends of active ones."""

    run_s: Floats
    end_s: Floats


class TimeLimits(NamedTuple):
    """The time limits of the waiting jobs of a look ahead, and of the active ones, each in its order.

    Limits are infinite where there are none. `kin` is whose past a job shares; None where that is not known.
    """

    waiting_s: Floats
    waiting_kin: Sequence[Kin | None]
    active_s: Floats
    active_end_s: Floats  #: when the active jobs reach their limits
    active_kin: Sequence[Kin | None]

    def reached(self) -> ExpectedTimes:
        """All jobs run until their limits."""
        return ExpectedTimes(self.waiting_s, self.active_end_s)

    def used(self, past: PastRuns, quantile: float, now_s: float) -> ExpectedTimes:
        """All jobs use that share of their limits which the past suggests at this quantile."""
        shares: dict[Kin, float] = {}
        run_s, end_s = self.waiting_s.copy(), self.active_end_s.copy()
        for at, kin in enumerate(self.waiting_kin):
            if kin is None:
                continue
            if kin not in shares:
                shares[kin] = past.share(kin, quantile)
            run_s[at] *= shares[kin]
        for at, kin in enumerate(self.active_kin):
            limit_s = float(self.active_s[at])
            if kin is None or limit_s == inf or end_s[at] == inf:
                continue
            ran = min(1.0, max(0.0, 1 - (float(end_s[at]) - now_s) / limit_s))
            end_s[at] = now_s + max(0.0, past.share(kin, quantile, ran) - ran) * limit_s
        return ExpectedTimes(run_s, end_s)
