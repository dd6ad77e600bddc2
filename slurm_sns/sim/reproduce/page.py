"""The pages that are still Python code: their content as `Page`, written by module pages.page."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from slurm_sns.sim.pages.judge import Claim
from slurm_sns.sim.pages.page import DataTable
from slurm_sns.sim.pages.page import write_page as write


@dataclass(frozen=True)
class SavedFigure:
    """A figure that has been saved as stem.png and stem.svg."""

    stem: str
    caption: str


@dataclass(frozen=True)
class Page:
    """The content of a reproduction's page.

    `made` says how the results were produced, `remarks` what a reader should know about them. `result` are paragraphs
    and tables that the page prints before its claims, `shown` is a table that it prints after them. `seeds` is the
    number of seeds, None for a result that is not random. `groups`, if given, names the table that each claim stands
    in. `of_draws`: the claims are judged by draws. `rule`, if given, says how the verdicts come about.
    """

    title: str
    made: Sequence[str]
    claims: Sequence[Claim]
    drawings: Sequence[SavedFigure] = ()
    numbers: Sequence[DataTable] = ()
    remarks: Sequence[str] = ()
    result: Sequence[str | DataTable] = ()
    shown: DataTable | None = None
    seeds: int | None = None
    groups: Sequence[str] = ()
    rule: str = ""
    of_draws: bool = False


def write_page(folder: Path, page: Page) -> None:
    """Write README.md, claims.csv and the other tables; parts.csv if a claim has several parts.

    Raises:
        SnsError: a file cannot be written.
    """
    groups = page.groups or [""] * len(page.claims)
    claims = [replace(claim, group=group) for claim, group in zip(page.claims, groups, strict=True)]
    write(folder, Path(__file__).with_name("page.md.j2"), claims, page.numbers, {"page": page})
