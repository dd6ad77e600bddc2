"""Deliberate defects of restarts, which the schedules with preemption must show (mutants)."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from slurm_sns.model import Plan
from slurm_sns.restarts.rules import RestartRules
from slurm_sns.scheduler.gate.orders import RequeueOrder
from slurm_sns.scheduler.observation import JobState, ObservedJob
from slurm_sns.scheduler.restarts import candidates
from slurm_sns.scheduler.restarts.ledger import Ledger
from slurm_sns.scheduler.restarts.restarter import Restarter
from slurm_sns.scheduler.snapshot.spreading import NEVER_SPREAD
from slurm_sns.slurm import rpc
from slurm_sns.submit import record as records
from world.restarts import EagerRestarter

#: Name, sentence, and what has the defect in effect inside its block.
RESTART_MUTANTS: list[tuple[str, str, Callable[[], AbstractContextManager[object]]]] = []
#: How a job is seen, and by which rules, in place of how it is.
Seen = Callable[[ObservedJob, RestartRules], tuple[ObservedJob, RestartRules]]


def mutant(make: Callable[[], Iterator[None]]) -> Callable[[], Iterator[None]]:
    """Add the function as a mutant: its name, and its docstring as the sentence."""
    RESTART_MUTANTS.append((make.__name__.replace("_", " "), (make.__doc__ or "").strip(), contextmanager(make)))
    return make


def _as_if(seen: Seen) -> AbstractContextManager[object]:
    """Whether a job may restart is asked of what `seen` makes of it."""
    may_restart = candidates.may_restart
    return patch.object(candidates, "may_restart", lambda job, rules: may_restart(*seen(job, rules)))


def _unconditional() -> AbstractContextManager[object]:
    """The order is carried out whatever the job is by then."""

    def requeue(order: RequeueOrder) -> None:
        rpc._load(order.job_id)
        with rpc.answers():
            rpc.pyslurm().Job(order.job_id).requeue()

    return patch.object(rpc, "_requeue", requeue)


@mutant
def restart_without_opt_in() -> Iterator[None]:
    """A job is restarted whose owner has not asked for that."""
    with _as_if(lambda job, rules: (job, replace(rules, needs_hint=False))):
        yield


@mutant
def restart_forbidden_by_slurms_flag() -> Iterator[None]:
    """A job is to be restarted that Slurm must not requeue."""
    with _as_if(lambda job, rules: (replace(job, may_restart=True), rules)):
        yield


@mutant
def restart_of_what_a_person_suspended() -> Iterator[None]:
    """A job is restarted that an administrator has suspended."""
    with _as_if(lambda job, rules: (replace(job, priority=1), rules)), _unconditional():
        yield


@mutant
def restart_of_what_runs() -> Iterator[None]:
    """A job is restarted though it runs."""

    def seen(job: ObservedJob, rules: RestartRules) -> tuple[ObservedJob, RestartRules]:
        return (replace(job, state=JobState.SUSPENDED) if job.state is JobState.RUNNING else job), rules

    with _as_if(seen), _unconditional():
        yield


@mutant
def restart_whatever_has_happened_since() -> Iterator[None]:
    """The order is carried out whatever has become of the job since it was decided."""
    with _unconditional():
        yield


@mutant
def restart_of_what_was_given_to_slurm() -> Iterator[None]:
    """A job is restarted that was given to Slurm."""

    def seen(job: ObservedJob, rules: RestartRules) -> tuple[ObservedJob, RestartRules]:
        record = job.record
        if record is None or not record.is_slurms or not job.allocated:
            return job, rules
        ours = records.written("", replace(record, free_why="", nodes=job.allocated, placed_s=1))
        return replace(job, admin_comment=ours), rules

    with _as_if(seen):
        yield


@mutant
def restart_with_the_kill_switch_on() -> Iterator[None]:
    """Jobs are restarted with the kill switch on."""
    begin = Restarter.begin

    def at_once(self: Any, situation: Any) -> Any:
        found = begin(self, situation)
        self.act(found, Plan(), NEVER_SPREAD)
        return found

    with patch.object(Restarter, "begin", at_once):
        yield


@mutant
def budget_ignored() -> Iterator[None]:
    """Any amount of work may be lost."""
    with patch.object(Ledger, "allows", lambda *_: True):
        yield


@mutant
def moves_ignored() -> Iterator[None]:
    """A job is restarted any number of times."""
    with _as_if(lambda job, rules: (job, replace(rules, max_moves=999))):
        yield


@mutant
def restart_sent_twice() -> Iterator[None]:
    """What was seen in the cycles before is restarted, too, so a job is restarted again that was just restarted."""
    act = EagerRestarter.act
    seen: dict[int, list[Any]] = {}

    def again(self: Any, *seen_now: Any) -> Any:
        before = seen.setdefault(id(self), [])
        before.append(seen_now)
        for each in before[-6:-1]:
            act(self, *each)
        return act(self, *seen_now)

    with _unconditional(), patch.object(EagerRestarter, "act", again):
        yield
