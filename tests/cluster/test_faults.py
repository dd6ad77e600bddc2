"""Faults of every part: no job is lost, started twice or left waiting for us alone, and no node is over capacity."""

import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from evidence import HEARTBEAT_TIMEOUT_S, Log, begin, check, freed_in_time, is_decided, work, written
from heartbeat import beating

from cluster import Cluster, CommandFailed

#: Those that run; slurm.conf has more, which some tests start.
NODES = "c[1-4],s[1-2]"

FAULTY = Path(__file__).with_name("faulty_scheduler.py").read_text()
#: Small jobs, so that there are always enough placements in which to fail; one needs two nodes.
MIX = ("-n2", "-n4 --mem=2G", "-N2 -n2", "-n1 --sns-alpha=0.9", "-p small -n1 --mem=1G")


@pytest.fixture
def faulty(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with the faulty scheduler installed; at the end both daemons are killed and the files removed."""
    begin(cluster)
    cluster.run("mkdir -p /tmp/faults")
    cluster.write("/tmp/faults/sns", FAULTY)
    cluster.run("chmod 755 /tmp/faults/sns")
    log = Log(cluster)
    yield cluster
    assert not log.lines("Traceback"), "it failed in another way than it was told to"
    cluster.run("sns-daemon kill scheduler; sns-daemon kill watchdog; rm -rf /tmp/faults")
    cluster.run("pgrep slurmctld > /dev/null || slurmctld")


def start_faulty(cluster: Cluster, fault: str) -> None:
    """Start a scheduler that will fail. It may fail before sns-daemon sees it run: sns-daemon's error is ignored."""
    cluster.try_run(f"PATH=/tmp/faults:$PATH SNS_FAULT={fault} sns-daemon start scheduler")


def die(cluster: Cluster, fault: str) -> None:
    """Start a scheduler that is killed where `fault` says, and wait until it is dead."""
    start_faulty(cluster, f"{fault}:kill")
    is_dead = "timeout 60 bash -c 'while sns-daemon status scheduler; do sleep 0.2; done'"
    assert cluster.try_run(is_dead).returncode == 0, f"it does not reach {fault}"


#: Instead of seconds for `work`: the job runs until the test calls `tell`.
UNTIL_TOLD = "0; until [ -e work/go ]; do sleep 0.2; done"


def tell(cluster: Cluster) -> None:
    """Let the jobs that run UNTIL_TOLD end."""
    cluster.run("touch work/go", "alice")


def submit_gated(cluster: Cluster, seconds: float | str = 1, times: int = 1) -> list[int]:
    numbers = submit_mix(cluster, seconds, times)
    seen = cluster.jobs()
    assert all(seen[number].is_gated for number in numbers)
    return numbers


def submit_mix(cluster: Cluster, seconds: float | str = 1, times: int = 1) -> list[int]:
    return cluster.submit_all([(options, work(seconds)) for options in MIX * times])


# --- the scheduler is killed


#: After each effect of a cycle that places.
EFFECTS = ("observe:after:1", "place:after:1", "place:after:3", "record:after:1", "renew:after:1", "beat:after:1")
#: A placement with gres is taken back by two changes.
TAKING_BACK = ("clear:after:1", "regate:after:1")
PROFILES = "/usr/src/slurm_sns/conf/profiles/spread-n-share.yaml"


def test_killed_after_any_effect_of_a_cycle_no_job_is_lost_or_started_twice(faulty: Cluster) -> None:
    """The schedulers die one after the other; each finds what the one before left, and new jobs."""
    cluster, numbers = faulty, []
    cluster.run(f"sns profile import {PROFILES}", "slurm")
    cluster.daemon("restart", "scheduler")
    cluster.wait_for_scheduler()
    options = "-n16 --mem-per-cpu=1G --requeue --sns-program=mg"
    requeued = cluster.submit_all([(options, work(UNTIL_TOLD))] * len(TAKING_BACK))
    cluster.wait_for("they run", lambda: {cluster.job(number).state for number in requeued} == {"RUNNING"})
    assert all("gres" in cluster.fields(number)["TresPerNode"] for number in requeued)
    with beating(cluster):
        # The gate of the held one is renewed in the first cycle that comes so far.
        held, later = cluster.submit_all([(f"-n1 {each}", work(1)) for each in ("-H", "--begin=now+1hour")])
        for effect in EFFECTS:
            numbers += submit_mix(cluster)
            die(cluster, effect)
        cluster.run(f"scontrol update JobId={later} ReqNodeList=c2", "alice")
        die(cluster, "free:after:1")
        record = cluster.job(later).record
        assert record is not None
        assert record.free_why == "node-list"
        for number, effect in zip(requeued, TAKING_BACK, strict=True):
            cluster.run(f"scontrol requeue {number}")
            die(cluster, effect)
        tell(cluster)
        cluster.run(f"scontrol update JobId={later} StartTime=now; scontrol release {held}", "alice")
        cluster.daemon("start", "scheduler")
        cluster.wait_for_end([*numbers, held, later, *requeued])
    check(cluster, [*numbers, held, later])
    wrote = written(cluster)
    assert [wrote[number] for number in requeued] == [["start", "start", "end"]] * 2


def test_a_scheduler_that_was_frozen_between_two_placements_sends_nothing_more(faulty: Cluster) -> None:
    """While the scheduler is frozen, the watchdog gives its gated jobs to Slurm in time."""
    cluster, log, watchdog = faulty, Log(faulty), Log(faulty, "watchdog")
    with beating(cluster):
        numbers = submit_gated(cluster, seconds=6, times=2)
        start_faulty(cluster, "place:after:3:freeze")
        is_frozen = "grep -q '^State:.T' /proc/$(cat /run/sns/scheduler.pid)/status"
        cluster.wait_for("it is frozen", lambda: cluster.try_run(is_frozen).returncode == 0)
        frozen_s = time.monotonic()
    freed_in_time(cluster, watchdog)
    cluster.wait_for("Slurm starts them", lambda: all(cluster.job(each).state != "PENDING" for each in numbers))
    # The last heartbeat is that of this test, and up to two seconds older than the scheduler's own last sign of life.
    cluster.wait_for("it stood still", lambda: time.monotonic() - frozen_s > HEARTBEAT_TIMEOUT_S)
    cluster.run("kill -CONT $(cat /run/sns/scheduler.pid)")
    cluster.wait_for("it goes on", lambda: watchdog.lines("heartbeat is back"))
    cluster.wait_for_end(numbers)
    check(cluster, numbers)
    assert log.lines("this process stood still"), "it sends nothing that it has planned before"


# --- slurmctld


@pytest.mark.parametrize("how", ["TERM", "KILL"])
def test_slurmctld_is_restarted_or_killed_in_the_middle_of_placements(faulty: Cluster, how: str) -> None:
    cluster, log = faulty, Log(faulty)
    with beating(cluster):
        numbers = submit_gated(cluster, UNTIL_TOLD, times=3)
        wait_until_saved(cluster)
        with slurmctld_ends(cluster):
            start_faulty(cluster, f"place:after:3:{how}")
        cluster.wait_for("it is missed", lambda: log.lines("slurmctld does not answer"))
        cluster.run("slurmctld")
        cluster.wait_for("slurmctld answers", lambda: cluster.try_run("scontrol ping | grep -q UP").returncode == 0)
        cluster.wait_for("it goes on", lambda: log.lines("over after"))
    # A killed slurmctld loses what it has not saved yet: it ends jobs that had just started when their nodes register,
    # and starts them again.
    cluster.wait_for("all nodes have registered", lambda: states_of_nodes(cluster) <= {"idle", "mix", "alloc", "comp"})
    tell(cluster)
    cluster.wait_for_end(numbers, timeout_s=240)
    check(cluster, numbers, restarted=frozenset(numbers) if how == "KILL" else never_launched(cluster))
    wrote = written(cluster)
    assert {number: wrote[number].count("end") for number in numbers} == dict.fromkeys(numbers, 1)
    assert len(log.lines("slurmctld does not answer")) <= 4, "a line a problem, and one when it is over"


@contextmanager
def slurmctld_ends(cluster: Cluster) -> Iterator[int]:
    """For a block that ends slurmctld: gives slurmctld's process id, and at the end waits until the process is gone."""
    process = int(cluster.run("cat /run/slurm/slurmctld.pid"))
    yield process
    cluster.wait_for("slurmctld is gone", lambda: cluster.try_run(f"test -e /proc/{process}").returncode == 1)


def never_launched(cluster: Cluster) -> frozenset[int]:
    """The jobs that slurmctld had started but not yet launched when it was told to end; it starts them again."""
    lines = cluster.run("grep -a 'missing from batch node' /var/log/slurm/slurmctld.log || true")
    return frozenset(map(int, re.findall(r"JobId=(\d+) missing from batch node", lines)))


def wait_until_saved(cluster: Cluster) -> None:
    """Wait until slurmctld has saved all jobs submitted so far; it saves its state every few seconds."""
    name = f"saved{time.time_ns()}"
    number = cluster.submit(f"-H -J {name}")
    saved = f"grep -qa {name} /var/lib/slurm/slurmctld/job_state"
    cluster.wait_for("slurmctld has saved its state", lambda: cluster.try_run(saved).returncode == 0)
    cluster.run(f"scancel {number}")


# --- slurmdbd


def test_slurmdbd_that_hangs_or_is_away_holds_nothing_up(faulty: Cluster) -> None:
    cluster, log = faulty, Log(faulty)
    slurmdbd = f"{cluster.project}-dbd"
    cluster.run("sed 's/^  shares:.*/  shares: slurm/' /etc/slurm/sns.yaml > /tmp/sns-shares.yaml")
    cluster.run("sacctmgr -i modify account physics set fairshare=3")
    cluster.daemon("stop", "scheduler")
    try:
        cluster.engine("pause", slurmdbd)
        cluster.daemon("start", "scheduler", config="/tmp/sns-shares.yaml")
        cluster.wait_for_scheduler()
        watchdog = Log(cluster, "watchdog")
        numbers = submit_mix(cluster)
        cluster.wait_for_end(numbers)
        cluster.wait_for("it says so", lambda: log.lines("slurmdbd does not answer"))
        cluster.engine("unpause", slurmdbd)
        cluster.wait_for("it has the shares", lambda: shares(cluster).get("physics") == 3, timeout_s=120)

        cluster.engine("stop", "-t", "1", slurmdbd)
        numbers += submit_mix(cluster)
        cluster.wait_for_end(numbers)
        assert shares(cluster)["physics"] == 3
        assert watchdog.lines("no heartbeat") == [], "it beat all the time"
    finally:
        cluster.try_run("sns-daemon kill scheduler")
        revive(cluster, slurmdbd)
        set_back = "sacctmgr -i modify account physics set fairshare=1"
        cluster.wait_for("slurmdbd is back", lambda: cluster.try_run(set_back).returncode == 0, timeout_s=120)
    check(cluster, numbers)
    said = log.lines("slurmdbd does not answer")
    assert len([line for line in said if "over after" not in line]) <= 3, said


def freeze(cluster: Cluster, container: str) -> None:
    """Pause a node. The kernel refuses while a process waits for the emulated resctrl, a program of that same node."""

    def is_frozen() -> bool:
        with suppress(CommandFailed):
            cluster.engine("pause", container)
        return cluster.engine("inspect", "-f", "{{.State.Status}}", container).strip() == "paused"

    cluster.wait_for(f"{container} is frozen", is_frozen)


def revive(cluster: Cluster, container: str) -> None:
    """Run a container again that was paused or stopped."""
    status = cluster.engine("inspect", "-f", "{{.State.Status}}", container).strip()
    if status != "running":
        cluster.engine("unpause" if status == "paused" else "start", container)


def shares(cluster: Cluster) -> dict[str, float]:
    """Each account's share, as the scheduler reports it."""
    return {name: project["share"] for name, project in cluster.status()["projects"].items()}


# --- the store


def test_a_store_that_cannot_be_used_is_said_at_the_start_and_the_watchdog_needs_none(faulty: Cluster) -> None:
    cluster, watchdog = faulty, Log(faulty, "watchdog")
    begun = "cd /var/lib/sns; NUMBA_CACHE_DIR=/var/lib/sns/numba sns scheduler"
    cluster.run("cp -a /var/lib/sns /tmp/faults/kept")
    try:
        with beating(cluster):
            numbers = submit_gated(cluster, seconds=2)
            cluster.run("chmod 400 /var/lib/sns/sns.db*")
            read_only = cluster.try_run(begun, "slurm")
            cluster.run("cd /var/lib/sns; rm -f sns.db*; head -c 20000 /dev/urandom > sns.db", "slurm")
            garbage = cluster.try_run(begun, "slurm")
        for answer, words in ((read_only, "must belong to SlurmUser"), (garbage, "move the file away")):
            assert (answer.returncode, answer.stderr.count("\n")) == (1, 1), answer
            assert words in answer.stderr
        freed_in_time(cluster, watchdog)
        passed = cluster.submit("-n1", work(1))
        assert not cluster.job(passed).is_gated

        cluster.run("mv /var/lib/sns/sns.db /tmp/faults")  # as the message says
        cluster.daemon("start", "scheduler")
        cluster.wait_for_scheduler()
        managed = cluster.submit("-n1", work(1))
        cluster.wait_for("it is placed", lambda: is_decided(cluster, managed))
    finally:
        cluster.try_run("sns-daemon kill scheduler; chmod 700 /var/lib/sns; rm -f /var/lib/sns/sns.db*")
        cluster.run("cp -a /tmp/faults/kept/sns.db* /var/lib/sns/")
    cluster.wait_for_end([*numbers, passed, managed])
    check(cluster, [*numbers, passed, managed])


class Break(NamedTuple):
    """A break of the store under a running scheduler: the command that breaks it, the message, an admin's repair."""

    do: str
    said: str
    mend: str


SHM = "/dev/shm/sns"  # a file system of its own
RESTART = "SNS_CONFIG=/tmp/sns-shm.yaml sns-daemon restart scheduler"
BREAKS = {
    "full": Break("dd if=/dev/zero of=/dev/shm/filler bs=4k", "disk is full; make room there", "rm /dev/shm/filler"),
    "garbage": Break(
        f"for file in {SHM}/sns.db*; do head -c 60000 /dev/urandom | dd of=$file conv=notrunc; done",
        "move the file away",
        f"mkdir {SHM}/away; mv {SHM}/sns.db* {SHM}/away; {RESTART}",
    ),
    "deleted": Break(f"rm {SHM}/sns.db*", "", RESTART),
}


@pytest.mark.parametrize("how", BREAKS)
def test_a_store_that_breaks_holds_no_job_up(faulty: Cluster, how: str) -> None:
    cluster, broken = faulty, BREAKS[how]
    cluster.run(f"install -d -o slurm {SHM}")
    cluster.run(
        f"(cat /etc/slurm/sns.yaml; echo; echo 'store: {{url: \"sqlite:///{SHM}/sns.db\"}}') > /tmp/sns-shm.yaml"
    )
    cluster.daemon("restart", "scheduler", config="/tmp/sns-shm.yaml")
    cluster.wait_for_scheduler()
    log, watchdog = Log(cluster), Log(cluster, "watchdog")
    try:
        numbers = submit_mix(cluster, seconds=2, times=2)
        cluster.wait_for("one is decided", lambda: is_decided(cluster, numbers[0]))
        cluster.try_run(broken.do)
        numbers += submit_mix(cluster, seconds=2)
        ended = cluster.wait_for_end(numbers)
        assert all(job.record is not None and set(job.record.nodes) == set(job.nodes) for job in ended.values())
        assert watchdog.lines("no heartbeat") == []
        if broken.said:
            assert broken.said in cluster.status()["trouble"]
            assert log.lines(broken.said)
            assert log.repeated(broken.said) == []
        cluster.run(broken.mend)
        cluster.wait_for_scheduler()
        managed = cluster.submit("-n1", work(1))
        cluster.wait_for("it is recorded", lambda: is_decided(cluster, managed))
        assert cluster.status()["trouble"] == ""
        cluster.wait_for_end([managed])
        check(cluster, [*numbers, managed])
    finally:
        cluster.run(f"sns-daemon kill scheduler; rm -rf {SHM} /dev/shm/filler")


# --- nodes


def test_nodes_that_stop_hang_or_are_cut_off_lose_no_job(faulty: Cluster) -> None:
    """While jobs run and start there, c1 is stopped, c2 frozen and c3 cut off from the network; c4 remains."""
    cluster = faulty
    project = cluster.project
    (network,) = networks(cluster, f"{project}-c3")
    numbers = cluster.submit_all([("-n8 --mem=2G --requeue", work(6))] * 12)
    cluster.wait_for("jobs run", lambda: any(job.state == "RUNNING" for job in cluster.jobs().values()))
    try:
        freeze(cluster, f"{project}-c2")
        cluster.engine("network", "disconnect", network, f"{project}-c3")
        cluster.engine("stop", "-t", "1", f"{project}-c1")
        numbers += cluster.submit_all([("-n8 --mem=2G --requeue", work(1))] * 3)
        cluster.wait_for_end(numbers, timeout_s=300)
    finally:
        if network not in networks(cluster, f"{project}-c3"):
            cluster.engine("network", "connect", "--alias", "c3", network, f"{project}-c3")
        for name in ("c1", "c2"):
            revive(cluster, f"{project}-{name}")
        # Their addresses may have changed; Slurm's daemons look names up when they read their configuration.
        look = "cluster-health ctl || { scontrol reconfigure; false; }"
        cluster.wait_for("all nodes are back", lambda: cluster.try_run(look).returncode == 0, 240, every_s=5)
    seen = check(cluster, numbers, restarted=frozenset(numbers))
    again = Counter(run.job_id for run in seen if run.state != "COMPLETED")
    assert again, "jobs ran on the nodes that failed"
    assert max(again.values()) <= 2
    for number in again:
        decided = [each for each in cluster.explain(number)["decisions"] if each["action"] == "start"]
        assert len(decided) >= 2, "it was planned again"


def networks(cluster: Cluster, container: str) -> list[str]:
    """The networks of a container."""
    return list(json.loads(cluster.engine("inspect", "-f", "{{json .NetworkSettings.Networks}}", container)))


# --- clocks


@pytest.fixture
def stepped(faulty: Cluster) -> Iterator[Cluster]:
    """The cluster, where slurmctld, the scheduler and the watchdog have a clock of their own: `set_clock` sets it.

    munged and the nodes keep the machine's clock, so that munge's credentials stay valid.
    """
    cluster = faulty
    set_clock(cluster, 0)
    for name in ("scheduler", "watchdog"):
        cluster.daemon("stop", name)
    stop_slurmctld(cluster)
    for command in ("slurmctld", "sns-daemon start scheduler", "sns-daemon start watchdog"):
        cluster.run(f"{CLOCK} {command}")
    cluster.wait_for_scheduler()
    yield cluster
    stop_slurmctld(cluster)


#: The environment of a process with this clock: libfaketime reads the offset from the file each time it is asked, so
#: that all processes see a step at once, as on a machine. The monotonic clock, and with it the length of waits, is not
#: changed.
CLOCK = (
    "LD_PRELOAD=$(echo /usr/lib/*/faketime/libfaketimeMT.so.1) FAKETIME_TIMESTAMP_FILE=/tmp/faults/clock "
    "FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1 FAKETIME_DISABLE_SHM=1 NO_FAKE_STAT=1"
)


def set_clock(cluster: Cluster, fast_s: int) -> None:
    cluster.run(f"echo +{fast_s} > /tmp/faults/clock.new; mv /tmp/faults/clock.new /tmp/faults/clock")


def stop_slurmctld(cluster: Cluster) -> None:
    with slurmctld_ends(cluster) as process:
        cluster.run(f"kill {process}")


def test_a_controller_whose_clock_is_stepped_by_an_hour_loses_and_repeats_nothing(stepped: Cluster) -> None:
    cluster, log = stepped, Log(stepped, "watchdog")
    numbers: list[int] = []
    for fast_s in (3600, 0):
        # No job runs at the step: by its clock, Slurm would end jobs as over their limits, and requeue those on nodes
        # that seem to have been silent.
        cluster.run(f"scontrol update nodename={NODES} state=drain reason=clock")
        waiting = submit_gated(cluster)
        set_clock(cluster, fast_s)
        for what, shown in (("slurmctld", slurmctld_is_fast_s), ("the heartbeat", beat_is_fast_s)):
            cluster.wait_for(f"{what} goes by that clock", lambda s=shown, to=fast_s: abs(s(cluster) - to) < 60)
        waiting += submit_gated(cluster)
        cluster.wait_for("all nodes answer again", lambda: resumed(cluster))
        cluster.wait_for("all are placed", lambda now=waiting: none_is_gated(cluster, now))
        if fast_s == 0:
            start_slurms_schedulers(cluster)
        cluster.wait_for_end(waiting)
        numbers += waiting
    check(cluster, numbers)
    steps = [line.split(" ", 2)[2].split(" by ")[0] for line in log.lines("the clock was set")]
    assert steps == ["the clock was set forward", "the clock was set back"]
    assert not log.lines("left to Slurm"), "the scheduler was alive all the time"


def none_is_gated(cluster: Cluster, numbers: list[int]) -> bool:
    """Whether none of the jobs is gated any more: each is placed, or has been started since."""
    seen = cluster.jobs()
    return not any(seen[number].is_gated for number in numbers)


def start_slurms_schedulers(cluster: Cluster) -> None:
    """Do what an administrator has to do for any Slurm whose clock was set back: reconfigure.

    Slurm's main scheduler and its backfill compare the clock with the time of their last pass (`sched_last` in
    _sched_agent, `last_backfill_time` in backfill_agent). Until the clock reaches that time again they start no job at
    all. A reconfiguration restarts slurmctld.
    """
    cluster.run("scontrol reconfigure")


def slurmctld_is_fast_s(cluster: Cluster) -> int:
    """By how much slurmctld's clock is ahead of the machine's."""
    now_s, told_s = cluster.run("date +%s; sdiag | sed -n 's/^sdiag output at .*(\\([0-9]*\\))$/\\1/p'").split()
    return int(told_s) - int(now_s)


def beat_is_fast_s(cluster: Cluster) -> int:
    """By how much the heartbeat is ahead of the machine's clock."""
    now_s, beat_s = cluster.run("date +%s; cat /run/sns/heartbeat").split()
    return int(beat_s) - int(now_s)


def resumed(cluster: Cluster) -> bool:
    """Resume all nodes and return whether all are idle.

    A node that was silent for too long has to register first: repeat until true.
    """
    cluster.try_run(f"scontrol update nodename={NODES} state=resume")
    return states_of_nodes(cluster) == {"idle"}


def states_of_nodes(cluster: Cluster) -> set[str]:
    return set(cluster.run("sinfo -hN -o %t").split())


# --- munge


def test_a_controller_without_munge_is_logged_in_one_line_and_no_job_is_lost(faulty: Cluster) -> None:
    cluster, log, watchdog = faulty, Log(faulty), Log(faulty, "watchdog")
    # No job may start or end while munge is away, or Slurm itself could not tell whether it did. The first jobs run
    # until the test lets them end, and the others wait for all nodes of main. Slurm takes nodes that do not answer for
    # SlurmdTimeout (15 s) as down and requeues their jobs: that is Slurm's doing, not ours.
    running = cluster.submit_all(
        [(f"{options} --mem-per-cpu=100M", work(UNTIL_TOLD)) for options in ("-n2", "-n28", "-N2 -n2")]
    )
    cluster.wait_for("jobs run", lambda: [written(cluster).get(each) for each in running] == [["start"]] * 3)
    waiting = cluster.submit_all([("-n112 --mem-per-cpu=100M", work(1))] * 3)
    assert all(cluster.job(number).is_gated for number in waiting)
    try:
        cluster.run("pkill -x munged")
        cluster.wait_for("the watchdog misses it", lambda: watchdog.lines("does munge run"), timeout_s=120)
    finally:
        cluster.run("pgrep -x munged || runuser -u munge -- munged")
    cluster.wait_for("it goes on", lambda: log.lines("over after"))
    tell(cluster)
    cluster.wait_for_end([*running, *waiting], timeout_s=240)
    seen = check(cluster, [*running, *waiting], restarted=frozenset(running))
    assert {run.state for run in seen} <= {"COMPLETED", "NODE_FAIL", "REQUEUED"}
    for daemon in (log, watchdog):
        said = daemon.lines("munge", "error:")
        # slurmdbd is asked once a minute. If that falls into this time, its failure is logged as a problem of its own.
        others = [line for line in said if "slurmctld does not answer" not in line]
        assert len(others) <= 2, others
        assert all("slurmdbd does not answer" in line for line in others), others
        # A request that was under way when munge went gets an empty answer, which is logged as a line of its own.
        lines = daemon.lines("slurmctld does not answer")
        assert 2 <= len(lines) <= 3, lines
        assert sum("does munge run here and there?; trying again" in line for line in lines) == 1, lines
        assert ["over after" in line for line in lines] == [False] * (len(lines) - 1) + [True], lines
