"""The terminal application `sns top`: views, keys, and the acts, each asked about before anything is sent."""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.events import Resize
from textual.message import Message
from textual.widgets import Input, Static

from slurm_sns.cli.live.queue_view import Row
from slurm_sns.cli.live.top import overview_check, overview_words
from slurm_sns.cli.live.top.job_acts import MOST_END_S, Doors, JobActs, ThreadDone
from slurm_sns.cli.live.top.line_list import QueueList
from slurm_sns.cli.live.top.node_boxes import ASCII, UNICODE
from slurm_sns.cli.live.top.node_grid import NodeGrid
from slurm_sns.cli.live.top.overview_feed import OverviewFeed
from slurm_sns.cli.live.top.queue_lines import JobChoice, LineForm, ListedJobs
from slurm_sns.cli.live.top.screens import ExplanationScreen, Help, NodeJobs
from slurm_sns.log import printable

#: From this width on queue and nodes stand side by side.
BOTH_FROM = 140
#: At most so many problems are shown.
MOST_TROUBLES = 3
#: Keys that belong to the views: they do nothing while another screen is open.
OF_VIEWS = frozenset({"switch_view", "filter", "clear", "fold", "compact", "switch", "help"})
#: Keys for a job: they count where one is shown, in the views and in an explanation.
OF_JOBS = frozenset({"release", "try_less"})


class ClusterTop(App[None]):
    """The queue and the nodes, kept up to date by a thread that asks the scheduler."""

    TITLE = "sns top"
    ENABLE_COMMAND_PALETTE = False
    CSS_PATH = Path(__file__).with_name("top.tcss")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("ctrl+c", "quit", "quit", show=False, priority=True),
        Binding("n,tab", "switch_view", "queue or nodes"),
        Binding("slash", "filter", "filter"),
        Binding("escape", "clear", "clear", show=False),
        Binding("a", "fold", "fold arrays"),
        Binding("c", "compact", "boxes or lines"),
        Binding("r", "release", "release"),
        Binding("t", "try_less", "try with less"),
        Binding("d", "switch", "disable or enable"),
        Binding("question_mark", "help", "help"),
    ]

    class News(Message):
        """An overview, or why there is none."""

        def __init__(self, answer: dict[str, Any] | None, jobs: ListedJobs | None, problem: str) -> None:
            super().__init__()
            self.answer, self.jobs, self.problem = answer, jobs, problem

    def __init__(self, doors: Doors, choice: JobChoice, form: LineForm, *, ascii_only: bool = False) -> None:
        # The terminal's own colours, on its own background: readable on dark and light ones.
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"
        self._doors, self._choice = doors, choice
        self._glyphs = ASCII if ascii_only else UNICODE
        self._queue = QueueList(form, clock=doors.clock)
        self._grid = NodeGrid(self._glyphs, id="grid")
        self._feed = OverviewFeed(lambda: doors.ask({"command": "overview"}), self._told, doors.clock)
        self._acts = JobActs(self, doors, self.say, self._feed.wake)
        self._answer: dict[str, Any] | None = None
        self._jobs = ListedJobs([], choice)
        self._problem, self._since_s = "", doors.clock()
        self._folds, self._shows_nodes = True, False
        self._facts, self._trouble, self._keys = (
            Static(id=name, markup=False, classes=name) for name in ("facts", "trouble", "keys")
        )
        self._said = Static(id="said", markup=False)
        self._typed = Input(placeholder="words to look for; Enter keeps them, Esc clears", compact=True)
        self._of_nodes = Vertical(
            Static(overview_words.legend(self._glyphs), id="legend", markup=False), self._grid, id="nodes"
        )
        self._width = 0
        #: What was said last about an act; it stays until the cursor moves.
        self._message = ""

    @property
    def has_overview(self) -> bool:
        """Whether an answer has come."""
        return self._answer is not None

    def compose(self) -> ComposeResult:
        """One status line, the views, what is selected, the filter, the keys."""
        yield self._facts
        yield self._trouble
        yield Horizontal(self._queue, self._of_nodes, id="views")
        yield self._said
        yield self._typed
        yield self._keys

    def on_mount(self) -> None:
        """Begin to ask."""
        # Otherwise it would leave the terminal as the screen needs it.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.exit)
        self.set_class(self._glyphs is ASCII, "ascii")
        self._facts.update("asking the scheduler ...")
        self._typed.display = self._trouble.display = False
        self._width = self.size.width
        self._arrange()
        self._feed.start()
        self.set_interval(1.0, self._tick)

    def on_unmount(self) -> None:
        """Ask no more."""
        self._feed.stop()

    # What comes in

    def _told(self, answer: Any, problem: str) -> None:
        """In the thread that asks: prepare the jobs, so that the screen's thread only has to show them."""
        jobs = None
        if answer is not None:
            jobs = ListedJobs(answer["jobs"], self._choice)
            _ = jobs.folded if self._folds else jobs.single
            overview_check.read(answer, self._doors.clock())
        self.post_message(self.News(answer, jobs, problem))

    def on_cluster_top_news(self, news: News) -> None:
        """Show a new overview; without one the last stays, below the reason."""
        if news.jobs is None or news.answer is None:
            if not self._problem:
                self._since_s = self._doors.clock()
            self._problem = news.problem
        else:
            self._answer, self._jobs, self._problem = news.answer, news.jobs, ""
            self._grid.show(news.answer["nodes"])
            self._show_jobs()
        self._tick()

    def on_thread_done(self, done: ThreadDone) -> None:
        """Go on with what a thread has done."""
        done.then(done.value)

    # What is shown

    def _tick(self) -> None:
        now_s = self._doors.clock()
        if self._answer is not None:
            self._facts.update(printable(overview_words.facts(self._answer, now_s)), layout=False)
        troubles = overview_words.troubles(self._answer, self._problem, self._since_s, now_s)
        self._trouble.update("\n".join(f"! {printable(each)}" for each in troubles[:MOST_TROUBLES]))
        self._trouble.display = bool(troubles)
        self._queue.changed()

    def _show_jobs(self, *, by_user: bool = False) -> None:
        found = (self._jobs.folded if self._folds else self._jobs.single).with_words(self._typed.value)
        before = self._queue.row
        self._queue.show(found, by_user=by_user)
        if before is not None and (self._queue.row is None or self._queue.row["label"] != before["label"]):
            self._message = ""  # it was about another job
        self._say_selected()

    def _show_keys(self) -> None:
        if self._shows_nodes:
            keys = "n:queue Enter:jobs c:lines/boxes ?:help q:quit"
            place = overview_words.listed_position(self._grid.cursor, self._grid.count, self._grid.count)
        else:
            typed = printable(self._typed.value) or "filter"
            keys = f"Enter:explain n:nodes /:{typed} r:release t:less ?:help q:quit"
            place = overview_words.listed_position(self._queue.cursor, self._queue.count, len(self._jobs.rows))
        self._keys.update(f"{place}  {keys}", layout=False)

    def _arrange(self) -> None:
        both = self._width >= BOTH_FROM
        self._queue.display = both or not self._shows_nodes
        self._of_nodes.display = both or self._shows_nodes
        self.set_class(both, "both")
        # At once, so that the next key is the view's: Widget.focus() would do it later.
        self._typed.screen.set_focus(self._grid if self._shows_nodes else self._queue)
        self._say_selected()

    def on_resize(self, event: Resize) -> None:
        """A wide terminal shows both views."""
        self._width = event.size.width
        self._arrange()

    def say(self, text: str) -> None:
        """Show a sentence above the keys, on the screen that is open."""
        if isinstance(self.screen, ExplanationScreen):
            self.screen.say(text)
        self._message = printable(text)
        self._said.update(self._message, layout=False)

    def _say_selected(self) -> None:
        """Tell of what the cursor is on, unless a message stands there."""
        self._show_keys()
        row, node = self._queue.row, self._grid.node
        if self._shows_nodes:
            told = "" if node is None else overview_words.of_node(node)
        elif self._queue.lost is not None:
            told = overview_words.of_lost(self._queue.lost, self._jobs.rows)
        else:
            told = "" if row is None else overview_words.of_job(row)
        self._said.update(self._message or printable(told), layout=False)

    def on_line_list_moved(self) -> None:
        """Say what is selected."""
        self._message = ""
        self._say_selected()

    on_node_grid_moved = on_line_list_moved

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's own
        """Whether a key counts now."""
        is_view = len(self.screen_stack) == 1
        if action in OF_JOBS:
            return is_view or isinstance(self.screen, ExplanationScreen)
        return is_view or action not in OF_VIEWS

    # Keys of the views

    def action_switch_view(self) -> None:
        """Go to the other view."""
        self._shows_nodes = not self._shows_nodes
        self._message = ""
        self._arrange()

    def action_fold(self) -> None:
        """Fold arrays, or show each task."""
        self._folds = not self._folds
        self._show_jobs(by_user=True)
        self.say("arrays are folded" if self._folds else "each task is shown alone")

    def action_compact(self) -> None:
        """Boxes, or one line for each node."""
        self._grid.switch_form()

    def action_help(self) -> None:
        """Show keys and signs."""
        self.push_screen(Help(overview_words.help_text(self._glyphs)))

    def action_filter(self) -> None:
        """Type words."""
        self._shows_nodes = False
        self._arrange()
        self._typed.display = True
        self.screen.set_focus(self._typed)

    def action_clear(self) -> None:
        """Show all jobs again."""
        self._typed.value = ""
        self._typed.display = False
        self._arrange()

    def on_input_changed(self) -> None:
        """Show what matches so far."""
        self._show_jobs(by_user=True)

    def on_input_submitted(self) -> None:
        """Keep the words, and go back to the jobs."""
        self._typed.display = False
        self._arrange()

    def on_line_list_chosen(self) -> None:
        """Explain the job of the cursor."""
        self._act(self._acts.explain)

    def on_node_grid_chosen(self) -> None:
        """List the jobs of the node."""
        node = self._grid.node
        if node is None:
            return
        jobs, row_of = node["jobs"], {row["label"]: row for row in self._jobs.rows}

        def explain(at: int | None) -> None:
            if at is None:
                return
            label = jobs[at]["label"]
            if not label:
                self.say("this job is somebody else's")
                return
            self._acts.explain(row_of.get(label) or {"label": label, "name": "", "job_id": 0})

        self.push_screen(NodeJobs(overview_words.node_told(node), overview_words.job_lines(node)), explain)

    # Acts

    @property
    def _selected(self) -> Row | None:
        """The job that an act is about: the explained one, or that of the cursor."""
        if isinstance(self.screen, ExplanationScreen):
            return self.screen.row
        return None if self._shows_nodes else self._queue.row

    def _act(self, act: Callable[[Row], None]) -> None:
        """Do it about the selected job; about none if that has left."""
        row = self._selected
        if row is not None:
            act(row)
        elif self._queue.lost is not None and not self._shows_nodes:
            self.say(overview_words.of_lost(self._queue.lost, self._jobs.rows))

    def action_release(self) -> None:
        """Give the job to Slurm."""
        self._act(self._acts.release)

    def action_try_less(self) -> None:
        """Choose one of the changes with which the job would start now."""
        self._act(self._acts.try_less)

    def action_switch(self) -> None:
        """Turn slurm_sns off or on."""
        if self._answer is not None:
            self._acts.switch()

    def outcomes(self, wait_s: float = MOST_END_S) -> list[str]:
        """After the end: what came of acts that were said yes to and were not done yet."""
        return self._acts.outcomes(wait_s)
