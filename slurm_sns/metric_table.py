"""The metrics of a running slurm_sns: name, type, labels and meaning of each.

The scheduler gives the values (scheduler.answers.metrics), `sns exporter` shows them in Prometheus' text form. No label
has a user, an account or a job; every label has few values, which the table names or which sns.yaml has.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class MetricType(StrEnum):
    """The types of Prometheus that are used here."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric; a counter's name ends in `_total`, a histogram has the upper `bounds` of its buckets, without +Inf."""

    name: str
    type: MetricType
    help: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()

    @property
    def series(self) -> tuple[str, ...]:
        """The names of its series as Prometheus stores them."""
        if self.type is MetricType.HISTOGRAM:
            return tuple(f"{self.name}_{part}" for part in ("bucket", "count", "sum"))
        return (self.name,)


#: From a cycle of ten jobs to one of a hundred thousand.
CYCLE_BOUNDS_S = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
#: From a job that starts in the next cycle to one that waits for a week.
WAIT_BOUNDS_S = (10.0, 60.0, 300.0, 900.0, 3600.0, 4 * 3600.0, 12 * 3600.0, 86400.0, 3 * 86400.0, 7 * 86400.0)

UP = "slurm_sns_up"


def _gauge(name: str, told: str, *labels: str) -> Metric:
    return Metric(f"slurm_sns_{name}", MetricType.GAUGE, told, labels)


def _counter(name: str, told: str, *labels: str) -> Metric:
    return Metric(f"slurm_sns_{name}", MetricType.COUNTER, told, labels)


def _histogram(name: str, told: str, bounds: Sequence[float], *labels: str) -> Metric:
    return Metric(f"slurm_sns_{name}", MetricType.HISTOGRAM, told, labels, tuple(bounds))


METRICS = (
    Metric(UP, MetricType.GAUGE, "1 if the scheduler answers. If 0, no other metric of slurm_sns is served."),
    _gauge("build_info", "1; its labels say which version runs with which policy.", "version", "policy"),
    _gauge("mode", "1 for the mode of sns.yaml (observe, advise, enforce), 0 for the others.", "mode"),
    _gauge("disabled", "1 while sns disable has turned slurm_sns off."),
    _gauge(
        "trouble",
        "1 while a part does not work: cycle (Slurm does not answer, or a cycle fails), store, learning, restarts, "
        "sharing, estimates.",
        "part",
    ),
    _gauge("scheduler_start_time_seconds", "When the scheduler began to count, Unix seconds."),
    _gauge("last_cycle_timestamp_seconds", "When the last cycle ended, Unix seconds; missing before the first."),
    _gauge("heartbeat_timeout_seconds", "scheduler.heartbeat_timeout_s of sns.yaml."),
    _gauge("cycle_interval_seconds", "scheduler.interval_s of sns.yaml."),
    _histogram("cycle_duration_seconds", "How long the cycles took that ended well.", CYCLE_BOUNDS_S),
    _counter("cycle_phase_seconds_total", "Time spent in a phase: observe, plan, send.", "phase"),
    _histogram(
        "slurm_read_duration_seconds",
        "How long it took slurmctld to show all jobs, nodes, reservations and partitions.",
        CYCLE_BOUNDS_S,
    ),
    _counter("slurm_read_errors_total", "Reads that slurmctld did not answer."),
    _counter(
        "job_changes_total",
        "Changes of jobs sent to slurmctld, by kind (place, regate, free, renew, widen, unboost, limit, requeue, "
        "signal) and result (done, refused, unreachable).",
        "kind",
        "result",
    ),
    _counter(
        "placements_taken_back_total",
        "Placements that were undone: limit (the job met a limit of its user, account or QOS), not started (in time, "
        "for any other reason).",
        "why",
    ),
    _gauge(
        "jobs",
        "Managed jobs by state: waiting, held, placing, running, completing, suspended. The waiting tasks of an array "
        "count as one.",
        "state",
    ),
    _gauge("waiting_jobs", "Managed jobs that wait or are held, by the kind of the reason (sns queue --why).", "why"),
    _gauge(
        "waiting_jobs_lacking",
        "Of those that wait for resources, how many lack this one on the nearest node; a job may lack several.",
        "resource",
    ),
    _gauge("oldest_waiting_seconds", "For how long the oldest waiting job has waited; 0 if none waits.", "partition"),
    _gauge(
        "smallest_waiting_job_fits",
        "1 if the smallest job that waits for nodes would fit on what the last cycle left free, without withheld "
        "capacity.",
    ),
    _gauge(
        "jobs_left_to_slurm",
        "Waiting, running and suspended jobs that slurm_sns has given to Slurm, by the reason in their record: "
        "watchdog if it had shown no sign of life.",
        "why",
    ),
    _histogram(
        "job_wait_seconds",
        "From submission to start, of jobs that started where slurm_sns placed them.",
        WAIT_BOUNDS_S,
        "partition",
    ),
    _gauge("misplaced_jobs", "Jobs that run on other nodes than planned."),
    _gauge("unreadable_records", "Records of Slurm that could not be read."),
    _gauge("nodes", "Nodes by state: planned (used for planning), unavailable.", "state"),
    _gauge("cores", "Cores of the nodes that are planned on."),
    _gauge("free_cores", "Those of them that are free after the last cycle."),
    _gauge("stranded_cores", "Free cores on nodes without enough free memory for any waiting job."),
    _gauge("withheld_cores", "Free cores that are withheld for a waiting job."),
    _gauge("memory_bytes", "Memory of the nodes that are planned on."),
    _gauge("free_memory_bytes", "What of it is free after the last cycle."),
    _gauge("cache_ways", "Cache ways of the nodes that are planned on; missing where none are configured."),
    _gauge("free_cache_ways", "Those of them that are free after the last cycle."),
    _gauge("gpus", "GPUs of the nodes that are planned on, by type (empty: without one).", "type"),
    _gauge("free_gpus", "Those of them that are free after the last cycle.", "type"),
    _gauge(
        "stranded_gpus",
        "Free GPUs on nodes without enough free cores and memory for any waiting job that asks for their type, or for "
        "any; 0 if none asks.",
        "type",
    ),
    _gauge("memory_bandwidth_bytes_per_second", "Memory bandwidth of these nodes; missing where none is configured."),
    _gauge("free_memory_bandwidth_bytes_per_second", "What of it is free after the last cycle."),
    _counter("portfolio_wins_total", "Cycles in which this heuristic's schedule was dispatched.", "heuristic"),
    _gauge("agents", "Nodes that need an agent, by its state: connected, away; missing without agents.", "state"),
    _gauge("agents_in_trouble", "Connected agents that cannot work."),
    _gauge("agents_unpartitioned", "Connected agents that do not partition their node's cache."),
    _gauge("exploring_nodes", "Nodes that exploring runs hold."),
    _gauge(
        "sharing_jobs",
        "Jobs that run on nodes whose cores are shared, whoever placed them. This metric and the next four are missing "
        "where no partition shares cores (sharing.partitions).",
    ),
    _gauge("sharing_least_yield", "The smallest part of its cores that one of these jobs gets, 0 to 1; 1 without any."),
    _gauge("sharing_lost_core_seconds", "The work that the pauses of the last 24 hours have lost, at most."),
    _gauge("sharing_most_lost_core_seconds", "What pauses may lose in 24 hours (sharing.most_lost)."),
    _counter("sharing_pauses_total", "Jobs that share cores and were paused: requeued to make room for others."),
)
BY_NAME = {metric.name.removeprefix("slurm_sns_"): metric for metric in METRICS}

#: The values of each metric that has any, by its name without `slurm_sns_`: pairs of the labels' values, in the order
#: of the table, and the value. A histogram's is the count of each bucket, +Inf last, and the sum.
Samples = dict[str, list[tuple[list[str], Any]]]
