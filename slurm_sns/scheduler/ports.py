"""What the loop needs of the world: eight small protocols. Edge packages implement them, tests pass fakes."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from slurm_sns.model import Plan, Snapshot
from slurm_sns.policies.profile import Program
from slurm_sns.policies.sns.alternatives_report import AlternativesReport
from slurm_sns.scheduler.observe.observed import Observation
from slurm_sns.scheduler.observe.records import Decision, JobRecord, Memory
from slurm_sns.scheduler.orders import Answer, Order


class State(Protocol):
    """Sees the cluster."""

    def observe(self) -> Observation:
        """One bulk look: jobs, then nodes.

        Raises:
            Unreachable: slurmctld does not answer.
        """
        ...


class Profiles(Protocol):
    """What is known of programs."""

    def load(self) -> Mapping[str, Program]:
        """The programs by name.

        Raises:
            SnsError: they cannot be read.
        """
        ...


class Executor(Protocol):
    """Changes jobs."""

    def execute(self, orders: Iterable[Order]) -> Iterator[Answer]:
        """Carry out these orders and answer each once; each is safe to repeat.

        An order is sent when its answer is asked for, in the order given: who stops asking sends no more. Placements
        that stand together are the exception: where they are many, several are under way at a time and answered as
        Slurm answers them. A refusal (the job is gone, has started, was changed) concerns its order alone. Once
        slurmctld does not answer nothing more is sent: that order and those that follow are answered unreachable. Of
        the placements among them, a few may or may not have happened.
        """
        ...


class Clock(Protocol):
    """The time, and how to wait."""

    def now(self) -> float:
        """Unix seconds."""
        ...

    def steady(self) -> float:
        """Seconds since some moment, whatever the time is set to."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait, or return early when a stop was asked for."""
        ...


class History(Protocol):
    """Our records of held and placed jobs, and what the policy itself remembers, kept over a restart."""

    def load(self) -> Mapping[int, JobRecord]:
        """All records by job id."""
        ...

    def load_memory(self, policy: str) -> Memory | None:
        """What the policy of that name remembered last; None where it never did."""
        ...

    def save(self, changed: Iterable[JobRecord], gone: Iterable[int], memory: Memory | None = None) -> None:
        """Write the changed records and `memory`, and forget the records of jobs that are gone, in one transaction."""
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
        explanations: Mapping[int, AlternativesReport],
        tasks: Mapping[int, tuple[int, int]],
        repeated: frozenset[int] = frozenset(),
    ) -> None:
        """Keep one cycle that changed something: its plan, and notes on jobs beside it (unpinned, released).

        `owners` gives the user id of each job, `explanations` how the alternatives of the spreadable ones came about,
        `tasks` the array and the task that a job is. The notes on `repeated` jobs say again what the note before said,
        after a placement in vain: they are counted with it, and that placement is forgotten.
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


class Heartbeat(Protocol):
    """The sign of life that the submit filter and the watchdog look for."""

    def beat(self, now_s: float) -> None:
        """Write the moment."""
        ...

    def stop(self) -> None:
        """Make the heartbeat stale at once: from now on submissions pass through."""
        ...


class KillSwitch(Protocol):
    """The file that turns us off."""

    def is_on(self) -> bool:
        """Whether everything is to pass through."""
        ...


Log = Callable[[str], None]
