"""Which runs are on the node: by prologs and epilogs, by what the controller says, and by what is seen there.

runs_here.py says what follows from each of these. Seen are the jobs that are here without a prolog, and those that have
gone without an epilog. A run that has ended is reported before it is forgotten.
"""

from collections.abc import Collection, Iterable, Sequence

from slurm_sns.errors import SnsError
from slurm_sns.node.agent.controller_link import ControllerLink
from slurm_sns.node.agent.in_force import InForce
from slurm_sns.node.agent.inbox import JobEvent
from slurm_sns.node.agent.ports import AgentPorts, AgentSettings
from slurm_sns.node.agent.runs_here import RunHere, RunsHere
from slurm_sns.node.agent.state_file import Remembered
from slurm_sns.node_lists import NodeLists
from slurm_sns.wire.grants import grant_in
from slurm_sns.wire.values import ActiveRuns, Change, Grant, RunId


class LastSeen:
    """What was seen, in seconds since the node's boot.

    A job has gone when it had no slurmstepd for `after_s` and the controller does not say that it is active here.
    """

    def __init__(self, after_s: float) -> None:
        self._after_s = after_s
        #: When each job that is here had a slurmstepd last, or began.
        self.seen_s: dict[int, float] = {}
        self._ended_s: dict[int, float] = {}
        #: The runs that are active here, as the controller says; None while it says nothing.
        self.active: frozenset[RunId] | None = None

    def begin(self, job_id: int, now_s: float) -> None:
        """A run of the job begins here, or an earlier agent has left it."""
        self.seen_s[job_id] = now_s
        self._ended_s.pop(job_id, None)

    def end(self, job_id: int, now_s: float) -> None:
        """A run of the job has ended: its slurmstepd may be there for a while longer."""
        self._ended_s[job_id] = now_s

    def strangers(self, there: Collection[int], here: RunsHere, now_s: float) -> list[RunId]:
        """Note that these jobs have a slurmstepd now; return the runs among them of which no prolog told.

        The restart count is that of the run that the controller calls active, or 0.
        """
        self._ended_s = {job: at_s for job, at_s in self._ended_s.items() if now_s - at_s < self._after_s}
        self.seen_s |= dict.fromkeys(there, now_s)
        restarts = {each.job_id: each.restarts for each in self.active or ()}
        unknown = sorted(job for job in set(there) - self._ended_s.keys() if here.of(job) is None)
        return [RunId(job, restarts.get(job, 0)) for job in unknown]

    def vanished(self, here: RunsHere, now_s: float) -> frozenset[int]:
        """The jobs whose runs have gone although no epilog said so."""
        silent = [each.run for each in here.runs if now_s - self.seen_s.get(each.run.job_id, now_s) >= self._after_s]
        return frozenset(run.job_id for run in silent if run not in (self.active or ()))

    def keep(self, jobs: Iterable[int]) -> None:
        """Forget all jobs but these, which are here."""
        known = set(jobs)
        self.seen_s = {job: at_s for job, at_s in self.seen_s.items() if job in known}


class Presence:
    """The runs that are `here`. What a change means for the tree is for the caller to bring into force."""

    def __init__(
        self, settings: AgentSettings, ports: AgentPorts, in_force: InForce, controller: ControllerLink
    ) -> None:
        self._settings, self._ports = settings, ports
        self._in_force, self._controller = in_force, controller
        self._lists = NodeLists()
        self.last_seen = LastSeen(settings.vanished_after_s)
        self.here = RunsHere()
        self._active = ActiveRuns()

    def restore(self, left: Remembered, now_s: float) -> None:
        """Take up the runs that an earlier agent has left. Those of an earlier boot have ended with it."""
        if left.boot == self._ports.boot:
            # Killed between a report and the state: the run has ended.
            reported = {report.key for report in self._ports.spool.reports()}
            ended = [each.run.job_id for each in left.runs.runs if (*each.run, self._settings.node) in reported]
            self.here = left.runs.after_a_gap().without_vanished(ended).runs
            sums = {job: sums for job, sums in left.sums.items() if self.here.of(job) is not None}
            self._in_force.measuring.restore(sums)
            for each in self.here.runs:
                self.last_seen.begin(each.run.job_id, now_s)
        else:
            for run in left.runs.runs:
                ran_s = max(0.0, left.at_s - run.began_s)
                self._controller.add(run, ran_s, left.sums.get(run.run.job_id, {}), is_whole=False)

    def begin(self, event: JobEvent) -> bool:
        """A prolog; True if a run has begun, or has a grant now."""
        grant, why = self._grant(event)
        after = self.here.with_prolog(event.run, self._ports.clock.steady(), grant, why)
        if after.runs == self.here:
            return False
        self._finish(after.ended)
        self.here = after.runs.with_named(self._active)
        self.last_seen.begin(event.run.job_id, self._ports.clock.steady())
        return True

    def end(self, run: RunId, at_s: float) -> bool:
        """An epilog, which came at this moment (steady seconds); True if a run has ended."""
        after = self.here.with_epilog(run)
        self._finish(after.ended, at_s)
        self.here = after.runs
        self.last_seen.end(run.job_id, self._ports.clock.steady())
        return bool(after.ended)

    def name(self, active: ActiveRuns) -> bool:
        """The controller names the runs that are active here; True if one of them has its grant since."""
        self._active, self.last_seen.active = active, active.runs
        before = self.here.with_restarts(active.runs)
        self.here = before.with_named(active)
        return self.here.runs != before.runs

    def change(self, change: Change) -> bool:
        """The controller has decided something else for a run; True if that run is here."""
        before = self.here
        self.here = before.with_change(change)
        return self.here.runs != before.runs

    def note_sampled(self) -> None:
        """The ways of the run that is to be sampled have been changed."""
        if self.here.sampled is not None:
            self.here = self.here.with_sampled(self.here.sampled.run.job_id)

    def look(self, now_s: float) -> bool:
        """Find runs that no prolog told of, and miss those whose epilog was never called; True if there are any."""
        there = frozenset(self._ports.slurmstepds())
        if not self._controller.is_connected:
            self.last_seen.active = None  # the controller says it again when it is back
        strangers = self.last_seen.strangers(there, self.here, now_s)
        found = {run: self._ports.tree.ways_in_tree(run.job_id) for run in strangers}
        before, self.here = self.here, self.here.with_found(found, now_s)
        after = self.here.without_vanished(self.last_seen.vanished(self.here, now_s))
        for each in after.ended:
            self._ports.log(f"job {each.run.job_id} has gone without an epilog")
        self._finish(after.ended)
        self.here = after.runs
        self.last_seen.keep(each.run.job_id for each in self.here.runs)
        return self.here.runs != before.runs

    def _finish(self, ended: Sequence[RunHere], at_s: float | None = None) -> None:
        """Report runs that have ended, and forget what was found of them."""
        now_s = self._ports.clock.steady() if at_s is None else at_s
        for run in ended:
            sums = self._in_force.measuring.finish(run.run.job_id)
            self._controller.add(run, max(0.0, now_s - run.began_s), sums, is_whole=run.is_whole)
            self.last_seen.end(run.run.job_id, self._ports.clock.steady())
        self._in_force.forget([each.run.job_id for each in ended])

    def _grant(self, event: JobEvent) -> tuple[Grant | None, str]:
        """The grant in the job's `Extra`, or why it has none; both empty if none was promised."""
        token = grant_in(event.extra)
        if token is None:
            return None, ""
        try:
            return self._ports.verify(token, event.run, self._lists.names(event.nodes)), ""
        except SnsError as problem:
            self._ports.log(f"job {event.run.job_id}: its grant does not count: {problem}")
            return None, str(problem)
