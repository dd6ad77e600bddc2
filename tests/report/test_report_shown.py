"""A report as text and as one HTML file: readable, harmless, the same bytes each time."""

import re
from html.parser import HTMLParser
from math import inf, nan
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from site_pages import HtmlPage

from slurm_sns.report.document import ChartPoint, ReportChart, ReportPage, ReportSection, ReportTable
from slurm_sns.report.html import as_html
from slurm_sns.report.scales import number, ticks
from slurm_sns.report.svg import Drawing, drawn
from slurm_sns.report.text import as_text

EVIL = "<script>alert(1)</script>\x1b[31m\u202e\"' onload='x' https://evil.example/x.png {{ 7*7 }} &amp; \ud800"


def page(word: str = "word") -> ReportPage:
    """A page that has the word in every place where a site's word may stand."""
    bars = {
        word: [ChartPoint(word, 12.5, 10, 15), ChartPoint(f"b{word}", -3)],
        f"c{word}": [ChartPoint(word, 100)],
    }
    lines = {word: [ChartPoint(0.0, 1, 0, 2), ChartPoint(1.0, 5, 4, 6), ChartPoint(2.0, nan), ChartPoint(3.0, 2)]}
    section = ReportSection(
        word,
        [word],
        [ReportTable([word, "jobs"], [[word, "1,000"], ["main", "3"]], frozenset({1}), word)],
        [ReportChart(word, "bars", bars, (word, word)), ReportChart(word, "lines", lines, (word, word))],
    )
    return ReportPage(word, [word, word], [section, ReportSection(word)])


class Tags(HTMLParser):
    """The tags of a page with the names of their attributes, and the text between them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, ...]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, *(name for name, _ in attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


class TestHtml:
    """One file for a browser."""

    def test_it_loads_nothing_and_runs_nothing(self, tmp_path: Path) -> None:
        for word in ("word", EVIL):
            file = tmp_path / "report.html"
            file.write_text(as_html(page(word)), encoding="utf-8")
            found = HtmlPage(file)
            assert (found.loads, found.links) == ([], [])
            tags = {tag for tag, *_ in Tags(file.read_text()).tags}
            assert not tags & {"script", "link", "img", "iframe", "object", "image", "use", "a", "base", "form"}
            assert not re.search(r"url\(|@import|@font-face", file.read_text())
        assert "default-src 'none'" in as_html(page())

    def test_a_word_of_a_site_is_shown_as_it_is_without_control_characters(self) -> None:
        shown = Tags(as_html(page("<script>1</script>\x1b[2J"))).text
        assert "<script>1</script>?[2J" in shown
        assert "{{ 7*7 }}" in Tags(as_html(page("{{ 7*7 }}"))).text

    @given(st.text(min_size=1))
    def test_no_word_becomes_a_tag_or_an_attribute(self, word: str) -> None:
        assert Tags(as_html(page(word))).tags == Tags(as_html(page())).tags

    def test_the_same_page_is_the_same_bytes(self) -> None:
        assert as_html(page()) == as_html(page())
        as_html(page(EVIL)).encode("utf-8")

    def test_a_screen_reader_finds_its_way(self) -> None:
        text = as_html(page())
        tags = Tags(text).tags
        assert ("html", "lang") in tags
        assert [tag for tag, *_ in tags if re.fullmatch("h[1-6]", tag)] == ["h1", "h2", "h2"]
        assert sum(tag == "caption" for tag, *_ in tags) == sum(tag == "table" for tag, *_ in tags) == 1
        assert all("scope" in names for tag, *names in tags if tag == "th")
        ids = re.findall(r' id="([^"]*)"', text)
        assert len(ids) == len(set(ids))
        named = [each for names in re.findall(r'aria-labelledby="([^"]*)"', text) for each in names.split()]
        assert set(named) <= set(ids)

    def test_each_chart_is_well_formed_and_says_its_numbers(self) -> None:
        charts = re.findall(r'<svg class="chart".*?</svg>', as_html(page()), re.DOTALL)
        told = [ET.fromstring(each).findtext("desc") for each in charts]
        assert told == [
            "word. word, word: 12.5 (10 to 15); word, cword: 100; bword, word: -3.",
            "word over word. word: from 1 to 2, at least 1, at most 5.",
        ]


class TestDrawing:
    """The geometry of charts."""

    def test_a_bar_ends_where_its_value_is(self) -> None:
        points = [ChartPoint("a", 10), ChartPoint("b", -5)]
        drawing = drawn(ReportChart("", "bars", {"x": points}, ("", "h")))
        assert drawing is not None
        first, second = drawing.boxes
        assert first.x == second.x + second.width, "both begin at 0"
        assert first.width == pytest.approx(2 * second.width, abs=0.2)
        assert not drawing.legend

    def test_a_line_is_broken_by_a_gap(self) -> None:
        points = [ChartPoint(float(x), y) for x, y in enumerate((1, 2, nan, 3, inf, 4))]
        drawing = drawn(ReportChart("", "lines", {"x": points}, ("", "")))
        assert drawing is not None
        assert [len(path.points.split()) for path in drawing.paths if path.style == 0] == [2, 2, 2]

    @pytest.mark.parametrize("kind", ["bars", "lines"])
    def test_nothing_is_drawn_of_nothing(self, kind) -> None:
        assert drawn(ReportChart("", kind, {"x": [], "y": [ChartPoint(0.0, nan)]}, ("", ""))) is None

    @given(
        st.sampled_from(["bars", "lines"]),
        st.lists(st.lists(st.floats(-1e12, 1e12), max_size=5), max_size=8),
    )
    def test_everything_is_drawn_within_the_picture(self, kind, values) -> None:
        series = {
            str(at): [ChartPoint(float(place), value) for place, value in enumerate(each)]
            for at, each in enumerate(values)
        }
        drawing = drawn(ReportChart("", kind, series, ("", "")))
        if drawing is not None:
            self.check(drawing)

    def check(self, drawing: Drawing) -> None:
        points = [tuple(map(float, each.split(","))) for path in drawing.paths for each in path.points.split()]
        points += [(box.x + way * box.width, box.y + way * box.height) for box in drawing.boxes for way in (0, 1)]
        assert all(0 <= x <= drawing.width and 0 <= y <= drawing.height for x, y in points)

    @given(st.floats(-1e9, 1e9), st.floats(0, 1e9))
    def test_ticks_are_few_and_hold_all_between_them(self, low: float, span: float) -> None:
        found = ticks(low, low + span)
        assert len(found) <= 8
        assert found[0] <= low + 1e-6 * max(1, abs(low))
        assert found[-1] >= low + span - 1e-6 * max(1, abs(low + span))

    @pytest.mark.parametrize(
        ("value", "written"), [(0, "0"), (1234.5, "1,234"), (12.345, "12.3"), (0.01234, "0.0123"), (100000, "100,000")]
    )
    def test_numbers_have_three_digits(self, value: float, written: str) -> None:
        assert number(value) == written


class TestText:
    """Lines for a terminal."""

    def test_it_has_sentences_tables_and_charts(self) -> None:
        assert as_text(page(), 80).splitlines()[:24] == [
            "word",
            "====",
            "word",
            "word",
            "",
            "word",
            "----",
            "word",
            "",
            "WORD   JOBS",
            "word  1,000",
            "main      3",
            "word",
            "",
            "word (word, by word)",
            "  word: word   ##### 12.5 (10 to 15)",
            "  word: cword  ######################################## 100",
            "  bword: word  # -3",
            "",
            "word (word over word)",
            "  word |.#-| 1 to 5",
            "",
            "word",
            "----",
        ]

    @given(st.text(), st.integers(1, 200))
    def test_no_line_is_wider_than_the_terminal_and_none_commands_it(self, word: str, width: int) -> None:
        for line in as_text(page(word), width).split("\n"):
            assert line.isprintable()
            assert cell_len(line) <= max(40, width)

    def test_markup_is_no_markup(self) -> None:
        assert "[bold]x[/bold]" in as_text(page("[bold]x[/bold]"), 80)
