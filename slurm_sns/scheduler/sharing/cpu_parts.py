"""What the agents are told of the jobs on nodes that share cores: what each needs there, and its cap.

Every job is told of, whoever started it: one that passed through needs its cores like any other. A change is sent when
it differs from what was sent last; the hub sends it again to an agent that comes back.
"""

from collections.abc import Iterable, Mapping

from slurm_sns.scheduler.observation import JobState, ObservedJob
from slurm_sns.scheduler.ports import Agents
from slurm_sns.sharing.progress import SharingJob
from slurm_sns.wire.values import Change, RunId

#: Caps are told in steps: smaller differences are no reason for a change.
STEPS = 100


class CpuParts:
    """Tells the agents. Revisions grow with the time, so those of a later scheduler are higher."""

    def __init__(self, agents: Agents | None) -> None:
        self._agents = agents
        self._told: dict[tuple[str, RunId], tuple[int, float]] = {}
        self._revision = 0

    def tell(
        self,
        jobs: Iterable[ObservedJob],
        sharing: Mapping[int, SharingJob],
        shares: Mapping[int, float],
        threads: Mapping[str, int],
        now_s: float,
    ) -> None:
        """Tell the agents of the running jobs among these. `shares` are caps by job id: parts of what they need.

        `threads` are the threads of a core on each node that shares.
        """
        if self._agents is None:
            return
        wanted: dict[tuple[str, RunId], tuple[int, float]] = {}
        changes: dict[str, list[Change]] = {}
        self._revision = max(self._revision + 1, int(1000 * now_s))
        for job in jobs:
            if job.state is not JobState.RUNNING or job.id not in sharing:
                continue
            run, share = RunId(job.id, job.restarts), round(shares.get(job.id, 1.0) * STEPS) / STEPS or 1 / STEPS
            for name in job.allocated:
                cpus = sharing[job.id].cores * threads.get(name, 1)
                wanted[name, run] = cpus, share
                if self._told.get((name, run)) != (cpus, share):
                    change = Change(run, self._revision, job.ways, job.bandwidth_gbps, cpu_share=share, cpus=cpus)
                    changes.setdefault(name, []).append(change)
        self._told = wanted
        if changes:
            self._agents.change(changes)
