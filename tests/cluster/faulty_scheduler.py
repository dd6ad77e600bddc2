#!/opt/sns/bin/python
"""`sns` with a fault that a test chooses: the real `sns`, with one method wrapped.

A test installs it on the controller as `sns`, first in PATH; sns-daemon then starts it like the real one. The fault is
in the environment:

    SNS_FAULT=METHOD:before|after:NUMBER:WHAT

METHOD is a method of a port, a kind of order of the gate (place, regate, ...), or `clear`, a change that clears fields
of a job. The fault happens before or after its call NUMBER, counted from the start. WHAT is `kill` (SIGKILL to this
process), `freeze` (SIGSTOP to this process), or the name of a signal without SIG, which slurmctld gets.
"""

# This must come first, as in `sns`: the imports below import numba, which would otherwise compile everything again.
# ruff: noqa: E402
from slurm_sns.cli.compiled_code import keep_by_state

keep_by_state()

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from slurm_sns.cli import main
from slurm_sns.cli.live import parts
from slurm_sns.scheduler.gate.orders import OrderKind
from slurm_sns.slurm import rpc

SLURMCTLD = Path("/run/slurm/slurmctld.pid")  # containers/etc/slurm.conf


class Fault:
    """The fault that happens at one call of one method."""

    def __init__(self, text: str) -> None:
        self.method, self._when, number, self._what = text.split(":")
        self._left = int(number)

    def around(self, method: Callable[..., Any], kind: str = "") -> Callable[..., Any]:
        """The method, with the fault before or after it. With `kind`, only calls for such an order count."""

        def call(*values: Any, **named: Any) -> Any:
            if kind and values[0].kind != kind:
                return method(*values, **named)
            self._left -= 1
            self._pass("before")
            result = method(*values, **named)
            self._pass("after")
            return result

        return call

    def _pass(self, when: str) -> None:
        if self._left == 0 and when == self._when:
            if self._what in ("kill", "freeze"):
                os.kill(os.getpid(), signal.SIGKILL if self._what == "kill" else signal.SIGSTOP)
            else:
                os.kill(int(SLURMCTLD.read_text()), signal.Signals[f"SIG{self._what}"])


class Faulty:
    """A port; a call of one of its methods triggers the fault."""

    def __init__(self, port: object, fault: Fault) -> None:
        self._port, self._fault = port, fault

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._port, name)
        return self._fault.around(value) if name == self._fault.method else value


def build(*told: Any, real: Callable[..., Any] = parts.ports) -> Any:
    """The real ports, each of them wrapped."""
    ports = real(*told)
    given = {each.name: getattr(ports, each.name) for each in fields(ports) if each.name != "log"}
    return replace(ports, **{name: Faulty(port, FAULT) for name, port in given.items() if port is not None})


if "SNS_FAULT" in os.environ:
    FAULT = Fault(os.environ["SNS_FAULT"])
    if FAULT.method == "clear":  # to take gres and counts back takes two
        rpc._update = FAULT.around(rpc._update)
    elif FAULT.method in list(OrderKind):
        rpc.send = FAULT.around(rpc.send, FAULT.method)
    else:
        parts.ports = build
sys.exit(main())
