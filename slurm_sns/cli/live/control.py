"""`sns release --all`, `sns disable`, `sns enable`: the admin's switches."""

import os
import time
from typing import TYPE_CHECKING, Annotated

import typer

from slurm_sns.cli.options import DEFAULT_CONFIG, Config
from slurm_sns.errors import BadInput

if TYPE_CHECKING:
    from slurm_sns import config as configuration


def release(
    everything: Annotated[bool, typer.Option("--all", help="Every job that slurm_sns holds.")] = False,
    config: Config = DEFAULT_CONFIG,
) -> None:
    """Give the jobs that slurm_sns holds to Slurm, as they are.

    A running scheduler goes on to hold newly submitted jobs: run `sns disable` first to stop that.
    """
    from slurm_sns import config as configuration
    from slurm_sns.cli.live import parts
    from slurm_sns.scheduler.release import release_held
    from slurm_sns.slurm.executor import SlurmExecutor

    if not everything:
        raise BadInput("say --all: the jobs that slurm_sns holds are released together; one job: scontrol release ID")
    settings = configuration.load(config)
    _require_admin(settings)
    seen, records = parts.releasing_state().observe(), parts.stored_records(settings, print).load()
    known = (seen.jobs, records, parts.settings(settings), time.time())
    count = sum(1 for _ in release_held(*known, executor=SlurmExecutor(), log=print, reason="sns release"))
    print(f"{count} job{'s' if count != 1 else ''} released")


def disable(config: Config = DEFAULT_CONFIG) -> None:
    """Turn slurm_sns off: new jobs pass through, held ones are released. Survives a restart; `sns enable` undoes it."""
    _switch(config, on=True)


def enable(config: Config = DEFAULT_CONFIG) -> None:
    """Turn slurm_sns on again after `sns disable`."""
    _switch(config, on=False)


def _switch(path: Config, *, on: bool) -> None:
    from slurm_sns import config as configuration
    from slurm_sns.store.heartbeat import KillSwitchFile

    settings = configuration.load(path)
    _require_admin(settings)
    changed = KillSwitchFile(settings.paths.kill_switch).set(on=on)
    state = "disabled: jobs pass through to Slurm" if on else "enabled"
    print(f"slurm_sns is {'now' if changed else 'already'} {state}")


def _require_admin(settings: "configuration.Config") -> None:
    from slurm_sns.cli.live import process

    if os.geteuid() not in process.admins(settings):
        raise BadInput(f"only root and {settings.slurm.user} may do this")
