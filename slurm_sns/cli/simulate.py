"""`sns simulate`: replay a trace on a list of nodes under one policy."""

import json
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slurm_sns.cli.options import AsJson
from slurm_sns.cli.spreading import COMBINED, SPREADING, SpreadingOptions, summary_of
from slurm_sns.errors import BadInput

if TYPE_CHECKING:
    from slurm_sns.policies.matching.parameters import MatchingParameters

MAX_JOBS = "max-jobs"

#: The paper's cycle (JSSPP 2013, section 5), in seconds.
PAPER_INTERVAL_S = 30
#: Time is in whole seconds: a cycle in each second in which something was submitted or finished.
AT_EVERY_EVENT_S = 1


def simulate(
    trace: Annotated[
        str, typer.Argument(metavar="TRACE", help="SWF or CSV, plain or gzip; `-` reads SWF from standard input.")
    ],
    *,
    nodes: Annotated[
        Path, typer.Option("--nodes", help="CSV with the header name,cores,mem_gb, optionally ways,bandwidth_gbps.")
    ],
    policy: Annotated[
        str, typer.Option("--policy", help="max-jobs, ce, cs, sns, combined, or the name of one heuristic.")
    ],
    interval: Annotated[
        int | None,
        typer.Option(
            "--interval",
            min=1,
            help="Seconds between cycles.",
            show_default="30; ce, cs, sns, combined: at every submit and finish",
        ),
    ] = None,
    queue_depth: Annotated[
        int | None, typer.Option("--queue-depth", min=1, help="Jobs that a cycle looks at.", show_default="1000")
    ] = None,
    reservations: Annotated[
        int | None,
        typer.Option(
            "--reservations", min=0, help="First queue positions for which capacity is withheld.", show_default="1"
        ),
    ] = None,
    portfolio: Annotated[
        str | None,
        typer.Option(
            "--portfolio", help="The heuristics of max-jobs, separated by commas.", show_default="the paper's five"
        ),
    ] = None,
    load_factor: Annotated[
        float, typer.Option("--load-factor", help="Multiplies arrival times; below 1 raises the load.")
    ] = 1.0,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Only the first jobs of the trace.")] = None,
    profiles: Annotated[
        Path | None, typer.Option("--profiles", help="The programs' profiles, a YAML file (ce, cs, sns, combined).")
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            "--alpha", help="The share of its best performance that a job keeps (sns, combined).", show_default="0.9"
        ),
    ] = None,
    scales: Annotated[
        str | None, typer.Option("--scales", help="The scale factors that may be used.", show_default="1,2,4,8")
    ] = None,
    beta: Annotated[
        float | None,
        typer.Option("--beta", help="What occupied cache ways weigh in the choice of nodes.", show_default="2"),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="For policies that draw lots; matching draws none.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", help="Directory for jobs.csv, cycles.csv, summary.json.")] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", help="Take what is not given here, and the projects' shares, from this sns.yaml."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Replay TRACE on the nodes under a policy and print what came of it."""
    from slurm_sns.cli.replaying import run_matching, run_spreading
    from slurm_sns.policies.matching.max_jobs import MaxJobs
    from slurm_sns.sim.nodes_csv import read_nodes
    from slurm_sns.sim.read_trace import read_records
    from slurm_sns.sim.results import require_directory
    from slurm_sns.sim.sns_policies import scheduler_of
    from slurm_sns.sim.sns_trace import TraceReader

    configured, shares = _configured(config)
    parameters = _chosen(configured, policy, portfolio)
    parameters = _limited(parameters, policy, queue_depth, reservations)
    options = SpreadingOptions(profiles, alpha, scales, beta)
    if policy in SPREADING:
        spread_parameters = options.parameters(parameters.queue_depth, config)
        named = None if portfolio is None else parameters.portfolio
        scheduler = scheduler_of(policy, spread_parameters, parameters, named)
        parameters = scheduler.parameters
    else:
        options.require_none(policy)
        MaxJobs(parameters)  # refuses what is not valid, before anything is read
    interval = interval or (AT_EVERY_EVENT_S if policy in SPREADING else PAPER_INTERVAL_S)
    if not 0 < load_factor <= 1e6:
        raise BadInput(f"--load-factor is {load_factor}; valid: more than 0, at most 1e6")
    if out is not None:
        require_directory(out)

    began = time.perf_counter()
    pool = read_nodes(str(nodes))
    spread = None
    if policy in SPREADING:
        reader = TraceReader(pool, policy, options.programs(pool), spread_parameters)
        spread = reader.read(trace, load_factor=load_factor, limit=limit)
        count, dropped = len(spread.trace.jobs), spread.trace.dropped
    else:
        records = read_records(trace, pool, load_factor=load_factor, limit=limit)
        count, dropped = len(records), records.dropped
        _note(trace, records.unsorted)
    read_s = time.perf_counter() - began

    began = time.perf_counter()
    with _progress(count) as report:
        if spread:
            done = run_spreading(pool, spread, scheduler, interval_s=interval, shares=shares, report=report)
        else:
            done = run_matching(pool, records, parameters, interval_s=interval, shares=shares, report=report)
    wall_s = time.perf_counter() - began

    summary: dict[str, Any] = {
        "policy": policy,
        "interval_s": interval,
        "queue_depth": parameters.queue_depth,
        "reservations": parameters.reservations,
        "portfolio": list(parameters.portfolio),
        "load_factor": load_factor,
        "seed": seed,
        "jobs": count,
        "dropped": dropped,
        **asdict(done.metrics()),
        **(summary_of(spread, done.placements, spread_parameters, options) if spread else {}),
        "read_s": round(read_s, 3),
        "wall_s": round(wall_s, 3),
        "jobs_per_s": round(count / max(wall_s, 1e-9), 1),
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),  # Linux counts KiB
    }
    if out is not None:
        done.write(out, summary)
    if as_json:
        print(json.dumps(summary, indent=2))
    else:
        _print_table(summary)


def _note(trace: str, unsorted: int) -> None:
    """Say that the trace was not in the order of its submits."""
    if unsorted:
        print(f"sns: note: {trace}: {unsorted:,} jobs come after later ones; sorted by submit", file=sys.stderr)


def _configured(config: Path | None) -> tuple["MatchingParameters", Mapping[str, float]]:
    """The parameters and the projects' shares of a configuration, or the defaults."""
    from slurm_sns.policies.matching.parameters import MatchingParameters

    if config is None:
        return MatchingParameters(), {}
    from slurm_sns.config import load

    configuration = load(config)
    shares = configuration.matching.shares
    # "slurm" are the shares of Slurm's associations, which a simulation cannot ask: all projects alike.
    return configuration.matching_parameters(), {} if isinstance(shares, str) else shares


def _chosen(parameters: "MatchingParameters", policy: str, portfolio: str | None) -> "MatchingParameters":
    """The parameters of max-jobs, or of max-jobs with one heuristic alone."""
    from slurm_sns.policies.matching.heuristics import HEURISTICS

    if policy in {MAX_JOBS, COMBINED}:
        return parameters if portfolio is None else replace(parameters, portfolio=_names(portfolio))
    if policy not in HEURISTICS and policy not in SPREADING:
        raise BadInput(f"--policy is '{policy}'; valid: {', '.join([*HEURISTICS, MAX_JOBS, *SPREADING])}")
    if portfolio is not None:
        raise BadInput(f"--portfolio goes with --policy {MAX_JOBS} and {COMBINED}, not with {policy}")
    if policy in SPREADING:
        return parameters
    return replace(parameters, portfolio=(policy,), default_heuristic=None)


def _limited(
    parameters: "MatchingParameters", policy: str, queue_depth: int | None, reservations: int | None
) -> "MatchingParameters":
    """The parameters with the limits of a cycle that were given."""
    if queue_depth is not None:
        parameters = replace(parameters, queue_depth=queue_depth)
    if reservations is None:
        return parameters
    if policy in SPREADING and policy != COMBINED:
        raise BadInput(f"--reservations goes with matching and --policy {COMBINED}; {policy} withholds nothing")
    return replace(parameters, reservations=reservations)


def _names(portfolio: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in portfolio.split(","))


@contextmanager
def _progress(jobs: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error, when that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _started: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("jobs started", total=jobs)
        yield lambda started: bar.update(task, completed=started)


def _print_table(summary: dict[str, Any]) -> None:
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
    table.add_row("mean slowdown", amount("mean_slowdown"))
    table.add_row("max bounded stretch", amount("max_bounded_stretch"))
    table.add_row("mean queue length", amount("mean_queue_length"))
    table.add_row(
        "utilisation", f"cores {utilisation('utilisation_cores')}, memory {utilisation('utilisation_memory')}"
    )
    table.add_row("load", f"cores {percent(summary['load_cores'])}, memory {percent(summary['load_memory'])}")
    if len(summary["portfolio"]) > 1:
        cycles = max(summary["cycles_with_waiting"], 1)
        for member, count in summary["wins"].items():
            table.add_row(
                f"wins {member}", f"{100 * count / cycles:.1f} % of {summary['cycles_with_waiting']:,} cycles"
            )
    table.add_row("time", f"read {summary['read_s']:.1f} s, replay {summary['wall_s']:.1f} s")
    table.add_row("", f"{summary['jobs_per_s']:,.0f} jobs/s, {summary['peak_rss_mb']:,.0f} MB")
    Console(file=sys.stdout).print(table)
