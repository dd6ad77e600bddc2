"""Nothing that a user can write into a job stops or stalls the daemons, in partitions that we manage and in others."""

import shlex
from collections.abc import Iterator

import pytest
from evidence import Log
from odd_node_lists import ODD

from cluster import PYTHON, Cluster
from slurm_sns.node_lists import unfolded

#: An interval between cycles that a loaded machine can keep, too.
INTERVAL_S = 3

#: Options of sbatch that are odd, or that pyslurm reads wrongly or not at all; Slurm refuses some of them.
OPTIONS = (
    *(
        "--gres=a:b:0k",
        "--gres=fpga:1",
        "--gres=gpu:a100:2,nvme",
        "--gres=llc:4,membw:x",
        "--gres=none",
        "--gres=llc:1K",
    ),
    *("--gres=llc:9999999999999999999", "--tres-per-task=gres/llc:1", "--cpus-per-gpu=2 --gpus=1", "--mem-per-gpu=1G"),
    *(
        "-C 'ssd|(fast&big*2)'",
        "-C '[a|b]'",
        "--prefer=ssd",
        "-C $'\\xff\\xfe'",
        "--switches=1@10",
        "--licenses=matlab:1",
    ),
    *("-J $'\\xff\\xfe'", "-J 'None'", "-J ''", "-J \"$(printf 'x%.0s' {1..900})\"", "-J $'a\\nb\\x1b[31m'"),
    *(
        "--comment $'sns:\\xff'",
        "--comment 'sns:,,,'",
        "--comment \"$(printf ',%.0s' {1..5000})\"",
        "--comment $'\\x01\\x7f'",
    ),
    *(
        "--extra='sns:2 x'",
        "--extra=$'\\xff'",
        "--wckey=$'*\\xff'",
        "--mcs-label=x",
        "--network=x",
        "--acctg-freq=task=1",
    ),
    *(
        "-w c1,c1",
        "-w c[1-2],c2",
        "-x c[1-4]",
        "-x ''",
        "-w c[1",
        "-N 1-4",
        "-N 4-1",
        "-n 1000000",
        "-c 65533",
        "-n 28 -c 28",
    ),
    *("--mem=0", "--mem=8589934592G", "--mem-per-cpu=4611686018427387903", "--tmp=4294967290", "--mincpus=60000"),
    *("--nice=2147483645", "--nice=-1", "--priority=4294967293", "-t 4294967290", "-t 0", "-t 1-2:3:4 --time-min=1"),
    *("--deadline=now+1hour -t1", "--begin=now+100days", "--begin=1970-01-01", "-a 0-1000:7%3", "-a 0", "-d singleton"),
    *("-d afterok:1", "-d after:1+10", "-d 'afterok:1?afternotok:1'", "--array=1-3 --gres=a:b:0k", "--core-spec=1"),
    *(
        "--sockets-per-node=99",
        "--ntasks-per-core=3",
        "--threads-per-core=9",
        "--hint=nomultithread",
        "--distribution=plane=3",
    ),
    *(
        "--exclusive=user",
        "--oversubscribe",
        "--contiguous",
        "--bb='x'",
        "--reboot",
        "--signal=B:10@60",
        "--spread-job",
    ),
)
#: Changes that an owner may make to a waiting job.
EDITS = (
    *("MinMemoryCPU=4611686018427387903", "MinMemoryNode=4611686018427387903", "MinCPUsNode=60000", "NumCPUs=1000000"),
    *("NumTasks=4294967293", "NumNodes=1-4000000", "TimeLimit=4294967290", "Nice=2147483645", "TresPerNode=a:b:0k"),
    *(
        "TresPerNode=gres/llc:99999999",
        "TresPerJob=gres/fpga:1",
        "TresPerTask=gres/llc:1",
        "Name=$'\\xff'",
        "Comment=$'\\xff'",
    ),
    *(
        "Extra=$'sns:grant=\\xff'",
        "Extra='sns:grant=1:x:;sns:grant='",
        "AdminComment='sns:2 free=mine'",
        "Features='[a|b]'",
        "ExcNodeList=c[1-4]",
    ),
    *(
        "ReqNodeList=c1,c1",
        "ArrayTaskThrottle=4294967290",
        "StartTime=now+1000days",
        "Dependency=afterok:1",
        "WCKey=$'\\xff'",
    ),
    *(
        "MinTmpDiskNode=4294967290",
        "Licenses=matlab:99999",
        "ReqSockets=65000",
        "TasksPerNode=65000",
        "CPUsPerTask=65000",
    ),
)

#: Logs the heartbeat's age ten times a second, until /tmp/watching is removed.
AGES = """
import pathlib, time
beat = pathlib.Path("/run/sns/heartbeat")
with open("/tmp/ages", "w") as out:
    while pathlib.Path("/tmp/watching").exists():
        out.write(f"{time.time() - int(beat.read_text())}\\n")
        out.flush()
        time.sleep(0.1)
"""


@pytest.fixture
def watched(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster, where the heartbeat's age is logged."""
    cluster.run(f"sed 's/interval_s: 1.0/interval_s: {INTERVAL_S}/' /etc/slurm/sns.yaml > /tmp/sns-slow.yaml")
    cluster.daemon("restart", "scheduler", config="/tmp/sns-slow.yaml")
    cluster.wait_for_scheduler()
    cluster.run(f"touch /tmp/watching; setsid {PYTHON} -c {shlex.quote(AGES)} < /dev/null > /dev/null 2>&1 &")
    yield cluster
    cluster.run("rm -f /tmp/watching /tmp/ages; sns-daemon restart scheduler")


def test_nothing_that_a_user_writes_stops_or_stalls_a_daemon(watched: Cluster) -> None:
    cluster = watched
    scheduler, watchdog = Log(cluster), Log(cluster, "watchdog")
    processes = cluster.run("cat /run/sns/scheduler.pid /run/sns/watchdog.pid")
    # These jobs wait unchanged until their begin time, in a managed partition and in one that is not managed.
    lines = [
        f"sbatch --parsable -o /dev/null -p {partition} --begin=now+1hour {options} --wrap 'sleep 600' 2> /dev/null"
        for partition in ("main", "plain")
        for options in OPTIONS
    ]
    accepted = cluster.run("\n".join(f"{line} || true" for line in lines), "alice").split()
    assert len(accepted) > len(OPTIONS), "most of them are accepted in both"
    gated = cluster.submit_all([("--begin=now+1hour -n2", "true")] * len(EDITS))
    placed = cluster.submit("-n1 -t5 --mem=1G", "sleep 600")
    cluster.wait_for("they are seen", lambda: gated[-1] in {each["job_id"] for each in cluster.queue()})
    cluster.run(
        "\n".join(
            f"scontrol update JobId={each} {text} 2> /dev/null || true" for each, text in zip(gated, EDITS, strict=True)
        ),
        "alice",
    )
    cluster.wait_for("a job beside them runs", lambda: cluster.job(placed).state == "RUNNING")
    number = cluster.submit("-n1 -t5 --mem=1G", "true")
    assert cluster.wait_for_end([number])[number].state == "COMPLETED"
    cluster.wait_for_cycles(2)
    ages = [float(age) for age in cluster.run("cat /tmp/ages").split()]
    assert max(ages) <= 2 * INTERVAL_S, f"at most, of {len(ages)} looks"
    assert cluster.run("cat /run/sns/scheduler.pid /run/sns/watchdog.pid") == processes
    assert not [*scheduler.lines("defect"), *scheduler.lines("Traceback"), *watchdog.lines("defect")]
    # The watchdog and an admin's command read all of these jobs, too.
    said = cluster.run("sns release --all", "slurm")
    assert said.splitlines()[-1].endswith("left to Slurm"), said
    cluster.daemon("kill", "scheduler")  # it would gate new ones
    assert not [number for number, job in cluster.jobs().items() if job.is_gated]


def test_slurm_reads_odd_node_lists_as_we_do_and_we_read_what_it_prints(shared_cluster: Cluster) -> None:
    each = "; ".join(f"scontrol show hostnames {shlex.quote(text)} | xargs; echo" for text in ODD)
    read = [line.split() for line in shared_cluster.run(each).split("\n\n") if line]
    assert [sorted(set(names)) for names in read] == [sorted(names.split()) for names in ODD.values()]
    each = "; ".join(f"scontrol show hostlist {','.join(names.split())}" for names in ODD.values())
    printed = shared_cluster.run(each).split()
    assert [sorted(unfolded(text)) for text in printed] == [sorted(names.split()) for names in ODD.values()]
