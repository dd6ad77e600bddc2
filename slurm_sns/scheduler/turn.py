"""Which of several controllers' schedulers plans: the one beside the acting slurmctld, while it holds the lease.

The place of slurmctld decides who may plan, because the submit filter in it reads the heartbeat of its own host. The
lease keeps the old planner and the new one apart around a takeover. Whatever else happens, what we change in a job
stands in the job: should two send an update of the same job at the same moment after all, each of them is whole, and
the later one counts.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Protocol

from slurm_sns.errors import SnsError, Unreachable
from slurm_sns.log import Log, Outage
from slurm_sns.scheduler.gate.orders import Answer, Order
from slurm_sns.scheduler.ports import Clock, Executor


class Lease(Protocol):
    """The right to plan, which ends by itself. All methods raise SnsError if it cannot be read or written."""

    @property
    def left_s(self) -> float:
        """How long it still lasts; 0 or less if it is not ours."""
        ...

    def take(self) -> str:
        """Take it if it is free; return who holds it, which is empty if we do."""
        ...

    def holder(self) -> str:
        """Who holds it, or held it last."""
        ...

    def hold(self) -> bool:
        """Renew it if it is time; False: it is lost."""
        ...

    def give_up(self) -> None:
        """Let somebody else take it at once."""
        ...


#: A slurmctld that has just taken over asks the nodes after 3 s which jobs they run (MIN_CHECKIN_TIME in
#: src/slurmctld/controller.c; seen on 26.05: their answers at 3.2 s). Until then one whose predecessor was killed may
#: take a job that runs for one that waits. It starts nothing by itself so soon, but after an update of a job it does:
#: then the node refuses the second copy, Slurm holds the job and drains the node (seen).
SETTLED_S = 5.0
#: While orders are sent, it is looked this often whether it still acts here: on NFS a look takes as long as an order.
LOOKED_S = 1.0


class _ActingHere:
    """Whether slurmctld acts on `host`, and for how long it has, as whoever asks again and again sees it."""

    def __init__(self, host: str, acting: Callable[[], str], steady: Callable[[], float]) -> None:
        self.host, self._acting, self._steady = host, acting, steady
        self._since_s: float | None = None
        self._looked_s = float("-inf")
        #: The host whose slurmctld acts, as it was last seen.
        self.where = ""

    def look(self) -> bool:
        """Whether it acts here now. Raises SnsError if that is not known."""
        self.where = self._acting()
        self._looked_s = self._steady()
        if self.where != self.host:
            self._since_s = None
        elif self._since_s is None:
            self._since_s = self._looked_s
        return self._since_s is not None

    def has_for(self, seconds: float) -> bool:
        """Whether it acts here now, and did at each look for so long. Raises SnsError if that is not known."""
        return self.look() and self._since_s is not None and self._steady() - self._since_s >= seconds

    def require(self) -> None:
        """Check that it acts here, or did less than LOOKED_S ago.

        Raises:
            Unreachable: it acts elsewhere.
            SnsError: that is not known.
        """
        is_known = self._since_s is not None and self._steady() - self._looked_s < LOOKED_S
        if not is_known and not self.look():
            raise Unreachable(f"slurmctld acts on {self.where} now; nothing more is sent from here")


class PlannerTurn:
    """The turn of the scheduler on `host`. `acting` names the host whose slurmctld acts.

    It comes once slurmctld has acted there for SETTLED_S. Nothing is sent in the last `update_s` of a lease: that long
    an update may be on its way.
    """

    def __init__(
        self, host: str, acting: Callable[[], str], lease: Lease, *, update_s: float, clock: Clock, log: Log
    ) -> None:
        self._host, self._lease = host, lease
        self._here = _ActingHere(host, acting, clock.steady)
        self._update_s, self._clock = update_s, clock
        self._outage = Outage(log, "; this scheduler does not plan without it")
        #: The host that plans, as far as it is known.
        self.planner = ""

    @property
    def told(self) -> str:
        """What a scheduler that stands by says of itself, in one line."""
        if self._outage.now:
            return f"this scheduler stands by: {self._outage.now}"
        if self.planner in ("", self._host):
            return "this scheduler stands by; nobody plans now: try again in a moment"
        return f"this scheduler stands by; {self.planner} plans: run this command there"

    def comes(self) -> bool:
        """Whether it is our turn now, for one who stands by; to be asked about once a second."""
        try:
            if self._here.has_for(SETTLED_S):
                self.planner = self._lease.take() or self._host
            else:
                self.planner = self._lease.holder() or self._here.where
            is_ours = self._lease.left_s > self._update_s
        except SnsError as problem:
            self._outage.met(str(problem), self._clock.now())
            return False
        self._outage.over(self._clock.now())
        return is_ours

    def lasts(self) -> bool:
        """Whether it is still our turn; before each cycle. While the lease cannot be renewed, it lasts to its end."""
        try:
            is_ours = self._here.look() and self._lease.hold()
        except SnsError as problem:
            self._outage.met(str(problem), self._clock.now())
            return self._lease.left_s > self._update_s
        self._outage.over(self._clock.now())
        return is_ours

    def require(self) -> None:
        """Check that an update that is sent now reaches slurmctld here, and has its effect before somebody else plans.

        Raises:
            Unreachable: nothing may be sent any more.
        """
        why = "somebody else has it"
        try:
            self._here.require()
            self._lease.hold()
        except Unreachable:
            raise
        except SnsError as problem:
            why = str(problem)
        if not self._lease.left_s > self._update_s:
            raise Unreachable(f"the lease of the scheduler that plans is lost: {why}; nothing more is sent")

    def ends(self) -> None:
        """Let the next one plan at once."""
        try:
            self._lease.give_up()
        except SnsError as problem:
            self._outage.met(str(problem), self._clock.now())


class FencedExecutor:
    """The Executor port of a planner with a turn: it asks for each answer only while an update may still be sent."""

    def __init__(self, executor: Executor, require: Callable[[], None]) -> None:
        self._executor, self._require = executor, require

    def execute(self, orders: Iterable[Order]) -> Iterator[Answer]:
        """Carry out the orders; once the turn is lost, nothing more is sent, and all further ones are unreachable."""
        left = {id(order): order for order in orders}
        answers = iter(self._executor.execute(tuple(left.values())))
        try:
            while left:
                self._require()
                answer = next(answers)
                del left[id(answer.order)]
                yield answer
        except Unreachable as problem:
            if isinstance(answers, Generator):
                answers.close()
            yield from (Answer(order, unreachable=problem) for order in left.values())


class WatchdogDuty:
    """Whether the watchdog on `host` may free jobs: it may once slurmctld has acted here for `grace_s`.

    Before, the scheduler here may still wait for its turn, and its heartbeat is old for no other reason.
    """

    def __init__(self, host: str, acting: Callable[[], str], grace_s: float, steady: Callable[[], float]) -> None:
        self._here, self._grace_s = _ActingHere(host, acting, steady), grace_s

    @property
    def acting(self) -> str:
        """The host whose slurmctld acts, as it was last seen."""
        return self._here.where

    def __call__(self) -> bool:
        """Whether it may now.

        Raises:
            SnsError: it is not known which slurmctld acts.
        """
        return self._here.has_for(self._grace_s)

    def require(self) -> None:
        """Check that slurmctld still acts here: another host's watchdog frees jobs there.

        Raises:
            Unreachable: it does not, or that is not known.
        """
        try:
            self._here.require()
        except SnsError as problem:
            raise Unreachable(str(problem)) from None
