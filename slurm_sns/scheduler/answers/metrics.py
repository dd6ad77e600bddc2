"""The values of the metrics (metric_table), from what was counted and from the last cycle's view.

What a view says is served only while it is fresh: a monitoring system must not take an old queue for the queue of now.
The view's part is computed when it is asked for, once for each view, so that a cycle pays for counting alone.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from slurm_sns import __version__
from slurm_sns.gpus import by_type
from slurm_sns.metric_table import Samples
from slurm_sns.model import Job, Node, Reason, Resources, WaitKind, total
from slurm_sns.policies.placement.reasons import RESOURCES as PLANNED
from slurm_sns.policies.placement.reasons import idle_withheld_cores
from slurm_sns.scheduler.answers.status_answer import status
from slurm_sns.scheduler.answers.stranded import Needs, left_free, stranded, waiting_needs
from slurm_sns.scheduler.answers.view import RecentCycles, View
from slurm_sns.scheduler.counters import Counters, Histogram
from slurm_sns.scheduler.gate.job_status import is_held
from slurm_sns.scheduler.observation import JobState, ObservedJob
from slurm_sns.scheduler.ports import NONE_TAKEN_BACK
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.sharing.sharer import NOTHING_SHARED, SharingView
from slurm_sns.scheduler.snapshot.situation import Situation

MODES = ("observe", "advise", "enforce")
MIB = 2**20
BYTES_OF_GB = 10**9
#: What a reason of the kind `resources` may be about (policies.placement.reasons).
RESOURCES = (*PLANNED, "an empty node")
#: The words `free=` of records that are shown by themselves (submit.record.reason), and what they are called.
LEFT_WHY = {
    "the-scheduler-shows-no-sign-of-life": "watchdog",
    "clean-stop": "clean stop",
    "sns-release": "sns release",
    "disabled": "disabled",
    "mode-not-enforce": "mode",
    "advise": "advise",
    "deadline": "deadline",
    "node-list": "node list",
    "opened-by-its-owner": "opened by its owner",
    "changed-by-its-owner": "changed by its owner",
    "unreadable": "unreadable",
}
OTHER = "other"
#: The kinds of reasons of jobs that a cycle looks at and finds no nodes for, without another job's claim to them.
_FINDS_NO_NODES = (WaitKind.RESOURCES, WaitKind.NODES, WaitKind.QUEUE_DEPTH, WaitKind.OTHER)


class MetricsAnswers:
    """Gives the metrics' values. `troubles` says by part what does not work now, `now_s` gives Unix seconds."""

    def __init__(
        self,
        recent: RecentCycles,
        counters: Counters,
        settings: Settings,
        troubles: Callable[[], Mapping[str, str]],
        now_s: Callable[[], float],
        *,
        policy: str,
        interval_s: float,
    ) -> None:
        self._recent, self._counters, self._settings = recent, counters, settings
        self._troubles, self._now_s = troubles, now_s
        self._policy, self._interval_s = policy, interval_s
        self._wins: Counter[str] = Counter()
        self._taken_back, self._sharing = NONE_TAKEN_BACK, NOTHING_SHARED
        self._computing = threading.Lock()
        self._computed: tuple[View, Samples] | None = None

    def publish(self, view: View) -> None:
        """Count what a cycle that has just ended shows."""
        self._counters.cycles.add(view.took_s)
        self._counters.started(view.situation.holding, view.at_s)
        self._taken_back, self._sharing = view.taken_back, view.sharing
        if view.plan.starts and view.plan.report.chosen:
            self._wins[view.plan.report.chosen] += 1

    def answer(self) -> Samples:
        """All values; those of the last cycle only if it is not older than the heartbeat may be."""
        view, samples = self._recent.view, self._of_counters()
        if view is not None:
            samples["last_cycle_timestamp_seconds"] = [([], view.at_s)]
            if abs(self._now_s() - view.at_s) <= self._settings.heartbeat_timeout_s:
                samples |= self._of_view(view)
        return samples

    def _of_view(self, view: View) -> Samples:
        with self._computing:
            if self._computed is None or self._computed[0] is not view:
                self._computed = view, view_samples(view, self._recent, self._settings)
            return self._computed[1]

    def _of_counters(self) -> Samples:
        counters, settings, taken_back = self._counters, self._settings, self._taken_back
        pauses: Samples = {"sharing_pauses_total": [([], self._sharing.paused)]} if self._sharing.is_on else {}
        return {
            "build_info": [([__version__, self._policy], 1)],
            "mode": [([mode], int(mode == settings.mode)) for mode in MODES],
            "trouble": [([part], int(bool(trouble))) for part, trouble in self._troubles().items()],
            "scheduler_start_time_seconds": [([], counters.began_s)],
            "heartbeat_timeout_seconds": [([], settings.heartbeat_timeout_s)],
            "cycle_interval_seconds": [([], self._interval_s)],
            "cycle_duration_seconds": [([], counters.cycles.read())],
            "cycle_phase_seconds_total": [([phase], spent_s) for phase, spent_s in counters.phase_s.items()],
            "slurm_read_duration_seconds": [([], counters.reads.read())],
            "slurm_read_errors_total": [([], counters.read_errors)],
            "job_changes_total": [([kind, result], count) for (kind, result), count in counters.changes.items()],
            "placements_taken_back_total": [(["limit"], taken_back.by_limit), (["not started"], taken_back.in_vain)],
            "job_wait_seconds": [([name], waits.read()) for name, waits in _shown(counters.waits)],
            "portfolio_wins_total": [([name], count) for name, count in self._wins.copy().items()],
            **pauses,
        }


def _shown(waits: Mapping[str, Histogram]) -> Iterator[tuple[str, Histogram]]:
    """Those of the managed partitions, and of others once there is a start."""
    return ((name, each) for name, each in waits.items() if name != OTHER or sum(each.read()[0]) > 0)


def view_samples(view: View, recent: RecentCycles, settings: Settings) -> Samples:
    """What the view says: of the queue, the nodes and the agents."""
    told = status(view, recent, "", None, settings)
    waiting = waiting_jobs(view)
    nodes = left_free(view)
    states = {name: told[name] for name in ("held", "placing", "running", "completing", "suspended")}
    samples: Samples = {
        "disabled": [([], int(view.disabled))],
        "jobs": [([name], count) for name, count in {"waiting": _unheld(view, told["waiting"]), **states}.items()],
        "waiting_jobs": [([kind], count) for kind, count in _by_kind(reason for _, reason in waiting).items()],
        "waiting_jobs_lacking": [([name], count) for name, count in _lacking(reason for _, reason in waiting).items()],
        "oldest_waiting_seconds": [([name], age_s) for name, age_s in _oldest_s(view, waiting, settings).items()],
        "smallest_waiting_job_fits": [([], int(smallest_fits(view, waiting, nodes)))],
        "jobs_left_to_slurm": [([why], count) for why, count in _left(view.situation.observed).items()],
        "misplaced_jobs": [([], len(told["differences"]))],
        "unreadable_records": [([], len(told["unreadable"]))],
        "nodes": [(["planned"], told["nodes"]), (["unavailable"], len(told["nodes_unavailable"]))],
        **_capacity(nodes, waiting_needs(view)),
        **_shared_cores(view.sharing),
    }
    withheld = idle_withheld_cores(view.plan)
    if withheld is not None:
        samples["withheld_cores"] = [([], withheld)]
    if "agents" in told:
        agents = told["agents"]
        samples |= {
            "agents": [(["connected"], agents["connected"]), (["away"], len(agents["away"]))],
            "agents_in_trouble": [([], len(agents["troubles"]))],
            "agents_unpartitioned": [([], len(agents["unpartitioned"]))],
            "exploring_nodes": [([], told["learning"]["exploring_nodes"])],
        }
    return samples


def _shared_cores(sharing: SharingView) -> Samples:
    """What the view says of partitions whose jobs share cores; nothing where there are none."""
    if not sharing.is_on:
        return {}
    values = {
        "sharing_jobs": len(sharing.yields),
        "sharing_least_yield": sharing.least_yield,
        "sharing_lost_core_seconds": sharing.lost_core_s,
        "sharing_most_lost_core_seconds": sharing.most_lost_core_s,
    }
    return {name: [([], value)] for name, value in values.items()}


def waiting_jobs(view: View) -> list[tuple[ObservedJob, Reason]]:
    """Our waiting jobs that the cycle has not placed, each with its reason; a task of an array has that of its record.

    A record of several tasks has the reason of its first one.
    """
    situation = view.situation
    started = {start.job_id for start in view.plan.starts} if view.mode == "enforce" else set()
    first_of: dict[int, int] = {}
    for task in situation.tasks.values():
        if task.array_id is not None and task.id not in started:
            first_of.setdefault(task.array_id, task.id)
    found = []
    for job in situation.jobs.values():
        if job.state is not JobState.PENDING or job.id in started or situation.statuses[job.id].is_starting:
            continue
        text = _own(view, job.id)
        if text is None and job.is_array_record and job.array_id in first_of:
            text = _own(view, first_of[job.array_id])
        found.append((job, Reason.of(text or "")))
    return found


def _own(view: View, job_id: int) -> str | None:
    return view.situation.blocked.get(job_id, view.plan.waiting.get(job_id))


def _unheld(view: View, waiting: int) -> int:
    """The number of waiting jobs without those that are held, which `sns status` counts with them."""
    statuses = view.situation.statuses
    held = sum(
        job.state is JobState.PENDING and is_held(job) and not statuses[job.id].is_starting
        for job in view.situation.jobs.values()
    )
    return max(0, waiting - held)


def _by_kind(reasons: Iterable[Reason]) -> dict[str, int]:
    return {kind.value: 0 for kind in WaitKind} | Counter(reason.kind.value for reason in reasons)


def _lacking(reasons: Iterable[Reason]) -> dict[str, int]:
    found = dict.fromkeys((*RESOURCES, OTHER), 0)
    for reason in reasons:
        if reason.kind is WaitKind.RESOURCES:
            for name in reason.about.replace(" or ", " and ").split(" and "):
                found[name if name in RESOURCES else OTHER] += 1  # a policy of a site's own may have words of its own
    return found


def _oldest_s(view: View, waiting: Sequence[tuple[ObservedJob, Reason]], settings: Settings) -> dict[str, float]:
    oldest = dict.fromkeys(sorted(settings.partitions), 0.0)
    for job, _ in waiting:
        for name in oldest.keys() & set(job.partitions):
            oldest[name] = max(oldest[name], view.at_s - job.submit_s)
    return oldest


def _left(jobs: Iterable[ObservedJob]) -> dict[str, int]:
    found = dict.fromkeys((*LEFT_WHY.values(), OTHER), 0)
    for job in jobs:
        record = job.record
        if record is not None and record.is_slurms and job.state is not JobState.ENDED:
            found[LEFT_WHY.get(record.free_why, OTHER)] += 1
    return found


def _capacity(nodes: Sequence[Node], needs: Needs) -> Samples:
    has, free = total(node.capacity for node in nodes), total(node.free for node in nodes)
    lost = total(stranded(needs, node) for node in nodes)
    values: dict[str, Any] = {
        "cores": has.cores,
        "free_cores": free.cores,
        "stranded_cores": lost.cores,
        "memory_bytes": has.memory_mb * MIB,
        "free_memory_bytes": free.memory_mb * MIB,
    }
    if has.ways:
        values |= {"cache_ways": has.ways, "free_cache_ways": free.ways}
    if has.bandwidth_gbps:
        values["memory_bandwidth_bytes_per_second"] = has.bandwidth_gbps * BYTES_OF_GB
        values["free_memory_bandwidth_bytes_per_second"] = free.bandwidth_gbps * BYTES_OF_GB
    found: Samples = {name: [([], value)] for name, value in values.items()}
    if has.gpus:
        found["gpus"] = [([kind], count) for kind, count in by_type(has.gpus).items()]
        for name, gpus in (("free_gpus", by_type(free.gpus)), ("stranded_gpus", by_type(lost.gpus))):
            found[name] = [([kind], gpus.get(kind, 0)) for kind in by_type(has.gpus)]
    return found


def smallest_fits(view: View, waiting: Sequence[tuple[ObservedJob, Reason]], nodes: Sequence[Node]) -> bool:
    """Whether the smallest job that should have been placed would fit on these nodes.

    It only compares amounts, so that an alert notices when nothing starts though there is room, whatever the cause.
    Left out are jobs that wait for something else than nodes (one switch, a limit, their owner), and all while capacity
    is withheld, which has an alert of its own. Of jobs whose last placement failed only those of one node are looked
    at, with as many cores as they ask for CPUs.
    """
    planned = {job.id: job for job in view.situation.snapshot.waiting}
    started = {start.job_id for start in view.plan.starts}
    wanted = [
        planned[job_id]
        for job_id, text in view.plan.waiting.items()
        if job_id in planned and job_id not in started and _looks_for_nodes(Reason.of(text))
    ]
    if wanted and not view.plan.report.withheld_for and _fits(min(wanted, key=_size), nodes):
        return True
    retried = [job for job, reason in waiting if reason.kind is WaitKind.RETRY and (job.nodes_min or 1) == 1]
    return bool(retried) and _fits_by_request(min(retried, key=lambda job: job.cpus), view.situation, nodes)


def _looks_for_nodes(reason: Reason) -> bool:
    return reason.kind in _FINDS_NO_NODES and not reason.about.startswith("one switch")


def _size(job: Job) -> tuple[int, int]:
    first = job.alternatives[0]
    return first.nodes * first.demand.cores, first.nodes * first.demand.memory_mb


def _fits(job: Job, nodes: Iterable[Node]) -> bool:
    allowed = [node for node in nodes if job.allowed is None or node.name in job.allowed]
    return any(
        sum(each.demand.within(node.free) and (not each.exclusive or node.free == node.capacity) for node in allowed)
        >= each.nodes
        for each in job.alternatives
    )


def _fits_by_request(job: ObservedJob, situation: Situation, nodes: Iterable[Node]) -> bool:
    memory_mb = job.memory_per_node_mb or (job.memory_per_cpu_mb or 0) * job.cpus
    needed = Resources(job.cpus, memory_mb)
    return any(
        needed.within(node.free)
        for node in nodes
        if not situation.nodes[node.name].partitions.isdisjoint(job.partitions)
    )
