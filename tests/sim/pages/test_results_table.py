"""The table of results on docs/science/index.md has the counts of the pages, and every page once."""

import re

import pytest

from sns_docs import results_table


def text():
    return results_table.PAGE.read_text(encoding="utf-8")


def test_the_table_is_what_the_pages_say():
    assert results_table.updated(text()) == text(), "run `make docs`"


def test_wrong_counts_are_replaced_and_nothing_else_is():
    wrong = re.sub(r"(netbatch-load/README\.md\).*) \d+ \| \d+ \| \d+ \| \d+ \|", r"\1 9 | 9 | 9 | 9 |", text())
    assert wrong != text()
    assert results_table.updated(wrong) == text()


def test_a_page_that_is_missing_in_the_table_is_named():
    rows = text().splitlines(keepends=True)
    without = "".join(row for row in rows if not row.startswith("| [load](results/netbatch-load/"))
    with pytest.raises(ValueError, match=r"netbatch-load$"):
        results_table.updated(without)


def test_a_row_of_no_page_is_named():
    added = f"| [x](results/nothing/README.md) | | | | | | |\n{results_table.END}"
    with pytest.raises(ValueError, match=r"nothing$"):
        results_table.updated(text().replace(results_table.END, added))


def test_a_page_without_claims_has_no_counts():
    assert results_table.counts("live-load") == [""] * 4


def test_a_page_without_the_table_is_refused():
    with pytest.raises(ValueError, match="is missing"):
        results_table.updated("# A page\n")
