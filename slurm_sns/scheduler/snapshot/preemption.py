"""Which jobs may preempt others. These jobs are left to Slurm: only Slurm can preempt a running job.

Our plans count the resources of running jobs as taken. A job that may preempt them would wait for them, gated by us,
where Slurm alone starts it at once. Jobs that may be preempted stay managed: Slurm considers the jobs that may preempt
them first (sort_job_queue2), whatever their priorities, so no placement takes what was freed for another job.

The rules are Slurm's (preempt_p_preemptable in its plugins preempt/partition_prio and preempt/qos). What is not known
counts as allowed. Jobs with the same partitions and QOS share one answer.
"""

from collections.abc import Iterable, Mapping

from slurm_sns.scheduler.observation.observed import Observation, ObservedJob, ObservedPartition, PreemptionRules

PARTITION_PRIO, QOS = "preempt/partition_prio", "preempt/qos"
#: Words of PreemptMode by which nothing is preempted: with GANG alone jobs are time-sliced.
_HARMLESS_MODES = frozenset({"OFF", "GANG"})
#: Slurm's word for "also jobs of the same QOS".
_WITHIN = "WITHIN"


class Preemptors:
    """The jobs of one observation that may preempt others."""

    def __init__(self, observation: Observation) -> None:
        rules = observation.preemption
        by = rules.type if is_on(rules) else ""
        self._everybody = _why_everybody(rules) if by else ""
        self._partitions = _by_tier(observation) if by == PARTITION_PRIO else {}
        self._qos = dict(map(_by_list, rules.of_qos or ())) if by == QOS else {}
        self._reasons: dict[tuple[tuple[str, ...], str], str] = {}

    def reason(self, job: ObservedJob) -> str:
        """Why the job may preempt others, as a clause; empty where it may not.

        A job that shows no QOS has its owner's default one, which may be any.
        """
        key = job.partitions, job.qos
        if key not in self._reasons:
            self._reasons[key] = self._found(*key)
        return self._reasons[key]

    def _found(self, partitions: tuple[str, ...], qos: str) -> str:
        names = qos.split(",") if qos else self._qos
        return self._everybody or _first(self._partitions, partitions) or _first(self._qos, names)

    def in_partition(self, name: str) -> str:
        """Why any job of this partition may preempt others, whatever its QOS; empty where it may not."""
        return self._everybody or self._partitions.get(name, "")


def is_on(rules: PreemptionRules) -> bool:
    """Whether Slurm preempts any job at all."""
    return rules.type not in ("", "preempt/none") and not set(rules.mode.split(",")) <= _HARMLESS_MODES


def _first(reasons: Mapping[str, str], names: Iterable[str]) -> str:
    return next((reasons[name] for name in names if name in reasons), "")


def _why_everybody(rules: PreemptionRules) -> str:
    """Why every job may preempt others; empty where the partition or the QOS tells which."""
    if rules.type not in (PARTITION_PRIO, QOS):
        return f"PreemptType is {rules.type}"
    if rules.type == QOS and rules.of_qos is None:
        return "until slurmdbd tells which QOS may, every job counts as one that may"
    if rules.type == QOS and _WITHIN in rules.mode.split(","):
        return f"PreemptMode is {rules.mode}"
    return ""


def _by_list(of_qos: tuple[str, frozenset[str]]) -> tuple[str, str]:
    name, preempted = of_qos
    return name, f"QOS {name} may preempt {', '.join(sorted(preempted))}"


def _by_tier(observation: Observation) -> dict[str, str]:
    """The partitions whose jobs may preempt others, with the reason: a lower partition shares a node with them."""
    shown = {partition.name: partition for partition in observation.partitions}
    found: dict[str, str] = {}
    for names in {node.partitions for node in observation.nodes}:
        found |= {name: f"partition {name} cannot be read" for name in names - shown.keys()}
        found |= _above_the_lowest([shown[name] for name in sorted(names & shown.keys())])
    return found


def _above_the_lowest(partitions: list[ObservedPartition]) -> dict[str, str]:
    """Of partitions that share a node, those above the lowest one whose jobs may be preempted; with the reason."""
    lowest = min((each for each in partitions if each.preempt_mode != "OFF"), key=_tier, default=None)
    if lowest is None:
        return {}
    higher = f"has a higher PriorityTier than {lowest.name} on the same nodes"
    return {each.name: f"partition {each.name} {higher}" for each in partitions if each.tier > lowest.tier}


def _tier(partition: ObservedPartition) -> int:
    return partition.tier
