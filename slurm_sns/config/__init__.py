"""Reads sns.yaml strictly: a file with an unknown, mistyped or impossible setting is refused in one line that says why.

`load` reads the file and gives an immutable `Config`, which makes the plain values that policies and the submit filter
take.
"""

import json
from pathlib import Path
from typing import Self, TypeVar

from pydantic import ValidationError, model_validator

from slurm_sns.config import checks, grammar, problems, yaml_text
from slurm_sns.config.policy_settings import parameters_from
from slurm_sns.config.settings import Matching, Nodes, Paths, Scheduler, Settings, Slurm, Store, Submit
from slurm_sns.errors import BadInput
from slurm_sns.policies.base import Policy
from slurm_sns.policies.registry import specification
from slurm_sns.submit.table import FilterTable

__all__ = ["Config", "Matching", "Nodes", "Paths", "Scheduler", "Slurm", "Store", "Submit", "load"]

_Parameters = TypeVar("_Parameters")


class Config(Settings):
    """A configuration whose settings also agree with each other."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        checks.check(self)
        return self

    @property
    def database_url(self) -> str:
        """The store's URL: as given, else SQLite in the state directory."""
        return self.store.url or f"sqlite:///{self.paths.state_dir / 'sns.db'}"

    def parameters(self, kind: type[_Parameters]) -> _Parameters:
        """A policy's parameters of this kind, with the values of the file."""
        return parameters_from(kind, self)

    def the_policy(self) -> Policy:
        """The configured policy."""
        chosen = specification(self.policy)
        return chosen.policy(*map(self.parameters, chosen.parameters))

    def filter_table(self, generated_from: str = "sns.yaml") -> FilterTable:
        """The table by which the submit filter decides."""
        return FilterTable(
            mode=self.mode,
            partitions={partition: checks.shapes(self, partition) for partition in self.partitions},
            default_partition=self.default_partition or "",
            heuristics=grammar.HEURISTICS,
            default_memory_per_cpu_mb=self.slurm.memory_per_cpu_mb or 0,
            heartbeat_path=str(self.paths.heartbeat),
            heartbeat_timeout_s=self.scheduler.heartbeat_timeout_s,
            kill_switch_path=str(self.paths.kill_switch),
            tells_users=self.submit.tells_users,
            generated_from=generated_from,
        )


def load(path: Path) -> Config:
    """The configuration in that file.

    Raises:
        BadInput: it cannot be read, is not YAML, or a setting is unknown, missing, mistyped or impossible. One line.
    """
    content, lines = yaml_text.read(path)
    if not isinstance(content, dict):
        raise BadInput(f"{path}, line 1: not settings; valid: {', '.join(Config.model_fields)}")
    try:
        # Through JSON, where pydantic's strict mode accepts a list for a tuple and a text for a path, and nothing else.
        config: Config = Config.model_validate_json(json.dumps(content))
    except ValidationError as problem:
        raise BadInput(problems.describe(problem, Config, path, lines)) from None
    return config
