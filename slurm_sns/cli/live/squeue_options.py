"""The options of squeue that `sns queue` has, with squeue's meaning: which jobs, in which order, with which fields.

A field has squeue's letter (`squeue --format`). What slurm_sns does not know of a job has no letter here.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from math import inf
from typing import Any, NamedTuple

from slurm_sns.cli.live.asking import named
from slurm_sns.cli.live.queue_view import COLUMNS, since_s
from slurm_sns.cli.live.terminal import RUNS
from slurm_sns.cli.live.waiting_words import cell
from slurm_sns.errors import BadInput
from slurm_sns.log import printable
from slurm_sns.node_lists import folded
from slurm_sns.scheduler.answers.folded_arrays import label_parts
from slurm_sns.task_ids import task_of

Row = Mapping[str, Any]
Key = Callable[[Row], Any]

#: Slurm's names of the states that jobs of `sns queue` have, by the words of slurm_sns; all others wait.
_STATES = {"running": ("R", "RUNNING"), "suspended": ("S", "SUSPENDED"), "completing": ("CG", "COMPLETING")}
_PENDING = ("PD", "PENDING")
#: The valid names of states: Slurm's, and those of slurm_sns that Slurm does not have.
STATES = (*_PENDING, *(name for names in _STATES.values() for name in names), "WAITING", "HELD", "PLACED", "ALL")
_FIELD = re.compile(r"%(\.?)([0-9]{0,4})([A-Za-z])")
#: Later than any job began: a time to count from where only the order matters.
LATE_S = float(2**40)
#: What squeue prints where there is nothing to say.
_NOTHING = "N/A"


class SqueueField(NamedTuple):
    """A field of squeue: its letter, its heading, its text, and by what jobs are sorted (None: by the text)."""

    letter: str
    heading: str
    text: Callable[[Row, float], str]
    key: Key | None = None


def numbers(row: Row) -> tuple[int, int]:
    """The number of the job or of its array, and its task, of several the first; -1 for a job without one."""
    from slurm_sns.scheduler.gate.arrays import listed  # imports much of the scheduler

    array, task, tasks = label_parts(row)
    return array, next(listed(tasks), -1) if tasks else -1 if task is None else task


def _job_id(row: Row) -> int:
    """Slurm's job id; that of its array for a task that stands in the array's record, as Slurm has no other."""
    number = int(row["job_id"])
    return number if task_of(number) is None else label_parts(row)[0]


def _state(row: Row) -> tuple[str, str]:
    return _STATES.get(row["state"], _PENDING)


def _state_place(row: Row) -> int:
    """Slurm sorts states by their numbers: jobs that wait come first."""
    return [_PENDING, *_STATES.values()].index(_state(row))


def _nodes(row: Row) -> int | None:
    if row["state"] in RUNS:
        return len(row["nodes"])
    return None if row["demand"] is None else int(row["demand"]["nodes"])


def _time(row: Row, now_s: float) -> str:
    """How long the job has run, as squeue writes it: 0:00, 1:02:03, 1-02:03:04."""
    minutes, seconds = divmod(int(since_s(row, now_s)) if row["state"] in RUNS else 0, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}-{hours:02}:{minutes:02}:{seconds:02}"
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def _began_s(row: Row) -> float:
    """When it started; infinite for a waiting job."""
    return float(row["start_s"]) if row["state"] in RUNS and row["start_s"] else inf


def _start_s(row: Row) -> float:
    """When it started; of a waiting job the start by limits, as in squeue, infinite if it is not known."""
    by_limits_s = _of_start(row, "limits_s")
    return by_limits_s if _began_s(row) == inf else _began_s(row)


def _of_start(row: Row, name: str) -> float:
    """A moment of the row's estimated start; infinite if it is not known."""
    moment = (row.get("starts") or {}).get(name)
    return inf if moment is None else float(moment)


def _moment(at_s: float) -> str:
    return _NOTHING if at_s == inf else datetime.fromtimestamp(at_s).astimezone().strftime("%Y-%m-%dT%H:%M:%S")


def _why(row: Row) -> str:
    return "None" if row["state"] in RUNS else cell(row) or "None"


FIELDS = (
    SqueueField("A", "JOBID", lambda row, _: str(_job_id(row)), _job_id),
    SqueueField("C", "CPUS", lambda row, _: str(row["cpus"]), lambda row: row["cpus"]),
    SqueueField("D", "NODES", lambda row, _: str(_nodes(row) or _NOTHING), lambda row: _nodes(row) or 0),
    SqueueField("F", "ARRAY_JOB_ID", lambda row, _: str(label_parts(row)[0]), numbers),
    SqueueField("M", "TIME", _time, lambda row: -_began_s(row)),
    SqueueField("N", "NODELIST", lambda row, _: folded(row["nodes"])),
    SqueueField("P", "PARTITION", lambda row, _: row["partition"]),
    SqueueField(
        "R", "NODELIST(REASON)", lambda row, _: folded(row["nodes"]) if row["state"] in RUNS else f"({_why(row)})"
    ),
    SqueueField("S", "START_TIME", lambda row, _: _moment(_start_s(row)), _start_s),
    SqueueField("T", "STATE", lambda row, _: _state(row)[1], _state_place),
    SqueueField("V", "SUBMIT_TIME", lambda row, _: _moment(row["submit_s"]), lambda row: row["submit_s"]),
    SqueueField("a", "ACCOUNT", lambda row, _: row["account"]),
    SqueueField("i", "JOBID", lambda row, _: row["label"], numbers),
    SqueueField("j", "NAME", lambda row, _: row["name"]),
    SqueueField("r", "REASON", lambda row, _: _why(row)),
    SqueueField("t", "ST", lambda row, _: _state(row)[0], _state_place),
    SqueueField("u", "USER", lambda row, _: row["user"]),
)
_BY_LETTER = {field.letter: field for field in FIELDS}

#: By what the columns of `sns queue` sort where that is not their text; SINCE sorts the shortest time first.
_OF_COLUMNS: Mapping[str, Key] = {
    "POS": lambda row: inf if row["position"] is None else row["position"],
    "JOBID": numbers,
    "SIZE": lambda row: row["cpus"],
    "SINCE": lambda row: since_s(row, LATE_S),
    "START": lambda row: _of_start(row, "low_s"),
    "BY-LIMITS": lambda row: _of_start(row, "limits_s"),
}


#: So many characters of users' names fit into a request to the scheduler, which has 4 KiB.
MOST_OF_REQUEST = 1000


class JobFilter(NamedTuple):
    """Which jobs are shown; each part is a list as squeue takes it, None for all."""

    users: str | None = None
    accounts: str | None = None
    partitions: str | None = None
    states: str | None = None
    jobs: str | None = None

    def request(self) -> dict[str, Any]:
        """What a question for the queue says of it: the users, as far as they fit into a request."""
        if self.users is None or len(self.users) > MOST_OF_REQUEST:
            return {}
        return {"users": _listed("--user", self.users)}

    def of(self, rows: Sequence[Row]) -> list[Row]:
        """Those of the rows that every list names.

        Raises:
            BadInput: a list is empty, or names a state or a job that cannot be.
        """
        tests = [made(part) for made, part in zip(_TESTS, self, strict=True) if part is not None]
        return [row for row in rows if all(test(row) for test in tests)]


def _of_users(users: str) -> Callable[[Row], bool]:
    names = _listed("--user", users)
    return lambda row: row["user"] in names


def _of_accounts(accounts: str) -> Callable[[Row], bool]:
    names = _listed("--account", accounts)
    return lambda row: row["account"] in names


def _of_partitions(partitions: str) -> Callable[[Row], bool]:
    names = set(_listed("--partition", partitions))
    return lambda row: not names.isdisjoint(row["partition"].split(","))


def _of_states(states: str) -> Callable[[Row], bool]:
    names = [name.upper() for name in _listed("--states", states)]
    for name in names:
        if name not in STATES:
            raise BadInput(f"--states {name!r}: valid: {', '.join(STATES)}")
    return lambda row: not {"ALL", *_state(row), row["state"].partition(",")[0].upper()}.isdisjoint(names)


def _of_jobs(jobs: str) -> Callable[[Row], bool]:
    wanted = [named(name) for name in _listed("--jobs", jobs)]
    return lambda row: any(_is(row, each["job_id"], each.get("task")) for each in wanted)


def _is(row: Row, number: int, task: int | None) -> bool:
    """Whether the row is the job, belongs to the array, or has the task; tasks that Slurm cuts off count as there."""
    from slurm_sns.scheduler.gate.arrays import listed

    array, own_task, tasks = label_parts(row)
    if task is None:
        return number in (array, row["job_id"])
    if array != number or not tasks:
        return array == number and task == own_task
    return task in listed(tasks) or (tasks.endswith("...") and task > max(listed(tasks), default=-1))


_TESTS = (_of_users, _of_accounts, _of_partitions, _of_states, _of_jobs)


def _listed(option: str, text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise BadInput(f"{option} {text!r}: valid is a list with commas")
    return names


def in_order(rows: Sequence[Row], by: str | None) -> list[Row]:
    """The rows as `squeue --sort` sorts them, by letters or our columns; `-` reverses. None leaves them in queue order.

    Raises:
        BadInput: a name is neither.
    """
    columns = {column.name: column for column in COLUMNS}
    keys: list[tuple[Key, bool]] = []
    for word in () if by is None else _listed("--sort", by):
        name = word.lstrip("+-")
        field = _BY_LETTER.get(name)
        column = columns.get(name.upper()) if len(name) > 1 else None
        if field is not None:
            keys.append((field.key or partial(_text, field.text), word[0] == "-"))
        elif column is not None:
            keys.append((_OF_COLUMNS.get(column.name) or partial(_text, column.value), word[0] == "-"))
        else:
            valid = f"squeue's letters {', '.join(_BY_LETTER)}, and the columns {', '.join(columns).lower()}"
            raise BadInput(f"--sort {word!r}: valid: {valid}; - before one reverses")
    found = list(rows)
    for key, is_reversed in reversed(keys):
        found.sort(key=key, reverse=is_reversed)
    return found


def _text(of: Callable[[Row, float], str], row: Row) -> str:
    return of(row, LATE_S)


class SqueueFormat:
    """squeue's format, `%.18i %j`: fields with widths (`.` for the right side), and text between them."""

    def __init__(self, text: str) -> None:
        """Read the format.

        Raises:
            BadInput: a field is unknown, or `%` begins none.
        """
        self._parts: list[str | tuple[SqueueField, str, int]] = []
        end = 0
        for found in _FIELD.finditer(text):
            self._parts.append(_between(text[end : found.start()]))
            side, width, letter = found.groups()
            if letter not in _BY_LETTER:
                raise BadInput(f"--format {found.group()!r}: valid fields: {_VALID_FIELDS}")
            self._parts.append((_BY_LETTER[letter], side, int(width or 0)))
            end = found.end()
        self._parts.append(_between(text[end:]))

    def lines(self, rows: Sequence[Row], now_s: float, *, heading: bool = True) -> Iterator[str]:
        """The headings, and a line for each job."""
        if heading:
            yield self._line(lambda field: field.heading)
        for row in rows:
            yield self._line(lambda field, row=row: field.text(row, now_s))  # type: ignore[misc]

    def _line(self, text: Callable[[SqueueField], str]) -> str:
        return "".join(each if isinstance(each, str) else _fitted(text(each[0]), *each[1:]) for each in self._parts)


_VALID_FIELDS = ", ".join(f"%{field.letter} ({field.heading})" for field in FIELDS)


def _between(text: str) -> str:
    if "%" in text:
        raise BadInput(f"--format {text!r}: a field is %, a width if you like (%8, %.8) and a letter: {_VALID_FIELDS}")
    return printable(text)


def _fitted(text: str, side: str, width: int) -> str:
    """The text in a column of that width, cut off if it is longer; 0: as wide as it is."""
    shown = printable(text)
    if not width:
        return shown
    return shown[:width].rjust(width) if side else shown[:width].ljust(width)
