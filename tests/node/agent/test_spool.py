"""A report is on the disk as a whole, or not at all."""

import errno
import os
import resource
from collections.abc import Callable
from pathlib import Path

from slurm_sns.node.agent.spool import SpoolFiles

#: The longest file that a process with little room may write; a longer write is cut short, as on an almost full disk.
ROOM = 4096


def with_little_room(does: Callable[[], object]) -> int:
    """The number of the error with which it fails in a process of its own; 0 if it does not.

    In our own process the limit would meet pytest's output, too.
    """
    child = os.fork()
    if child == 0:
        number = 255
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, ROOM))
            does()
            number = 0
        except OSError as problem:
            number = problem.errno or number
        finally:
            os._exit(number)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_disk_that_takes_a_part_of_a_report_is_full(tmp_path: Path) -> None:
    path = tmp_path / "report"
    assert with_little_room(lambda: SpoolFiles().write(path, b"x" * (ROOM + 100))) == errno.EFBIG
    assert with_little_room(lambda: SpoolFiles().write(path, b"x" * (ROOM - 100))) == 0
