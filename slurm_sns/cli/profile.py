"""`sns profile`: the programs' profiles in the store, or in a file.

The store is the scheduler's: what opens it runs as SlurmUser, so that its files stay SlurmUser's.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slurm_sns.cli import options
from slurm_sns.errors import BadInput, SnsError

if TYPE_CHECKING:
    from rich.table import Table

    from slurm_sns.config import Config
    from slurm_sns.policies.sns.classify import Classification
    from slurm_sns.policies.sns.profile import Program, Run
    from slurm_sns.store.profiles import StoredProfiles

app = typer.Typer(no_args_is_help=True, help="The programs' profiles: list, show, import, export, plot.")

FromFile = Annotated[
    Path | None, typer.Option("--file", help="Read this YAML file instead of the store.", show_default=False)
]
Name = Annotated[str, typer.Argument(metavar="PROGRAM", help="The program's name.")]
Alpha = Annotated[float, typer.Option("--alpha", help="The share of its best performance that is to be kept.")]


@app.command("list")
def list_programs(
    file: FromFile = None, config: options.Config = options.DEFAULT_CONFIG, as_json: options.AsJson = False
) -> None:
    """List the programs with their classes."""
    programs = _programs(file, config)
    if as_json:
        print(json.dumps([_summary(program) for program in programs.values()], indent=2))
        return
    table = _table("program", "processes", "class", "best scale", "short of", "max scale")
    for program in programs.values():
        for processes in program.process_counts:
            found = _class(program, processes)
            limit = "" if program.max_scale is None else str(program.max_scale)
            row = (str(processes), str(found.kind), str(found.ideal_scale), found.bottleneck, limit)
            table.add_row(program.name, *row)
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
    _require_alpha(alpha)
    chosen = _one(_programs(file, config), program)
    if as_json:
        runs = [_run_summary(run, alpha) for run in chosen.runs]
        print(json.dumps({**_summary(chosen), "alpha": alpha, "runs": runs}, indent=2))
        return
    print(f"{chosen.name}: {chosen.source or 'no source given'}")
    for processes in chosen.process_counts:
        found = _class(chosen, processes)
        best = f", best at scale {found.ideal_scale}, short of {found.bottleneck}" if found.bottleneck else ""
        print(f"{processes} processes: {found.kind}{best}")
    table = _table(
        "processes", "scale", "time s", "shared s", "ways", "IPC kept", "GB/s", "time is", "IPC is", "GB/s are"
    )
    for run in chosen.runs:
        table.add_row(*_run_row(run, alpha))
    _print(table)
    print(f"ways: the fewest that keep {alpha:g} of the IPC; GB/s: with these ways; both per node.")
    print("shared s: the run time on shared nodes, whose clock is lower than that of half-empty ones.")
    print("known: where times, IPC and GB/s come from: p printed in the paper, m measured, a assumed.")


@app.command("import")
def import_file(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A YAML file of profiles.")],
    config: options.Config = options.DEFAULT_CONFIG,
    as_json: options.AsJson = False,
) -> None:
    """Put the programs of FILE into the store, in the place of those of the same names: all of them or none."""
    from slurm_sns.config import load
    from slurm_sns.config.profiles_yaml import read_profiles

    configuration = load(config)
    most_ways = max(nodes.llc_ways for nodes in configuration.nodes) or None
    programs = read_profiles(file, most_ways)
    stored = _store(configuration)
    known = stored.load()
    stored.replace(programs)
    replaced = [program.name for program in programs if program.name in known]
    added = [program.name for program in programs if program.name not in known]
    if as_json:
        print(json.dumps({"added": added, "replaced": replaced}))
    else:
        print(f"{file}: {len(added)} programs added, {len(replaced)} replaced")


@app.command()
def export(
    programs: Annotated[list[str] | None, typer.Argument(metavar="[PROGRAM]...", help="Names; none: all.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="A file; else standard output.")] = None,
    config: options.Config = options.DEFAULT_CONFIG,
) -> None:
    """Write programs of the store as YAML, which `sns profile import` reads."""
    from slurm_sns.config.profiles_yaml import profiles_text

    stored = _programs(None, config)
    chosen = [_one(stored, name) for name in dict.fromkeys(programs or stored)]
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
    out: Annotated[Path, typer.Option("--out", help="The figure, a .png or .svg file.")],
    alpha: Alpha = 0.9,
    file: FromFile = None,
    config: options.Config = options.DEFAULT_CONFIG,
) -> None:
    """Draw a program's curves, with the ways and GB/s that it would ask for at a given alpha."""
    from slurm_sns.cli import profile_plot

    _require_alpha(alpha)
    profile_plot.require_suffix(out)
    profile_plot.plot(_one(_programs(file, config), program), out, alpha)


def _programs(file: Path | None, config: Path) -> Mapping[str, "Program"]:
    """The programs of the file, else those of the configuration's store."""
    if file is not None:
        from slurm_sns.config.profiles_yaml import read_profiles

        return {program.name: program for program in read_profiles(file)}
    from slurm_sns.config import load

    return _store(load(config)).load()


def _store(configuration: "Config") -> "StoredProfiles":
    from slurm_sns.cli import wiring
    from slurm_sns.store.profiles import StoredProfiles
    from slurm_sns.store.schema import open_store

    wiring.require_slurm_user(configuration)
    wiring.make_directories(configuration)
    return StoredProfiles(open_store(configuration.database_url))


def _one(programs: Mapping[str, "Program"], name: str) -> "Program":
    if name not in programs:
        known = ", ".join(programs) or "none"
        raise BadInput(f"program '{name[:64]}' has no profile; there are: {known}")
    return programs[name]


def _require_alpha(alpha: float) -> None:
    if not 0 < alpha <= 1:
        raise BadInput(f"--alpha is {alpha}; valid: above 0, at most 1")


def _class(program: "Program", processes: int) -> "Classification":
    from slurm_sns.policies.sns.classify import classify
    from slurm_sns.policies.sns.parameters import SnsParameters

    return classify(program.at(processes), SnsParameters(), max_scale=program.max_scale)


def _summary(program: "Program") -> dict[str, Any]:
    classes = []
    for processes in program.process_counts:
        found = _class(program, processes)
        classes.append(
            {
                "processes": processes,
                "class": found.kind,
                "ideal_scale": found.ideal_scale,
                "bottleneck": found.bottleneck or None,
            }
        )
    return {"program": program.name, "source": program.source, "max_scale": program.max_scale, "classes": classes}


def _demand(run: "Run", alpha: float) -> tuple[int | None, float | None, float | None]:
    """Ways, the share of IPC kept and GB/s at that alpha."""
    ways = run.fewest_ways(alpha, run.ways[-1])
    return (None, None, None) if ways is None else (ways, run.kept_at(ways), run.bandwidth_at(ways))


def _run_summary(run: "Run", alpha: float) -> dict[str, Any]:
    from slurm_sns.policies.sns.classify import corrected_time_s
    from slurm_sns.policies.sns.parameters import SnsParameters
    from slurm_sns.policies.sns.profile_reading import run_data

    ways, kept, bandwidth = _demand(run, alpha)
    demand = {"ways": ways, "ipc_kept": kept, "bandwidth_gbps": bandwidth}
    return {**run_data(run), "corrected_time_s": corrected_time_s(run, SnsParameters()), "demand": demand}


def _run_row(run: "Run", alpha: float) -> list[str]:
    from slurm_sns.policies.sns.classify import corrected_time_s
    from slurm_sns.policies.sns.parameters import SnsParameters

    ways, kept, bandwidth = _demand(run, alpha)
    numbers = [str(run.processes), str(run.scale), f"{run.time_s:g}", f"{corrected_time_s(run, SnsParameters()):.2f}"]
    if ways is None or kept is None or bandwidth is None:
        demand = ["-", "-", "-"]
    else:
        demand = [str(ways), f"{kept:.4f}", f"{bandwidth:.2f}"]
    where = run.provenance
    return [*numbers, *demand, " ".join(each[0] for each in (where.time_s, where.ipc, where.bandwidth_gbps))]


def _table(*columns: str) -> "Table":
    from rich.table import Table

    table = Table(box=None)
    for column in columns:
        table.add_column(column)
    return table


def _print(table: "Table") -> None:
    from rich.console import Console

    Console(file=sys.stdout).print(table)
