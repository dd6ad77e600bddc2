"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Config = Annotated[
    Path,
    typer.Option("--config", envvar="SNS_CONFIG", help="The configuration, a YAML file.", show_default=True),
]
DEFAULT_CONFIG = Path("/etc/slurm/sns.yaml")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]

Node = Annotated[
    str | None,
    typer.Option(
        "--node",
        envvar="SLURMD_NODENAME",
        help="The node's name in Slurm; default: the host's name without its domain.",
        show_default=False,
    ),
]
