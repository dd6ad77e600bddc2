"""What the kernel answers when it refuses a change of resctrl: the errno and its own words.

The kernel gives one errno for many mistakes and says the rest in `info/last_cmd_status`, which the next command
overwrites: one line, since Linux 6.7 also two. Source: the kernel's Documentation/filesystems/resctrl.rst.
"""

import errno
import os

from slurm_sns.errors import SnsError


class ResctrlError(SnsError):
    """A change or a read of resctrl failed. `errno` is the kernel's number, `status` its words in last_cmd_status."""

    def __init__(self, what: str, number: int, status: str = "") -> None:
        status = "; ".join(status.splitlines())
        self.errno, self.status = number, status
        # "ok" beside an error means that the kernel has no words for it (an unknown domain, for example).
        words = f" ({status})" if status and status != "ok" else ""
        super().__init__(f"{what}: {os.strerror(number)}{words}")


class CannotMake(ResctrlError):
    """The machine has no room for one more group. The job runs without a partition of its own."""


class OutOfClosids(CannotMake):
    """All CLOSIDs are taken, by our groups, by others' groups and by the root group."""


class OutOfRmids(CannotMake):
    """All RMIDs are taken, or the last free ones rest (EBUSY): lines of removed groups are in the cache still.

    A group with a partition needs one, too.
    """


class NoRoom(CannotMake):
    """Exclusive groups of others hold the whole cache."""


class GroupGone(ResctrlError):
    """The group or the whole tree no longer exists: somebody removed it or unmounted resctrl."""


class DeadTask(ResctrlError):
    """The thread has ended."""


class NotPermitted(ResctrlError):
    """We are not root, or the task may not be moved."""


class Invalid(ResctrlError):
    """The kernel does not take this text; nothing has changed."""


class Busy(ResctrlError):
    """Another program holds the lock of the tree, or the kernel cannot do it now."""


_CLASSES: dict[int, type[ResctrlError]] = {
    errno.ENOENT: GroupGone,
    errno.ENODEV: GroupGone,  # the group was removed while the file was open
    errno.ESRCH: DeadTask,
    errno.EPERM: NotPermitted,
    errno.EACCES: NotPermitted,
    errno.EINVAL: Invalid,
    errno.EBUSY: Busy,
}


def refusal(what: str, number: int, status: str = "") -> ResctrlError:
    """The error of the class that fits; `what` names the file or the group and what was to be done."""
    if number == errno.ENOSPC or (number == errno.EBUSY and "rmid" in status.lower()):
        return _no_space(status)(what, number, status)
    return _CLASSES.get(number, ResctrlError)(what, number, status)


def _no_space(status: str) -> type[CannotMake]:
    # Kernels differ in the case of these words.
    if "closid" in status.lower():
        return OutOfClosids
    if "rmid" in status.lower():
        return OutOfRmids
    return NoRoom
