"""Answers to status, queue, explain and profile: what the running scheduler reports, as JSON values.

Users see their own jobs and the accounts that these run under; SlurmUser and root see everything. A request about
another user's job gets the same answer as one about a job that does not exist, and no sentence names such a job
(answers.view).
"""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import chain
from typing import Any, Literal, cast

from slurm_sns.errors import BadInput, SnsError
from slurm_sns.json_text import JsonText
from slurm_sns.metric_table import Samples
from slurm_sns.model import Plan, Snapshot
from slurm_sns.policies.base import Policy
from slurm_sns.scheduler.answers import pass_through
from slurm_sns.scheduler.answers.answer_types import (
    DecisionLine,
    ExplainAnswer,
    ExplanationValues,
    JobAnswer,
    MeasuredAnswer,
    QueueRow,
    SmallerRequestAnswer,
    StartingChange,
    TryAnswer,
)
from slurm_sns.scheduler.answers.measured import last_runs
from slurm_sns.scheduler.answers.profiles import KnownPrograms, Summaries, profile
from slurm_sns.scheduler.answers.queue_rows import (
    is_ours,
    queue,
    queue_places,
    reason_of,
    redaction_of,
    rows,
    state_of,
)
from slurm_sns.scheduler.answers.smaller_request import evenly, first_start
from slurm_sns.scheduler.answers.start_answers import start_answer
from slurm_sns.scheduler.answers.start_now import starting_changes
from slurm_sns.scheduler.answers.status_answer import status
from slurm_sns.scheduler.answers.trying import SubmissionRules, options_in, try_job
from slurm_sns.scheduler.answers.view import (
    RecentCycles,
    View,
)
from slurm_sns.scheduler.gate.arrays import listed
from slurm_sns.scheduler.observation import JobState, ObservedJob
from slurm_sns.scheduler.ports import Decision, Decisions, Measurements
from slurm_sns.scheduler.settings import BY_SLURM, FAIR_NOW, Settings
from slurm_sns.scheduler.snapshot.situation import explores
from slurm_sns.scheduler.start_estimates.board import EstimateBoard
from slurm_sns.task_ids import task_id
from slurm_sns.wire.values import RunId

#: A caller waits at most this long while other jobs are being explained.
EXPLAIN_WAIT_S = 10.0

#: So many jobs fit into a request of 4 KiB.
MOST_MEASURED = 300


#: Slurm's job ids and task numbers have 32 bits.
LARGEST_NUMBER = 2**32


#: The commands beside those that are about jobs or programs (`Answers`).
COMMANDS = ("status", "queue", "overview", "try", "metrics")


class Answers:
    """Answers requests from the last cycle's view and the decision record.

    `trouble` says what keeps the loop from working now (slurmctld or the store does not answer). It is empty when the
    loop works. `asked` tells the loop which jobs their owners give to Slurm.
    """

    def __init__(
        self,
        recent: RecentCycles,
        decisions: Decisions,
        policy: Policy,
        admins: frozenset[int],
        trouble: Callable[[], str] = str,
        *,
        settings: Settings,
        asked: set[int],
        board: EstimateBoard | None = None,
        rules: SubmissionRules | None = None,
        measurements: Measurements | None = None,
        metrics: Callable[[], Samples] | None = None,
        overview: Callable[[View, str, str | None], JsonText] | None = None,
    ) -> None:
        self._metrics, self._overview = metrics, overview
        self._recent, self._asked, self._rules = recent, asked, rules
        self._board = board or EstimateBoard()
        self._measurements = measurements
        self._trouble = trouble
        self._decisions = decisions
        self._policy = policy
        self._admins = admins
        self._settings = settings
        self._explaining = threading.Lock()
        self._summaries = Summaries(settings.frequency_factors)
        self._about: Mapping[str, Callable[[View, Mapping[str, Any], int | None], Any]] = {
            "explain": self._explain,
            "job": self._how_far,
            "release": self._release,
            "smaller-request": self._smaller_request,
            "measured": self._measured,
            "profile": self._profile,
        }

    def answer(self, request: dict[str, Any], user_id: int) -> Any:
        """The answer to the request, for the user with this id.

        Raises:
            BadInput: an unknown command, a job that does not exist for this user, or a program without profile.
            SnsError: the first cycle has not ended yet, the decision record cannot be read, or too many jobs are being
                explained at once.
        """
        if request.get("command") == "metrics" and self._metrics is not None:
            return self._metrics()
        view = self._recent.view
        if view is None:
            raise SnsError("the scheduler has not finished its first cycle; try again in a moment")
        user_id = self._asks_for(view, request, user_id)
        only_user = None if user_id in self._admins else user_id
        match request.get("command"):
            case "status":
                return status(
                    view, self._recent, self._troubles(), only_user, self._settings, estimates=self._board.now
                )
            case "queue":
                return _as_text(queue(view, only_user, self._board.now, users=_users(request)))
            case "overview" if self._overview is not None:
                return self._overview(view, self._troubles(), None if only_user is None else _name_of(view, user_id))
            case "try":
                return self._try(view, request, user_id)
            case str(name) if name in self._about:
                return self._about[name](view, request, only_user)
            case other:
                raise BadInput(f"command {other!r} is unknown; valid: {', '.join((*COMMANDS, *self._about))}")

    def _asks_for(self, view: View, request: Mapping[str, Any], user_id: int) -> int:
        """For whom the answer is: the caller, or for an admin the user `as_user`, whose jobs Slurm shows.

        Raises:
            BadInput: the caller is no admin, or Slurm shows no job of that user.
        """
        name = request.get("as_user")
        if name is None:
            return user_id
        if user_id not in self._admins:
            raise BadInput("as_user is for SlurmUser and root alone")
        found = next((job.user_id for job in view.situation.observed if job.user == name), None)
        if found is None or found in self._admins:
            raise BadInput(f"as_user {name!r}: valid is an ordinary user who has a job in Slurm")
        return found

    def _troubles(self) -> str:
        return "; ".join(filter(None, (self._trouble(), self._board.trouble)))

    def _explain(self, view: View, request: Mapping[str, Any], only_user: int | None) -> ExplainAnswer:
        job_id, label, job, decided = self._known(view, request, only_user)
        last_start = next((each for each in reversed(decided) if each.action == "start"), None)
        waits = job is not None and job_id in view.once(queue_places)
        snapshot, plan = None, Plan()
        planned_id = job_id  # a task had another id when it was placed
        if waits:
            snapshot, plan = view.situation.snapshot, view.plan
        elif last_start is not None:
            snapshot, planned_id = self._decisions.snapshot_of(last_start.cycle_id), last_start.job_id
        redaction = redaction_of(view, only_user)
        cycle = None if snapshot is None else self._cycle(snapshot, plan, planned_id)
        answer: ExplainAnswer = {
            "job_id": job_id,
            "label": label,
            "pass_through": None if job is None or is_ours(view, job) else pass_through.reason(job, self._settings),
            "array": "" if job is None or job.array_id is None else _array(view, job),
            "job": None if job is None else next(rows(view, [job], redaction, self._board.now)),
            "decisions": [
                cast(DecisionLine, asdict(each) | {"reason": redaction.text(each.reason)}) for each in decided
            ],
            "order": _order(view, self._settings) if waits else None,
            "considered": redaction.every_text(_considered(view, job_id, last_start)),
            "cycle": redaction.every_text(cycle),
            "would_start": [] if job is None else self._would_start(view, job),
            "unavailable": redaction.texts(view.situation.snapshot.unavailable),
        }
        if view.agents is not None and job is not None:
            answer["learning"] = redaction.text(_learning(view, job))
        return answer

    def _would_start(self, view: View, job: ObservedJob) -> list[StartingChange]:
        """What would have started the job in the last cycle, if it waits in it or was closed to it."""
        situation, rules = view.situation, self._rules
        candidate = _candidate(view, job)
        if rules is None or candidate is None or view.disabled:
            return []
        if any(start.job_id == candidate.id for start in view.plan.starts):
            return []
        waiting = next((each for each in situation.snapshot.waiting if each.id == candidate.id), None)
        with self._one_at_a_time():
            cycle = rules.last_cycle(view, self._settings, self._policy.plan)
            return starting_changes(cycle, candidate, waiting, view.plan)

    def _try(self, view: View, request: Mapping[str, Any], user_id: int) -> TryAnswer:
        """What would become of a job that is not submitted; for an admin, too, it is a job of their own."""
        if self._rules is None:
            raise SnsError("this scheduler knows no rules of submission")
        options_in(request)  # a wrong request does not wait for others
        with self._one_at_a_time():
            cycle = self._rules.last_cycle(view, self._settings, self._policy.plan)
            tried, waits = try_job(view, self._rules, request, user_id, cycle)
            estimate = self._board.of_tried
            start = None if waits is None or estimate is None else estimate(view.situation, *waits)
        redaction = redaction_of(view, None if user_id in self._admins else user_id)
        starts = None if start is None else start_answer(start, redaction)
        return {**tried, "reason": redaction.text(tried["reason"]), "starts": starts}

    def _known(
        self, view: View, request: Mapping[str, Any], only_user: int | None
    ) -> tuple[int, str, ObservedJob | None, list[Decision]]:
        """The job's id, what the user calls it, Slurm's record of it, and what was decided about it, oldest first.

        Raises:
            BadInput: there is no such job, or it is another user's.
        """
        job_id, label = self._named(view, request)
        job = _job(view, job_id)
        decided = self._decisions.of_job(job_id)
        if not decided and job is not None and job.task is not None:  # placed before Slurm gave it this id
            decided = self._decisions.of_job(task_id(*job.task))
        _require_own(label, job, decided, only_user)
        # Slurm reuses job ids after its state was wiped: decisions about another user's job are not shown.
        return job_id, label, job, [each for each in decided if only_user in (None, each.user_id)]

    def _smaller_request(
        self, view: View, request: Mapping[str, Any], only_user: int | None
    ) -> SmallerRequestAnswer | None:
        """What the job would have won with so much memory on each node; None if not recorded, or if time is up.

        Only of a job that slurm_sns itself has placed, while the snapshots of the time in which it waited are kept.
        """
        memory_mb = _whole("memory_mb", request.get("memory_mb"))
        job_id, _, _, decided = self._known(view, request, only_user)
        start = next((each for each in reversed(decided) if each.action == "start"), None)
        had_mb = 0 if start is None else start.demand.get("memory_mb", 0)
        if start is None or view.mode != "enforce" or not had_mb:
            return None
        placed = self._decisions.snapshot_of(start.cycle_id)
        job = None if placed is None else next((each for each in placed.waiting if each.id == start.job_id), None)
        if job is None:
            return None
        cycles = evenly(self._decisions.cycles_between(float(job.submit_s), start.at_s))
        snapshots = map(self._decisions.snapshot_of, cycles)
        with self._one_at_a_time():
            found = first_start(snapshots, {job_id, start.job_id}, memory_mb / had_mb, self._policy.plan)
        if found is None:
            return None
        earlier_s = None if found.start_s is None else float(found.start_s)
        return {"placed_s": start.at_s, "earlier_s": earlier_s, "cycles": found.cycles}

    def _profile(self, view: View, request: Mapping[str, Any], only_user: int | None) -> Any:
        """The profile of a program, or a summary of all of them."""
        name = request.get("program")
        known = KnownPrograms(view.programs, view.imported, view.learning)
        return self._summaries.of(known, only_user) if name is None else profile(known, name, only_user)

    def _measured(self, view: View, request: Mapping[str, Any], only_user: int | None) -> MeasuredAnswer:
        """What agents have measured of the jobs' last runs; nothing of another user's jobs."""
        asked = request.get("job_ids")
        if not isinstance(asked, list) or len(asked) > MOST_MEASURED:
            raise BadInput(f"job_ids: valid is a list of at most {MOST_MEASURED} job ids")
        wanted = {_whole("job id", each) for each in asked}
        found = [] if self._measurements is None else self._measurements.of_jobs(wanted)
        return {"has_agents": view.agents is not None, "jobs": last_runs(found, only_user)}

    def _how_far(self, view: View, request: Mapping[str, Any], only_user: int | None) -> JobAnswer:
        """Whether the job has started, and where. An array has started when its first task has."""
        job_id, label = self._named(view, request)
        is_task = request.get("task") is not None
        tasks = [each for each in view.situation.observed if not is_task and each.array_id == job_id]
        job = _job(view, job_id) or next(iter(tasks), None)  # an array's own id may be that of a forgotten task
        decided = self._decisions.of_job(job_id) if job is None else ()
        _require_own(label, job, decided, only_user)
        if job is None:
            places = (each.nodes for each in decided if each.action == "start" and only_user in (None, each.user_id))
            return {"label": label, "state": "gone", "nodes": list([(), *places][-1]), "reason": ""}
        begun = next((each for each in (job, *tasks) if _has_started(each)), None)
        if begun is not None:
            return {"label": begun.label, "state": "started", "nodes": list(begun.allocated), "reason": ""}
        state: Literal["waiting", "ended"] = "ended" if job.state is JobState.ENDED else "waiting"
        reason = redaction_of(view, only_user).text(reason_of(view, job))
        return {"label": label, "state": state, "nodes": [], "reason": reason}

    def _release(self, view: View, request: Mapping[str, Any], only_user: int | None) -> dict[str, Any]:
        """Let the next cycle leave a job to Slurm, or all waiting tasks of an array, or one that has its own record."""
        number, task = _whole("job id", request.get("job_id")), request.get("task")
        label = str(number) if task is None else f"{number}_{_whole('task', task)}"
        jobs = [
            job
            for job in view.situation.jobs.values()
            if (number in (job.id, job.array_id) if task is None else job.task == (number, task))
            and only_user in (None, job.user_id)
        ]
        if not jobs:
            raise BadInput(
                f"job {label}: no job of yours that waits for slurm_sns"
                f" (one submitted this moment is seen with the next cycle; a task may be in its array: {number})"
            )
        waiting = frozenset(job.id for job in jobs if job.state is JobState.PENDING)
        if not waiting:
            raise BadInput(f"job {label} does not wait any more")
        self._asked.update(waiting)
        return {"label": label, "jobs": len(waiting)}

    def _named(self, view: View, request: Mapping[str, Any]) -> tuple[int, str]:
        """The id and the label of the job, or of the array's task, that a request names."""
        number, task = _whole("job id", request.get("job_id")), request.get("task")
        if task is None:
            return number, str(number)
        return self._job_of_task(view, number, _whole("task", task)), f"{number}_{task}"

    def _job_of_task(self, view: View, array_id: int, task: int) -> int:
        """The job id of an array's task: its own, ours while a cycle plans it, the array's, or 0 if unknown."""
        array = [job for job in view.situation.observed if job.array_id == array_id]
        own = next((job.id for job in array if job.array_task == task), 0)
        if own or task_id(array_id, task) in view.situation.tasks:
            return own or task_id(array_id, task)
        unsplit = (job.id for job in array if job.is_array_record and task in listed(job.array_tasks))
        return next(unsplit, 0) or self._decisions.job_of_task(array_id, task) or 0

    def _cycle(self, snapshot: Snapshot, plan: Plan, job_id: int) -> ExplanationValues | None:
        """An explanation of the cycle on that snapshot; None if the policy explains nothing."""
        with self._one_at_a_time():
            explanation = self._policy.explain(snapshot, plan, job_id)
            return None if explanation is None else cast(ExplanationValues, explanation.as_json())

    @contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        """Only one cycle of the past is planned at a time: it costs as much as one of the scheduler, in its process."""
        if not self._explaining.acquire(timeout=EXPLAIN_WAIT_S):
            raise SnsError("too many jobs are being explained; try again in a moment")
        try:
            yield
        finally:
            self._explaining.release()


def _whole(what: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < LARGEST_NUMBER:
        raise BadInput(f"{what} {value!r}: valid is a whole number below {LARGEST_NUMBER}")
    return value


def _job(view: View, job_id: int) -> ObservedJob | None:
    """The job, whether ours or not. The list of all jobs is searched only here, so that no cycle has to index it."""
    ours = view.situation.job(job_id)
    return ours or next((job for job in view.situation.observed if job.id == job_id), None)


def _candidate(view: View, job: ObservedJob) -> ObservedJob | None:
    """The job as the last cycle looked at it, of an array's record the first task; None if it could not be planned."""
    candidates = chain(view.situation.tasks.values(), view.situation.surveyed.candidates)
    array_id = job.array_id if job.is_array_record else None
    return next(
        (each for each in candidates if each.id == job.id or (array_id is not None and each.array_id == array_id)), None
    )


def _name_of(view: View, user_id: int) -> str:
    """The user's name by their jobs; empty if Slurm shows none of theirs."""
    return next((job.user for job in view.situation.observed if job.user_id == user_id), "")


def _require_own(label: str, job: ObservedJob | None, decided: Sequence[Decision], only_user: int | None) -> None:
    """Check that the user may ask about the job, by Slurm's record of it or, without one, by our last decision."""
    owner = job.user_id if job is not None else next((each.user_id for each in reversed(decided)), None)
    if owner is None or only_user not in (None, owner):
        raise BadInput(f"job {label}: no job of yours that Slurm or slurm_sns knows")


def _has_started(job: ObservedJob) -> bool:
    """Whether the job runs or has run: Slurm leaves an ended job its nodes, and gives a cancelled waiting one none."""
    return job.state.occupies_nodes or (job.state is JobState.ENDED and bool(job.allocated))


def _order(view: View, settings: Settings) -> str:
    """By what the queue is ordered."""
    is_by_priority = settings.is_by_priority(has_priorities=view.situation.observation.has_priorities)
    return BY_SLURM if is_by_priority else FAIR_NOW


def _array(view: View, of: ObservedJob) -> str:
    """How many tasks of the job's array are in which state, as one sentence."""
    known = view.situation.jobs.values() if is_ours(view, of) else view.situation.observed
    jobs = [job for job in known if job.array_id == of.array_id]
    states = Counter(state_of(view, job) for job in jobs if not job.is_array_record)
    parts = [f"{job.array_tasks} waiting" for job in jobs if job.is_array_record]
    parts += [f"{number} {state}" for state, number in states.items()]
    limits = {job.array_limit for job in jobs if job.array_limit}
    parts += [f"at most {limit} at a time" for limit in limits]
    return f"tasks of array {of.array_id}: {'; '.join(parts)}"


def _considered(view: View, job_id: int, last_start: Decision | None) -> Mapping[str, Any] | None:
    """How the job's alternatives came about: in the last cycle while it waits, otherwise when it was last placed."""
    now = view.situation.explanations.get(job_id)
    if now is not None:
        return now.as_json()
    return None if last_start is None else last_start.considered


def _learning(view: View, job: ObservedJob) -> str:
    """What the job explores, or why it does not explore although its program is not known yet; empty otherwise."""
    run = view.learning.runs.get(RunId(job.id, job.restarts))
    if run is not None and run.step is not None and job.state is not JobState.PENDING:
        return explores(run.key, run.step)
    explorations = view.situation.explorations
    offered, why = explorations.offered.get(job.id), explorations.not_offered.get(job.id)
    if offered is not None:
        nodes = offered.alternative.nodes
        return f"{offered}; on {nodes} empty {'node' if nodes == 1 else 'nodes'}"
    return f"does not explore its program now: {why}" if why else ""


def _users(request: Mapping[str, Any]) -> frozenset[str] | None:
    """The users whose jobs a request is about; None for all.

    Raises:
        BadInput: they are no list of names.
    """
    users = request.get("users")
    if users is None:
        return None
    if not isinstance(users, list) or not all(isinstance(each, str) for each in users):
        raise BadInput("users: valid is a list of names")
    return frozenset(users)


def _as_text(rows: Iterable[QueueRow]) -> JsonText:
    """The rows as JSON, encoded one by one.

    A hundred thousand at once are 150 MB of values, and Python's garbage collector would walk all that the process has
    several times while they are made, in which no cycle goes on.
    """
    return JsonText(f"[{', '.join(map(json.dumps, rows))}]")
