"""A simulated day with bursts of urgent jobs, which suspend others: what restarts would have been proposed.

Half of the nodes belong to the partition `urgent`, too. A burst comes every two hours on average and takes some of
them. The other jobs have time limits of twice to four times their run time, and names; their owners let them restart.
The scheduler has conf/sns.yaml's settings but for `restart: propose`. The report is that of `sns report --config`.
"""

import tempfile
from pathlib import Path
from typing import Any

from slurm_sns.cli.live.parts import restart_rules
from slurm_sns.cli.live.report_of_restarts import restart_page, restart_values
from slurm_sns.config.settings import ReschedulingSection
from slurm_sns.model import Resources
from slurm_sns.report.text import as_text
from slurm_sns.store.database import open_store
from slurm_sns.store.recorded_plans import RecordedPlans
from world.day import ACCOUNTS, CORES, HOUR_S, HOURS, MEMORY_MB, NODES, Day
from world.slurm import SlurmSite
from world.slurm_jobs import USER_IDS

#: Three fifths of the cores on average: 900 jobs a day of 11 cores and an hour and a half on average.
JOBS, MEAN_RUN_S, LEAST_RUN_S, MOST_RUN_S = 900, 5400.0, 120.0, 36_000.0
SIZES = (4, 8, 16, 32)
PROGRAMS = ("mg", "lu", "cg", "ft", "ep")
#: Bursts: how often, how many nodes each takes, for how long (seconds), and their jobs' limit.
EVERY_S, BURST_NODES, BURST_S, BURST_LIMIT_S = 2 * HOUR_S, (2, NODES // 2), (600.0, 7200.0), 10_800
#: Of the mini cluster. Slurm's own are 30 and 120 s.
KILL_WAIT_S, REQUEUE_DELAY_S = 10.0, 5.0


class BurstDay(Day):
    """A day on a site whose urgent jobs suspend others."""

    restarts = restart_rules(ReschedulingSection(restart="propose"))
    #: How many urgent jobs came.
    urgent = 0

    @staticmethod
    def site() -> SlurmSite:
        names = tuple(f"n{at:03d}" for at in range(1, NODES + 1))
        return SlurmSite(
            dict.fromkeys(names, Resources(CORES, MEMORY_MB)),
            {"main": (names, 1), "urgent": (names[: NODES // 2], 10)},
            suspends_by_tier=True,
            kill_wait_s=KILL_WAIT_S,
            requeue_delay_s=REQUEUE_DELAY_S,
        )

    def begin(self) -> None:
        self.world.at(5.0, self._submit)
        self.world.at(HOUR_S, self._burst)

    def _submit(self) -> None:
        draw = self._random
        self.world.at(self.world.true_s + draw.expovariate(self._jobs / self._end_s), self._submit)
        user, cores = draw.choice(list(USER_IDS)), draw.choice(SIZES)
        run_s = min(max(draw.expovariate(1 / MEAN_RUN_S), LEAST_RUN_S), MOST_RUN_S)
        asked: dict[str, Any] = {"tasks": cores, "account": ACCOUNTS[user], "run_s": run_s, "partition": "main"}
        asked |= {"name": draw.choice(PROGRAMS), "walltime_s": 60 * (1 + int(run_s * draw.uniform(2, 4)) // 60)}
        asked |= {"memory_per_cpu_mb": 1000, "comment": "sns:restartable", "may_restart": True}
        self._send(user, asked)

    def _burst(self) -> None:
        draw = self._random
        self.world.at(self.world.true_s + draw.expovariate(1 / EVERY_S), self._burst)
        for _ in range(draw.randint(*BURST_NODES)):
            user = draw.choice(list(USER_IDS))
            asked = {"tasks": CORES, "account": ACCOUNTS[user], "run_s": draw.uniform(*BURST_S), "partition": "urgent"}
            self._send(user, asked | {"walltime_s": BURST_LIMIT_S, "memory_per_cpu_mb": 500, "name": "burst"})
            self.urgent += 1

    def _send(self, user: str, asked: dict[str, Any]) -> None:
        self.people.submit(self._labels, user, asked)
        self._labels += 1


def main(folder: Path, hours: float = HOURS, seed: int = 1) -> None:
    """Simulate the day, and write what `sns report` says of it to the folder."""
    with tempfile.TemporaryDirectory() as scratch:
        store = Path(scratch) / "sns.db"
        day = BurstDay(round(JOBS * hours / HOURS), hours, seed, store, lambda _: None)
        day.run()
        decided = RecordedPlans(open_store(f"sqlite:///{store}")).restarts()
        names = {number: name for name, number in USER_IDS.items()}
        values = restart_values(decided, lambda user_id: names.get(user_id, str(user_id)))
        shown = as_text(restart_page(values), 100).splitlines()
    counts = day.tally.counts
    submitted = f"{counts['jobs'] - day.urgent:,} jobs and {day.urgent:,} urgent ones were submitted"
    happened = f"there were {counts['suspend']:,} suspensions and {counts['requeue']:,} requeues"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text(
        f"""# What restarts would have been proposed in a simulated day

`PYTHONPATH=tests python -m world bursts FOLDER` runs the scheduler for {hours:.0f} hours in the simulated world of
faults, on {NODES} nodes of {CORES} cores, with `restart: propose`. Bursts of urgent jobs come every two hours on
average and suspend what runs on up to half of the nodes. Run times, limits and bursts are random (seed {seed}).

{submitted}; {happened}. This is what
`sns report --config sns.yaml` says afterwards:

{"".join(f"    {line}".rstrip() + chr(10) for line in shown)}
It shows what the report looks like, and how often a restart is proposed on such a site. It is no measurement of a gain:
nothing was restarted. For that there is [the replay with live limits](../idcp-live/README.md).
""",
        encoding="utf-8",
    )
