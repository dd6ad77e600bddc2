"""A measured quantity: how often it was measured, its mean and its spread.

A sample that lies too far from the mean is left out, so that a bad sample does not spoil a good value.

Source: Welford (1962) for the running sums; the tolerances are ours.
"""

from dataclasses import dataclass
from math import sqrt

#: A sample is doubted if it is further from the mean than this many standard deviations and than this share of it.
DOUBTED_DEVIATIONS = 3.0
NEVER_DOUBTED_SHARE = 0.15
#: With fewer samples the spread is unknown.
FEWEST_TO_DOUBT = 2


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean of `count` samples; `squares` is the sum of their squared distances from it."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    @property
    def spread(self) -> float:
        """The standard deviation of the samples; 0 with fewer than two."""
        return sqrt(self.squares / (self.count - 1)) if self.count > 1 else 0.0

    def doubts(self, sample: float) -> bool:
        """Whether the sample is too far from what was measured before."""
        if self.count < FEWEST_TO_DOUBT:
            return False
        allowed = max(DOUBTED_DEVIATIONS * self.spread, NEVER_DOUBTED_SHARE * abs(self.mean))
        return abs(sample - self.mean) > allowed

    def with_sample(self, sample: float) -> "Estimate":
        """The estimate with one more sample; unchanged if the sample is doubted."""
        if self.doubts(sample):
            return self
        count = self.count + 1
        mean = self.mean + (sample - self.mean) / count
        return Estimate(count, mean, self.squares + (sample - self.mean) * (sample - mean))
