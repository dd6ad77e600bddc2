"""What the loop needs from outside: small protocols. Edge packages implement them, tests pass fakes.

And what the store keeps for the scheduler over a restart beside the jobs' own records: tries of placements, the
policy's history, decisions, measurements of runs. All of it may be lost: that costs time, never correctness.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from slurm_sns.estimates.past_runs import PastRun
from slurm_sns.log import Log
from slurm_sns.model import Plan, Snapshot
from slurm_sns.policies.base import Explanation
from slurm_sns.policies.profile import Program
from slurm_sns.scheduler.gate.failed_placements import Try
from slurm_sns.scheduler.gate.orders import Answer, Order
from slurm_sns.scheduler.observation import Observation
from slurm_sns.wire.values import ActiveRuns, Change, NodeState, ReportKey, RunId, RunReport


class PolicyHistory(NamedTuple):
    """The history of a policy's last plan, as JSON in the form of this version; an empty text is no history."""

    policy: str
    version: int
    text: str


@dataclass(frozen=True, slots=True)
class Decision:
    """One line of the decision record: `action` is "start" (on `nodes`), "note", "restart" or "proposal" of a restart.

    `chosen` and `matched` are those of the cycle: the heuristic whose schedule was dispatched, and how many jobs each
    heuristic matched. For a start, `scale` and `demand` are those of the alternative that was taken (`demand` by
    resource, on each node), and `considered` says how a spreadable job's alternatives came about
    (policies.base.Explanation, as JSON values). For a restart it has the terms. A note that came several times in a
    row is one line, the last one; `times` counts them.
    """

    job_id: int
    user_id: int
    at_s: float
    action: str
    nodes: tuple[str, ...]
    reason: str
    cycle_id: int
    chosen: str
    matched: Mapping[str, int]
    scale: int = 1
    exclusive: bool = False
    demand: Mapping[str, int] = field(default_factory=dict)
    considered: Mapping[str, Any] | None = None
    times: int = 1


class TakenBack(NamedTuple):
    """How many placements were undone because Slurm did not start them: the job had met a limit, or another reason."""

    by_limit: int = 0
    in_vain: int = 0

    def with_one(self, *, is_limited: bool) -> "TakenBack":
        """With one more."""
        return TakenBack(self.by_limit + is_limited, self.in_vain + (not is_limited))


NONE_TAKEN_BACK = TakenBack()


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """What an agent has measured of a run on its node; None is unknown. The run ended there at `ended_s`.

    `least_ways` and `most_ways` are those that it had, 0 where the cache is not partitioned. `ipc` and `bandwidth_gbps`
    are averages over `seconds`, `ipc_alone` over the `alone_s` of these in which no other run was on the node.
    `user_id` is None for an unknown owner.
    """

    run: RunId
    node: str
    user_id: int | None
    ended_s: float
    least_ways: int
    most_ways: int
    seconds: float
    ipc: float | None = None
    bandwidth_gbps: float | None = None
    alone_s: float = 0.0
    ipc_alone: float | None = None

    @property
    def ipc_beside(self) -> float | None:
        """Its IPC while other runs were on the node; None if they never were, or if it is not known."""
        beside_s = self.seconds - self.alone_s
        if self.ipc is None or beside_s <= 0:
            return None
        ipc = (self.ipc * self.seconds - (self.ipc_alone or 0.0) * self.alone_s) / beside_s
        return ipc if ipc > 0 else None


@dataclass(frozen=True, slots=True)
class RestartNote:
    """A restart of a suspended job, or a proposal of one: why, on what terms, and on which nodes there was a place."""

    why: str
    terms: Explanation
    nodes: tuple[str, ...]
    is_proposal: bool


NO_RESTARTS: Mapping[int, RestartNote] = {}


class State(Protocol):
    """Sees the cluster."""

    def observe(self) -> Observation:
        """One bulk read: jobs, then nodes.

        Raises:
            Unreachable: slurmctld does not answer.
        """
        ...


class Profiles(Protocol):
    """The profiles of programs."""

    def load(self) -> Mapping[str, Program]:
        """The programs by name.

        Raises:
            SnsError: they cannot be read.
        """
        ...


class Executor(Protocol):
    """Changes jobs."""

    def execute(self, orders: Iterable[Order]) -> Iterator[Answer]:
        """Carry out these orders and answer each once; every order is safe to repeat.

        Orders are sent in the sequence given, each when the caller asks for its answer: when the caller stops asking,
        no more are sent. Many orders of the gate in a row are the exception: several are under way at a time, and their
        answers come as Slurm gives them. A refusal (the job is gone, has started, was changed) concerns its order
        alone. Once slurmctld does not answer, nothing more is sent: that order and all further ones are answered
        unreachable. A few of the orders among them may or may not have happened.
        """
        ...


class Clock(Protocol):
    """The time, and how to wait."""

    def now(self) -> float:
        """Unix seconds."""
        ...

    def steady(self) -> float:
        """Seconds since some fixed moment; setting the wall clock does not change them."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait that long; return early when a stop is asked for."""
        ...


class Submissions(Protocol):
    """Tells that jobs have been submitted."""

    def forget(self) -> None:
        """Forget those until now, which are about to be looked at."""
        ...

    def wait(self, seconds: float) -> bool:
        """Wait that long, or less if a job is submitted or a stop asked for; True: one was submitted."""
        ...


class History(Protocol):
    """Tries of placements and the policy's history, kept over a restart."""

    def load(self) -> Mapping[int, Try]:
        """All tries by job id."""
        ...

    def load_memory(self, policy: str) -> PolicyHistory | None:
        """The history that the policy of that name saved last; None if it never saved one."""
        ...

    def save(self, changed: Iterable[Try], gone: Iterable[int], memory: PolicyHistory | None = None) -> None:
        """Write the changed tries and `memory`, and delete those of the jobs `gone`, in one transaction."""
        ...


class Decisions(Protocol):
    """The decision record: what was decided when, on what snapshot, for what reason."""

    def record(
        self,
        at_s: float,
        snapshot: Snapshot,
        plan: Plan,
        notes: Mapping[int, str],
        *,
        owners: Mapping[int, int],
        explanations: Mapping[int, Explanation],
        tasks: Mapping[int, tuple[int, int]],
        repeated: frozenset[int] = frozenset(),
        restarts: Mapping[int, RestartNote] = NO_RESTARTS,
    ) -> None:
        """Store one cycle that changed something: its plan, notes on other jobs (taken back, freed), and restarts.

        Everything is by job id: `owners` gives the user id, `explanations` how a spreadable job's alternatives came
        about, `tasks` the array id and the task number of an array's task. The jobs `repeated` were placed in vain once
        more, for the same reason: their notes are counted with the note before, and that placement is deleted.
        """
        ...

    def job_of_task(self, array_id: int, task: int) -> int | None:
        """The job id that a task of an array had when something was last decided about it."""
        ...

    def of_job(self, job_id: int) -> list[Decision]:
        """What was decided about the job, oldest first."""
        ...

    def snapshot_of(self, cycle_id: int) -> Snapshot | None:
        """The snapshot that a recorded cycle planned on; None if it is no longer kept, or never was."""
        ...

    def cycles_between(self, from_s: float, to_s: float) -> list[int]:
        """The recorded cycles of that time whose snapshots are kept, oldest first; `to_s` is not part of it."""
        ...


@dataclass(frozen=True, slots=True)
class EstimatedStart:
    """A job that has started, and its first estimate: what the look aheads said, and the range that was told.

    The moments `started_s`, `made_s` and `burst_s` (the first estimate of its burst) are Unix seconds, all others waits
    from `made_s` on, in seconds.
    """

    job_id: int
    started_s: float
    made_s: float
    owner: int
    burst_s: float
    raw_low_s: float
    raw_high_s: float
    low_s: float
    middle_s: float
    high_s: float


class EstimateStore(Protocol):
    """What estimates are learnt from. It may be lost: then they are wide ranges until there is a new past."""

    def load(self) -> tuple[Sequence[PastRun], Sequence[EstimatedStart]]:
        """What is kept, oldest first.

        Raises:
            Unreachable: it cannot be read.
        """
        ...

    def save(self, runs: Sequence[PastRun], starts: Sequence[EstimatedStart]) -> None:
        """Add these, and forget the oldest where there are too many.

        Raises:
            Unreachable: nothing was written.
        """
        ...


class Measurements(Protocol):
    """What agents have measured of runs that have ended, kept as long as decisions."""

    def record(self, runs: Sequence[MeasuredRun], now_s: float) -> None:
        """Store these, in the place of what was stored of the same runs on the same nodes.

        Raises:
            Unreachable: nothing was written.
        """
        ...

    def of_jobs(self, job_ids: Collection[int]) -> list[MeasuredRun]:
        """What is stored of all runs of these jobs.

        Raises:
            Unreachable: it cannot be read.
        """
        ...


class Heartbeat(Protocol):
    """The sign of life that the submit filter and the watchdog check."""

    def beat(self, now_s: float) -> None:
        """Write this moment as the last sign of life."""
        ...

    def stop(self) -> None:
        """Make the heartbeat stale at once: from now on submissions pass through."""
        ...


class KillSwitch(Protocol):
    """The file whose existence stops placing."""

    def is_on(self) -> bool:
        """Whether the file exists: all jobs are then to pass through."""
        ...


class Agents(Protocol):
    """The agents on the nodes. No call waits for one of them."""

    def states(self) -> Mapping[str, NodeState]:
        """What each connected agent said last of its node, by node; an agent that has said nothing yet is not in it."""
        ...

    def reports(self) -> tuple[RunReport, ...]:
        """The reports that have been received and not been acknowledged, oldest first; of each key there is one."""
        ...

    def acknowledge(self, keys: Iterable[ReportKey]) -> None:
        """Let the agents forget these reports, which are stored; `reports` no longer gives them."""
        ...

    def show_active(self, runs_by_node: Mapping[str, ActiveRuns]) -> None:
        """Let each agent know the active runs of its node; a node that is not named has none."""
        ...

    def change(self, changes: Mapping[str, Sequence[Change]]) -> None:
        """Send these changes to the agents of the nodes that they are for.

        An agent that is away gets them when it is back. They are dropped when `show_active` no longer has their run.
        """
        ...


@dataclass(frozen=True, slots=True)
class Mail:
    """A mail as Slurm sends it: `program` is its MailProg, which gets subject, address and environment variables.

    `to` and `subject` have nothing in them that a mail program could take for an option or a command.
    """

    program: str
    to: str
    subject: str
    variables: Mapping[str, str] = field(default_factory=dict)


class Mailer(Protocol):
    """Sends mail."""

    def send(self, mail: Mail) -> None:
        """Have this mail sent, and return at once; it is dropped where too many wait."""
        ...


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything outside the loop that it uses; `agents` is None on a site without any, `mailer` if none is sent.

    `measurements` is None where nothing is kept of what agents measure, `submissions` where nobody tells of them.
    """

    state: State
    executor: Executor
    history: History
    decisions: Decisions
    profiles: Profiles
    heartbeat: Heartbeat
    kill_switch: KillSwitch
    clock: Clock
    log: Log
    agents: Agents | None = None
    measurements: Measurements | None = None
    mailer: Mailer | None = None
    submissions: Submissions | None = None
