"""Make `live`, `fake_slurm` and `gate_jobs` importable: pytest's importlib mode puts no test folder on the path."""

import sys
from pathlib import Path

sys.path += [str(Path(__file__).parent), str(Path(__file__).parent / "gate")]
