"""`sns wait JOBID`: ends when the job starts, for scripts; it asks the scheduler every few seconds."""

import time
from collections.abc import Callable
from typing import Annotated, Any

import typer

from slurm_sns.cli.live.asking import asker, interval_s, named
from slurm_sns.cli.options import DEFAULT_CONFIG, Config
from slurm_sns.cli.termination import terminated_as_interrupted
from slurm_sns.errors import BadInput, SnsError

#: A cycle takes a second, and a placed job starts within two: asking more often shows nothing sooner.
ASKED_EVERY_S = 3.0
#: A job that was submitted just now is seen with the next cycle: for so long and two intervals more, one that is
#: unknown (or gone, where Slurm gives numbers again) is asked for again.
UNSEEN_S = 10.0

Ask = Callable[[], Any]


def wait(
    job: Annotated[str, typer.Argument(metavar="JOBID", help="A job's number, or a task of an array (41_7).")],
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", metavar="SECONDS", min=0, help="Give up after so long; default: never."),
    ] = None,
    config: Config = DEFAULT_CONFIG,
) -> None:
    """Wait until a job of yours starts, and print where; for an array, until its first task does.

    Exit status: 0 when it has started; 1 if it ended without having started, is no longer in Slurm, the time is up or
    no scheduler answers; 2 if you have no such job. It works for jobs that Slurm alone schedules, too.
    """
    now_s = time.monotonic()
    deadline_s = None if timeout is None else now_s + timeout
    with terminated_as_interrupted():
        ask = asker(config, {"command": "job", **named(job)})
        answer = _started(ask, job, deadline_s, now_s + UNSEEN_S + 2 * interval_s(config))
    from slurm_sns.node_lists import folded

    print(f"job {answer['label']} has started on {folded(answer['nodes'])}")


def _started(ask: Ask, job: str, deadline_s: float | None, unseen_until_s: float) -> Any:
    """The answer about the job once it has started. A scheduler that does not answer for a while is asked again.

    A job that Slurm has forgotten has started if it was placed.

    Raises:
        BadInput: there is no such job.
        SnsError: the job ended without having started, the time is up, or nobody has answered at all.
    """
    seen: Any = None
    problem, has_waited = "", False
    while True:
        try:
            seen, problem = ask(), ""
        except BadInput:
            if seen is not None:  # Slurm forgets ended jobs
                raise SnsError(f"job {job} is no longer in Slurm") from None
            if time.monotonic() >= unseen_until_s:
                raise
        except SnsError as away:
            if seen is None:
                raise
            problem = str(away)
        match seen and seen["state"]:
            case "started":
                return seen
            case "ended":
                raise SnsError(f"job {seen['label']} ended without having started")
            case "waiting":
                has_waited = True
            case "gone" if has_waited or time.monotonic() >= unseen_until_s:
                if seen["nodes"]:
                    return seen
                raise SnsError(f"job {seen['label']} is no longer in Slurm")
        left_s = ASKED_EVERY_S if deadline_s is None else deadline_s - time.monotonic()
        if left_s <= 0:
            why = problem or (seen and seen["reason"]) or "the scheduler has not seen it yet"
            raise SnsError(f"job {job} has not started in time: {why}")
        time.sleep(min(ASKED_EVERY_S, left_s))
