"""`python -m resctrl_emulator MOUNTPOINT --machine xeon`: an emulated resctrl, until it is unmounted or interrupted."""

import argparse
import sys
import time
from functools import cache, partial
from pathlib import Path

from resctrl_emulator import files, mount
from resctrl_emulator.emulator import EmulatedClock, Emulator
from resctrl_emulator.machines import MACHINES
from resctrl_emulator.worlds import ProcTasks
from slurm_sns.errors import SnsError
from slurm_sns.package_files import shared_path
from slurm_sns.policies.profile import Program

#: The exit code of a wrong command line, as argparse has it.
WRONG = 2


def host(cpus: Path = Path("/sys/devices/system/cpu")) -> tuple[int, tuple[int, ...]]:
    """How many CPUs this machine has, and the ids of its last-level caches; 0 where it does not say."""
    found = sorted(cpus.glob("cpu[0-9]*/cache/index3/id"))
    ids = {int(path.read_text()) for path in found}
    return len(list(cpus.glob("cpu[0-9]*"))), tuple(sorted(ids)) or (0,)


@cache
def programs(paths: tuple[Path, ...]) -> dict[str, Program]:
    """The programs of these files of profiles, or of ours. A mount does not wait for the reader, which takes 0.5 s."""
    from slurm_sns.config.profiles_yaml import read_profiles

    files = paths or (shared_path("conf/profiles/spread-n-share.yaml"),)
    return {each.name: each for path in files for each in read_profiles(path)}


def main(arguments: list[str] | None = None) -> int:
    """Mount and serve; 0 after the unmount, 2 with one line when something is wrong with the command line."""
    parser = argparse.ArgumentParser(prog="python -m resctrl_emulator", description=__doc__)
    parser.add_argument("mountpoint", type=Path, help="an existing directory")
    parser.add_argument("--machine", choices=sorted(MACHINES), default="xeon", help="the machine type")
    parser.add_argument("--mount-options", default="", help="of the kernel's mount: cdp,cdpl2,mba_MBps")
    parser.add_argument("--fit-host", action="store_true", help="with the CPUs and the cache ids of this machine")
    parser.add_argument("--clock", choices=("real", "emulated"), default="real", help="what makes programs advance")
    parser.add_argument("--processes", type=Path, default=Path("/proc"), help="where the tasks are")
    parser.add_argument(
        "--profiles", type=Path, action="append", default=[], help="a file of programs that can be started; several"
    )
    parser.add_argument("--copy", action="store_true", help="write plain files there instead of mounting, and end")
    chosen = parser.parse_args(arguments)
    machine = MACHINES[chosen.machine]
    clock = EmulatedClock() if chosen.clock == "emulated" else time.monotonic
    try:
        if chosen.mount_options:
            machine = machine.mounted_with(*chosen.mount_options.split(","))
        if chosen.fit_host:
            machine = machine.fitted(*host())
        emulator = Emulator(machine, ProcTasks(chosen.processes), clock)
        if chosen.copy:
            files.write_copy(emulator.tree, chosen.mountpoint)
            return 0
        mount.check()
        profiles = partial(programs, tuple(chosen.profiles))
        if chosen.profiles:
            profiles()
        mount.serve(emulator, chosen.mountpoint, profiles)
    except (ValueError, OSError, SnsError) as error:
        sys.stderr.write(f"{parser.prog}: {error}\n")
        return WRONG
    return 0


if __name__ == "__main__":
    sys.exit(main())
