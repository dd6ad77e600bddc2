"""What `sns agent --show` prints: the node in a few lines, its jobs as a table."""

import json
from typing import Any

from rich.table import Table

from slurm_sns.cli.live.explain_view import show


def print_shown(shown: dict[str, Any], as_json: bool) -> None:
    """Print what an agent says of its node."""
    if as_json:
        print(json.dumps(shown, indent=2))
        return
    ways = f"{shown['ways']} ways" if shown["ways"] else f"not partitioned: {shown['why_unpartitioned']}"
    connected = "connected" if shown["is_connected"] else "not connected"
    print(f"{shown['node']}: {shown['mode']}, {ways}; the controller is {connected}, {shown['reports']} reports wait")
    if shown["trouble"]:
        print(f"trouble: {shown['trouble']}")
    table = Table(box=None)
    for title in ("JOB", "HERE (s)", "WAYS", "GB/S", "THREADS", "MEASURED", "UNPARTITIONED BECAUSE"):
        table.add_column(title, justify="left" if title[0] in "JMU" else "right")
    for job in shown["jobs"]:
        measured = ", ".join(f"{each['ways']}: {_figure(each['ipc'])}" for each in job["points"])
        table.add_row(
            str(job["job"]),
            f"{job['here_s']:.0f}",
            f"{job['ways']}{' sampled' if job['is_sampled'] else ''}",
            str(job["bandwidth_gbps"]),
            str(job["threads"]),
            measured,
            job["why_shared"],
        )
    if shown["jobs"]:
        show(table)


def _figure(value: float | None) -> str:
    return "?" if value is None else f"{value:.2f}"
