"""What the runs on a node are to have now, from their grants, and what the scheduler is told of them. Pure."""

from collections.abc import Mapping, Sequence

from slurm_sns.node.agent.partition import JobNeeds
from slurm_sns.node.agent.runs_here import RunHere, RunsHere


def needs(
    here: RunsHere, cores: Mapping[int, Mapping[int, int]], ways_for_jobs: int, sampled_ways: int
) -> list[JobNeeds]:
    """What each run is to have, oldest first.

    `cores` are the cores of each job by cache domain, as far as they are known. `ways_for_jobs` is how many ways the
    jobs can have together, 0 where the cache cannot be partitioned. A run that is to be sampled, and is alone on the
    node, has all of them, and for the moment `sampled_ways` of them. A run whose nodes are its own has no more than
    there are: it was granted those of a node that keeps none back.
    """
    sampled = here.sampled
    found = []
    for run in sorted(here.runs, key=lambda each: each.number):
        is_sampled = sampled is run and ways_for_jobs > 0
        ways = min(run.ways, ways_for_jobs) if run.has_nodes_alone else run.ways
        found.append(
            JobNeeds(
                run.run.job_id,
                ways_for_jobs if is_sampled else ways,
                run.bandwidth_gbps,
                cores.get(run.run.job_id),
                run.number,
                sampled_ways if is_sampled else 0,
            )
        )
    return found


def why_shared(run: RunHere, ways: int, reasons: Sequence[str]) -> str:
    """Why a run has no ways of its own although it was promised some; empty if it has them, or was promised none.

    `ways` is what it has. The first of `reasons` that is not empty counts: those of the node, then those of the layout.
    """
    if ways:
        return ""
    if run.is_found:
        return "its prolog did not reach the agent"
    if run.why_no_grant or not (run.ways or run.samples):
        return run.why_no_grant
    return next(filter(None, reasons), "the node has not laid out its ways yet")
