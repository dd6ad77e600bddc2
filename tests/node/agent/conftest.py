"""An agent on an emulated node whose clock is emulated, too: seconds pass when a test says so."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))  # node_agent
sys.path.append(str(Path(__file__).parents[2]))  # resctrl_emulator
sys.path.append(str(Path(__file__).parent))

from emulated_node import Jobs, Node
from resctrl_emulator import mount
from resctrl_emulator.clients import MountedClient


@pytest.fixture(scope="session")
def processes_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The processes of the emulated machine: links to those of /proc."""
    return tmp_path_factory.mktemp("processes")


@pytest.fixture(scope="session")
def xeon(processes_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A mounted tree of a Xeon with an emulated clock."""
    if mount.why_not() is not None:
        pytest.skip(str(mount.why_not()))
    directory = tmp_path_factory.mktemp("agent") / "xeon"
    with mount.mounted(directory, "xeon", "--processes", str(processes_folder), "--clock", "emulated") as root:
        yield root


@pytest.fixture
def root(xeon: Path) -> Iterator[Path]:
    """That tree, as after a fresh mount but for the clock."""
    MountedClient(xeon).reset()
    yield xeon
    assert (xeon / ".emulator/faults").read_text() == "", "every fault has happened"


@pytest.fixture
def jobs(processes_folder: Path) -> Iterator[Jobs]:
    running = Jobs(processes_folder)
    yield running
    running.end_all()


@pytest.fixture
def node(root: Path, jobs: Jobs, tmp_path: Path) -> Node:
    """A node on which an agent has begun."""
    return Node(root, jobs, tmp_path / "state")
