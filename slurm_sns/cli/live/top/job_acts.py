"""What the keys for one job do: explain, release, try with less; and the switch. Each act is confirmed first."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from textual.app import App
from textual.message import Message

from slurm_sns.cli.live.control import released
from slurm_sns.cli.live.terminal import explanation
from slurm_sns.cli.live.top import acts
from slurm_sns.cli.live.top.overview_feed import one_line
from slurm_sns.cli.live.top.screens import ChangeChoice, ExplanationScreen, Question
from slurm_sns.errors import SnsError

Row = Mapping[str, Any]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Doors:
    """What the application asks and does outside of itself; tests give their own.

    `ask` answers a request to the scheduler, `run` runs a command of Slurm, `may_switch` raises if the caller may not
    turn slurm_sns off or on, which `switch` does and says. `order` says by what the queue is ordered.
    """

    ask: Callable[[dict[str, Any]], Any]
    run: Callable[..., str]
    may_switch: Callable[[], None]
    switch: Callable[[bool], str]
    order: Callable[[dict[str, Any]], str]
    clock: Callable[[], float] = time.time


class ThreadDone(Message):
    """What a thread has done, for the thread of the screen."""

    def __init__(self, then: Callable[[Any], None], value: Any) -> None:
        super().__init__()
        self.then, self.value = then, value


class JobActs:
    """Explanations and acts of the application; `say` shows a sentence."""

    def __init__(self, app: App[None], doors: Doors, say: Say) -> None:
        self._app, self._doors, self._say = app, doors, say

    def _in_background(self, work: Callable[[], Any], then: Callable[[Any], None], fail: Say) -> None:
        """Do the work in a thread; then go on here with what it returns, or say what went wrong."""

        def run() -> None:
            try:
                done = ThreadDone(then, work())
            except SnsError as problem:
                done = ThreadDone(fail, f"! {one_line(problem)}")
            except (ValueError, KeyError, TypeError) as problem:  # cut off, or of another version
                done = ThreadDone(fail, f"! the answer cannot be read: {type(problem).__name__} {one_line(problem)}")
            self._app.post_message(done)

        threading.Thread(target=run, daemon=True).start()

    def explain(self, row: Row) -> None:
        """Show why the job waits, or where it was placed."""
        screen = ExplanationScreen(row)
        self._app.push_screen(screen)

        def work() -> tuple[dict[str, Any], Sequence[Any]]:
            answer = self._doors.ask(acts.explain_request(row))
            return answer, list(explanation(answer, self._doors.order(answer), now_s=self._doors.clock()))

        self._in_background(work, lambda found: screen.explain(*found), screen.fail)

    def _confirmed(self, question: str, act: Callable[[], str]) -> None:
        """Ask; only after yes do it, in a thread, and say what came of it."""

        def answered(yes: bool | None) -> None:
            if not yes:
                self._say("nothing was done")
                return
            self._say("...")
            self._in_background(act, self._say, self._say)

        self._app.push_screen(Question(question), answered)

    def release(self, row: Row) -> None:
        """Give the job to Slurm."""
        wanted = acts.release(row)
        self._confirmed(wanted.question, lambda: released(self._doors.ask(wanted.request)))

    def try_less(self, row: Row) -> None:
        """Choose one of the changes with which the job would start now."""
        screen = self._app.screen
        if isinstance(screen, ExplanationScreen) and screen.answer is not None:
            self._choose_change(row, screen.answer)
            return
        self._say("asking what would start it now ...")
        self._in_background(
            lambda: self._doors.ask(acts.explain_request(row)),
            lambda answer: self._choose_change(row, answer),
            self._say,
        )

    def _choose_change(self, row: Row, answer: Mapping[str, Any]) -> None:
        changes = answer.get("would_start", [])
        if not changes:
            self._say(f"{row['label']}: no smaller request is known that would start it now")
            return

        def chosen(at: int | None) -> None:
            if at is not None:
                self._change(row, changes[at])

        self._app.push_screen(ChangeChoice(f"Try {row['label']} with:", acts.change_lines(changes)), chosen)

    def _change(self, row: Row, change: Mapping[str, Any]) -> None:
        smaller = acts.smaller_request(row["label"], change)
        if not smaller.command:
            self._say(smaller.told)
            return

        def run() -> str:
            said = " ".join(self._doors.run(*smaller.command).split())
            return said or "Slurm has changed the job; the next cycle plans with it"

        self._confirmed(smaller.told, run)

    def switch(self, *, disabled: bool) -> None:
        """Turn slurm_sns off, or on again, if the caller may."""

        def ask(_: Any) -> None:
            self._confirmed(acts.switch_question(disabled=disabled), lambda: self._doors.switch(not disabled))

        self._in_background(self._doors.may_switch, ask, self._say)
