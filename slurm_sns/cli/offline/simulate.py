"""`sns simulate`: replay a trace on a list of nodes under one policy."""

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slurm_sns.cli.installations import SIMULATE, needs
from slurm_sns.cli.offline.policy_options import default_intervals, with_policy_options
from slurm_sns.cli.offline.requested import SpreadingOptions, requested
from slurm_sns.cli.offline.summary import print_table, summary_of
from slurm_sns.cli.options import AsJson
from slurm_sns.cli.progress_bar import progress_bar
from slurm_sns.errors import BadInput
from slurm_sns.policies.registry import REGISTRY

if TYPE_CHECKING:
    from slurm_sns.sim.runners.replay import Runner

#: A year.
MOST_PENALTY_S = 31_536_000


@with_policy_options(after="interval")
def simulate(
    trace: Annotated[
        str, typer.Argument(metavar="TRACE", help="SWF or CSV, plain or gzip; `-` reads SWF from standard input.")
    ],
    *,
    nodes: Annotated[
        Path,
        typer.Option(
            "--nodes",
            help="CSV with the header name,cores,mem_gb, optionally ways,bandwidth_gbps,closids; rescheduling needs "
            "pool, too.",
        ),
    ],
    policy: Annotated[str, typer.Option("--policy", help=f"{', '.join(REGISTRY)}, or the name of one heuristic.")],
    interval: Annotated[
        int | None,
        typer.Option(
            "--interval",
            min=1,
            help="Seconds between cycles.",
            show_default=default_intervals(),
        ),
    ] = None,
    load_factor: Annotated[
        float, typer.Option("--load-factor", help="Multiplies arrival times; below 1 raises the load.")
    ] = 1.0,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Replay only this many jobs, the first of the trace.")
    ] = None,
    profiles: Annotated[
        Path | None,
        typer.Option("--profiles", help="The programs' profiles, a YAML file (ce, cs, sns, combined, fcfs, easy)."),
    ] = None,
    progress: Annotated[
        str | None,
        typer.Option(
            "--progress",
            help="How jobs advance: authors (the paper's model), or contention (neighbours slow them down).",
            show_default="authors",
        ),
    ] = None,
    learn: Annotated[
        float | None,
        typer.Option(
            "--learn",
            metavar="SPREAD",
            help="Begin without profiles and learn them from the runs (sns, combined). Each measurement differs from "
            "--profiles by a random error with this relative standard deviation, 0 to 1.",
        ),
    ] = None,
    user_estimates: Annotated[
        bool,
        typer.Option(
            "--user-estimates",
            help="Jobs are expected to run until their time limits, which SWF has, not as long as they do (easy).",
        ),
    ] = False,
    age_limit: Annotated[
        int | None,
        typer.Option(
            "--age-limit",
            min=1,
            help="A job that has waited longer than this many seconds goes first, and capacity is withheld for it.",
            show_default="none, or that of --config",
        ),
    ] = None,
    penalty: Annotated[
        int | None,
        typer.Option(
            "--penalty",
            min=0,
            max=MOST_PENALTY_S,
            help="Seconds without progress after each resume and each move of a job (dfrs).",
            show_default="0",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", help="Seed of the measurement errors of --learn; nothing else is random.")
    ] = 0,
    out: Annotated[Path | None, typer.Option("--out", help="Directory for jobs.csv, cycles.csv, summary.json.")] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", help="An sns.yaml with the projects' shares and defaults for options not given."),
    ] = None,
    as_json: AsJson = False,
    settings: Mapping[str, Any],
) -> None:
    """Replay TRACE on the nodes under a policy and print a summary."""
    needs("sns simulate", SIMULATE)
    from slurm_sns.policies.specification import named
    from slurm_sns.sim.results.result_files import require_directory

    spreading = SpreadingOptions(profiles, progress, learn, seed, user_estimates)
    asked = requested(
        policy, settings, spreading, config, interval_s=interval, age_limit_s=age_limit, penalty_s=penalty
    )
    if not 0 < load_factor <= 1e6:
        raise BadInput(f"--load-factor is {load_factor}; valid: more than 0, at most 1e6")
    if out is not None:
        require_directory(out)

    began = time.perf_counter()
    read: Runner = named(asked.runner)
    replay = read(trace, str(nodes), asked, load_factor, limit)
    _note(trace, replay.unsorted)
    read_s = time.perf_counter() - began

    began = time.perf_counter()
    with progress_bar(replay.counts, replay.jobs) as report:
        result = replay.run(report)
    wall_s = time.perf_counter() - began

    summary = summary_of(asked, replay, result, load_factor=load_factor, seed=seed, read_s=read_s, wall_s=wall_s)
    if out is not None:
        result.write(out, summary)
    if as_json:
        print(json.dumps(summary, indent=2))
    else:
        print_table(summary)


def _note(trace: str, unsorted: int) -> None:
    """Tell the user when the trace was not in submit order."""
    if unsorted:
        print(f"sns: note: {trace}: {unsorted:,} jobs come after later ones; sorted by submit", file=sys.stderr)
