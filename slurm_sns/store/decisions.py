"""The decision record in the database (the Decisions port): the loop writes it, `sns explain` reads it.

Snapshots are kept as bytes: JSON in zlib. Only our own store uses the format; `schema.VERSION` counts its versions. Two
things are not written as the snapshot has them: a set of allowed nodes that several jobs share is written once, and the
history has the form that its policy gives it.
"""

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, delete, insert, select, update

from slurm_sns import task_ids, typed_json
from slurm_sns.errors import SnsError
from slurm_sns.model import Gpus, Plan, Resources, Snapshot, Start
from slurm_sns.policies.base import Explanation, HistoryFormat
from slurm_sns.scheduler.history import history_of, text_of
from slurm_sns.scheduler.pace import CostPace
from slurm_sns.scheduler.ports import NO_RESTARTS, Decision, RestartNote
from slurm_sns.store.database import insert_rows, replace_rows, transaction
from slurm_sns.store.retention import BATCH_ROWS, Retention, older_than
from slurm_sns.store.schema import array_tasks, cycles, decisions, snapshots

#: Snapshots that are deleted in a batch: SQLite reads all pages of each.
SNAPSHOTS = 20
#: How the text of an error begins.
UNREADABLE, UNWRITABLE = "the decision record cannot be read", "the decision record cannot be written"
#: The columns that hold JSON.
_JSON = ("matched", "demand", "considered")
#: Stands for an unknown owner. No user has this id, so only an admin may see such a decision.
UNKNOWN_USER = -1
#: Packing a snapshot of 100,000 jobs takes 0.3 s. Where it takes long not every cycle has one, but after this time at
#: most the next one has.
SNAPSHOT_S = 60.0


class StoredDecisions:
    """Keeps decisions for `keep_days` days and the last `keep_snapshots` snapshots of recorded cycles.

    `history` is the form of the policy's history, which is part of a snapshot; None if the policy keeps none. By the
    clock `steady` not every cycle's snapshot is kept where packing one takes long.
    """

    def __init__(
        self,
        engine: Engine,
        keep_days: int,
        keep_snapshots: int,
        history: HistoryFormat | None = None,
        steady: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._engine = engine
        #: The pace of snapshots, and the cycle that had the last one: it may have two records, and then two snapshots.
        self._pace, self._packed_s = CostPace(steady, SNAPSHOT_S), -inf
        self._history = history
        self._keep_s = keep_days * 86400
        self._keep_snapshots = keep_snapshots
        old_tasks = older_than(self._keep_s, array_tasks.c.at_s)
        self._retention = Retention(engine, UNWRITABLE, self._delete_snapshots, old_tasks, self._delete_cycles)

    def record(
        self,
        at_s: float,
        snapshot: Snapshot,
        plan: Plan,
        notes: Mapping[int, str],
        *,
        owners: Mapping[int, int],
        explanations: Mapping[int, Explanation],
        tasks: Mapping[int, tuple[int, int]],
        repeated: frozenset[int] = frozenset(),
        restarts: Mapping[int, RestartNote] = NO_RESTARTS,
    ) -> None:
        """Store one cycle in one transaction, with its snapshot if one is due. The port explains the arguments."""
        cycle = {
            "at_s": at_s,
            "chosen": plan.report.chosen,
            "matched": json.dumps(dict(plan.report.matched)),
        }
        is_news = bool(plan.starts or restarts or notes.keys() - repeated)
        data = self._packed(at_s, snapshot) if is_news else None
        done = [_start_row(start, explanations.get(start.job_id)) for start in plan.starts]
        again = {job_id: text for job_id, text in notes.items() if job_id in repeated}
        with transaction(self._engine, UNWRITABLE) as connection:
            counted = {
                job_id
                for job_id, text in again.items()
                if _count_again(connection, job_id, owners.get(job_id, UNKNOWN_USER), text, at_s)
            }
            done += [_note_row(job_id, text) for job_id, text in notes.items() if job_id not in counted]
            done += [_restart_row(job_id, each) for job_id, each in restarts.items()]
            if not done:
                return
            key = connection.execute(insert(cycles), cycle).inserted_primary_key
            cycle_id = key[0] if key else None
            if data is not None:
                connection.execute(insert(snapshots), {"cycle_id": cycle_id, "data": data})
            rows = [
                {**row, "cycle_id": cycle_id, "at_s": at_s, "user_id": owners.get(row["job_id"], UNKNOWN_USER)}
                for row in done
            ]
            insert_rows(connection, decisions, rows)
            of_arrays = {row["job_id"]: tasks[row["job_id"]] for row in done if row["job_id"] in tasks}
            named = [
                {"job_id": job_id, "array_id": array_id, "task": task, "at_s": at_s}
                for job_id, (array_id, task) in of_arrays.items()
            ]
            replace_rows(connection, array_tasks, named)
        self._retention.after_write(at_s)

    def _packed(self, at_s: float, snapshot: Snapshot) -> bytes | None:
        """The snapshot as bytes; None if that of an earlier cycle was packed just before, for how long that took."""
        if at_s != self._packed_s and not self._pace.is_due():
            return None
        self._packed_s = at_s
        with self._pace.timed():
            return pack(snapshot, self._history)

    def job_of_task(self, array_id: int, task: int) -> int | None:
        """The job id that a task of an array had when something was last decided about it: Slurm's, or ours."""
        with transaction(self._engine, UNREADABLE) as connection:
            return _newest_id(connection, array_id, task)

    def of_job(self, job_id: int) -> list[Decision]:
        """What was decided about the job, oldest first.

        Of a task of an array that includes what was decided about it under its other id: ours, which it has while it
        stands in its array's record, or the newest one of Slurm's.
        """
        shown = (column for column in decisions.c if column is not decisions.c.id)
        joined = select(cycles.c.chosen, cycles.c.matched, *shown).join(cycles, cycles.c.id == decisions.c.cycle_id)
        with transaction(self._engine, UNREADABLE) as connection:
            of_it = joined.where(decisions.c.job_id.in_(_ids_of(connection, job_id))).order_by(decisions.c.id)
            rows = connection.execute(of_it).mappings().all()
        return [_decision(row) for row in rows]

    def snapshot_of(self, cycle_id: int) -> Snapshot | None:
        """The snapshot that a cycle planned on; None if it is no longer kept, or never was."""
        with transaction(self._engine, UNREADABLE) as connection:
            data = connection.execute(select(snapshots.c.data).where(snapshots.c.cycle_id == cycle_id)).scalar()
        return None if data is None else unpack(data, self._history)

    def cycles_between(self, from_s: float, to_s: float) -> list[int]:
        """The recorded cycles of that time whose snapshots are kept, oldest first; `to_s` is not part of it."""
        kept = select(cycles.c.id).join(snapshots, snapshots.c.cycle_id == cycles.c.id)
        kept = kept.where(cycles.c.at_s >= from_s, cycles.c.at_s < to_s)
        with transaction(self._engine, UNREADABLE) as connection:
            return [int(each) for each in connection.execute(kept.order_by(cycles.c.id)).scalars()]

    def _delete_snapshots(self, connection: Connection, _now_s: float) -> bool:
        """Delete a batch of those that are not among the newest `keep_snapshots`."""
        newest_first = select(snapshots.c.cycle_id).order_by(snapshots.c.cycle_id.desc())
        edge = connection.execute(newest_first.offset(self._keep_snapshots).limit(1)).scalar()
        if edge is None:
            return False
        beyond = select(snapshots.c.cycle_id).where(snapshots.c.cycle_id <= edge)
        found = connection.execute(beyond.order_by(snapshots.c.cycle_id).limit(SNAPSHOTS)).scalars().all()
        connection.execute(delete(snapshots).where(snapshots.c.cycle_id.in_(found)))
        return len(found) == SNAPSHOTS

    def _delete_cycles(self, connection: Connection, now_s: float) -> bool:
        """Delete a batch of the oldest cycles' decisions, and these cycles after the last of them.

        A cycle is never older than its decisions. The ids are sent with each statement: MariaDB 10 would read all of
        `decisions` where they are a subquery's.
        """
        old = select(cycles.c.id).where(cycles.c.at_s < now_s - self._keep_s).order_by(cycles.c.at_s)
        ids = connection.execute(old.limit(BATCH_ROWS)).scalars().all()
        if not ids:
            return False
        of_them = select(decisions.c.id).where(decisions.c.cycle_id.in_(ids)).limit(BATCH_ROWS)
        found = connection.execute(of_them).scalars().all()
        connection.execute(delete(decisions).where(decisions.c.id.in_(found)))
        if len(found) == BATCH_ROWS:
            return True
        connection.execute(delete(snapshots).where(snapshots.c.cycle_id.in_(ids)))
        connection.execute(delete(cycles).where(cycles.c.id.in_(ids)))
        return len(ids) == BATCH_ROWS


def _decision(row: Mapping[Any, Any]) -> Decision:
    read: dict[str, Any] = {column: None if row[column] is None else json.loads(row[column]) for column in _JSON}
    # There are records that have GPUs as pairs of a name and a number.
    read["demand"] |= read["demand"].pop("gpus", ())
    return Decision(**{**row, **read, "nodes": tuple(filter(None, row["nodes"].split(",")))})


def _newest_id(connection: Connection, array_id: int, task: int) -> int | None:
    is_it = (array_tasks.c.array_id == array_id) & (array_tasks.c.task == task)
    newest = select(array_tasks.c.job_id).where(is_it).order_by(array_tasks.c.at_s.desc()).limit(1)
    found = connection.execute(newest).scalar()
    return None if found is None else int(found)


def _ids_of(connection: Connection, job_id: int) -> set[int]:
    """The ids under which decisions about the job may stand."""
    task = task_ids.task_of(job_id)
    if task is None:
        of_it = select(array_tasks.c.array_id, array_tasks.c.task).where(array_tasks.c.job_id == job_id)
        row = connection.execute(of_it).one_or_none()
        task = None if row is None else (int(row[0]), int(row[1]))
    if task is None:
        return {job_id}
    newest = _newest_id(connection, *task)
    return {job_id, task_ids.task_id(*task)} | ({newest} if newest is not None else set())


def _count_again(connection: Connection, job_id: int, user_id: int, text: str, at_s: float) -> bool:
    """Count a repeated note with the note before and delete the placement between them; False if there is none before.

    An earlier job with the same id may belong to another user, so only notes of this user's jobs count. The cycle of
    the note gets the new time, too, so that it is kept as long as the note.
    """
    of_job = (decisions.c.job_id == job_id) & (decisions.c.user_id == user_id)
    notes = select(decisions.c.id, decisions.c.cycle_id).where(of_job, decisions.c.action == "note")
    found = connection.execute(notes.order_by(decisions.c.id.desc()).limit(1)).one_or_none()
    if found is None:
        return False
    note, cycle_id = found
    connection.execute(update(cycles).where(cycles.c.id == cycle_id).values(at_s=at_s))
    failed = of_job & (decisions.c.id > note) & (decisions.c.action == "start")
    cycles_of_failed = connection.execute(select(decisions.c.cycle_id).where(failed)).scalars().all()
    connection.execute(delete(decisions).where(failed))
    of_others = select(decisions.c.cycle_id).where(decisions.c.cycle_id.in_(cycles_of_failed))
    empty = set(cycles_of_failed) - set(connection.execute(of_others).scalars())
    connection.execute(delete(snapshots).where(snapshots.c.cycle_id.in_(empty)))
    connection.execute(delete(cycles).where(cycles.c.id.in_(empty)))
    counted = {"times": decisions.c.times + 1, "reason": text, "at_s": at_s}
    connection.execute(update(decisions).where(decisions.c.id == note).values(counted))
    return True


def _start_row(start: Start, explanation: Explanation | None) -> dict[str, Any]:
    alternative = start.alternative
    return {
        "job_id": start.job_id,
        "action": "start",
        "nodes": ",".join(start.nodes),
        "reason": start.reason,
        "scale": alternative.scale,
        "exclusive": alternative.exclusive,
        "demand": json.dumps(_by_resource(alternative.demand)),
        "considered": None if explanation is None else json.dumps(explanation.as_json()),
    }


def _by_resource(demand: Resources) -> dict[str, int]:
    """The demand by resource, also of GPUs, by Slurm's names: `gpu` (all of them) and `gpu:a100`."""
    others = demand._asdict()
    gpus: Gpus = others.pop("gpus")
    return {**others, **dict(gpus)}


def _note_row(job_id: int, text: str) -> dict[str, Any]:
    empty = {"nodes": "", "scale": 1, "exclusive": False, "demand": "{}", "considered": None}
    return {"job_id": job_id, "action": "note", "reason": text, **empty}


def _restart_row(job_id: int, note: RestartNote) -> dict[str, Any]:
    return {
        **_note_row(job_id, note.why),
        "action": "proposal" if note.is_proposal else "restart",
        "nodes": ",".join(note.nodes),
        "considered": json.dumps(note.terms.as_json()),
    }


class _History(NamedTuple):
    """A policy's history: the name and the version of its form, and its text."""

    # The name, because the recorded cycle may be that of another policy with the same version.
    name: str
    version: int
    text: str


@dataclass(frozen=True, slots=True)
class _Recorded:
    """A snapshot without its history. `allowed` are the sets of nodes, `allowed_of` the set's index of each job."""

    snapshot: Snapshot
    history: _History | None
    allowed: tuple[frozenset[str] | None, ...]
    allowed_of: tuple[int, ...]


_ELSEWHERE = {0: {"snapshot": {"history": True, "waiting": {"__all__": {"allowed"}}}}}


def pack(snapshot: Snapshot, form: HistoryFormat | None = None) -> bytes:
    """The snapshot as bytes. Its history is written in the given form; without a form it is left out.

    Raises:
        ValueError: the history is not of the form's type, or the snapshot holds a value of another type.
    """
    history = None
    if form is not None and snapshot.history is not None:
        history = _History(form.type.__name__, form.version, text_of(form, snapshot.history))
    indices: dict[frozenset[str] | None, int] = {}
    allowed_of = tuple(indices.setdefault(job.allowed, len(indices)) for job in snapshot.waiting)
    recorded = _Recorded(snapshot, history, tuple(indices), allowed_of)
    return zlib.compress(typed_json.written(_Recorded, recorded, exclude=_ELSEWHERE).encode(), level=1)


def unpack(data: bytes, form: HistoryFormat | None = None) -> Snapshot:
    """The snapshot that `pack` wrote.

    Its history is left out if it is damaged, or of another type or version than the form.

    Raises:
        SnsError: the bytes are damaged.
    """
    try:
        recorded = typed_json.read(_Recorded, zlib.decompress(data))
        waiting = tuple(
            replace(job, allowed=recorded.allowed[index])
            for job, index in zip(recorded.snapshot.waiting, recorded.allowed_of, strict=True)
        )
    except (zlib.error, ValueError, IndexError) as problem:
        raise SnsError(f"a recorded snapshot cannot be read: {problem}") from None
    return replace(recorded.snapshot, waiting=waiting, history=_history(recorded.history, form))


def _history(written: _History | None, form: HistoryFormat | None) -> object | None:
    if written is None or form is None or (written.name, written.version) != (form.type.__name__, form.version):
        return None
    try:
        return history_of(form, written.text)
    except ValueError:
        return None
