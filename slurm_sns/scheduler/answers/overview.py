"""The overview of a cycle: the queue, each node with the jobs on it, and the last day, for `sns top` and `sns web`.

`SharedOverview` makes it when somebody asks, at most once a cycle, for all who ask: whatever is made for them together
takes at most 2 % of the time.
"""

import json
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from slurm_sns.errors import SnsError
from slurm_sns.json_text import JsonText
from slurm_sns.model import NOTHING, Node, Resources
from slurm_sns.policies.placement.reasons import kept_nodes
from slurm_sns.scheduler.answers.answer_types import amounts
from slurm_sns.scheduler.answers.overview_types import DayPoint, NodeView, OverviewAnswer
from slurm_sns.scheduler.answers.queue_rows import queue
from slurm_sns.scheduler.answers.redaction import UNAVAILABLE, for_user
from slurm_sns.scheduler.answers.status_answer import job_counts
from slurm_sns.scheduler.answers.stranded import left_free, stranded, waiting_needs
from slurm_sns.scheduler.answers.view import View
from slurm_sns.scheduler.observation import ObservedNode
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.free_nodes import completing_jobs
from slurm_sns.scheduler.start_estimates.board import EstimateBoard
from slurm_sns.task_ids import label

#: The part of the scheduler's time that overviews may take.
MOST_OF_TIME = 0.02
#: A caller is told to ask again after so many seconds at least, also where the next cycle is late.
LEAST_S = 0.5
#: So many users are told of one overview; who comes after them asks again when it is made anew.
MOST_USERS = 64
#: The kinds of waits (WaitKind) that never end by themselves.
_NEVER = ("too large", "never")


class SharedOverview:
    """The overview that all who ask share; a cycle ends every `interval_s`.

    `now_s` gives Unix seconds, `cpu_s` the calling thread's seconds of CPU.
    """

    def __init__(
        self,
        settings: Settings,
        board: EstimateBoard,
        day: Callable[[], Sequence[DayPoint]],
        *,
        interval_s: float,
        now_s: Callable[[], float] = time.time,
        cpu_s: Callable[[], float] = time.thread_time,
    ) -> None:
        self._settings, self._board, self._day, self._interval_s = settings, board, day, interval_s
        self._now_s, self._cpu_s = now_s, cpu_s
        self._making = threading.Lock()
        self._view: View | None = None
        self._whole: OverviewAnswer | None = None
        self._made_s = self._spent_s = 0.0
        #: JSON without its end, by user; None is an admin.
        self._told: dict[str | None, str] = {}

    def answer(self, view: View, trouble: str, user: str | None) -> JsonText:
        """The overview for this user, None for an admin: of this view, or of an earlier one until it may be made anew.

        A user who has no job in Slurm has the empty name. What troubles the scheduler is told as it is now.

        Raises:
            SnsError: too many users look at this one.
        """
        with self._making:
            began_s, now_s = self._cpu_s(), self._now_s()
            if self._whole is None or (view is not self._view and not self._made_s <= now_s < self._next_s):
                self._view, self._whole, self._made_s, self._spent_s = view, self._made(view), now_s, 0.0
                self._told.clear()
            if user not in self._told:
                if len(self._told) >= MOST_USERS and user is not None:
                    raise SnsError(
                        f"{MOST_USERS} users look at the overview already; try again in a minute, or sns queue"
                    )
                told = self._whole if user is None else for_user(self._whole, user)
                self._told[user] = json.dumps({name: value for name, value in told.items() if name != "trouble"})[:-1]
                self._spent_s += self._cpu_s() - began_s
            next_s = max(self._next_s, view.at_s + self._interval_s, now_s + LEAST_S)
            return JsonText(f'{self._told[user]}, "trouble": {json.dumps(trouble)}, "next_s": {next_s}}}')

    def _made(self, view: View) -> OverviewAnswer:
        rows = list(queue(view, None, self._board.now))
        never = sum(row["waits"] is not None and row["waits"]["kind"] in _NEVER for row in rows)
        return {
            "at_s": view.at_s,
            "cycle_s": view.took_s,
            "mode": view.mode,
            "disabled": view.disabled,
            "trouble": "",
            "chosen": view.plan.report.chosen,
            "counts": {**view.once(job_counts), "never": never},
            "jobs": rows,
            "nodes": nodes_of(view, self._settings),
            "day": list(self._day()),
        }

    @property
    def _next_s(self) -> float:
        return self._made_s + self._spent_s / MOST_OF_TIME


def nodes_of(view: View, settings: Settings) -> list[NodeView]:
    """The nodes of managed partitions in Slurm's order, with the jobs on them, whoever placed these."""
    told, on = lru_cache(None)(amounts), _shares(view)
    kept: dict[str, list[str]] = {}
    for job_id, names in kept_nodes(view.plan).items():
        for name in names:
            kept.setdefault(name, []).append(label(job_id))
    free, needs = {node.name: node for node in left_free(view)}, waiting_needs(view)
    completing = completing_jobs(view.situation.observed)
    found: list[NodeView] = []
    for node in view.situation.nodes.values():
        partitions = node.partitions & settings.partitions
        if not partitions:
            continue
        planned = free.get(node.name) or Node(node.name, node.capacity, _left(node))
        is_usable = node.name in free
        held = on.get(node.name, [])
        if node.name in completing and not held:
            held = [(label(completing[node.name]), completing[node.name] in view.situation.jobs, node.capacity)]
        found.append(
            {
                "name": node.name,
                "partitions": sorted(partitions),
                "capacity": told(node.capacity),
                "free": told(planned.free),
                "stranded": told(stranded(needs, planned) if is_usable else NOTHING),
                "unavailable": "" if is_usable else view.situation.snapshot.unavailable.get(node.name, UNAVAILABLE),
                "kept_for": kept.get(node.name, []),
                "jobs": [
                    {"label": name, "managed": is_ours, "holds": told(holds)}
                    for name, is_ours, holds in sorted(held, key=_by_size)
                ],
            }
        )
    return found


#: A job's label, whether it is ours, and what it holds of one node.
_Share = tuple[str, bool, Resources]


def _by_size(share: _Share) -> tuple[int, int, str]:
    name, _, holds = share
    return -holds.cores, -holds.memory_mb, name


def _left(node: ObservedNode) -> Resources:
    left = node.left()
    return left.minus(left.up_to(NOTHING))


def _shares(view: View) -> dict[str, list[_Share]]:
    """What each job holds of each node, with what the cycle has placed, by node."""
    situation = view.situation
    labels = {job.id: job.label for job in situation.observed if job.allocated or job.pinned_to}
    on: dict[str, list[_Share]] = {}
    for job in situation.snapshot.active:
        if not job.in_storage:
            _put(on, (labels.get(job.id) or label(job.id), job.id in situation.jobs, job.demand), job.nodes)
    if view.mode == "enforce":
        for start in view.plan.starts:
            _put(on, (label(start.job_id), True, start.alternative.demand), start.nodes)
    return on


def _put(on: dict[str, list[_Share]], share: _Share, nodes: Iterable[str]) -> None:
    for name in nodes:
        on.setdefault(name, []).append(share)
