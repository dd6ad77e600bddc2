"""Make `emulated`, `live` and `fake_slurm` importable: pytest's importlib mode puts no test folder on the path."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
