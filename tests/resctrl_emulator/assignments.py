"""Which group each task is in. A new task is in its parent's group; who is nowhere else is in the root group."""

from errno import EINVAL, EPERM, ESRCH
from re import compile as pattern
from typing import NamedTuple

from resctrl_emulator.groups import Group
from resctrl_emulator.machines import SPARSE_MASKS_SINCE
from resctrl_emulator.refusal import Refusal
from resctrl_emulator.worlds import Task, World

_NUMBER = pattern(r"[+-]?(?:0[xX][0-9a-fA-F]+|[0-9]+)\Z")
#: Since then one write may name several tasks, and a refusal names the one at which it stopped.
SEVERAL_TASKS_SINCE = SPARSE_MASKS_SINCE
_MOST = 2**31 - 1


class Caller(NamedTuple):
    """Who writes."""

    uid: int = 0
    task_id: int = 1


class Assignments:
    """The tasks of a machine and their groups."""

    def __init__(self, world: World, root: Group, kernel: tuple[int, int]) -> None:
        self._world = world
        self._root = root
        self._takes_several = kernel >= SEVERAL_TASKS_SINCE
        self._seen: dict[int, Task] = {}
        self._groups: dict[int, Group] = {}

    def refresh(self) -> None:
        """Forget who has ended, and put who is new into the parent's group."""
        tasks = self._world.tasks()
        for task_id in [at for at, task in self._seen.items() if at not in tasks or tasks[at].started != task.started]:
            del self._seen[task_id], self._groups[task_id]
        for task_id in sorted(tasks.keys() - self._seen.keys(), key=lambda at: (tasks[at].started, at)):
            task = self._seen[task_id] = tasks[task_id]
            self._groups[task_id] = self._groups.get(task.parent, self._root)

    def group_of(self, task_id: int) -> Group | None:
        """The task's group; None: there is no such task."""
        return self._groups.get(task_id)

    def of(self, group: Group) -> list[int]:
        """The tasks of a group, ascending; a control group has those of its monitoring groups, too."""
        # Only a task's child can be new in a group: an empty one stays empty without a look at all tasks.
        if group is self._root or any(group in (mine, mine.parent) for mine in self._groups.values()):
            self.refresh()
        return sorted(at for at, mine in self._groups.items() if group in (mine, mine.parent))

    def move_all(self, group: Group, to: Group) -> None:
        """The group is going to be removed."""
        for task_id in self.of(group):
            self._groups[task_id] = to

    def write(self, group: Group, text: str, caller: Caller) -> None:
        """Move the tasks of a write, one after the other, until one is refused.

        Raises:
            Refusal: as the kernel does.
        """
        self.refresh()
        if not self._takes_several:
            self._move(_number(text.strip(), ""), group, caller)
            return
        rest = text
        while rest and not rest.startswith("\n"):
            word, _, rest = rest.partition(",")
            word = word.strip()
            task_id = _number(word, f"Task list parsing error pid {word}")
            if task_id < 0:
                raise Refusal(EINVAL, f"Invalid pid {task_id}")
            try:
                self._move(task_id, group, caller)
            except Refusal as refusal:
                message = f"{refusal.message}\nError while processing task {task_id}"
                raise Refusal(refusal.errno or EINVAL, message) from None

    def _move(self, number: int, group: Group, caller: Caller) -> None:
        if number < 0:
            raise Refusal(EINVAL, "")
        task_id = number or caller.task_id
        current = self._groups.get(task_id)
        if current is None:
            raise Refusal(ESRCH, f"No task {number}")
        if caller.uid and caller.uid not in self._world.owners(task_id):
            raise Refusal(EPERM, f"No permission to move task {task_id}")
        if group.parent is not None and group.parent not in (current, current.parent):
            raise Refusal(EINVAL, "Can't move task to different control group")
        self._groups[task_id] = group


def _number(word: str, message: str) -> int:
    if not _NUMBER.match(word):
        raise Refusal(EINVAL, message)
    digits = word.lstrip("+-")
    base = 16 if digits[:2].lower() == "0x" else 8 if digits.startswith("0") else 10
    try:
        value = int(digits, base)
    except ValueError:  # 8 or 9 in an octal number
        raise Refusal(EINVAL, message) from None
    if value > _MOST:
        raise Refusal(EINVAL, message)
    return -value if word.startswith("-") else value
