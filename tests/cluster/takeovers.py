"""One controller after the other is killed, comes back and hands over, under a load of small jobs; prints JSON.

    containers/cluster.sh build && containers/cluster.sh two
    SNS_PROJECT=slurm-sns-two PYTHONPATH=containers:tests/cluster python tests/cluster/takeovers.py
        [--rounds 10] [--alone] [--stop] [--minutes 60]

A round: slurmctld and scheduler of ctl are killed at once, ctl2 takes over; ctl comes back; `scontrol takeover` makes
ctl2 act; ctl comes back. Jobs wait all the time. --alone: the same jobs in a partition that Slurm places alone, and no
scheduler (SNS_AUTOSTART=0). --stop: slurmctld of ctl is stopped (SIGTERM) and saves its state; the scheduler beside it
goes on. --minutes: no round begins later than that.

After each act a person releases the jobs that Slurm holds and resumes the nodes that it has drained, and starts a
slurmctld again that has ended as it came back; all are counted.
For each act the longest time without a beginning job is printed; then jobs that never ran or ran twice, and how often
the placing host changed in the logs of both schedulers, beside how often it should have. A job that runs twice because
Slurm has requeued it says so itself: its second run has a restart count.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable

from two_controllers import LONGEST_S, RAN, SAVED_AFTER_S, SMALL, Gap, Mended, TwoControllers, changes, gap, timed

from cluster import Cluster, CommandFailed

#: Jobs that are submitted whenever fewer wait: enough for the longest act, at four a second and more.
LEAST_WAITING, BATCH = 250, 150
#: So long jobs begin after each act before the next one.
STEADY_S = 8
#: So long nothing begins until a person looks what is wrong. A job that Slurm believes to run is missed by it after
#: BatchStartTimeout, 60 s here, and nobody needs to do anything.
PERSON_AFTER_S = 20
#: How long the jobs that were requeued or released may take at the end.
LAST_S = 240


class Takeovers:
    """The rounds: what was submitted, the gaps, and what went wrong."""

    def __init__(self, two: TwoControllers, *, alone: bool, stops: bool) -> None:
        self._two, self._alone, self._stops = two, alone, stops
        self._options = f"-p plain {SMALL}" if alone else SMALL
        self.submitted: list[int] = []
        self.gaps: list[Gap] = []
        self.mended: list[Mended] = []
        self.acts = 0

    def fill(self) -> None:
        """Have enough jobs wait, and let slurmctld save them before the next act."""
        while int(self._two.cluster.run("squeue -a -h -t PD | wc -l")) < LEAST_WAITING:
            self.submitted += self._two.submit(BATCH, self._options)
        time.sleep(SAVED_AFTER_S)

    def act(self, name: str, do: Callable[[], object], to_host: str) -> None:
        """Do it, wait until jobs begin again under the controller `to_host`, and note the gap."""
        self.fill()
        began_s = timed(do, time.time)
        two = self._two
        two.wait_until_acting(to_host, scheduler=not self._alone)
        acting_s = time.time()
        two.cluster.wait_for("jobs begin again", lambda: self._begins_after(acting_s), LONGEST_S, every_s=1)
        time.sleep(STEADY_S)
        self.acts += 1
        self._mend()
        self.gaps.append(gap(name, two.began(), began_s - 1, time.time()))
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {self.gaps[-1]} {self.mended[-1:]}\n")

    def _begins_after(self, moment_s: float) -> bool:
        """Whether a job has begun since; where Slurm holds the jobs and nodes, a person mends that."""
        if any(at > moment_s for each in self._two.began().values() for at in each):
            return True
        if time.time() > moment_s + PERSON_AFTER_S:
            self._mend()
        return False

    def _mend(self) -> None:
        mended = self._two.mend()
        if mended.released or mended.resumed:
            self.mended.append(mended)

    def round(self) -> None:
        """Kill or stop the primary, bring it back, hand over, and back again."""
        two, with_scheduler = self._two, not self._alone
        name = "stop" if self._stops else "kill"

        def end() -> None:
            if self._stops:
                two.stop("ctl")
            else:
                two.kill("ctl", scheduler=with_scheduler)

        def come_back() -> None:
            two.start("ctl", scheduler=with_scheduler)

        self.act(name, end, "ctl2")
        self.act(f"return after {name}", come_back, "ctl")
        self.act("scontrol takeover", two.take_over, "ctl2")
        self.act("return after takeover", come_back, "ctl")


def _summary(name: str, gaps: list[Gap]) -> dict[str, float]:
    found = [each.seconds for each in gaps if each.act == name]
    return {"times": len(found), "median_s": statistics.median(found), "longest_s": max(found)}


def _finish(two: TwoControllers) -> set[int]:
    """Cancel what waits and is not held; release the others, and wait until no job is left. Returns the cancelled ones.

    Accounting would tell them only later.
    """
    held = set(two.held())
    waiting = {int(number) for number in two.cluster.run("squeue -a -h -t PD -o %i").split()}
    # Jobs that ran, and that Slurm has requeued, are to end by themselves.
    cancelled = waiting - held - two.began().keys()
    two.cluster.run(f"scancel {' '.join(map(str, sorted(cancelled)))}; true")

    def is_empty() -> bool:
        try:
            two.mend()
            return not two.cluster.run("squeue -a -h -o %i").split()
        except CommandFailed:
            return False

    two.cluster.wait_for("no job is left", is_empty, LAST_S, every_s=5)
    return cancelled


def _said(two: TwoControllers, takeovers: Takeovers, cancelled: set[int], before: int) -> dict[str, object]:
    runs = two.runs()
    twice = {number: times for number, times in runs.items() if len(times) > 1}
    names = dict.fromkeys(each.act for each in takeovers.gaps)
    return {
        "gaps": {name: _summary(name, takeovers.gaps) for name in names},
        "submitted": len(takeovers.submitted),
        "ran": len(runs),
        "cancelled_at_the_end": len(cancelled - runs.keys()),
        "never_ran": sorted(set(takeovers.submitted) - runs.keys() - cancelled),
        "ran_twice_requeued_by_slurm": {number: times for number, times in twice.items() if times[-1][1]},
        "ran_twice_otherwise": {number: times for number, times in twice.items() if not times[-1][1]},
        "held_by_slurm": [number for each in takeovers.mended for number in each.released],
        "drained_by_slurm": [line for each in takeovers.mended for line in each.resumed],
        "slurmctld_ended_at_once": two.ended_at_once,
        "changes_of_the_placing_host": changes(two.placements()) - before,
        "acts": takeovers.acts,
    }


def main() -> None:
    """Run the rounds and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--stop", action="store_true")
    parser.add_argument("--minutes", type=float, default=60)
    told = parser.parse_args()
    last_s = time.monotonic() + told.minutes * 60
    two = TwoControllers(Cluster())
    two.cluster.run(f"rm -rf {RAN}; mkdir {RAN}", "alice")
    before = changes(two.placements())
    takeovers = Takeovers(two, alone=told.alone, stops=told.stop)
    rounds, problem = 0, ""
    cancelled: set[int] = set()
    try:
        while rounds < told.rounds and time.monotonic() < last_s:
            takeovers.round()
            rounds += 1
        cancelled = _finish(two)
    except (TimeoutError, CommandFailed) as failed:
        problem = str(failed)
    said = {"rounds": rounds, "stopped_by": problem} | _said(two, takeovers, cancelled, before)
    sys.stdout.write(json.dumps(said, indent=2) + "\n")


if __name__ == "__main__":
    main()
