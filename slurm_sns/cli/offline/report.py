"""`sns report`: one page about a cluster, from the looks of `sns observe` or the plans in a scheduler's store."""

import json
import sys
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
#: The width of text that is not for a terminal.
TEXT_WIDTH = 120

What = Annotated[
    str | None,
    typer.Argument(metavar="WHAT", help="The directory that `sns observe` wrote, or its looks.jsonl."),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="An sns.yaml: report on the plans in the store of its scheduler."),
]
Out = Annotated[Path | None, typer.Option("--out", metavar="FILE.html", help="Write the page there, as one HTML file.")]


class MadeReport(NamedTuple):
    """A report, as a page and as JSON."""

    page: "ReportPage"
    values: "ReportJson"


def report(what: What = None, config: ConfigFile = None, out: Out = None, as_json: AsJson = False) -> None:
    """What slurm_sns would have started on a cluster, and what Slurm did: a page of text, HTML or JSON.

    After `sns observe`: `sns report sns-observed`. Where a scheduler runs in the mode observe: `sns report --config
    /etc/slurm/sns.yaml`, as SlurmUser. Nothing of Slurm is asked or changed.
    """
    if out is not None:
        _require_writable(out)
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
        raise BadInput(f"one thing is reported on, not {'none' if what is None else 'two'}; valid: {VALID}")
    if config is not None:
        from slurm_sns.cli.live.report_of_store import report_of_store

        return MadeReport(*report_of_store(config))
    from slurm_sns.cli.offline.report_of_looks import looks_file, report_of_looks

    found = looks_file(Path(str(what)))
    if found is not None:
        return MadeReport(*report_of_looks(found))
    # A dump of accounting would be everything else.
    raise BadInput(f"{what}: there are no looks in it; valid: {VALID}")


def _show(page: "ReportPage") -> None:
    from rich.console import Console

    from slurm_sns.report.text import as_text

    console = Console()
    text = as_text(page, console.width if console.is_terminal else TEXT_WIDTH)
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "replace").decode(encoding), end="")  # names may have letters that a terminal has not


def _require_writable(out: Path) -> None:
    """Check that the file can be written, before the work.

    Raises:
        BadInput: it is a directory, or its directory cannot be written.
    """
    from slurm_sns.whole_files import require_directory

    if out.is_dir():
        raise BadInput(f"{out}: is a directory; valid: the name of a file, such as {out / 'report.html'}")
    require_directory(out.parent)


def _write(out: Path, page: "ReportPage") -> None:
    from slurm_sns.report.html import as_html
    from slurm_sns.whole_files import write_files

    write_files(out.parent, {out.name: [as_html(page)]})
