"""`sns reproduce`: rerun an experiment of a paper and write a page that compares our results with the paper's."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slurm_sns.cli.installations import SIMULATE, needs
from slurm_sns.cli.options import AsJson
from slurm_sns.cli.progress_bar import progress_bar
from slurm_sns.cli.termination import terminated_as_interrupted
from slurm_sns.errors import BadInput, SnsError
from slurm_sns.sim.pages import FOLDERS, PACKAGE

if TYPE_CHECKING:
    from slurm_sns.cli.json_types import ReproductionJson
    from slurm_sns.sim.pages.claims import ClaimsFile
    from slurm_sns.sim.pages.running import Workers

MOST_JOBS, MOST_SEEDS = 256, 10_000
QUICK_SEEDS = 5
#: Limits of one task of the job array. The largest task, six replays of 13 million jobs, takes minutes and 3 GB.
TASK_MINUTES, TASK_GB = 60, 4


def reproduce(
    name: Annotated[str, typer.Argument(metavar="NAME", help=", ".join(FOLDERS) + ".")],
    *,
    out: Annotated[Path, typer.Option(help="Directory for the page, the figures and CSV.")],
    seeds: Annotated[
        int | None,
        typer.Option(min=2, max=MOST_SEEDS, help="How many seeds.", show_default="30, dfrs: 100; 5 with --quick"),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run a smaller version in about a minute; its results are less certain.")
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MOST_JOBS,
            help="Processes to run at a time; with --slurm, tasks of the array.",
            show_default=f"2; {MOST_JOBS} with --slurm",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep finished runs of an interrupted one and run only what is missing.")
    ] = False,
    hours: Annotated[
        float | None,
        typer.Option(min=0, help="Begin no run after so many hours and make the page of what is finished."),
    ] = None,
    runs: Annotated[
        Path | None,
        typer.Option(help="Directory for the results of single runs; pages may share it.", show_default="OUT/runs"),
    ] = None,
    slurm: Annotated[
        bool, typer.Option("--slurm", help="Run as a Slurm job array; all nodes must see the directory of the runs.")
    ] = False,
    partition: Annotated[
        str | None, typer.Option(help="Partition of the array.", show_default="Slurm's default")
    ] = None,
    minutes: Annotated[
        int | None, typer.Option(min=1, help="Time limit of a task, in minutes.", show_default=str(TASK_MINUTES))
    ] = None,
    memory_gb: Annotated[
        int | None, typer.Option(min=1, help="Memory of a task, in GB.", show_default=str(TASK_GB))
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Rerun an experiment of a paper and write figures, CSV and a page with a verdict on each claim."""
    needs("sns reproduce", SIMULATE)
    if not FOLDERS:
        raise SnsError(f"the package {PACKAGE} is missing; valid: install slurm_sns again, which brings it")
    if name not in FOLDERS:
        raise BadInput(f"reproduction '{name}' is unknown; valid: {', '.join(FOLDERS)}")
    from slurm_sns.sim.pages.judge import count_verdicts
    from slurm_sns.sim.pages.page import reproduce as reproduce_page
    from slurm_sns.sim.pages.running import Options, WorkerProcesses
    from slurm_sns.whole_files import require_directory

    given = {"partition": partition, "minutes": minutes, "memory_gb": memory_gb}
    for option, value in given.items():
        if value is not None and not slurm:
            raise BadInput(f"--{option.replace('_', '-')} goes with --slurm")
    if hours is not None and not _content(name).keeps_rows:
        valid = ", ".join(each for each in FOLDERS if _content(each).keeps_rows)
        raise BadInput(f"--hours does not go with {name}; valid: {valid}")
    require_directory(out)
    workers: Workers = _array(runs or out / "runs", jobs or MOST_JOBS, given) if slurm else WorkerProcesses(jobs or 2)
    began = time.perf_counter()
    with terminated_as_interrupted(), progress_bar(name) as report:
        options = Options(
            out,
            seeds=seeds or (QUICK_SEEDS if quick else _content(name).seeds),
            quick=quick,
            workers=workers,
            resume=resume,
            runs=runs,
            report=report,
            until_s=None if hours is None else time.time() + 3600 * hours,
        )
        claims, seeds_of_page = reproduce_page(name, options)
    verdicts = count_verdicts(claims)
    if as_json:
        took_s = round(time.perf_counter() - began, 1)
        told: ReproductionJson = {
            "name": name,
            "seeds": seeds_of_page,
            "quick": quick,
            "verdicts": verdicts,
            "wall_s": took_s,
        }
        print(json.dumps(told))
    else:
        counted = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
        print(f"{out / 'README.md'}: of {len(claims)} claims {counted}")


def _content(name: str) -> "ClaimsFile":
    """What the page's claims.yaml says."""
    from slurm_sns.sim.pages.claims import PageClaims

    return PageClaims.of(FOLDERS[name]).content


def _array(runs: Path, tasks: int, given: dict[str, str | int | None]) -> "Workers":
    """The workers of --slurm.

    Raises:
        BadInput: submitit is not installed.
    """
    try:
        from slurm_sns.sim.pages.slurm_array import SlurmArray
    except ModuleNotFoundError as missing:
        raise BadInput(f"--slurm needs {missing.name}; valid: pip install 'slurm_sns[sweep]'") from None
    return SlurmArray(
        runs / "array",
        tasks,
        partition=None if given["partition"] is None else str(given["partition"]),
        minutes=int(given["minutes"] or TASK_MINUTES),
        memory_gb=int(given["memory_gb"] or TASK_GB),
    )
