"""`sns report`: one page about a cluster, from the looks of `sns observe`, the scheduler's store, or accounting."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from slurm_sns.cli.options import AsJson
from slurm_sns.errors import BadInput

if TYPE_CHECKING:
    from slurm_sns.cli.json_types import ReportJson
    from slurm_sns.report.document import ReportPage

#: What can be reported on, for messages.
VALID = "the directory of `sns observe`, its looks.jsonl, or --config sns.yaml for the store of a scheduler"

What = Annotated[
    str | None,
    typer.Argument(
        metavar="WHAT", help="The directory that `sns observe` wrote, or its looks.jsonl.", show_default=False
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="An sns.yaml: report on the plans in the store of its scheduler."),
]
Out = Annotated[Path | None, typer.Option("--out", metavar="FILE.html", help="Write the page there, as HTML.")]


class MadeReport(NamedTuple):
    """A report, as a page and as JSON."""

    page: "ReportPage"
    values: "ReportJson"


def report(what: What = None, config: ConfigFile = None, out: Out = None, as_json: AsJson = False) -> None:
    """What slurm_sns would have done on a cluster, and what Slurm did: one page of text, HTML or JSON.

    After `sns observe`: `sns report sns-observed`. Where a scheduler runs in the mode observe: `sns report --config
    /etc/slurm/sns.yaml`. Nothing of Slurm is asked or changed.
    """
    made = _made(what, config)
    if out is not None:
        _write(out, made.page)
    if as_json:
        print(json.dumps(made.values, indent=2))
    elif out is None:
        _show(made.page)
    else:
        print(f"the report is in {out}")


def _made(what: str | None, config: Path | None) -> MadeReport:
    """The report on what was named, told by its content.

    Raises:
        BadInput: nothing was named, or two things, or nothing that can be reported on.
    """
    if (what is None) == (config is None):
        raise BadInput(f"one thing is reported on; valid: {VALID}")
    if config is not None:
        from slurm_sns.cli.live.report_of_store import report_of_store

        return MadeReport(*report_of_store(config))
    from slurm_sns.cli.offline.report_of_looks import looks_file, report_of_looks

    found = looks_file(Path(str(what)))
    if found is not None:
        return MadeReport(*report_of_looks(found))
    # A dump of accounting is everything else.
    raise BadInput(f"{what}: there are no looks; valid: {VALID}")


def _show(page: "ReportPage") -> None:
    from rich.console import Console

    from slurm_sns.report.text import as_text

    console = Console()
    print(as_text(page, console.width if console.is_terminal else TEXT_WIDTH), end="")


def _write(out: Path, page: "ReportPage") -> None:
    from slurm_sns.report.html import as_html
    from slurm_sns.whole_files import write_files

    write_files(out.parent, {out.name: [as_html(page)]})


#: The width of text that is no terminal's.
TEXT_WIDTH = 120
