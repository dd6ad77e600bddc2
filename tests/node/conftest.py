"""Make `resctrl_trees` importable: pytest's importlib mode puts no test folder on the path."""

import sys
import tarfile
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))


@pytest.fixture(scope="session")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the trees that were captured on real machines."""
    from resctrl_trees import ARCHIVE

    if not ARCHIVE.is_file():
        pytest.skip(f"{ARCHIVE} is missing (SNS_SHARED names the folder)")
    folder = tmp_path_factory.mktemp("captured")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder
