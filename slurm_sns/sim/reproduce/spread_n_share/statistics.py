"""Statistics of sequences that ran under several policies: throughput, run times over CE's, broken alphas.

There are two throughputs of a sequence. By the paper's text it is 1 / mean turnaround. The figures come from the result
parser of the authors' prototype: 1 / geometric mean, over the jobs, of the turnaround divided by that under CE. Run
times over CE's are means of dimensionless numbers, which are geometric.

Source: Spread-n-Share (SC'19), section 6.2; SSparser.py of Uberun, the prototype (github.com/thu-pacman/Uberun).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.spread_n_share.parameters import REPRODUCTION
from slurm_sns.sim.engine.spreading_policies import CE, CS, SNS
from slurm_sns.sim.reproduce.spread_n_share.runs import Column, geometric_mean, runs_of

ALPHA = REPRODUCTION.alpha
#: Run times are whole seconds: an excess over what alpha allows that is below this fraction is a rounding error.
ROUNDING = 1e-3
#: The two ways to compute a sequence's throughput.
ARITHMETIC, GEOMETRIC = "arithmetic", "geometric"


@dataclass(frozen=True)
class Sequences:
    """Some sequences of equally many jobs: by policy the run times and turnarounds, shape (sequences, jobs)."""

    run_s: Mapping[str, NDArray[np.float64]]
    turnaround_s: Mapping[str, NDArray[np.float64]]
    throughput: str = ARITHMETIC

    @classmethod
    def of(cls, results: Sequence[Mapping[str, Any]], model: str, throughput: str = ARITHMETIC) -> "Sequences":
        """The sequences of kept results (`runs.run_all`) under one progress model."""
        policies = [key.split("/")[0] for key in results[0] if key.endswith(f"/{model}")]
        runs = {policy: [runs_of(result, policy, model) for result in results] for policy in policies}
        return cls(
            {policy: np.array([each.run_s for each in of]) for policy, of in runs.items()},
            {policy: np.array([each.turnaround_s for each in of]) for policy, of in runs.items()},
            throughput,
        )

    def __len__(self) -> int:
        return len(self.run_s[CE])

    def take(self, rows: NDArray[np.int64]) -> "Sequences":
        """These sequences alone; a sequence may be taken several times."""
        return Sequences(
            {policy: of[rows] for policy, of in self.run_s.items()},
            {policy: of[rows] for policy, of in self.turnaround_s.items()},
            self.throughput,
        )

    def measured_by(self, throughput: str) -> "Sequences":
        """The same sequences with another throughput."""
        return Sequences(self.run_s, self.turnaround_s, throughput)

    def gains(self, policy: str, over: str = CE) -> Column:
        """By how many percent the throughput of each sequence exceeds that under another policy."""
        own, other = self.turnaround_s[policy], self.turnaround_s[over]
        if self.throughput == GEOMETRIC:
            more: Column = 100 * (np.exp(np.log(other / own).mean(axis=1)) - 1)
        else:
            more = 100 * (other.mean(axis=1) / own.mean(axis=1) - 1)
        return more

    def ratios(self, policy: str) -> NDArray[np.float64]:
        """The run time of each job divided by its run time under CE, shape (sequences, jobs)."""
        return self.run_s[policy] / self.run_s[CE]

    def mean_ratios(self, policy: str) -> Column:
        """The geometric mean of `ratios`, by sequence."""
        means: Column = np.exp(np.log(self.ratios(policy)).mean(axis=1))
        return means

    def broken(self, policy: str) -> Column:
        """Of each job that breaks its alpha: c, its run time divided by that under CE, which exceeds 1 / alpha."""
        ratios = self.ratios(policy).ravel()
        broken: Column = ratios[ratios * ALPHA > 1 + ROUNDING]
        return broken

    def broken_shares(self, policy: str) -> Column:
        """The percentage of jobs that break their alpha, by sequence."""
        shares: Column = 100 * (self.ratios(policy) * ALPHA > 1 + ROUNDING).mean(axis=1)
        return shares


#: The numbers that the paper prints, by name, and how we compute them.
NUMBERS: Mapping[str, Callable[[Sequences], float]] = {
    "cs gain": lambda of: of.gains(CS).mean(),
    "sns gain": lambda of: of.gains(SNS).mean(),
    "sns most": lambda of: of.gains(SNS).max(),
    "sns least": lambda of: of.gains(SNS).min(),
    "sns losses": lambda of: (of.gains(SNS) < 0).sum(),
    "wins over cs": lambda of: (of.gains(SNS, CS) > 0).sum(),
    "won by": lambda of: _of(of.gains(SNS, CS), np.mean, above=True),
    "won by most": lambda of: of.gains(SNS, CS).max(),
    "lost by": lambda of: 0.0 - _of(of.gains(SNS, CS), np.mean, above=False),
    "lost by most": lambda of: 0.0 - min(of.gains(SNS, CS).min(), 0.0),
    "faster jobs": lambda of: 100 * (1 - geometric_mean(of.ratios(SNS).ravel())),
    "slowest sequence": lambda of: 100 * (of.mean_ratios(SNS).max() - 1),
    "slower sequences": lambda of: (of.mean_ratios(SNS) > 1).sum(),
    "faster than cs": lambda of: (of.mean_ratios(SNS) < of.mean_ratios(CS)).sum(),
    "cs slowest": lambda of: of.ratios(CS).max(),
    "broken": lambda of: len(of.broken(SNS)),
    "broken by": lambda of: broken_by(of.broken(SNS)),
    "broken by most": lambda of: 100 * (of.broken(SNS).max(initial=1.0) - 1),
}


def broken_by(ratios: Column) -> float:
    """The prototype's measure: the geometric mean of c, less 1, in percent; 0 where no alpha is broken."""
    return 100 * (geometric_mean(ratios) - 1) if len(ratios) else 0.0


def above_alpha(ratios: Column) -> float:
    """Our own measure: by how many percent, on average, these run times exceed what alpha allows; 0 without any."""
    return 100 * float((ratios * ALPHA - 1).mean()) if len(ratios) else 0.0


def _of(values: Column, statistic: Callable[[Column], Any], *, above: bool) -> float:
    """The statistic of the values above or below 0; 0 where there are none."""
    chosen = values[values > 0] if above else values[values < 0]
    return float(statistic(chosen)) if len(chosen) else 0.0
