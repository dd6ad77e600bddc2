"""Tells the agents which runs are active on their nodes, by what Slurm shows: running, suspended and completing ones.

An agent that sees no process of a run any more keeps what the run has as long as the scheduler names it. A grant of an
array's task holds for the job of which the scheduler says that it is this task.
"""

from collections.abc import Iterable, Mapping

from slurm_sns.scheduler.observation.observed import ObservedJob
from slurm_sns.scheduler.ports import Agents
from slurm_sns.wire.values import ActiveRuns, ArrayTask, RunId


class ActiveRunsTold:
    """Tells the agents what has changed since the last cycle."""

    def __init__(self, agents: Agents) -> None:
        self._agents = agents
        self._told: list[tuple[RunId, tuple[str, ...]]] | None = None

    def tell(self, jobs: Iterable[ObservedJob]) -> None:
        """Tell the agents of these jobs of Slurm's, unless they are as they were."""
        active = [job for job in jobs if job.state.occupies_nodes]
        runs = [(RunId(job.id, job.restarts), job.allocated) for job in active]
        if runs == self._told:
            return
        tasks = {job.id: ArrayTask(job.id, *job.task) for job in active if job.task is not None}
        self._agents.show_active(
            {
                node: ActiveRuns(there, frozenset(tasks[run.job_id] for run in there if run.job_id in tasks))
                for node, there in runs_by_node(runs).items()
            }
        )
        self._told = runs


def runs_by_node(active: Iterable[tuple[RunId, tuple[str, ...]]]) -> Mapping[str, frozenset[RunId]]:
    """The active runs on each node, from the nodes of each run."""
    found: dict[str, set[RunId]] = {}
    for run, nodes in active:
        for name in nodes:
            found.setdefault(name, set()).add(run)
    return {name: frozenset(runs) for name, runs in found.items()}
