"""`sns try OPTIONS... [SCRIPT]`: where a job would start if it were submitted now, with nothing submitted."""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slurm_sns.cli.live.asking import asker
from slurm_sns.cli.options import DEFAULT_CONFIG, AsJson, Config
from slurm_sns.errors import BadInput

if TYPE_CHECKING:
    from rich.console import RenderableType

#: Variables that sbatch reads between the script and the command line, with the options that they stand for.
VARIABLES = {
    "SBATCH_ACCOUNT": "account",
    "SBATCH_ARRAY_INX": "array",
    "SBATCH_CLUSTERS": "clusters",
    "SBATCH_CONSTRAINT": "constraint",
    "SBATCH_CORE_SPEC": "core-spec",
    "SBATCH_CPUS_PER_GPU": "cpus-per-gpu",
    "SBATCH_DISTRIBUTION": "distribution",
    "SBATCH_EXCLUSIVE": "exclusive",
    "SBATCH_GPUS": "gpus",
    "SBATCH_GPUS_PER_NODE": "gpus-per-node",
    "SBATCH_GPUS_PER_TASK": "gpus-per-task",
    "SBATCH_GRES": "gres",
    "SBATCH_HINT": "hint",
    "SBATCH_JOB_NAME": "job-name",
    "SBATCH_MEM_PER_CPU": "mem-per-cpu",
    "SBATCH_MEM_PER_GPU": "mem-per-gpu",
    "SBATCH_MEM_PER_NODE": "mem",
    "SBATCH_NETWORK": "network",
    "SBATCH_OVERCOMMIT": "overcommit",
    "SBATCH_PARTITION": "partition",
    "SBATCH_QOS": "qos",
    "SBATCH_REQ_SWITCH": "switches",
    "SBATCH_RESERVATION": "reservation",
    "SBATCH_SPREAD_JOB": "spread-job",
    "SBATCH_THREADS_PER_CORE": "threads-per-core",
    "SBATCH_THREAD_SPEC": "thread-spec",
    "SBATCH_TIMELIMIT": "time",
    "SBATCH_TRES_PER_TASK": "tres-per-task",
}
#: A script is read so far: what is longer is left to Slurm (submission.MOST_SCRIPT_BYTES).
MOST_READ_BYTES = 1 << 20
#: What the scheduler's socket takes, without the rest of the request.
MOST_OPTION_BYTES = 3800


def try_(
    context: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="SBATCH-OPTIONS... [SCRIPT]", help="As for sbatch: -n40 --mem=4G -t 2:00:00 job.sh."),
    ] = None,
    config: Config = DEFAULT_CONFIG,
    as_json: AsJson = False,
) -> None:
    """Where a job of yours would start if you submitted it now. Nothing is submitted.

    Takes the options of sbatch and a script with #SBATCH lines; the command line wins over the script. Says whether
    slurm_sns would manage the job, or why Slurm alone would; the ways to run it with their predicted slowdowns; where
    it would start now, or why it would wait, when it would start, and which change would start it now.

    The last cycle is planned again with the job. The next one may differ: nothing is promised.

    Write --config and --json first; what follows the script belongs to the script.
    """
    from slurm_sns.cli.live import terminal

    if words == ["-h"]:
        print(context.get_help())
        return
    answer = asker(config, request_of(words or [], os.environ))()
    if as_json:
        print(json.dumps(answer, indent=2))
        return
    for part in parts(answer):
        terminal.show(part)


def request_of(words: Sequence[str], environment: Mapping[str, str]) -> dict[str, Any]:
    """The question to the scheduler: the options that count, of script, environment and command line.

    Raises:
        BadInput: sbatch has no such option, the script cannot be read, or there is nothing to try.
    """
    from slurm_sns.coverage import sbatch_options

    told, rest = _options(words)
    request: dict[str, Any] = {"command": "try"}
    scripted: list[tuple[str, str]] = []
    if rest:
        text = _script(rest[0])
        scripted, _ = _options(sbatch_options.directives(text.decode(errors="replace")), "in the script: ")
        request["script_bytes"] = len(text)
        request["script_deadline"] = any(name == "deadline" for name, _ in scripted)
    elif not told:
        raise BadInput("nothing to try; valid: options of sbatch, as -n40 --mem=4G, a script, or both")
    set_here = [(option, environment[name]) for name, option in VARIABLES.items() if environment.get(name)]
    options: dict[str, str] = {}
    for name, value in (*scripted, *_with_values(set_here), *told):
        options.pop(name, None)  # the last one counts, also between options that replace each other
        if name in sbatch_options.PLACING:
            options[name] = value
    if len(json.dumps(options)) > MOST_OPTION_BYTES:
        longest = max(options, key=lambda name: len(options[name]))
        raise BadInput(f"--{longest} is too long to be tried; valid: {MOST_OPTION_BYTES} bytes of options in all")
    return {**request, "options": options}


def _options(words: Sequence[str], where: str = "") -> tuple[list[tuple[str, str]], list[str]]:
    from slurm_sns.coverage.sbatch_options import options

    try:
        return options(words)
    except BadInput as problem:
        late = any(word.startswith(("--config", "--json")) for word in words)
        more = "; --config and --json come first" if late else ""
        raise BadInput(f"{where}{problem}; valid: the options of sbatch (man sbatch), and --sns-...{more}") from None


def _with_values(set_here: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The options of the environment by the names that they have with a value."""
    for name, value in set_here:
        yield (f"{name}-of", value) if name == "exclusive" else (name, value)


def _script(name: str) -> bytes:
    try:
        with Path(name).open("rb") as script:
            text = script.read(MOST_READ_BYTES)
    except (OSError, ValueError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else problem
        raise BadInput(f"script {name!r} cannot be read: {why}; valid: a batch script, as for sbatch") from None
    if not text.startswith(b"#!"):
        raise BadInput(f"script {name!r}: its first line is not #!; valid: a batch script, as for sbatch")
    return text


def parts(answer: Mapping[str, Any]) -> "Iterator[RenderableType]":
    """The answer in paragraphs and a table."""
    from slurm_sns.cli.live.start_words import sentence
    from slurm_sns.cli.live.terminal import plain, starting_changes
    from slurm_sns.node_lists import folded

    yield f"[bold]{_judged(answer['judgement'])}[/]" + (f": {plain(answer['why'])}" if answer["why"] else "")
    if answer["judgement"] == "managed":
        nodes = answer["nodes"]
        yield f"starts now on {folded(nodes)}" if nodes else f"waits: {plain(answer['reason'])}"
        if when := sentence(answer, time.time()):
            yield f"  {plain(when)}"
        if answer["position"] is not None:
            yield f"  place {answer['position']} of {answer['waiting']} in the queue"
    if answer["alternatives"]:
        yield _table(answer["alternatives"])
    yield from starting_changes(answer["would_start"])
    if answer["assumed"]:
        yield f"assumed: {plain('; '.join(answer['assumed']))}"
    if answer["judgement"] == "managed":
        yield "As of the last cycle; the next one may differ. Nothing was submitted."


def _judged(judgement: str) -> str:
    return {
        "managed": "slurm_sns would manage this job",
        "passes through": "slurm_sns would leave this job to Slurm",
        "refused": "this job would be refused",
    }[judgement]


def _table(alternatives: Sequence[Mapping[str, Any]]) -> "RenderableType":
    from slurm_sns.cli.live.terminal import new_table, plain

    shown = new_table("SCALE", "NODES", "CORES", "MEMORY", "WAYS", "SLOWDOWN", "NODES THAT FIT", "", right=_NUMBERS)
    for each in alternatives:
        demand = each["demand"]
        fitting = "" if each["fitting"] is None else f"{each['fitting']}"
        on = "starts so" if each["chosen"] else "on empty nodes" if each["exclusive"] else ""
        numbers = (each["scale"], demand["nodes"], demand["cores"], f"{demand['memory_mb']} MiB", demand["ways"])
        shown.add_row(*map(plain, (*numbers, f"{each['slowdown']:.3g}", fitting, on)))
    return shown


_NUMBERS = ("SCALE", "NODES", "CORES", "MEMORY", "WAYS", "SLOWDOWN", "NODES THAT FIT")
