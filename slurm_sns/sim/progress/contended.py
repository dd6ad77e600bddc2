"""Progress under contention: the end of a running job changes whenever a neighbour starts or ends.

A job's work is the seconds that it runs alone at its scale with all ways. It advances at the speed that `contention`
gives it on the slowest of its nodes, and ends after the rest of its work divided by that speed. The integral of the
speed over its run is its work, apart from the rounding of its end to a whole second.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from slurm_sns.model import Seconds
from slurm_sns.policies.placement.node_arrays import BANDWIDTH, WAYS, NodeArrays
from slurm_sns.policies.spread_n_share.scales import run_at
from slurm_sns.sim.progress.authors_model import AuthorsModel
from slurm_sns.sim.progress.contention import Occupant, SharedNode, speeds
from slurm_sns.sim.progress.progress import PlacedRun
from slurm_sns.sim.trace import SHORTEST_RUN_S, half_up


@dataclass(slots=True)
class _Running:
    """A job with a profile: what is left of its work at `since_s`, and its speed on each of its nodes."""

    placed: PlacedRun
    occupant: Occupant
    left_s: float
    since_s: Seconds
    speed: float = 1.0
    by_node: dict[int, float] = field(default_factory=dict)

    def advance(self, now_s: Seconds) -> None:
        """Subtract the work that was done since `since_s`."""
        self.left_s = max(0.0, self.left_s - self.speed * float(now_s - self.since_s))
        self.since_s = now_s


class Contended:
    """The progress of the jobs of one simulation."""

    def __init__(
        self, node_arrays: NodeArrays, model: AuthorsModel, *, is_partitioned: bool, gives_spare: bool = True
    ) -> None:
        """Start without jobs. `is_partitioned`: each job has its own ways (sns, combined); otherwise all share them."""
        self._model = model
        self._nodes = [
            SharedNode.of(int(ways), float(bandwidth), is_partitioned=is_partitioned, gives_spare=gives_spare)
            for ways, bandwidth in zip(node_arrays.capacity[WAYS], node_arrays.capacity[BANDWIDTH], strict=True)
        ]
        self._running: dict[int, _Running] = {}
        self._on: list[dict[int, _Running]] = [{} for _ in self._nodes]  # by job, oldest first

    def start(self, placed: PlacedRun) -> Iterable[PlacedRun]:
        """The job with its end, and the neighbours whose ends change."""
        job, alternative, now_s = placed.job, placed.alternative, placed.start_s
        work_s = self._model.seconds(job, alternative.scale)
        runs = self._model.runs.get(job.id)
        if not runs:
            return (replace(placed, end_s=now_s + max(half_up(work_s), SHORTEST_RUN_S)),)
        own_ways = (
            min(self._nodes[node].ways for node in placed.nodes) if alternative.exclusive else alternative.demand.ways
        )
        occupant = Occupant(run_at(runs, alternative.scale), alternative.demand.cores, own_ways)
        mine = self._running[job.id] = _Running(placed, occupant, work_s, now_s)
        for node in placed.nodes.tolist():
            self._on[node][job.id] = mine
        return self._timed_anew(placed, now_s)

    def finish(self, placed: PlacedRun) -> Iterable[PlacedRun]:
        """The remaining neighbours whose ends change."""
        if self._running.pop(placed.job.id, None) is None:
            return ()
        for node in placed.nodes.tolist():
            del self._on[node][placed.job.id]
        return self._timed_anew(placed, placed.end_s)

    def _timed_anew(self, cause: PlacedRun, now_s: Seconds) -> list[PlacedRun]:
        """The jobs on the nodes of `cause` whose ends change, with their new ends."""
        disturbed: dict[int, _Running] = {}
        for node in cause.nodes.tolist():
            jobs = self._on[node]
            if not jobs:
                continue
            occupants = tuple(job.occupant for job in jobs.values())
            for (job_id, job), speed in zip(jobs.items(), speeds(occupants, self._nodes[node]), strict=True):
                if job.by_node.get(node) != speed:
                    job.by_node[node] = speed
                    disturbed[job_id] = job
        return [job.placed for job in disturbed.values() if _retime(job, now_s)]


def _retime(job: _Running, now_s: Seconds) -> bool:
    """Update the job's speed and end; return whether its end has changed."""
    is_new = job.placed.start_s == now_s
    speed = min(job.by_node.values())
    if not is_new and (speed == job.speed or job.placed.end_s <= now_s):
        return False
    job.advance(now_s)
    job.speed = speed
    end_s = max(half_up(float(now_s) + job.left_s / speed), now_s + SHORTEST_RUN_S)
    if end_s == job.placed.end_s:
        return False
    job.placed = replace(job.placed, end_s=end_s)
    return True
