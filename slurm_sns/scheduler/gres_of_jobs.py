"""Ways and bandwidth that Slurm counts for a running job although no grant told its nodes of them. Pure.

A pass-through job may ask for them itself (--gres=llc:4), and an owner may overwrite the grant of a placed job. Slurm
keeps these resources from others either way, so the job is to have them: the scheduler tells the agents of its nodes,
as soon as they say that the job is there without any. So it does where an agent has found a job of whose grant it does
not know: the job's group may show ways that were only spare. An agent that waits for the scheduler's word which array
task a run is (active_runs) has the run's whole grant after that word.
"""

from collections.abc import Iterable, Mapping

from slurm_sns.scheduler.observation.observed import JobState, ObservedJob
from slurm_sns.wire.values import Change, NodeState, RunId

#: A grant has revision 0: what Slurm counts comes after it.
REVISION = 1


def ungranted(jobs: Iterable[ObservedJob], states: Mapping[str, NodeState]) -> dict[str, list[Change]]:
    """What the agent of each node is to give its jobs; `states` is what the agents say of their nodes."""
    without, is_found = set[tuple[str, RunId]](), set[tuple[str, RunId]]()
    for name, state in states.items():
        for there in state.jobs:
            if there.is_found:
                is_found.add((name, there.run))
            elif not (there.ways or there.bandwidth_gbps or there.awaits_task):
                without.add((name, there.run))
    if not (without or is_found):
        return {}
    found: dict[str, list[Change]] = {}
    for job in jobs:
        if job.state is not JobState.RUNNING:
            continue
        run, is_counted = RunId(job.id, job.restarts), job.ways or job.bandwidth_gbps
        for name in job.allocated:
            if (name, run) in is_found or (is_counted and (name, run) in without):
                found.setdefault(name, []).append(Change(run, REVISION, job.ways, job.bandwidth_gbps))
    return found
