"""Writes the counts of verdicts into the table of results of docs/science/index.md.

The table stands between two comments. A row is a page of measured results:

    | [name](results/NAME/README.md) | what is published | what we found | hold | do not | open | not judged |

What is published and what we found are written by hand. The last four cells come from results/NAME/claims.csv: claims
that hold, that do not hold, that cannot be told, and lines that are not judged (what an experiment was given as input,
and differences that are exactly 0). A page without claims.csv has empty cells.
"""

import csv
import re
import sys
from collections import Counter

from sns_docs.places import RESULTS, ROOT

PAGE = RESULTS.parent / "index.md"
BEGIN, END = "<!-- results: begin -->\n", "<!-- results: end -->\n"
#: The verdicts that have a column of their own, in the order of the columns.
JUDGED = ("holds", "does not hold", "cannot tell")
_ROW = re.compile(r"(\| \[[^\]]+\]\(results/([\w-]+)/README\.md\) \|[^|]*\|[^|]*\|)[^|]*\|[^|]*\|[^|]*\|[^|]*\|")


def counts(page: str) -> list[str]:
    """The last four cells of this page's row."""
    claims = RESULTS / page / "claims.csv"
    if not claims.exists():
        return [""] * (len(JUDGED) + 1)
    with claims.open(encoding="utf-8", newline="") as file:
        verdicts = Counter(row["verdict"] for row in csv.DictReader(file))
    judged = [verdicts[verdict] for verdict in JUDGED]
    return [str(count) for count in (*judged, verdicts.total() - sum(judged))]


def updated(text: str) -> str:
    """The text of the page with the counts as the pages of results have them.

    Raises:
        ValueError: the comments are missing, or the table lacks a page, names one twice or one that does not exist.
    """
    before, begin, rest = text.partition(BEGIN)
    table, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE}: a table between {BEGIN.strip()} and {END.strip()} is missing")
    listed = Counter(name for _, name in _ROW.findall(table))
    there = Counter(page.parent.name for page in RESULTS.glob("*/README.md"))
    if listed != there:
        differing = sorted((listed - there) + (there - listed))
        raise ValueError(f"{PAGE}: not once in the table, or not in results/: {', '.join(differing)}")
    rows = _ROW.sub(lambda row: f"{row.group(1)} {' | '.join(counts(row.group(2)))} |", table)
    return f"{before}{begin}{rows}{end}{after}"


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{PAGE.relative_to(ROOT)} is written\n")
