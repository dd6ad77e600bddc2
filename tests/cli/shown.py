"""Answers of a scheduler as the command line gets them, and what a terminal of some width shows of them."""

from rich.console import Console, RenderableType

NOW = 100_000.0
EVIL = "\x1b[31mred\x1b[0m [bold]loud[/bold] [/] \r\n\x07 [link=http://x]x[/link] ünï\u202e\x9b2J"
#: No byte of these reaches a terminal or begins a line.
FORBIDDEN = ("\x1b", "\x07", "\r", "\u202e", "\x9b")


def amounts(cores: int, memory_mb: int, ways: int = 0, bandwidth_gbps: int = 0) -> dict[str, int]:
    amounts = {"cores": cores, "memory_mb": memory_mb, "ways": ways, "bandwidth_gbps": bandwidth_gbps}
    return {**amounts, "closids": 0, "gpus": {}}


def node(name: str, used_cores: int = 0, cores: int = 28) -> dict:
    return {"names": [name], "capacity": amounts(cores, 131_072, 20), "free": amounts(cores - used_cores, 65_536, 15)}


def status(**fields) -> dict:
    shown = {
        "mode": "enforce",
        "disabled": False,
        "at_s": NOW - 1,
        "cycle_s": 0.012,
        "cycle_p50_s": 0.011,
        "cycle_p99_s": 0.044,
        "began_s": NOW - 7200,
        "trouble": "",
        "cycles": 3,
        "placed": 2,
        "waiting": 5,
        "placing": 1,
        "running": 4,
        "suspended": 0,
        "held": 0,
        "gates": {"gated": 5, "renewed_per_minute": 2, "nearest_s": NOW + 3700, "lease_s": 7200},
        "nodes": 2,
        "nodes_unavailable": {},
        "unreadable": {},
        "differences": {},
        "capacity": amounts(56, 262_144, 40),
        "free": amounts(20, 131_072, 30),
        "node_groups": [node("c1", 28), node("c2", 8)],
        "chosen": "",
        "matched": {},
        "projects": {},
    }
    return {**shown, **fields}


def row(**fields) -> dict:
    shown = {
        "job_id": 7,
        "label": str(fields.get("job_id", 7)),
        "user": "alice",
        "account": "physics",
        "name": "wrap",
        "partition": "main",
        "tasks": 4,
        "cpus": 4,
        "state": "waiting",
        "submit_s": NOW - 4000,
        "start_s": 0,
        "nodes": [],
        "reason": "",
        "waits": {"kind": "other", "about": "", "features": ""} if "state" not in fields else None,
        "position": 1,
        "over_aged": False,
        "demand": {"nodes": 1, **amounts(4, 4096)},
    }
    return {**shown, **fields}


def printed(part: RenderableType, width: int = 200) -> str:
    """What a terminal without colours shows."""
    console = Console(width=width, highlight=False, force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(part)
    return capture.get()
