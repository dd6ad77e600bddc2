"""The nodes as boxes beside and below each other, or one on each line; only what is on the screen is drawn."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click, Resize
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from slurm_sns.cli.live.top import node_boxes
from slurm_sns.cli.live.top.node_boxes import SPACE, BoxScale, GlyphRun, Glyphs

Node = Mapping[str, Any]

#: Colours beside the characters; those of jobs by hue.
STYLES = {
    node_boxes.TITLE: Style(bold=True),
    node_boxes.NOTE: Style(bold=True, color="yellow"),
    node_boxes.BORDER: Style(),
    node_boxes.FREE: Style(),
    node_boxes.STRANDED: Style(color="red"),
    node_boxes.BESIDE: Style(dim=True),
    node_boxes.OTHERS: Style(dim=True),
    node_boxes.CLOSED: Style(color="red", dim=True),
    node_boxes.STRIP: Style(),
}
HUES = [Style(color="black", bgcolor=each) for each in ("cyan", "green", "yellow", "magenta", "blue", "white")]


class NodeGrid(ScrollView, can_focus=True):
    """The nodes, with a cursor that arrows move."""

    DEFAULT_CSS = "NodeGrid { scrollbar-size: 0 0; overflow-x: hidden; height: 1fr; background: transparent; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "move(-1, 0)", "left", show=False),
        Binding("right,l", "move(1, 0)", "right", show=False),
        Binding("up,k", "move(0, -1)", "up", show=False),
        Binding("down,j", "move(0, 1)", "down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("pagedown,space", "page(1)", "page down", show=False),
        Binding("home,g", "move(-1000000000, 0)", "first", show=False),
        Binding("end,G", "move(1000000000, 0)", "last", show=False),
        Binding("enter", "choose", "choose", show=False),
        Binding("tab", "app.switch_view", "queue", show=False),
    ]

    class Moved(Message):
        """The cursor stands on another node."""

    class Chosen(Message):
        """Enter, or a click on the node of the cursor."""

    def __init__(self, glyphs: Glyphs, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._glyphs = glyphs
        self._shown: Sequence[Node] = ()
        self._scale: BoxScale | None = None
        self._tiles: dict[int, list[list[GlyphRun]]] = {}
        self.is_compact = False
        self.cursor = 0

    @property
    def count(self) -> int:
        """How many nodes there are."""
        return len(self._shown)

    @property
    def node(self) -> Node | None:
        """The node of the cursor."""
        return self._shown[self.cursor] if self._shown else None

    def show(self, nodes: Sequence[Node]) -> None:
        """Show these nodes."""
        self._shown = nodes
        self.cursor = min(self.cursor, max(0, len(nodes) - 1))
        self.changed()

    def switch_form(self) -> None:
        """Boxes, or one line for each node."""
        self.is_compact = not self.is_compact
        self.changed()
        self._keep_in_view()

    def changed(self) -> None:
        """Draw anew, at the size that fits."""
        width, height = self.size
        self._scale = None if self.is_compact else node_boxes.scale_for(self._shown, width, height)
        self._tiles.clear()
        lines = -(-len(self._shown) // self._per_line) * self._tile_height
        self.virtual_size = Size(width, lines)
        self.refresh()

    def on_resize(self, _event: Resize) -> None:
        """Another size has other boxes."""
        self.changed()
        self._keep_in_view()

    @property
    def _per_line(self) -> int:
        return 1 if self._scale is None else self._scale.per_line(self.size.width)

    @property
    def _tile_height(self) -> int:
        return 1 if self._scale is None else self._scale.height

    def action_move(self, across: int, down: int) -> None:
        """Move the cursor by nodes, and by lines of nodes."""
        self.go_to(self.cursor + across + down * self._per_line)

    def action_page(self, by: int) -> None:
        """Move the cursor by a page."""
        self.go_to(self.cursor + by * self._per_line * max(1, self.size.height // self._tile_height))

    def action_choose(self) -> None:
        """Tell that the node of the cursor was chosen."""
        if self._shown:
            self.post_message(self.Chosen())

    def on_click(self, event: Click) -> None:
        """A click moves the cursor; one on the cursor chooses."""
        row = (self.scroll_offset.y + event.y) // self._tile_height
        column = 0 if self._scale is None else event.x // (self._scale.width + SPACE)
        at = row * self._per_line + column
        if column >= self._per_line or at >= len(self._shown):
            return
        if at == self.cursor:
            self.action_choose()
        self.go_to(at)

    def go_to(self, at: int) -> None:
        """Put the cursor there, or as near as nodes are."""
        before = self.cursor
        self.cursor = min(max(0, at), max(0, len(self._shown) - 1))
        for each in (before, self.cursor):
            self._tiles.pop(each, None)
        self._keep_in_view()
        self.refresh()
        self.post_message(self.Moved())

    def _keep_in_view(self) -> None:
        top = self.cursor // self._per_line * self._tile_height
        first = self.scroll_offset.y
        if top < first:
            self.scroll_to(y=top, animate=False, force=True)
        elif top + self._tile_height > first + self.size.height:
            self.scroll_to(y=top + self._tile_height - self.size.height, animate=False, force=True)

    def render_line(self, y: int) -> Strip:
        """A line of the screen, from the tiles that it cuts."""
        width = self.size.width
        row, line = divmod(self.scroll_offset.y + y, self._tile_height)
        first = row * self._per_line
        segments = []
        for at in range(first, min(first + self._per_line, len(self._shown))):
            segments += [Segment(run.text, self._style(run)) for run in self._tile(at)[line]]
            segments.append(Segment(" " * SPACE, self.rich_style))
        return Strip(segments).adjust_cell_length(width, self.rich_style)

    def _style(self, run: GlyphRun) -> Style:
        if run.kind == CURSOR:
            return self.rich_style + Style(reverse=self.has_focus, bold=True)
        return self.rich_style + (HUES[run.hue] if run.kind == node_boxes.JOB else STYLES[run.kind])

    def _tile(self, at: int) -> list[list[GlyphRun]]:
        if at not in self._tiles:
            node = self._shown[at]
            if self._scale is None:
                made = [node_boxes.compact_line(node, self.size.width - SPACE, self._glyphs)]
            else:
                made = node_boxes.tile(node, self._scale, self._glyphs)
            self._tiles[at] = _with_cursor(made) if at == self.cursor else made
        return self._tiles[at]


#: The title of the cursor's node is marked and reversed, so that it can be seen without colours.
CURSOR = "cursor"


def _with_cursor(lines: list[list[GlyphRun]]) -> list[list[GlyphRun]]:
    head, *rest = lines[0]
    return [[GlyphRun(f">{head.text[1:]}", CURSOR), *rest], *lines[1:]]
