"""A list of lines with a cursor, of which only those on the screen are made; and the queue as such a list."""

import time
from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click, Resize
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from slurm_sns.cli.live.queue_view import Row, row_style
from slurm_sns.cli.live.top.cell_text import fitted
from slurm_sns.cli.live.top.queue_lines import LineForm, place_of

#: The line of the cursor is marked at its left, and reversed: both can be seen without colours.
MARK, NO_MARK = ">", " "


class LineList(ScrollView, can_focus=True):
    """Lines of text. Subclasses say how many, and which texts stand on the screen."""

    DEFAULT_CSS = "LineList { scrollbar-size: 0 0; overflow-x: hidden; height: 1fr; background: transparent; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("down,j", "move(1)", "down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("pagedown,space", "page(1)", "page down", show=False),
        Binding("home,g", "move(-1000000000)", "first", show=False),
        Binding("end,G", "move(1000000000)", "last", show=False),
        Binding("enter", "choose", "choose", show=False),
    ]

    class Moved(Message):
        """The cursor stands elsewhere, or on another text."""

    class Chosen(Message):
        """Enter, or a click on the line of the cursor."""

    def __init__(self, lines: Sequence[str] = (), *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._lines = lines
        self.cursor = 0
        self._made: tuple[object, list[Strip]] = (None, [])

    @property
    def count(self) -> int:
        """How many lines there are."""
        return len(self._lines)

    def texts(self, first: int, last: int, width: int) -> tuple[str | None, list[str]]:
        """The heading, if there is one, and the lines from `first` up to `last`."""
        return None, [fitted(line, width) for line in self._lines[first:last]]

    def style_of(self, _at: int) -> Style:
        """How a line looks."""
        return Style.null()

    @property
    def is_marked(self) -> bool:
        """Whether the cursor stands on a line that was chosen."""
        return True

    @property
    def has_heading(self) -> bool:
        """Whether the first line of the screen is a heading."""
        return False

    def changed(self) -> None:
        """Show the lines anew."""
        self.virtual_size = Size(self.size.width, self.count + self.has_heading)
        self.cursor = min(self.cursor, max(0, self.count - 1))
        self._made = (None, [])
        self.refresh()

    def on_resize(self, _event: Resize) -> None:
        """Another width has other lines."""
        self.changed()
        self._keep_in_view()

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        self.go_to(self.cursor + by)

    def action_page(self, by: int) -> None:
        """Move the cursor by a page."""
        self.go_to(self.cursor + by * max(1, self.size.height - self.has_heading - 1))

    def action_choose(self) -> None:
        """Tell that the line of the cursor was chosen."""
        if self.count:
            self.post_message(self.Chosen())

    def on_click(self, event: Click) -> None:
        """A click moves the cursor; one on the cursor chooses."""
        at = self.scroll_offset.y + event.y - self.has_heading
        if event.y < self.has_heading or not 0 <= at < self.count:
            return
        if at == self.cursor and self.is_marked:
            self.action_choose()
        self.go_to(at)

    def go_to(self, at: int) -> None:
        """Put the cursor there, or as near as lines are."""
        self.cursor = min(max(0, at), max(0, self.count - 1))
        self._keep_in_view()
        self._made = (None, [])
        self.refresh()
        self.post_message(self.Moved())

    def _keep_in_view(self) -> None:
        first, rows = self.scroll_offset.y, max(1, self.size.height - self.has_heading)
        if self.cursor < first:
            self.scroll_to(y=self.cursor, animate=False, force=True)
        elif self.cursor >= first + rows:
            self.scroll_to(y=self.cursor - rows + 1, animate=False, force=True)

    def render_line(self, y: int) -> Strip:
        """A line of the screen. All of them are made at once, as the width of a column depends on what it shows."""
        key = (self.scroll_offset.y, self.size, self.cursor, self.has_focus)
        if self._made[0] != key:
            self._made = (key, self._page())
        strips = self._made[1]
        return strips[y] if y < len(strips) else Strip.blank(self.size.width, self.rich_style)

    def _page(self) -> list[Strip]:
        width, first = self.size.width, self.scroll_offset.y
        last = min(self.count, first + self.size.height - self.has_heading)
        heading, lines = self.texts(first, last, width - len(MARK))
        base = self.rich_style
        strips = [] if heading is None else [_strip(NO_MARK, heading, base + Style(bold=True), width)]
        for at, line in enumerate(lines, first):
            style = base + self.style_of(at)
            is_cursor = at == self.cursor and self.is_marked
            if is_cursor:
                style += Style(reverse=self.has_focus, bold=True, dim=False)
            strips.append(_strip(MARK if is_cursor else NO_MARK, line, style, width))
        return strips


def _strip(mark: str, line: str, style: Style, width: int) -> Strip:
    return Strip([Segment(mark + line, style)]).adjust_cell_length(width, style)


class QueueList(LineList):
    """The jobs. The cursor stays on its job when the queue changes; if that has left it, no job is selected."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab", "app.switch_view", "nodes", show=False)]

    def __init__(self, form: LineForm, *, clock: Callable[[], float] = time.time) -> None:
        super().__init__(id="queue")
        self._form, self._clock = form, clock
        self._rows: Sequence[Row] = ()
        #: The job that the cursor was on and that is no longer there, until the cursor is moved.
        self.lost: Row | None = None

    @property
    def count(self) -> int:
        """How many jobs are shown."""
        return len(self._rows)

    @property
    def has_heading(self) -> bool:
        """Whether the options leave the heading."""
        return self._form.heading

    @property
    def row(self) -> Row | None:
        """The job of the cursor."""
        return self._rows[self.cursor] if self._rows and self.lost is None else None

    @property
    def is_marked(self) -> bool:
        """Whether a job is selected: the cursor does not go from one that has left to somebody else's by itself."""
        return self.lost is None

    def go_to(self, at: int) -> None:
        """Put the cursor there; the job there is selected."""
        self.lost = None
        super().go_to(at)

    def show(self, rows: Sequence[Row], *, by_user: bool = False) -> None:
        """Show these jobs; `by_user` if others are shown because the user has chosen others."""
        selected = self.lost or self.row
        self._rows = rows
        at = None if selected is None else place_of(rows, selected)
        self.lost = selected if at is None and not by_user else None
        self.cursor = self.cursor if at is None else at
        self.changed()
        self._keep_in_view()

    def texts(self, first: int, last: int, width: int) -> tuple[str | None, list[str]]:
        """The heading and these jobs; a sentence where there are none."""
        heading, lines = self._form.lines(self._rows[first:last], self._clock(), width)
        return heading, lines if self._rows else [fitted("no jobs", width)]

    def style_of(self, at: int) -> Style:
        """As in `sns queue`."""
        return Style.parse(row_style(self._rows[at])) if self._rows else Style.null()
