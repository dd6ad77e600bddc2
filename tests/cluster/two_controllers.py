"""Two controllers on the mini cluster: kill one, start it again, hand over, and what came of the jobs meanwhile.

For test_takeover.py, and for the rounds of takeovers.py.

Each job appends a line to a file of its own in the home that all nodes share: the second at which it began, and how
often Slurm has requeued it. So how often it ran and when is known from the job itself, whatever a slurmctld remembers.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from cluster import Cluster

HOSTS = ("ctl", "ctl2")
#: How slurmctld's command line begins; its process has another name after `scontrol reconfigure` (seen).
SLURMCTLD = "^[^ ]*slurmctld( |$)"
#: Where jobs write, below alice's home.
RAN = "/home/alice/ran"
#: A small job: half a node for a second and a half. Eight of them run at a time on the nodes c1 to c4.
SMALL = "-n14 --mem=1G -t2"
SCRIPT = f"echo $(date +%s.%N)/${{SLURM_RESTART_COUNT:-0}} >> {RAN}/$SLURM_JOB_ID; sleep 1.5"
#: Slurm puts off this change of the state that it saves by a few seconds (src/slurmctld/state_save.c): what slurmctld
#: was told last before it is killed is lost with it. Nothing is submitted so long before.
SAVED_AFTER_S = 10
#: How long an act may take: a primary that comes back waits up to 30 s for the backup to step down.
LONGEST_S = 180
_PLACED = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) job (\S+): placed on ", re.MULTILINE)


@dataclass(frozen=True)
class Gap:
    """The longest time without a beginning job around an act, and the act."""

    act: str
    seconds: float


@dataclass(frozen=True)
class Mended:
    """What an admin had to do after a slurmctld was killed: jobs released, and nodes resumed, with Slurm's reason."""

    released: tuple[int, ...]
    resumed: tuple[str, ...]


class TwoControllers:
    """The mini cluster that `containers/cluster.sh two` starts."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        #: When a slurmctld that had just been started was found to have ended.
        self.ended_at_once: list[str] = []

    def acting(self) -> str:
        """The host whose slurmctld acts, by Slurm's own record in the shared directory."""
        place = self.cluster.run("od -An -j8 -N8 -tu1 /var/lib/slurm/slurmctld/heartbeat", node="ctl2").split()[-1]
        return HOSTS[int(place)]

    def answers(self, host: str) -> bool:
        """Whether the scheduler on this host plans: it answers without an error."""
        return self.cluster.try_run("sns status", node=host).returncode == 0

    def wait_until_acting(self, host: str, *, scheduler: bool = True) -> None:
        """Wait until slurmctld acts on this host, and the scheduler plans there.

        A slurmctld that has ended as it came back is started again, as a person would.
        """

        def acts() -> bool:
            if not self._has_slurmctld(host):
                self.ended_at_once.append(time.strftime("%H:%M:%S"))
                self.start(host, scheduler=scheduler)
            return self.acting() == host and (not scheduler or self.answers(host))

        self.cluster.wait_for(f"{host} acts", acts, LONGEST_S, every_s=0.5)

    def kill(self, host: str, *, scheduler: bool = True) -> None:
        """Kill slurmctld, and the scheduler, at once, as a machine that loses its power."""
        names = [SLURMCTLD, "[s]ns scheduler"] if scheduler else [SLURMCTLD]
        self.cluster.run("; ".join(f"pkill -9 -f '{name}'" for name in names) + "; true", node=host)

    def stop(self, host: str) -> None:
        """Stop slurmctld alone, by SIGTERM: it saves its state before it ends. The scheduler goes on."""
        self.cluster.run(f"pkill -f '{SLURMCTLD}'; true", node=host)
        self.cluster.wait_for(f"slurmctld of {host} ends", lambda: not self._has_slurmctld(host))

    def _has_slurmctld(self, host: str) -> bool:
        """Whether slurmctld runs there, acting or not."""
        return self.cluster.try_run(f"pgrep -f '{SLURMCTLD}'", node=host).returncode == 0

    def start(self, host: str, *, scheduler: bool = True) -> None:
        """Start slurmctld and the scheduler where they do not run; slurmctld first."""
        self.cluster.run(f"pgrep -f '{SLURMCTLD}' > /dev/null || slurmctld", node=host)
        if scheduler:
            self.cluster.run("sns-daemon status scheduler > /dev/null || sns-daemon start scheduler", node=host)

    def take_over(self) -> None:
        """`scontrol takeover`: the backup is to act from now on. scontrol may not wait until it does."""
        self.cluster.try_run("scontrol takeover", node="ctl2")

    def submit(self, number: int, options: str = SMALL) -> list[int]:
        """Submit so many small jobs; their numbers."""
        self.cluster.run(f"mkdir -p {RAN}", "alice")
        return self.cluster.submit_all([(options, SCRIPT)] * number)

    def runs(self) -> dict[int, list[tuple[float, int]]]:
        """Each time that a job began, as it wrote it itself: the second, and how often Slurm had requeued it."""
        lines = self.cluster.run(f"cd {RAN} && grep -H . * || true", "alice").split()
        found: dict[int, list[tuple[float, int]]] = {}
        for name, _, told in (line.partition(":") for line in lines):
            moment, _, requeued = told.partition("/")
            found.setdefault(int(name), []).append((float(moment), int(requeued)))
        return found

    def began(self) -> dict[int, list[float]]:
        """The moments at which each job began."""
        return {number: [moment for moment, _ in runs] for number, runs in self.runs().items()}

    def held(self) -> dict[int, str]:
        """Jobs that are held, with Slurm's reason. Nobody here holds one but Slurm."""
        lines = self.cluster.run("squeue -a -h -t PD -o '%i|%Q|%r'", node=self.acting()).splitlines()
        rows = [line.split("|") for line in lines]
        return {int(number): reason for number, priority, reason in rows if priority == "0"}

    def mend(self) -> Mended:
        """Release jobs that Slurm holds, and resume nodes that it has drained, as an admin does."""
        held, host = sorted(self.held()), self.acting()
        nodes = self.cluster.run("sinfo -h -N -t drain -o '%N|%E' | sort -u", node=host).splitlines()
        if nodes:
            names = ",".join(line.partition("|")[0] for line in nodes)
            self.cluster.run(f"scontrol update NodeName={names} State=resume", node=host)
        if held:
            self.cluster.run(f"scontrol release {','.join(map(str, held))}", node=host)
        return Mended(tuple(held), tuple(nodes))

    def placements(self) -> list[tuple[float, str, str]]:
        """All placements that both schedulers have logged: the second, the host, the job; in order of time."""
        found = []
        for host in HOSTS:
            log = self.cluster.run("cat /var/log/sns/scheduler.log || true", node=host)  # none: Slurm alone
            for moment, job in _PLACED.findall(log):
                at = datetime.strptime(moment, "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC)
                found.append((at.timestamp(), host, job))
        return sorted(found)


def changes(placements: list[tuple[float, str, str]]) -> int:
    """How often the host that places changes to the other one, in order of time."""
    return sum(before[1] != after[1] for before, after in pairwise(placements))


def gap(act: str, began: dict[int, list[float]], from_s: float, to_s: float) -> Gap:
    """The longest time between two beginning jobs of that span, whose ends count as such."""
    moments = sorted(moment for each in began.values() for moment in each if from_s <= moment <= to_s)
    return Gap(act, round(max(after - before for before, after in pairwise([from_s, *moments, to_s])), 1))


def timed(act: Callable[[], object], clock: Callable[[], float]) -> float:
    """Do it; the second at which it began."""
    began_s = clock()
    act()
    return began_s
