"""What the keys for one job do: explain, release, try with less; and the switch. Each act is confirmed first."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from textual.app import App
from textual.message import Message
from textual.screen import Screen

from slurm_sns.cli.live.control import released
from slurm_sns.cli.live.terminal import explanation
from slurm_sns.cli.live.top import acts
from slurm_sns.cli.live.top.overview_feed import one_line
from slurm_sns.cli.live.top.screens import ChangeChoice, ExplanationScreen, Question
from slurm_sns.errors import BadInput, SnsError

Row = Mapping[str, Any]
Say = Callable[[str], None]

#: So long an act that was said yes to is waited for after the end of the application.
MOST_END_S = 5.0


@dataclass(frozen=True, slots=True)
class Doors:
    """What the application asks and does outside of itself; tests give their own.

    `ask` answers a request to the scheduler, `run` runs a command of Slurm. `may_switch` says whether slurm_sns is off
    now, and raises if the caller may not turn it off or on, which `switch` does and says. `order` says by what the
    queue is ordered.
    """

    ask: Callable[[dict[str, Any]], Any]
    run: Callable[..., str]
    may_switch: Callable[[], bool]
    switch: Callable[[bool], str]
    order: Callable[[dict[str, Any]], str]
    clock: Callable[[], float] = time.time


class ThreadDone(Message):
    """What a thread has done, for the thread of the screen."""

    def __init__(self, then: Callable[[Any], None], value: Any) -> None:
        super().__init__()
        self.then, self.value = then, value


class ActGoal(NamedTuple):
    """What an act brings about, as a sentence, and the command that shows whether it has."""

    reached: str
    check: str


@dataclass
class SentAct:
    """An act that was said yes to, and what came of it, once that is known."""

    goal: ActGoal
    thread: threading.Thread | None = None
    outcome: str = ""


class JobActs:
    """Explanations and acts of the application; `say` shows a sentence, `acted` is called when an act was done."""

    def __init__(self, app: App[None], doors: Doors, say: Say, acted: Callable[[], None]) -> None:
        self._app, self._doors, self._say, self._acted = app, doors, say, acted
        #: The acts of which the screen has not shown yet what came of them.
        self._sent: list[SentAct] = []

    def _in_background(self, work: Callable[[], Any], then: Callable[[Any], None], fail: Say) -> threading.Thread:
        """Do the work in a thread; then go on here with what it returns, or say what went wrong."""

        def run() -> None:
            try:
                done = ThreadDone(then, work())
            except SnsError as problem:
                done = ThreadDone(fail, f"! {one_line(problem)}")
            except (ValueError, KeyError, TypeError) as problem:  # cut off, or of another version
                done = ThreadDone(fail, f"! the answer cannot be read: {type(problem).__name__} {one_line(problem)}")
            except Exception as problem:  # noqa: BLE001 - whatever it is, the user waits for a word
                done = ThreadDone(fail, f"! {type(problem).__name__}: {one_line(problem)}")
            with suppress(RuntimeError):  # the application has ended
                self._app.post_message(done)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def explain(self, row: Row) -> None:
        """Show why the job waits, or where it was placed."""
        screen = ExplanationScreen(row)
        self._app.push_screen(screen)

        def work() -> Sequence[Any]:
            answer = self._doors.ask(acts.explain_request(row))
            return list(explanation(answer, self._doors.order(answer), now_s=self._doors.clock()))

        self._in_background(work, screen.explain, screen.fail)

    def _if_still_on(self, screen: Screen[Any], key: str, go_on: Callable[[], None]) -> None:
        """Go on if the screen of the key press is still open: a question must not come over another one."""
        if self._app.screen is screen:
            go_on()
        else:
            self._say(f"another screen was opened meanwhile: press {key} again")

    def _confirmed(self, question: str, act: Callable[[], str], goal: ActGoal) -> None:
        """Ask; only after yes do it, in a thread, and say what came of it."""

        def answered(yes: bool | None) -> None:
            if not yes:
                self._say("nothing was done")
                return
            self._say("...")
            self._send(act, SentAct(goal))

        self._app.push_screen(Question(question), answered)

    def _send(self, act: Callable[[], str], sent: SentAct) -> None:
        def work() -> str:
            try:
                sent.outcome = act()
            except Exception as problem:
                sent.outcome = f"! {one_line(problem) or type(problem).__name__}"
                raise
            return sent.outcome

        def tell(outcome: str) -> None:
            self._sent.remove(sent)
            self._say(outcome)
            self._acted()

        self._sent.append(sent)
        sent.thread = self._in_background(work, tell, tell)

    def outcomes(self, wait_s: float = MOST_END_S) -> list[str]:
        """After the end: what came of the acts of which the screen has not said it; they are waited for so long."""
        until_s = time.monotonic() + wait_s
        told = []
        for sent in self._sent:
            if sent.thread is not None:
                sent.thread.join(max(0.0, until_s - time.monotonic()))
            goal = sent.goal
            told.append(sent.outcome or f"it is not known whether {goal.reached}; see: {goal.check}")
        return told

    def release(self, row: Row) -> None:
        """Give the job to Slurm."""
        wanted = acts.release(row)
        goal = ActGoal(f"{row['label']} was given to Slurm", acts.how_to_check(row))
        self._confirmed(wanted.question, lambda: released(self._doors.ask(wanted.request)), goal)

    def _changes(self, row: Row) -> list[dict[str, Any]]:
        """Ask what would start the job now; an earlier answer may be one of a job that waited then and runs now."""
        return acts.changes_now(row, self._doors.ask(acts.explain_request(row)))

    def try_less(self, row: Row) -> None:
        """Choose one of the changes with which the job would start now."""
        screen = self._app.screen
        self._say("asking what would start it now ...")

        def choose(changes: Sequence[Mapping[str, Any]]) -> None:
            self._if_still_on(screen, "t", lambda: self._choose_change(row, changes))

        self._in_background(lambda: self._changes(row), choose, self._say)

    def _choose_change(self, row: Row, changes: Sequence[Mapping[str, Any]]) -> None:
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
            if change["options"] not in [each["options"] for each in self._changes(row)]:
                raise BadInput(f"{row['label']} would no longer start with {change['options']}: nothing was changed")
            said = " ".join(self._doors.run(*smaller.command).split())
            return said or "Slurm has changed the job; the next cycle plans with it"

        goal = ActGoal(f"Slurm has changed {row['label']}", acts.how_to_check(row))
        self._confirmed(smaller.told, run, goal)

    def switch(self) -> None:
        """Turn slurm_sns off, or on again if it is off now, if the caller may."""
        screen = self._app.screen

        def ask(disabled: bool) -> None:
            goal = ActGoal(f"slurm_sns was {'enabled' if disabled else 'disabled'}", "sns status")
            question = acts.switch_question(disabled=disabled)
            self._if_still_on(
                screen, "d", lambda: self._confirmed(question, lambda: self._doors.switch(not disabled), goal)
            )

        self._in_background(self._doors.may_switch, ask, self._say)
