"""A job that can never start is said at once to its owner: in the log, by explain, and by mail if it asked for that."""

from collections.abc import Iterator

import pytest
from slurm_conf import added_to_slurm_conf

from cluster import Cluster

PATIENCE_S = 120
LOG = "/var/log/sns/scheduler.log"
PROGRAM, MAILS = "/tmp/mail-program", "/tmp/mails/told"
#: A MailProg that writes down what it gets, a mail on each line.
SCRIPT = f"""#!/bin/sh
printf '%s|' "$@" "$SLURM_JOB_ID" "$SLURM_JOB_STATE" "$(id -un)" "$(cat)" >> {MAILS}
echo >> {MAILS}
"""
#: As no node has it.
TOO_MUCH = "MinMemoryNode=200000"
TOO_LARGE = (
    "can never start as it is: 4 tasks of 1 CPUs fit on no nodes of partition main: 4 nodes, the largest with 28"
)


@pytest.fixture(scope="module")
def mailing(shared_cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with that MailProg."""
    cluster = shared_cluster
    cluster.write(PROGRAM, SCRIPT)
    cluster.run(f"chmod 755 {PROGRAM}; rm -rf /tmp/mails; mkdir -m 777 /tmp/mails")
    with added_to_slurm_conf(cluster, f"MailProg={PROGRAM}"):
        yield cluster


def mails(cluster: Cluster, number: int) -> list[list[str]]:
    """The mails of ours about this job, each with its option, subject, address, variables, user and body."""
    told = cluster.run(f"cat {MAILS} 2> /dev/null || true").splitlines()
    return [line.split("|") for line in told if f"Job_id={number} " in line and "never start" in line]


def lines(cluster: Cluster, number: int) -> list[str]:
    """What the scheduler's log says of this job."""
    shown = cluster.run(f"grep -E 'job {number}( |:)' {LOG} || true").splitlines()
    return [line.partition(f"job {number}")[2] for line in shown]


def a_waiting_job(cluster: Cluster, options: str, user: str = "alice") -> int:
    """A job that would fit and waits for us, held by its owner."""
    number = cluster.submit(f"-n4 -t5 -H {options}", "true", user)
    assert cluster.job(number).is_gated
    return number


def test_a_job_that_grows_larger_than_any_node_is_said_once_in_log_mail_and_explain(mailing: Cluster) -> None:
    cluster = mailing
    number = a_waiting_job(cluster, "--mail-type=ALL -J 'x; -f $(id)'")
    cluster.run(f"scontrol update JobId={number} {TOO_MUCH}; scontrol release {number}", "alice")
    cluster.wait_for("the mail is there", lambda: mails(cluster, number) != [], PATIENCE_S)
    cluster.wait_for("Slurm holds it", lambda: cluster.job(number).reason == "BadConstraints", PATIENCE_S)
    ((option, subject, *rest),) = mails(cluster, number)
    assert option == "-s"
    assert subject.startswith(f"Slurm Job_id={number} Name=x; -f $(id) C{TOO_LARGE[1:]}")
    assert rest == ["alice", str(number), "PENDING", "slurm", "", ""]
    (line,) = lines(cluster, number)
    assert line.startswith(f" of alice {TOO_LARGE}")
    held = "Slurm holds it, because it can never start as it is (BadConstraints)"
    told = [cluster.explain(number, "alice")]

    def is_explained() -> bool:
        told.append(cluster.explain(number, "alice"))
        return told[-1]["pass_through"] == held

    cluster.wait_for("the scheduler has seen that", is_explained, PATIENCE_S)
    assert subject.endswith(told[-1]["decisions"][-1]["reason"].removeprefix("left to Slurm: "))
    cluster.run(f"scontrol update JobId={number} MinMemoryNode=1000; scontrol release {number}", "alice")
    assert cluster.wait_for_end([number])[number].state == "COMPLETED", "as docs/users/waiting.md says"


def test_a_job_that_its_partition_no_longer_allows_is_said_once_and_stays(mailing: Cluster) -> None:
    cluster = mailing
    number = a_waiting_job(cluster, "--mail-type=FAIL --mail-user=bob@example.org", "bob")
    why = "partition main allows 2 minutes, the job asks for 5"
    cluster.run("scontrol update PartitionName=main MaxTime=2")
    try:
        cluster.run(f"scontrol release {number}", "bob")
        cluster.wait_for("the mail is there", lambda: mails(cluster, number) != [], PATIENCE_S)
        cluster.wait_for_cycles(3, PATIENCE_S)
        ((_, subject, to, *_),) = mails(cluster, number)
        assert (to, subject.endswith(f"Can never start as it is: {why}")) == ("bob@example.org", True)
        assert lines(cluster, number) == [f" of bob can never start as it is: {why}"]
        assert cluster.row(number)["reason"] == why
    finally:
        cluster.run(f"scontrol update PartitionName=main MaxTime=UNLIMITED; scancel {number}")
