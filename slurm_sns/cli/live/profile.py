"""`sns profile`: the profiles of programs in the store or in a file, or those that the running scheduler has loaded.

Every user may list, show, plot and export them. Only SlurmUser, who owns the store, may import (see `profile_source`).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from slurm_sns.cli import options
from slurm_sns.cli.installations import SIMULATE, needs
from slurm_sns.cli.live import profile_source
from slurm_sns.errors import BadInput, SnsError
from slurm_sns.log import printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from slurm_sns.cli.json_types import ImportedJson, ProfiledRun, ProfileJson, RunDemand
    from slurm_sns.policies.profile import Program, Run
    from slurm_sns.scheduler.answers.answer_types import ProgramSummary

_HELP = "The programs' profiles: SlurmUser imports them, every user may list, show, plot and export them."

app = typer.Typer(no_args_is_help=True, help=_HELP)

FromFile = Annotated[
    Path | None,
    typer.Option("--file", help="Read this YAML file instead of what the scheduler has.", show_default=False),
]
Name = Annotated[str, typer.Argument(metavar="PROGRAM", help="The program's name.")]
Alpha = Annotated[float, typer.Option("--alpha", help="The share of its best performance that a job must keep.")]
#: What the scheduler tells of the learning of one (program, processes).
LearntAnswer = Mapping[str, Any]


@app.command("list")
def list_programs(
    file: FromFile = None, config: options.Config = options.DEFAULT_CONFIG, as_json: options.AsJson = False
) -> None:
    """List the programs that have a profile, with their classes.

    SlurmUser reads the store; anybody else asks the running scheduler.
    """
    from slurm_sns.cli.live.terminal import new_table

    summaries = profile_source.source(file, config).summaries()
    if as_json:
        print(json.dumps(summaries, indent=2))
        return
    more = ("learning",) if any(each.get("learnt") for each in summaries) else ()
    table = new_table("program", "processes", "class", "best scale", "short of", "max scale", *more, pad_edge=True)
    for each in summaries:
        limit = "" if each["max_scale"] is None else str(each["max_scale"])
        learnt = {int(processes): of for processes, of in each.get("learnt", {}).items()}
        for found in each["classes"]:
            row = (str(found["processes"]), found["class"], str(found["ideal_scale"]), found["bottleneck"] or "", limit)
            state = learning_state(learnt.pop(found["processes"], None))
            table.add_row(each["program"], *row, *((state,) if more else ()))
        for processes, of in sorted(learnt.items()):
            table.add_row(each["program"], str(processes), "", "", "", limit, learning_state(of))
    _print(table)


@app.command()
def show(
    program: Name,
    alpha: Alpha = 0.9,
    file: FromFile = None,
    config: options.Config = options.DEFAULT_CONFIG,
    as_json: options.AsJson = False,
) -> None:
    """Show a program: its class, run times, and what it would ask for at a given alpha."""
    from slurm_sns.scheduler.answers.profiles import summary

    _require_alpha(alpha)
    chosen, learnt = profile_source.source(file, config).described(program)
    factors = profile_source.factors(file, config)
    if as_json:
        nothing: ProgramSummary = {"program": program, "source": "", "max_scale": None, "classes": []}
        known = nothing if chosen is None else summary(chosen, factors)
        runs = [] if chosen is None else [_run_summary(run, alpha) for run in chosen.runs]
        told: ProfileJson = {**known, "alpha": alpha, "runs": runs}
        if learnt:
            told["learnt"] = learnt
        print(json.dumps(told, indent=2))
        return
    if chosen is not None:
        _show_profile(chosen, alpha, factors)
    for processes, of in sorted(learnt.items()):
        for part in learnt_parts(program, processes, of):
            _print(part)


def _show_profile(chosen: "Program", alpha: float, factors: tuple[float, ...]) -> None:
    from slurm_sns.cli.live.terminal import new_table
    from slurm_sns.scheduler.answers.profiles import class_of

    print(f"{chosen.name}: {printable(chosen.source) or 'no source given'}")
    for processes in chosen.process_counts:
        found = class_of(chosen, processes, factors)
        best = f", best at scale {found.ideal_scale}, short of {found.bottleneck}" if found.bottleneck else ""
        print(f"{processes} processes: {found.kind}{best}")
    demand = ("ways", "IPC kept", "GB/s")
    table = new_table("processes", "scale", "time s", *demand, "time is", "IPC is", "GB/s are", pad_edge=True)
    for run in chosen.runs:
        table.add_row(*_run_row(run, alpha))
    _print(table)
    print(f"ways: the fewest that keep {alpha:g} of the IPC; GB/s: with these ways; both per node.")
    print("The last three: whether time, IPC and GB/s are printed in the source, measured or assumed.")


@app.command("import")
def import_file(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A YAML file of profiles.")],
    config: options.Config = options.DEFAULT_CONFIG,
    as_json: options.AsJson = False,
) -> None:
    """Add the programs of FILE to the store, or replace those of the same names: all of them or none."""
    from slurm_sns.config.configuration import load
    from slurm_sns.config.profiles_yaml import read_profiles

    configuration = load(config)
    most_ways = max(nodes.llc_ways for nodes in configuration.nodes) or None
    programs = read_profiles(file, most_ways)
    stored = profile_source.store(configuration)
    known = stored.load()
    stored.replace(programs)
    replaced = [program.name for program in programs if program.name in known]
    added = [program.name for program in programs if program.name not in known]
    if as_json:
        told: ImportedJson = {"added": added, "replaced": replaced}
        print(json.dumps(told))
    else:
        print(f"{file}: {len(added)} programs added, {len(replaced)} replaced")


@app.command()
def export(
    programs: Annotated[list[str] | None, typer.Argument(metavar="[PROGRAM]...", help="Names; none: all.")] = None,
    out: Annotated[Path | None, typer.Option(help="A file; else standard output.")] = None,
    config: options.Config = options.DEFAULT_CONFIG,
) -> None:
    """Write profiles as YAML, which `sns profile import` reads."""
    from slurm_sns.config.profiles_yaml import profiles_text

    source = profile_source.source(None, config)
    names = programs or [each["program"] for each in source.summaries()]
    if not programs:  # those that are only being explored have nothing to export
        names = [name for name in names if source.described(name).program is not None]
    chosen = [profile_source.program_of(source, name) for name in dict.fromkeys(names)]
    if not chosen:
        raise BadInput("the store holds no profile; import a file first")
    text = profiles_text(chosen)
    if out is None:
        print(text, end="")
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise SnsError(f"{out} cannot be written: {problem.strerror}") from None


@app.command()
def plot(
    program: Name,
    out: Annotated[Path, typer.Option(help="The figure, a .png or .svg file.")],
    alpha: Alpha = 0.9,
    file: FromFile = None,
    config: options.Config = options.DEFAULT_CONFIG,
) -> None:
    """Draw a program's curves, with the ways and GB/s that it would ask for at a given alpha."""
    needs("sns profile plot", SIMULATE)
    from slurm_sns.cli.live import profile_plot

    _require_alpha(alpha)
    profile_plot.require_suffix(out)
    profile_plot.plot(profile_source.program_of(profile_source.source(file, config), program), out, alpha)


def _require_alpha(alpha: float) -> None:
    if not 0 < alpha <= 1:
        raise BadInput(f"--alpha is {alpha}; valid: above 0, at most 1")


def _demand(run: "Run", alpha: float) -> tuple[int | None, float | None, float | None]:
    """The ways, the kept share of the IPC and the GB/s that a job asks for at that alpha; None if no ways suffice."""
    ways = run.fewest_ways(alpha, run.ways[-1])
    return (None, None, None) if ways is None else (ways, run.kept_at(ways), run.bandwidth_at(ways))


def _run_summary(run: "Run", alpha: float) -> "ProfiledRun":
    from slurm_sns.policies.spread_n_share.profile_reading import run_data

    ways, kept, bandwidth = _demand(run, alpha)
    demand: RunDemand = {"ways": ways, "ipc_kept": kept, "bandwidth_gbps": bandwidth}
    return cast("ProfiledRun", {**run_data(run), "demand": demand})


def _run_row(run: "Run", alpha: float) -> list[str]:
    ways, kept, bandwidth = _demand(run, alpha)
    numbers = [str(run.processes), str(run.scale), f"{run.time_s:g}"]
    if ways is None or kept is None or bandwidth is None:
        demand = ["-", "-", "-"]
    else:
        demand = [str(ways), f"{kept:.4f}", f"{bandwidth:.2f}"]
    where = run.provenance
    return [*numbers, *demand, where.time_s, where.ipc, where.bandwidth_gbps]


def learning_state(of: LearntAnswer | None) -> str:
    """The state of learning in a few words; empty where nothing is learnt."""
    if of is None:
        return ""
    found = ["measured" if of["serves"] == "measured" else "imported" if of["serves"] else "no profile yet"]
    if of["re_measurement"] is not None:
        found.append("is measured again")
    elif not of["is_explored"] and of["serves"] != "imported":
        found.append("exploration goes on")
    if of["exploring"] is not None:
        found.append(f"explores scale {of['exploring']['scale']} now")
    return ", ".join(found)


def learnt_parts(program: str, processes: int, of: LearntAnswer) -> "Iterator[RenderableType]":
    """What is learnt of one (program, processes)."""
    yield f"{program}, {processes} processes: {_serving(of)}"
    yield from _notes(of)
    if of["measured"]:
        yield _measured(of["measured"])
    if of["re_measurement"]:
        yield "measured again so far:"
        yield _measured(of["re_measurement"])
    if of["measured"] or of["re_measurement"]:
        yield "each number: mean of the runs, +- their standard deviation, (how many runs)"


def _serving(of: LearntAnswer) -> str:
    if of["serves"] == "measured":
        return "jobs run by what is measured here"
    if of["serves"] == "imported":
        return "jobs run by the imported profile"
    return "no profile yet"


def _notes(of: LearntAnswer) -> Iterator[str]:
    exploring = of["exploring"]
    if exploring is not None:
        who = "a job" if exploring["job_id"] is None else f"job {exploring['job_id']}"
        how = "its ways are changed while it runs" if exploring["samples"] else "it is timed"
        yield f"  {who} explores scale {exploring['scale']} now: {how}"
    if of["re_measurement"] is not None:
        yield "  it is measured again; the profile of before serves meanwhile"
    elif of["is_explored"]:
        yield "  all scales are explored"
    if of["strange_runs"]:
        yield f"  the last {of['strange_runs']} runs differ from the profile"
    for scale, runs in of["given_up"].items():
        yield f"  the last {runs} exploring runs at scale {scale} gave no measurement"


def _measured(scales: Sequence[Mapping[str, Any]]) -> "Table":
    from slurm_sns.cli.live.terminal import new_table

    shown = new_table("scale", "time s", "ways", "IPC", "GB/s", pad_edge=True)
    for each in scales:
        rows = [(str(point["ways"]), _mean(point["ipc"]), _mean(point["bandwidth_gbps"])) for point in each["points"]]
        head = (str(each["scale"]), _mean(each["time_s"]))
        for place, row in enumerate(rows or [("", "", "")]):
            shown.add_row(*(head if place == 0 else ("", "")), *row)
    return shown


def _mean(found: Mapping[str, float] | None) -> str:
    if found is None:
        return "-"
    spread = f" +- {found['spread']:.2g}" if found["count"] > 1 else ""
    return f"{found['mean']:.4g}{spread} ({found['count']:.0f})"


def _print(part: "RenderableType") -> None:
    from rich.console import Console

    Console().print(part)
