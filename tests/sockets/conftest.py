"""A hub and agents' channels, and a key file."""

import sys
import threading
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))  # `channel_world`: pytest's importlib mode puts no test folder on the path

from channel_world import OLD, World, wait_for


@pytest.fixture
def world():
    before = set(threading.enumerate())
    made = World()
    with made.ends:
        yield made
    wait_for(lambda: {each for each in threading.enumerate() if not each.name.startswith("asyncio")} <= before)


@pytest.fixture
def key_path(tmp_path: Path) -> Path:
    path = tmp_path / "sns.key"
    path.write_text(OLD)
    path.chmod(0o600)
    return path
