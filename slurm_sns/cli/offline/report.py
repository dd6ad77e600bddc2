"""`sns report`: one page about a cluster: accounting, looks of `sns observe`, or a store."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

import typer

from slurm_sns.cli.options import AsJson
from slurm_sns.coverage.sacct import COMMAND as ACCOUNTING
from slurm_sns.coverage.sacct import NODES, SINFO
from slurm_sns.errors import BadInput

if TYPE_CHECKING:
    from slurm_sns.cli.json_types import ReportJson
    from slurm_sns.cli.offline.report_of_dump import DumpOptions
    from slurm_sns.report.document import ReportPage

#: What can be reported on, for messages.
VALID = (
    "a dump of sacct with --slurm-conf or --nodes, the directory of `sns observe`, its looks.jsonl, or --config "
    "sns.yaml for the store of a scheduler"
)
#: The width of text that is not for a terminal.
TEXT_WIDTH = 120

What = Annotated[
    str | None,
    typer.Argument(
        metavar="WHAT",
        help="A dump of accounting, plain or gzip, - for standard input; or the directory that `sns observe` wrote, or "
        f"its looks.jsonl. What makes a dump: {ACCOUNTING}",
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="An sns.yaml: report on the store of its scheduler."),
]
Out = Annotated[Path | None, typer.Option("--out", metavar="FILE.html", help="Write the page there, as one HTML file.")]


class MadeReport(NamedTuple):
    """A report, as a page and as JSON."""

    page: "ReportPage"
    values: "ReportJson"


def report(
    what: What = None,
    *,
    config: ConfigFile = None,
    slurm_conf: Annotated[
        Path | None, typer.Option(help="Of a dump: the nodes and partitions are those of this slurm.conf.")
    ] = None,
    nodes: Annotated[
        Path | None, typer.Option(help=f"Of a dump, instead: what `{NODES}` printed, or `{SINFO}`, or a CSV.")
    ] = None,
    policy: Annotated[
        str | None, typer.Option(help="Of a dump: max-jobs, or the name of one heuristic.", show_default="max-jobs")
    ] = None,
    partition: Annotated[
        list[str] | None, typer.Option(help="Of a dump: measure the jobs of these partitions only.")
    ] = None,
    weeks: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Of a dump: replay so many weeks, 0 for all.",
            show_default="what takes about a minute, at least 6",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of a dump: which weeks.", show_default="0")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Of a dump: processes that replay.", show_default="2")] = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """What slurm_sns would do on a cluster, beside what Slurm does: a page of text, HTML or JSON.

    From accounting: `sns report accounting.psv --slurm-conf slurm.conf`. After `sns observe`: `sns report
    sns-observed`. Where a scheduler runs: `sns report --config /etc/slurm/sns.yaml`, as SlurmUser. In the modes observe
    and advise that has its plans, in enforce restarts of suspended jobs and shared cores. Nothing of Slurm is asked or
    changed.
    """
    if out is not None:
        _require_writable(out)
    of_dump: dict[str, Any] = {
        "slurm_conf": slurm_conf,
        "nodes": nodes,
        "policy": policy,
        "partition": partition or None,
        "weeks": weeks,
        "seed": seed,
        "jobs": jobs,
    }
    given = {name: value for name, value in of_dump.items() if value is not None}
    made = _made(what, config, cast("DumpOptions", given))
    if out is not None:
        _write(out, made.page)
    if as_json:
        print(json.dumps(made.values, indent=2))
    elif out is None:
        _show(made.page)
    else:
        print(f"the report is in {out}")


def _made(what: str | None, config: Path | None, of_dump: "DumpOptions") -> MadeReport:
    """The report on what was named, told by its content; `of_dump` are the given options that only a dump has.

    Raises:
        BadInput: nothing was named, or two things, or nothing that can be reported on.
    """
    if (what is None) == (config is None):
        raise BadInput(f"one thing is reported on, not {'none' if what is None else 'two'}; valid: {VALID}")
    found = None
    if what is not None and what != "-":
        from slurm_sns.cli.offline.report_of_looks import looks_file, report_of_looks

        found = looks_file(Path(what))
    if what is not None and found is None:
        from slurm_sns.cli.offline.report_of_dump import report_of_dump

        return MadeReport(*report_of_dump(what, of_dump))
    if of_dump:
        raise BadInput(f"--{next(iter(of_dump)).replace('_', '-')} goes with a dump of sacct")
    if config is not None:
        from slurm_sns.cli.live.report_of_store import report_of_store

        return MadeReport(*report_of_store(config))
    assert found is not None  # noqa: S101  for mypy: either what or config was given
    return MadeReport(*report_of_looks(found))


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
