"""What sacct says of jobs that have run: what each asked for and what it used, and what to ask for the next time.

The text of `sacct -P` becomes one `JobUse` for each job. Words, units and the header are read by the one reader of
accounting (coverage.sacct). A line that cannot be read costs that line only. Advice is given where it is safe: with a
margin above the upper bound of what Slurm saw, and never below that.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from slurm_sns.cli.live.step_memory import (
    MemoryBounds,
    StepUse,
    cpus_on_fullest_node,
    job_memory,
    tasks_on_fullest_node,
)
from slurm_sns.coverage import sacct
from slurm_sns.coverage.sbatch_options import memory_mb
from slurm_sns.errors import BadInput, SnsError
from slurm_sns.node_lists import unfolded
from slurm_sns.scheduler.gate.arrays import listed
from slurm_sns.submit import record

#: What is asked of sacct. AdminComment is the last: alone among these it may have a `|`.
COLUMNS = (
    *("JobID", "JobIDRaw", "UID", "State", "ReqMem", "AllocTRES", "AllocCPUS", "NNodes", "NTasks", "Submit", "Start"),
    *("End", "ElapsedRaw", "TimelimitRaw", "TotalCPU", "MaxRSS", "TRESUsageInMax", "TRESUsageInTot", "NodeList"),
    "AdminComment",
)
#: The delimiter of -P, and the times as Unix seconds, which have no summer and winter.
DELIMITER, VARIABLES = "|", {"SLURM_TIME_FORMAT": "%s"}

#: What is added to the upper bound: runs differ, and a peak between two looks is not seen.
MARGIN = 0.2
#: Slurm looks at memory every 30 s, at some sites every 300 s, or at a step's end alone: a short run shows too little.
LEAST_RUN_S = 600
#: A smaller gain than this is no advice: a tenth of the request, and this much.
LEAST_GAIN, LEAST_GAIN_MB = 0.1, 256
#: A job that was killed for want of memory is told to ask for so many times as much.
MORE_AFTER_KILL = 1.5
#: Advice is rounded up to a multiple: (up to so many MiB, of so many MiB).
_ROUNDED = ((1024, 64), (8192, 256), (math.inf, 1024))
#: Below this part of its CPUs a job is told so.
FEW_CPUS = 0.5
KILLED = "OUT_OF_MEMORY"

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class JobUse:
    """A job of accounting. What is not known is None; `end_s` is None while it has not ended.

    `asked_mb` is the memory on each node. With `is_even` every node surely gave the same number of CPUs.
    `placed` by slurm_sns, the job had `ways` and `bandwidth_gbps` on each node; `program` is its owner's hint.
    """

    label: str
    job_id: int
    user_id: int | None
    state: str
    nodes: tuple[str, ...]
    submit_s: float | None
    start_s: float | None
    end_s: float | None
    ran_s: float | None
    limit_s: float | None
    cpus: int | None
    cpu_s: float | None
    asked_mb: int | None
    is_even: bool
    steps: tuple[StepUse, ...]
    placed: bool = False
    program: str = ""
    ways: int = 0
    bandwidth_gbps: int = 0

    def is_of(self, job_id: int, task: int | None = None) -> bool:
        """Whether it is that job, of that array, or that task of it; the record of an array (`41_[3-9]`) has many."""
        array, _, tasks = self.label.partition("_")
        if task is None:
            return str(job_id) in (array, str(self.job_id))
        return array == str(job_id) and _has_task(tasks, task)

    @property
    def has_ended(self) -> bool:
        """Whether it has, so that all its numbers are there."""
        return self.state in sacct.ENDED

    @property
    def memory(self) -> MemoryBounds | None:
        """What it used on its fullest node."""
        return job_memory(self.steps)

    @property
    def busy_cpus(self) -> float | None:
        """How many CPUs it kept busy, on average."""
        if not self.has_ended or self.cpu_s is None or not self.ran_s:
            return None
        return self.cpu_s / self.ran_s

    @property
    def was_killed(self) -> bool:
        """Whether the job or one of its steps was killed for want of memory."""
        return KILLED in (self.state, *(step.state for step in self.steps))

    @property
    def enough_mb(self) -> int | None:
        """The memory on each node that should be enough the next time: the most by what Slurm saw, and a margin.

        None if it is not safe to say so: the job failed or was short, its nodes may differ, a step was not recorded.
        """
        memory = self.memory
        # A cancelled job, or one at its time limit, might have used more if it had gone on.
        if self.state != "COMPLETED" or self.was_killed or memory is None or (self.ran_s or 0) < LEAST_RUN_S:
            return None
        is_whole = all(step.largest_mb for step in self.steps if step.name != "extern")
        return _rounded(memory.at_most_mb * (1 + MARGIN)) if self.is_even and is_whole else None


def jobs_of(text: str) -> list[JobUse]:
    """The jobs in what sacct printed with COLUMNS, in its order, each with its steps.

    Raises:
        SnsError: its first line is not its header.
    """
    header = sacct.header_in(text.partition("\n")[0])
    if header is None:
        raise SnsError("sacct answered without its header; valid: the columns " + ",".join(COLUMNS))
    found: dict[str, tuple[Mapping[str, str], list[Mapping[str, str]]]] = {}
    for line in text.splitlines()[1:]:
        row = dict(zip(header.columns, line.split(header.delimiter, len(header.columns) - 1), strict=False))
        job, is_step, _ = row.get("JobIDRaw", "").partition(".")
        if len(row) != len(header.columns) or not job.isdecimal():
            continue
        if not is_step:
            found[job] = row, []
        elif job in found:
            found[job][1].append(row)
    return [_job(row, steps) for row, steps in found.values()]


def _job(row: Mapping[str, str], steps: Sequence[Mapping[str, str]]) -> JobUse:
    nodes, cpus = _nodes(row), _read(row, "AllocCPUS", sacct.count_in) or None
    count = len(nodes) or _read(row, "NNodes", sacct.count_in) or 1
    batch = next((step for step in steps if step["JobIDRaw"].endswith(".batch")), {})
    # The batch step has the CPUs of the job's first node.
    most_cpus = cpus_on_fullest_node(cpus or 0, count, _read(batch, "AllocCPUS", sacct.count_in) or 0)
    ours = record.read(row["AdminComment"])
    return JobUse(
        label=row["JobID"],
        job_id=int(row["JobIDRaw"]),
        user_id=_read(row, "UID", int),
        state=sacct.state_in(row["State"]),
        nodes=nodes,
        submit_s=_read(row, "Submit", sacct.moment_s),
        start_s=_read(row, "Start", sacct.moment_s),
        end_s=_read(row, "End", sacct.moment_s),
        ran_s=_read(row, "ElapsedRaw", float),
        limit_s=(_read(row, "TimelimitRaw", sacct.time_limit_s) or None),
        cpus=cpus,
        cpu_s=_cpu_s(row),
        asked_mb=_asked_mb(row, count, cpus or 0),
        is_even=count == 1 or (cpus or 0) == count * most_cpus,
        steps=tuple(_steps(steps, cpus or 0, most_cpus)),
        placed=ours is not None and ours.is_placed,
        program="" if ours is None else ours.hints.program or "",
        ways=0 if ours is None else ours.ways,
        bandwidth_gbps=0 if ours is None else ours.bandwidth_gbps,
    )


def _steps(rows: Iterable[Mapping[str, str]], cpus: int, most_cpus: int) -> Iterator[StepUse]:
    for row in rows:
        nodes, tasks = _nodes(row), _read(row, "NTasks", sacct.count_in) or 1
        # With `srun --overcommit` a node may have more tasks than CPUs; a job may have had more CPUs before a change.
        has_cpus = tasks <= (_read(row, "AllocCPUS", sacct.count_in) or 0) <= cpus
        peaks = (_read(row, "MaxRSS", memory_mb), _mem_of(row, "TRESUsageInMax"))
        yield StepUse(
            name=row["JobIDRaw"].partition(".")[2],
            state=sacct.state_in(row["State"]),
            start_s=_read(row, "Start", sacct.moment_s) or 0.0,
            end_s=_read(row, "End", sacct.moment_s) or math.inf,
            nodes=nodes,
            tasks=tasks,
            fullest_tasks=tasks_on_fullest_node(tasks, len(nodes), most_cpus if has_cpus else tasks),
            largest_mb=max((each for each in peaks if each is not None), default=None),
            last_total_mb=_mem_of(row, "TRESUsageInTot"),
        )


def _cpu_s(row: Mapping[str, str]) -> float | None:
    """Its CPU time; None where that was not gathered: no process ends with `00:00:00`, but perhaps with `00:00.034`."""
    found = _read(row, "TotalCPU", sacct.duration_s)
    return found if found or "." in row["TotalCPU"] else None


def _asked_mb(row: Mapping[str, str], nodes: int, cpus: int) -> int | None:
    """The memory on each node: ReqMem, or what the job was given where it asked for whatever a node has (0)."""
    text = sacct.said(row, "ReqMem")
    try:
        amount, of = sacct.requested_memory_mb(text)
    except BadInput:
        amount, of = 0, ""
    if not amount:
        amount, of = _mem_of(row, "AllocTRES") or 0, ""
    whole = {"n": amount * nodes, "c": amount * cpus}.get(of, amount)
    return round(whole / nodes) or None


def _nodes(row: Mapping[str, str]) -> tuple[str, ...]:
    text = sacct.said(row, "NodeList")
    try:
        return () if text in ("", "None assigned") else unfolded(text)
    except SnsError:
        return ()


def _mem_of(row: Mapping[str, str], column: str) -> int | None:
    return _read({"": sacct.tres(row.get(column)).get("mem", "")}, "", memory_mb)


def _read(row: Mapping[str, str], column: str, read: Callable[[str], _Value]) -> _Value | None:
    """The field's value; None for sacct's words for nothing, and for what cannot be read."""
    text = sacct.said(row, column)
    try:
        return read(text) if text else None
    except (BadInput, ValueError):
        return None


def _has_task(tasks: str, task: int) -> bool:
    """Whether `7`, or the `[3-9,12%2]` of an array's record, names the task; what is cut off (`...`) may do so."""
    expression = tasks.strip("[]").partition("%")[0]
    try:
        return task in listed(expression) or expression.endswith("...")
    except ValueError:  # a heterogeneous job's label, or no task at all
        return False


def _rounded(mb: float) -> int:
    multiple = next(of for limit, of in _ROUNDED if mb <= limit)
    return math.ceil(mb / multiple) * multiple


def advice(job: JobUse) -> Iterator[str]:
    """What its owner may do better the next time, one sentence each; nothing where nothing is sure."""
    if job.was_killed:
        yield _after_kill(job)
    if job.enough_mb is not None and has_smaller_request(job):
        told = f"{MARGIN:.0%} above the upper bound of what Slurm saw"
        yield f"ask for {_option(job, job.enough_mb)} the next time: {told}"
    busy = job.busy_cpus
    if busy is None or not job.cpus or job.cpus < 2 or (job.ran_s or 0) < LEAST_RUN_S:
        return
    if busy < FEW_CPUS * job.cpus:
        yield f"it kept {busy:.2g} of {job.cpus} CPUs busy: see whether the program uses all of them, or ask for fewer"


def has_smaller_request(job: JobUse) -> bool:
    """Whether clearly less memory would have been enough."""
    enough_mb, asked_mb = job.enough_mb, job.asked_mb
    if enough_mb is None or asked_mb is None:
        return False
    return asked_mb - enough_mb >= max(LEAST_GAIN * asked_mb, LEAST_GAIN_MB)


def _after_kill(job: JobUse) -> str:
    used_mb = max(job.asked_mb or 0, 0 if job.memory is None else job.memory.at_least_mb)
    if not used_mb:
        return "it was killed for want of memory: ask for more"
    more = _option(job, _rounded(used_mb * MORE_AFTER_KILL))
    return f"it was killed for want of memory: ask for more, such as {more}"


def _option(job: JobUse, on_each_mb: int) -> str:
    """The option of sbatch. By CPU for several nodes: the same job on fewer nodes has more on each of them."""
    nodes, cpus = len(job.nodes), job.cpus or 0
    if nodes > 1 and job.is_even and cpus >= nodes:
        return f"--mem-per-cpu={_amount(math.ceil(on_each_mb * nodes / cpus))}"
    return f"--mem={_amount(on_each_mb)}"


def _amount(mb: int) -> str:
    """As sbatch takes it: `6G`, or `1792M`."""
    return f"{mb // 1024}G" if mb % 1024 == 0 else f"{mb}M"
