"""Why a job has the scales it has, as `sns explain` shows it: its program's class, and the figures of each scale.

Every figure can be recomputed by hand from the profile file.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from slurm_sns.policies.base import Considered, Explanation
from slurm_sns.policies.spread_n_share.classify import Classification


@dataclass(frozen=True, slots=True)
class ScaleFigures:
    """One scale on shared or on empty nodes: an alternative, or dropped with the reason.

    `time_s` is the profile's run time, multiplied by the frequency factor. `full_ipc` is F-IPC, `target_ipc` is T-IPC =
    alpha * F-IPC, `ipc` the IPC with `ways`. `bandwidth_gbps` is what the curve gives, in whole GB/s. `slowdown` =
    (T_k / T_1) * (F-IPC / IPC(ways)). A value that was not computed is None. `dropped` is empty for an alternative.
    """

    scale: int
    exclusive: bool
    nodes: int
    tasks_per_node: int
    cores: int
    memory_mb: int
    ways: int | None = None
    bandwidth_gbps: int | None = None
    time_s: float | None = None
    full_ipc: float | None = None
    target_ipc: float | None = None
    ipc: float | None = None
    slowdown: float | None = None
    dropped: str = ""

    def considered(self) -> Considered:
        """The scale as a row of the explanation."""
        on = "on empty nodes" if self.exclusive else "on shared nodes"
        return Considered(
            str(self.scale),
            "dropped" if self.dropped else on,
            self.dropped,
            {
                "nodes": self.nodes,
                "tasks": self.tasks_per_node,
                "cores": self.cores,
                "MiB": self.memory_mb,
                "ways": self.ways,
                "GB/s": self.bandwidth_gbps,
                "time s": self.time_s,
                "F-IPC": self.full_ipc,
                "T-IPC": self.target_ipc,
                "IPC": self.ipc,
                "slowdown": self.slowdown,
            },
        )


def explanation(
    program: str,
    alpha: float,
    scales: Sequence[ScaleFigures],
    *,
    by: Classification | None = None,
    profiled_processes: int | None = None,
    factors: str = "",
    note: str = "",
) -> Explanation:
    """The explanation of a job whose program has this class, None without profile; `scales` in their order of trial.

    `profiled_processes` is the process count whose runs were used, `factors` the frequency factors in words. `note`
    says what is special about the job.
    """
    if by is None:
        summary = [f"Program {program}: {note}."]
    else:
        kind = f"{by.kind} (bound by {by.bottleneck})" if by.bottleneck else str(by.kind)
        profile = f"profile of {profiled_processes} processes"
        summary = [
            f"Program {program} is {kind}, fastest at scale {by.ideal_scale} ({profile}).",
            f"It must keep {alpha:g} of its best performance (alpha).",
        ]
        if factors:
            summary.append(f"Run times are multiplied by {factors} (frequency_factors).")
        if note:
            summary.append(f"{note[0].upper()}{note[1:]}.")
    return Explanation(tuple(summary), "scale", tuple(each.considered() for each in scales))
