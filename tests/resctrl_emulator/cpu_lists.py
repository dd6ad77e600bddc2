"""Sets of CPUs as the kernel reads and writes them: `f` and `00000000,ffffffff` (masks), `0-3,8` (lists)."""

from collections.abc import Iterable
from re import compile as pattern

#: A mask is written in groups of so many bits.
CHUNK_BITS = 32
#: No kernel is built for more CPUs (NR_CPUS of x86).
MOST_CPUS = 8192
_CHUNK = pattern(r"[0-9a-fA-F]{1,8}\Z")
_RANGE = pattern(r"(\d+)(?:-(\d+)(?::(\d+)/(\d+))?)?\Z")


def mask_text(cpus: Iterable[int], count: int) -> str:
    """The mask of these CPUs on a machine with `count` of them."""
    value = sum(1 << cpu for cpu in set(cpus))
    chunks = []
    for low in reversed(range(0, count, CHUNK_BITS)):
        digits = -(-min(CHUNK_BITS, count - low) // 4)
        chunks.append(f"{value >> low & 0xFFFFFFFF:0{digits}x}")
    return ",".join(chunks)


def list_text(cpus: Iterable[int]) -> str:
    """The list of these CPUs; the empty text for none."""
    ranges: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if ranges and ranges[-1][1] == cpu - 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def read_mask(text: str) -> frozenset[int]:
    """The CPUs of a mask. The kernel also takes superfluous separators, and nothing at all; pqos writes `03,`.

    Raises:
        ValueError: it is no mask.
    """
    value = 0
    for chunk in _parts(text):
        if not _CHUNK.match(chunk):
            raise ValueError(chunk)
        value = value << CHUNK_BITS | int(chunk, 16)
    return frozenset(cpu for cpu in range(value.bit_length()) if value >> cpu & 1)


def read_list(text: str) -> frozenset[int]:
    """The CPUs of a list; `0-7:2/4` are two of each four.

    Raises:
        ValueError: it is no list.
    """
    cpus: set[int] = set()
    for part in _parts(text):
        match = _RANGE.match(part)
        if match is None:
            raise ValueError(part)
        first = int(match[1])
        last = int(match[2] or first)
        used, group = (int(match[3]), int(match[4])) if match[3] else (1, 1)
        if last < first or last >= MOST_CPUS or not 0 < used <= group:
            raise ValueError(part)
        cpus.update(cpu for cpu in range(first, last + 1) if (cpu - first) % group < used)
    return frozenset(cpus)


def _parts(text: str) -> list[str]:
    """The parts of the first line, which commas and spaces separate."""
    return text.partition("\n")[0].replace(",", " ").split()
