"""`sns status`, `sns queue`, `sns explain JOBID`: what the running scheduler says, as text or JSON."""

import json
import time
from typing import Annotated, Any

import typer

from slurm_sns.cli.options import DEFAULT_CONFIG, AsJson, Config


def status(config: Config = DEFAULT_CONFIG, as_json: AsJson = False) -> None:
    """The scheduler's state: mode, sign of life, jobs waiting and running, free resources, nodes that are out."""
    from slurm_sns import config as configuration
    from slurm_sns.cli import words

    settings = configuration.load(config)
    answer = _ask(settings, {"command": "status"})
    if as_json:
        print(json.dumps(answer, indent=2))
        return
    words.show(words.status_table(answer, time.time()))


def queue(config: Config = DEFAULT_CONFIG, as_json: AsJson = False) -> None:
    """Your jobs that slurm_sns holds, places or has placed, in queue order; all jobs for root and SlurmUser."""
    from slurm_sns import config as configuration
    from slurm_sns.cli import words

    answer = _ask(configuration.load(config), {"command": "queue"})
    if as_json:
        print(json.dumps(answer, indent=2))
        return
    words.show(words.queue_table(answer, time.time()))


def explain(
    job_id: Annotated[int, typer.Argument(metavar="JOBID", min=1, help="A job that slurm_sns holds or has placed.")],
    config: Config = DEFAULT_CONFIG,
    as_json: AsJson = False,
) -> None:
    """Why a job was placed where it was, or why not yet: what each heuristic chose, what was missing where."""
    from slurm_sns import config as configuration
    from slurm_sns.cli import words

    answer = _ask(configuration.load(config), {"command": "explain", "job_id": job_id})
    if as_json:
        print(json.dumps(answer, indent=2))
        return
    for part in words.explanation(answer):
        words.show(part)


def _ask(settings: Any, request: dict[str, Any]) -> Any:
    from slurm_sns.errors import Unreachable
    from slurm_sns.web.control import ask

    try:
        return ask(settings.paths.socket, request)
    except Unreachable as problem:
        raise Unreachable(f"{problem}; while it does not run, jobs pass through to Slurm") from None
