"""Which waiting jobs may explore now: their alternatives then begin with empty nodes at the scale of the step.

A job explores on nodes whose agent answers, partitions the cache and measures. Where too few such nodes are empty, or
where exploring runs hold as many nodes as the site allows, the job runs as it would without exploration. Only a limited
number of different jobs is looked at in a cycle, from the head of the queue, so the work does not grow with the queue.
What is put off depends on counts alone, never on the clock.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache

from slurm_sns.errors import Closed, Infeasible
from slurm_sns.model import Job, Node, Resources
from slurm_sns.policies.base import Request
from slurm_sns.policies.profile import Program
from slurm_sns.policies.spread_n_share.evidence import KnownEvidence
from slurm_sns.policies.spread_n_share.exploration import ExplorationStep
from slurm_sns.policies.spread_n_share.learning import Key, LearnableJob, Learning
from slurm_sns.scheduler.learning.conclusions import may_explore
from slurm_sns.scheduler.learning.values import LearningRules, LearningState, Learnt
from slurm_sns.scheduler.observation import ObservedJob
from slurm_sns.scheduler.snapshot.eligibility import Eligibility
from slurm_sns.scheduler.snapshot.node_sets import NodeKinds
from slurm_sns.scheduler.snapshot.situation import Explorations, ExploringRun
from slurm_sns.scheduler.snapshot.spreading import SpreadRules, keeps_geometry, program_of, request, types_of
from slurm_sns.submit.hints import is_program
from slurm_sns.wire.values import NodeState

#: The most different (program, request) that are looked at in a cycle. Each takes about 0.5 ms (measured), so all of
#: them a twentieth of the usual interval, 1 s.
MOST_LOOKED_AT = 100


class LearningExplorer:
    """Offers exploring runs in one cycle."""

    def __init__(
        self,
        state: LearningState,
        rules: LearningRules,
        spreading: SpreadRules,
        *,
        states: Mapping[str, NodeState],
        managed: int,
        queue_depth: int,
        now_s: float,
    ) -> None:
        """`states` are those of the connected agents, by node; `managed` is the number of managed nodes."""
        self._state, self._spreading, self._queue_depth, self._now_s = state, spreading, queue_depth, now_s
        self._limit = rules.limit(managed)
        self._room = self._limit - sum(len(run.nodes) for run in state.runs.values() if run.explores_now)
        self._promised = 0  # empty nodes, to jobs before
        self._exploration = rules.exploration_on(managed)
        self._able = frozenset(name for name, each in states.items() if can_measure(each))
        # Also the program of a run that has ended: it may be reported in a moment, and its step must not be run twice.
        self._taken = {run.key for run in state.runs.values() if run.step is not None}

    def offers(
        self, waiting: Sequence[Job], jobs: Mapping[int, ObservedJob], eligibility: Eligibility, nodes: Sequence[Node]
    ) -> tuple[list[Job], Explorations]:
        """The waiting jobs, in their order, some with an exploring alternative before the others; and what is offered.

        `jobs` are the observed ones by id, `nodes` those of the snapshot.
        """
        empty = [node for node in nodes if node.free == node.capacity and node.name in self._able]

        @cache
        def holding(demand: Resources, allowed: frozenset[str]) -> int:
            """How many of the empty nodes among the allowed ones hold this demand."""
            return sum(node.name in allowed and demand.within(node.capacity) for node in empty)

        found: list[Job] = list(waiting)
        offered: dict[int, ExploringRun] = {}
        not_offered: dict[int, str] = {}
        seen: dict[tuple[Key, Request], str] = {}
        for place, job in enumerate(waiting[: self._queue_depth]):
            wanted = self._wanted(jobs[job.id], eligibility)
            if wanted is None:
                continue
            size = (wanted.key, wanted.request)
            if size not in seen:
                if len(seen) + len(offered) >= MOST_LOOKED_AT:
                    break
                offer = self._offer(job, jobs[job.id], wanted, eligibility, holding)
                if isinstance(offer, ExploringRun):
                    found[place] = replace(
                        job, alternatives=(offer.alternative, *job.alternatives), allowed=offer.allowed
                    )
                    offered[job.id] = offer
                    self._room -= offer.alternative.nodes
                    self._promised += offer.alternative.nodes
                    self._taken.add(wanted.key)
                    continue
                seen[size] = offer
            if seen[size]:
                not_offered[job.id] = seen[size]
        return found, Explorations(offered, not_offered)

    def _wanted(self, job: ObservedJob, eligibility: Eligibility) -> LearnableJob | None:
        key = key_of(job, self._spreading)
        if key is None:
            return None
        try:
            return learnable(job, key, eligibility.kinds_for(job), self._spreading.programs.get(key[0]))
        except (Closed, Infeasible):
            return None

    def _offer(
        self,
        job: Job,
        observed: ObservedJob,
        wanted: LearnableJob,
        eligibility: Eligibility,
        holding: Callable[[Resources, frozenset[str]], int],
    ) -> ExploringRun | str:
        """The exploring run of this job, or why there is none; an empty text if nothing is left to explore."""
        known = self._state.learnt.get(wanted.key)
        try:
            step = self._step(wanted, known)
        except Infeasible:
            return ""
        if step is None:
            return ""
        if wanted.key in self._taken:
            return "another job explores its program"
        if job.over_aged:
            return "it has waited for too long to explore"
        first = self._learning(wanted, known).offer(wanted, step, ()).alternatives[0]
        if first.nodes > self._room:
            return (
                f"exploring runs hold {self._limit - self._room} nodes; learning.most_nodes allows {self._limit} at a "
                f"time, and it would need {first.nodes}"
            )
        try:
            allowed = eligibility.of_first(observed, first, self._able)
        except (Closed, Infeasible) as why:
            return str(why)
        fitting = max(0, holding(first.demand, allowed) - self._promised)
        if fitting < first.nodes:
            return (
                f"it would need {first.nodes} empty nodes whose agent partitions the cache and measures; "
                f"it may use {fitting} such nodes now"
            )
        return ExploringRun(wanted, step, first, allowed)

    def _step(self, wanted: LearnableJob, known: Learnt | None) -> ExplorationStep | None:
        """The next step of the job's program. An imported profile is not explored again unless that was asked for."""
        evidence = KnownEvidence(*wanted.key) if known is None else known.known
        profile = self._spreading.programs.get(wanted.key[0])
        has_profile = profile is not None and bool(profile.at(wanted.key[1]))
        if has_profile and evidence.renewal is None and evidence.profile() is None:
            return None
        return self._learning(wanted, known).next_step(wanted)

    def _learning(self, wanted: LearnableJob, known: Learnt | None) -> Learning:
        return Learning(
            self._exploration,
            wanted.types,
            can_run=lambda _, scale: may_explore(known, scale, self._now_s),
            known={} if known is None else {wanted.key: known.known},
        )


def can_measure(state: NodeState) -> bool:
    """Whether jobs can explore on the agent's node: it partitions the cache, and measures IPC and bandwidth."""
    facts = state.facts
    is_partitioned = facts.mode == "partition" and facts.ways > 0 and not facts.why_unpartitioned
    return is_partitioned and facts.measures_ipc and facts.measures_bandwidth and not state.trouble


def key_of(job: ObservedJob, spreading: SpreadRules) -> Key | None:
    """The program and the number of processes; None for a job that cannot be learnt from."""
    record = job.record
    if record is None or record.is_slurms or keeps_geometry(job):
        return None
    program = program_of(job, record.hints, spreading.program)
    return (program, job.tasks * job.cpus_per_task) if is_program(program) else None


def learnable(job: ObservedJob, key: Key, kinds: NodeKinds, profile: Program | None) -> LearnableJob:
    """The job as learning knows it; `kinds` are those of the nodes that it may ever use.

    An imported or measured profile (`profile`) may limit the scales of its program.
    """
    assert job.hints is not None  # noqa: S101  it has a key
    asked = request(job, job.hints, kinds)
    limits = [each for each in (asked.max_scale, None if profile is None else profile.max_scale) if each is not None]
    return LearnableJob(job.id, key, replace(asked, max_scale=min(limits, default=None)), types_of(kinds))
