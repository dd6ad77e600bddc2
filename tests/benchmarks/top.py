"""`sns top` at a large queue: from an answer to the screen, per key press, and memory, beside a queue of 100 jobs.

    python tests/benchmarks/top.py [--jobs 10000] [--nodes 1000] [--presses 200] [--width 160] [--height 50]

Prints JSON. `answer_to_screen_s` is from the scheduler's line of JSON, which is read, to the drawn screen; `key_ms` is
from a key to the last drawing that it causes, encoded for a terminal, of keys that move, page, type into the filter,
and switch to the nodes; median and p99, wall-clock. While keys are pressed an answer comes every second. The baseline
is 100 jobs and 10 nodes. Peak memory is that of the process, by a process for each size.
"""

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import time
from itertools import chain, cycle, islice
from pathlib import Path

from textual._compositor import CompositorUpdate
from textual.events import Key
from textual.screen import Screen

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))

from overviews import large
from shown import NOW

from slurm_sns.cli.live.top.app import ClusterTop
from slurm_sns.cli.live.top.job_acts import Doors
from slurm_sns.cli.live.top.queue_lines import ColumnLines, JobChoice

#: A screen on which nothing was drawn for so long is complete.
SETTLED_S = 0.06
#: What a person does: walk, page, look for a user, switch to the nodes and walk there.
KEYS = (
    "down",
    "down",
    "pagedown",
    "end",
    "home",
    "n",
    "right",
    "down",
    "pagedown",
    "n",
    "slash",
    "u",
    "1",
    "escape",
    "a",
)


class Drawn(ClusterTop):
    """The application; it notes when it has drawn, and encodes what it draws as for a terminal."""

    drawn_s = 0.0

    def _display(self, screen: Screen, renderable: object) -> None:
        if isinstance(renderable, CompositorUpdate):
            renderable.render_segments(self.console)
            self.drawn_s = time.perf_counter()
        super()._display(screen, renderable)


async def measured(jobs: int, nodes: int, presses: int, size: tuple[int, int]) -> dict[str, object]:
    """One run of the application, driven by keys."""
    line = json.dumps(large(jobs, nodes))
    asked_s: list[float] = []

    def ask(_request: dict[str, object]) -> object:
        asked_s.append(time.perf_counter())
        return {**json.loads(line), "next_s": NOW + 1}

    doors = Doors(ask, lambda *_: "", lambda: False, lambda _: "", lambda _: "", lambda: NOW)
    app = Drawn(doors, JobChoice(), ColumnLines())
    async with app.run_test(size=size):
        while not app.has_overview:
            await asyncio.sleep(0.001)
        await asyncio.sleep(SETTLED_S)
        shown_s = app.drawn_s - asked_s[0]
        took_ms: dict[str, list[float]] = {key: [] for key in KEYS}
        for key in islice(cycle(KEYS), presses):
            pressed_s = app.drawn_s = time.perf_counter()
            app.post_message(Key(key, key if len(key) == 1 else None))
            while time.perf_counter() - app.drawn_s < SETTLED_S:
                await asyncio.sleep(0.001)
            took_ms[key].append((app.drawn_s - pressed_s) * 1000)
    every = sorted(chain.from_iterable(took_ms.values()))
    return {
        "jobs": jobs,
        "nodes": nodes,
        "answers": len(asked_s),
        "answer_mb": round(len(line) / 1e6, 2),
        "answer_to_screen_s": round(shown_s, 3),
        "key_ms": {
            "median": round(statistics.median(every), 1),
            "p99": round(every[int(len(every) * 0.99)], 1),
            "most": round(every[-1], 1),
            "by_key_median": {key: round(statistics.median(times), 1) for key, times in took_ms.items() if times},
        },
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


def main() -> None:
    """Measure both sizes, each in a process of its own."""
    options = argparse.ArgumentParser(description=__doc__)
    for name, default in (("jobs", 10_000), ("nodes", 1000), ("presses", 600), ("width", 160), ("height", 50)):
        options.add_argument(f"--{name}", type=int, default=default)
    options.add_argument("--alone", action="store_true", help="this size only")
    given = options.parse_args()
    if given.alone:
        found = asyncio.run(measured(given.jobs, given.nodes, given.presses, (given.width, given.height)))
        json.dump(found, sys.stdout)
        return

    def run(jobs: int, nodes: int) -> dict:
        words = [sys.executable, __file__, "--alone", "--jobs", jobs, "--nodes", nodes, "--presses", given.presses]
        words += ["--width", given.width, "--height", given.height]
        done = subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True)
        return json.loads(done.stdout)

    small, large_one = run(100, 10), run(given.jobs, given.nodes)
    ratio = {
        "answer_to_screen": round(large_one["answer_to_screen_s"] / small["answer_to_screen_s"], 1),
        "key_median": round(large_one["key_ms"]["median"] / small["key_ms"]["median"], 2),
        "key_p99": round(large_one["key_ms"]["p99"] / small["key_ms"]["p99"], 2),
        "peak": round(large_one["peak_mb"] / small["peak_mb"], 2),
    }
    json.dump({"large": large_one, "small": small, "ratio": ratio}, sys.stdout, indent=2)


if __name__ == "__main__":
    main()
