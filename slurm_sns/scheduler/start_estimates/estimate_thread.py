"""The thread that makes estimates beside the loop: after a cycle, one round at a time, and a tenth of the time.

Of two threads one runs Python code at a time, so a round makes a cycle longer. Nothing here can stop a cycle. What
fails is logged once and shown as trouble. A store that does not answer costs no estimate: what was learnt meanwhile is
written when it answers again.
"""

import threading
from collections.abc import Collection
from types import TracebackType

from slurm_sns.errors import SnsError
from slurm_sns.log import Outage
from slurm_sns.scheduler.pace import apart_s
from slurm_sns.scheduler.ports import Clock, EstimateStore
from slurm_sns.scheduler.snapshot.situation import Situation
from slurm_sns.scheduler.start_estimates.board import EstimateBoard, Estimates
from slurm_sns.scheduler.start_estimates.estimator import Estimator, NewEvidence

#: How long the end of the thread is waited for: a round takes a few seconds at most.
PATIENCE_S = 10.0
#: However long a round takes, the next one begins so long after it, or when it ends.
MOST_APART_S = 10.0
#: So many of the latest runs and starts are kept for a store that does not answer.
MOST_UNSAVED = 10_000


def rest_s(took_s: float) -> float:
    """How long the thread rests after a round that took so long."""
    return max(0.0, apart_s(took_s, MOST_APART_S) - took_s)


class EstimateThread:
    """Makes estimates of the situations that it is shown while the block runs, and puts them on the board."""

    def __init__(
        self, estimator: Estimator, board: EstimateBoard, store: EstimateStore, clock: Clock, outage: Outage
    ) -> None:
        self._estimator, self._board, self._store = estimator, board, store
        self._clock, self._outage = clock, outage
        self._unsaved = NewEvidence()
        self._shown: tuple[Situation, Collection[int]] | None = None
        self._is_shown = threading.Event()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="estimates", daemon=True)

    def show(self, situation: Situation, starting: Collection[int]) -> None:
        """Let the next round be about this situation; never waits."""
        self._shown = situation, starting
        self._is_shown.set()

    def __enter__(self) -> "EstimateThread":
        self._board.of_tried = self._estimator.of_tried
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._is_shown.set()
        self._thread.join(PATIENCE_S)

    def _work(self) -> None:
        while True:
            self._is_shown.wait()
            self._is_shown.clear()
            if self._is_over.is_set():
                return
            began_s = self._clock.steady()
            if self._shown is not None:
                self.round(*self._shown)
            if self._is_over.wait(rest_s(self._clock.steady() - began_s)):
                return

    def round(self, situation: Situation, starting: Collection[int]) -> None:
        """One round, with everything that may fail in it."""
        try:
            learnt = self._estimator.round(situation, starting)
            self._board.now = self._estimator.now
            self._keep(learnt)
            self._outage.over(self._clock.now())
        except SnsError as problem:
            self._outage.met(f"estimates: {problem}", self._clock.now())
        except Exception as problem:  # noqa: BLE001 - the thread's outermost block: a defect must not end it
            self._board.now = Estimates()
            self._outage.met_defect(problem, self._clock.now())
        self._board.trouble = self._outage.now

    def _keep(self, learnt: NewEvidence) -> None:
        """Write it, and what the store has not taken before."""
        runs, starts = self._unsaved.runs + learnt.runs, self._unsaved.starts + learnt.starts
        self._unsaved = NewEvidence(runs[-MOST_UNSAVED:], starts[-MOST_UNSAVED:])
        if runs or starts:
            self._store.save(self._unsaved.runs, self._unsaved.starts)
            self._unsaved = NewEvidence()
