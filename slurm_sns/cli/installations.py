"""The parts of an installation: what `slurm_sns` alone lacks, and which commands ask for it.

docs/admins/installations.md says who needs which part.
"""

import sys
from importlib.util import find_spec

from slurm_sns.errors import SnsError

#: What each part adds, as Python imports it; pyproject.toml has the versions.
CONTROLLER, SIMULATE, EXPORTER, TOP, WEB = "controller", "simulate", "exporter", "top", "web"
PARTS = {
    CONTROLLER: ("numba", "numpy", "sqlalchemy"),
    EXPORTER: ("prometheus_client",),
    SIMULATE: ("matplotlib", "numba", "numpy", "pandas", "scipy"),
    TOP: ("textual",),
    WEB: ("starlette", "uvicorn"),
}


def needs(command: str, part: str) -> None:
    """Check, before the command does anything, that its part is installed.

    Raises:
        SnsError: it is not; the message has the command that installs it.
    """
    missing = [module for module in PARTS[part] if find_spec(module) is None]
    if missing:
        raise SnsError(f"{command} needs {', '.join(missing)}: {sys.executable} -m pip install 'slurm_sns[{part}]'")
