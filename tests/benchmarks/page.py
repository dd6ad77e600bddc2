"""How fast the page of `sns web` is: a scheduler's socket with made-up jobs, the server in a process, chromium.

    python tests/benchmarks/page.py [JOBS [NODES [LOADS]]]

Prints JSON: for 100 jobs and for JOBS the times from navigation to the first contentful paint and to the first rows,
milliseconds, median and 99th percentile (the slowest of few loads); what the server needs for an overview that it has
to ask for, and for one that it has; its memory; and the ratios to 100 jobs.
"""

import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "web"), str(HERE.parent), str(HERE.parents[1])]

import made_up  # noqa: E402 -- beside the tests, and this is run as a script
from chromium import BrowserPage, Chromium  # noqa: E402
from serving import served  # noqa: E402

from slurm_sns.sockets.unix_socket import ControlSocket, ask  # noqa: E402

_WATCH = """
new MutationObserver((_, watch) => {
  if (document.querySelector("#rows tr")) { window.rows_ms = performance.now(); watch.disconnect(); }
}).observe(document, {childList: true, subtree: true});
"""
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
ADMIN = {"X-Remote-User": "bob"}


def serve(socket: Path) -> None:
    """Serve the page until standard input ends; the first line printed is its address."""
    with served(lambda request: ask(socket, request)) as address:
        print(address, flush=True)  # noqa: T201 -- a benchmark prints
        sys.stdin.read()


@contextmanager
def server_of(jobs: int, nodes: int) -> Iterator[tuple[str, int]]:
    """The page's address and the server's process, with a scheduler of so many jobs."""

    def answer(_: dict[str, Any], __: int) -> Any:
        whole["at_s"] = time.time()  # each overview is a new one
        return {**whole, "next_s": time.time() + 1}

    whole = made_up.overview(jobs, nodes, time.time())
    with tempfile.TemporaryDirectory() as folder, ControlSocket(Path(folder) / "socket", answer, frozenset({0})):
        command = [sys.executable, __file__, "--serve", f"{folder}/socket"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            yield process.stdout.readline().strip(), process.pid
            process.communicate()


def seconds_of(address: str) -> float:
    """How long one answer takes."""
    began_s = time.perf_counter()
    request = urllib.request.Request(f"{address}api/overview", headers={**ADMIN, "Accept-Encoding": "gzip"})
    with urllib.request.urlopen(request) as answer:
        answer.read()
    return time.perf_counter() - began_s


def load(page: BrowserPage, address: str) -> tuple[float, float]:
    """Milliseconds from navigation until something is painted, and until rows are there."""
    page.goto(address)
    page.wait_for("window.rows_ms && performance.getEntriesByName('first-contentful-paint').length")
    return page.evaluate(_PAINT), page.evaluate("window.rows_ms")


def told(values: Sequence[float]) -> dict[str, float]:
    """The median and the 99th percentile."""
    return {"median": round(median(values), 1), "p99": round(quantiles(values, n=100, method="inclusive")[98], 1)}


def measured(browser: Chromium, jobs: int, nodes: int, loads: int) -> dict[str, Any]:
    """All numbers with so many jobs."""
    with server_of(jobs, nodes) as (address, process):
        asked, kept, loaded = [], [], []
        for _ in range(10):
            time.sleep(1.1)
            asked.append(1000 * seconds_of(address))
            kept.append(1000 * seconds_of(address))
        for _ in range(loads):
            with browser.page(headers=ADMIN) as page:
                page.command("Page.addScriptToEvaluateOnNewDocument", source=_WATCH)
                loaded.append(load(page, address))
        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
        peak_kib = int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))
    return {
        "jobs": jobs,
        "nodes": nodes,
        "loads": loads,
        "first_paint_ms": told([each for each, _ in loaded]),
        "rows_ms": told([each for _, each in loaded]),
        "server_new_overview_ms": told(asked),
        "server_kept_overview_ms": told(kept),
        "server_peak_mb": round(peak_kib / 1024, 1),
    }


def main(jobs: int = 10_000, nodes: int = 150, loads: int = 40) -> None:
    """Measure and print."""
    with Chromium() as browser:
        few, many = (measured(browser, number, nodes, loads) for number in (100, jobs))
    ratios = {name: round(many[name]["median"] / few[name]["median"], 2) for name in ("first_paint_ms", "rows_ms")}
    print(json.dumps({"few": few, "many": many, "ratio_of_medians": ratios}, indent=2))  # noqa: T201


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(Path(sys.argv[2]))
    else:
        main(*map(int, sys.argv[1:]))
