"""What has been measured of one (program, processes): evidence by scale, and the profile that follows from it.

A job alone on its nodes gives a run time. A job whose ways are changed while it runs gives points of the IPC and
bandwidth curves instead. Evidence is never discarded before there is better: a re-measurement (after drift, or by the
owner's --sns-reprofile) gathers new evidence beside the current evidence, and replaces it when exploration is complete.
A sample that lies too far from the mean of the others is left out, so that a bad sample does not spoil a good value.

Source: Spread-n-Share (SC'19), sections 4.1, 4.2 and 5.1; count, mean and spread of each
point, and the tolerances, are ours. Welford (1962) for the running sums.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import sqrt

from slurm_sns.policies.profile import Program, Provenance, Provenances, Run

#: A sample is doubted if it is further from the mean than this many standard deviations and than this share of it.
DOUBTED_DEVIATIONS = 3.0
NEVER_DOUBTED_SHARE = 0.15
#: With fewer samples the spread is unknown.
FEWEST_TO_DOUBT = 2

MEASURED = Provenances(Provenance.MEASURED, Provenance.MEASURED, Provenance.MEASURED)
TIMED_ONLY = Provenances(Provenance.MEASURED, Provenance.ASSUMED, Provenance.ASSUMED)
#: A curve has at least two points.
FEWEST_POINTS = 2


@dataclass(frozen=True, slots=True)
class Estimate:
    """A measured quantity: the mean of `count` samples; `squares` is the sum of their squared distances from it."""

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


UNMEASURED = Estimate()


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one run gave: its time if it ran alone and undisturbed (None otherwise), and points of its curves by ways.

    `ipc` and `bandwidth_gbps` (per node) have the same ways; they are empty for a run that was only timed.
    """

    scale: int
    time_s: float | None = None
    ipc: Mapping[int, float] = field(default_factory=dict)
    bandwidth_gbps: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that has been measured at one scale."""

    time_s: Estimate = UNMEASURED
    ipc: Mapping[int, Estimate] = field(default_factory=dict)
    bandwidth_gbps: Mapping[int, Estimate] = field(default_factory=dict)

    @property
    def is_timed(self) -> bool:
        """Whether a run time is known."""
        return self.time_s.count > 0

    @property
    def is_sampled(self) -> bool:
        """Whether the curves are known."""
        return len(self.ipc) >= FEWEST_POINTS

    def with_measurement(self, measured: Measurement) -> "Evidence":
        """The evidence with one more measurement."""
        time_s = self.time_s if measured.time_s is None else self.time_s.with_sample(measured.time_s)
        return Evidence(time_s, _with(self.ipc, measured.ipc), _with(self.bandwidth_gbps, measured.bandwidth_gbps))

    def run(self, processes: int, scale: int) -> Run | None:
        """The profile's run at this scale; None while its run time or its curves are missing."""
        if not (self.is_timed and self.is_sampled):
            return None
        ways = tuple(sorted(self.ipc))
        return Run(
            processes,
            scale,
            self.time_s.mean,
            ways,
            tuple(self.ipc[each].mean for each in ways),
            tuple(self.bandwidth_gbps[each].mean for each in ways),
            MEASURED,
        )


Scales = Mapping[int, Evidence]


@dataclass(frozen=True, slots=True)
class KnownEvidence:
    """All that is known of one (program, processes).

    `current` is the evidence for the current profile. `renewal` is the evidence of a re-measurement, None when none is
    under way. `strange` counts the runs in a row that did not agree with the current profile (module drift).
    `is_explored`: exploration was complete once, so that nothing is missing from `current`.
    """

    program: str
    processes: int
    current: Scales = field(default_factory=dict)
    renewal: Scales | None = None
    strange: int = 0
    is_explored: bool = False

    @property
    def gathering(self) -> Scales:
        """The evidence to which new measurements are added."""
        return self.current if self.renewal is None else self.renewal

    def with_measurement(self, measured: Measurement) -> "KnownEvidence":
        """What is known with one more measurement."""
        scales = dict(self.gathering)
        scales[measured.scale] = scales.get(measured.scale, Evidence()).with_measurement(measured)
        return replace(self, current=scales) if self.renewal is None else replace(self, renewal=scales)

    def renewed(self) -> "KnownEvidence":
        """Start a re-measurement unless one is under way; the current profile stays in use until `settled`."""
        return self if self.renewal is not None else replace(self, renewal={}, strange=0)

    def settled(self) -> "KnownEvidence":
        """Note that exploration is complete; a re-measurement that is under way replaces the current profile."""
        return replace(self, current=self.gathering, renewal=None, is_explored=True)

    def profile(self) -> Program | None:
        """The profile to plan by; None until scale 1 is timed and sampled.

        A scale that was only timed, and was slower, is included because it decides the program's class. Exploration
        does not return to such a scale, so its curves are not needed: the profile repeats those of scale 1.
        """
        complete: list[Run] = []
        for scale, evidence in sorted(self.current.items()):
            run = evidence.run(self.processes, scale)
            if run is not None:
                complete.append(run)
            elif complete and evidence.is_timed and evidence.time_s.mean > min(each.time_s for each in complete):
                complete.append(replace(complete[0], scale=scale, time_s=evidence.time_s.mean, provenance=TIMED_ONLY))
        if not complete or complete[0].scale != 1:
            return None
        return Program(self.program, tuple(complete), "measured here")


def _with(estimates: Mapping[int, Estimate], samples: Mapping[int, float]) -> Mapping[int, Estimate]:
    return {**estimates, **{at: estimates.get(at, Estimate()).with_sample(value) for at, value in samples.items()}}
