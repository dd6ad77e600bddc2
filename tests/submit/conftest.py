"""The filter's judge in Lua; and `lua_judge` importable: pytest's importlib mode puts no test folder on the path."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

from lua_judge import LuaJudge


@pytest.fixture(scope="session")
def lua_judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LuaJudge]:
    judge = LuaJudge(tmp_path_factory.mktemp("tables"))
    yield judge
    judge.close()
