"""Resctrl trees in plain directories: written by hand, or captured and made to answer like the kernel where tests ask.

`Tree` does what a plain directory does not do by itself: a new group has files, a write changes the domains that it
names, a thread is in one group, a group is removed with its files, CLOSIDs run out. What else the kernel checks is the
business of the emulator in tests/resctrl_emulator.
"""

import errno
import os
import shutil
from collections.abc import Callable, Mapping, Set
from pathlib import Path

from slurm_sns.node.resctrl.groups import Files
from slurm_sns.node.resctrl.schemata import lines, parse

ARCHIVE = Path(os.environ.get("SNS_SHARED", Path(__file__).parents[2].parent / "shared")) / (
    "resctrl/captured-trees.tar.xz"
)
NO_GROUPS = {"info", "mon_groups", "mon_data"}

INTEL_L3: Mapping[str, object] = {
    "cbm_mask": "fffff",
    "min_cbm_bits": 2,
    "num_closids": 16,
    "shareable_bits": "c0000",
    "sparse_masks": 0,
}
INTEL_MB: Mapping[str, object] = {"bandwidth_gran": 10, "delay_linear": 1, "min_bandwidth": 10, "num_closids": 8}
# What the kernel shows of an AMD EPYC (resctrl.rst, arch/x86/kernel/cpu/resctrl/core.c).
AMD_L3: Mapping[str, object] = {
    "cbm_mask": "ffff",
    "min_cbm_bits": 0,
    "num_closids": 16,
    "shareable_bits": "0",
    "sparse_masks": 1,
}
AMD_MB: Mapping[str, object] = {"bandwidth_gran": 1, "delay_linear": 0, "min_bandwidth": 0, "num_closids": 16}
MONITORING: Mapping[str, object] = {
    "mon_features": "llc_occupancy\nmbm_total_bytes\nmbm_local_bytes",
    "num_rmids": 192,
    "max_threshold_occupancy": 98304,
}


def build(root: Path, schemata: str, **info: Mapping[str, object]) -> Path:
    """A tree with these files in info/, by resource, and the root group's schemata."""
    (root / "info").mkdir(parents=True)
    (root / "info" / "last_cmd_status").write_text("ok\n")
    for resource, files in info.items():
        (root / "info" / resource).mkdir()
        for name, value in files.items():
            (root / "info" / resource / name).write_text(f"{value}\n")
    for name, text in {"schemata": schemata, "tasks": "1\n2\n", "mode": "shareable\n"}.items():
        (root / name).write_text(text)
    for name in NO_GROUPS:
        (root / name).mkdir(exist_ok=True)
    return root


def intel(root: Path) -> Path:
    return build(root, "    L3:0=fffff;1=fffff\n    MB:0=100;1=100\n", L3=INTEL_L3, MB=INTEL_MB, L3_MON=MONITORING)


def amd(root: Path) -> Path:
    return build(root, "L3:0=ffff;8=ffff\nMB:0=2048;8=2048\n", L3=AMD_L3, MB=AMD_MB, L3_MON=MONITORING)


class Killed(BaseException):
    """What kill -9 is to a test: nothing of the killed code runs after it, but `finally`."""


class Tree(Files):
    """A plain directory that answers as resctrl does. `before` is called before each change, with its number."""

    def __init__(self, root: Path, closids: int = 16, before: Callable[[int], None] = lambda _: None) -> None:
        self.root, self.closids, self.before = root, closids, before
        self.full = (root / "schemata").read_text()
        #: What was done, in its order: "make x", "remove x", "x < text of schemata", "x < thread".
        self.changes: list[str] = []

    def write(self, path: Path, text: str) -> None:
        self._note(f"{path.parent.name} < {text.strip()}")
        if not path.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "no such group", str(path))
        if path.name == "tasks":
            self._move(path, text.strip())
        else:
            shown = parse(path.read_text())
            for resource, values in parse(text).items():
                shown[resource] |= values
            path.write_text(lines(shown))
        self._says("ok")

    def make_directory(self, path: Path) -> None:
        self._note(f"make {path.name}")
        if path.exists():
            raise FileExistsError(errno.EEXIST, "exists", str(path))
        if len(self.groups()) + 1 >= self.closids:
            self._says("Out of CLOSIDs")
            raise OSError(errno.ENOSPC, "no space", str(path))
        path.mkdir()
        for name, text in {"schemata": self.full, "tasks": "", "mode": "shareable\n"}.items():
            (path / name).write_text(text)

    def remove_directory(self, path: Path) -> None:
        self._note(f"remove {path.name}")
        if not path.exists():
            raise FileNotFoundError(errno.ENOENT, "no such group", str(path))
        tasks = self.root / "tasks"
        tasks.write_text(tasks.read_text() + (path / "tasks").read_text())
        shutil.rmtree(path)

    def end_all_but(self, threads: Set[int]) -> None:
        """These threads go on, all others have ended."""
        for file in self._task_files():
            file.write_text("".join(f"{thread}\n" for thread in file.read_text().split() if int(thread) in threads))

    def groups(self) -> list[Path]:
        return sorted(path for path in self.root.iterdir() if path.is_dir() and path.name not in NO_GROUPS)

    def _task_files(self) -> list[Path]:
        return [path for path in (self.root / "tasks", *(group / "tasks" for group in self.groups())) if path.is_file()]

    def _move(self, path: Path, thread: str) -> None:
        for file in self._task_files():
            file.write_text("".join(f"{other}\n" for other in file.read_text().split() if other != thread))
        path.write_text(f"{path.read_text()}{thread}\n")

    def _note(self, change: str) -> None:
        self.before(len(self.changes))
        self.changes.append(change)

    def _says(self, status: str) -> None:
        (self.root / "info" / "last_cmd_status").write_text(f"{status}\n")


def contents(root: Path) -> dict[str, str]:
    """Every file below the root and its text."""
    return {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("*")) if path.is_file()}
