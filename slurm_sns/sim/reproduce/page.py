"""The page of a reproduction: Markdown with the claims and figures, and the numbers as CSV."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slurm_sns.sim.reproduce.claims import IDENTICAL, INPUTS, Claim, Interval, JointClaim, Judged, count_verdicts
from slurm_sns.sim.results.result_files import write_files

RULE = (
    "Verdicts follow one rule. We compute the 95 % confidence interval of what we measure (Student's t over the "
    "seeds; policies are compared in pairs, on the same jobs; a result that is not random is its own interval). If "
    "the whole interval lies inside the expected range, the claim holds; if all of it lies outside, the claim does "
    "not hold; otherwise we cannot tell."
)
INPUT_RULE = (
    "*Input*: the number was given to the experiment. That it comes back shows that the code does what it says; it is "
    "not counted as a success."
)
JOINT_RULE = (
    "A sentence of the paper that says several things at once is one claim. What we measure of each of its parts "
    "stands beside it, in the same order; its verdict is the worst of theirs ([parts.csv](parts.csv))."
)
IDENTICAL_RULE = (
    "*Identical*: the two gave the same result in every sample, so that the difference is exactly 0. That says nothing "
    "about the claim, which is not counted."
)


@dataclass(frozen=True)
class SavedFigure:
    """A figure that has been saved as stem.png and stem.svg."""

    stem: str
    caption: str


@dataclass(frozen=True)
class DataTable:
    """A table that is written to stem.csv."""

    stem: str
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Page:
    """The content of a reproduction's page.

    `made` says how the results were produced, `remarks` what a reader should know about them. `result` are paragraphs
    and tables that the page prints before its claims, `shown` is a table that it prints after them. `seeds` is the
    number of seeds, None for a result that is not random. `groups`, if given, names the table that each claim stands
    in. `rule` says how the verdicts come about, `range_name` what the range beside each mean is.
    """

    title: str
    made: Sequence[str]
    claims: Sequence[Judged]
    drawings: Sequence[SavedFigure] = ()
    numbers: Sequence[DataTable] = ()
    remarks: Sequence[str] = ()
    result: Sequence[str | DataTable] = ()
    shown: DataTable | None = None
    seeds: int | None = None
    groups: Sequence[str] = ()
    rule: str = RULE
    range_name: str = "95 % interval"


def write_page(folder: Path, page: Page) -> None:
    """Write README.md, claims.csv and the other tables; parts.csv if a claim has several parts.

    Raises:
        SnsError: a file cannot be written.
    """
    header: tuple[str, ...] = ("where", "claim", "measure", "expected", "mean", "low", "high", "verdict")
    rows: list[tuple[Any, ...]] = [
        (c.where, c.text, c.measure, c.expected, c.found.mean, c.found.low, c.found.high, c.verdict)
        for c in page.claims
    ]
    if page.groups:
        header = ("group", *header)
        rows = [(group, *row) for group, row in zip(page.groups, rows, strict=True)]
    tables = [*([DataTable("claims", header, rows)] if rows else []), *_parts(page.claims), *page.numbers]
    texts = {f"{table.stem}.csv": [_csv(table)] for table in tables}
    write_files(folder, {"README.md": [_markdown(page, list(texts))], **texts})


def _parts(claims: Iterable[Judged]) -> list[DataTable]:
    """The parts of the claims that have several, as a table; empty if none has."""
    header = ("where", "claim", "measure", "expected", "mean", "low", "high", "verdict of the part")
    rows = [
        (c.where, c.text, p.measure, p.expected, p.found.mean, p.found.low, p.found.high, p.verdict)
        for c in claims
        if isinstance(c, JointClaim)
        for p in c.parts
    ]
    return [DataTable("parts", header, rows)] if rows else []


def _markdown(page: Page, files: Iterable[str]) -> str:
    lines = [f"# {page.title}", "", *_paragraphs(page.made)]
    for each in page.result:
        lines += [*(_table(each.header, each.rows) if isinstance(each, DataTable) else [each]), ""]
    lines += [*_judged(page), "", *_paragraphs(page.remarks)]
    if page.shown:
        lines += [*_table(page.shown.header, page.shown.rows), ""]
    for drawing in page.drawings:
        lines += [f"![{drawing.caption}]({drawing.stem}.png)", "", f"{drawing.caption} ([SVG]({drawing.stem}.svg))", ""]
    lines += ["Numbers: " + ", ".join(f"[{name}]({name})" for name in files) + "."]
    return "\n".join(lines) + "\n"


def _judged(page: Page) -> list[str]:
    """The rule for verdicts and the tables of claims, one for each group; empty without claims."""
    if not page.claims:
        return []
    verdicts = {claim.verdict for claim in page.claims}
    rules = [page.rule]
    rules += [JOINT_RULE] if any(isinstance(claim, JointClaim) for claim in page.claims) else []
    rules += [INPUT_RULE] if verdicts & INPUTS else []
    rules += [IDENTICAL_RULE] if IDENTICAL in verdicts else []
    lines = _paragraphs(rules)
    groups = page.groups or [""] * len(page.claims)
    for group in dict.fromkeys(groups):
        claims = [claim for claim, own in zip(page.claims, groups, strict=True) if own == group]
        counts = ", ".join(f"{count} {verdict}" for verdict, count in count_verdicts(claims).items() if count)
        title = f"{group}: " if group else ""
        found = f"found ({page.range_name})"
        header = ("source", "the paper's claim", "what we measure", "expected", found, "verdict")
        rows = [(c.where, c.text, *_measured(c), f"**{c.words}**") for c in claims]
        lines += [f"**{title}{len(claims)} claims: {counts}.**", "", *_table(header, rows), ""]
    return lines[:-1]


def _measured(claim: Judged) -> tuple[str, str, str]:
    """What we measure, expect and find; of a claim of several parts that of each of them."""
    parts: Sequence[Judged | Claim] = claim.parts if isinstance(claim, JointClaim) else (claim,)
    measures, expected, found = zip(*((part.measure, part.expected, str(part.found)) for part in parts), strict=True)
    return "; ".join(measures), "; ".join(expected), "; ".join(found)


def _table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    lines = [header, ["---"] * len(header), *([str(_cell(value)) for value in row] for row in rows)]
    return [f"| {' | '.join(line)} |" for line in lines]


def _paragraphs(texts: Iterable[str]) -> list[str]:
    return [line for text in texts for line in (text, "")]


def _csv(table: DataTable) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.header)
    writer.writerows([[_cell(value) for value in row] for row in table.rows])
    return text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, Interval):
        return str(value)
    return f"{value:.6g}" if isinstance(value, float) else value
