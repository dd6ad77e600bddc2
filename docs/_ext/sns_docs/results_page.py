"""The list of the pages of measured results: title, verdicts, and the toctree that they stand in."""

import re
from collections.abc import Iterator
from pathlib import Path

from sns_docs.markdown import table
from sns_docs.places import RESULTS

_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_VERDICTS = re.compile(r"^\*\*(\d+ claims?: .+?)\.\*\*$", re.MULTILINE)


def text() -> str:
    """A table of all pages by name, and the toctree."""
    pages = sorted(RESULTS.glob("*/README.md"))
    rows = table(("name", "what was measured", "claims of the paper"), map(_row, pages))
    return "\n".join([rows, *_toctree(pages)])


def _row(page: Path) -> tuple[str, str, str]:
    content, name = page.read_text(encoding="utf-8"), page.parent.name
    title, verdicts = _TITLE.search(content), _VERDICTS.search(content)
    return f"[{name}]({name}/README.md)", title.group(1) if title else "", verdicts.group(1) if verdicts else ""


def _toctree(pages: list[Path]) -> Iterator[str]:
    yield "```{toctree}\n:hidden:\n"
    yield from (f"{page.parent.name}/README" for page in pages)
    yield "```"
