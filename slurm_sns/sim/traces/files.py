"""Input files: plain or gzip, from a path or standard input, whole or in parts; every error is one line of text."""

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from slurm_sns.errors import BadInput

GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
STANDARD_INPUT = "-"

PART_BYTES = 1 << 23

#: Much longer than any header of ours, in bytes.
LONGEST_HEADER = 4096


@dataclass(frozen=True)
class TraceFile:
    """A file, compressed or not; it can be read any number of times. `stored` is None where the disk keeps it."""

    name: str
    stored: bytes | None = None

    @classmethod
    def of(cls, name: str) -> "TraceFile":
        """The file `name`; `-` is standard input.

        Raises:
            BadInput: the file cannot be read.
        """
        if name == STANDARD_INPUT:
            return cls(name, sys.stdin.buffer.read())
        try:
            with Path(name).open("rb") as file:
                # A pipe (`<(zcat x)`) gives its bytes only once.
                return cls(name) if Path(name).is_file() else cls(name, file.read())
        except OSError as problem:
            raise BadInput(f"{name}: cannot be read ({problem.strerror})") from None

    def size(self) -> int:
        """How many bytes are stored, compressed or not; 0 where that cannot be told."""
        try:
            return Path(self.name).stat().st_size if self.stored is None else len(self.stored)
        except OSError:
            return 0

    def parts(self) -> Iterator[bytes]:
        """The text in parts of whole lines; the last line ends with a newline too.

        Raises:
            BadInput: the file is truncated, binary or empty.
        """
        rest, empty = b"", True
        for part in self._uncompressed():
            if b"\0" in part:
                raise BadInput(f"{self.name}: a binary file; valid: text, plain or gzip")
            empty = empty and not part.strip()
            whole, newline, after = part.rpartition(b"\n")
            if newline:
                yield rest + whole + newline
                rest = after
            else:
                rest += after
        if empty:
            raise BadInput(f"{self.name}: the file is empty")
        if rest:
            yield rest + b"\n"

    def text(self) -> str:
        """The whole text.

        Raises:
            BadInput: the file is truncated, binary or empty.
        """
        data = b"".join(self.parts())
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data.decode("latin-1")  # old archive headers hold names in Latin-1; they are comments

    def first_line(self) -> str:
        """The first line that is not empty."""
        begin = next(self.parts()).lstrip()
        return begin.partition(b"\n")[0].decode("latin-1").strip()

    @property
    def is_csv(self) -> bool:
        """Whether this is a trace in CSV, by the name or by the header; otherwise it is SWF."""
        if self.name != STANDARD_INPUT and self.name.removesuffix(".gz").endswith(".csv"):
            return True
        return self.first_line().startswith("job_id,")

    def error(self, line: int, column: str, value: str, valid: str) -> BadInput:
        """The error for one value."""
        return BadInput(f"{self.name}: line {line}: {column} is {value}; valid: {valid}")

    def _uncompressed(self) -> Iterator[bytes]:
        """The bytes, without a byte order mark; the content shows whether they are compressed."""
        with self._open() as stored:
            compressed = stored.read(len(GZIP_MAGIC)) == GZIP_MAGIC
            stored.seek(0)
            if self.name.endswith(".gz") and not compressed:
                raise BadInput(f"{self.name}: not a gzip file, although its name ends in .gz")
            file: BinaryIO | gzip.GzipFile = gzip.GzipFile(fileobj=stored) if compressed else stored
            try:
                part = file.read(PART_BYTES).removeprefix(BYTE_ORDER_MARK)
                while part:
                    yield part
                    part = file.read(PART_BYTES)
            except EOFError:
                raise BadInput(f"{self.name}: the gzip file is truncated") from None
            except (OSError, zlib.error) as problem:
                what = "the gzip file is damaged" if compressed else "cannot be read"
                raise BadInput(f"{self.name}: {what} ({problem})") from None

    def _open(self) -> BinaryIO:
        if self.stored is not None:
            return io.BytesIO(self.stored)
        try:
            return Path(self.name).open("rb")
        except OSError as problem:
            raise BadInput(f"{self.name}: cannot be read ({problem.strerror})") from None


def header_of(name: str) -> list[str]:
    """The columns that the first line of the file names; none for standard input, a pipe, or what cannot be read."""
    if name == STANDARD_INPUT or not Path(name).is_file():
        return []
    try:
        with Path(name).open("rb") as file:
            compressed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        with gzip.open(name) if compressed else Path(name).open("rb") as file:
            line = file.readline(LONGEST_HEADER)
    except (OSError, EOFError, zlib.error):
        return []  # the reader of the whole file reports the error
    return [column.strip() for column in line.decode("utf-8-sig", "replace").split(",")]
