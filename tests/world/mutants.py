"""Deliberate defects of slurm_sns, put in one by one: each must be found by some schedule.

`python -m world mutants [COUNT]` runs schedules with each of them until one violates a promise that it keeps without
the defect, at most COUNT. If no schedule shows a defect, the checker, the schedules or the model is too weak.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from gc import collect
from multiprocessing import get_context
from typing import Any
from unittest.mock import patch

from rich.console import Console
from rich.table import Table

from slurm_sns.errors import SnsError
from slurm_sns.model import Release
from slurm_sns.scheduler import carrying_out, loop, release, sending, stored_records, watchdog
from slurm_sns.scheduler.observe import follow_up, job_status, nice, reconcile
from slurm_sns.scheduler.observe.job_status import JobStatus
from slurm_sns.scheduler.observe.observed import ObservedJob
from slurm_sns.scheduler.observe.records import NO_MEMORY, JobRecord, Stage
from slurm_sns.scheduler.ports import Ports
from slurm_sns.slurm import executor
from slurm_sns.submit import judge
from world.mutants_agents import AGENT_MUTANTS
from world.run import COLLECTED_EVERY, begin_process, run, violations
from world.schedule import drawn

Patched = AbstractContextManager[object]


@dataclass(frozen=True)
class Mutant:
    """A defect: `put_in` has it in effect inside its block."""

    name: str
    sentence: str
    put_in: Callable[[], Patched]
    needs_agents: bool = False


MUTANTS: list[Mutant] = []


def mutant(make: Callable[[], Iterator[None]]) -> Callable[[], Iterator[None]]:
    """Add the function as a mutant: its name, and its docstring as the sentence."""
    name = make.__name__.replace("_", " ")
    MUTANTS.append(Mutant(name, (make.__doc__ or "").strip(), contextmanager(make)))
    return make


def one_patch(name: str, sentence: str, target: Any, attribute: str, made: Callable[[Any], Any]) -> None:
    """Add a mutant that replaces one attribute by what `made` makes of it."""
    MUTANTS.append(Mutant(name, sentence, lambda: patch.object(target, attribute, made(getattr(target, attribute)))))


# --- what is recorded


@mutant
def recorded_after_the_rpc() -> Iterator[None]:
    """A placement is recorded after it was sent, not before."""
    commit = carrying_out.CarryingOut.commit

    def late(self: Any, *given: Any) -> Any:
        records, left = self._records, [1]
        store = records.store

        def skip_first() -> None:
            if left:
                left.pop()
            else:
                store()

        records.store = skip_first
        try:
            return commit(self, *given)
        finally:
            del records.store

    with patch.object(carrying_out.CarryingOut, "commit", late):
        yield


@mutant
def failed_save_ignored() -> Iterator[None]:
    """The scheduler goes on when the store cannot be written."""
    store = stored_records.StoredRecords.store

    def careless(self: Any) -> None:
        try:
            store(self)
        except SnsError:
            self._stored = dict(self.now)

    with patch.object(stored_records.StoredRecords, "store", careless):
        yield


@mutant
def records_never_deleted() -> Iterator[None]:
    """Records of jobs that slurmctld has forgotten stay in the store."""
    store = stored_records.StoredRecords.store

    def keep(self: Any) -> None:
        self._stored = {job_id: record for job_id, record in self._stored.items() if job_id in self.now}
        store(self)

    with patch.object(stored_records.StoredRecords, "store", keep):
        yield


@mutant
def records_forgotten_at_a_restart() -> Iterator[None]:
    """A scheduler that starts does not read the records of the one before."""
    begin = stored_records.StoredRecords.__init__

    def forgetful(self: Any, *given: Any) -> None:
        begin(self, *given)
        self.now = {}

    with patch.object(stored_records.StoredRecords, "__init__", forgetful):
        yield


one_patch(
    "released jobs not noted",
    "No record says that a job was released by its owner or given to Slurm.",
    follow_up,
    "_given_to_slurm",
    lambda _: lambda _job, _record: None,
)


@mutant
def restarts_not_compared() -> Iterator[None]:
    """A requeued job, whose submit time Slurm renews, counts as another job than the one on record."""

    def is_same(job: ObservedJob, record: JobRecord | None) -> bool:
        return record is not None and record.submit_s == job.submit_s

    with patch.object(job_status, "_is_same_job", is_same):
        yield


# --- the state table


def _status(change: Callable[[JobStatus, ObservedJob], JobStatus]) -> Callable[[Any], Any]:
    """A status_of that changes the answer."""

    def made(status_of: Callable[..., JobStatus]) -> Callable[..., JobStatus]:
        return lambda job, *given: change(status_of(job, *given), job)

    return made


def _instead(was: JobStatus, now: JobStatus) -> Callable[[Any], Any]:
    return _status(lambda status, _: now if status is was else status)


for _name, _sentence, _was, _now in (
    (
        "owner's hold taken for ours",
        "A job that its owner held after its placement is planned again.",
        JobStatus.OWNER_HELD,
        JobStatus.WAITING,
    ),
    (
        "requeue taken for a placement",
        "A requeued job that still has our nodes counts as placed.",
        JobStatus.REQUEUED,
        JobStatus.PLACED,
    ),
    ("hold not verified", "A job whose hold Slurm undid counts as held.", JobStatus.UNHELD, JobStatus.WAITING),
    ("requeue left alone", "A requeued job keeps our nodes.", JobStatus.REQUEUED, JobStatus.RELEASED),
    ("overdue never taken back", "A placement that Slurm does not start stays.", JobStatus.OVERDUE, JobStatus.PLACED),
    (
        "owner's node list overwritten",
        "A held job that its owner changed is planned.",
        JobStatus.CHANGED,
        JobStatus.WAITING,
    ),
    (
        "owner's change ignored",
        "A placed job that its owner changed stays so.",
        JobStatus.CHANGED,
        JobStatus.RELEASED,
    ),
    ("lost mark ignored", "A job whose owner overwrote the mark is planned.", JobStatus.MARK_LOST, JobStatus.WAITING),
    (
        "lost mark left held",
        "A job without its mark stays held.",
        JobStatus.MARK_LOST,
        JobStatus.ADMIN_HELD,
    ),
    ("released jobs held again", "A job that its owner released is held again.", JobStatus.RELEASED, JobStatus.UNHELD),
):
    one_patch(_name, _sentence, job_status, "status_of", _instead(_was, _now))


@mutant
def future_placement_not_overdue() -> Iterator[None]:
    """A job that was placed before the clock was set back counts as placed until the clock has caught up."""
    status_of = job_status.status_of

    def patient(job: ObservedJob, record: JobRecord | None, now_s: float, settings: Any) -> JobStatus:
        if record is not None and record.placed_s > now_s:
            record = replace(record, placed_s=now_s)
        return status_of(job, record, now_s, settings)

    with patch.object(job_status, "status_of", patient):
        yield


@mutant
def pause_kept_when_the_clock_is_set_back() -> Iterator[None]:
    """A pause from before the clock was set back lasts until the clock has caught up."""
    hindrance = reconcile._hindrance

    def patient(job: ObservedJob, record: JobRecord | None, others: Any, settings: Any, now_s: float) -> str:
        if record is not None and record.retry_s > now_s:
            return "pauses"
        return hindrance(job, record, others, settings, now_s)

    with patch.object(reconcile, "_hindrance", patient):
        yield


@mutant
def no_second_try() -> Iterator[None]:
    """A job whose placement failed once is never planned again."""
    hindrance = reconcile._hindrance

    def stubborn(job: ObservedJob, record: JobRecord | None, *given: Any) -> str:
        return "failed" if record is not None and record.failures else hindrance(job, record, *given)

    with patch.object(reconcile, "_hindrance", stubborn):
        yield


one_patch(
    "modes hold what an earlier enforce held",
    "In the modes observe and advise, jobs that enforce left held stay held.",
    follow_up,
    "handed_over",
    lambda real: (
        lambda job, status, record, why: () if why == follow_up.NO_LONGER_ENFORCED else real(job, status, record, why)
    ),
)


# --- placing, taking back, releasing


one_patch(
    "no check before a placement",
    "A placement is sent without another look at the job.",
    executor,
    "_require_unchanged",
    lambda _: lambda _now, _replaced: None,
)
one_patch(
    "check does not see an admin's hold",
    "The check before a placement or a release takes every hold for ours.",
    executor,
    "is_held_by_others",
    lambda _: lambda _job: False,
)
one_patch(
    "released without taking back",
    "A placed job is given to Slurm with our nodes and our boost.",
    release,
    "handed_over",
    lambda real: lambda *given: tuple(each for each in real(*given) if isinstance(each, Release)),
)
one_patch(
    "own memory not restored",
    "A job that had whole nodes keeps their memory.",
    follow_up,
    "_unpin",
    lambda real: lambda *given, **named: replace(real(*given, **named), own_memory=NO_MEMORY),
)
one_patch(
    "owner's gres cleared",
    "A placement is taken back together with the gres that the owner has written since.",
    follow_up,
    "_has_owners_gres",
    lambda _: lambda _job, _record: False,
)
one_patch(
    "own nice forgotten",
    "A job gets the nice value 0 again, whatever its owner had given it.",
    follow_up,
    "_unpin",
    lambda real: lambda *given, **named: replace(real(*given, **named), nice=0),
)
one_patch(
    "owner's node list cleared",
    "A placement is taken back together with the node list that the owner has written since.",
    follow_up,
    "is_pinned_by",
    lambda _: lambda _job, _record: True,
)
one_patch(
    "unheld after taking back",
    "Our own release of an owner-held job goes with its placement.",
    follow_up,
    "handed_over",
    lambda real: (
        lambda job, status, record, why: (
            (*real(job, status, record, why), Release(job.id, why))
            if status is JobStatus.OWNER_HELD
            else real(job, status, record, why)
        )
    ),
)


one_patch(
    "taken back without the nodes",
    "Taking a placement back restores the nice value and leaves our nodes.",
    executor.SlurmExecutor,
    "_unpin",
    lambda real: lambda self, change: real(self, replace(change, keeps_nodes=True)),
)


@mutant
def hold_over_any_hold() -> Iterator[None]:
    """After a placement was taken back the job is held, whoever holds it by then."""
    unpin = executor.SlurmExecutor._unpin

    def rash(self: Any, change: Any) -> None:
        unpin(self, replace(change, hold=False))
        if change.hold:
            executor.run("scontrol", "uhold", change.address or str(change.job_id))

    with patch.object(executor.SlurmExecutor, "_unpin", rash):
        yield


one_patch(
    "owner's changes not seen before a placement",
    "A placement replaces what the owner has written since the plan.",
    executor,
    "_changed",
    lambda _: lambda _before, _now: [],
)
one_patch(
    "hold left on a job that was given away",
    "A hold of ours that meets a job just given to Slurm or nodes, or just started, stays.",
    executor.SlurmExecutor,
    "_free",
    lambda _: lambda _self, _job_id, **_named: None,
)
one_patch(
    "given away with a new hold",
    "A job is given to Slurm though somebody has held it since we looked.",
    executor.SlurmExecutor,
    "_require_as_seen",
    lambda _: lambda _self, _change: None,
)


@mutant
def unsent_correction_forgotten() -> Iterator[None]:
    """A job whose placement was to be taken back counts as placed again if the change did not reach Slurm."""
    status_of = job_status.status_of

    def trusting(job: ObservedJob, record: JobRecord | None, *given: Any) -> JobStatus:
        status = status_of(job, record, *given)
        is_unsent = record is not None and record.stage in (Stage.HELD, Stage.HOLDING) and job.priority > 0
        return JobStatus.PLACED if status is JobStatus.OVERDUE and is_unsent else status

    with patch.object(job_status, "status_of", trusting):
        yield


@mutant
def array_addressed_as_a_whole() -> Iterator[None]:
    """The last task of an array is addressed by the array's id, which means all its tasks."""
    with patch.object(ObservedJob, "address", property(lambda job: str(job.id))):
        yield


one_patch(
    "nice not restored",
    "A job that has started keeps our nice value.",
    sending,
    "started_with_boost",
    lambda _: lambda _jobs, _records: (),
)
one_patch(
    "wrong nice restored",
    "A job that has started gets the nice value 0.",
    sending,
    "started_with_boost",
    lambda real: lambda jobs, records: tuple(nice.OwnNice(each.job_id, 0) for each in real(jobs, records)),
)


@mutant
def nice_sent_once_for_good() -> Iterator[None]:
    """A nice value that slurmctld has lost is not sent again."""
    restore = sending.Sending.restore_nice

    def once(self: Any, *given: Any, **more: Any) -> None:
        restore(self, *given, **more)
        self._restored |= self._accepted

    with (
        patch.object(sending.Sending, "restore_nice", once),
        patch.object(sending.Sending, "forget_restored", lambda _self: None),
    ):
        yield


one_patch(
    "lost release not noticed",
    "A job that slurmctld has lost the release of counts as Slurm's, held as it is.",
    job_status,
    "_was_lost",
    lambda _: lambda _job, _record: False,
)
one_patch(
    "mark written over any text",
    "A placement writes our mark, whatever stands in Extra.",
    carrying_out.CarryingOut,
    "_placement",
    lambda real: lambda self, *given, **named: replace(real(self, *given, **named), extra="sns:1 exclusive"),
)
one_patch(
    "corrections put off for ever",
    "A cycle sends no corrections.",
    sending.Sending,
    "correct",
    lambda _: lambda _self, _situation: {},
)


# --- dead or off


@mutant
def kill_switch_ignored() -> Iterator[None]:
    """The scheduler does not look at the kill switch."""
    begin = loop.Scheduler.__init__

    class Never:
        def is_on(self) -> bool:
            return False

    def blind(self: Any, ports: Ports, *given: Any, **named: Any) -> None:
        begin(self, replace(ports, kill_switch=Never()), *given, **named)

    with patch.object(loop.Scheduler, "__init__", blind):
        yield


one_patch(
    "kill switch releases nothing",
    "With the kill switch on nothing is placed, and what is held stays held.",
    loop.Scheduler,
    "_release",
    lambda real: lambda self, observation, reason: None if reason == "disabled" else real(self, observation, reason),
)


@mutant
def heartbeat_before_the_answers() -> Iterator[None]:
    """A cycle writes the heartbeat at its beginning, before slurmctld has answered."""
    cycle = loop.Scheduler.cycle

    def eager(self: Any) -> Any:
        self._ports.heartbeat.beat(self._ports.clock.now())
        return cycle(self)

    with patch.object(loop.Scheduler, "cycle", eager):
        yield


@mutant
def heartbeat_ahead_of_time() -> Iterator[None]:
    """The heartbeat is written five seconds ahead, so that it lasts longer."""
    begin = loop.Scheduler.__init__

    class Ahead:
        def __init__(self, real: Any) -> None:
            self.stop, self._beat = real.stop, real.beat

        def beat(self, now_s: float) -> None:
            self._beat(now_s + 5)

    def wrapped(self: Any, ports: Ports, *given: Any, **named: Any) -> None:
        begin(self, replace(ports, heartbeat=Ahead(ports.heartbeat)), *given, **named)

    with patch.object(loop.Scheduler, "__init__", wrapped):
        yield


@mutant
def heartbeat_written_after_a_failed_cycle() -> Iterator[None]:
    """A cycle that fails writes the heartbeat as well."""
    cycle = loop.Scheduler.cycle

    def hopeful(self: Any) -> Any:
        try:
            return cycle(self)
        except SnsError:
            self._ports.heartbeat.beat(self._ports.clock.now())
            raise

    with patch.object(loop.Scheduler, "cycle", hopeful):
        yield


@mutant
def stop_leaves_the_heartbeat() -> Iterator[None]:
    """A clean stop releases the jobs and leaves the heartbeat as it is."""

    def stop(self: Any) -> None:
        try:
            self._release(self._ports.state.observe(), "clean stop")
        except SnsError:
            return

    with patch.object(loop.Scheduler, "stop", stop):
        yield


@mutant
def stop_shows_life() -> Iterator[None]:
    """A clean stop writes the heartbeat again at its end."""
    stop = loop.Scheduler.stop

    def lively(self: Any) -> None:
        stop(self)
        self._ports.heartbeat.beat(self._ports.clock.now())

    with patch.object(loop.Scheduler, "stop", lively):
        yield


one_patch(
    "future heartbeat is fresh",
    "The watchdog takes a heartbeat from the future for a sign of life.",
    watchdog,
    "is_stale",
    lambda _: lambda beat_s, now_s, timeout_s: beat_s is None or now_s - beat_s > timeout_s,
)
one_patch(
    "missing heartbeat is fresh",
    "The watchdog waits while there is no heartbeat file, or none that can be read.",
    watchdog,
    "is_stale",
    lambda real: lambda beat_s, now_s, timeout_s: beat_s is not None and real(beat_s, now_s, timeout_s),
)


@mutant
def watchdog_keeps_its_first_offset() -> Iterator[None]:
    """Once the clock was set, the watchdog believes at each look that it was set just now."""
    was_stepped = watchdog.Watchdog._was_stepped

    def stuck(self: Any, now_s: float) -> bool:
        offset_s = self._offset_s
        result = was_stepped(self, now_s)
        self._offset_s = offset_s
        return result

    with patch.object(watchdog.Watchdog, "_was_stepped", stuck):
        yield


@mutant
def watchdog_looks_once() -> Iterator[None]:
    """The watchdog releases jobs in the first look at a stale heartbeat only."""
    look = watchdog.Watchdog.look

    def once(self: Any) -> int:
        if not self._was_stale:
            return look(self)
        self._was_stale = watchdog.is_stale(self._last_beat(), self._clock.now(), self._timeout_s)
        return 0

    with patch.object(watchdog.Watchdog, "look", once):
        yield


@mutant
def watchdog_without_records() -> Iterator[None]:
    """The watchdog does not read our records."""
    begin = watchdog.Watchdog.__init__

    def blind(self: Any, *given: Any, **named: Any) -> None:
        begin(self, *given, **(named | {"records": dict}))

    with patch.object(watchdog.Watchdog, "__init__", blind):
        yield


one_patch(
    "release ends at a refusal",
    "After one refusal the other jobs are not released.",
    release,
    "round_robin",
    lambda real: lambda jobs, owner: real(jobs, owner)[:1],
)
one_patch(
    "filter ignores a stale heartbeat",
    "The submit filter holds jobs though nobody shows a sign of life.",
    judge,
    "_idle",
    lambda real: lambda table, now_s, beat_s, killed: real(table, now_s, None if beat_s is None else now_s, killed),
)


MUTANTS += [Mutant(*each, needs_agents=True) for each in AGENT_MUTANTS]

# --- the check


@dataclass(frozen=True)
class Shown:
    """What showed a mutant: the seed, after how many schedules, and the sentence that the checker said."""

    seed: int
    after: int
    sentence: str


def shows(one: Mutant, seeds: Sequence[int]) -> Shown | None:
    """The first of these schedules that violates with the mutant what it keeps without; None if none does."""
    for after, seed in enumerate(seeds, 1):
        if one.needs_agents and drawn(seed).agents is None:
            continue
        with one.put_in():
            found = _found(seed)
        if found:
            known = {name_of(sentence) for sentence in _found(seed)}
            new = next((sentence for sentence in found if name_of(sentence) not in known), None)
            if new is not None:
                return Shown(seed, after, new)
        if after % COLLECTED_EVERY == 0:  # processes that run schedules collect no garbage by themselves
            collect()
    return None


def _found(seed: int) -> list[str]:
    return violations(run(drawn(seed)))


def name_of(sentence: str) -> str:
    """The name of the promise that the sentence says is broken."""
    return sentence.split(":", maxsplit=1)[0]


def _tried(at: int, count: int) -> Shown | None:
    return shows(MUTANTS[at], range(count))


def main(count: int = 10_000, processes: int | None = None) -> int:
    """Try each mutant on at most so many schedules, and print which promise showed it; 1 if one was not found."""
    console, table = Console(highlight=False), Table("defect", "schedules", "seed", "promise")
    missed = 0
    with ProcessPoolExecutor(processes, get_context("spawn"), begin_process) as pool:
        tries = [pool.submit(_tried, at, count) for at in range(len(MUTANTS))]
        for one, tried in zip(MUTANTS, tries, strict=True):
            shown = tried.result()
            missed += shown is None
            said = "not found" if shown is None else shown.sentence
            console.print(f"{one.name}: {one.sentence}\n    {said}", markup=False, soft_wrap=True)
            seed = ("", "", "not found") if shown is None else (str(shown.after), str(shown.seed), name_of(said))
            table.add_row(one.name, *seed)
    console.print(table)
    console.print(f"{len(MUTANTS) - missed} of {len(MUTANTS)} defects found")
    return int(missed > 0)
