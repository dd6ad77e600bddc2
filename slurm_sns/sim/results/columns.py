"""The columns of a simulation's result files, each with its meaning, from which the headers are made."""

from collections.abc import Mapping

JOBS = {
    "job_id": "the job's number in the trace",
    "submit_s": "when it was submitted, on the trace's clock",
    "start_s": "when it started; of rescheduling, its last attempt",
    "end_s": "when it ended",
    "nodes": "its nodes, joined by `+`; of dfrs, those of its tasks at the end",
    "cores": "cores on each of its nodes; of dfrs, those that each task needs",
    "mem_gb": "memory on each of its nodes, GB; of dfrs, that of each task",
    "ways": "cache ways on each of its nodes; empty for none",
    "bandwidth_gbps": "memory bandwidth on each of its nodes, GB/s; empty for none",
    "scale": "the scale factor that it ran at; empty for policies that do not spread",
}
#: Further columns of the policies dfrs-*.
FLUID_JOBS = {
    "preemptions": "how many times it was paused",
    "migrations": "how many times it was moved",
    "stretch": "its turnaround over its run time, where less than 30 s count as 30 s",
}
#: Further columns of rescheduling.
POOL_JOBS = {
    "pool": "the pool of its last attempt",
    "suspensions": "how many times it was suspended",
    "suspended_s": "for how long, over its life, seconds",
    "restarts": "how many times it was restarted in another pool",
    "wasted_s": "the run time of its other attempts, seconds",
    "wait_s": "its time in queues, over its life, seconds",
}
CYCLES = {
    "time_s": "when the cycle was, on the trace's clock",
    "waiting": "the jobs that waited",
    "started": "the jobs that it started",
    "chosen": "the heuristic whose schedule was used; empty if no job was started by one",
    "winners": "the heuristics that matched most jobs, joined by `+`",
}


def header(*columns: Mapping[str, str]) -> str:
    """The first line of a file with these columns."""
    return ",".join(name for each in columns for name in each) + "\n"
