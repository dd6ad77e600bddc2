"""What `sns agent --show` shows: the state of the node as the controller is told it, and what was measured so far."""

from typing import Any

from slurm_sns.node.agent.in_force import InForce
from slurm_sns.node.agent.runs_here import RunsHere
from slurm_sns.node.agent.sampling import points
from slurm_sns.wire.values import NodeState


def shown(
    state: NodeState, here: RunsHere, in_force: InForce, now_s: float, *, is_connected: bool, reports: int
) -> dict[str, Any]:
    """The answer as JSON. `state` is of the runs `here`, `now_s` seconds since the node's boot; `reports` wait."""
    jobs, sums = [], in_force.measuring.sums()
    for there, run in zip(state.jobs, here.runs, strict=True):
        job_id = run.run.job_id
        jobs.append(
            {
                "job": job_id,
                "restarts": run.run.restarts,
                "here_s": round(now_s - run.began_s, 1),
                "ways": there.ways,
                "bandwidth_gbps": there.bandwidth_gbps,
                "granted_ways": run.ways,
                "is_sampled": there.is_sampled,
                "threads": len(in_force.tasks[job_id].threads) if job_id in in_force.tasks else 0,
                "why_shared": there.why_shared,
                "points": [
                    {"ways": each.ways, "seconds": each.seconds, "ipc": each.ipc, "gbps": each.bandwidth_gbps}
                    for each in points(sums.get(job_id, {}))
                ],
            }
        )
    return {
        "node": state.facts.node,
        "mode": state.facts.mode,
        "ways": state.facts.ways,
        "why_unpartitioned": state.facts.why_unpartitioned,
        "trouble": state.trouble,
        "is_connected": is_connected,
        "reports": reports,
        "jobs": jobs,
    }
