"""Each alert of conf/prometheus fires once, by what it is for, on a real Slurm and in a real Prometheus."""

import json

import pytest
import yaml
from alerts.prometheus import PATIENCE_S, ROOT, RULES, STARTED, Prometheus

from cluster import PYTHON, Cluster

FULL = "-p small -n4 --mem-per-cpu=100"
CONFIG = "/tmp/sns-alerts.yaml"
#: Holds the lock of the scheduler's database.
LOCK = f"""setsid {PYTHON} -c '
import sqlite3, time
database = sqlite3.connect("/var/lib/sns/sns.db", isolation_level=None)
database.execute("BEGIN EXCLUSIVE")
time.sleep(600)' < /dev/null > /tmp/lock.log 2>&1 & echo $!"""
FIRED: set[str] = set()


def fires(prometheus: Prometheus, *alerts: str) -> None:
    prometheus.wait_for(*alerts)
    FIRED.update(alerts)


def start(cluster: Cluster, *, odd: str = "", changes: str = "") -> None:
    """Restart the scheduler, with an odd policy, or with a configuration changed by this script for sed."""
    cluster.daemon("kill")
    config = ""
    if changes:
        cluster.run(f"sed '{changes}' /etc/slurm/sns.yaml > {CONFIG}")
        config = f"SNS_CONFIG={CONFIG} "
    path = f"PATH=/tmp/odd:$PATH SNS_ODD={odd} " if odd else ""
    cluster.run(f"touch {STARTED}; {config}{path}sns-daemon start scheduler")
    cluster.wait_for_scheduler()


def fill_small(cluster: Cluster) -> None:
    """Two jobs that fill the partition small."""
    jobs = cluster.submit_all([(FULL, "sleep 600")] * 2)
    cluster.wait_for("they run", lambda: all(cluster.job(each).state == "RUNNING" for each in jobs), PATIENCE_S)


def test_jobs_wait_beside_free_cores(cluster: Cluster, prometheus: Prometheus) -> None:
    start(cluster, odd="idle")
    cluster.submit("-p main -n2", "true")
    fires(prometheus, "SnsHeldAndIdle")


def test_a_job_waits_long_but_nothing_is_idle(cluster: Cluster, prometheus: Prometheus) -> None:
    fill_small(cluster)
    cluster.submit(FULL, "true")
    fires(prometheus, "SnsWaitsLong")
    cluster.wait_for_cycles(20)
    assert "SnsHeldAndIdle" not in prometheus.firing()


def test_the_scheduler_is_dead(cluster: Cluster, prometheus: Prometheus) -> None:
    cluster.daemon("kill")
    fires(prometheus, "SnsDown")
    assert prometheus.ask('{__name__=~"slurm_sns_.+", __name__!="slurm_sns_up"}') == []


def test_the_exporter_is_dead(cluster: Cluster, prometheus: Prometheus) -> None:
    cluster.daemon("stop", "exporter")
    fires(prometheus, "SnsExporterAway")
    assert "SnsDown" not in prometheus.firing()


def test_the_watchdog_frees_the_jobs_of_a_scheduler_that_hangs(cluster: Cluster, prometheus: Prometheus) -> None:
    fill_small(cluster)
    waiting = cluster.submit(FULL, "true")
    cluster.wait_for("it is gated", lambda: cluster.job(waiting).is_gated)
    process = cluster.run("cat /run/sns/scheduler.pid").strip()
    cluster.run(f"kill -STOP {process}")
    try:
        cluster.wait_for("it is Slurm's", lambda: not cluster.job(waiting).is_gated, PATIENCE_S)
    finally:
        cluster.run(f"kill -CONT {process}")
    fires(prometheus, "SnsWatchdogReleased")


def test_slurmctld_is_stopped(cluster: Cluster, prometheus: Prometheus) -> None:
    process = cluster.run("cat /run/slurm/slurmctld.pid").strip()
    # Not killed: a slurmctld that has not saved its state yet cannot be started again.
    cluster.run(f"kill -TERM {process}")
    cluster.wait_for("it is gone", lambda: cluster.try_run(f"test -e /proc/{process}").returncode == 1)
    try:
        fires(prometheus, "SnsHeartbeatStale", "SnsSlurmUnreachable")
    finally:
        cluster.run("slurmctld")
        cluster.wait_for("slurmctld answers", lambda: cluster.try_run("scontrol ping | grep -q UP").returncode == 0)
        cluster.wait_for("nodes are back", lambda: cluster.try_run("cluster-health ctl").returncode == 0, PATIENCE_S)


def test_slurm_does_not_start_what_is_placed(cluster: Cluster, prometheus: Prometheus) -> None:
    cluster.submit("-p plain -w c1 --exclusive", "sleep 600")
    start(cluster, odd="crowded", changes="s/^scheduler:/scheduler:\\n  place_timeout_s: 2\\n  backoff_s: 1/")
    cluster.submit_all([("-p main -n4", "true")] * 20)
    fires(prometheus, "SnsPlacementsTakenBack")


def test_cycles_take_long(cluster: Cluster, prometheus: Prometheus) -> None:
    start(cluster, odd="slow")
    fires(prometheus, "SnsCycleSlow")


def test_the_database_is_locked(cluster: Cluster, prometheus: Prometheus) -> None:
    lock = cluster.run(LOCK, "slurm").strip()
    try:
        cluster.submit_all([("-p main -n1", "true")] * 3)
        fires(prometheus, "SnsStoreUnreachable")
    finally:
        cluster.run(f"kill {lock}")
        # The trouble is over when something is written again.
        cluster.wait_for_end([cluster.submit("-p main -n1", "true")])


def test_free_cores_are_withheld(cluster: Cluster, prometheus: Prometheus) -> None:
    start(cluster, changes="s/^matching:/matching:\\n  age_limit_s: 1/")
    busy = cluster.submit("-p plain -w c1 -n 2 --mem=1000", "sleep 600")
    cluster.wait_for("it runs", lambda: cluster.job(busy).state == "RUNNING", PATIENCE_S)
    cluster.submit("-p main -N4 -n112 --mem-per-cpu=100", "true")
    fires(prometheus, "SnsWithheldLong")
    assert "SnsHeldAndIdle" not in prometheus.firing()


def test_it_is_switched_off(cluster: Cluster, prometheus: Prometheus) -> None:
    cluster.run("sns disable", "slurm")
    fires(prometheus, "SnsDisabledForgotten")


def test_agents_are_away_or_only_measure(cluster: Cluster, prometheus: Prometheus) -> None:
    if cluster.try_run("sns-daemon status agent", node="c1").returncode != 0:
        pytest.fail("the nodes have no agents: these alerts need a host with /dev/fuse")
    cluster.run("sns-daemon stop agent", node="c1")
    cluster.run("sns-daemon restart agent --observe", node="c2")
    try:
        fires(prometheus, "SnsAgentAway", "SnsUnpartitioned")
    finally:
        cluster.run("sns-daemon start agent", node="c1")
        cluster.run("sns-daemon restart agent", node="c2")


def test_the_queries_of_the_pages_give_values(cluster: Cluster, prometheus: Prometheus) -> None:
    fill_small(cluster)
    cluster.submit(FULL, "true")
    cluster.wait_for_cycles(5)
    queries = {
        f"{path.stem}: {panel['title']} {target['refId']}": target["expr"].replace("$instance", "ctl:9831")
        for path in (ROOT / "conf" / "grafana").glob("*.json")
        for panel in json.loads(path.read_text())["panels"]
        for target in panel["targets"]
    }
    empty = {where for where, query in queries.items() if not prometheus.ask(query)}
    assert empty <= {
        "health: Reads without an answer, changes refused or without an answer, per minute B",
        "health: Jobs given to Slurm that have not ended A",
    }
    assert {each["metric"]["instance"] for each in prometheus.ask("slurm_sns_up")} == {"ctl:9831"}


def test_every_alert_has_fired() -> None:
    rules = [rule["alert"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    assert sorted(FIRED) == sorted(rules)
