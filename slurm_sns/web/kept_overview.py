"""What is known of the cluster: the scheduler's last overview, and what each viewer may see of it.

The scheduler is asked when somebody looks, once for all who look, and not before it has something new. So its cost does
not depend on the number of viewers. Explanations are asked for one at a time, with a pause as long as each took.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, cast

from anyio import to_thread

from slurm_sns.errors import SnsError, Unreachable
from slurm_sns.scheduler.answers.answer_types import QueueRow
from slurm_sns.scheduler.answers.folded_arrays import with_folded_arrays
from slurm_sns.scheduler.answers.overview_types import OverviewAnswer
from slurm_sns.scheduler.answers.redaction import for_user
from slurm_sns.web.page_types import PageOverview, QueuePart
from slurm_sns.web.viewers import Viewer

#: Sends a request to the scheduler; raises SnsError.
Ask = Callable[[dict[str, Any]], Any]

#: The first rows, which come with the overview; the page asks for as many more at a time.
FIRST_ROWS = 200
#: For at least and at most so long an overview is kept: next_s is the scheduler's clock, which may be stepped.
LEAST_KEPT_S, MOST_KEPT_S = 0.5, 60.0
#: A scheduler that did not answer is asked again after so long.
ASKED_AGAIN_S = 2.0
#: What is made for a viewer is kept for so many, those who looked last.
MOST_VIEWERS = 64
#: So many viewers may wait for an explanation, each for one.
MOST_ASKING = 16
#: The longest pause after an explanation.
LONGEST_REST_S = 5.0
#: What a filter is compared with.
_SEARCHED = ("label", "user", "account", "name", "partition", "state", "reason")


class PageClock(NamedTuple):
    """Unix seconds, and monotonic ones."""

    now: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic


class Busy(SnsError):
    """Too many explanations are asked for at once."""


class Sight:
    """What one viewer sees of one overview."""

    def __init__(self, overview: OverviewAnswer, viewer: Viewer) -> None:
        self._viewer = viewer
        self._seen = overview if viewer.is_admin else for_user(overview, viewer.name)

    @cached_property
    def _rows(self) -> Sequence[QueueRow]:
        # A row with another label is still a row.
        return with_folded_arrays(self._seen["jobs"])  # type: ignore[return-value]

    def part(self, offset: int, limit: int, words: str = "") -> QueuePart:
        """So many of the rows that have each of the words, from that one on."""
        wanted = words.lower().split()
        rows = [row for row in self._rows if _has(row, wanted)] if wanted else self._rows
        return {
            "offset": offset,
            "matching": len(rows),
            "total": len(self._rows),
            "rows": list(rows[offset : offset + limit]),
        }

    def overview(self) -> PageOverview:
        """All but the queue, and the queue's first rows."""
        told = {
            **self._seen,
            "viewer": self._viewer.name,
            "is_admin": self._viewer.is_admin,
            "explains": self._viewer.may_ask,
            "jobs": self.part(0, FIRST_ROWS),
        }
        return cast(PageOverview, told)


def _has(row: QueueRow, words: Sequence[str]) -> bool:
    text = "\n".join(str(row[name]) for name in _SEARCHED).lower()  # type: ignore[literal-required]
    return all(word in text for word in words)


class KeptOverview:
    """The last overview, while the scheduler answers; what it said last is not shown any longer than that."""

    def __init__(self, ask: Ask, clock: PageClock) -> None:
        self._ask, self._clock = ask, clock
        self._one_asks = asyncio.Lock()
        self._kept: OverviewAnswer | None = None
        self._asked_next_s = clock.steady()
        self._problem = ""
        #: Since when the scheduler does not answer, Unix seconds; None while it does.
        self.silent_since_s: float | None = None
        self._sights: OrderedDict[Viewer, Sight] = OrderedDict()

    async def sight(self, viewer: Viewer) -> Sight:
        """What this viewer sees now.

        Raises:
            Unreachable: the scheduler does not answer.
        """
        async with self._one_asks:
            if self._clock.steady() >= self._asked_next_s:
                await self._renew()
            if self._kept is None:
                raise Unreachable(self._problem)
            if viewer not in self._sights:
                self._sights[viewer] = await to_thread.run_sync(Sight, self._kept, viewer)
                if len(self._sights) > MOST_VIEWERS:
                    self._sights.popitem(last=False)
            self._sights.move_to_end(viewer)
            return self._sights[viewer]

    async def look_ahead(self) -> None:
        """Ask for a newer overview if it is time, for somebody who will look in a moment."""
        async with self._one_asks:
            if self._clock.steady() >= self._asked_next_s:
                await self._renew()

    async def _renew(self) -> None:
        try:
            kept: OverviewAnswer = await to_thread.run_sync(self._ask, {"command": "overview"})
        except SnsError as problem:
            self._problem, self._kept = str(problem), None
            self.silent_since_s = self._clock.now() if self.silent_since_s is None else self.silent_since_s
            self._asked_next_s = self._clock.steady() + ASKED_AGAIN_S
        else:
            self.silent_since_s = None
            self._asked_next_s = self._clock.steady() + min(
                MOST_KEPT_S, max(LEAST_KEPT_S, kept.get("next_s", 0.0) - self._clock.now())
            )
            if self._kept is None or any(kept[name] != self._kept[name] for name in ("at_s", "trouble")):
                self._sights.clear()
            self._kept = kept
        if self._kept is None:
            self._sights.clear()


class Explanations:
    """Asks the scheduler to explain jobs, one at a time: it answers us as an admin, whom it does not limit."""

    def __init__(self, ask: Ask, clock: PageClock) -> None:
        self._ask, self._clock = ask, clock
        self._one_asks = asyncio.Lock()
        self._asking: set[str | None] = set()
        self._rests_until_s = clock.steady()

    async def of(self, viewer: Viewer, job: dict[str, int]) -> Any:
        """The explanation that the viewer would get of the scheduler for this job (`job_id`, and a `task` of an array).

        Raises:
            Busy: the viewer, or too many others, wait for one already.
            SnsError: the scheduler refuses, or does not answer.
        """
        if viewer.name in self._asking or len(self._asking) >= MOST_ASKING:
            raise Busy("another explanation is asked for; try again in a moment")
        request = {"command": "explain", **job}
        if not viewer.is_admin:
            request["as_user"] = viewer.name
        self._asking.add(viewer.name)
        try:
            async with self._one_asks:
                await asyncio.sleep(max(0.0, self._rests_until_s - self._clock.steady()))
                began_s = self._clock.steady()
                try:
                    return await to_thread.run_sync(self._ask, request)
                finally:
                    ended_s = self._clock.steady()
                    self._rests_until_s = ended_s + min(LONGEST_REST_S, ended_s - began_s)
        finally:
            self._asking.discard(viewer.name)
