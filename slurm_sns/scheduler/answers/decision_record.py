"""The decision record of each cycle. It only explains, so the scheduler goes on when it cannot be written."""

from collections.abc import Mapping
from dataclasses import replace

from slurm_sns.errors import SnsError
from slurm_sns.log import Log, Outage
from slurm_sns.model import Plan
from slurm_sns.scheduler.ports import Decisions
from slurm_sns.scheduler.snapshot.situation import Situation


class DecisionRecord:
    """Writes what cycles have decided. In the modes that send nothing (`sends` is False) a start is written once."""

    def __init__(self, decisions: Decisions, log: Log, *, sends: bool) -> None:
        self._decisions, self._sends = decisions, sends
        self._last_starts: Mapping[int, tuple[str, ...]] = {}
        self._outage = Outage(log)

    @property
    def trouble(self) -> str:
        """What keeps it from being written now; empty when nothing does."""
        return self._outage.now

    def add(self, at_s: float, situation: Situation, plan: Plan, notes: Mapping[int, str]) -> None:
        """Write the plan of a cycle that began then, as it was carried out; `notes` say what was done to other jobs."""
        if not self._sends:
            plan = self._new_starts(plan)
        if not plan.starts and not notes:
            return
        concerned = {start.job_id for start in plan.starts} | notes.keys()
        jobs = {job.id: job for job in (*situation.observed, *situation.tasks.values()) if job.id in concerned}
        try:
            self._decisions.record(
                at_s,
                situation.snapshot,
                plan,
                notes,
                owners={job_id: job.user_id for job_id, job in jobs.items()},
                explanations=situation.explanations,
                tasks={job_id: job.task for job_id, job in jobs.items() if job.task is not None},
                repeated=situation.repeated,
            )
            self._outage.over(at_s)
        except SnsError as problem:
            self._outage.met(str(problem), at_s)

    def _new_starts(self, plan: Plan) -> Plan:
        """The plan with only the starts that the last plan did not have: unsent starts come again every cycle."""
        starts = {start.job_id: start.nodes for start in plan.starts}
        new = tuple(start for start in plan.starts if self._last_starts.get(start.job_id) != start.nodes)
        self._last_starts = starts
        return replace(plan, actions=new)
