"""The table of commands. A command is imported when it runs, and all of them for the help of `sns` itself."""

from collections.abc import Iterable
from importlib import import_module
from typing import Any, NamedTuple

import typer

from slurm_sns import __version__

_HELP = "Place Slurm jobs by Max-Jobs matching. The same decisions run live and on traces."

_ASK = "Ask the running scheduler"
_RUN = "Run on the controller"
_NODE = "Run on a node"
_OFFLINE = "Offline"
_LOGIN = "As any user on a login node"

# -h is squeue's: without the headings
_AS_SQUEUE = {"help_option_names": ["--help"]}
# sbatch's own options, among them -h
_AS_SBATCH = {"help_option_names": ["--help"], "ignore_unknown_options": True, "allow_interspersed_args": False}


class _Row(NamedTuple):
    """A command: its part of the help, the module below `cli`, what runs it there, and its settings for typer."""

    panel: str
    module: str
    name: str
    settings: dict[str, Any] | None = None


#: In the order of the help.
COMMANDS = {
    "status": _Row(_ASK, "live.asking", "status"),
    "queue": _Row(_ASK, "live.queue", "queue", _AS_SQUEUE),
    "top": _Row(_ASK, "live.top.command", "top", _AS_SQUEUE),
    "explain": _Row(_ASK, "live.asking", "explain"),
    "try": _Row(_ASK, "live.trying", "try_", _AS_SBATCH),
    "wait": _Row(_ASK, "live.wait", "wait"),
    "release": _Row(_ASK, "live.control", "release"),
    "seff": _Row(_LOGIN, "live.seff", "seff"),
    "observe": _Row(_LOGIN, "live.observe", "observe"),
    "scheduler": _Row(_RUN, "live.daemons", "scheduler"),
    "watchdog": _Row(_RUN, "live.daemons", "watchdog"),
    "exporter": _Row(_RUN, "live.exporter", "exporter"),
    "web": _Row(_RUN, "live.web", "web"),
    "draft": _Row(_RUN, "live.site_files", "draft"),
    "check": _Row(_RUN, "live.checking", "check"),
    "render": _Row(_RUN, "live.site_files", "render"),
    "disable": _Row(_RUN, "live.control", "disable"),
    "enable": _Row(_RUN, "live.control", "enable"),
    "sources": _Row(_RUN, "live.site_files", "sources"),
    "policies": _Row(_OFFLINE, "policies", "policies"),
    "report": _Row(_OFFLINE, "offline.report", "report"),
    "coverage": _Row(_OFFLINE, "offline.coverage", "coverage"),
    "simulate": _Row(_OFFLINE, "offline.simulate", "simulate"),
    "pseudonyms": _Row(_OFFLINE, "offline.pseudonyms", "pseudonyms"),
    "reproduce": _Row(_OFFLINE, "offline.reproduce", "reproduce"),
    "workload": _Row(_OFFLINE, "offline.workload", "workload"),
    "agent": _Row(_NODE, "live.agent", "agent"),
    # These have commands of their own.
    "key": _Row(_RUN, "live.key", "app"),
    "profile": _Row(_RUN, "live.profile", "app"),
    "node": _Row(_NODE, "live.node", "app"),
}


def app(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """`sns` with these commands, which are imported."""
    made = typer.Typer(
        name="sns",
        help=_HELP,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback(help=_HELP)(_options)
    for name in names:
        row = COMMANDS[name]
        command = getattr(import_module(f"slurm_sns.cli.{row.module}"), row.name)
        if isinstance(command, typer.Typer):
            made.add_typer(command, name=name, rich_help_panel=row.panel)
        else:
            made.command(name, rich_help_panel=row.panel, context_settings=row.settings)(command)
    return made


def app_for(words: list[str]) -> typer.Typer:
    """`sns` for these words: with the command that they begin with, else with all."""
    return app([words[0]] if words and words[0] in COMMANDS else COMMANDS)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"sns {__version__}")
        raise typer.Exit


def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Options of `sns` itself."""
