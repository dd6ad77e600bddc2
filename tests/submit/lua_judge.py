"""Lua 5.1 beside Python: one process that judges what it is told, for as long as the tests run."""

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path

import pytest

from slurm_sns.package_files import shared_path
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
        (verdict,) = self.judge_all([job], table, now_s, heartbeat_s, killed)
        return verdict

    def judge_all(
        self, jobs: Sequence[Submission], table: FilterTable, now_s: int, heartbeat_s: int | None, killed: bool
    ) -> list[Verdict | str]:
        """One verdict per job; so few jobs at once that neither pipe runs full (64 KiB)."""
        beat = "-" if heartbeat_s is None else str(heartbeat_s)
        head = [str(self._path(table)), str(now_s), beat, str(int(killed))]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("".join(" ".join([*head, *_words(job)]) + "\n" for job in jobs).encode())
        self._process.stdin.flush()
        return [_verdict(self._process.stdout.readline().decode()) for _ in jobs]

    def close(self) -> None:
        self._process.communicate()

    def _path(self, table: FilterTable) -> Path:
        text = lua_text(table)
        if text not in self._paths:
            path = self._folder / f"filter{len(self._paths)}.lua"
            path.write_text(text, encoding="ascii")
            self._paths[text] = path
        return self._paths[text]


def _verdict(line: str) -> Verdict | str:
    kind, payload, *begin = line.rstrip("\n").split(" ")
    text = bytes.fromhex(payload).decode("utf-8", "surrogateescape")
    if kind == "manage":
        return Manage(text, None if begin == ["-"] else int(begin[0]))
    return {"pass": PassThrough(text), "refuse": Refuse(text)}.get(kind, f"{kind}: {text}")


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
