"""`sns exporter` on a busy cluster: its values are those of squeue, sinfo and scontrol, and none is ever old."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from cluster import PYTHON, Cluster, Seen

PATIENCE_S = 120
MIB = 2**20
FETCH = f"""{PYTHON} -I -S -c '
import urllib.request
print(urllib.request.urlopen("http://127.0.0.1:9831/metrics", timeout=20).read().decode())'"""
#: Of alice's jobs: their options and how many. Beside a job of two cores in partition plain, six cores stay free.
MANAGED = {"-p main -n28": 3, "-p main -n20": 1, "-p small -n4": 2}
LITTLE = "--mem-per-cpu=100"

Series = dict[tuple[str, ...], float]


@pytest.fixture
def series(cluster: Cluster) -> Iterator[Callable[[], Series]]:
    """What the exporter serves now: each value by the series' name without `slurm_sns_` and its labels' values."""

    def series() -> Series:
        samples = (each for family in text_string_to_metric_families(cluster.run(FETCH)) for each in family.samples)
        return {
            (each.name.removeprefix("slurm_sns_"), *(each.labels[label] for label in sorted(each.labels))): each.value
            for each in samples
        }

    cluster.daemon("start", "exporter")
    yield series
    cluster.daemon("stop", "exporter")


def started_here(jobs: dict[int, Seen]) -> dict[int, float]:
    """The waits of jobs that started where slurm_sns placed them, by id."""
    return {
        number: job.start_s - job.submit_s
        for number, job in jobs.items()
        if job.record is not None and job.record.is_placed and job.nodes
    }


def test_values_are_those_of_slurm_and_none_is_served_by_a_scheduler_that_is_silent(
    cluster: Cluster, series: Callable[[], Series]
) -> None:
    before, known = series(), started_here(cluster.jobs())
    cluster.submit("-p plain -w c4 -n 2 --mem=30000", "sleep 600")
    running = cluster.submit_all(
        [(f"{options} {LITTLE}", "sleep 600") for options, many in MANAGED.items() for _ in range(many)]
    )
    cluster.wait_for(
        "the managed jobs run", lambda: all(cluster.job(each).state == "RUNNING" for each in running), PATIENCE_S
    )
    waiting = cluster.submit_all([(f"-p main -n28 {LITTLE}", "true")] * 2 + [("-p small -n1", "true")], "bob")
    held = cluster.submit("-p main -n1 -H", "true")
    cluster.wait_for_cycles(2)

    shown, jobs = series(), cluster.jobs()
    assert shown["up",] == 1
    assert shown["mode", "enforce"] == 1
    assert [shown["jobs", state] for state in ("running", "placing", "held")] == [len(running), 0, 1]
    assert shown["jobs", "waiting"] == len(waiting) == sum(jobs[each].is_gated for each in waiting)
    assert sum(value for (name, *_), value in shown.items() if name == "waiting_jobs") == len(waiting) + 1
    assert jobs[held].is_held
    assert shown["waiting_jobs", "held"] == 1
    rows = Counter(cluster.row(each)["waits"]["kind"] for each in (*waiting, held))
    assert {kind: shown["waiting_jobs", kind] for kind in rows} == dict(rows)
    for partition, its in (("main", (*waiting[:2], held)), ("small", waiting[2:])):
        oldest_s = time.time() - min(jobs[each].submit_s for each in its)
        assert shown["oldest_waiting_seconds", partition] == pytest.approx(oldest_s, abs=5)

    _, idle, _, every = map(int, cluster.run("sinfo -h -p plain -o %C").strip().split("/"))
    assert (shown["cores",], shown["free_cores",]) == (every, idle)
    nodes = re.findall(r"RealMemory=(\d+) AllocMem=(\d+)", cluster.run("scontrol show node -o"))
    assert shown["memory_bytes",] == sum(int(real) for real, _ in nodes) * MIB
    assert shown["free_memory_bytes",] == sum(int(real) - int(taken) for real, taken in nodes) * MIB
    assert shown["nodes", "planned"] == len(nodes)
    assert shown["stranded_cores",] == 0
    assert shown["smallest_waiting_job_fits",] == 0, "the six free cores of c4 are too few, and bob's nodes are full"

    waits = {number: wait_s for number, wait_s in started_here(jobs).items() if number not in known}
    assert set(waits) == set(running)
    for partition in ("main", "small"):
        counts = [each["job_wait_seconds_count", partition] for each in (before, shown)]
        sums = [each["job_wait_seconds_sum", partition] for each in (before, shown)]
        first = {"main": "c", "small": "s"}[partition]
        its = [wait_s for number, wait_s in waits.items() if jobs[number].nodes[0].startswith(first)]
        assert (counts[1] - counts[0], sums[1] - sums[0]) == (len(its), sum(its))
    placed = "job_changes_total", "place", "done"
    assert shown[placed] - before[placed] == len(running)
    assert 0 < shown["cycle_duration_seconds_sum",] <= time.time() - shown["scheduler_start_time_seconds",]

    # A scheduler that hangs has a socket that takes connections; one that is killed leaves its file behind.
    process = cluster.run("cat /run/sns/scheduler.pid").strip()
    cluster.run(f"kill -STOP {process}")
    try:
        silent = series()
    finally:
        cluster.run(f"kill -CONT {process}")
    assert silent == {("up",): 0}
    cluster.daemon("kill")
    assert series() == {("up",): 0}
    cluster.run("scancel -u alice; scancel -u bob")
    cluster.daemon("start")
    cluster.wait_for_scheduler()
    cluster.wait_for("its values are back", lambda: series().get(("cores",)) == every)
