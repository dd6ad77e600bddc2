"""Where the files that ship with the package are: conf/ and the plugins' sources.

In an installed wheel they are package data under `slurm_sns/share`; in a checkout they are the folders themselves.
"""

from importlib.resources import files
from pathlib import Path


def package_text(name: str) -> str:
    """The text of a file of this package, such as `node/hook.py`."""
    return files("slurm_sns").joinpath(name).read_text(encoding="utf-8")


def shared_path(name: str) -> Path:
    """The path of `conf/...` or `plugins/...` in this installation.

    Raises:
        FileNotFoundError: neither the wheel nor a checkout holds it.
    """
    package = Path(str(files("slurm_sns")))
    for base in (package / "share", package.parent):
        if (base / name).exists():
            return base / name
    raise FileNotFoundError(f"{name} is neither in the installed package nor in a checkout around it")
