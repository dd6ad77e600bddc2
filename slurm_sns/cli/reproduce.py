"""`sns reproduce`: run the experiments of the papers again and write a page that sets our results beside theirs."""

import importlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from slurm_sns.cli.options import AsJson
from slurm_sns.errors import BadInput

#: Each is a module of slurm_sns.sim.reproduce with a function `reproduce(Options) -> Page`.
NAMES = (
    "netbatch-workload",
    "netbatch-buckets",
    "netbatch-load",
    "netbatch-wins",
    "netbatch-examples",
    "netbatch-traces",
    "netbatch-full",
)
MOST_JOBS, MOST_SEEDS = 256, 10_000
QUICK_SEEDS = 5


def reproduce(
    name: Annotated[str, typer.Argument(metavar="NAME", help=", ".join(NAMES) + ".")],
    *,
    out: Annotated[Path, typer.Option("--out", help="Directory for the page, the figures and CSV.")],
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", min=2, max=MOST_SEEDS, help="How many seeds.", show_default="30; 5 with --quick"),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A minute's version: smaller, and less certain.")] = False,
    jobs: Annotated[int, typer.Option("--jobs", min=1, max=MOST_JOBS, help="Processes at a time.")] = 2,
    resume: Annotated[bool, typer.Option("--resume", help="Keep the runs that are there already.")] = False,
    runs: Annotated[
        Path | None,
        typer.Option("--runs", help="Directory of single runs, to share between pages.", show_default="OUT/runs"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Reproduce figures of a paper: figures and CSV, and a page with a verdict on each claim."""
    if name not in NAMES:
        raise BadInput(f"reproduction '{name}' is unknown; valid: {', '.join(NAMES)}")
    from slurm_sns.sim.reproduce.claims import count_verdicts
    from slurm_sns.sim.reproduce.options import Options
    from slurm_sns.sim.reproduce.page import write_page
    from slurm_sns.sim.results import require_directory

    require_directory(out)
    module = importlib.import_module(f"slurm_sns.sim.reproduce.{name.replace('-', '_')}")
    seeds = seeds or (QUICK_SEEDS if quick else 30)
    began = time.perf_counter()
    with _progress(name) as report:
        page = module.reproduce(
            Options(out, seeds=seeds, quick=quick, jobs=jobs, resume=resume, runs=runs, report=report)
        )
    write_page(out, page)
    verdicts = count_verdicts(page.claims)
    if as_json:
        took_s = round(time.perf_counter() - began, 1)
        print(json.dumps({"name": name, "seeds": seeds, "quick": quick, "verdicts": verdicts, "wall_s": took_s}))
    else:
        told = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
        print(f"{out / 'README.md'}: of {len(page.claims)} claims {told}")


@contextmanager
def _progress(name: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on standard error, when that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name)
        yield lambda done, total: bar.update(task, completed=done, total=total)
