"""The hidden directory .emulator: what a real machine has elsewhere, or not at all.

| file | reads | takes |
|---|---|---|
| `clock` | seconds | with an emulated clock: `advance SECONDS` |
| `programs` | a JSON object a line: what runs, where, how fast | below |
| `counters` | a line a program: first task id, instructions, cycles | |
| `faults` | a JSON object a line: what is still to be refused | below |

`programs` takes one JSON object a write. `{"stop": TASK}` ends a program; this starts one of the file of profiles:

    {"start": "mg", "processes": 16, "scale": 1, "tasks": [4711], "cores": {"0": 8, "1": 8}, "work_s": 97.86}

With `"work_s": "profile"` it has as much work as the profile's run took. Without `work_s` it runs until it is stopped,
or its tasks end. `faults` takes one of

    {"path": "job/schemata", "access": "write", "errno": "EINVAL", "status": "Mask out of range", "times": 1}
    {"path": "job", "access": "make", "errno": "ENOSPC", "status": "Out of CLOSIDs"}
    {"group": "job", "domain": 0, "feature": "mbm_total_bytes", "reads": "Unavailable"}
    {"reset": true}

with access write, read, make or remove; `"reads": null` ends that fault, `reset` sets the counters to 0.
"""

import errno
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from errno import EINVAL
from math import isinf
from typing import Any

from resctrl_emulator.emulator import Emulator, Fault
from resctrl_emulator.files import Directory, File
from resctrl_emulator.programs import Program
from resctrl_emulator.refusal import Refusal
from slurm_sns.policies.profile import Program as Profile

#: The programs that can be started, by name: read when the first is asked for.
Profiles = Callable[[], Mapping[str, Profile]]
NAME = ".emulator"
#: A job's task says itself which program it is; everything else is root's.
MODES = {
    f"/{NAME}": 0o711,
    f"/{NAME}/programs": 0o666,
    **{f"/{NAME}/{name}": 0o600 for name in ("clock", "counters", "faults")},
}
ACCESSES = ("write", "read", "make", "remove")


def directory(emulator: Emulator, profiles: Profiles) -> Directory:
    """The hidden directory."""

    def taking(take: Callable[[Mapping[str, Any]], None]) -> Callable[[bytes, object], None]:
        def write(data: bytes, _caller: object) -> None:
            try:
                wish = json.loads(data)
                take(wish)
            except Refusal:
                raise
            except (ValueError, TypeError, KeyError, AttributeError) as problem:
                raise Refusal(EINVAL) from problem

        return write

    entries = {
        "clock": File(lambda: f"{emulator.clock()}\n", lambda data, _: _advance(emulator, data)),
        "programs": File(lambda: _lines(_programs(emulator)), taking(lambda wish: _program(emulator, profiles, wish))),
        "counters": File(lambda: _counters(emulator)),
        "faults": File(
            lambda: _lines(vars(fault) for fault in emulator.faults if fault.times > 0),
            taking(lambda wish: _fault(emulator, wish)),
        ),
    }
    return Directory(lambda: entries, _refuse)


def _refuse(_name: str, _owner: tuple[int, int]) -> None:
    raise Refusal(errno.EPERM)


def _advance(emulator: Emulator, data: bytes) -> None:
    word, _, seconds = data.decode().strip().partition(" ")
    try:
        if word != "advance" or float(seconds) < 0:
            raise Refusal(EINVAL)
        emulator.advance(float(seconds))
    except (ValueError, TypeError) as problem:
        raise Refusal(EINVAL) from problem


def _programs(emulator: Emulator) -> Iterator[dict[str, Any]]:
    rates = emulator.programs.rates()
    for program in emulator.programs.all():
        rate = rates.get(program)
        group = next(filter(None, map(emulator.tree.tasks.group_of, program.tasks)), None)
        yield {
            "name": program.name,
            "tasks": program.tasks,
            "group": group and group.name,
            "cores": program.cores,
            "ways": rate.ways if rate else {},
            "gbps": rate.gbps if rate else {},
            "speed": rate.speed if rate else 0.0,
            "ipc": rate.ipc if rate else 0.0,
            "done_s": program.done_s,
            "work_s": None if isinf(program.work_s) else program.work_s,
        }


def _counters(emulator: Emulator) -> str:
    return "".join(
        f"{program.tasks[0]} {int(program.instructions)} {int(program.cycles)}\n" for program in emulator.programs.all()
    )


def _program(emulator: Emulator, profiles: Profiles, wish: Mapping[str, Any]) -> None:
    if "stop" in wish:
        emulator.programs.stop(int(wish["stop"]))
        return
    run = profiles()[wish["start"]].at(int(wish["processes"]))[int(wish.get("scale", 1))]
    cores = {int(domain): int(count) for domain, count in wish["cores"].items()}
    if not set(cores) <= set(emulator.tree.machine.llc_domains) or min(cores.values()) < 1 or not wish["tasks"]:
        raise Refusal(EINVAL)
    tasks = tuple(map(int, wish["tasks"]))
    asked = wish.get("work_s", "inf")
    work_s = run.time_s if asked == "profile" else float(asked)
    emulator.programs.start(Program(str(wish["start"]), run, tasks, cores, work_s))


def _fault(emulator: Emulator, wish: Mapping[str, Any]) -> None:
    counters = emulator.tree.counters
    if "path" in wish:
        if wish["access"] not in ACCESSES:
            raise Refusal(EINVAL)
        number = getattr(errno, wish["errno"])
        emulator.faults.append(
            Fault(str(wish["path"]), wish["access"], number, str(wish.get("status", "")), int(wish.get("times", 1)))
        )
    elif counters is None:
        raise Refusal(EINVAL)
    elif wish.get("reset"):
        counters.reset()
    else:
        group = emulator.tree.groups[wish["group"]] if wish["group"] else emulator.tree.root
        counters.fail(group.rmid or 0, int(wish["domain"]), str(wish["feature"]), wish["reads"])


def _lines(objects: Iterable[Mapping[str, Any]]) -> str:
    return "".join(f"{json.dumps(each)}\n" for each in objects)
