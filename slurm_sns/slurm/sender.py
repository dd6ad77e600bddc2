"""A process that sends orders for the scheduler: `python -m slurm_sns.slurm.sender PARENT`.

It writes `[]` once it is connected to Slurm. From then on, each line that it reads is a JSON list of orders, and
each line that it writes is the list of their results, in the same order: null (done), `["refused", text]`, or, as the
last one, `["unreachable", text]`. The orders after that one were not sent. The process ends when its input ends or
its parent dies.
"""

import ctypes
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator

from slurm_sns.errors import Refused, Unreachable
from slurm_sns.scheduler.gate.orders import GateOrder
from slurm_sns.slurm.api import pyslurm
from slurm_sns.slurm.executor import send
from slurm_sns.slurm.orders_json import Row, from_row

#: linux/prctl.h: the signal that this process gets when its parent dies.
PR_SET_PDEATHSIG = 1


def answered(rows: list[Row], carry_out: Callable[[GateOrder], None]) -> Iterator[list[str] | None]:
    """Carry out each, and stop as soon as slurmctld does not answer."""
    for row in rows:
        try:
            carry_out(from_row(row))
        except Refused as refusal:
            yield ["refused", str(refusal)]
        except Unreachable as problem:
            yield ["unreachable", str(problem)]
            return
        else:
            yield None


def end_with(parent: int) -> None:
    """End this process when its parent dies: an order whose result nobody reads must not be sent."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(0)


def main() -> None:
    """Serve the scheduler that started this process."""
    end_with(int(sys.argv[1]))
    for number in (signal.SIGTERM, signal.SIGINT):
        # The scheduler handles these signals and finishes what it has begun. Our input ends when it ends.
        signal.signal(number, signal.SIG_IGN)
    pyslurm()
    _write([])
    for line in sys.stdin:
        _write(list(answered(json.loads(line), send)))


def _write(answers: list[list[str] | None]) -> None:
    sys.stdout.write(json.dumps(answers) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
