"""Whether a program still behaves as its profile says: light monitoring of every run.

A run is strange when its IPC or its bandwidth differs by more than `threshold` from the profile at the same scale and
ways; so is a run that was alone on its nodes and whose run time differs by more. After `patience` strange runs in a row
the program is measured again; one ordinary run in between resets the count. The current profile stays in use until the
re-measurement is complete.

Source: Spread-n-Share (SC'19), section 5.2; threshold and patience are ours.
"""

from dataclasses import dataclass, replace

from slurm_sns.policies.sns.evidence import KnownEvidence


@dataclass(frozen=True, slots=True)
class DriftParameters:
    """By what share a run may differ, and how many strange runs in a row mean that the program has changed."""

    threshold: float = 0.25
    patience: int = 3


@dataclass(frozen=True, slots=True)
class Monitored:
    """What monitoring saw of one run.

    `ipc` and `bandwidth_gbps` are averages per node. `time_s` is None unless the job was alone on its nodes.
    """

    scale: int
    ways: float
    ipc: float
    bandwidth_gbps: float
    time_s: float | None = None


#: Below this many GB/s a program hardly uses memory, and relative differences of its bandwidth mean nothing.
QUIET_GBPS = 1.0


def deviation(known: KnownEvidence, seen: Monitored) -> float:
    """The largest share by which the run differs from the profile; 0 if the profile does not have its scale."""
    profile = known.profile()
    run = None if profile is None else profile.at(known.processes).get(seen.scale)
    if run is None:
        return 0.0
    pairs = [(seen.ipc, run.ipc_at(seen.ways))]
    expected_gbps = run.bandwidth_at(seen.ways)
    if max(seen.bandwidth_gbps, expected_gbps) > QUIET_GBPS:
        pairs.append((seen.bandwidth_gbps, max(expected_gbps, QUIET_GBPS)))
    if seen.time_s is not None:
        pairs.append((seen.time_s, run.time_s))
    return max(abs(found / expected - 1) for found, expected in pairs)


def watched(known: KnownEvidence, seen: Monitored, parameters: DriftParameters) -> KnownEvidence:
    """What is known after this run; a re-measurement starts if the program has changed."""
    if deviation(known, seen) <= parameters.threshold:
        return replace(known, strange=0)
    strange = known.strange + 1
    return known.renewed() if strange >= parameters.patience else replace(known, strange=strange)
