"""Whether a program still behaves as its profile says: light monitoring of every run.

A run is strange when its IPC or bandwidth, at the scale and with the ways it had, or its run time where it ran alone,
is off by more than `threshold`. After `patience` strange runs in a row the profile is renewed; one ordinary run in
between ends the row. What stands is planned by until the renewal is complete.

Source: Spread-n-Share (SC'19), section 5.2; threshold and patience are ours.
"""

from dataclasses import dataclass, replace

from slurm_sns.policies.sns.evidence import Known


@dataclass(frozen=True, slots=True)
class DriftParameters:
    """The shares by which a run may be off, and how many strange ones in a row are a change of the program."""

    threshold: float = 0.25
    patience: int = 3


@dataclass(frozen=True, slots=True)
class Monitored:
    """What was seen of a run. `time_s`: None unless it ran alone. `ipc` and `bandwidth_gbps`: averages, per node."""

    scale: int
    ways: float
    ipc: float
    bandwidth_gbps: float
    time_s: float | None = None


#: Below this many GB/s a program hardly touches memory, and shares of what it moves say nothing.
QUIET_GBPS = 1.0


def deviation(known: Known, seen: Monitored) -> float:
    """The largest share by which the run is off; 0 where nothing is known of its scale."""
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


def watched(known: Known, seen: Monitored, parameters: DriftParameters) -> Known:
    """The knowledge after this run: with a renewal begun if the program has changed."""
    if deviation(known, seen) <= parameters.threshold:
        return replace(known, strange=0)
    strange = known.strange + 1
    return known.renewed() if strange >= parameters.patience else replace(known, strange=strange)
