"""Text of users in cells of a terminal: harmless, cut or filled to a width; some characters are two cells wide."""

from rich.cells import cell_len, set_cell_size

from slurm_sns.log import printable

#: Marks a text that was cut, as in sacct.
CUT = "+"


def fitted(text: str, width: int, *, right: bool = False) -> str:
    """The text in so many cells, with blanks beside it, or cut with a mark."""
    shown = printable(text)
    size = len(shown) if shown.isascii() else cell_len(shown)
    if size > width:
        return set_cell_size(shown, width - 1) + CUT if width > 0 else ""
    blanks = " " * (width - size)
    return blanks + shown if right else shown + blanks


def cells(text: str) -> int:
    """How many cells the text takes once it is harmless."""
    return len(text) if text.isascii() else cell_len(printable(text))
