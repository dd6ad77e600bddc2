"""Reports that the controller has not acknowledged: one file each, until it has.

A report is a message of the channel (wire/messages.py) in a file that is written beside its place and
renamed. Where the disk is full reports are kept in memory, up to `MOST_IN_MEMORY` of them, and written later. A file
that is no report is put aside with the ending `.broken`, and said. Of more than `MOST_REPORTS` reports the oldest go.
"""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from slurm_sns.errors import SnsError
from slurm_sns.wire.messages import decode, encode
from slurm_sns.wire.values import ReportKey, RunReport

#: A week of a node that runs a short job a minute and cannot reach its controller.
MOST_REPORTS = 10_000
#: 2 KB each.
MOST_IN_MEMORY = 1_000
_ENDING, _BROKEN = ".report", ".broken"


class SpoolFiles:
    """The changes of files."""

    def write(self, path: Path, data: bytes) -> None:
        """Write a new file, and see that it is on the disk."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)  # all of it: a single write(2) may take a part, on a disk that is almost full
            file.flush()
            os.fsync(descriptor)

    def rename(self, path: Path, to: Path) -> None:
        """Put a file in its place."""
        os.replace(path, to)  # noqa: PTH105 -- the system call that replaces


class Spool:
    """The reports in `directory`, which is made. Any number of agents, one after the other, may use it."""

    def __init__(self, directory: Path, log: Callable[[str], None], files: SpoolFiles | None = None) -> None:
        self._directory, self._log, self._files = directory, log, files or SpoolFiles()
        self._reports: dict[ReportKey, RunReport] = {}
        self._unwritten: dict[ReportKey, RunReport] = {}
        #: Why reports are in memory only; empty if all are on the disk.
        self.trouble = ""
        self._load()

    def add(self, report: RunReport) -> None:
        """Keep a report until it is acknowledged. Of two with the same key the first one counts."""
        if report.key in self._reports:
            return
        self._reports[report.key] = report
        self._unwritten[report.key] = report
        self.write()
        while len(self._unwritten) > MOST_IN_MEMORY:
            self._drop(next(iter(self._unwritten)), "the disk takes no reports")
        while len(self._reports) > MOST_REPORTS:
            self._drop(next(iter(self._reports)), f"{MOST_REPORTS} newer ones wait for the controller")

    def write(self) -> None:
        """Write what is in memory only."""
        for key, report in list(self._unwritten.items()):
            path = self._path(key)
            try:
                self._files.write(path.with_suffix(".new"), encode(report))
                self._files.rename(path.with_suffix(".new"), path)
            except OSError as problem:
                with suppress(OSError):
                    path.with_suffix(".new").unlink()
                self._say(f"reports are kept in memory only: {self._directory}: {problem.strerror}")
                return
            del self._unwritten[key]
        self._say("")

    def forget(self, keys: Iterable[ReportKey]) -> None:
        """The controller has stored these."""
        for key in keys:
            if self._reports.pop(key, None) is not None:
                self._unwritten.pop(key, None)
                with suppress(OSError):
                    self._path(key).unlink()

    def reports(self) -> tuple[RunReport, ...]:
        """What waits, oldest first."""
        return tuple(self._reports.values())

    @property
    def has_unwritten(self) -> bool:
        """Whether a report is in memory only."""
        return bool(self._unwritten)

    def _load(self) -> None:
        try:
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            paths = [path for path in self._directory.iterdir() if path.suffix == _ENDING]
        except OSError as problem:
            self._say(f"{self._directory} cannot be used: {problem.strerror}")
            return
        found = []
        for path in paths:
            try:
                report = decode(path.read_bytes())
            except (OSError, SnsError) as problem:
                self._put_aside(path, str(problem))
                continue
            if isinstance(report, RunReport) and self._path(report.key) == path:
                found.append(report)
            else:
                self._put_aside(path, "it is no report, or another one")
        for report in sorted(found, key=lambda each: each.ended_s):
            self._reports[report.key] = report

    def _put_aside(self, path: Path, why: str) -> None:
        self._log(f"{path} is put aside: {why}")
        with suppress(OSError):
            self._files.rename(path, path.with_suffix(_BROKEN))

    def _drop(self, key: ReportKey, why: str) -> None:
        self._log(f"the report of job {key[0]} is lost: {why}")
        self.forget([key])

    def _path(self, key: ReportKey) -> Path:
        job_id, restarts, node = key
        return self._directory / f"{job_id}-{restarts}-{node}{_ENDING}"

    def _say(self, trouble: str) -> None:
        if trouble != self.trouble:
            self.trouble = trouble
            self._log(trouble or "all reports are on the disk again")
