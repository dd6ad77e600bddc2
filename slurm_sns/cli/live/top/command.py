"""`sns top`: the options, and what the terminal application is given to ask and to act with."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slurm_sns.cli.installations import TOP, needs
from slurm_sns.cli.live.queue import (
    Accounts,
    Format,
    Jobs,
    Me,
    NoHeader,
    Partitions,
    Sort,
    States,
    Users,
    with_me,
)
from slurm_sns.cli.options import DEFAULT_CONFIG, Config
from slurm_sns.errors import BadInput
from slurm_sns.log import printable

if TYPE_CHECKING:
    from slurm_sns.cli.live.top.job_acts import Doors

#: Terminals without colours or without characters beyond ASCII; Linux' console has both.
_PLAIN = ("vt", "ansi", "xterm-mono")


def top(
    *,
    users: Users = None,
    me: Me = False,
    accounts: Accounts = None,
    partitions: Partitions = None,
    states: States = None,
    jobs: Jobs = None,
    sort: Sort = None,
    form: Format = None,
    noheader: NoHeader = False,
    ascii_only: Annotated[
        bool, typer.Option("--ascii", help="Draw nodes with ASCII characters alone, as on a vt100.")
    ] = False,
    config: Config = DEFAULT_CONFIG,
) -> None:
    """The queue and the nodes on a terminal, kept up to date; explain a job, release it, or try it with less.

    Enter explains the job of the cursor, n shows the nodes, / filters, ? lists all keys. Before anything is changed you
    are asked. You see your own jobs with their names, root and SlurmUser see all.

    -u -A -p -t -j --me -S -o -h choose, sort and show jobs as in `sns queue`.
    """
    needs("sns top", TOP)
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM", "dumb") == "dumb":
        raise BadInput("sns top needs a terminal that can move its cursor; sns queue and sns status print to anything")
    is_plain = os.environ["TERM"].startswith(_PLAIN)
    if is_plain:
        os.environ.setdefault("NO_COLOR", "1")  # Textual reads it

    from slurm_sns.cli.live.squeue_options import JobFilter, in_order
    from slurm_sns.cli.live.top.app import ClusterTop
    from slurm_sns.cli.live.top.queue_lines import ColumnLines, FormatLines, JobChoice

    chosen = JobFilter(with_me(users) if me else users, accounts, partitions, states, jobs)
    in_order(chosen.of(()), sort)  # a wrong list is told before anybody is asked
    lines = ColumnLines(heading=not noheader) if form is None else FormatLines(form, heading=not noheader)
    is_ascii = ascii_only or is_plain or (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    application = ClusterTop(doors(config), JobChoice(chosen, sort), lines, ascii_only=is_ascii)
    application.run()
    for outcome in application.outcomes():
        print(printable(outcome))


def doors(config: Path) -> "Doors":
    """How the application asks the scheduler of this configuration, and acts."""
    from slurm_sns.cli.live.asking import asker, place_in_queue
    from slurm_sns.cli.live.control import require_admin, switch
    from slurm_sns.cli.live.top.job_acts import Doors
    from slurm_sns.config import configuration
    from slurm_sns.slurm.api import run
    from slurm_sns.store.heartbeat import KillSwitchFile

    asker(config, {})  # a configuration that cannot be read is told before the screen is taken

    def ask(request: dict[str, Any]) -> Any:
        return asker(config, request)()

    def may_switch() -> bool:
        settings = configuration.load(config)
        require_admin(settings)
        return KillSwitchFile(settings.paths.kill_switch).is_on()

    return Doors(
        ask=ask,
        run=run,
        may_switch=may_switch,
        switch=lambda on: switch(config, on=on),
        order=place_in_queue,
    )
