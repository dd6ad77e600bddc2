"""Which runs are on a node, and what follows from what happens to them. Pure.

At most one run of a job is on a node. Every event may come twice, late, or not at all:

| event | what follows |
|---|---|
| prolog of a run that is here | nothing; if it was found without a prolog, it gets its grant now |
| prolog of a newer restart | the older run has ended without an epilog |
| prolog or epilog of an older restart | nothing |
| epilog of a run that is not here | nothing; an older restart of the job has ended, too |
| prolog with the grant of an array's task | the grant is kept until the controller names the run |
| change for a run that is not here | kept for its prolog |
| change of a revision that is not newer | nothing |
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace

from slurm_sns.task_ids import task_id
from slurm_sns.wire.grants import job_text
from slurm_sns.wire.values import ActiveRuns, Change, Grant, RunId

#: Why a run has nothing of its grant yet.
NOT_NAMED = "its grant is of an array's task, and the controller has not said which task the job is"
#: So many runs and changes are kept; more jobs than a node can have cores.
MOST_RUNS = 4096


@dataclass(frozen=True, slots=True)
class RunHere:
    """A run on the node. `number` is smaller for runs that came earlier; times are seconds since the node's boot.

    `why_no_grant` is empty where it has one, or where it was promised none. `is_whole`: its prolog reached an agent,
    and no boot came since. `is_found`: it was seen on the node without a prolog. `claim` is the grant of an array's
    task that it showed, until the controller says which task it is. `was_weighed`: it had `cpus` once, so weight and
    limit of its cgroup are the agent's to set.
    """

    run: RunId
    number: int
    began_s: float
    ways: int = 0
    bandwidth_gbps: int = 0
    cpu_share: float = 1.0
    cpus: int = 0
    has_nodes_alone: bool = False
    samples: bool = False
    revision: int = 0
    why_no_grant: str = ""
    was_alone: bool = True
    was_sampled: bool = False
    was_weighed: bool = False
    is_whole: bool = True
    is_found: bool = False
    claim: Grant | None = None


@dataclass(frozen=True, slots=True)
class RunsHere:
    """The runs of the node, oldest first, and changes for runs that have not come yet, oldest first."""

    runs: tuple[RunHere, ...] = ()
    early: tuple[Change, ...] = ()
    next_number: int = 1

    def of(self, job_id: int) -> RunHere | None:
        """The run of the job that is here."""
        return next((each for each in self.runs if each.run.job_id == job_id), None)

    def with_prolog(self, run: RunId, at_s: float, grant: Grant | None, why: str = "") -> "After":
        """A run begins; `grant` is its verified grant, `why` the reason for having none."""
        here = self.of(run.job_id)
        if here is not None and here.run.restarts > run.restarts:
            return After(self)
        if here is not None and here.run == run:
            return After(self._replaced(_granted(here, grant, why))) if here.is_found else After(self)
        begun = _granted(RunHere(run, self.next_number, at_s), grant, why)
        kept = [each for each in self.runs if each is not here]
        early = next((each for each in self.early if each.run == run), None)
        begun = begun if early is None else _changed(begun, early)
        left = tuple(each for each in self.early if each.run.job_id != run.job_id)
        after = replace(self, runs=(*kept[-MOST_RUNS + 1 :], begun), early=left, next_number=self.next_number + 1)
        return After(after._not_alone(), () if here is None else (replace(here, is_whole=False),))

    def with_epilog(self, run: RunId) -> "After":
        """A run ends."""
        here = self.of(run.job_id)
        if here is None or here.run.restarts > run.restarts:
            return After(self)
        ended = here if here.run == run else replace(here, is_whole=False)
        return After(self._without({run.job_id}), (ended,))

    def with_found(self, runs: Mapping[RunId, int], at_s: float) -> "RunsHere":
        """Runs that are on the node although no prolog told of them; a job of which a run is here is left as it is.

        `runs` gives the ways that each of them is known to have.
        """
        after = self
        for run, ways in runs.items():
            if after.of(run.job_id) is None and len(after.runs) < MOST_RUNS:
                found = RunHere(run, after.next_number, at_s, ways=ways, is_whole=False, is_found=True)
                after = replace(after, runs=(*after.runs, found), next_number=after.next_number + 1)
        return after._not_alone()

    def with_restarts(self, active: Iterable[RunId]) -> "RunsHere":
        """The controller names the runs that are active here: a run that was found is the named one of its job."""
        if not any(each.is_found for each in self.runs):
            return self
        named = {run.job_id: run for run in active}
        known = [
            replace(each, run=named.get(each.run.job_id, each.run)) if each.is_found else each for each in self.runs
        ]
        return replace(self, runs=tuple(known))

    def with_named(self, active: ActiveRuns) -> "RunsHere":
        """The controller names the runs that are active here, and the array tasks among them: claims are settled."""
        if not any(each.claim for each in self.runs):
            return self
        tasks = {each.job_id: task_id(each.array_id, each.task) for each in active.tasks}
        known = [
            _settled(each, each.claim, tasks.get(each.run.job_id, each.run.job_id))
            if each.claim and each.run in active.runs
            else each
            for each in self.runs
        ]
        return replace(self, runs=tuple(known))

    def without_vanished(self, jobs: Iterable[int]) -> "After":
        """The runs of these jobs have gone without an epilog."""
        gone = set(jobs)
        ended = tuple(replace(each, is_whole=False) for each in self.runs if each.run.job_id in gone)
        return After(self._without(gone), ended)

    def with_change(self, change: Change) -> "RunsHere":
        """The controller has decided something else for a run."""
        here = self.of(change.run.job_id)
        if here is not None and here.run == change.run:
            return self._replaced(_changed(here, change)) if change.revision > here.revision else self
        if here is not None and here.run.restarts > change.run.restarts:
            return self
        known = [each for each in self.early if each.run == change.run]
        if any(each.revision >= change.revision for each in known):
            return self
        kept = [each for each in self.early if each.run != change.run]
        return replace(self, early=(*kept[-MOST_RUNS + 1 :], change))

    def with_sampled(self, job_id: int) -> "RunsHere":
        """The ways of this job have been changed to measure it."""
        here = self.of(job_id)
        return self if here is None or here.was_sampled else self._replaced(replace(here, was_sampled=True))

    def after_a_gap(self) -> "RunsHere":
        """No agent was here for a while: another job may have come and gone, unless the nodes are the run's own."""
        return replace(
            self, runs=tuple(replace(each, was_alone=each.was_alone and each.has_nodes_alone) for each in self.runs)
        )

    @property
    def sampled(self) -> RunHere | None:
        """The run whose ways are to be changed now: it wants that, and it is alone on the node."""
        return self.runs[0] if len(self.runs) == 1 and self.runs[0].samples else None

    def _replaced(self, run: RunHere) -> "RunsHere":
        return replace(self, runs=tuple(run if each.run.job_id == run.run.job_id else each for each in self.runs))

    def _without(self, gone: Set[int]) -> "RunsHere":
        return replace(self, runs=tuple(each for each in self.runs if each.run.job_id not in gone))

    def _not_alone(self) -> "RunsHere":
        if len(self.runs) == 1:
            return self
        return replace(self, runs=tuple(replace(each, was_alone=False) for each in self.runs))


@dataclass(frozen=True, slots=True)
class After:
    """The runs of the node after an event, and those that it has ended."""

    runs: RunsHere
    ended: tuple[RunHere, ...] = ()


def _granted(run: RunHere, grant: Grant | None, why: str) -> RunHere:
    if grant is None:
        return replace(run, why_no_grant=why, is_found=False)
    if grant.run != run.run:
        return replace(run, why_no_grant=NOT_NAMED, is_found=False, claim=grant)
    return replace(_decided(run, grant), has_nodes_alone=grant.has_nodes_alone)


def _settled(run: RunHere, claim: Grant, job_id: int) -> RunHere:
    """The run, which is the job or the array task `job_id`, with what it claimed if that is so.

    What the controller has changed since the prolog stays.
    """
    run = replace(run, claim=None)
    if claim.run.job_id != job_id:
        why = f"the grant is of another job: {job_text(claim.run.job_id)}, not {job_text(job_id)}"
        return run if run.revision else replace(run, why_no_grant=why)
    granted = run if run.revision else _decided(run, claim)
    return replace(granted, has_nodes_alone=claim.has_nodes_alone)


def _changed(run: RunHere, change: Change) -> RunHere:
    return replace(
        _decided(run, change),
        revision=change.revision,
        cpu_share=change.cpu_share,
        cpus=change.cpus,
        was_weighed=run.was_weighed or change.cpus > 0,
    )


def _decided(run: RunHere, what: Grant | Change) -> RunHere:
    """The run with what the scheduler has decided for it, at its placement or since."""
    return replace(
        run,
        ways=what.ways,
        bandwidth_gbps=what.bandwidth_gbps,
        samples=what.samples,
        why_no_grant="",
        is_found=False,
    )
