"""`sns simulate`: replay a trace on a list of nodes under one policy."""

import json
import resource
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from slurm_sns.cli.installations import SIMULATE, needs
from slurm_sns.cli.offline.numba_alone import load_numba
from slurm_sns.cli.offline.requested import SpreadingOptions, default_intervals, requested, with_policy_options
from slurm_sns.cli.options import AsJson
from slurm_sns.cli.progress_bar import progress_bar
from slurm_sns.coverage.sacct import COMMAND as ACCOUNTING
from slurm_sns.coverage.sacct import NODES, SINFO
from slurm_sns.errors import BadInput
from slurm_sns.policies.registry import REGISTRY

if TYPE_CHECKING:
    from slurm_sns.sim.results.summary_types import SimulationSummary
    from slurm_sns.sim.runners.replay_parts import Runner

#: A year.
MOST_PENALTY_S = 31_536_000


@with_policy_options(after="interval")
def simulate(
    trace: Annotated[
        str,
        typer.Argument(
            metavar="TRACE",
            help="SWF, CSV, or a dump of a site's accounting, plain or gzip; `-` reads SWF or a dump from standard "
            f"input. What makes a dump: {ACCOUNTING}",
        ),
    ],
    *,
    nodes: Annotated[
        Path | None,
        typer.Option(
            help="CSV with the header name,cores,mem_gb, optionally ways,bandwidth_gbps,closids,gpus (rescheduling "
            f"needs pool, too); or what `{NODES}` printed, or `{SINFO}`."
        ),
    ] = None,
    slurm_conf: Annotated[
        Path | None,
        typer.Option(help="Instead of --nodes: the nodes, partitions and features of this slurm.conf."),
    ] = None,
    policy: Annotated[str, typer.Option(help=f"{', '.join(REGISTRY)}, or the name of one heuristic.")],
    interval: Annotated[
        int | None, typer.Option(min=1, help="Seconds between cycles.", show_default=default_intervals())
    ] = None,
    load_factor: Annotated[float, typer.Option(help="Multiplies arrival times; below 1 raises the load.")] = 1.0,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Replay only this many jobs, the first of the trace.")
    ] = None,
    profiles: Annotated[
        Path | None,
        typer.Option(help="The programs' profiles, a YAML file (ce, cs, sns, combined, fcfs, easy, slurm)."),
    ] = None,
    progress: Annotated[
        str | None,
        typer.Option(
            help="How jobs advance: authors (the paper's model), or contention (neighbours slow them down).",
            show_default="authors",
        ),
    ] = None,
    learn: Annotated[
        float | None,
        typer.Option(
            metavar="SPREAD",
            help="Begin without profiles and learn them from the runs (sns, combined). Each measurement differs from "
            "--profiles by a random error with this relative standard deviation, 0 to 1.",
        ),
    ] = None,
    user_estimates: Annotated[
        bool,
        typer.Option(
            "--user-estimates",
            help="Jobs are expected to run until their time limits, which SWF and sacct have, not as long as they do "
            "(easy, slurm).",
        ),
    ] = False,
    age_limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="A job that has waited longer than this many seconds goes first, and capacity is withheld for it.",
            show_default="none, or that of --config",
        ),
    ] = None,
    penalty: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=MOST_PENALTY_S,
            help="Seconds without progress after each resume and each move of a job (dfrs).",
            show_default="0",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the measurement errors of --learn; nothing else is random.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Directory for jobs.csv, cycles.csv, summary.json.")] = None,
    config: Annotated[
        Path | None, typer.Option(help="An sns.yaml with the projects' shares and defaults for options not given.")
    ] = None,
    as_json: AsJson = False,
    settings: Mapping[str, Any],
) -> None:
    """Replay TRACE on the nodes under a policy and print a summary."""
    needs("sns simulate", SIMULATE)
    load_numba()
    from slurm_sns.policies.specification import named
    from slurm_sns.whole_files import require_directory, write_files

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
    replay = read(trace, file_of_nodes("sns simulate", nodes, slurm_conf), asked, load_factor, limit)
    if replay.unsorted:
        note = f"{replay.unsorted:,} jobs come after later ones; sorted by submit"
        print(f"sns: note: {trace}: {note}", file=sys.stderr)
    read_s = time.perf_counter() - began

    began = time.perf_counter()
    with progress_bar(replay.counts, replay.jobs) as report:
        result = replay.run(report)
    wall_s = time.perf_counter() - began

    found = {
        "policy": asked.name,
        **replay.settings,
        "age_limit_s": asked.age_limit_s,
        "load_factor": load_factor,
        "seed": seed,
        "jobs": replay.jobs,
        "dropped": replay.dropped,
        **asdict(result.metrics()),
        **result.more(),
        "read_s": round(read_s, 3),
        "wall_s": round(wall_s, 3),
        "jobs_per_s": round(replay.jobs / max(wall_s, 1e-9), 1),
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),  # Linux counts KiB
    }
    summary = cast("SimulationSummary", found)
    if out is not None:
        write_files(out, {**result.files, "summary.json": [json.dumps(summary, indent=2) + "\n"]})
    if as_json:
        print(json.dumps(summary, indent=2))
    else:
        _print_table(found)


def file_of_nodes(command: str, nodes: Path | None, slurm_conf: Path | None) -> str:
    """The file that lists the nodes for this command; its content says in which form.

    Raises:
        BadInput: none or two are given, or the second is no slurm.conf.
    """
    from slurm_sns.sim.traces import cluster_nodes

    if (nodes is None) == (slurm_conf is None):
        raise BadInput(f"{command} needs the nodes: either --nodes FILE or --slurm-conf FILE")
    return str(nodes) if slurm_conf is None else cluster_nodes.slurm_conf(str(slurm_conf))


def _print_table(summary: dict[str, Any]) -> None:
    """Print the summary as a table."""
    from rich.console import Console
    from rich.table import Table

    def percent(fraction: float | None) -> str:
        return "-" if fraction is None else f"{fraction:.1f} %"

    def utilisation(name: str) -> str:
        return percent(None if summary[name] is None else 100 * summary[name])

    def amount(name: str) -> str:
        return "-" if summary[name] is None else f"{summary[name]:,.2f}"

    table = Table(show_header=False, box=None)
    table.add_column(style="bold")
    table.add_column()
    table.add_row("policy", summary["policy"])
    table.add_row("jobs", f"{summary['jobs']:,}")
    for reason, count in summary["dropped"].items():
        table.add_row("dropped", f"{count:,} {reason}")
    table.add_row("mean wait", f"{amount('mean_wait_s')} s")
    if "mean_run_s" in summary:
        table.add_row("mean run", f"{amount('mean_run_s')} s")
        table.add_row("mean turnaround", f"{amount('mean_turnaround_s')} s")
    if "learn" in summary:
        table.add_row(
            "profiles learnt",
            f"{summary['programs_learnt']} of {summary['programs']}, in {summary['exploring_runs']} exploring runs",
        )
    table.add_row("mean slowdown", amount("mean_slowdown"))
    table.add_row("max bounded stretch", amount("max_bounded_stretch"))
    if "migrations" in summary:
        table.add_row("mean bounded stretch", amount("mean_bounded_stretch"))
        preempted, moved = summary["preemption_gb_per_s"], summary["migration_gb_per_s"]
        table.add_row("preemptions", f"{summary['preemptions']:,}, {preempted:.3g} GB/s")
        table.add_row(
            "migrations", f"{summary['migrations']:,} (of {summary['tasks_moved']:,} tasks), {moved:.3g} GB/s"
        )
    if "restarts" in summary:
        suspended, mean_s = summary["jobs_suspended"], amount("mean_suspended_s")
        table.add_row("suspensions", f"{summary['suspensions']:,} of {suspended:,} jobs, mean {mean_s} s a job")
        table.add_row("restarts", f"{summary['restarts']:,}, {summary['wasted_core_s'] / 3600:,.1f} core hours lost")
    table.add_row("mean queue length", amount("mean_queue_length"))
    table.add_row(
        "utilisation", f"cores {utilisation('utilisation_cores')}, memory {utilisation('utilisation_memory')}"
    )
    table.add_row("load", f"cores {percent(summary['load_cores'])}, memory {percent(summary['load_memory'])}")
    if len(summary.get("portfolio", ())) > 1:
        cycles = max(summary["cycles_with_waiting"], 1)
        for member, count in summary["wins"].items():
            table.add_row(
                f"wins {member}", f"{100 * count / cycles:.1f} % of {summary['cycles_with_waiting']:,} cycles"
            )
    table.add_row("time", f"read {summary['read_s']:.1f} s, replay {summary['wall_s']:.1f} s")
    table.add_row("", f"{summary['jobs_per_s']:,.0f} jobs/s, {summary['peak_rss_mb']:,.0f} MB")
    Console().print(table)
