"""Lua 5.1 beside Python: one process that judges what it is told, for as long as the tests run."""

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from slurm_sns.resources import shared_path
from slurm_sns.submit.judge import Manage, PassThrough, Refuse, Verdict
from slurm_sns.submit.messages import as_bytes
from slurm_sns.submit.submission import Submission
from slurm_sns.submit.table import FilterTable, lua_text


class LuaJudge:
    """The judge of plugins/job_submit, asked over a pipe."""

    def __init__(self, folder: Path) -> None:
        lua = shutil.which("lua5.1")
        if lua is None:
            pytest.fail("lua5.1 is needed (Debian: apt-get install lua5.1): Slurm runs the submit filter in it")
        driver = Path(__file__).with_name("judge_driver.lua")
        command = [lua, str(driver), str(shared_path("plugins/job_submit"))]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._folder = folder
        self._paths: dict[str, Path] = {}

    def judge(
        self, job: Submission, table: FilterTable, now_s: int, heartbeat_s: int | None, killed: bool
    ) -> Verdict | str:
        words = [str(self._path(table)), str(now_s), "-" if heartbeat_s is None else str(heartbeat_s), str(int(killed))]
        words += _words(job)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join(words).encode() + b"\n")
        self._process.stdin.flush()
        kind, _, payload = self._process.stdout.readline().decode().rstrip("\n").partition(" ")
        text = bytes.fromhex(payload).decode("utf-8", "surrogateescape")
        known = {"pass": PassThrough(text), "refuse": Refuse(text)}
        known |= {"hold": Manage(text, hold=True), "mark": Manage(text, hold=False)}
        return known.get(kind, f"{kind}: {text}")

    def close(self) -> None:
        self._process.communicate()

    def _path(self, table: FilterTable) -> Path:
        text = lua_text(table)
        if text not in self._paths:
            path = self._folder / f"filter{len(self._paths)}.lua"
            path.write_text(text, encoding="ascii")
            self._paths[text] = path
        return self._paths[text]


def _words(job: Submission) -> Iterator[str]:
    for field in fields(job):
        value = getattr(job, field.name)
        if field.name == "options":
            yield from (f"o:{as_bytes(key).hex()}:{as_bytes(text).hex()}" for key, text in value)
        elif isinstance(value, bool):
            yield f"b:{field.name}:{int(value)}"
        elif isinstance(value, str):
            yield f"t:{field.name}:{as_bytes(value).hex()}"
        elif value is not None:
            yield f"n:{field.name}:{value}"


@pytest.fixture(scope="session")
def lua_judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LuaJudge]:
    judge = LuaJudge(tmp_path_factory.mktemp("tables"))
    yield judge
    judge.close()
