"""A partition whose jobs share cores, with slurm_sns: parts of the CPU, limits in virtual time, pauses, daemons killed.

The nodes have four declared cores each; the machine below has fewer, so that only ratios of CPU time are looked at.
"""

import re
from collections.abc import Iterator

import pytest
from evidence import begin
from slurm_conf import added_to_slurm_conf, restart

from cluster import SHARING_NODES, Cluster

#: sed commands that let the mini cluster's slurm_sns manage the partition.
MANAGED = (
    "s/^partitions: .*/partitions: [main, small, shared]/; "
    '/^nodes:/a\\  - {names: "f[1-2]", partitions: [shared], cores: 4, memory_mb: 32768}\n'
    "$a sharing: {partitions: [shared], pause: restartable, protect_s: 5, signal: USR1, grace_s: 4, cpu: %s}"
)
#: One process for each core of the job works for so long once all may begin.
WORK_S = 10
WAITS = "until [ -e work/go ]; do sleep 0.1; done"
WORKS = "for core in $(seq $SLURM_NTASKS); do timeout {work_s} bash -c 'while :; do :; done' & done; wait"
BUSY = f"{WAITS}; {WORKS}; times > work/$SLURM_JOB_ID"
#: Counts seconds in a file of its own, in which it also finds where it was, and says when it is to be paused.
COUNTING = (
    "trap 'echo signal >> work/told.$SLURM_JOB_ID' USR1; "
    "n=$(cat work/count.$SLURM_JOB_ID 2> /dev/null || echo 0); echo from $n >> work/told.$SLURM_JOB_ID; "
    "while [ $n -lt 600 ]; do sleep 1; n=$((n + 1)); echo $n > work/count.$SLURM_JOB_ID; done"
)


@pytest.fixture(scope="module")
def shares(shared_cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with the nodes that share, managed; CPU time by weight."""
    cluster = shared_cluster
    cluster.start_nodes(SHARING_NODES, agents=True)
    try:
        with added_to_slurm_conf(cluster, sns_yaml=MANAGED % "weights"):
            restart(cluster)
            yield cluster
    finally:
        restart(cluster)
        cluster.wait_for("no jobs", lambda: not cluster.run("squeue -a -h").strip(), 60)
        cluster.stop_nodes(SHARING_NODES)


def submit(cluster: Cluster, *jobs: tuple[str, str]) -> list[int]:
    """Submit these jobs, each for an hour unless it says another limit, and wait until they run."""
    numbers = cluster.submit_all([(f"-p shared -N1 -t60 {options}", script) for options, script in jobs])
    cluster.wait_for("they run", lambda: {cluster.job(each).state for each in numbers} == {"RUNNING"})
    return numbers


def cgroup(cluster: Cluster, number: int) -> str:
    """The directory of the job's cgroup that limits its CPU time."""
    (node,) = cluster.job(number).nodes
    return cluster.run(f"ls -d /sys/fs/cgroup/cpu/slurm*/uid_*/job_{number}", node=node).strip()


def in_file(cluster: Cluster, number: int, name: str) -> int:
    (node,) = cluster.job(number).nodes
    return int(cluster.run(f"cat {cgroup(cluster, number)}/{name}", node=node))


def is_weighed(cluster: Cluster, number: int) -> bool:
    """Whether the job's cgroup has been given a weight and a limit."""
    (node,) = cluster.job(number).nodes
    found = cluster.run(f"cat /sys/fs/cgroup/cpu/slurm*/uid_*/job_{number}/cpu.cfs_quota_us || true", node=node)
    return bool(found.strip()) and int(found) > 0


def cpu_s(text: str) -> float:
    """The user and system time of all children: the second line of the shell's `times`."""
    found = re.findall(r"(\d+)m([\d.]+)s", text.splitlines()[1])
    return sum(60 * int(minutes) + float(seconds) for minutes, seconds in found)


@pytest.fixture(scope="module")
def short_of_time(shares: Cluster) -> int:
    """A job with a limit of a minute that shares f2 with another one: submitted first, as its end takes minutes.

    Both fill f2, so that all other jobs go to f1.
    """
    cluster = shares
    begin(cluster)
    cluster.run("scontrol update NodeName=f1 State=DRAIN Reason=test")
    first, _ = submit(cluster, ("-n4 -t1 --mem=1G", "sleep 900"), ("-n4 --mem=1G", "sleep 900"))
    cluster.run("scontrol update NodeName=f1 State=RESUME")
    cluster.wait_for("f1 is there again", lambda: cluster.run("sinfo -h -n f1 -o %T").strip() == "idle")
    return first


@pytest.fixture
def f1(shares: Cluster, short_of_time: int) -> Iterator[Cluster]:  # noqa: ARG001  that job fills f2
    """The cluster in which f1 is empty, before and after."""
    begin(shares)
    yield shares
    shares.run("scancel -u alice -w f1; scancel -u alice -t PENDING")
    shares.wait_for("f1 is empty", lambda: shares.run("sinfo -h -n f1 -o %T").strip() == "idle")


def test_a_job_that_shares_cores_says_so_and_has_more_time_by_the_clock(shares: Cluster, short_of_time: int) -> None:
    cluster = shares
    cluster.wait_for("its limit is moved", lambda: cluster.fields(short_of_time)["TimeLimit"] == "00:02:00")
    told = cluster.run(f"sns explain {short_of_time}", "alice")
    assert re.search(r"shares f2 with 1 other: 0\.5 of its cores; \d+ s of 60 s used", told), told


def test_busy_jobs_get_cpu_time_in_proportion_to_the_cores_they_asked_for(f1: Cluster) -> None:
    """On one CPU: between several the kernel moves single threads about, and is off by some points for seconds."""
    cluster, cores = f1, (1, 1, 2, 4)
    script = f"taskset -cp 0 $$ > /dev/null; {BUSY.format(work_s=WORK_S)}"
    numbers = submit(cluster, *((f"-n{each} --mem=1G", script) for each in cores))
    assert {cluster.job(each).nodes for each in numbers} == {("f1",)}
    cluster.wait_for("all are weighed", lambda: all(is_weighed(cluster, each) for each in numbers))
    cluster.run("touch work/go", "alice")
    cluster.wait_for_end(numbers)
    used_s = [cpu_s(cluster.run(f"cat work/{each}", "alice")) for each in numbers]
    for each, has in zip(cores, used_s, strict=True):
        assert has / sum(used_s) == pytest.approx(each / sum(cores), abs=0.05), used_s


def test_what_an_idle_neighbour_leaves_is_the_others_at_once(f1: Cluster) -> None:
    """Both need all cores. One works three times for so long: alone, beside the other one, alone."""
    cluster = f1
    part = WORKS.format(work_s=4)
    three = f"{part}; times > work/alone; touch work/both; {part}; times > work/beside; {part}; times > work/again"
    beside = f"until [ -e work/both ]; do sleep 0.02; done; {part}; sleep 900"
    numbers = submit(cluster, ("-n4 --mem=1G", f"{WAITS}; {three}"), ("-n4 --mem=1G", beside))
    cluster.wait_for("both are weighed", lambda: all(is_weighed(cluster, each) for each in numbers))
    cluster.run("touch work/go", "alice")
    cluster.wait_for_end(numbers[:1])
    after_s = [cpu_s(cluster.run(f"cat work/{name}", "alice")) for name in ("alone", "beside", "again")]
    alone_s, beside_s, again_s = after_s[0], after_s[1] - after_s[0], after_s[2] - after_s[1]
    assert (alone_s + again_s) / 2 > 1.5 * beside_s, after_s


def test_a_restartable_job_is_told_paused_and_goes_on_from_its_file(f1: Cluster) -> None:
    cluster = f1
    (counting,) = submit(cluster, ("-n1 --mem=20G --requeue --sns-restartable=5", COUNTING))
    cluster.wait_for(
        "it is protected no more", lambda: "7" in cluster.run(f"cat work/count.{counting} || true", "alice")
    )
    newcomer = cluster.submit("-p shared -n1 -N1 --mem=20G -t5", "sleep 8")
    cluster.wait_for("it is told why it waits", lambda: "is being paused" in cluster.row(newcomer).get("reason", ""))
    cluster.wait_for("the newcomer runs", lambda: cluster.job(newcomer).state == "RUNNING")
    assert cluster.fields(counting)["Restarts"] == "1"
    assert cluster.job(counting).state == "PENDING"
    cluster.wait_for("the first one goes on", lambda: cluster.job(counting).state == "RUNNING", 90)
    cluster.wait_for("it has begun", lambda: "\nfrom" in cluster.run(f"cat work/told.{counting}", "alice"))
    begun, signal, again = cluster.run(f"cat work/told.{counting}", "alice").splitlines()
    assert (begun, signal) == ("from 0", "signal")
    assert int(again.split()[1]) >= 7
    (decision,) = [each for each in cluster.explain(counting)["decisions"] if each["action"] == "restart"]
    assert f"its memory is needed for job {newcomer}" in decision["reason"]


def test_killed_daemons_find_their_jobs_again(f1: Cluster) -> None:
    cluster = f1
    numbers = submit(cluster, ("-n4 --mem=1G", "sleep 900"), ("-n2 --mem=1G", "sleep 900"))
    cluster.wait_for("both are weighed", lambda: all(is_weighed(cluster, each) for each in numbers))
    before = [in_file(cluster, each, "cpu.shares") for each in numbers]
    assert before[0] == 2 * before[1]
    for name in ("kill", "start"):
        cluster.run(f"sns-daemon {name} agent", node="f1")
    cluster.daemon("kill")
    cluster.run(f"echo 77 > {cgroup(cluster, numbers[0])}/cpu.shares", node="f1")
    cluster.daemon("start")
    cluster.wait_for_scheduler()
    cluster.wait_for("its weight is in force again", lambda: in_file(cluster, numbers[0], "cpu.shares") == before[0])
    told = "0.67 of its cores"
    cluster.wait_for("it is told of again", lambda: told in cluster.explain(numbers[0])["job"]["reason"])


def test_caps_follow_the_yields_and_the_kill_switch_lifts_them_in_five_seconds(f1: Cluster) -> None:
    cluster = f1
    cluster.run("sed -i 's/cpu: weights/cpu: caps/' /etc/slurm/sns.yaml")
    restart(cluster)
    numbers = submit(cluster, ("-n4 --mem=1G", "sleep 900"), ("-n4 --mem=1G", "sleep 900"))

    def caps() -> list[float]:
        files = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        return [in_file(cluster, each, files[0]) / in_file(cluster, each, files[1]) for each in numbers]

    cluster.wait_for("both are weighed", lambda: all(is_weighed(cluster, each) for each in numbers))
    cluster.wait_for("both have half", lambda: caps() == [2.0, 2.0])
    cluster.run("touch /var/lib/sns/disabled", "slurm")
    try:
        cluster.wait_for("caps are lifted", lambda: caps() == [4.0, 4.0], 5)
    finally:
        cluster.run("rm /var/lib/sns/disabled; sed -i 's/cpu: caps/cpu: weights/' /etc/slurm/sns.yaml")


def test_a_limit_ends_the_job_when_its_virtual_time_is_used_up(shares: Cluster, short_of_time: int) -> None:
    (ended,) = shares.wait_for_end([short_of_time], 240).values()
    assert ended.state == "TIMEOUT"
    assert 120 <= ended.end_s - ended.start_s <= 200
