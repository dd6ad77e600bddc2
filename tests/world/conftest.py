"""Make `world` and the scheduler's fakes importable: pytest's importlib mode puts no test folder on the path."""

import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
sys.path.extend(str(folder) for folder in (TESTS, TESTS / "scheduler") if str(folder) not in sys.path)

from world.hand_made import Case  # noqa: E402


@pytest.fixture
def case() -> Case:
    """A history of one job, for the tests of the checker."""
    return Case()
