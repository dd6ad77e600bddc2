"""The text of a page, its tables and its figures."""

import csv

import jinja2
import numpy as np
import pytest

from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import Claim, Interval, drawn, exactly, joint
from slurm_sns.sim.pages.page import write_page
from slurm_sns.sim.pages.running import DataTable


def claim(found, **more):
    return Claim("fig. 0", "a text", "a measure", Interval(sum(found) / 2, *found), **more)


def page(folder, text, claims=(), tables=(), **fields):
    """The page that this template gives."""
    (folder / "template.md.j2").write_text(text)
    write_page(folder, folder / "template.md.j2", claims, tables, fields)
    return (folder / "README.md").read_text()


def test_a_paragraph_of_the_template_becomes_one_line_and_what_is_left_out_leaves_no_gap(tmp_path):
    text = page(tmp_path, "# A title\n\nOne\ntwo\n{% if no %}\nthree\n{% endif %}\n\n{{ judged() }}\n\nfour", no=False)
    assert text == "# A title\n\nOne two\n\nfour\n"


def test_numbers_in_sentences_are_fields_and_a_missing_one_is_refused(tmp_path):
    assert page(tmp_path, "It is {{ gain | fmt('+.1f') }} %.", gain=2.345) == "It is +2.3 %.\n"
    with pytest.raises(jinja2.UndefinedError, match="'gain' is undefined"):
        page(tmp_path, "It is {{ gain }} %.")


def test_tables_are_written_and_shown_with_six_digits_and_intervals_with_four(tmp_path):
    table = DataTable("short", ("a", "b"), [(1 / 3, Interval(1, 2, 3)), ("", 7)])
    text = page(tmp_path, "{{ table(tables.short) }}\n\n{{ numbers() }}", tables=[table])
    assert text == ("| a | b |\n| --- | --- |\n| 0.333333 | 1 [2, 3] |\n|  | 7 |\n\nNumbers: [short.csv](short.csv).\n")
    assert (tmp_path / "short.csv").read_text() == 'a,b\n0.333333,"1 [2, 3]"\n,7\n'


def test_a_figure_is_shown_with_its_caption(tmp_path):
    assert (
        page(tmp_path, "{{ figure('one', 'A caption.') }}") == "![A caption.](one.png)\n\nA caption. ([SVG](one.svg))\n"
    )


def test_a_page_has_a_table_for_each_group_and_says_what_an_input_is(tmp_path):
    draws = drawn(np.arange(1.0, 101.0))
    claims = [
        Claim("", "", "", draws, printed=50, group="the text"),
        Claim("", "", "", draws, printed=200, group="another queue"),
        Claim("", "an input", "", exactly(1.0), 0, 2, is_input=True, group="the text"),
    ]
    text = page(tmp_path, "{{ judged(DRAW_RULE, OF_DRAWS) }}", claims)
    assert text.startswith("The authors show one draw of random jobs; ")
    assert "| found (90 % of our draws) |" in text
    assert "**the text: 2 claims: 1 holds, 1 input.**" in text
    assert "**another queue: 1 claims: 1 does not hold.**" in text
    assert "\n\n*Input*: the number was given to the experiment." in text
    rows = (tmp_path / "claims.csv").read_text().splitlines()
    assert rows[0] == "group,where,claim,measure,expected,mean,low,high,verdict"
    assert [row.split(",")[0] for row in rows[1:]] == ["the text", "another queue", "the text"]


def test_a_page_says_what_identical_means_only_where_something_is(tmp_path):
    same = Claim("", "", "", exactly(0.0), -5, 5, is_difference=True)
    assert "*Identical*: " in page(tmp_path, "{{ judged() }}", [same])
    assert "*Identical*: " not in page(tmp_path, "{{ judged() }}", [claim((1, 2), low=0)])


def test_the_page_shows_all_parts_of_a_claim_and_counts_it_once(tmp_path):
    text = page(tmp_path, "{{ judged() }}", [joint("both", claim((1, 2), low=0), claim((-2, -1), low=0))])
    assert "**1 claims: 1 does not hold.**" in text
    assert "| both | a measure; a measure | above 0; above 0 | 1.5 [1, 2]; -1.5 [-2, -1] | **does not hold** |" in text
    with (tmp_path / "claims.csv").open() as file:
        assert [(row["mean"], row["verdict"]) for row in csv.DictReader(file)] == [("-1.5", "does not hold")]
    with (tmp_path / "parts.csv").open() as file:
        assert [row["verdict of the part"] for row in csv.DictReader(file)] == ["holds", "does not hold"]


def test_the_page_says_what_was_claimed_found_and_judged(tmp_path):
    text = page(tmp_path, "{{ judged() }}", [claim((1, 2), low=0), claim((-1, 2), low=0)])
    assert "**2 claims: 1 holds, 1 cannot tell.**" in text
    assert "| fig. 0 | a text | a measure | above 0 | 1.5 [1, 2] | **holds** |" in text
    with (tmp_path / "claims.csv").open() as file:
        assert [row["verdict"] for row in csv.DictReader(file)] == ["holds", "cannot tell"]


def test_figures_are_the_same_bytes_each_time(tmp_path):
    for folder in ("one", "two"):
        figures.bars(tmp_path / folder, "figure", {"legend": {"group": Interval(2, 1, 3)}}, ("x", "y"))
    for kind in ("png", "svg"):
        assert (tmp_path / f"one/figure.{kind}").read_bytes() == (tmp_path / f"two/figure.{kind}").read_bytes()
