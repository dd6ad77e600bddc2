"""What was considered for one job: its program's class, and each scale with its demand, prediction and outcome.

Every figure here can be recomputed by hand from the profile file; `sns explain` prints them.
"""

from dataclasses import dataclass

from slurm_sns.policies.sns.classify import ProgramClass


@dataclass(frozen=True, slots=True)
class Considered:
    """One scale on shared or on empty nodes: an alternative, or dropped with the reason.

    `time_s` is the profile's run time, `corrected_time_s` the run time times the frequency factor. `full_ipc` is F-IPC.
    `target_ipc` is T-IPC = alpha * F-IPC. `ipc` is the IPC with `ways`. `bandwidth_exact_gbps` is what the curve gives,
    `bandwidth_gbps` the demand in whole GB/s. `slowdown` = (T_k / T_1) * (F-IPC / IPC(ways)), with corrected times. A
    value that was not computed is None. `dropped` is the reason, empty for an alternative.
    """

    scale: int
    exclusive: bool
    nodes: int
    tasks_per_node: int
    cores: int
    memory_mb: int
    ways: int | None = None
    bandwidth_exact_gbps: float | None = None
    bandwidth_gbps: int | None = None
    time_s: float | None = None
    frequency_factor: float | None = None
    corrected_time_s: float | None = None
    full_ipc: float | None = None
    target_ipc: float | None = None
    ipc: float | None = None
    slowdown: float | None = None
    dropped: str = ""


@dataclass(frozen=True, slots=True)
class AlternativesReport:
    """Why a job has the alternatives it has.

    `kind` is the class of the program, None for a job without profile. `note` says what is special about the job and is
    empty if nothing is. `profiled_processes` is the process count whose runs were used. `considered` are the scales in
    the order in which they are tried; those that were dropped come last.
    """

    program: str
    processes: int
    alpha: float
    fewest_nodes: int
    kind: ProgramClass | None = None
    ideal_scale: int | None = None
    bottleneck: str = ""
    profiled_processes: int | None = None
    considered: tuple[Considered, ...] = ()
    note: str = ""
