"""Old rows are deleted a few at a time, beside what the loop writes, so that no cycle waits for a long delete.

Each batch is a transaction of its own, of some hundred rows: the database is locked no longer than that. After one in
EVERY writes, batches follow each other until nothing old is left or BUDGET_S is over; the rest follows after the next
write. So what a shorter `store.keep_days` makes too old goes in the course of days.
"""

import time
from collections.abc import Callable
from typing import Any

from sqlalchemy import Column, Connection, Engine, delete, select

from slurm_sns.store.database import transaction

#: Rows of a batch. 200 of them take a few milliseconds (tests/benchmarks/records.py).
BATCH_ROWS = 200
#: Old rows are looked for after one in so many writes.
EVERY = 10
#: So long do batches follow each other after a write: a fiftieth of a cycle each second.
BUDGET_S = 0.02
#: This share of SQLite's pages, and so many, may be free before some are given back: new rows use free pages again.
FREE_SHARE, FREE_PAGES = 0.25, 1024
#: Pages that are given back in a batch.
PAGES = 64

#: Deletes a batch of what is too old at that moment (Unix seconds); returns whether more may be left.
DeleteBatch = Callable[[Connection, float], bool]


class Retention:
    """Calls these functions after writes, each until it has nothing left; `what_fails` begins the text of an error."""

    def __init__(self, engine: Engine, what_fails: str, *parts: DeleteBatch) -> None:
        """Use an engine of `open_store`."""
        self._engine, self._what_fails = engine, what_fails
        self._parts = (*parts, _give_pages_back) if engine.dialect.name == "sqlite" else parts
        self._writes = 0
        self._left: tuple[DeleteBatch, ...] = ()

    def after_write(self, now_s: float) -> None:
        """Delete for BUDGET_S at most, if it is time for it or more was left than that.

        Raises:
            Unreachable: a batch could not be deleted; those before it are.
        """
        if self._writes % EVERY == 0:
            self._left = self._parts
        self._writes += 1
        until_s = time.monotonic() + BUDGET_S
        while self._left and time.monotonic() < until_s:
            with transaction(self._engine, self._what_fails) as connection:
                more = self._left[0](connection, now_s)
            if not more:
                self._left = self._left[1:]


def older_than(keep_s: float, moment: "Column[float]") -> DeleteBatch:
    """Deletes rows by an indexed column of Unix seconds, oldest first; rows of one moment go together."""

    def batch(connection: Connection, now_s: float) -> bool:
        old = moment < now_s - keep_s
        edge = connection.execute(select(moment).where(old).order_by(moment).offset(BATCH_ROWS).limit(1)).scalar()
        connection.execute(delete(moment.table).where(old if edge is None else moment <= edge))
        return edge is not None

    return batch


def _give_pages_back(connection: Connection, _now_s: float) -> bool:
    """Make SQLite's file smaller where much of it is free. A file made without auto_vacuum keeps its size."""

    def pragma(name: str) -> int:
        return int(connection.exec_driver_sql(f"PRAGMA {name}").scalar() or 0)

    free = pragma("freelist_count")
    if free < max(FREE_PAGES, FREE_SHARE * pragma("page_count")) or not pragma("auto_vacuum"):
        return False
    # Not execute, which takes the first step of a statement that returns no rows: one page.
    raw: Any = connection.connection.driver_connection
    raw.executescript(f"PRAGMA incremental_vacuum({PAGES})")
    return True
