# ruff: noqa: T201 -- a program, which prints what it reports
"""parsl: tasks, one that waits for others, one that fails; its blocks are jobs, which end when there is no task."""

import json
import time

import parsl
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.launchers import SimpleLauncher
from parsl.providers import SlurmProvider


@parsl.python_app
def square(number: int) -> int:
    import time

    time.sleep(1)
    return number * number


@parsl.python_app
def add(*numbers: int) -> int:
    return sum(numbers)


@parsl.python_app
def fail() -> None:
    raise ValueError("as meant")


provider = SlurmProvider(
    "main",
    cores_per_node=2,
    mem_per_node=2,
    init_blocks=1,
    max_blocks=3,
    exclusive=False,
    walltime="00:10:00",
    launcher=SimpleLauncher(),
    worker_init="export PATH=$HOME/clients/bin:$PATH",
)
executor = HighThroughputExecutor(label="slurm", max_workers_per_node=2, provider=provider)
config = Config(executors=[executor], strategy="simple", max_idletime=3, run_dir="parsl-logs")
with parsl.load(config):
    total = add(*(square(number) for number in range(20)))
    failing = fail()
    report = {"sum": total.result(), "failing": type(failing.exception()).__name__}
    while any(not status.terminal for status in executor.status().values()):
        time.sleep(1)
    report["blocks"] = sorted({status.state.name for status in executor.status().values()})
    report["again"] = square(12).result()
print(json.dumps(report))
