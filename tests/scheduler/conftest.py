"""Make importable what tests share here, in gate/, sharing/ and snapshot/: pytest's importlib mode does not."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE / "gate"), str(HERE / "sharing"), str(HERE / "snapshot")]
