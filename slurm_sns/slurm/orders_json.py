"""Orders of the gate as JSON values and back, for the pipes to the sender processes."""

from dataclasses import asdict
from typing import Any

from slurm_sns.scheduler.gate.orders import GateOrder, OrderKind
from slurm_sns.submit.record import MemoryRequest

Row = dict[str, Any]


def as_row(order: GateOrder) -> Row:
    """The order as JSON values."""
    return asdict(order)


def from_row(row: Row) -> GateOrder:
    """The order that `as_row` wrote."""
    nodes, gres, memory = row["nodes"], row["gres"], row["memory"]
    read = {
        "kind": OrderKind(row["kind"]),
        "nodes": None if nodes is None else tuple(nodes),
        "gres": None if gres is None else tuple(gres),
        "memory": None if memory is None else MemoryRequest(*memory),
    }
    return GateOrder(**{**row, **read})
