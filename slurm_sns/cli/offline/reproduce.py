"""`sns reproduce`: rerun an experiment of a paper and write a page that compares our results with the paper's."""

import importlib
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slurm_sns.cli.installations import SIMULATE, needs
from slurm_sns.cli.options import AsJson
from slurm_sns.cli.progress_bar import progress_bar
from slurm_sns.cli.termination import terminated_as_interrupted
from slurm_sns.errors import BadInput

if TYPE_CHECKING:
    from slurm_sns.sim.reproduce.work import Workers

#: PAPER-NAME is the module slurm_sns.sim.reproduce.PAPER.NAME with a function `reproduce(Options) -> Page`.
NAMES = (
    "netbatch-workload",
    "netbatch-buckets",
    "netbatch-load",
    "netbatch-wins",
    "netbatch-examples",
    "netbatch-traces",
    "netbatch-full",
    "netbatch-variants",
    "netbatch-depth",
    "netbatch-generator",
    "netbatch-machines",
    "netbatch-lookahead",
    "netbatch-resources",
    "netbatch-site",
    "spread-n-share-example",
    "spread-n-share-cache",
    "spread-n-share-scaling",
    "spread-n-share-throughput",
    "spread-n-share-balance",
    "spread-n-share-ratio",
    "spread-n-share-scale",
    "spread-n-share-assumed",
    "spread-n-share-phases",
    "spread-n-share-learning",
    "spread-n-share-beyond",
    "spread-n-share-spec",
    "dfrs-load",
    "dfrs-table1",
    "dfrs-table2",
    "dfrs-time",
    "dfrs-beyond",
    "idcp-suspension",
    "idcp-tables",
    "idcp-tails",
    "idcp-beyond",
)
#: The pages that keep their rows beside them and can be made of what is finished.
WITH_ROWS = (
    "netbatch-load",
    "netbatch-depth",
    "netbatch-generator",
    "netbatch-full",
    "netbatch-wins",
    "netbatch-variants",
)
MOST_JOBS, MOST_SEEDS = 256, 10_000
SEEDS, QUICK_SEEDS = 30, 5
#: The number of synthetic traces in the DFRS paper.
DFRS_SEEDS = 100
#: Limits of one task of the job array. The largest task, six replays of 13 million jobs, takes minutes and 3 GB.
TASK_MINUTES, TASK_GB = 60, 4


def module_of(name: str) -> str:
    """The module of a page: `spread-n-share-scale` is spread_n_share/scale.py."""
    paper, _, page = name.rpartition("-")
    return f"slurm_sns.sim.reproduce.{paper.replace('-', '_')}.{page}"


def reproduce(
    name: Annotated[str, typer.Argument(metavar="NAME", help=", ".join(NAMES) + ".")],
    *,
    out: Annotated[Path, typer.Option("--out", help="Directory for the page, the figures and CSV.")],
    seeds: Annotated[
        int | None,
        typer.Option(
            "--seeds", min=2, max=MOST_SEEDS, help="How many seeds.", show_default="30, dfrs: 100; 5 with --quick"
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run a smaller version in about a minute; its results are less certain.")
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
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
        typer.Option("--hours", min=0, help="Begin no run after so many hours and make the page of what is finished."),
    ] = None,
    runs: Annotated[
        Path | None,
        typer.Option(
            "--runs", help="Directory for the results of single runs; pages may share it.", show_default="OUT/runs"
        ),
    ] = None,
    slurm: Annotated[
        bool, typer.Option("--slurm", help="Run as a Slurm job array; all nodes must see the directory of the runs.")
    ] = False,
    partition: Annotated[
        str | None, typer.Option("--partition", help="Partition of the array.", show_default="Slurm's default")
    ] = None,
    minutes: Annotated[
        int | None,
        typer.Option("--minutes", min=1, help="Time limit of a task, in minutes.", show_default=str(TASK_MINUTES)),
    ] = None,
    memory_gb: Annotated[
        int | None, typer.Option("--memory-gb", min=1, help="Memory of a task, in GB.", show_default=str(TASK_GB))
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Rerun an experiment of a paper and write figures, CSV and a page with a verdict on each claim."""
    needs("sns reproduce", SIMULATE)
    if name not in NAMES:
        raise BadInput(f"reproduction '{name}' is unknown; valid: {', '.join(NAMES)}")
    from slurm_sns.sim.reproduce.claims import count_verdicts
    from slurm_sns.sim.reproduce.options import Options
    from slurm_sns.sim.reproduce.page import write_page
    from slurm_sns.sim.reproduce.work import WorkerProcesses
    from slurm_sns.sim.results.result_files import require_directory

    given = {"partition": partition, "minutes": minutes, "memory_gb": memory_gb}
    if not slurm:
        _require_none(given)
    if hours is not None and name not in WITH_ROWS:
        raise BadInput(f"--hours does not go with {name}; valid: {', '.join(WITH_ROWS)}")
    require_directory(out)
    workers: Workers = _array(runs or out / "runs", jobs or MOST_JOBS, given) if slurm else WorkerProcesses(jobs or 2)
    module = importlib.import_module(module_of(name))
    seeds = seeds or (QUICK_SEEDS if quick else DFRS_SEEDS if name.startswith("dfrs-") else SEEDS)
    began = time.perf_counter()
    until_s = None if hours is None else time.time() + 3600 * hours
    with terminated_as_interrupted(), progress_bar(name) as report:
        page = module.reproduce(
            Options(
                out,
                seeds=seeds,
                quick=quick,
                workers=workers,
                resume=resume,
                runs=runs,
                report=report,
                until_s=until_s,
            )
        )
    write_page(out, page)
    verdicts = count_verdicts(page.claims)
    if as_json:
        took_s = round(time.perf_counter() - began, 1)
        print(json.dumps({"name": name, "seeds": page.seeds, "quick": quick, "verdicts": verdicts, "wall_s": took_s}))
    else:
        told = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
        print(f"{out / 'README.md'}: of {len(page.claims)} claims {told}")


def _array(runs: Path, tasks: int, given: dict[str, str | int | None]) -> "Workers":
    """The workers of --slurm.

    Raises:
        BadInput: submitit is not installed.
    """
    try:
        from slurm_sns.sim.reproduce.slurm_array import SlurmArray
    except ModuleNotFoundError as missing:
        raise BadInput(f"--slurm needs {missing.name}; valid: pip install 'slurm_sns[sweep]'") from None
    return SlurmArray(
        runs / "array",
        tasks,
        partition=None if given["partition"] is None else str(given["partition"]),
        minutes=int(given["minutes"] or TASK_MINUTES),
        memory_gb=int(given["memory_gb"] or TASK_GB),
    )


def _require_none(given: dict[str, str | int | None]) -> None:
    """Refuse the options of a job array for a run on this machine.

    Raises:
        BadInput: one of them was given.
    """
    for option, value in given.items():
        if value is not None:
            raise BadInput(f"--{option.replace('_', '-')} goes with --slurm")
