"""The page's script in Debian's chromium on a made-up cluster: hostile names, ten thousand jobs, many nodes."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import made_up
import pytest
from chromium import BrowserPage, Chromium
from serving import served

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium() as chromium:
        yield chromium


@pytest.fixture
def opened(browser: Chromium) -> Iterator[Callable[[dict[str, Any]], BrowserPage]]:
    """Opens the page of a made-up overview for an admin; at the end the browser has complained about nothing."""
    pages: list[BrowserPage] = []
    with ExitStack() as stack:

        def open_page(whole: dict[str, Any]) -> BrowserPage:
            address = stack.enter_context(served(lambda _: whole))
            page = stack.enter_context(browser.page(headers={"X-Remote-User": "bob"}))
            page.goto(address)
            page.wait_for("document.querySelector('#nodes svg')")
            pages.append(page)
            return page

        yield open_page
        assert [each.complaints for each in pages] == [[] for _ in pages]


def test_hostile_names_are_texts(opened: Callable[..., BrowserPage]) -> None:
    page = opened(made_up.overview(hostile=True))
    names = page.evaluate("[...document.querySelectorAll('#rows .users.under')].map((each) => each.textContent)")
    assert "</script><img src=x onerror=alert(1)>" in names
    assert "\ufffdgnp.exe\ufffd" in names
    assert "a\ufffdb\ufffd[31m\ufffd\ufffdc\ufffdd" in names
    assert max(map(len, names)) == 1001
    assert page.evaluate("document.querySelectorAll('#rows img, #rows svg, #rows script').length") == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 1400


def test_of_ten_thousand_jobs_two_hundred_are_there_and_more_on_a_click(opened: Callable[..., BrowserPage]) -> None:
    page = opened(made_up.overview(jobs=10_000))
    rows = "document.querySelectorAll('#rows tr').length"
    assert page.evaluate(rows) == 200
    assert page.text("#more").startswith("and 9,8")
    page.click("#more")
    page.wait_for(f"{rows} === 400")
    page.evaluate("document.getElementById('filter').focus()")
    page.type("carol running")
    page.wait_for("/^[0-9]+ of 10,0/.test(document.getElementById('matching').textContent)")
    assert "alice" not in page.text("#rows")


def test_many_nodes_are_cells_of_a_grid(opened: Callable[..., BrowserPage]) -> None:
    page = opened(made_up.overview(nodes=500))
    assert page.evaluate("document.querySelectorAll('#nodes .cell').length") == 500
    assert page.evaluate("document.querySelector('#nodes svg').getAttribute('aria-label')").startswith("500 nodes")
    assert page.accessibility_findings() == []
