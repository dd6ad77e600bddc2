"""Whether a program still behaves as its profile says: light monitoring of every run.

A run is strange when its IPC or its bandwidth differs by more than `threshold` from the profile at the same scale and
ways; so is a run that was alone on its nodes and whose run time differs by more. After `patience` strange runs in a row
the program is measured again; one ordinary run in between resets the count. The current profile stays in use until the
re-measurement is complete.

Source: Spread-n-Share (SC'19), section 5.2; threshold and patience are ours.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from slurm_sns.policies.profile import Program, Run
from slurm_sns.policies.spread_n_share.evidence import KnownEvidence


@dataclass(frozen=True, slots=True)
class DriftParameters:
    """By what share a run may differ, and how many strange runs in a row mean that the program has changed."""

    threshold: float = 0.25
    patience: int = 3


@dataclass(frozen=True, slots=True)
class Monitored:
    """What monitoring saw of one run.

    `ipc` and `bandwidth_gbps` are averages per node while it had these ways, None where that was not measured. `time_s`
    is None unless the job was alone on its nodes.
    """

    scale: int
    ways: float
    ipc: float | None
    bandwidth_gbps: float | None
    time_s: float | None = None


#: Below this many GB/s a program hardly uses memory, and relative differences of its bandwidth mean nothing.
QUIET_GBPS = 1.0


def deviation(known: KnownEvidence, seen: Monitored, serving: Program | None = None) -> float | None:
    """The largest share by which the run differs from the profile; None if they have nothing in common.

    `serving` is the profile that jobs run by, if that is not the one that follows from what is known.
    """
    profile = serving or known.profile()
    run = None if profile is None else profile.at(known.processes).get(seen.scale)
    return None if run is None else max(_shares(seen, run), default=None)


def _shares(seen: Monitored, run: Run) -> Iterator[float]:
    """The share by which each measured quantity differs from the profile's run."""
    if seen.ipc is not None:
        yield _share(seen.ipc, run.ipc_at(seen.ways))
    expected_gbps = run.bandwidth_at(seen.ways)
    if seen.bandwidth_gbps is not None and max(seen.bandwidth_gbps, expected_gbps) > QUIET_GBPS:
        yield _share(seen.bandwidth_gbps, max(expected_gbps, QUIET_GBPS))
    if seen.time_s is not None:
        yield _share(seen.time_s, run.time_s)


def _share(found: float, expected: float) -> float:
    return abs(found / expected - 1)


def watched(
    known: KnownEvidence, seen: Monitored, parameters: DriftParameters, serving: Program | None = None
) -> KnownEvidence:
    """What is known after this run; a re-measurement starts if the program has changed. `serving`: as in `deviation`.

    A run that cannot be compared with the profile says nothing.
    """
    off = deviation(known, seen, serving)
    if off is None:
        return known
    if off <= parameters.threshold:
        return replace(known, strange=0)
    strange = known.strange + 1
    return known.renewed() if strange >= parameters.patience else replace(known, strange=strange)
