"""`sns queue`: the jobs that slurm_sns manages, those that its options choose, and what they wait for."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slurm_sns.cli.live.asking import SecondsOption, Watch, asker
from slurm_sns.cli.options import DEFAULT_CONFIG, AsJson, Config
from slurm_sns.errors import BadInput

if TYPE_CHECKING:
    from slurm_sns.cli.live.watch import Look


# The options of squeue, which `sns top` has, too.
Users = Annotated[str | None, typer.Option("--user", "-u", metavar="LIST", help="Only these users' jobs.")]
Me = Annotated[bool, typer.Option("--me", help="Only your own jobs.")]
Accounts = Annotated[str | None, typer.Option("--account", "-A", metavar="LIST", help="Only jobs of these accounts.")]
Partitions = Annotated[
    str | None, typer.Option("--partition", "-p", metavar="LIST", help="Only jobs of these partitions.")
]
States = Annotated[
    str | None,
    typer.Option("--states", "-t", metavar="LIST", help="Only jobs in these states, as PD, RUNNING, held, all."),
]
Jobs = Annotated[
    str | None, typer.Option("--jobs", "-j", metavar="LIST", help="Only these jobs, arrays and tasks: 41,42_7.")
]
Sort = Annotated[
    str | None,
    typer.Option("--sort", "-S", metavar="LIST", help="By squeue's letters or columns: u,-V or user,-since."),
]
Format = Annotated[
    str | None, typer.Option("--format", "-o", metavar="FORMAT", help="squeue's fields, as '%.18i %j %R'.")
]
NoHeader = Annotated[bool, typer.Option("--noheader", "-h", help="Without the headings.")]


def queue(
    seconds: SecondsOption = None,
    *,
    watch: Watch = False,
    why: Annotated[bool, typer.Option("--why", help="How many of these jobs wait for what, the most first.")] = False,
    users: Users = None,
    me: Me = False,
    accounts: Accounts = None,
    partitions: Partitions = None,
    states: States = None,
    jobs: Jobs = None,
    sort: Sort = None,
    form: Format = None,
    noheader: NoHeader = False,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", metavar="N", min=1, help="Only the first N, in queue order.")
    ] = None,
    config: Config = DEFAULT_CONFIG,
    as_json: AsJson = False,
) -> None:
    """Your jobs that slurm_sns manages, in queue order; all jobs for root and SlurmUser.

    POS is the place in the queue; ! marks a job that has waited so long that capacity is withheld for it. SIZE is
    nodes x cores and memory of each. SINCE is how long it waits, or runs. WHY is what it waits for; in a pipe, and in
    `sns explain`, it is a sentence.

    -u -A -p -t -j --me -S -o -h are as in squeue; -u takes names only. -n and -w are not: they are --limit and --watch.
    """
    from slurm_sns.cli.live.squeue_options import JobFilter, in_order
    from slurm_sns.cli.live.waiting_words import groups
    from slurm_sns.cli.live.watch import show
    from slurm_sns.scheduler.answers.folded_arrays import with_folded_arrays

    _require_one_form(as_json=as_json, why=why, form=form, sort=sort, limit=limit)
    look = _look(why=why, form=form, limit=limit, heading=not noheader)
    chosen = JobFilter(with_me(users) if me else users, accounts, partitions, states, jobs)
    in_order(chosen.of(()), sort)  # a wrong list is told before anybody is asked
    ask = asker(config, {"command": "queue", **chosen.request()})

    def answer() -> Sequence[Any]:
        rows = chosen.of(ask())
        if why:
            return groups(with_folded_arrays(rows))
        return in_order(rows if as_json else with_folded_arrays(rows), sort)

    show((lambda: answer()[:limit]) if as_json else answer, look, seconds, watch=watch, as_json=as_json)


def _require_one_form(*, as_json: bool, why: bool, form: str | None, sort: str | None, limit: int | None) -> None:
    """Check that no option is given that another one would leave without effect."""
    others = {"--format": form is not None, "--sort": sort is not None, "--limit": limit is not None}
    wrong = [name for name, is_given in others.items() if is_given and (why or (as_json and name == "--format"))]
    if wrong:
        raise BadInput(f"{wrong[0]} goes without {'--why' if why else '--json'}")


def with_me(users: str | None) -> str:
    """The users and the caller."""
    import os
    import pwd

    try:
        own = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        raise BadInput(f"--me: user id {os.getuid()} has no name on this machine") from None
    return own if users is None else f"{users},{own}"


def _look(*, why: bool, form: str | None, limit: int | None, heading: bool) -> "Look":
    """How the answer is shown: as the histogram, by squeue's format, or as the table."""
    from rich.text import Text

    from slurm_sns.cli.live import queue_view, waiting_words
    from slurm_sns.cli.live.squeue_options import SqueueFormat
    from slurm_sns.cli.live.watch import Look

    if why:
        return Look(
            lambda counted, _, __: waiting_words.histogram(counted, heading=heading),
            lambda counted, _: waiting_words.histogram_lines(counted, heading=heading),
        )
    if form is not None:
        fields = SqueueFormat(form)

        def lines(rows: Sequence[Any], now_s: float) -> Iterator[str]:
            return fields.lines(rows[:limit], now_s, heading=heading)

        return Look(lambda rows, now_s, _: Text("\n".join(lines(rows, now_s))), lines)
    return Look(
        lambda rows, now_s, width: queue_view.table(
            rows[:limit], now_s, width, len(rows) - len(rows[:limit]), heading=heading
        ),
        lambda rows, now_s: queue_view.plain_lines(rows[:limit], now_s, heading=heading),
    )
