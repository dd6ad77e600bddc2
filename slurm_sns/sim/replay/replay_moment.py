"""The snapshot that a cycle of a replay planned on, made again from what the replay has written down.

So a look ahead begins at any moment of a replay without running it again, and a replay need not stop for it.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from slurm_sns.model import ActiveJob, ActiveState, Job, Project, Resources, Snapshot
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.sim.run import TraceRun


class ReplayMoments:
    """The moments of one replay of jobs of whole cores. Jobs are called by their places in the trace."""

    def __init__(self, node_arrays: NodeArrays, run: TraceRun, shares: Mapping[str, float] | None = None) -> None:
        self._node_arrays, self._run = node_arrays, run
        self._shares = shares or {}
        self._jobs: dict[int, Job] = {}
        self._active: dict[int, ActiveJob] = {}

    def snapshot(self, at_s: int, age_limit_s: int | None = None) -> Snapshot:
        """What a cycle at this moment planned on: what ends by then has ended, and nothing has started yet then.

        Jobs that have waited longer than the age limit are over-aged. Expected are run times and ends by limits.
        """
        run, nodes = self._run, self._node_arrays
        submitted = int(np.searchsorted(run.trace.submit, at_s, "right"))
        start, end = run.start[:submitted], run.end[:submitted]
        active = [self._active_job(at) for at in np.flatnonzero((start < at_s) & (end > at_s)).tolist()]
        waiting = [self._job(at) for at in np.flatnonzero(start >= at_s).tolist()]
        if age_limit_s is not None:
            waiting = [_aged(job) if at_s - job.submit_s > age_limit_s else job for job in waiting]
            waiting.sort(key=lambda job: not job.over_aged)
        free = nodes.capacity.copy()
        columns = {name: at for at, name in enumerate(nodes.names)}
        used: dict[str, Resources] = {}
        for each in active:
            held = np.array(nodes.demand(each.demand), np.int64)
            for name in each.nodes:
                free[:, columns[name]] -= held
                used[each.project] = used.get(each.project, Resources(0, 0)).plus(each.demand)
        names = {*used, *(job.project for job in waiting)}
        return Snapshot(
            nodes=tuple(nodes.node(at, nodes.resources(amounts)) for at, amounts in enumerate(free.T.tolist())),
            waiting=tuple(waiting),
            projects={each: Project(self._shares.get(each, 1.0), used.get(each, Resources(0, 0))) for each in names},
            now_s=at_s,
            active=tuple(active),
        )

    def _job(self, at: int) -> Job:
        if at not in self._jobs:
            trace = self._run.trace
            kind, allowed = int(trace.kind[at]), trace.allowed_nodes
            submit_s = trace.submit[at].item()
            self._jobs[at] = Job(
                id=at,
                submit_s=submit_s,
                alternatives=trace.choices[kind],
                order=(submit_s,),  # between jobs of one moment a replay decides by their projects' names
                project=trace.projects[int(trace.project[at])],
                heuristic=trace.kinds[kind][3] or None,
                allowed=None if allowed is None else allowed[kind],
                expected_run_s=trace.expected[at].item() or None,
            )
        return self._jobs[at]

    def _active_job(self, at: int) -> ActiveJob:
        if at not in self._active:
            run, trace = self._run, self._run.trace
            limit_s = trace.expected[at].item()
            self._active[at] = ActiveJob(
                at,
                ActiveState.RUNNING,
                tuple(self._node_arrays.names[node] for node in run.nodes(at)),
                run.alternative(at).demand,
                since_s=run.start[at].item(),
                submit_s=trace.submit[at].item(),
                project=trace.projects[int(trace.project[at])],
                expected_end_s=run.start[at].item() + limit_s if limit_s else None,
            )
        return self._active[at]


def _aged(job: Job) -> Job:
    return replace(job, over_aged=True)
