"""A portfolio that matches by the readable twin of the kernel: one cycle of each member, in plain Python."""

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from oracles.cycle import Cycle, CycleStart
from slurm_sns.model import Alternative
from slurm_sns.policies.base import MakeAlternatives, own_geometry
from slurm_sns.policies.placement.heuristic_names import ADAPTIVE, RECORD
from slurm_sns.policies.placement.kernel_arrays import MATCH, PROMISED, WITHHELD, Releases
from slurm_sns.policies.placement.kernel_matching import slowdown_units
from slurm_sns.policies.placement.node_arrays import Amounts, Indices, NodeArrays
from slurm_sns.policies.placement.pass_record import Match, MemberRecord, PassRecord, Schedule
from slurm_sns.policies.placement.portfolio import Portfolio, some_profiled
from slurm_sns.policies.placement.ready_time_kernel import NOTHING_COMES_FREE
from slurm_sns.policies.placement.rules import Rules
from slurm_sns.policies.placement.ties import KINDS, remember, take_turns, tie_record
from slurm_sns.policies.placement.use import by_use
from slurm_sns.policies.placement.waiting_queue import WaitingQueue


def plainly(policy: Portfolio) -> "PlainPortfolio":
    """The policy without the kernel."""
    return PlainPortfolio(policy.rules, policy.alternatives)


class PlainPortfolio(Portfolio):
    """The same policy without the kernel."""

    def __init__(self, rules: Rules, alternatives: MakeAlternatives = own_geometry) -> None:
        """The rules and alternatives of the policy."""
        super().__init__(rules, alternatives)
        self._ties = tie_record(len(rules.portfolio))
        self._on_nodes: dict[Rules, PlainPortfolio] = {}

    def schedule(
        self, node_arrays: NodeArrays, free: Amounts, queue: WaitingQueue, coming: Releases = NOTHING_COMES_FREE
    ) -> Schedule:
        """The best member's schedule."""
        if self.rules.with_gpus:
            rules = self.rules.on(node_arrays)
            policy = self._on_nodes.setdefault(rules, PlainPortfolio(rules, self.alternatives))
            return policy.schedule(node_arrays, free, queue, coming)
        node_arrays, free = self._unshared(node_arrays, free)
        left_out = () if some_profiled(queue) else self.rules.only_for_profiled
        competing = [member for member in self.rules.portfolio if member not in left_out]
        turns = [name for name in map(self.rules.portfolio.__getitem__, self._turns()) if name in competing]
        opening, records = CycleStart.of(node_arrays, free, coming), PlainRecords(queue)
        members = self._run_plainly(opening, queue, turns, records)
        most, best_first = max(of.matched for of in members.values()), None
        looked_at = {at for of in members.values() for at in of.order.tolist()}
        if 0 < most < min(len(queue), self.rules.queue_depth) and self._has_two_orders(records, looked_at, node_arrays):
            members, best_first = self._run_plainly(opening, queue, turns, records, by_use=True), most
        listed = {name: members[name] for name in competing}
        record = PassRecord(
            node_arrays, free.copy(), records.jobs, records.choices, listed, best_first, now_s=queue.now_s
        )
        schedules = {name: Schedule.of(record, name) for name in turns}

        def rank(name: str) -> tuple[int, int]:
            slowdowns = (slowdown_units(match.alternative) for match in schedules[name].matches)
            return -len(schedules[name].matches), sum(slowdowns) if self.rules.weighs else 0

        chosen = min(turns, key=rank)
        if self.rules.ties == RECORD and schedules[chosen].matches:
            equal = [self.rules.portfolio.index(name) for name in turns if rank(name) == rank(chosen)]
            remember(self._ties, sum(1 << place for place in equal))
        return schedules[chosen]

    def _turns(self) -> list[int]:
        """The places of the members in the order of their turns."""
        turn = np.array(self.rules.turns, np.int64)
        take_turns(KINDS[self.rules.ties], turn.copy(), self._ties, turn)
        return [int(place) for place in turn]

    def _run_plainly(
        self,
        opening: CycleStart,
        queue: WaitingQueue,
        turns: Sequence[str],
        records: "PlainRecords",
        *,
        by_use: bool = False,
    ) -> dict[str, MemberRecord]:
        """The cycles of these members."""
        members: dict[str, MemberRecord] = {}
        for member in turns:
            keeps = member == self.rules.keeper
            cycle = Cycle(opening, queue, self._chooser(member), self.rules, keeps=keeps, by_use=by_use)
            members[member] = records.of(cycle)
            if not members[member].matched and not (self.rules.keeper in turns and queue.over_aged):
                # Until its first match a cycle is the same for every member: if one matches nothing, no other does.
                return members | {each: members[member] for each in turns if each not in members}
        return members

    def _has_two_orders(self, records: "PlainRecords", looked_at: Iterable[int], node_arrays: NodeArrays) -> bool:
        """Whether the alternatives of some of these jobs may be tried in another order than best first."""
        alternatives = {records.jobs[at].alternatives for at in looked_at}
        return self.rules.order == ADAPTIVE and any(
            by_use(each, node_arrays) != [*range(len(each))] for each in alternatives
        )


class PlainRecords:
    """The records of plain cycles over the same queue, each written down while it runs."""

    def __init__(self, queue: WaitingQueue) -> None:
        self.jobs = [*queue.over_aged, *chain.from_iterable(queue.by_project.values())]
        self._places = {job.id: at for at, job in enumerate(self.jobs)}
        self._choices: dict[Alternative, int] = {}

    @property
    def choices(self) -> tuple[Alternative, ...]:
        """The alternatives of all entries so far."""
        return tuple(self._choices)

    def of(self, cycle: Cycle) -> MemberRecord:
        """Run the cycle, and write it down as the kernel does."""
        order, entries, starts_s, nodes = list[int](), list[tuple[int, int, int]](), list[float](), list[Indices]()
        for job, entry in cycle.steps():
            order.append(self._places[job.id])
            if entry is not None:
                choice = self._choices.setdefault(entry.alternative, len(self._choices))
                start_s = None if isinstance(entry, Match) else entry.start_s
                kept = MATCH if isinstance(entry, Match) else WITHHELD if start_s is None else PROMISED
                entries.append((order[-1], choice, kept))
                starts_s.append(start_s or 0.0)
                nodes.append(entry.nodes)
        jobs, choices, of_kind = np.array(entries, np.int64).reshape(-1, 3).T
        return MemberRecord(
            np.array(order, np.int64),
            jobs,
            choices,
            of_kind,
            np.array(starts_s, np.float64),
            first=np.cumsum([0, *map(len, nodes)], dtype=np.int64),
            node=np.concatenate([np.zeros(0, np.int64), *nodes]),
        )
