"""Make the fuzzer's modules, the Lua judge and the small live cases importable, as pytest's importlib mode does not."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent / "submit"), str(HERE.parent / "scheduler")]
