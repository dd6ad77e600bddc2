"""Statistics of sequences that ran under several policies: throughput, run times over CE's, broken alphas.

Throughput is 1 / mean turnaround. As in the paper, means of seconds are arithmetic, means of dimensionless numbers
geometric.

Source: Spread-n-Share (SC'19), section 6.2.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from slurm_sns.policies.sns.parameters import REPRODUCTION
from slurm_sns.sim.engine.sns_policies import CE, CS, SNS
from slurm_sns.sim.reproduce.sns.runs import Column, geometric_mean, runs_of

ALPHA = REPRODUCTION.alpha
#: Run times are whole seconds: an excess over what alpha allows that is below this fraction is a rounding error.
ROUNDING = 1e-3


@dataclass(frozen=True)
class Sequences:
    """The kept results of some sequences, under one progress model."""

    results: Sequence[Mapping[str, Any]]
    model: str

    def gains(self, policy: str, over: str = CE) -> Column:
        """By how many percent the throughput of each sequence exceeds that under another policy."""
        means = [(self._turnaround_s(each, over), self._turnaround_s(each, policy)) for each in self.results]
        return np.array([100 * (other / own - 1) for other, own in means])

    def ratios(self, policy: str) -> list[Column]:
        """The run time of each job divided by its run time under CE, by sequence."""
        return [runs_of(each, policy, self.model).run_s / runs_of(each, CE, self.model).run_s for each in self.results]

    def mean_ratios(self, policy: str) -> Column:
        """The geometric mean of `ratios`, by sequence."""
        return np.array([geometric_mean(each) for each in self.ratios(policy)])

    def broken(self, policy: str) -> Column:
        """For each job that breaks its alpha: by how many percent it exceeds the run time that alpha allows."""
        over: Column = np.concatenate(self.ratios(policy)) * ALPHA - 1
        return 100 * over[over > ROUNDING]

    def geometric_gain(self, policy: str) -> float:
        """The gain in percent as the prototype computes it: by the geometric mean of turnaround under CE over own."""
        return 100 * (float(np.mean([geometric_mean(self._quicker(each, policy)) for each in self.results])) - 1)

    @cached_property
    def against_cs(self) -> Column:
        """SNS's gains over CS, in percent by sequence."""
        return self.gains(SNS, CS)

    def _turnaround_s(self, result: Mapping[str, Any], policy: str) -> float:
        return float(runs_of(result, policy, self.model).turnaround_s.mean())

    def _quicker(self, result: Mapping[str, Any], policy: str) -> Column:
        return runs_of(result, CE, self.model).turnaround_s / runs_of(result, policy, self.model).turnaround_s


#: The numbers that the paper prints, by name, and how we compute them.
NUMBERS: Mapping[str, Callable[[Sequences], float]] = {
    "cs gain": lambda of: of.gains(CS).mean(),
    "sns gain": lambda of: of.gains(SNS).mean(),
    "sns most": lambda of: of.gains(SNS).max(),
    "sns least": lambda of: of.gains(SNS).min(),
    "sns losses": lambda of: (of.gains(SNS) < 0).sum(),
    "wins over cs": lambda of: (of.against_cs > 0).sum(),
    "won by": lambda of: _of(of.against_cs[of.against_cs > 0], np.mean),
    "won by most": lambda of: of.against_cs.max(),
    "lost by": lambda of: -_of(of.against_cs[of.against_cs < 0], np.mean),
    "lost by most": lambda of: -of.against_cs.min(),
    "faster jobs": lambda of: 100 * (1 - geometric_mean(np.concatenate(of.ratios(SNS)))),
    "slowest sequence": lambda of: 100 * (of.mean_ratios(SNS).max() - 1),
    "slower sequences": lambda of: (of.mean_ratios(SNS) > 1).sum(),
    "faster than cs": lambda of: (of.mean_ratios(SNS) < of.mean_ratios(CS)).sum(),
    "cs slowest": lambda of: np.concatenate(of.ratios(CS)).max(),
    "broken": lambda of: len(of.broken(SNS)),
    "broken by": lambda of: _of(of.broken(SNS), np.mean),
    "broken by most": lambda of: _of(of.broken(SNS), np.max),
}


def _of(values: Column, statistic: Callable[[Column], Any]) -> float:
    """The statistic of the values, 0 without values."""
    return float(statistic(values)) if len(values) else 0.0
