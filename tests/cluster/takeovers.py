"""One controller after the other is killed, comes back and hands over, under a load of small jobs; prints JSON.

    containers/cluster.sh build && containers/cluster.sh two
    SNS_PROJECT=slurm-sns-two PYTHONPATH=containers:tests/cluster python tests/cluster/takeovers.py
        [--rounds 10] [--alone]

A round: slurmctld and scheduler of ctl are killed at once, ctl2 takes over; ctl comes back; `scontrol takeover` makes
ctl2 act; ctl comes back. Jobs wait all the time. --alone: the same jobs in a partition that Slurm places alone, and no
scheduler. For each act the longest time without a beginning job is printed; then jobs that never ran or ran twice, and
how often the placing host changed in the logs of both schedulers, beside how often it should have.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable

from two_controllers import RAN, SAVED_AFTER_S, SMALL, Gap, TwoControllers, changes, gap, timed

from cluster import Cluster

#: Jobs that are submitted whenever fewer wait: enough for the longest act, at four a second and more.
LEAST_WAITING, BATCH = 250, 150
#: So long jobs begin after each act before the next one.
STEADY_S = 8
#: How long an act may take: a primary that comes back waits up to 30 s for the backup to step down.
LONGEST_S = 150


class Takeovers:
    """The rounds: what was submitted, the gaps, and what went wrong."""

    def __init__(self, two: TwoControllers, *, alone: bool) -> None:
        self._two, self._alone = two, alone
        self._options = f"-p plain {SMALL}" if alone else SMALL
        self.submitted: list[int] = []
        self.gaps: list[Gap] = []
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
        two.cluster.wait_for(f"{to_host} acts", lambda: two.acting() == to_host, LONGEST_S, every_s=0.5)
        if not self._alone:
            two.wait_until_planning(to_host, LONGEST_S)
        acting_s = time.time()
        two.cluster.wait_for(
            "jobs begin again", lambda: any(at > acting_s for each in two.began().values() for at in each), LONGEST_S
        )
        time.sleep(STEADY_S)
        self.acts += 1
        self.gaps.append(gap(name, two.began(), began_s - 1, time.time()))
        sys.stderr.write(f"{self.gaps[-1]}\n")

    def round(self) -> None:
        """Kill the primary, bring it back, hand over, and back again."""
        two, with_scheduler = self._two, not self._alone
        self.act("kill", lambda: two.kill("ctl", scheduler=with_scheduler), "ctl2")
        self.act("return after kill", lambda: two.start("ctl", scheduler=with_scheduler), "ctl")
        self.act("scontrol takeover", two.take_over, "ctl2")
        self.act("return after takeover", lambda: two.start("ctl", scheduler=with_scheduler), "ctl")


def _summary(name: str, gaps: list[Gap]) -> dict[str, float]:
    found = [each.seconds for each in gaps if each.act == name]
    return {"times": len(found), "median_s": statistics.median(found), "longest_s": max(found)}


def main() -> None:
    """Run the rounds and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--alone", action="store_true")
    told = parser.parse_args()
    two = TwoControllers(Cluster())
    two.cluster.run(f"rm -rf {RAN}; mkdir {RAN}", "alice")
    before = changes(two.placements())
    takeovers = Takeovers(two, alone=told.alone)
    for _ in range(told.rounds):
        takeovers.round()
    two.cluster.run("scancel -t PD -u alice")
    time.sleep(SAVED_AFTER_S)
    began = two.began()
    states = two.cluster.run(
        f"sacct -n -X -P -S now-2hours -o JobID,State -j {','.join(map(str, takeovers.submitted))}"
    )
    cancelled = {int(line.split("|")[0]) for line in states.splitlines() if "CANCELLED" in line}
    names = dict.fromkeys(each.act for each in takeovers.gaps)
    said = {
        "rounds": told.rounds,
        "gaps": {name: _summary(name, takeovers.gaps) for name in names},
        "submitted": len(takeovers.submitted),
        "ran": len(began),
        "never_ran": sorted(set(takeovers.submitted) - began.keys() - cancelled),
        "ran_twice": {number: at for number, at in began.items() if len(at) > 1},
        "changes_of_the_placing_host": changes(two.placements()) - before,
        "acts": takeovers.acts,
    }
    sys.stdout.write(json.dumps(said, indent=2) + "\n")


if __name__ == "__main__":
    main()
