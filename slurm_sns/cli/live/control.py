"""`sns release`, `sns disable`, `sns enable`: jobs are given to Slurm, one, all that wait, or all from now on."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slurm_sns.cli.options import DEFAULT_CONFIG, Config
from slurm_sns.errors import BadInput

if TYPE_CHECKING:
    from slurm_sns.config import configuration


def release(
    job: Annotated[
        str | None, typer.Argument(metavar="[JOBID]", help="A job's number, or a task of an array (41_7).")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every waiting job that slurm_sns manages.")] = False,
    config: Config = DEFAULT_CONFIG,
) -> None:
    """Give a waiting job of yours to Slurm, or (root and SlurmUser) all waiting jobs that slurm_sns manages.

    Slurm then starts it in its own order; a job that is held stays held. With --all a running scheduler goes on to
    manage newly submitted jobs: run `sns disable` first to stop that.
    """
    from slurm_sns.cli.live.asking import asker, named

    if (job is None) is not everything:
        raise BadInput("say which: a job's number, as 41, a task of an array, as 41_7, or --all")
    if job is not None:
        print(released(asker(config, {"command": "release", **named(job)})()))
        return
    _release_all(config)


def released(answer: Mapping[str, Any]) -> str:
    """The scheduler's answer to a release in words."""
    return f"job {answer['label']} is left to Slurm within a few seconds"


def _release_all(config: Config) -> None:
    from slurm_sns.config import configuration
    from slurm_sns.scheduler.dispatch.to_slurm import free_marked
    from slurm_sns.slurm.executor import SlurmExecutor
    from slurm_sns.slurm.state import JobsAlone

    settings = configuration.load(config)
    require_admin(settings)
    jobs = JobsAlone().observe().jobs
    freed = free_marked(jobs, time.time(), executor=SlurmExecutor(), log=print, reason="sns release")
    count = sum(1 for _ in freed)
    print(f"{count} job{'s' if count != 1 else ''} left to Slurm")


def disable(config: Config = DEFAULT_CONFIG) -> None:
    """Turn slurm_sns off: jobs pass through, waiting ones are given to Slurm. A restart leaves it off: `sns enable`."""
    print(switch(config, on=True))


def enable(config: Config = DEFAULT_CONFIG) -> None:
    """Turn slurm_sns on again after `sns disable`."""
    print(switch(config, on=False))


def switch(path: Path, *, on: bool) -> str:
    """Set the kill switch, or take it away; what has become of it.

    Raises:
        BadInput: the caller may not do this, or the configuration is wrong.
    """
    from slurm_sns.config import configuration
    from slurm_sns.store.heartbeat import KillSwitchFile

    settings = configuration.load(path)
    require_admin(settings)
    changed = KillSwitchFile(settings.paths.kill_switch).set(on=on)
    state = "disabled: jobs pass through to Slurm" if on else "enabled"
    return f"slurm_sns is {'now' if changed else 'already'} {state}"


def require_admin(settings: "configuration.Config") -> None:
    """Check that root or SlurmUser has called.

    Raises:
        BadInput: somebody else has.
    """
    from slurm_sns.cli.live import process

    if os.geteuid() not in process.admins(settings):
        raise BadInput(f"only root and {settings.slurm.user} may do this")
