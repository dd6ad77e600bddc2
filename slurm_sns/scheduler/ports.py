"""What the loop needs from outside: nine small protocols. Edge packages implement them, tests pass fakes.

And what the store keeps for the scheduler over a restart beside the jobs' own records: tries of placements, the
policy's history, decisions. All of it may be lost: that costs time, never correctness.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from slurm_sns.log import Log
from slurm_sns.model import Plan, Snapshot
from slurm_sns.policies.base import Explanation
from slurm_sns.policies.profile import Program
from slurm_sns.scheduler.gate.failed_placements import Try
from slurm_sns.scheduler.gate.orders import Answer, Order
from slurm_sns.scheduler.observation import Observation
from slurm_sns.wire.values import ActiveRuns, Change, NodeState, ReportKey, RunReport


class PolicyHistory(NamedTuple):
    """The history of a policy's last plan, as JSON in the form of this version; an empty text is no history."""

    policy: str
    version: int
    text: str


@dataclass(frozen=True, slots=True)
class Decision:
    """One line of the decision record: `action` is "start" (on `nodes`) or "note".

    `chosen` and `matched` are those of the cycle: the heuristic whose schedule was dispatched, and how many jobs each
    heuristic matched. For a start, `scale` and `demand` are those of the alternative that was taken (`demand` by
    resource, on each node), and `considered` says how a spreadable job's alternatives came about
    (policies.base.Explanation, as JSON values). A note that came several times in a row is one line, the last
    one; `times` counts them.
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
    ) -> None:
        """Store one cycle that changed something: its plan, and notes on other jobs (taken back, freed).

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
        """The snapshot that a recorded cycle planned on; None when it is no longer kept."""
        ...

    def cycles_between(self, from_s: float, to_s: float) -> list[int]:
        """The recorded cycles of that time whose snapshots are kept, oldest first; `to_s` is not part of it."""
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
class Ports:
    """Everything outside the loop that it uses; `agents` is None on a site without any."""

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
