"""The table of commands. Heavy imports are inside the commands, so that they happen only when one runs."""

import typer

from slurm_sns import __version__
from slurm_sns.cli import policies
from slurm_sns.cli.live import (
    agent,
    asking,
    checking,
    control,
    daemons,
    exporter,
    key,
    node,
    observe,
    profile,
    queue,
    seff,
    site_files,
    trying,
    wait,
    web,
)
from slurm_sns.cli.live.top import command as top
from slurm_sns.cli.offline import coverage, pseudonyms, report, reproduce, simulate, workload

_HELP = "Place Slurm jobs by Max-Jobs matching. The same decisions run live and on traces."

app = typer.Typer(
    name="sns",
    help=_HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"sns {__version__}")
        raise typer.Exit


@app.callback(help=_HELP)
def options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Options of `sns` itself."""


_ASK = "Ask the running scheduler"
_RUN = "Run on the controller"
_NODE = "Run on a node"
_OFFLINE = "Offline"
_LOGIN = "As any user on a login node"

app.command("status", rich_help_panel=_ASK)(asking.status)
# -h is squeue's: without the headings
app.command("queue", rich_help_panel=_ASK, context_settings={"help_option_names": ["--help"]})(queue.queue)
app.command("top", rich_help_panel=_ASK, context_settings={"help_option_names": ["--help"]})(top.top)
app.command("explain", rich_help_panel=_ASK)(asking.explain)
# sbatch's own options, among them -h
_TRY = {"help_option_names": ["--help"], "ignore_unknown_options": True, "allow_interspersed_args": False}
app.command("try", rich_help_panel=_ASK, context_settings=_TRY)(trying.try_)
app.command("wait", rich_help_panel=_ASK)(wait.wait)
app.command("release", rich_help_panel=_ASK)(control.release)
app.command("seff", rich_help_panel=_LOGIN)(seff.seff)
app.command("observe", rich_help_panel=_LOGIN)(observe.observe)
app.command("scheduler", rich_help_panel=_RUN)(daemons.scheduler)
app.command("watchdog", rich_help_panel=_RUN)(daemons.watchdog)
app.command("exporter", rich_help_panel=_RUN)(exporter.exporter)
app.command("web", rich_help_panel=_RUN)(web.web)
app.command("draft", rich_help_panel=_RUN)(site_files.draft)
app.command("check", rich_help_panel=_RUN)(checking.check)
app.command("render", rich_help_panel=_RUN)(site_files.render)
app.command("disable", rich_help_panel=_RUN)(control.disable)
app.command("enable", rich_help_panel=_RUN)(control.enable)
app.command("sources", rich_help_panel=_RUN)(site_files.sources)
app.command("policies", rich_help_panel=_OFFLINE)(policies.policies)
app.command("report", rich_help_panel=_OFFLINE)(report.report)
app.command("coverage", rich_help_panel=_OFFLINE)(coverage.coverage)
app.command("simulate", rich_help_panel=_OFFLINE)(simulate.simulate)
app.command("pseudonyms", rich_help_panel=_OFFLINE)(pseudonyms.pseudonyms)
app.command("reproduce", rich_help_panel=_OFFLINE)(reproduce.reproduce)
app.command("workload", rich_help_panel=_OFFLINE)(workload.workload)
app.command("agent", rich_help_panel=_NODE)(agent.agent)
app.add_typer(key.app, name="key", rich_help_panel=_RUN)
app.add_typer(profile.app, name="profile", rich_help_panel=_RUN)
app.add_typer(node.app, name="node", rich_help_panel=_NODE)
