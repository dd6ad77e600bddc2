"""Make the fuzzer's modules, `lua_judge` and `live` importable: pytest's importlib mode does not add their folders."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent / "submit"), str(HERE.parent / "scheduler")]
