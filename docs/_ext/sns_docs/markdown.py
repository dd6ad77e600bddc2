"""Plain text of the code, such as help texts and comments, as Markdown."""

import re
from collections.abc import Iterable

from sns_docs.places import RESULTS

_CODE = re.compile(r"(`+[^`]*`+)")
_OPTION = re.compile(r"(?<![\w`/-])(--?[a-zA-Z][\w-]*)(?![\w`])")
_SPECIAL = re.compile(r"([\\*_<>\[\]|{}$#~])")
_REPRODUCTION = re.compile(r"\breproduction ([a-z0-9-]+)")


def escaped(text: str, to_results: str = "") -> str:
    """The text so that it is shown literally; code in backticks stays code, and options (`--watch`) become code.

    With `to_results`, the way from the page to the measured results, `reproduction NAME` becomes a link to its page.
    """
    parts = _CODE.split(text)
    return "".join(part if place % 2 else _plain(part, to_results) for place, part in enumerate(parts))


def _plain(text: str, to_results: str) -> str:
    pieces = _OPTION.split(text)
    shown = "".join(f"`{piece}`" if place % 2 else _SPECIAL.sub(r"\\\1", piece) for place, piece in enumerate(pieces))
    return _REPRODUCTION.sub(lambda found: _linked(found, to_results), shown) if to_results else shown


def _linked(found: re.Match[str], to_results: str) -> str:
    name = found.group(1)
    if not (RESULTS / name / "README.md").exists():
        return found.group()
    return f"reproduction [{name}]({to_results}/{name}/README.md)"


def code(text: str) -> str:
    """The text as code, also where it holds backticks."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table; the cells are Markdown, in which a bar that is not escaped yet is escaped."""
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *([_cell(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split()))
