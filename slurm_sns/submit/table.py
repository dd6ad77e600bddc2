"""The table by which the Lua module decides: the value, and the Lua text that `sns render` writes.

The text is one `return {...}` of literals, sorted and byte-stable, below a comment with its digest: the module parses
it again only when its first bytes or its size have changed. Every byte of a string that is not plainly harmless
is written as its decimal escape, so that no name can end its string; the module loads the text with an empty
environment. The table also holds the messages, so that Python and Lua use the same texts.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from math import ceil

from slurm_sns.errors import BadInput
from slurm_sns.submit.messages import MESSAGES

VERSION = 2  # the Lua module refuses any other; raise it when a field changes its meaning
MODES = ("observe", "advise", "enforce")

_HARMLESS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _./:,;+=@-(){}'%")
_LUA_EXACT = 2**53  # Lua 5.1 has doubles only

#: The shortest first lease: a scheduler that starts anew takes less than that.
LEAST_FIRST_LEASE_S = 60

Value = bool | str | int | tuple["Value", ...] | dict[str, "Value"]


@dataclass(frozen=True, slots=True, order=True)
class NodeShape:
    """`count` nodes of a partition that are alike: Slurm's CPUs, cores and RealMemory (MiB)."""

    cores: int
    cpus: int
    memory_mb: int
    count: int


@dataclass(frozen=True, slots=True)
class FilterTable:
    """What the submit filter knows of the site.

    Attributes:
        mode: observe, advise or enforce.
        partitions: the managed partitions, each with the shapes of its nodes.
        default_partition: the partition of a job that names none; "" when the cluster has no default.
        heuristics: the names that --sns-heuristic takes.
        default_memory_per_cpu_mb: Slurm's DefMemPerCPU; 0 when unset (a job that asks for no memory gets whole nodes).
        heartbeat_path: the file in which the scheduler writes Unix seconds.
        heartbeat_timeout_s: a heartbeat older than this is stale.
        kill_switch_path: while this file exists every job passes through.
        sharing: those of the managed partitions whose jobs share cores.
        places_gpus: whether jobs that ask for GPUs are placed.
        tells_users: whether the owner of a job that was gated is told so.
        generated_from: the configuration's name, for people who read the file.
    """

    mode: str
    partitions: Mapping[str, tuple[NodeShape, ...]]
    default_partition: str
    heuristics: tuple[str, ...]
    default_memory_per_cpu_mb: int
    heartbeat_path: str
    heartbeat_timeout_s: int
    kill_switch_path: str
    sharing: tuple[str, ...] = ()
    places_gpus: bool = False
    tells_users: bool = False
    generated_from: str = "sns.yaml"

    @property
    def first_lease_s(self) -> int:
        """How long the gate of a new job stands."""
        return first_lease_s(self.heartbeat_timeout_s)


def first_lease_s(heartbeat_timeout_s: float) -> int:
    """How long the gate of a new job stands: until it is renewed, or the submit filter sees a stale heartbeat."""
    return max(LEAST_FIRST_LEASE_S, ceil(2 * heartbeat_timeout_s))


def lua_text(table: FilterTable) -> str:
    """The Lua file for `table`: plain ASCII, the same bytes for the same table.

    Raises:
        BadInput: the mode is none of `MODES`, or a number is negative or too large for Lua.
    """
    if table.mode not in MODES:
        raise BadInput(f"mode {table.mode!r}: valid are {', '.join(MODES)}")
    in_order = {name: tuple(sorted(shapes, reverse=True)) for name, shapes in table.partitions.items()}
    fields: dict[str, Value] = {
        **asdict(replace(table, partitions=in_order, sharing=tuple(sorted(table.sharing)))),
        "first_lease_s": table.first_lease_s,
        "messages": dict(MESSAGES),
        "version": VERSION,
    }
    body = f"return {_literal(fields, '')}\n"
    digest = hashlib.sha256(body.encode()).hexdigest()
    return f"-- Written by sns render; change the configuration instead.\n-- sha256 of what follows: {digest}\n{body}"


def lua_string(text: str) -> str:
    """`text` as a Lua string literal in ASCII, whatever it holds."""
    data = text.encode("utf-8", "surrogateescape")
    return '"' + "".join(chr(byte) if byte in _HARMLESS else f"\\{byte:03d}" for byte in data) + '"'


def _literal(value: Value, indent: str) -> str:
    if isinstance(value, str):
        return lua_string(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if not 0 <= value <= _LUA_EXACT:
            raise BadInput(f"{value} in the submit filter's table: valid are whole numbers from 0 to {_LUA_EXACT}")
        return str(int(value))
    deeper = indent + "  "
    if isinstance(value, tuple):
        entries = [_literal(entry, deeper) for entry in value]
    else:
        entries = [f"[{lua_string(key)}] = {_literal(value[key], deeper)}" for key in sorted(value)]
    if not entries:
        return "{}"
    return "{\n" + "".join(f"{deeper}{entry},\n" for entry in entries) + indent + "}"
