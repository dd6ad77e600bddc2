"""Deliberate defects of slurm_sns, put in one by one: each must be found by some schedule.

`python -m world mutants [COUNT]` runs schedules with each of them until one violates a promise that it keeps without
the defect, at most COUNT. If no schedule shows a defect, the checker, the schedules or the model is too weak.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from gc import collect
from math import inf
from multiprocessing import get_context
from typing import Any
from unittest.mock import patch

from rich.console import Console
from rich.table import Table

from slurm_sns.errors import SnsError
from slurm_sns.scheduler import history, loop, watchdog
from slurm_sns.scheduler.dispatch import dispatcher
from slurm_sns.scheduler.dispatch import to_slurm as release
from slurm_sns.scheduler.gate import leases, orders, survey
from slurm_sns.scheduler.gate.job_status import Status
from slurm_sns.scheduler.gate.orders import GateOrder
from slurm_sns.scheduler.observation import ObservedJob
from slurm_sns.scheduler.ports import Ports
from slurm_sns.scheduler.snapshot import widening
from slurm_sns.slurm import rpc
from slurm_sns.submit import judge
from slurm_sns.submit import record as records
from slurm_sns.submit.record import Record
from slurm_sns.wire import grants
from world.mutants_agents import AGENT_MUTANTS
from world.mutants_restarts import RESTART_MUTANTS
from world.run import COLLECTED_EVERY, Draw, begin_process, run, violations
from world.schedule import drawn
from world.schedule_preempting import preempting

Patched = AbstractContextManager[object]


@dataclass(frozen=True)
class Mutant:
    """A defect: `put_in` has it in effect inside its block."""

    name: str
    sentence: str
    put_in: Callable[[], Patched]
    needs_agents: bool = False
    draw: Draw = drawn


MUTANTS: list[Mutant] = []


def mutant(make: Callable[[], Iterator[None]]) -> Callable[[], Iterator[None]]:
    """Add the function as a mutant: its name, and its docstring as the sentence."""
    name = make.__name__.replace("_", " ")
    MUTANTS.append(Mutant(name, (make.__doc__ or "").strip(), contextmanager(make)))
    return make


def one_patch(name: str, sentence: str, target: Any, attribute: str, made: Callable[[Any], Any]) -> None:
    """Add a mutant that replaces one attribute by what `made` makes of it."""
    MUTANTS.append(Mutant(name, sentence, lambda: patch.object(target, attribute, made(getattr(target, attribute)))))


# --- the state table


def _instead(was: Status, now: Status) -> Callable[[Any], Any]:
    """A status_of that says something else for one status."""

    def made(status_of: Callable[..., Status]) -> Callable[..., Status]:
        return lambda *given: now if (found := status_of(*given)) is was else found

    return made


for _name, _sentence, _was, _now in (
    ("owner's hold ignored", "A job that is held after its placement stays placed.", Status.HELD_PLACED, Status.PLACED),
    ("requeue ignored", "A requeued job that still has our nodes counts as placed.", Status.REQUEUED, Status.PLACED),
    ("requeue left to Slurm", "A requeued job keeps our nodes.", Status.REQUEUED, Status.SLURMS),
    ("overdue never taken back", "A placement that Slurm does not start stays.", Status.OVERDUE, Status.PLACED),
    ("owner's node list ignored", "A job that its owner has changed stays gated.", Status.TAKEN, Status.GATED),
    ("owner's change ignored", "A placed job that its owner changed stays placed.", Status.CHANGED, Status.PLACED),
    ("half a change ignored", "A placement that Slurm made in part stays so.", Status.HALF_APPLIED, Status.PLACED),
    ("owner's time ignored", "A begin time of the owner's counts as our gate.", Status.OWN_TIME, Status.GATED),
    ("opened by its owner and gated again", "A job that its owner opened is gated.", Status.TAKEN, Status.LAPSED),
):
    one_patch(_name, _sentence, survey, "status_of", _instead(_was, _now))

one_patch(
    "freed jobs are ours",
    "A record that says that the job is Slurm's is not understood.",
    Record,
    "is_slurms",
    lambda _: property(lambda _record: False),
)
one_patch(
    "restarts not noted",
    "The record does not say with how many restarts it was written.",
    orders,
    "_unplaced",
    lambda real: lambda record, job: replace(real(record, job), restarts=0),
)


@mutant
def pause_kept_when_the_clock_is_set_back() -> Iterator[None]:
    """A pause from before the clock was set back lasts until the clock has caught up."""
    pause = survey.pause

    def patient(tried: Any, settings: Any, now_s: float) -> str:
        return "pauses" if tried is not None and tried.retry_s > now_s else pause(tried, settings, now_s)

    with patch.object(survey, "pause", patient):
        yield


one_patch(
    "no second try",
    "A job whose placement failed once is never planned again.",
    survey,
    "pause",
    lambda real: lambda tried, *given: "failed" if tried is not None and tried.failures else real(tried, *given),
)
one_patch(
    "held jobs planned",
    "A job that somebody holds is placed.",
    survey,
    "is_held",
    lambda _: lambda _job: False,
)
one_patch(
    "modes keep what an earlier enforce gated",
    "In the modes observe and advise, jobs that enforce left gated stay gated.",
    survey,
    "_follow_up",
    lambda real: lambda *given, **named: (None, "") if named["settings"].mode != "enforce" else real(*given, **named),
)
one_patch(
    "tries never deleted",
    "Tries of jobs that slurmctld has forgotten stay in the store.",
    history.StoredTries,
    "store",
    lambda real: lambda self: (self.now.update({**self._stored, **self.now}), real(self))[1],
)


# --- leases


one_patch(
    "gate beyond the deadline",
    "A gate stands where the job misses its deadline.",
    leases,
    "latest_s",
    lambda _: lambda _job: inf,
)
one_patch(
    "gate beyond its lease",
    "Gates stand an hour later than a lease.",
    leases,
    "_at_phase_s",
    lambda real: lambda *given: real(*given) + 3600,
)
one_patch(
    "first lease too long",
    "The submit filter gates a new job for ten times as long.",
    judge,
    "_managed",
    lambda real: (
        lambda job, told, table, now_s, shapes: real(job, told, table, now_s + 9 * table.first_lease_s, shapes)
    ),
)
one_patch(
    "lapsed gates not renewed",
    "A gate that has lapsed stays open.",
    dispatcher.Dispatcher,
    "renew_lapsed",
    lambda _: lambda _self, _situation: None,
)
one_patch(
    "gates never renewed in time",
    "A gate is renewed only when it has lapsed.",
    dispatcher.Dispatcher,
    "renew_others",
    lambda _: lambda _self, _situation: None,
)


@mutant
def lapsed_gates_renewed_last() -> Iterator[None]:
    """Gates that have lapsed are renewed after the placements."""
    lapsed, others = dispatcher.Dispatcher.renew_lapsed, dispatcher.Dispatcher.renew_others

    def late(self: Any, situation: Any) -> None:
        lapsed(self, situation)
        others(self, situation)

    with (
        patch.object(dispatcher.Dispatcher, "renew_lapsed", lambda _self, _situation: None),
        patch.object(dispatcher.Dispatcher, "renew_others", late),
    ):
        yield


@mutant
def changed_jobs_renewed() -> Iterator[None]:
    """A cycle moves the gates of jobs that it has just placed or freed."""
    nobody = property(lambda _self: set(), lambda _self, _value: None)
    with patch.object(dispatcher.OrderQueue, "changed", nobody, create=True):
        yield


# --- orders: what is placed, taken back and freed


def _order(name: str, **instead: Any) -> Callable[[Any], Any]:
    """An order of that kind with other values in some fields."""

    def made(real: Callable[..., GateOrder | None]) -> Callable[..., GateOrder | None]:
        def change(*given: Any, **named: Any) -> GateOrder | None:
            order = real(*given, **named)
            return order if order is None or order.kind != name else replace(order, **instead)

        return change

    return made


for _name, _sentence, _target, _of, _kind, _instead_of in (
    (
        "gate without record",
        "A gate is moved, and the record has the old one.",
        dispatcher,
        "renew",
        "renew",
        {"admin_comment": None},
    ),
    ("record without gate", "A gate is moved in the record only.", dispatcher, "renew", "renew", {"begin_s": None}),
    (
        "regate keeps the nodes",
        "A placement is taken back, and the nodes stay.",
        orders,
        "_taken_back",
        "regate",
        {"nodes": None},
    ),
    (
        "regate keeps the boost",
        "A placement is taken back, and the boost stays.",
        orders,
        "_taken_back",
        "regate",
        {"site_factor": None},
    ),
    (
        "regate keeps the tasks per node",
        "A placement is taken back without its counts.",
        orders,
        "_taken_back",
        "regate",
        {"tasks_per_node": None},
    ),
    ("free leaves the grant", "A freed job keeps its grant.", orders, "_taken_back", "free", {"extra": None}),
    ("free leaves the boost", "A freed job keeps its boost.", orders, "_taken_back", "free", {"site_factor": None}),
    ("free leaves the nodes", "A freed job keeps our nodes.", orders, "_taken_back", "free", {"nodes": None}),
    (
        "free leaves the memory",
        "A freed job keeps the memory of whole nodes.",
        orders,
        "_taken_back",
        "free",
        {"memory": None},
    ),
    (
        "free leaves the gate",
        "A freed job stays gated until its lease ends.",
        orders,
        "_taken_back",
        "free",
        {"begin_s": None},
    ),
    (
        "placement without a record",
        "A placement is not noted in the job.",
        dispatcher,
        "place",
        "place",
        {"admin_comment": None},
    ),
):
    one_patch(_name, _sentence, _target, _of, _order(_kind, **_instead_of))


@mutant
def nodes_not_in_the_record() -> Iterator[None]:
    """The record of a placement names other nodes."""
    place = dispatcher.place

    def mistaken(*given: Any, **named: Any) -> GateOrder:
        order = place(*given, **named)
        return replace(order, admin_comment=(order.admin_comment or "").replace(" n=", " n=c9,"))

    with patch.object(dispatcher, "place", mistaken):
        yield


one_patch(
    "nodes of a refused placement stay",
    "The nodes of a placement that Slurm refused in the middle are taken for the owner's.",
    dispatcher.Dispatcher,
    "refused",
    lambda _: lambda *_: frozenset(),
)
one_patch(
    "owner's begin time forgotten",
    "A new record has no begin time of the owner's.",
    orders,
    "_begin_s",
    lambda _: lambda *_: None,
)
one_patch(
    "owner's begin time opened",
    "A freed job begins at once, whatever its owner wants.",
    orders,
    "_opened_s",
    lambda _: lambda *_: orders.OPEN,
)
one_patch(
    "owner's gres cleared",
    "A placement is taken back together with the gres that the owner has written since.",
    orders,
    "_taken_back",
    lambda real: (
        lambda job, record, *given: replace(
            real(job, record, *given), gres=(0, 0) if record.is_placed and (job.ways or job.has_other_gres) else None
        )
    ),
)
one_patch(
    "owner's node list cleared",
    "A placement is taken back together with the node list that the owner has written since.",
    orders,
    "has_nodes_of",
    lambda _: lambda job, _record: bool(job.pinned_to),
)
one_patch(
    "boost kept by running jobs",
    "A job that has started keeps its boost.",
    orders,
    "unboost",
    lambda _: lambda _job: None,
)
one_patch(
    "text of administrators lost",
    "Our record replaces all text in AdminComment.",
    records,
    "written",
    lambda _: lambda _text, record: records.segment(record),
)
one_patch(
    "text of the owner lost",
    "A grant replaces all text in Extra.",
    grants,
    "_owners_text",
    lambda _: lambda _extra: "",
)
one_patch(
    "hold released",
    "A placement releases whoever holds the job.",
    rpc,
    "_fields",
    lambda real: lambda order: {**real(order), "priority": 0xFFFFFFFF if order.nodes else None},
)
one_patch(
    "nice value written",
    "A placement replaces the owner's nice value.",
    rpc,
    "_fields",
    lambda real: lambda order: {**real(order), "nice": -1000 if order.nodes else None},
)
one_patch(
    "array addressed as a whole",
    "The last task of an array is addressed by the array's id, which means all its tasks.",
    ObservedJob,
    "task",
    lambda real: property(lambda job: real.fget(job) if job.array_id != job.id else None),
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
    "With the kill switch on nothing is placed, and what is gated stays gated.",
    loop.Scheduler,
    "_free",
    lambda real: (
        lambda self, observation, reason, **named: (
            None if reason == "disabled" else real(self, observation, reason, **named)
        )
    ),
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
    """A clean stop frees the jobs and leaves the heartbeat as it is."""

    def stop(self: Any) -> None:
        try:
            self._free(self._ports.state.observe(), "clean stop")
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
    """The watchdog frees jobs in the first look at a stale heartbeat only."""
    look = watchdog.Watchdog.look

    def once(self: Any) -> int:
        if not self._was_stale:
            return look(self)
        self._was_stale = watchdog.is_stale(self._last_beat(), self._clock.now(), self._timeout_s)
        return 0

    with patch.object(watchdog.Watchdog, "look", once):
        yield


one_patch(
    "release ends at a refusal",
    "After one refusal the other jobs are not freed.",
    release,
    "round_robin",
    lambda real: lambda jobs, owner: real(jobs, owner)[:1],
)
one_patch(
    "filter ignores a stale heartbeat",
    "The submit filter gates jobs though nobody shows a sign of life.",
    judge,
    "_idle",
    lambda real: lambda table, now_s, beat_s, killed: real(table, now_s, None if beat_s is None else now_s, killed),
)


one_patch(
    "partitions of no group",
    "A job that has waited may start in all partitions, also in those that are not managed.",
    widening,
    "_others",
    lambda _: lambda job, _settings: tuple(sorted({"main", "other", "urgent"} - set(job.partitions))),
)
one_patch(
    "owner's partition ignored",
    "Each time that a job has waited, it may start in more partitions, whatever its owner has changed since.",
    widening,
    "_why",
    lambda real: (
        lambda job, *given: real(replace(job, admin_comment=re.sub(" p=[^ ]*", "", job.admin_comment)), *given)
    ),
)
one_patch(
    "owner's partitions replaced",
    "A job that has waited may start in the other partitions only.",
    dispatcher,
    "widen",
    lambda real: lambda job, others: replace(real(job, others), partitions=others),
)


MUTANTS += [Mutant(*each, needs_agents=True) for each in AGENT_MUTANTS]
MUTANTS += [Mutant(*each, draw=preempting) for each in RESTART_MUTANTS]

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
            found = _found(seed, one.draw)
        if found:
            known = {name_of(sentence) for sentence in _found(seed, one.draw)}
            new = next((sentence for sentence in found if name_of(sentence) not in known), None)
            if new is not None:
                return Shown(seed, after, new)
        if after % COLLECTED_EVERY == 0:  # processes that run schedules collect no garbage by themselves
            collect()
    return None


def _found(seed: int, draw: Draw) -> list[str]:
    return violations(run(draw(seed)))


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
