"""`sns workload`: generate a trace, or convert a log, and write it with its nodes."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from slurm_sns.cli.installations import SIMULATE, needs
from slurm_sns.errors import BadInput

if TYPE_CHECKING:
    from slurm_sns.policies.placement.node_arrays import NodeArrays
    from slurm_sns.sim.trace import TraceArrays
    from slurm_sns.sim.traces.nodes_csv import TraceSite

NETBATCH, LUBLIN, HPC2N, IDCP = "netbatch", "lublin", "hpc2n", "idcp"
NAMES = ("netbatch-a", "netbatch-b", "netbatch-c", "netbatch-d", LUBLIN, HPC2N, IDCP)
#: The options that go with each kind of workload, besides --out and --nodes-out, and how its files of jobs are named.
OPTIONS = {
    NETBATCH: ("--scale", "--days", "--seed"),
    LUBLIN: ("--jobs", "--nodes", "--load", "--set", "--seed"),
    HPC2N: ("--log", "--week", "--no-memory-floor"),
    IDCP: ("--scale", "--days", "--seed", "--fortnight"),
}
SWF, CSV = (".swf", ".swf.gz"), (".csv", ".csv.gz")
ENDINGS = {NETBATCH: SWF, LUBLIN: CSV, HPC2N: CSV, IDCP: (*CSV, *SWF)}

DEFAULT_SCALE, DEFAULT_SEED = 0.05, 1
#: More jobs than any of our traces has, and a load far above what a queue could bear.
MOST_JOBS, MOST_LOAD = 10_000_000, 100
#: The time of the paper's figure 2, 100,000 minutes; figure 3 shows about a year.
IDCP_DAYS, IDCP_MOST_DAYS = 70, 366


class Workload(NamedTuple):
    """The text of the jobs in pieces, and the nodes."""

    pieces: Iterable[str]
    nodes: "NodeArrays | TraceSite"


def workload(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"{', '.join(NAMES[:-1])} or {NAMES[-1]}.")],
    *,
    scale: Annotated[
        float,
        typer.Option(help="netbatch, idcp: fraction of the machines and jobs.", show_default=f"{DEFAULT_SCALE:g}"),
    ] = DEFAULT_SCALE,
    days: Annotated[
        float | None,
        typer.Option(
            help=f"Days to generate. netbatch: at most the month of 30. idcp: at most {IDCP_MOST_DAYS}.",
            show_default=f"30 or {IDCP_DAYS}",
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, max=MOST_JOBS, help="lublin: number of jobs.", show_default="1000")
    ] = None,
    nodes: Annotated[
        int | None, typer.Option(help="lublin: nodes of the machine, a power of two from 32.", show_default="128")
    ] = None,
    load: Annotated[
        float | None,
        typer.Option(
            help="lublin: offered load, sum(run * tasks) / (nodes * last submit), to which gaps are scaled.",
            show_default="the model's own gaps",
        ),
    ] = None,
    job_set: Annotated[
        str | None,
        typer.Option(
            "--set",
            help="lublin: batch, interactive, paper (both), or combined (all jobs as one stream).",
            show_default="paper",
        ),
    ] = None,
    log: Annotated[Path | None, typer.Option(help="hpc2n: the log, HPC2N-2002-2.2-cln.swf.gz of the archive.")] = None,
    week: Annotated[
        int | None, typer.Option(help="hpc2n: one week of the log's clock, from 1.", show_default="the whole log")
    ] = None,
    no_memory_floor: Annotated[
        bool, typer.Option("--no-memory-floor", help="hpc2n: memory needs below 10 % stay as recorded.")
    ] = False,
    fortnight: Annotated[
        bool,
        typer.Option(
            "--fortnight", help="idcp: 7 days of low priority as a warm-up, then two weeks with strong bursts."
        ),
    ] = False,
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            help="netbatch, lublin, idcp: seed of the jobs; it does not change the machines.",
            show_default=f"{DEFAULT_SEED}",
        ),
    ] = DEFAULT_SEED,
    out: Annotated[
        Path | None,
        typer.Option(
            help="FILE.swf (netbatch), FILE.csv (lublin, hpc2n) or either (idcp), also with .gz.",
            show_default="standard output",
        ),
    ] = None,
    nodes_out: Annotated[Path | None, typer.Option(help="FILE.csv to write the nodes to.")] = None,
) -> None:
    """Generate the jobs of a published workload, or convert a log, for `sns simulate`.

    netbatch-a to netbatch-d: as SWF, like the four NetBatch pools of the Max-Jobs paper.

    lublin: the Lublin-Feitelson model; hpc2n: the log HPC2N. Both are workloads of the paper on fractional sharing.

    These two are CSV, with the CPU need and the memory need of a task as fractions of a node.

    idcp: like Intel's platform in the paper on rescheduling, 20 pools with bursts of high-priority jobs, calibrated
    against the paper's results without restarts. CSV, or SWF, which cannot carry the pools that a job is allowed.
    """
    needs("sns workload", SIMULATE)
    if name not in NAMES:
        raise BadInput(f"workload '{name}' is unknown; valid: {', '.join(NAMES)}")
    kind = name.partition("-")[0]
    _require_taken(name, kind, context)
    _require_writable(kind, out, nodes_out)
    if kind == LUBLIN:
        made = _lublin(jobs=jobs, nodes=nodes, load=load, job_set=job_set, seed=seed)
    elif kind == HPC2N:
        made = _hpc2n(log, week, memory_floor=not no_memory_floor)
    elif kind == IDCP:
        made = _idcp(scale=scale, days=days, fortnight=fortnight, seed=seed, out=out)
    else:
        made = _netbatch(name, scale=scale, days=days, seed=seed)
    from slurm_sns.sim.workloads.write import write_nodes, write_pieces

    if nodes_out is not None:
        write_nodes(nodes_out, made.nodes)
    if out is None:
        sys.stdout.writelines(made.pieces)
    else:
        write_pieces(out, made.pieces)


def _netbatch(name: str, *, scale: float, days: float | None, seed: int) -> Workload:
    from slurm_sns.sim.workloads.netbatch import generate
    from slurm_sns.sim.workloads.netbatch_pools import DAYS, POOLS
    from slurm_sns.sim.workloads.write import swf_lines

    days = DAYS if days is None else days
    if not 0 < days <= DAYS:
        raise BadInput(f"--days is {days}; valid: more than 0, at most {DAYS}")
    pool = POOLS[name.removeprefix(f"{NETBATCH}-").upper()]
    nodes = pool.nodes(scale)
    notes = (
        f"generated by sns workload {name} --scale {scale:g} --days {days:g} --seed {seed}; no real log",
        f"{pool.jobs_at(scale, days)} jobs for {len(nodes.names)} nodes of {nodes.total.cores} cores",
    )
    pieces = swf_lines(generate(pool, scale=scale, seed=seed, days=days), notes)
    return Workload(pieces, nodes)


def _lublin(*, jobs: int | None, nodes: int | None, load: float | None, job_set: str | None, seed: int) -> Workload:
    import numpy as np

    from slurm_sns.sim.workloads import dfrs_synthetic
    from slurm_sns.sim.workloads.lublin import PAPER_SET, SETS, lublin_jobs

    if job_set not in (None, *SETS):
        raise BadInput(f"--set is '{job_set}'; valid: {', '.join(SETS)}")
    if load is not None and not 0 < load <= MOST_LOAD:
        raise BadInput(f"--load is {load:g}; valid: more than 0, at most {MOST_LOAD}")
    nodes = dfrs_synthetic.PAPER_NODES if nodes is None else nodes
    rng = np.random.default_rng(seed)
    drawn = lublin_jobs(SETS[job_set or PAPER_SET], jobs or dfrs_synthetic.PAPER_JOBS, nodes, rng)
    trace = dfrs_synthetic.annotate(drawn, rng)
    if load is not None:
        trace = dfrs_synthetic.scaled(trace, nodes, load)
    return _fluid(trace, nodes, dfrs_synthetic.NODE_CORES, dfrs_synthetic.NODE_GB)


def _hpc2n(log: Path | None, week: int | None, *, memory_floor: bool) -> Workload:
    if log is None:
        raise BadInput(
            f"{HPC2N} needs --log; valid: the file HPC2N-2002-2.2-cln.swf.gz of the Parallel Workloads Archive"
        )
    from slurm_sns.sim.traces.files import TraceFile
    from slurm_sns.sim.workloads import hpc2n

    trace = hpc2n.read_hpc2n(TraceFile.of(str(log)), memory_floor=memory_floor)
    if week is not None:
        weeks = hpc2n.number_of_weeks(trace)
        if not 1 <= week <= weeks:
            raise BadInput(f"--week is {week}; valid: 1 to {weeks}")
        trace = hpc2n.week(trace, week)
        if not len(trace):
            raise BadInput(f"--week is {week}, in which no job is submitted; valid: another week")
    return _fluid(trace, hpc2n.NODES, hpc2n.NODE_PROCESSORS, hpc2n.NODE_GB)


def _idcp(*, scale: float, days: float | None, fortnight: bool, seed: int, out: Path | None) -> Workload:
    from slurm_sns.sim.workloads.idcp import burst_fortnight, idcp
    from slurm_sns.sim.workloads.write import pool_lines, pool_swf_lines

    if fortnight and days is not None:
        raise BadInput("--days does not go with --fortnight; valid: one of them")
    days = IDCP_DAYS if days is None else days
    if not 0 < days <= IDCP_MOST_DAYS:
        raise BadInput(f"--days is {days:g}; valid: more than 0, at most {IDCP_MOST_DAYS}")
    site, trace = burst_fortnight(scale, seed)[:2] if fortnight else idcp(scale, days, seed)
    if out is None or out.name.endswith(CSV):
        return Workload(pool_lines(site, trace), site)
    period = "--fortnight" if fortnight else f"--days {days:g}"
    note = f"generated by sns workload {IDCP} --scale {scale:g} {period} --seed {seed}; no real log"
    return Workload(pool_swf_lines(site, trace, [note]), site)


def _fluid(trace: "TraceArrays", count: int, cores: int, gb: int) -> Workload:
    """These jobs, on nodes that are all alike, with the names that simulations of fractions of a node give them."""
    from slurm_sns.model import Resources
    from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts
    from slurm_sns.sim.traces.fluid_trace import whole_nodes
    from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB
    from slurm_sns.sim.workloads.write import fluid_lines

    nodes = NodeArrays(whole_nodes(count).names, amounts([Resources(cores, gb * MIB_PER_GB)] * count))
    return Workload(fluid_lines(trace), nodes)


def _require_taken(name: str, kind: str, context: typer.Context) -> None:
    """Refuse an option on the command line that does not go with this workload."""
    valid = (*OPTIONS[kind], "--out", "--nodes-out")
    for parameter in context.command.params[1:]:  # without NAME
        source, option = context.get_parameter_source(str(parameter.name)), parameter.opts[0]
        if source is not None and source.name == "COMMANDLINE" and option not in valid:
            raise BadInput(f"{option} does not go with {name}; valid: {', '.join(valid)}")


def _require_writable(kind: str, out: Path | None, nodes_out: Path | None) -> None:
    """Refuse a file with another ending or in a directory that is missing, before anything is generated."""
    if out is not None and not out.name.endswith(ENDINGS[kind]):
        raise BadInput(f"--out is {out}; valid: a name that ends in {' or '.join(ENDINGS[kind])}")
    for path in (out, nodes_out):
        if path is not None and not path.absolute().parent.is_dir():
            raise BadInput(f"{path}: {path.absolute().parent} is not a directory; valid: a directory that exists")
