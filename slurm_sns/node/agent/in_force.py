"""What the runs of a node are to have now, as they were granted it or told; how it is brought into force and counted.

It is brought into force in the tree and in the cgroups. Counting and changing belong together: the intervals of all
runs end before ways are changed, and begin after it.

Sampling: Spread-n-Share (SC'19), section 5.1: 2, 4, 8 and all ways, 5 s each, in turn over the whole run. The turn
follows the wall clock, so that all nodes of a run change together without talking to each other.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from math import floor
from typing import NamedTuple

from slurm_sns.node.agent.ports import AgentPorts, AgentSettings
from slurm_sns.node.agent.run_meters import RunMeters
from slurm_sns.node.agent.runs_here import RunHere, RunsHere
from slurm_sns.node.agent.tasks_of_job import Tasks
from slurm_sns.node.agent.tree import JobNeeds
from slurm_sns.node.cgroups import CgroupError, Cgroups
from slurm_sns.wire.values import RunId


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


def turns(sample_ways: Sequence[int], all_ways: int, least_ways: int = 1) -> tuple[int, ...]:
    """The numbers of ways to sample on a cache of which a job can have `all_ways`, each once; the last are all."""
    fewer = {max(ways, least_ways) for ways in sample_ways}
    return (*sorted(ways for ways in fewer if ways < all_ways), all_ways)


def ways_at(now_s: float, sample_s: float, turn: Sequence[int]) -> int:
    """The number of ways at this moment; `now_s` are Unix seconds, `sample_s` is how long each turn takes."""
    return turn[floor(now_s / sample_s) % len(turn)]


def next_turn_s(now_s: float, sample_s: float) -> float:
    """In how many seconds the next turn begins; more than 0."""
    return (floor(now_s / sample_s) + 1) * sample_s - now_s


class CpuTime(NamedTuple):
    """The CPUs by which a run is weighed, 0 if it is not, and the share of their time that it has at most."""

    cpus: int = 0
    share: float = 1.0


class CpuShares:
    """The weights and limits of CPU time that runs have in their cgroups.

    What is refused is said once for each job, and tried again.
    """

    def __init__(self, cgroups: Cgroups | None, log: Callable[[str], None]) -> None:
        self._cgroups, self._log = cgroups, log
        self._said: dict[int, str] = {}
        #: What is in force, by run.
        self.of: dict[RunId, CpuTime] = {}

    def bring_about(self, here: Sequence[RunHere], *, caps: bool, anew: bool) -> None:
        """Let the runs that are here have their CPU time; without `caps` each share counts as 1.

        With `anew` what is in force is set again, and threads of new steps join: a job's cgroup goes with its last step
        and comes with the next one.
        """
        if self._cgroups is None:
            return
        weighed, had_some = [run for run in here if run.was_weighed], bool(self.of)
        self.of = {run.run: self.of[run.run] for run in weighed if run.run in self.of}
        for run in weighed:
            wanted = CpuTime(run.cpus, run.cpu_share if caps else 1.0) if run.cpus else CpuTime()
            if anew or self.of.get(run.run) != wanted:
                with self._saying(run.run.job_id, f"its CPU share of {wanted.share:g} is not in force"):
                    self._set(self._cgroups, run.run, wanted)
        if weighed or had_some or anew:
            self._tidy(self._cgroups, {run.run.job_id for run in here}, anew=anew)

    def _set(self, cgroups: Cgroups, run: RunId, wanted: CpuTime) -> None:
        cgroup = cgroups.provide(run.job_id)
        if cgroup is None:
            return  # no step of it is running
        self.of.pop(run, None)
        if cgroups.set_weight(cgroup, wanted.cpus) and (
            cgroups.set_share(cgroup, wanted.share, wanted.cpus) if wanted.cpus else cgroups.lift(cgroup)
        ):
            self.of[run] = wanted

    def _tidy(self, cgroups: Cgroups, jobs: Set[int], *, anew: bool) -> None:
        """Remove what was made for jobs that have ended, and weigh users by the others."""
        with self._saying(0, "the CPU time of users is not divided by what their jobs asked for"):
            ended = cgroups.own() - jobs
            for job_id in sorted(ended):
                # Right after its epilog a thread may still be ending.
                with self._saying(job_id, "the cgroup of its CPU time stays") if anew else suppress(CgroupError):
                    cgroups.remove(job_id)
            if self.of:
                cgroups.weigh_users({run.job_id: time.cpus for run, time in self.of.items() if time.cpus})
            self._said = {job_id: why for job_id, why in self._said.items() if job_id in (0, *jobs, *ended)}

    @contextmanager
    def _saying(self, job_id: int, what: str) -> Iterator[None]:
        """Log once that the kernel refuses this to the job (0: to all)."""
        try:
            yield
        except CgroupError as problem:
            if self._said.get(job_id) != str(problem):
                self._log(f"job {job_id}: {what}: {problem}" if job_id else f"{what}: {problem}")
            self._said[job_id] = str(problem)
        else:
            self._said.pop(job_id, None)


class InForce:
    """The runs' ways, bandwidth and parts of the CPU, their threads and their counters, which are opened at once.

    The methods get the runs that are here as `here`.
    """

    def __init__(self, settings: AgentSettings, ports: AgentPorts) -> None:
        self._settings, self._ports, self._tree = settings, ports, ports.tree
        self.measuring = RunMeters(ports.counters())
        self._shares = CpuShares(ports.cgroups, ports.log)
        #: What was found last of each job: its tasks; its cores by cache domain, empty if they are not known.
        self.tasks: dict[int, Tasks] = {}
        self.cores: dict[int, Mapping[int, int]] = {}
        #: The ways that the sampled run has; 0 if none is sampled.
        self.sampled_ways = 0

    def bring_about(self, here: RunsHere) -> bool:
        """Bring into force what the runs are to have now, and end their intervals; False if the tree refuses it.

        Where it does not, `count` is to follow.
        """
        self.measuring.end_intervals()
        self.sampled_ways = self.turn(here)
        cores = {job_id: known for job_id, known in self.cores.items() if known}
        return self._tree.bring_about(needs(here, cores, self._tree.ways_for_jobs(), self.sampled_ways))

    def count(self, here: RunsHere) -> None:
        """Begin the intervals of the runs with what they have now, and place the threads of groups that are new."""
        for run in here.runs:
            job_id = run.run.job_id
            tasks = self.tasks.get(job_id)
            if tasks is None:
                continue
            if job_id in self._tree.made:
                self._tree.place(job_id, tasks.threads)
                self.measuring.uncount(job_id)
            self._begin_interval(job_id, tasks, here)

    def find(self, jobs: Collection[int]) -> Mapping[int, Tasks]:
        """Find the tasks of these jobs, and their cores; the result has the jobs that have threads."""
        found = {job_id: tasks for job_id, tasks in self._ports.tasks.of(jobs).items() if tasks.threads}
        for job_id, tasks in found.items():
            self.tasks[job_id] = tasks
            self.cores[job_id] = self._tree.known_cores(tasks.cpus, self._ports.cores)
        return found

    def join(self, found: Mapping[int, Tasks], here: RunsHere) -> None:
        """Put the threads of these jobs where they belong, and count them."""
        for job_id, tasks in found.items():
            self.measuring.end_interval(job_id)
            if not self._settings.observes:
                self._tree.place(job_id, tasks.threads)
            self._begin_interval(job_id, tasks, here)

    def share(self, here: RunsHere, *, caps: bool, anew: bool) -> None:
        """Let the runs have their CPU time, as `CpuShares.bring_about`."""
        if not self._settings.observes:
            self._shares.bring_about(here.runs, caps=caps, anew=anew)

    def cpu_time(self, run: RunId) -> CpuTime:
        """The CPU time of the run that is in force."""
        return self._shares.of.get(run, CpuTime())

    def forget(self, jobs: Collection[int]) -> None:
        """These jobs have ended."""
        for job_id in jobs:
            self.tasks.pop(job_id, None)
            self.cores.pop(job_id, None)

    def turn(self, here: RunsHere) -> int:
        """The number of ways that a sampled run is to have now; 0 if none is sampled, or nothing can be partitioned."""
        all_ways = self._tree.ways_for_jobs() if here.sampled is not None else 0
        if not all_ways:
            return 0
        turn = turns(self._settings.sample_ways, all_ways, self._tree.least_ways())
        return ways_at(self._ports.clock.now(), self._settings.sample_s, turn)

    def _begin_interval(self, job_id: int, tasks: Tasks, here: RunsHere) -> None:
        """Count the job with the ways that it has for itself now; alone in the shared group it has those."""
        is_alone = len(here.runs) == 1
        domains = tuple(sorted(self.cores.get(job_id, {}))) or None
        self.measuring.count(job_id, tasks, group=self._tree.group_of(job_id), domains=domains, is_alone=is_alone)
        own = self._tree.has_ways(job_id)
        ways = own or (self._tree.shared_ways() if is_alone else 0)
        self.measuring.begin_interval(job_id, ways, is_alone=is_alone)
