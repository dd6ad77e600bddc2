"""`sns coverage`: which jobs of a site's log slurm_sns would manage, and why not the others."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from slurm_sns.cli.options import AsJson
from slurm_sns.coverage.sacct import COMMAND as ACCOUNTING
from slurm_sns.errors import BadInput

LogFile = Annotated[
    str,
    typer.Argument(
        metavar="LOG",
        help=f"What `{ACCOUNTING}` prints, or events of the Slurm simulator; also .gz, - for standard input.",
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", help="An sns.yaml: its partitions are managed, and its nodes say what fits. Default: all."
    ),
]
Out = Annotated[Path | None, typer.Option("--out", help="Write the page there instead of printing it.")]


def coverage(log: LogFile, config: ConfigFile = None, out: Out = None, as_json: AsJson = False) -> None:
    """Which jobs of a log slurm_sns would manage: jobs, core-hours and users, and the rest by its first reason.

    Each submission is judged as the submit filter judges it live. Nothing of Slurm is asked or changed.
    """
    from slurm_sns.config.configuration import load
    from slurm_sns.coverage import judged, logs
    from slurm_sns.sim.traces.files import TraceFile

    found = logs.read_log(log, TraceFile.of(log).text())
    table = judged.all_partitions(found.jobs) if config is None else load(config).filter_table()
    told = judged.coverage(found.jobs, table)
    text = (
        json.dumps(asdict(told) | {"left_out": dict(found.unread)}, indent=2)
        if as_json
        else judged.page(Path(log).name, found, told)
    )
    if out is None:
        print(text.rstrip("\n"))
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise BadInput(f"{out}: cannot be written ({problem.strerror})") from None
