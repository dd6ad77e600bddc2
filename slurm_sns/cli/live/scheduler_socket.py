"""Where the scheduler's socket is."""

import os
from pathlib import Path


def is_for_admins(config: Path) -> bool:
    """Whether the configuration exists and the caller may not read it."""
    return os.access(config, os.F_OK) and not os.access(config, os.R_OK)


def path(config: Path) -> Path:
    """The configured socket; the default one if only admins may read the configuration (it can hold a password)."""
    from slurm_sns.config.paths import PathsSection, paths_in

    return PathsSection().socket if is_for_admins(config) else paths_in(config).socket
