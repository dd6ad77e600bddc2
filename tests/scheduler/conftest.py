"""Make importable what tests share here, in gate/ and in snapshot/: pytest's importlib mode does not."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE / "gate"), str(HERE / "snapshot")]
