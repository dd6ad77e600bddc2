"""Measured data that is not part of the project: in the folder that SNS_SHARED names, else in `../shared`."""

import os
from pathlib import Path

from slurm_sns.errors import BadInput


def shared_file(*parts: str) -> Path:
    """The path of a file in the folder of measured data.

    Raises:
        BadInput: the file is missing.
    """
    folder = Path(os.environ.get("SNS_SHARED", Path(__file__).parents[3].parent / "shared"))
    path = folder.joinpath(*parts)
    if not path.is_file():
        raise BadInput(f"{path} is missing; valid: SNS_SHARED names a folder that has {'/'.join(parts)}")
    return path
