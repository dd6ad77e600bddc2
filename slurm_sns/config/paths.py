"""The section `paths` of sns.yaml, which a command that asks the scheduler reads alone, and the base of every section.

All settings take five times as long to check, and a user's command needs none of the others.
"""

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from slurm_sns.config import grammar, yaml_text


class Section(BaseModel):
    """The base of every section: unknown keys are refused, types are strict, values immutable."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class PathsSection(Section):
    """Directories and commands on the controller."""

    state_dir: grammar.AbsolutePath = Path("/var/lib/sns")
    run_dir: grammar.AbsolutePath = Path("/run/sns")
    slurm_dir: grammar.AbsolutePath = Path("/etc/slurm/sns")
    sns_command: grammar.AbsolutePath | None = None

    @property
    def heartbeat(self) -> Path:
        """The file in which the scheduler writes Unix seconds."""
        return self.run_dir / "heartbeat"

    @property
    def submissions(self) -> Path:
        """The file by which the submit filter tells that a job comes. It knows the name, and that of the heartbeat."""
        return self.run_dir / "submitted"

    @property
    def socket(self) -> Path:
        """The Unix socket on which the scheduler answers."""
        return self.run_dir / "scheduler.sock"

    @property
    def kill_switch(self) -> Path:
        """While this file exists, every job passes through."""
        return self.state_dir / "disabled"


class _PathsAlone(BaseModel):
    """sns.yaml without its other settings."""

    model_config = ConfigDict(strict=True)

    paths: PathsSection = PathsSection()


def paths_in(path: Path) -> PathsSection:
    """The paths in that file; its other settings are not checked.

    Raises:
        BadInput: it cannot be read, is not YAML, or a path is not valid. One line.
    """
    content, _ = yaml_text.read(path)
    try:
        return _PathsAlone.model_validate_json(json.dumps(content)).paths
    except ValidationError:
        from slurm_sns.config.configuration import load  # noqa: PLC0415 - it says what is wrong, and takes long to import

        return load(path).paths
