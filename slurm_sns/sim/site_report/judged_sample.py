"""A random sample of the lines of a dump, judged as the submit filter would judge them.

Which lines are drawn depends on their texts and the seed, not on where they stand.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from slurm_sns.coverage.judged import MANAGED, Coverage, all_partitions, coverage
from slurm_sns.coverage.logs import read_log
from slurm_sns.errors import BadInput

#: Judging takes some seconds for so many.
MOST_LINES = 100_000


@dataclass
class LineSample:
    """Keeps the lines of the smallest hashes. It has seen so many `lines`, without the header, and letters."""

    seed: int
    most: int = MOST_LINES
    lines: int = 0
    letters: int = 0
    header: bytes = b""
    kept: list[tuple[int, bytes]] = field(default_factory=list)
    _below: int = 1 << 32

    def see(self, data: bytes) -> None:
        """Take what belongs to the sample from a part of whole lines, the first one first."""
        self.letters += len(data)
        lines = data.split(b"\n")[:-1]
        if not self.header:
            lines = list(filter(bytes.strip, lines))
            self.header = lines[0] if lines else b""
            lines = lines[1:]
        self.lines += len(lines)
        crc32, seed, below = zlib.crc32, self.seed & 0xFFFFFFFF, self._below
        self.kept += [(found, line) for line in lines if (found := crc32(line, seed)) < below]
        if len(self.kept) > 2 * self.most:
            self._shorten()

    def text(self) -> tuple[str, int]:
        """A dump of the sample, with its header, and how many lines it has."""
        self._shorten()
        lines = [self.header, *(line for _, line in self.kept)]
        return b"\n".join(lines).decode("utf-8", "replace") + "\n", len(self.kept)

    def _shorten(self) -> None:
        self.kept.sort()
        del self.kept[self.most :]
        if len(self.kept) == self.most:
            self._below = self.kept[-1][0]


@dataclass(frozen=True)
class Judged:
    """What the submit filter would do with the sample: in all, and which part of the jobs of each partition it manages.

    `sampled` of `lines` lines were judged. Without `found` the dump has not what that takes; `problem` says so.
    """

    lines: int
    sampled: int
    found: Coverage | None
    managed: Mapping[str, float]
    problem: str = ""


def judge_sample(name: str, text: str, lines: int, sampled: int) -> Judged:
    """Judge a sample of the dump of this name, with every partition of it managed."""
    try:
        log = read_log(name, text)
    except BadInput as problem:
        return Judged(lines, sampled, None, {}, str(problem))
    table = all_partitions(log.jobs)
    by_partition: dict[str, list[int]] = {}
    for at, job in enumerate(log.jobs):
        by_partition.setdefault(job.asked.partition, []).append(at)
    managed = {}
    for partition, places in sorted(by_partition.items()):
        found = coverage([log.jobs[at] for at in places], table)
        managed[partition] = sum(each.jobs for each in found.tallies if each.reason == MANAGED) / found.jobs
    return Judged(lines, sampled, coverage(log.jobs, table), managed)


def left_to_slurm(found: Coverage) -> Sequence[tuple[str, float, float]]:
    """Why jobs would be left to Slurm, each with its part of all jobs and of all core-hours."""
    return [(each.reason, *found.part(each)) for each in found.tallies if each.reason != MANAGED]
