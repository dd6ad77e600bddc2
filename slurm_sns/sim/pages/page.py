"""The page of a reproduction: its folder, and the files that are written.

A page is a folder of the package sns_reproductions: claims.yaml (module claims), run.py with
`run(Options, data) -> PageResults`, and page.md.j2, the text. In the text a paragraph may have several lines; the
written page has each in one. Templates see `data` and `readings` of claims.yaml, the run's fields, `seeds`, `tables` by
stem, `found(NAME)`, which is the interval of a quantity, and the macros of macros.md.j2.
"""

import csv
import importlib
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2

from slurm_sns.sim.pages import FOLDERS, PACKAGE
from slurm_sns.sim.pages.claims import PageClaims
from slurm_sns.sim.pages.judge import IDENTICAL, Claim, Interval, count_verdicts, found_of
from slurm_sns.sim.pages.running import DataTable, Options, PageResults
from slurm_sns.whole_files import write_files

TEMPLATE, MACROS = "page.md.j2", "macros.md.j2"
_CLAIM_HEADER = ("where", "claim", "measure", "expected", "mean", "low", "high")


def reproduce(name: str, options: Options) -> tuple[list[Claim], int | None]:
    """Run what is missing, write the page, and return its claims and the number of seeds.

    Raises:
        SnsError: a file cannot be written.
    """
    folder = FOLDERS[name]
    page = PageClaims.of(folder)
    run = importlib.import_module(f"{PACKAGE}.{folder.name}.run").run
    results: PageResults = run(options, page.content.data)
    return write(options.out, page, results), results.seeds


def write(out: Path, page: PageClaims, results: PageResults) -> list[Claim]:
    """Judge the results and write the page.

    Raises:
        SnsError: a file cannot be written.
    """
    claims = page.judge(results.quantities, results.fields)
    context = {
        **page.content.data,
        **results.fields,
        "readings": page.content.readings,
        "all_claims": claims,
        "seeds": results.seeds,
        "found": lambda name: found_of(results.quantities[name]),
    }
    described = page.content.tables
    tables = [
        DataTable(stem, tuple(described[stem].columns), rows, described[stem].shown_only)
        for stem, rows in page.rows(context).items()
    ]
    write_page(out, page.file.with_name(TEMPLATE), claims, [*results.tables, *tables], context)
    return claims


def write_page(
    folder: Path, template: Path, claims: Sequence[Claim], tables: Sequence[DataTable], context: Mapping[str, Any]
) -> None:
    """Write README.md, claims.csv and the other tables; parts.csv if a claim has several parts.

    Raises:
        SnsError: a file cannot be written.
    """
    all_tables = [*_claim_tables(claims), *tables]
    texts = {f"{table.stem}.csv": [_csv(table)] for table in all_tables if not table.shown_only}
    page = _rendered(
        template,
        {
            **context,
            "all_claims": claims,
            "files": list(texts),
            "tables": {table.stem: table for table in all_tables},
        },
    )
    write_files(folder, {"README.md": [page], **texts})


def _claim_tables(claims: Sequence[Claim]) -> list[DataTable]:
    """The claims, and the parts of those that have several."""
    grouped = any(claim.group for claim in claims)
    rows = [(*((c.group,) if grouped else ()), *_numbers(c, c), c.verdict) for c in claims]
    parts = [(*_numbers(c, part), part.verdict) for c in claims for part in c.parts]
    header = (*(("group",) if grouped else ()), *_CLAIM_HEADER, "verdict")
    return [
        *([DataTable("claims", header, rows)] if rows else []),
        *([DataTable("parts", (*_CLAIM_HEADER, "verdict of the part"), parts)] if parts else []),
    ]


def _numbers(claim: Claim, part: Claim) -> tuple[Any, ...]:
    found = part.found
    return (claim.where, claim.text, part.measure, part.expected, found.mean, found.low, found.high)


def _rendered(template: Path, context: Mapping[str, Any]) -> str:
    language = jinja2.Environment(
        # What pages of a paper share is beside their folders, the macros of all pages here.
        loader=jinja2.FileSystemLoader([template.parent, template.parents[1], Path(__file__).parent]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701  Markdown, not HTML
    )
    language.filters |= {"fmt": format, "cell": lambda value: str(_cell(value))}
    language.globals |= {"count_verdicts": count_verdicts, "IDENTICAL": IDENTICAL}
    macros = language.get_template(MACROS).make_module(dict(context))
    names = {name: value for name, value in vars(macros).items() if not name.startswith("_")}
    return _unwrapped(language.get_template(template.name).render({**names, **context}))


def _unwrapped(text: str) -> str:
    """Each paragraph in one line; the lines of a table stay."""
    blocks = [block.splitlines() for block in re.split(r"\n\s*\n", text.strip())]
    joined = ["\n".join(lines) if lines[0].startswith("|") else " ".join(map(str.strip, lines)) for lines in blocks]
    return "\n\n".join(joined) + "\n"


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
