"""Why a directory is no resctrl file system: what the processor or its BIOS, the kernel, or the mount table lack.

Each reason is one line that says what to do. Source: the kernel's Documentation/filesystems/resctrl.rst (flags, mount)
and Documentation/admin-guide/kernel-parameters.txt (rdt=). The kernel registers the file system only on a processor
that has one of the flags.
"""

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

from slurm_sns.errors import SnsError

ROOT = Path("/sys/fs/resctrl")
MOUNT = f"mount -t resctrl resctrl {ROOT}"
FSTAB = f"resctrl {ROOT} resctrl defaults 0 0"

#: Allocation of L3, of L2 and of bandwidth, and monitoring, on Intel's processors and on AMD's.
FLAGS = ("rdt_a", "cat_l3", "cat_l2", "mba", "cqm_llc")
#: The kernel's option: since 5.6, since 5.0, since 4.14, since 4.10.
OPTIONS = ("CONFIG_X86_CPU_RESCTRL", "CONFIG_X86_RESCTRL", "CONFIG_INTEL_RDT", "CONFIG_INTEL_RDT_A")


def require(root: Path) -> None:
    """Accept a resctrl file system.

    Raises:
        SnsError: it is none; one line says what is missing.
    """
    found = missing(root)
    if found:
        raise SnsError("; ".join(found))


def missing(root: Path, host: Path = Path("/")) -> list[str]:
    """What is missing at `root`, in the order in which to repair it; empty for a resctrl file system.

    `host` is the directory with this machine's proc and boot.
    """
    if (root / "info").is_dir():
        return []
    mounts = [line.split() for line in text_of(host / "proc/mounts").splitlines()]
    mounted = [words[1] for words in mounts if words[2:3] == ["resctrl"]]
    if mounted and str(root) not in mounted:
        return [f"{root} is not a resctrl file system; resctrl is mounted at {mounted[0]}: --root {mounted[0]}"]
    reasons = []
    if "resctrl" not in text_of(host / "proc/filesystems").split():
        reasons = [*_processor(host), *_kernel(host)]
    return [*reasons, f"{root} is not a resctrl file system; mount it: {MOUNT}; or for good, in /etc/fstab: {FSTAB}"]


def _processor(host: Path) -> Iterator[str]:
    found = re.search(r"^flags\s*:(.*)$", text_of(host / "proc/cpuinfo"), re.MULTILINE)
    flags = found[1].split() if found else []
    if set(FLAGS).intersection(flags):
        return
    listed = ", ".join(FLAGS)
    if "hypervisor" in flags:
        yield f"the processor shows none of {listed} (/proc/cpuinfo): a virtual machine whose host hides them"
    else:
        yield (
            f"the processor shows none of {listed} (/proc/cpuinfo): it has no cache control, or the BIOS hides it; "
            "BIOS: switch on Resource Director Technology (Intel) or Platform QoS (AMD)"
        )


def _kernel(host: Path) -> Iterator[str]:
    """The kernel's option, if the running kernel says with which it was built, or its command line."""
    release = text_of(host / "proc/sys/kernel/osrelease").strip()
    built_with = _unpacked(host / "proc/config.gz") or text_of(host / "boot" / f"config-{release}")
    if not built_with:
        yield f"the kernel has no resctrl (/proc/filesystems): it needs {OPTIONS[0]}=y (before 5.6 {OPTIONS[1]})"
    elif not {f"{option}=y" for option in OPTIONS}.intersection(built_with.splitlines()):
        yield f"the kernel was built without {OPTIONS[0]}: it needs {OPTIONS[0]}=y (before 5.6 {OPTIONS[1]})"
    turned_off = re.search(r"(?:^|\s)(rdt=\S*!\S*)", text_of(host / "proc/cmdline"))
    if turned_off:
        yield f"the kernel's command line has {turned_off[1]}: remove what begins with '!'"


def _unpacked(path: Path) -> str:
    try:
        with gzip.open(path, "rt", encoding="ascii", errors="replace") as file:
            return file.read()
    except (OSError, EOFError):
        return ""


def text_of(path: Path) -> str:
    """What the file holds; nothing where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
