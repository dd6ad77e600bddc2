"""Make `world` and the scheduler's fakes importable: pytest's importlib mode puts no test folder on the path."""

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path.extend(str(folder) for folder in (TESTS, TESTS / "scheduler") if str(folder) not in sys.path)
