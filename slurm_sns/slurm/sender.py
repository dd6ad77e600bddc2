"""A process that sends orders for the scheduler: `python -m slurm_sns.slurm.sender PARENT`.

Its standard input and output are pipes to the process that started it, which nobody else can open: so they carry
pickles. It writes an empty list once it is connected to Slurm. From then on it reads lists of updates, each the orders
of one RPC. It writes for each list what came of its updates, in the same order: a list with None (done) or `Refused`
for each order, or, as the last one, `Unreachable`. The updates after that one were not sent. The process ends when its
input ends or its parent dies.
"""

import ctypes
import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

from slurm_sns.errors import Refused, Unreachable
from slurm_sns.scheduler.gate.orders import GateOrder
from slurm_sns.slurm.api import pyslurm
from slurm_sns.slurm.rpc import send_together

UpdateResult = Sequence[Refused | None] | Unreachable
CarryOut = Callable[[Sequence[GateOrder]], Sequence[Refused | None]]

#: linux/prctl.h: the signal that this process gets when its parent dies.
PR_SET_PDEATHSIG = 1


def results(updates: Iterable[Sequence[GateOrder]], carry_out: CarryOut) -> Iterator[UpdateResult]:
    """Carry out each, and stop as soon as slurmctld does not answer."""
    for update in updates:
        try:
            yield carry_out(update)
        except Unreachable as problem:
            yield problem
            return


def end_with(parent: int) -> None:
    """End this process when its parent dies: an order whose result nobody reads must not be sent."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(0)


def serve(carry_out: CarryOut) -> None:
    """Carry out what comes until the input ends."""
    _write([])
    while True:
        try:
            updates = pickle.load(sys.stdin.buffer)  # noqa: S301 -- our parent's pipe
        except EOFError:
            return
        _write(list(results(updates, carry_out)))


def main() -> None:
    """Serve the scheduler that started this process."""
    end_with(int(sys.argv[1]))
    for number in (signal.SIGTERM, signal.SIGINT):
        # The scheduler handles these signals and finishes what it has begun. Our input ends when it ends.
        signal.signal(number, signal.SIG_IGN)
    pyslurm()
    serve(send_together)


def _write(done: list[UpdateResult]) -> None:
    pickle.dump(done, sys.stdout.buffer)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
