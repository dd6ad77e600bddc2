"""The screens over the views: a question before an act, a choice, an explanation, a node, the help."""

from collections.abc import Sequence
from typing import ClassVar

from rich.console import Group, RenderableType
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Button, Static

from slurm_sns.cli.live.queue_view import Row
from slurm_sns.cli.live.top.line_list import LineList
from slurm_sns.log import printable

CLOSE: list[BindingType] = [
    Binding("escape,q", "app.pop_screen", "back"),
    Binding("ctrl+c", "app.quit", "quit", show=False, priority=True),
]


class Question(ModalScreen[bool]):
    """A question that is answered with yes or no; no is what Enter takes first."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "yes"),
        Binding("n,escape,q", "answer(False)", "no"),
        Binding("left,right", "app.focus_next", "the other", show=False),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """The question above two buttons."""
        with Vertical(classes="dialog"):
            yield Static(Text("\n".join(map(printable, self._question.splitlines()))))
            with Horizontal(classes="buttons"):
                yield Button("n: no", id="no", compact=True)
                yield Button("y: yes", id="yes", compact=True)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """By mouse, or Enter."""
        self.action_answer(event.button.id == "yes")

    def action_answer(self, yes: bool) -> None:
        """Close with the answer."""
        self.dismiss(yes)


class ChangeChoice(ModalScreen[int | None]):
    """One of several lines, or none."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "leave", "none of them")]

    def __init__(self, question: str, lines: Sequence[str]) -> None:
        super().__init__()
        self._question, self._lines = question, lines

    def compose(self) -> ComposeResult:
        """The question above the lines."""
        with Vertical(classes="dialog"):
            yield Static(Text(printable(self._question)))
            choices = LineList(self._lines)
            choices.styles.height = len(self._lines)
            yield choices
            yield Static("Enter: choose   Esc: none of them", classes="hint")

    def on_line_list_chosen(self, chosen: LineList.Chosen) -> None:
        """A line was chosen."""
        chosen.stop()  # it is not the queue's
        self.dismiss(self.query_one(LineList).cursor)

    def action_leave(self) -> None:
        """Close without a choice."""
        self.dismiss(None)


class ExplanationScreen(Screen[None]):
    """Why a job waits or where it was placed, as `sns explain` says it; acts on the job start from here, too."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *CLOSE,
        Binding("r", "app.release", "release to Slurm"),
        Binding("t", "app.try_less", "try with less"),
    ]

    def __init__(self, row: Row) -> None:
        super().__init__()
        self.row = row
        # Made here, as an answer can come before they are on the screen.
        self._explained = Static(f"asking why {printable(row['label'])} ...", id="explained", markup=False)
        self._said = Static(classes="said", markup=False)

    def compose(self) -> ComposeResult:
        """The text, scrollable, above the keys."""
        with VerticalScroll():
            yield self._explained
        yield self._said
        yield Static("r: release to Slurm   t: try with less   arrows: scroll   Esc: back", classes="keys")

    def explain(self, parts: Sequence[RenderableType]) -> None:
        """Show the answer; the parts' strings are rich's markup, with users' texts escaped."""
        texts = [Text.from_markup(part) if isinstance(part, str) else part for part in parts]
        self._explained.update(Group(*texts))

    def fail(self, problem: str) -> None:
        """Say why there is no explanation."""
        self._explained.update(Text(printable(problem)))

    def say(self, text: str) -> None:
        """Show a sentence above the keys."""
        self._said.update(printable(text))


class NodeJobs(ModalScreen[int | None]):
    """What there is to say of a node, and its jobs, of which one can be chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "leave", "back")]

    def __init__(self, told: Sequence[str], jobs: Sequence[str]) -> None:
        super().__init__()
        self._told, self._jobs = told, jobs

    def compose(self) -> ComposeResult:
        """Sentences above the jobs."""
        with Vertical(classes="dialog"):
            yield Static(Text("\n".join(map(printable, self._told))))
            yield LineList(self._jobs or ["no jobs"])
            yield Static("Enter: explain the job   Esc: back", classes="hint")

    def on_line_list_chosen(self, chosen: LineList.Chosen) -> None:
        """A job was chosen."""
        chosen.stop()  # it is not the queue's
        self.dismiss(self.query_one(LineList).cursor if self._jobs else None)

    def action_leave(self) -> None:
        """Close without a choice."""
        self.dismiss(None)


class Help(Screen[None]):
    """All keys and signs."""

    BINDINGS: ClassVar[list[BindingType]] = [*CLOSE, Binding("question_mark", "app.pop_screen", "back")]

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """The text, scrollable."""
        with VerticalScroll():
            yield Static(self._text, markup=False)
        yield Static("arrows: scroll   Esc: back", classes="keys")
