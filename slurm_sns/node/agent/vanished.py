"""Which jobs have gone from a node although no epilog said so. Pure."""

from collections.abc import Collection, Mapping

from slurm_sns.wire.values import RunId


def vanished(
    runs: Collection[RunId],
    last_seen_s: Mapping[int, float],
    now_s: float,
    after_s: float,
    active: Collection[RunId] | None,
) -> frozenset[int]:
    """The ids of the jobs among `runs` that have gone.

    A job has gone when it had no slurmstepd for `after_s` seconds and the controller does not say that it is active
    here. `last_seen_s` is when it had one last, or when its run began; `active` is None while no controller says so.
    """
    return frozenset(
        run.job_id
        for run in runs
        if now_s - last_seen_s.get(run.job_id, now_s) >= after_s and (active is None or run not in active)
    )
