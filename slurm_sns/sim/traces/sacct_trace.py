"""Read what `sacct -P` prints as a trace: the jobs as they were submitted, with what they had and how long they ran.

Columns are found by their names, in any order. A line costs itself only: what is no job that can be replayed is counted
by reason. Times are seconds since the first submit; a local time is read as if no clock had ever been put back.

- A job has the nodes, CPUs and memory that it was given, or what it asked for where the dump does not say. Amounts of
  the whole job are divided by its nodes, rounded up. CPUs become cores by the CPUs of a core of its nodes.
- ReqMem with `n` (each node) or `c` (each CPU) comes first, unless it is 0, because TRES of old versions are of a node
  at times. Then the memory in AllocTRES, in ReqTRES, and in ReqMem, each of the whole job.
- Of a job that was requeued (`sacct -D`) the last run counts, with the submit of its record.
- GPUs are those that the job asked for, by type, or that it was given where the dump does not say, on each node. Jobs
  with other generic resources are left out, and jobs with GPUs where no node has any.
- Partition and Constraints say which nodes a job may use, if the nodes came with partitions and features.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np

from slurm_sns.coverage import sacct
from slurm_sns.coverage.sbatch_options import memory_mb
from slurm_sns.errors import BadInput
from slurm_sns.model import Gpus
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.sim.trace import Column, Flags, Integers, TraceArrays, arrivals
from slurm_sns.sim.traces.columns import LARGEST, NotPlain, plain_table
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.gpus import gpus_in_tres, is_number_of_gpus, on_each_node
from slurm_sns.sim.traces.plain_texts import plain_moments_s, plain_numbers
from slurm_sns.sim.traces.site_partitions import EVERYWHERE, Nowhere, SitePartitions
from slurm_sns.sim.traces.trace_builder import RecordBuilder

_NODES = ("AllocNodes", "NNodes", "ReqNodes")
_CPUS = ("AllocCPUS", "NCPUS", "ReqCPUS")
_TRES = ("AllocTRES", "ReqTRES")
_RUN = ("ElapsedRaw", "Elapsed")
_LIMITS = ("TimelimitRaw", "Timelimit")
_NUMBERS = ("JobIDRaw", "JobID")
#: Of each group one column must be there; the first one is the best.
NEEDS = (
    _NUMBERS,
    ("Submit",),
    ("State",),
    (*_RUN, "End"),
    ("NNodes", *_NODES, *_TRES),
    (*_CPUS, *_TRES),
    ("AllocTRES", "ReqTRES", "ReqMem"),
)
READ = {column for group in NEEDS for column in group}
READ |= {"Start", "Partition", "Constraints", "Account", "Priority", *_LIMITS}

#: Where most texts have the plainest form, these are read at once.
_PLAIN = {sacct.moment_s: plain_moments_s, sacct.job_number: plain_numbers}
#: The states as numbers.
_ENDED, _CANCELLED, _NOT_ENDED = range(3)
#: The set of nodes of a job that has none here.
_NOWHERE = -1
EARLIER_RUN = "earlier run of a requeued job"
WRONG_FIELDS = "line with another number of fields than the header"
#: More `|` than a line of any other format has.
_MANY = 3


def header_of_sacct(source: TraceFile) -> sacct.SacctHeader | None:
    """The header of a dump of sacct; None if the file is something else.

    Raises:
        BadInput: it is a dump whose header is missing, or one that is not meant for programs.
    """
    line = source.first_line()
    if header := sacct.header_in(line):
        return header
    if line.split()[:1] in (["JobID"], ["JobIDRaw"]):
        raise BadInput(f"{source.name}: sacct printed a table, or one column; valid with -P: {sacct.COMMAND}")
    if line.count("|") >= _MANY and not line.startswith(";"):
        raise BadInput(
            f"{source.name}: line 1 names no JobID; valid is a dump of sacct with its header: {sacct.COMMAND}"
        )
    return None


def read_sacct(
    source: TraceFile,
    node_arrays: NodeArrays,
    partitions: SitePartitions = EVERYWHERE,
    *,
    load_factor: float = 1.0,
    limit: int | None = None,
    user_estimates: bool = False,
    recorded: bool = False,
    on_part: Callable[[bytes], None] = lambda _: None,
) -> TraceArrays:
    """The jobs of a dump that these nodes can hold; with a `limit` only that many, the first ones.

    With `user_estimates` their time limits are read, too, and with `recorded` their true starts and their partitions.
    `on_part` sees the text, part by part.

    Raises:
        BadInput: it lacks columns, or no job is left.
    """
    reader = SacctReader(
        source,
        partitions,
        user_estimates=user_estimates,
        recorded=recorded,
        with_gpus=bool(node_arrays.gpu_names),
    )
    builder = RecordBuilder(node_arrays, 1.0, reader.allowed_sets)
    left = limit
    for data in source.parts():
        on_part(data)
        jobs = reader.jobs(data, left)
        if left is not None:
            left -= len(jobs["identity"])
        builder.add(**jobs)
        if left == 0:
            break
    builder.dropped.update(reader.dropped)
    records = builder.records(source.name, only_last=EARLIER_RUN)
    first = records.submit.min()
    return replace(
        records,
        submit=arrivals(records.submit - first, load_factor),
        recorded_start=records.recorded_start - first if recorded else records.recorded_start,
    )


class SacctReader:
    """Reads the parts of one dump, the first one first. `dropped` counts the lines that were left out, by reason."""

    def __init__(
        self,
        source: TraceFile,
        partitions: SitePartitions,
        *,
        user_estimates: bool = False,
        recorded: bool = False,
        with_gpus: bool = False,
    ) -> None:
        """Only the header is read."""
        header = header_of_sacct(source)
        assert header is not None  # noqa: S101  the caller has found that the file is one
        columns = {*header.columns}
        needs = [*NEEDS, *([_LIMITS] if user_estimates else [])]
        needs += [("Start",)] if recorded or not columns & {*_RUN} else []
        needs += [("Partition",)] if recorded else []
        if missing := [group[0] for group in needs if not columns & {*group}]:
            raise BadInput(f"{source.name}: sacct was not asked for {', '.join(missing)}; try: {sacct.COMMAND}")
        self._name, self._delimiter = source.name, header.delimiter
        self._user_estimates, self._recorded, self._with_gpus = user_estimates, recorded, with_gpus
        self._names: tuple[str, ...] = ()
        self._partitions = partitions
        self._sets: dict[frozenset[str] | None, int] = {None: 0}
        self.allowed_sets: list[frozenset[str] | None] = [None]
        self.dropped: dict[str, int] = {}

    def jobs(self, data: bytes, limit: int | None = None) -> dict[str, Any]:
        """The jobs of whole lines, as `RecordBuilder.add` takes them."""
        table = self._table(data)
        size = len(next(iter(table.values())))
        part = _Part(table, size)
        left = self._left(part)
        cpus_per_core, allowed = self._placed(part, left)
        nodes, cpus = part.nodes, part.cpus
        with np.errstate(divide="ignore", invalid="ignore"):
            on_each_mb = np.ceil(part.memory_mb_on_each(nodes, cpus))
            cores = np.ceil(np.ceil(cpus / nodes) / cpus_per_core)
        rows = np.flatnonzero(left)[:limit]
        account = part.texts("Account")
        found: dict[str, Any] = {
            "identity": part.identity[rows],
            "submit_s": part.submit_s[rows],
            "run_s": part.run_s[rows],
            "nodes": nodes[rows],
            "cores": cores[rows],
            "memory_mb": np.minimum(np.nan_to_num(on_each_mb[rows]), LARGEST),
            "project": [account[row] for row in rows.tolist()] if account is not None else None,
            "allowed": allowed[rows],
            "gpus": part.gpus_on_each(rows) if self._with_gpus else None,
        }
        if self._user_estimates:
            limits_s = np.nan_to_num(part.first_of(_LIMITS, sacct.time_limit_s)[rows])
            found["limit_s"] = np.minimum(limits_s, LARGEST)
        if "Priority" in table:
            found["priority"] = np.nan_to_num(part.number("Priority", sacct.count_in)[rows]).astype(np.int64)
        if self._recorded:
            places, names = part.factorized("Partition")
            found["start_s"] = part.number("Start", sacct.moment_s)[rows]
            found["partition"] = places[rows], names
        return found

    def _table(self, data: bytes) -> dict[str, Any]:
        """The columns that are read, as texts, without the lines that have not as many fields as the header."""
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
        if not self._names:
            line, _, data = data.lstrip().partition(b"\n")
            self._names = tuple(name.strip() for name in line.decode("utf-8", "replace").split(self._delimiter))
        data = self._whole_lines(data)
        at = {name: column for column, name in enumerate(self._names) if name in READ}
        if not data:
            return {name: np.zeros(0, np.object_) for name in at}
        try:
            table = plain_table(
                data,
                dict.fromkeys(at.values(), object),
                sep=self._delimiter,
                names=range(len(self._names)),
                usecols=sorted(at.values()),
                na_filter=False,
                skip_blank_lines=False,
                lineterminator="\n",
                encoding_errors="replace",
            )
        except NotPlain:
            raise BadInput(f"{self._name}: its lines cannot be read as columns of sacct") from None
        return {name: table[column].to_numpy() for name, column in at.items()}

    def _whole_lines(self, data: bytes) -> bytes:
        letters = np.frombuffer(data, np.uint8)
        ends = np.flatnonzero(letters == ord("\n"))
        between = np.searchsorted(np.flatnonzero(letters == ord(self._delimiter)), ends)
        wrong = np.diff(between, prepend=0) != len(self._names) - 1
        if not wrong.any():
            return data
        blank = np.diff(ends, prepend=-1) == 1
        self._drop(WRONG_FIELDS, int(np.count_nonzero(wrong & ~blank)))
        return b"".join(compress(data.splitlines(keepends=True) if b"\r" not in data else _lines(data), ~wrong))

    def _left(self, part: "_Part") -> Flags:
        """Which lines are jobs that can be replayed; the others are counted."""
        kinds = [part.number(column, sacct.job_number) for column in ("JobID", "JobIDRaw") if column in part.table]
        state, nodes, cpus = part.state, part.nodes, part.cpus
        started = part.number("Start", sacct.moment_s) >= 0 if "Start" in part.table else np.ones(part.size, np.bool_)
        given = part.first_of(("AllocCPUS", "NCPUS"), sacct.count_in)
        left = np.ones(part.size, np.bool_)
        for reason, wrong in (
            ("unknown job number", np.logical_or.reduce([np.isnan(each) for each in kinds])),
            ("step of a job", _any_is(kinds, sacct.STEP)),
            ("tasks of an array that never started", _any_is(kinds, sacct.TASK_RANGE)),
            ("part of a heterogeneous job", _any_is(kinds, sacct.COMPONENT)),
            ("unknown state", np.isnan(state)),
            ("not ended", state == _NOT_ENDED),
            ("never started", ~started | (given == 0) | ((state == _CANCELLED) & (part.run_s == 0))),
            ("generic resources (GPUs and others)", part.has_other_gres | (part.has_gpus & (not self._with_gpus))),
            ("unknown submit time", ~_is_known(part.submit_s, 0)),
            ("unknown run time", ~_is_known(part.run_s, 0)),
            ("unknown size", ~(_is_known(nodes, 1) & _is_known(cpus, 1))),
        ):
            self._drop(reason, int(np.count_nonzero(left & wrong)))
            left &= ~wrong
        return left

    def _placed(self, part: "_Part", left: Flags) -> tuple[Column, Integers]:
        """The CPUs of a core of each job's nodes, and its set of nodes; jobs without nodes are taken out of `left`."""
        partitions, constraints = (part.factorized(column) for column in ("Partition", "Constraints"))
        pairs = partitions[0] * len(constraints[1]) + constraints[0]
        different, of_job = np.unique(pairs, return_inverse=True)
        cpus_per_core, allowed = np.ones(len(different)), np.full(len(different), _NOWHERE)
        jobs = np.bincount(of_job[left], minlength=len(different)).tolist()
        for at, pair in enumerate(different.tolist()):
            if not jobs[at]:
                continue
            partition, constraint = divmod(pair, len(constraints[1]))
            words = [sacct.said({"": each}, "") for each in (partitions[1][partition], constraints[1][constraint])]
            try:
                nodes, cpus_per_core[at] = self._partitions.allowed(*words)
            except Nowhere as reason:
                self._drop(str(reason), jobs[at])
                continue
            if nodes not in self._sets:
                self._sets[nodes] = len(self.allowed_sets)
                self.allowed_sets.append(nodes)
            allowed[at] = self._sets[nodes]
        left &= allowed[of_job] != _NOWHERE
        return cpus_per_core[of_job], allowed[of_job]

    def _drop(self, reason: str, count: int) -> None:
        self.dropped[reason] = self.dropped.get(reason, 0) + count


class _Part:
    """Columns of texts as numbers; each different text is read once. What cannot be read is nan."""

    def __init__(self, table: dict[str, Any], size: int) -> None:
        self.table, self.size = table, size
        self._factorized: dict[str, tuple[Integers, Sequence[str]]] = {}
        self._numbers: dict[tuple[str, Callable[[str], float]], Column] = {}
        self.identity = self.first_of(_NUMBERS, sacct.job_number)
        self.submit_s = self.number("Submit", sacct.moment_s)
        self.state = self.number("State", _state)
        self._tres = {column: self._amounts(column) for column in _TRES}
        self.has_other_gres, self.has_gpus = (
            np.logical_or.reduce([amounts[row] > 0 for amounts in self._tres.values()]) for row in (3, 4)
        )
        alloc, asked = self._tres["AllocTRES"], self._tres["ReqTRES"]
        count = sacct.count_in
        self.cpus = _first(self.first_of(_CPUS[:2], count), alloc[0], self.number(_CPUS[2], count), asked[0])
        self.nodes = _first(self.first_of(_NODES[:2], count), alloc[2], self.number(_NODES[2], count), asked[2])
        self.run_s = self.first_of(_RUN, _seconds)
        if "End" in table and "Start" in table:
            between = self.number("End", sacct.moment_s) - self.number("Start", sacct.moment_s)
            self.run_s = np.where(np.isnan(self.run_s), between, self.run_s)

    def memory_mb_on_each(self, nodes: Column, cpus: Column) -> Column:
        """The memory that the job had on each of its nodes, nan where nothing is known."""
        amount = self.number("ReqMem", memory_mb)
        codes, different = self.factorized("ReqMem")
        of = np.array([ord(text[-1:] or " ") for text in different], np.int64)[codes]
        whole = _first(self._tres["AllocTRES"][1], self._tres["ReqTRES"][1], amount) / nodes
        on_each = np.where(of == ord("n"), amount, amount * cpus / nodes)
        found: Column = np.where(((of == ord("n")) | (of == ord("c"))) & (amount > 0), on_each, whole)
        return found

    def gpus_on_each(self, rows: Integers) -> tuple[Integers, Sequence[Gpus]]:
        """The place of the GPUs of each of these lines among different ones, and these, on each node of the job."""
        (alloc, of_alloc), (asked, of_asked) = (self.factorized(column) for column in _TRES)
        has_asked = self._tres["ReqTRES"][4][rows] > 0
        texts, code = [*of_alloc, *of_asked], np.where(has_asked, asked[rows] + len(of_alloc), alloc[rows])
        pairs = np.stack([code, self.nodes[rows].astype(np.int64)], axis=1)
        different, place = np.unique(pairs, axis=0, return_inverse=True)
        gpus = [on_each_node(gpus_in_tres(sacct.tres(texts[text])), nodes) for text, nodes in different.tolist()]
        return place.ravel(), gpus

    def factorized(self, column: str) -> tuple[Integers, Sequence[str]]:
        """The place of each text among the different ones; a column that is not there has empty texts."""
        import pandas as pd  # noqa: PLC0415 - half a second, which other formats do not need

        if column not in self.table:
            return np.zeros(self.size, np.int64), [""]
        if column not in self._factorized:
            codes, different = pd.factorize(self.table[column])
            self._factorized[column] = codes, different.tolist() or [""]
        return self._factorized[column]

    def texts(self, column: str) -> Sequence[str] | None:
        """The texts of a column, None if it is not there."""
        return self.table.get(column)

    def number(self, column: str, read: Callable[[str], float]) -> Column:
        """The column as numbers."""
        if (column, read) not in self._numbers:
            codes, different = self.factorized(column)
            numbers = _PLAIN[read](different) if read in _PLAIN else np.full(len(different), np.nan)
            for at in np.flatnonzero(np.isnan(numbers)).tolist():
                numbers[at] = _number(different[at], read)
            self._numbers[column, read] = numbers[codes]
        return self._numbers[column, read]

    def first_of(self, columns: Sequence[str], read: Callable[[str], float]) -> Column:
        """Of each line the first of these columns that says something but 0, or 0 if one says so."""
        return _first(*(self.number(column, read) for column in columns if column in self.table), size=self.size)

    def _amounts(self, column: str) -> Column:
        """CPUs, memory and nodes of TRES, how many other generic resources it names, and GPUs, shape (5, lines)."""
        codes, different = self.factorized(column)
        rows = []
        for text in different:
            said = sacct.tres(text)
            reads = (("cpu", sacct.count_in), ("mem", memory_mb), ("node", sacct.count_in))
            gpus = sum(gpus_in_tres(said).values())
            others = [name for name in sacct.gres_in(text) if not is_number_of_gpus(name, said[name])]
            rows.append([*(_number(said.get(name, ""), read) for name, read in reads), float(len(others)), float(gpus)])
        amounts: Column = np.array(rows, np.float64)[codes].T
        return amounts


def _number(text: str, read: Callable[[str], float]) -> float:
    try:
        value = float(read(text))
    except (BadInput, ValueError, OverflowError):
        return np.nan
    return value if abs(value) < 1 << 62 else np.nan


def _state(text: str) -> float:
    state = sacct.state_in(text)
    if state == "CANCELLED":
        return _CANCELLED
    if state in sacct.ENDED:
        return _ENDED
    return _NOT_ENDED if state in sacct.NOT_ENDED else np.nan


def _seconds(text: str) -> float:
    return float(text) if text.isascii() and text.isdecimal() else sacct.duration_s(text)


def _first(*columns: Column, size: int = 0) -> Column:
    """Of each line the first number above 0; where there is none the first known one."""
    if not columns:
        return np.full(size, np.nan)
    found = columns[0]
    for column in columns[1:]:
        found = np.where((found > 0) | ~(np.isnan(found) | (column > 0)), found, column)
    return found


def _is_known(column: Column, least: float) -> Flags:
    known: Flags = (column >= least) & (column <= LARGEST)
    return known


def _any_is(columns: Sequence[Column], value: int) -> Flags:
    found: Flags = np.logical_or.reduce([column == value for column in columns])
    return found


def _lines(data: bytes) -> Iterator[bytes]:
    """Lines that end with a newline only: a carriage return is a letter of a text."""
    for line in data.split(b"\n")[:-1]:
        yield line + b"\n"
