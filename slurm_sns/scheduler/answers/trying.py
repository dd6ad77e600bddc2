"""Where a job would start that its owner only tries: judged as at submission, then planned with the last cycle.

Nothing is submitted. The options are read as the submit filter and slurmctld would (`observed`), the filter's own
judgement decides whether we manage the job, and the live policy plans the last cycle with it in the queue. Of other
users' jobs nothing is told but how many wait. For a job that would wait its start is estimated as for those that do.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from slurm_sns.coverage.sbatch_options import PLACING, submission_of, time_limit_s
from slurm_sns.errors import BadInput, Closed, Infeasible, SnsError
from slurm_sns.model import Alternative, Job, Plan, Snapshot, Start
from slurm_sns.node_lists import unfolded
from slurm_sns.scheduler.answers.answer_types import TriedAlternative, TryAnswer, amounts
from slurm_sns.scheduler.answers.last_cycle import LastCycle, turns
from slurm_sns.scheduler.answers.pass_through import ASKS, WHOLE_MEMORY
from slurm_sns.scheduler.answers.start_now import starting_changes
from slurm_sns.scheduler.answers.view import View
from slurm_sns.scheduler.observation import JobState, ObservedJob
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.plannable import SHARES_IN_PART
from slurm_sns.scheduler.snapshot.spreading import NEVER_SPREAD, SpreadRules
from slurm_sns.submit import capacity
from slurm_sns.submit.judge import SHARED_AND_OTHERS, Manage, PassThrough, Refuse, Verdict, judge
from slurm_sns.submit.submission import MOST_SCRIPT_BYTES, Submission, gpus_of_job
from slurm_sns.submit.table import FilterTable

#: The id of a job that is only tried: larger than any id that Slurm gives (MaxJobId), smaller than our tasks' ids.
TRIED_ID = 2**26
#: Its priority: the smallest that a job has which is not held.
LAST_PRIORITY = 1
#: No cluster has so many CPUs, and products with it are still exact everywhere.
MOST_COUNT = 10_000_000
#: So many partitions are named in an error: it stays one line.
MOST_NAMED = 20
#: Counts of a submission, with the options that say them.
_COUNTS = {
    "num_tasks": "-n",
    "cpus_per_task": "-c",
    "ntasks_per_node": "--ntasks-per-node",
    "min_nodes": "-N",
    "max_nodes": "-N",
}
#: What keeps a job from starting although it has its place.
_LATER = {"begin": "--begin", "dependency": "--dependency", "hold": "--hold", "deadline": "--deadline"}
#: The filter's reasons that are no names of `submission.UNPLACED`.
_WHY = {
    "kill switch": "slurm_sns is switched off (sns disable)",
    "mode observe": "the mode is observe, in which slurm_sns places no jobs",
    "partition not managed": "not all of its partitions are managed",
    "off": "its comment is sns:off",
    "long comment": "its comment is longer than the submit filter reads",
    "whole memory of unlike nodes": WHOLE_MEMORY,
    SHARED_AND_OTHERS: SHARES_IN_PART,
}


@dataclass(frozen=True, slots=True)
class SubmissionRules:
    """How jobs are judged at submission, how they are spread, and what turns a user id into a name."""

    table: FilterTable
    spreading: SpreadRules = NEVER_SPREAD
    user_name: Callable[[int], str] = str

    def last_cycle(self, view: View, settings: Settings, plan: Callable[..., Plan]) -> LastCycle:
        """The cycle of this view, to be planned again."""
        return LastCycle(view.situation, settings, replace(self.spreading, programs=view.programs), plan)


def options_in(request: Mapping[str, Any]) -> dict[str, str]:
    """The options of a request, by their long names.

    Raises:
        BadInput: it has none, or one that no job is judged or placed by.
    """
    told = request.get("options")
    if not isinstance(told, dict) or not all(isinstance(value, str) for value in told.values()):
        raise BadInput("options: valid are the long names of sbatch's options, each with its value as a text")
    wrong = sorted(told.keys() - PLACING)
    if wrong:
        raise BadInput(f"option --{wrong[0][:40]}: valid are {', '.join(f'--{name}' for name in sorted(PLACING))}")
    return told


class Tried(NamedTuple):
    """What would become of a job that is only tried; and as what it would wait in which snapshot, if it would."""

    answer: TryAnswer
    waits: tuple[Snapshot, ObservedJob] | None = None


def try_job(view: View, rules: SubmissionRules, request: Mapping[str, Any], user_id: int, cycle: LastCycle) -> Tried:
    """What would become of a job of this user with these options.

    Raises:
        BadInput: an option has a value that sbatch would not accept.
    """
    told = options_in(request)
    asked = _submission(told, request)
    _check_partitions(asked.partition, view, rules)
    verdict = judge(asked, rules.table, int(cycle.now_s), int(cycle.now_s), killed=view.disabled)
    if isinstance(verdict, Refuse):
        return Tried(_answer(view, "refused", why=verdict.message.removeprefix("sns: "), when="never"))
    if isinstance(verdict, PassThrough):
        return Tried(_answer(view, "passes through", why=_why(verdict.reason), when="slurm decides"))
    job, assumed = observed(asked, told, view, rules, user_id, verdict=verdict)
    if rules.table.mode != "enforce":
        assumed.append(f"the mode is {rules.table.mode}: this is what slurm_sns would do; Slurm places the job")
    return _tried(view, cycle, job, assumed)


def _tried(view: View, cycle: LastCycle, asked: ObservedJob, assumed: list[str]) -> Tried:
    """The answer for a managed job: the last cycle with it, planned again."""
    try:
        job, _ = cycle.job_of(asked)
    except Infeasible as never:
        return Tried(_answer(view, "passes through", why=str(never), when="slurm decides", assumed=assumed))
    except Closed as later:
        changes = starting_changes(cycle, asked, None, Plan())
        more = {"reason": str(later), "assumed": assumed, "would_start": changes}
        return Tried(_answer(view, "managed", when="waits", **more))
    snapshot = cycle.with_job(job)
    plan = cycle.plan(job)
    start = next((each for each in plan.starts if each.job_id == job.id), None)
    answer = _answer(
        view,
        "managed",
        when="waits" if start is None else "now",
        nodes=[] if start is None else list(start.nodes),
        reason=plan.waiting.get(job.id, "") if start is None else start.reason,
        position=next(place for place, each in enumerate(snapshot.waiting, 1) if each.id == job.id),
        waiting=len(snapshot.waiting),
        alternatives=_alternatives(job, plan, start),
        would_start=starting_changes(cycle, asked, job, plan) if start is None else [],
        assumed=assumed,
    )
    return Tried(answer, (snapshot, asked) if start is None else None)


def _alternatives(job: Job, plan: Plan, start: Start | None) -> list[TriedAlternative]:
    turn = next(turns(plan, job.id), None)

    def tried(each: Alternative) -> TriedAlternative:
        return {
            "demand": {"nodes": each.nodes, **amounts(each.demand)},
            "scale": each.scale,
            "exclusive": each.exclusive,
            "slowdown": float(each.slowdown),
            "fitting": None if turn is None else len(turn.fitting(each, job)),
            "chosen": start is not None and start.alternative == each,
        }

    return [tried(each) for each in job.alternatives]


def _answer(view: View, judgement: Any, **told: Any) -> TryAnswer:
    empty: TryAnswer = {
        "judgement": judgement,
        "why": "",
        "when": "never",
        "nodes": [],
        "reason": "",
        "position": None,
        "waiting": len(view.situation.snapshot.waiting) + 1,
        "alternatives": [],
        "starts": None,
        "would_start": [],
        "assumed": [],
        "at_s": view.at_s,
    }
    return empty | told  # type: ignore[return-value]  # each has the type of its field


def _why(reason: str) -> str:
    return _WHY.get(reason) or f"it {ASKS.get(reason, f'asks for {reason}')}"


def _submission(told: Mapping[str, str], request: Mapping[str, Any]) -> Submission:
    """The job as the submit filter sees it."""
    asked = submission_of(told.items())
    for name, option in _COUNTS.items():
        count = getattr(asked, name)
        if count is not None and not 1 <= count <= MOST_COUNT:
            raise BadInput(f"{option} {count}: valid are whole numbers from 1 to {MOST_COUNT}")
    memory_mb = max(asked.min_mem_per_node or 0, asked.min_mem_per_cpu or 0)
    if memory_mb >= 2**40:
        raise BadInput(f"memory of {memory_mb} MiB: valid is less than 2**40 MiB")
    script_bytes = request.get("script_bytes")
    is_large = isinstance(script_bytes, int) and script_bytes > MOST_SCRIPT_BYTES
    return replace(
        asked,
        script_bytes=MOST_SCRIPT_BYTES + 1 if is_large else None,
        has_deadline=request.get("script_deadline") is True,
    )


def _check_partitions(text: str, view: View, rules: SubmissionRules) -> None:
    """BadInput for a partition that Slurm does not show: sbatch would refuse it."""
    shown = {each.name for each in view.situation.observation.partitions}
    known = shown | rules.table.partitions.keys()
    unknown = [name for name in text.split(",") if name and name not in known]
    if shown and unknown:
        valid = ", ".join(sorted(known)[:MOST_NAMED]) + (", ..." if len(known) > MOST_NAMED else "")
        raise BadInput(f"partition {unknown[0][:40]!r} is unknown; valid: {valid}")


def observed(
    asked: Submission, told: Mapping[str, str], view: View, rules: SubmissionRules, user_id: int, *, verdict: Verdict
) -> tuple[ObservedJob, list[str]]:
    """The job as slurmctld would show it once it waits, and what was assumed where the options do not say.

    Raises:
        BadInput: an option has a value that sbatch would not accept.
    """
    size = capacity.geometry(asked, rules.table.default_memory_per_cpu_mb)
    partitions = tuple(filter(None, asked.partition.split(","))) or (rules.table.default_partition,)
    own = (each for each in view.situation.observed if each.user_id == user_id)
    last = max(own, key=lambda each: each.submit_s, default=None)
    account = told.get("account") or ("" if last is None else last.account)
    job = ObservedJob(
        id=TRIED_ID,
        user_id=user_id,
        user=rules.user_name(user_id),
        submit_s=int(view.situation.snapshot.now_s),
        state=JobState.PENDING,
        name=told.get("job-name", ""),
        account=account,
        partitions=partitions,
        qos=told.get("qos") or ("" if last is None else last.qos),
        priority=LAST_PRIORITY,
        admin_comment=verdict.admin_comment if isinstance(verdict, Manage) else "",
        comment=asked.comment,
        tasks=size.tasks,
        cpus=size.tasks * size.task_cpus,
        cpus_per_task=size.task_cpus,
        min_cpus_per_node=size.task_cpus,
        nodes_min=size.least_nodes,
        nodes_max=_most_nodes(size),
        tasks_per_node=size.tasks_per_node,
        memory_per_cpu_mb=_memory_per_cpu_mb(asked, rules.table.default_memory_per_cpu_mb),
        memory_per_node_mb=asked.min_mem_per_node,
        gpus=gpus_of_job(asked),
        walltime_s=_limit_s(told, partitions, view),
        constraint=asked.features,
        excluded=_excluded(told),
        is_alone=asked.shared == 0,
    )
    return job, list(_assumed(told, view, account))


def _assumed(told: Mapping[str, str], view: View, account: str) -> Iterator[str]:
    """What was assumed where the options do not say, each with the option that says it."""
    if "account" not in told:
        yield f"account {account}, as of your last job (-A)" if account else "an account without any use (-A)"
    if "time" not in told:
        yield "the longest time that its partition allows (-t)"
    if view.situation.observation.has_priorities:
        yield "it waits at the end of its partition's queue: it has no priority before it is submitted"
    later = [option for name, option in _LATER.items() if name in told]
    if later:
        yield f"it may start at once: {', '.join(later)} not looked at"
    if "time-min" in told:
        yield "its longest time (-t): --time-min not looked at"
    if "array" in told:
        yield "one task of its array (-a)"


def _memory_per_cpu_mb(asked: Submission, default_mb: int) -> int | None:
    """The memory of each CPU; None where it is given by node or GPU, or the job gets all the memory of its nodes."""
    if asked.mem_per_tres:
        return None
    by_cpu_mb = default_mb if asked.min_mem_per_cpu is None else asked.min_mem_per_cpu
    return by_cpu_mb or None if asked.min_mem_per_node is None else None


def _most_nodes(size: capacity.Geometry) -> int | None:
    """The limit that slurmctld shows: no more nodes than tasks; None for -n alone."""
    if size.most_nodes is None:
        return 1 if size.tasks == 1 else None
    return min(size.most_nodes, size.tasks)


def _limit_s(told: Mapping[str, str], partitions: tuple[str, ...], view: View) -> int | None:
    """The job's time limit; without one the longest of its partitions, as a DefaultTime is not shown."""
    limit_s = time_limit_s(told["time"]) if "time" in told else None
    shown = [each.walltime_s for each in view.situation.observation.partitions if each.name in partitions]
    limits_s = [each for each in shown if each is not None]
    if limit_s is not None or not limits_s or len(limits_s) < len(shown):
        return limit_s
    return max(limits_s)


def _excluded(told: Mapping[str, str]) -> tuple[str, ...]:
    text = told.get("exclude", "")
    if "/" in text:
        raise BadInput(f"--exclude {text[:40]!r} is a file; valid here: names of nodes such as c1 and c[1-3]")
    try:
        return unfolded(text) if text else ()
    except SnsError:
        raise BadInput(f"--exclude {text[:40]!r}: valid are names of nodes such as c1 and c[1-3,8-10]") from None
