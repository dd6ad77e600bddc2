"""A small Slurm whose nodes have cache ways and agents; its jobs run as programs whose true profiles are known.

Emulated are the nodes and their agents: an agent takes a run's grant from the job's Extra, changes its ways if that
says so, and reports what the program truly does with them. A job that is not alone runs as fast as with its own ways.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fake_slurm import FakeSlurm, Site
from live import ENFORCE

from slurm_sns.errors import Unreachable
from slurm_sns.model import NOTHING
from slurm_sns.policies.profile import Program, Run
from slurm_sns.policies.spread_n_share.drift import DriftParameters
from slurm_sns.policies.spread_n_share.exploration import Exploration
from slurm_sns.policies.spread_n_share.node_choice import spread_n_share
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters
from slurm_sns.scheduler.learning.learner import Learner
from slurm_sns.scheduler.learning.values import LearningChanges, LearningRules, LearningState
from slurm_sns.scheduler.loop import Scheduler
from slurm_sns.scheduler.observation import JobState, Observation
from slurm_sns.scheduler.snapshot.spreading import KnownAlternatives, SpreadRules
from slurm_sns.sim.profiling.learning_cluster import SAMPLING_COSTS, sampled
from slurm_sns.task_ids import task_of
from slurm_sns.wire.grants import grant_in
from slurm_sns.wire.values import Grant, NodeFacts, NodeState, Point, RunId, RunReport

WAYS, GBPS = 20, 118
CORES, MEMORY_MB = 28, 128_000
#: No ways are kept for jobs without profile, so that a sampled run has all ways of the simulation's nodes.
SNS = SpreadingParameters(shared_ways=0)
SAMPLED_WAYS = (2, 4, 8)


@dataclass
class EmulatedAgents:
    """The agents of all nodes, and the controller's end of their channel (the Agents port)."""

    truth: Mapping[str, Program]
    nodes: tuple[str, ...]
    waiting: list[RunReport] = field(default_factory=list)
    acknowledged: list = field(default_factory=list)
    away: set[str] = field(default_factory=set)
    facts: dict[str, dict] = field(default_factory=dict)
    active: list = field(default_factory=list)
    changes: list = field(default_factory=list)
    changed: dict[str, float] = field(default_factory=dict)  # program -> by what factor its IPC and time are off
    doubles: bool = False  # each report comes twice, and again after it was acknowledged

    def states(self) -> dict[str, NodeState]:
        able = {"ways": WAYS, "jobs_with_ways": 15, "measures_ipc": True, "measures_bandwidth": True}
        return {
            name: NodeState(0.0, NodeFacts(name, **{**able, **self.facts.get(name, {})}))
            for name in self.nodes
            if name not in self.away
        }

    def reports(self) -> tuple[RunReport, ...]:
        here = [each for each in self.waiting if each.node not in self.away]
        return tuple(here + here if self.doubles else here)

    def acknowledge(self, keys) -> None:
        keys = set(keys)
        self.acknowledged.extend(sorted(keys))
        if not self.doubles:
            self.waiting = [each for each in self.waiting if each.key not in keys]

    def show_active(self, runs_by_node) -> None:
        self.active.append(dict(runs_by_node))

    def change(self, changes) -> None:
        self.changes.append(dict(changes))

    def report(self, run: Run, grant: Grant, *, program: str, ran_s: float, ended_s: float, was_alone: bool) -> None:
        """Report from each node what the program did there."""
        off = self.changed.get(program, 1.0)
        ways = sampled(run, SAMPLED_WAYS).ways if grant.samples else (WAYS if was_alone else grant.ways or 2,)
        seconds = ran_s / len(ways)
        points = tuple(Point(each, seconds, run.ipc_at(each) / off, run.bandwidth_at(each)) for each in ways)
        flags = {"was_alone": was_alone, "was_sampled": grant.samples}
        self.waiting += [RunReport(grant.run, node, ended_s, ran_s, points=points, **flags) for node in grant.nodes]


class EmulatedSlurm(FakeSlurm):
    """A FakeSlurm whose nodes have ways, bandwidth and agents."""

    def __init__(self, nodes: int, truth: Mapping[str, Program]) -> None:
        names = tuple(f"c{number}" for number in range(1, nodes + 1))
        super().__init__(dict.fromkeys(names, CORES))
        self.min_job_age_s = 300
        self.agents = EmulatedAgents(truth, names)
        self.tokens: dict[str, Grant] = {}
        self.fails: set[int] = set()
        self.shared: set[int] = set()  # jobs beside which another one was
        self.ran: list[tuple[int, int, Grant | None]] = []  # job, nodes, grant

    def sign(self, grant: Grant) -> str:
        token = f"1:t{len(self.tokens)}"
        self.tokens[token] = grant
        return token

    def run_program(self, program: str, tasks: int = 16, **fields) -> int:
        """Submit one job of the program, and return its id."""
        words = f"program={program}" + (" reprofile" if fields.pop("reprofile", False) else "")
        self.submit(tasks, words=words, cpus=tasks, **{"memory_per_cpu_mb": 1000, **fields})
        return len(self.run_s)

    def observe(self) -> Observation:
        seen = super().observe()
        running = [job for job in self.jobs.values() if job.state.occupies_nodes]

        def with_ways(node):
            there = [job for job in running if node.name in job.allocated]
            ways, gbps = sum(job.ways for job in there), sum(job.bandwidth_gbps for job in there)
            capacity = node.capacity._replace(memory_mb=MEMORY_MB, ways=WAYS, bandwidth_gbps=GBPS)
            return replace(node, capacity=capacity, allocated=node.allocated._replace(ways=ways, bandwidth_gbps=gbps))

        return replace(seen, nodes=tuple(map(with_ways, seen.nodes)))

    def start(self, waiting) -> None:
        grant = self.tokens.get(grant_in(waiting.extra) or "")
        run = self.true_run(waiting, waiting.pinned_to)
        if run is not None:
            self.run_s[waiting.id] = self.true_s(waiting, run, grant)
        super().start(waiting)
        now = self.jobs[waiting.id]
        if now.state is not JobState.RUNNING:
            return
        self.ran.append((now.id, len(now.allocated), grant))
        beside = [each.id for each in self.jobs.values() if self.is_beside(each, now)]
        self.shared.update([now.id, *beside] if beside else [])

    def is_beside(self, other, job) -> bool:
        return other.id != job.id and other.state.occupies_nodes and not set(other.allocated).isdisjoint(job.allocated)

    def true_run(self, job, nodes) -> Run | None:
        program = self.agents.truth.get(job.hints.program or "") if job.hints else None
        return None if program is None or not nodes else program.at(job.tasks * job.cpus_per_task).get(len(nodes))

    def true_s(self, job, run: Run, grant: Grant | None) -> float:
        off = self.agents.changed.get(job.hints.program, 1.0)
        return run.time_s * off * (1 + SAMPLING_COSTS if grant and grant.samples else 1)

    def tick(self) -> None:
        running = {each.id for each in self.jobs.values() if each.state is JobState.RUNNING}
        super().tick()
        for number in running & self.jobs.keys():
            job = self.jobs[number]
            if job.state is not JobState.ENDED:
                continue
            self.change(number, has_succeeded=number not in self.fails)
            _, _, grant = next(each for each in reversed(self.ran) if each[0] == number)
            run = None if grant is None else self.true_run(job, grant.nodes)
            if grant is not None and task_of(grant.run.job_id) == job.task is not None:
                grant = replace(grant, run=grant.run._replace(job_id=number))  # the scheduler tells the agents
            if grant is not None and run is not None and grant.run == RunId(number, job.restarts):
                ran_s, program = self.true_s(job, run, grant), job.hints.program
                alone = number not in self.shared
                self.agents.report(run, grant, program=program, ran_s=ran_s, ended_s=self.time_s, was_alone=alone)

    def requeue_by_force(self, number: int) -> None:
        """End the run and let the job wait, as Slurm does after a node failure; the agents report that run."""
        job = self.jobs[number]
        waits = {"state": JobState.PENDING, "allocated": (), "restarts": job.restarts + 1}
        self.change(number, **waits, submit_s=int(self.time_s), occupies=NOTHING)


@dataclass
class FakeLearningStore:
    state: LearningState = field(default_factory=LearningState)
    broken: bool = False
    saved: list[LearningChanges] = field(default_factory=list)

    def load(self) -> tuple[LearningState, tuple[str, ...]]:
        return self.state, ()

    def save(self, changes: LearningChanges) -> None:
        if self.broken:
            raise Unreachable("what is learnt of programs cannot be written: disk I/O error")
        self.saved.append(changes)
        learnt = {key: each for key, each in self.state.learnt.items() if key not in changes.forgotten}
        runs = {**self.state.runs, **{run.run: run for run in changes.runs}}
        reports = {run: dict(by_node) for run, by_node in self.state.reports.items()}
        for report in changes.reports:
            assert report.node not in reports.get(report.run, {}), "a report is stored once"
            reports.setdefault(report.run, {})[report.node] = report
        for run in changes.gone:
            runs.pop(run)
            reports.pop(run, None)
        self.state = LearningState({**learnt, **changes.learnt}, runs, reports)


RULES = LearningRules(Exploration(SNS), DriftParameters(0.1, 3), explore=True, most_nodes=1.0)


@dataclass
class Cluster:
    """An emulated cluster with its scheduler, which can be restarted."""

    slurm: EmulatedSlurm
    site: Site
    learnt: FakeLearningStore
    rules: LearningRules = RULES

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Start a new scheduler on what is stored."""
        ports = replace(self.site.ports(), agents=self.slurm.agents)
        log = self.site.log.append
        learner = Learner(self.learnt, self.slurm.agents, self.rules, ENFORCE, log)
        policy = spread_n_share(SNS)
        spreading = SpreadRules(policy.alternatives, known=KnownAlternatives())
        publish = self.site.views.append
        self.scheduler = Scheduler(ports, policy, ENFORCE, spreading, publish, sign=self.slurm.sign, learner=learner)

    def run(self, program: str, tasks: int = 16, **fields) -> int:
        """Submit a job, run cycles until it has ended and was learnt from, and return its id."""
        number = self.slurm.run_program(program, tasks, **fields)
        self.until_done(number)
        return number

    def until_done(self, *numbers: int, cycles: int = 400) -> None:
        for _ in range(cycles):
            self.cycle(5.0)
            if all(number in self.slurm.ended for number in numbers):
                self.cycle()
                return
        raise AssertionError([self.slurm.jobs.get(number) for number in numbers])

    def cycle(self, seconds: float = 1.0) -> None:
        self.scheduler.cycle()
        self.slurm.sleep(seconds)

    def known(self, program: str, processes: int = 16):
        return self.learnt.state.learnt[program, processes].known

    def nodes_of(self, number: int) -> int:
        """On how many nodes the job ran last."""
        return next(nodes for job, nodes, _ in reversed(self.slurm.ran) if job == number)

    def grant_of(self, number: int) -> Grant:
        return next(grant for job, _, grant in reversed(self.slurm.ran) if job == number and grant is not None)

    def profile(self, program: str) -> Program | None:
        """The profile that jobs run by now."""
        return self.site.views[-1].programs.get(program)


def cluster(truth: Mapping[str, Program], nodes: int = 4, rules: LearningRules = RULES) -> Cluster:
    slurm = EmulatedSlurm(nodes, truth)
    return Cluster(slurm, Site(slurm), FakeLearningStore(), rules)
