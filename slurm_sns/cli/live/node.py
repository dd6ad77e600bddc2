"""`sns node`: what this machine can do with its caches and memory bandwidth, and what would be written for some jobs.

Both commands only read. They run on any compute node, as any user, and need neither Slurm nor sns.yaml.
"""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slurm_sns.cli import options
from slurm_sns.cli.live.node_missing import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rich.console import RenderableType

    from slurm_sns.cli.live.node_view import Answer

_HELP = "This node's caches and memory bandwidth (resctrl): what they offer, what groups have. Nothing is changed."

app = typer.Typer(no_args_is_help=True, help=_HELP)

Root = Annotated[Path, typer.Option("--root", help="Where resctrl is mounted.", show_default=True)]
JobsOption = Annotated[
    str,
    typer.Option(
        "--jobs",
        metavar="JOB:WAYS[:GBPS[:CORES]],...",
        help="All jobs with ways or bandwidth of their own, in the order of their arrival; CORES are those in each "
        "cache domain, such as 14+0, default: as many in each. '': no job.",
        show_default=False,
    ),
]
SharedWays = Annotated[
    int, typer.Option("--shared-ways", min=0, max=64, help="Ways for jobs without profile and the system.")
]
BandwidthGbps = Annotated[
    float | None,
    typer.Option(
        "--bandwidth-gbps",
        min=0.001,
        max=100_000,
        help="The node's memory bandwidth, GB/s. Needed where a job has GBPS and the machine limits by percent.",
        show_default=False,
    ),
]


@app.command()
def show(root: Root = ROOT, node: options.Node = None, as_json: options.AsJson = False) -> int:
    """Show what this machine offers: ways, CLOSIDs, bandwidth control, monitoring, counters; and what each group has.

    On a machine without resctrl it says what is missing (kernel option, mount, BIOS), and the exit code is 1. Its JSON
    is what sns check --node-reports compares with the rendered resctrl.yaml.
    """
    from slurm_sns.cli.live.node_missing import missing
    from slurm_sns.cli.live.node_report import report
    from slurm_sns.cli.live.node_view import report_parts

    found = report(node or os.uname().nodename.partition(".")[0], root, missing(root))
    _print(found, report_parts, as_json)
    return 1 if found["missing"] else 0


@app.command()
def layout(
    jobs: JobsOption,
    shared_ways: SharedWays = 2,
    bandwidth_gbps: BandwidthGbps = None,
    root: Root = ROOT,
    as_json: options.AsJson = False,
) -> None:
    """Say which ways and bandwidth jobs would get here, and what would be written for that. Nothing is written.

    The layout begins with the groups that are there: a job that has ways keeps them if possible.

    In the picture of the ways, the highest first: # is a job's own, + another one that the group may use now.
    """
    from slurm_sns.cli.live.node_layout import asked_jobs, planned
    from slurm_sns.cli.live.node_missing import require
    from slurm_sns.cli.live.node_view import layout_parts

    asked = asked_jobs(jobs)
    require(root)
    _print(planned(root, asked, shared_ways, bandwidth_gbps), layout_parts, as_json)


def _print(answer: "Answer", parts: "Callable[[Answer], Iterable[RenderableType]]", as_json: bool) -> None:
    from slurm_sns.cli.live.terminal import show as print_part

    if as_json:
        print(json.dumps(answer, indent=2))
        return
    for part in parts(answer):
        print_part(part)
