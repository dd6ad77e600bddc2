"""Follows each job from its advice to what Slurm did, over all looks and runs of `sns observe`. Pure.

A run forgets the advices of the one before. A job that waits at the end of a run and is advised again in a later run of
the same policy counts once, with the later advice: what is told of it is too little rather than too much.
"""

from array import array
from collections import Counter
from dataclasses import dataclass, field

from slurm_sns.cli.json_types import AdviceOutcomeValues, AdviceValues, ObserveJson
from slurm_sns.errors import SnsError
from slurm_sns.node_lists import NodeLists

#: What became of a job, as outcomes say it; `WAITS` is the word for none.
EARLIER, SAME, LATER, GONE, WAITS = "earlier", "same", "later", "gone", "waits"
#: The sizes of jobs, in the order in which they are shown. The last is for looks that do not say the CPUs.
ONE_CPU, SOME_CPUS, SOME_NODES, ONE_NODE = "1 CPU", "several CPUs of a node", "several nodes", "one node"
SIZES = (ONE_CPU, SOME_CPUS, SOME_NODES, ONE_NODE)


@dataclass(slots=True)
class FollowedJob:
    """A job that was advised at `at_s`; `seconds` is how much earlier that was than Slurm, or than the last look."""

    label: str
    policy: str
    at_s: float
    partition: str
    cpus: int
    size: str
    nodes: str
    heuristic: str
    became: str = WAITS
    seconds: float = 0.0
    on_same_nodes: bool = False
    others: int = 0


@dataclass(slots=True)
class ObservedRun:
    """A run of `sns observe`: its policy, when it looked, and its advices that Slurm has not followed."""

    policy: str
    began_s: float
    ended_s: float
    looks: int = 0
    standing: dict[str, FollowedJob] = field(default_factory=dict)


@dataclass(slots=True)
class LetWait:
    """A job that Slurm started while the plan of the look before let it wait."""

    policy: str
    partition: str
    size: str


class FollowedJobs:
    """All looks together. `at_s`, `pending` and `managed` have a number for each look, in the file's order."""

    def __init__(self) -> None:
        self.at_s, self.pauses_s = array("d"), array("d")
        self.pending, self.managed = array("q"), array("q")
        self.jobs: list[FollowedJob] = []
        self.let_wait: list[LetWait] = []
        self.runs: dict[tuple[float, str], ObservedRun] = {}
        self.partitions: set[str] = set()
        self.hidden: set[str] = set()
        self.left_out: Counter[str] = Counter()
        self.not_managed: Counter[str] = Counter()
        self.looks_with_reasons = 0
        self._node_lists = NodeLists()

    def add(self, look: ObserveJson) -> None:
        """Count this look, too."""
        key = look["began_s"], look["policy"]
        at_s = look["at_s"]
        run = self.runs.setdefault(key, ObservedRun(look["policy"], at_s, at_s))
        if run.looks:
            self.pauses_s.append(max(0.0, at_s - run.ended_s))
        run.looks, run.ended_s = run.looks + 1, max(run.ended_s, at_s)
        self._count(look)
        for outcome in look["outcomes"]:
            self._end(run, outcome)
        for advice in look["advices"]:
            self._begin(run, advice, at_s)
        for each in look["overtaken"]:
            if each["job"] in run.standing:
                run.standing[each["job"]].others += len(each["others"])

    def close(self) -> None:
        """After the last look: what stands has waited until the last look of its run."""
        latest: dict[tuple[str, str], FollowedJob] = {}
        for run in self.runs.values():
            for job in run.standing.values():
                job.seconds = max(0.0, run.ended_s - job.at_s)
                self.jobs.append(job)
        for job in self.jobs:
            known = latest.get((job.policy, job.label))
            if known is None or job.at_s >= known.at_s:
                latest[job.policy, job.label] = job
        self.jobs = [job for job in self.jobs if job.became != WAITS or latest[job.policy, job.label] is job]

    def _count(self, look: ObserveJson) -> None:
        self.at_s.append(look["at_s"])
        self.pending.append(look["pending"])
        self.managed.append(look["managed"])
        self.partitions.update(look["partitions"])
        self.hidden.update(look["hidden"])
        self.left_out |= look["left_out"]  # the most of each: the same lines come with every look
        self.not_managed.update(look["not_managed"])
        self.looks_with_reasons += look["version"] > 1

    def _begin(self, run: ObservedRun, advice: AdviceValues, at_s: float) -> None:
        run.standing.setdefault(
            advice["job"],
            FollowedJob(
                advice["job"],
                run.policy,
                at_s,
                advice["partition"],
                advice["cpus"],
                self._size(advice["cpus"], advice["nodes"]),
                advice["nodes"],
                advice["heuristic"],
            ),
        )

    def _end(self, run: ObservedRun, outcome: AdviceOutcomeValues) -> None:
        became = outcome["comparison"]
        if became == LATER:
            size = self._size(outcome["cpus"], outcome["nodes"])
            self.let_wait.append(LetWait(run.policy, outcome["partition"], size))
        elif became in (EARLIER, SAME, GONE) and (job := run.standing.pop(outcome["job"], None)) is not None:
            job.became, job.seconds = became, outcome["seconds"] or 0.0
            job.on_same_nodes = outcome["on_same_nodes"]
            self.jobs.append(job)

    def _size(self, cpus: int, nodes: str) -> str:
        try:
            several = len(self._node_lists.names(nodes)) > 1
        except SnsError:  # a line that somebody has changed
            several = False
        if several:
            return SOME_NODES
        return ONE_NODE if cpus == 0 else ONE_CPU if cpus == 1 else SOME_CPUS
