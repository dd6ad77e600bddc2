"""Sphinx extension: fills pages with what is made from the code when the site is built.

A page has a line such as `<!-- made from the code: cli -->`. The text that the maker of that name returns stands below
it on the site. Nothing is written into the checkout.
"""

import re
from collections.abc import Callable
from typing import Any

from sns_docs import cli_page, configuration_page, json_page, metrics_page, modules_page, results_page

#: The text in Markdown by the name in the marker.
MAKERS: dict[str, Callable[[], str]] = {
    "cli": cli_page.text,
    "configuration": configuration_page.text,
    "json": json_page.text,
    "metrics": metrics_page.text,
    "modules": modules_page.text,
    "results": results_page.text,
}
MARKER = re.compile(r"^<!-- made from the code: ([a-z-]+) -->$", re.MULTILINE)


def filled(source: str) -> str:
    """The page with the made text below each marker.

    Raises:
        KeyError: there is no maker of that name.
    """
    return MARKER.sub(lambda marker: f"{marker.group()}\n\n{MAKERS[marker.group(1)]()}", source)


def setup(app: Any) -> dict[str, bool]:
    """Connect to Sphinx, as it asks extensions to."""
    app.connect("source-read", _source_read)
    app.connect("env-get-outdated", _always_made)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _source_read(_app: Any, _page: str, source: list[str]) -> None:
    source[0] = filled(source[0])


def _always_made(_app: Any, env: Any, *_changes: set[str]) -> list[str]:
    """The pages that depend on the code: Sphinx only knows when a page itself has changed."""
    return [page for page in env.found_docs if MARKER.search(env.doc2path(page).read_text(encoding="utf-8"))]
