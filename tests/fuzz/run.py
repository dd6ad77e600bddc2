"""Fuzz one target for a long time: `python tests/fuzz/run.py hints|records|config|requests|jobs COUNT [SEED]`.

Runs COUNT cases in rounds, each with its own seed (SEED, SEED + 1, ...). A failure names its seed, by which it can be
repeated. Prints the number of cases and the rate. tests/fuzz/test_fuzz.py is the quick form of the same checks.
"""

import signal
import sys
import time
from math import ceil
from pathlib import Path
from random import Random

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent / "submit"), str(HERE.parent / "scheduler")]

from targets import TARGETS, folder  # noqa: E402 - after the path is set

ROUND = 1000


def main(name: str, count: int, first_seed: int) -> None:
    """Run `count` cases, or as many as Ctrl-C leaves time for; an exception ends the run, and the seed is printed."""
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell ignores SIGINT for processes in the background
        signal.signal(number, signal.default_int_handler)
    began_s, done = time.monotonic(), 0
    with folder() as scratch, TARGETS[name](Path(scratch)) as target:
        for seed in range(first_seed, first_seed + ceil(count / ROUND)):
            cases = min(ROUND, count - done)
            try:
                target.check(Random(seed), cases)
            except KeyboardInterrupt:
                break
            except BaseException:
                sys.stderr.write(f"{name}: seed {seed}\n")
                raise
            done += cases
    took_s = time.monotonic() - began_s
    sys.stdout.write(
        f"{name}: {done} cases in {took_s:.0f} s, {done / took_s:.0f} per second, seeds from {first_seed}\n"
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0)
