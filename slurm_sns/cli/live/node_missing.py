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
    mounted = [line.split()[1] for line in _text(host / "proc/mounts").splitlines() if _kind(line) == "resctrl"]
    if mounted and str(root) not in mounted:
        return [f"{root} is not a resctrl file system; resctrl is mounted at {mounted[0]}: --root {mounted[0]}"]
    reasons = []
    if "resctrl" not in _text(host / "proc/filesystems").split():
        reasons = [*_processor(host), *_kernel(host)]
    return [*reasons, f"{root} is not a resctrl file system; mount it: {MOUNT}; or for good, in /etc/fstab: {FSTAB}"]


def _processor(host: Path) -> Iterator[str]:
    flags = _flags(host)
    if set(FLAGS) & flags:
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
    """The kernel's option, or its command line."""
    has_option = _has_option(host)
    if has_option is None:
        yield f"the kernel has no resctrl (/proc/filesystems): it needs {OPTIONS[0]}=y (before 5.6 {OPTIONS[1]})"
    elif not has_option:
        yield f"the kernel was built without {OPTIONS[0]}: it needs {OPTIONS[0]}=y (before 5.6 {OPTIONS[1]})"
    turned_off = re.search(r"(?:^|\s)(rdt=\S*!\S*)", _text(host / "proc/cmdline"))
    if turned_off:
        yield f"the kernel's command line has {turned_off[1]}: remove what begins with '!'"


def _has_option(host: Path) -> bool | None:
    """Whether the running kernel was built with one of `OPTIONS`; None if it does not say."""
    release = _text(host / "proc/sys/kernel/osrelease").strip()
    text = _unpacked(host / "proc/config.gz") or _text(host / "boot" / f"config-{release}")
    return any(f"{option}=y" in text.splitlines() for option in OPTIONS) if text else None


def _flags(host: Path) -> set[str]:
    found = re.search(r"^flags\s*:(.*)$", _text(host / "proc/cpuinfo"), re.MULTILINE)
    return set(found[1].split()) if found else set()


def _kind(line: str) -> str:
    """The file system type in a line of /proc/mounts."""
    words = line.split()
    return words[2] if len(words) > 2 else ""


def _unpacked(path: Path) -> str:
    try:
        with gzip.open(path, "rt", encoding="ascii", errors="replace") as file:
            return file.read()
    except (OSError, EOFError):
        return ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
