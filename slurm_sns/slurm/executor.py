"""The Executor port on pyslurm: one RPC places and releases a held job.

Seen with Slurm 26.05 and pyslurm 25.11: INFINITE is the only priority that releases a held job. An update ignores
`nodes=`: the number of nodes follows from the tasks on each node, or stays as the job has it. Clearing a node list
needs an empty string, which pyslurm cannot send, and pyslurm's user hold crashes (it writes to an unset pointer). Both
steps are rare and go through scontrol, with numbers and names of partitions as arguments. A suspend, a resume and a
requeue are an RPC each.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from typing import assert_never

from slurm_sns.errors import Refused, Unreachable
from slurm_sns.model import Release, Requeue, Resume, SetShare, Share, Suspend
from slurm_sns.scheduler.observe.arrays import Split
from slurm_sns.scheduler.observe.follow_up import Advise, Unpin, own_nice_of
from slurm_sns.scheduler.observe.job_status import ADMINS_HOLD, is_held_by_others
from slurm_sns.scheduler.observe.nice import OwnNice, stays_while_held
from slurm_sns.scheduler.observe.observed import SLURMS_HOLD, JobState, ObservedJob
from slurm_sns.scheduler.orders import Answer, EndHold, NotSent, Order, PlacementOrder, Replaced, one_by_one
from slurm_sns.slurm import translate
from slurm_sns.slurm.api import answers, pyslurm
from slurm_sns.slurm.commands import run
from slurm_sns.slurm.senders import Answers, Senders
from slurm_sns.slurm.translate import BANDWIDTH, WAYS
from slurm_sns.submit import mark

INFINITE = 0xFFFFFFFF
NO_SHARES = "shares of CPU need an agent on the nodes"
#: From this number on, several processes send the placements. Fewer take this process less than a tenth of a second.
MANY = 64
#: One bulk read checks this many placements before they are sent; the last is sent a third of a second after the read.
CHECKED_TOGETHER = 512
#: What a placement may replace, in words.
_WORDS = {
    "nice": "nice value",
    "pinned_to": "node list",
    "extra": "mark",
    "tasks": "number of tasks",
    "memory_per_cpu_mb": "memory",
    "memory_per_node_mb": "memory",
    "ways": "gres",
    "bandwidth_gbps": "gres",
    "has_other_gres": "gres",
    "array_tasks": "array tasks",
}


#: The states in which the mark of a job can be changed.
_CHANGEABLE = (JobState.PENDING, JobState.RUNNING, JobState.SUSPENDED)


class SlurmExecutor:
    """Changes jobs as SlurmUser."""

    def __init__(self) -> None:
        self._senders = Senders()

    def execute(self, orders: Iterable[Order]) -> Iterator[Answer]:
        """Carry out the orders in sequence. Several processes send a long run of placements side by side."""
        lost: Unreachable | None = None
        for are_placements, together in groupby(orders, lambda order: isinstance(order, PlacementOrder)):
            alike = list(together)
            if lost is not None:
                found: Iterator[Answer] = (Answer(order, unreachable=lost) for order in alike)
            elif are_placements:
                found = self._place_all([order for order in alike if isinstance(order, PlacementOrder)])
            else:
                found = one_by_one(alike, self._carry_out)
            for answer in found:
                lost = answer.unreachable
                yield answer

    def _carry_out(self, order: Order) -> None:
        match order:
            case PlacementOrder():
                self._place(order)
            case Unpin():
                self._unpin(order)
            case Release():
                self._release(order)
            case Advise():
                self._advise(order.job_id)
            case EndHold():
                self._free(order.job_id)
            case Split():
                self._split(order)
            case OwnNice():
                self._restore_nice(order)
            case Suspend():
                self._suspend(order)
            case Resume():
                self._resume(order)
            case Requeue():
                self._requeue(order)
            case SetShare():
                raise Refused(NO_SHARES)
            case _:
                assert_never(order)

    def _place(self, placement: PlacementOrder) -> None:
        """Check once more that we hold the job, and send the placement."""
        _require_whole(placement.start.cpu_share)
        _require_unchanged(self._load(placement.start.job_id), placement.replaced)
        self.send(placement)

    def send(self, placement: PlacementOrder) -> None:
        """Pin the held job to its nodes, release it and put it ahead of Slurm's own queue, all in one RPC.

        The RPC names the number of all tasks beside the tasks on each node. Without it, Slurm before 26.05 silently
        sets the job's tasks to nodes times tasks on each node (seen on 24.11).
        """
        start = placement.start
        demand = start.alternative.demand
        gres = {name: amount for name, amount in ((WAYS, demand.ways), (BANDWIDTH, demand.bandwidth_gbps)) if amount}
        change = pyslurm().JobSubmitDescription(
            required_nodes=list(start.nodes),
            ntasks=placement.tasks,
            ntasks_per_node=start.alternative.tasks_per_node,
            gres_per_node=gres or None,
            memory_per_node=placement.memory_per_node_mb,
            nice=placement.nice,
            extra=placement.extra,
            priority=INFINITE,
        )
        with answers():
            pyslurm().Job(start.job_id).modify(change)

    def _load(self, job_id: int) -> ObservedJob:
        with answers():
            record = pyslurm().Job.load(job_id)
        return translate.held_job(record)

    def _place_all(self, placements: Sequence[PlacementOrder]) -> Iterator[Answer]:
        """Place each, with one RPC for each job; several processes send many of them.

        Many placements are checked in batches, with one bulk read for each batch: a read for each job would double the
        time.
        """
        if len(placements) < MANY:
            yield from one_by_one(placements, self._carry_out)
            return
        answered: set[int] = set()
        try:
            for begin in range(0, len(placements), CHECKED_TOGETHER):
                for placement, refusal in self._place_many(placements[begin : begin + CHECKED_TOGETHER]):
                    answered.add(placement.start.job_id)
                    yield Answer(placement, refusal)
        except Unreachable as problem:
            left = (each for each in placements if each.start.job_id not in answered)
            yield from (Answer(each, unreachable=problem) for each in left)

    def _place_many(self, placements: Sequence[PlacementOrder]) -> Answers:
        wanted = {placement.start.job_id for placement in placements}
        with answers():
            records = pyslurm().Jobs.load()
        now = {record.id: translate.held_job(record) for record in records.values() if record.id in wanted}
        held = []
        for placement in placements:
            try:
                _require_whole(placement.start.cpu_share)
                _require_unchanged(now.get(placement.start.job_id), placement.replaced)
            except Refused as refusal:
                yield placement, refusal
            else:
                held.append(placement)
        yield from self._senders.place(held)

    def _release(self, order: Release) -> None:
        """Give a held job to Slurm as it is, and say so in its mark: if it is held later, it is not we who hold it.

        Of a job that is no longer held only the mark is written: Slurm would clear its nice value. A job that is
        Slurm's by now is left alone: the hold is its owner's, unless it is Slurm's own. A job that another daemon of
        ours has placed since we looked is held by its owner, too.

        Raises:
            Refused: an administrator holds it now, or whoever has requeued it; it has ended, or it has other nodes than
                when we looked.
        """
        now = self._load(order.job_id)
        if now.is_slurms and (now.priority != 0 or now.reason != SLURMS_HOLD):
            return
        if now.pinned_to and set(now.pinned_to) != set(order.pinned_to):
            raise Refused("it has been placed meanwhile, or its owner has changed its node list")
        if now.priority != 0:
            if now.state not in _CHANGEABLE:
                raise Refused("it has ended meanwhile")
            self._say_given(now)
            return
        if is_held_by_others(now) and now.reason != SLURMS_HOLD:
            raise Refused("an administrator holds it" if now.reason == ADMINS_HOLD else f"it is held: {now.reason}")
        extra = mark.given_to_slurm(now.hints)
        with answers():
            pyslurm().Job(order.job_id).modify(pyslurm().JobSubmitDescription(priority=INFINITE, extra=extra))

    def _advise(self, job_id: int) -> None:
        """Say in the mark of a job that its owner has released, and that waits or runs, that it is Slurm's.

        Raises:
            Refused: it is held, or has ended.
        """
        now = self._load(job_id)
        if now.priority == 0 or now.state not in _CHANGEABLE:
            raise Refused("it is held again, or has ended")
        self._say_given(now)

    def _say_given(self, now: ObservedJob) -> None:
        """Write into the mark of a job that is free, and nothing else of it, that it is Slurm's."""
        extra = mark.given_to_slurm(now.hints)
        if extra is not None and not now.is_slurms:
            with answers():
                pyslurm().Job(now.id).modify(pyslurm().JobSubmitDescription(extra=extra))

    def _unpin(self, change: Unpin) -> None:
        """Clear the node list, our gres and our boost, restore the memory if given, then hold the job for its owner.

        The hold is a user's hold. It comes last: after a crash in between, Slurm runs the job, while a held job would
        never be released. A job that somebody else holds already, such as an administrator, stays held by them. Where
        Slurm itself has tried the job in between and holds it, our hold replaces Slurm's, which nobody would ever end.
        A job that Slurm has started meanwhile is not held, nor one whose owner has given it nodes or overwritten its
        mark, nor one that the watchdog has given to Slurm: nobody would ever release it. Its mark says that it is
        Slurm's: so a mark from which we take the grant is read once more first.
        """
        if not change.hold:
            self._require_as_seen(change)
        new_mark = change.mark
        if change.hold and new_mark is not None:
            new_mark = mark.without_grant(self._load(change.job_id).hints)
        address = change.address or str(change.job_id)
        keeps_nice = change.checks_hold and stays_while_held(self._load(change.job_id))
        changes = [] if keeps_nice else [f"Nice={change.nice}"]
        if not change.keeps_nodes:
            changes.append("ReqNodeList=")
        if not change.keeps_gres:
            changes.append("TresPerNode=")
        if new_mark is not None:
            changes.append(f"Extra={new_mark}")
        own = change.own_memory
        if own.per_cpu_mb is not None:
            changes.append(f"MinMemoryCPU={own.per_cpu_mb}")
        elif own.per_node_mb is not None:
            changes.append(f"MinMemoryNode={own.per_node_mb}")
        run("scontrol", "update", f"JobId={address}", *changes)
        if change.hold:
            now = self._load(change.job_id)
            is_held = now.priority == 0 and now.reason != SLURMS_HOLD
            is_changed = now.is_slurms or now.pinned_to or now.hints is None
            if now.state is not JobState.PENDING or is_held or is_changed:
                return
            self._hold(change.job_id, address)

    def _require_as_seen(self, change: Unpin) -> None:
        """Check that nobody has held the job since we looked: with our mark on it, it would look like its owner's hold.

        Raises:
            Refused: somebody has.
        """
        if not change.was_held and self._load(change.job_id).priority == 0:
            raise Refused("it has been held meanwhile")

    def _hold(self, job_id: int, address: str) -> None:
        """Hold a job without nodes for its owner, and look once more: also if the answer was lost, it may be held.

        Raises:
            Refused: Slurm says no.
            Unreachable: slurmctld does not answer.
        """
        try:
            run("scontrol", "uhold", address)
        except Unreachable:
            with suppress(Refused, Unreachable):
                self._free(job_id, had_nodes=False)
            raise
        self._free(job_id, had_nodes=False)

    def _free(self, job_id: int, *, had_nodes: bool = True) -> None:
        """Release a job that our hold has met just after it was given to Slurm or nodes, or was started by Slurm.

        Nobody else would: such a hold looks like its owner's or, after a requeue, like an administrator's. With
        `had_nodes` its node list may be older.
        """
        now = self._load(job_id)
        is_started = now.state is not JobState.PENDING
        is_changed = now.is_slurms or (bool(now.pinned_to) and not had_nodes)
        if now.priority == 0 and (is_started or is_changed) and not is_held_by_others(now):
            with answers():
                pyslurm().Job(job_id).modify(pyslurm().JobSubmitDescription(priority=INFINITE))

    def _restore_nice(self, own: OwnNice) -> None:
        """Set a running job's nice value back to its own; Slurm shows the matching priority at once (seen).

        The nice value is text, because pyslurm does not send the number 0.

        Raises:
            NotSent: it is held, and Slurm would undo that.
        """
        if own.checks_hold and stays_while_held(self._load(own.job_id)):
            raise NotSent("it is held")
        with answers():
            pyslurm().Job(own.job_id).modify(pyslurm().JobSubmitDescription(nice=str(own.nice)))

    def _split(self, split: Split) -> None:
        """Split these tasks off their array in one RPC: any update of some tasks of a record does that (seen).

        This goes through scontrol, because pyslurm cannot name tasks of an array. The array is read once more before:
        its owner may have changed its nice value since we looked, or released it.

        Raises:
            NotSent: the array is no longer as it was.
        """
        now = self._load(split.array_id)
        _require_held(now if now.id == split.array_id else None)
        changed = [] if now.nice == split.nice else [_WORDS["nice"]]
        changed += [] if now.extra == split.extra else [_WORDS["extra"]]
        _require_none(changed)
        tasks = ",".join(map(str, split.tasks))
        run("scontrol", "update", f"JobId={split.array_id}_[{tasks}]", f"Nice={split.nice}")

    def _suspend(self, order: Suspend) -> None:
        """Stop the job's processes. Its cores become free for other jobs, its memory and gres do not.

        Raises:
            Refused: the order asks for the memory, too.
        """
        if order.to_storage:
            raise Refused("nothing here writes a job's memory to storage")
        with answers():
            pyslurm().Job(order.job_id).suspend()

    def _resume(self, order: Resume) -> None:
        """Let a suspended job go on running on its nodes.

        Raises:
            Refused: the order names other nodes, or less than the whole CPU.
        """
        _require_whole(order.cpu_share)
        if order.nodes and set(order.nodes) != set(self._load(order.job_id).allocated):
            raise Refused("a running job cannot be moved")
        with answers():
            pyslurm().Job(order.job_id).unsuspend()

    def _requeue(self, order: Requeue) -> None:
        """End a job and let it wait again, in another partition if the order names one.

        1. The requeue comes first, because Slurm changes the partition of a waiting job only. It does not hold the job
           at the same time: after a crash, a held job would look as if its owner held it, and nobody would release it.
           If the next step fails, the job waits in its own pool, and the next cycle plans it there.
        2. One update changes the partition and clears our nodes and gres, which may not exist there. It also clears our
           boost, because a held job with our boost would look as if its owner held it, too, and the grant.
        3. The job is held, so that it can be planned again.

        A suspended job is resumed first: requeued as it is, it would wait with an administrator's hold (seen).

        Raises:
            Refused: it may not restart, or has been requeued and stays in its own pool.
        """
        is_suspended = self._load(order.job_id).state is JobState.SUSPENDED
        with answers():
            if is_suspended:
                pyslurm().Job(order.job_id).unsuspend()
            pyslurm().Job(order.job_id).requeue()
        if not order.pool:
            return
        requeued = self._load(order.job_id)
        address, nice = requeued.address, own_nice_of(requeued)
        changes = [f"Partition={order.pool}", f"Nice={nice}", "ReqNodeList=", "TresPerNode="]
        if (new_mark := mark.without_grant(requeued.hints)) is not None:
            changes.append(f"Extra={new_mark}")
        try:
            run("scontrol", "update", f"JobId={address}", *changes)
        except Refused as refusal:
            raise Refused(f"requeued, but in its own pool: {refusal}") from None
        now = self._load(order.job_id)
        # The requeued job may still be completing. A job that has started since is not held.
        if now.priority != 0 and (now.state is JobState.PENDING or now.is_completing):
            run("scontrol", "uhold", address)


def _require_whole(cpu_share: Share) -> None:
    """Check that the order gives the job its whole CPU: Slurm cannot give it less.

    Raises:
        Refused: the order gives it less.
    """
    if cpu_share != 1:
        raise Refused(NO_SHARES)


def _require_unchanged(now: ObservedJob | None, replaced: Replaced | None) -> None:
    """Check that we still hold the job: our update releases it no matter who holds it, and cannot be conditional.

    It also replaces fields of the job: what its owner has written into them since the plan would be lost.

    Raises:
        NotSent: an administrator holds it now, it is no longer held, its owner has changed it, it runs, or it is gone.
    """
    held = _require_held(now)
    if is_held_by_others(held):
        raise NotSent(f"it is held by Slurm or an administrator: {held.reason}")
    _require_none([] if replaced is None else _changed(replaced, Replaced.of(held)))


def _require_held(now: ObservedJob | None) -> ObservedJob:
    """The job, if it waits and is held.

    Slurm may start a job at the very moment at which it is held. It then runs with priority 0, and a node list would
    resize it.

    Raises:
        NotSent: it is not held any more, it runs, or it is gone.
    """
    if now is None:
        raise NotSent("Slurm does not know it any more")
    if now.state is not JobState.PENDING:
        raise NotSent("it does not wait any more")
    if now.priority != 0:
        raise NotSent("it is not held any more")
    return now


def _require_none(changed: Sequence[str]) -> None:
    """Check that none of these fields has changed.

    Raises:
        NotSent: some have.
    """
    if changed:
        raise NotSent(f"its {' and '.join(changed)} changed since we looked")


def _changed(before: Replaced, now: Replaced) -> list[str]:
    """The fields that differ, in words, each once."""
    named = (_WORDS[name] for name, old, new in zip(Replaced._fields, before, now, strict=True) if old != new)
    return list(dict.fromkeys(named))
