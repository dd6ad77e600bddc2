"""More lines in the mini cluster's slurm.conf, for a while."""

from collections.abc import Iterator
from contextlib import contextmanager

from cluster import Cluster

SLURM_CONF, SNS_YAML = "/etc/slurm/slurm.conf", "/etc/slurm/sns.yaml"
#: A copy of both, from which they are restored.
SAVED = "/tmp/before-the-change"


@contextmanager
def added_to_slurm_conf(cluster: Cluster, *lines: str, sns_yaml: str = "") -> Iterator[None]:
    """Run Slurm with these lines besides; `sns_yaml` edits our configuration (sed). All jobs are cancelled at last."""
    added = "\n".join(lines)
    cluster.run(f"mkdir -p {SAVED}; cp -p {SLURM_CONF} {SNS_YAML} {SAVED}")
    try:
        cluster.run(f"printf '\\n%s\\n' '{added}' >> {SLURM_CONF}")
        if sns_yaml:
            cluster.run(f"sed -i '{sns_yaml}' {SNS_YAML}")
        reconfigure(cluster)
        yield
    finally:
        cluster.run("scancel -u alice; scancel -u bob")
        cluster.run(f"cp -p {SAVED}/slurm.conf {SLURM_CONF}; cp -p {SAVED}/sns.yaml {SNS_YAML}")
        reconfigure(cluster)


@contextmanager
def preempting(cluster: Cluster, *lines: str, sns_yaml: str = "") -> Iterator[None]:
    """Run Slurm and slurm_sns with these additional lines in slurm.conf; `sns_yaml` edits our configuration (sed)."""
    try:
        with added_to_slurm_conf(cluster, *lines, sns_yaml=sns_yaml):
            restart(cluster)
            yield
    finally:
        if sns_yaml:
            restart(cluster)


def restart(cluster: Cluster) -> None:
    """Restart slurm_sns so that it reads its configuration and the QOS now; it asks for the QOS only once a minute."""
    cluster.daemon("restart", "scheduler")
    cluster.wait_for_scheduler()


@contextmanager
def suspending_urgent(cluster: Cluster, *lines: str, sns_yaml: str = "") -> Iterator[None]:
    """Have a partition `urgent` of Slurm's own on the nodes of `main`, whose jobs suspend those of `main`."""
    with preempting(
        cluster,
        "PreemptType=preempt/partition_prio",
        "PreemptMode=SUSPEND,GANG",
        "PartitionName=urgent Nodes=c[1-4] PriorityTier=10",
        *lines,
        sns_yaml=sns_yaml,
    ):
        yield


def reconfigure(cluster: Cluster) -> None:
    """Have Slurm read the configuration files again."""
    cluster.run("sns render /etc/slurm/sns && scontrol reconfigure")
    cluster.wait_for("Slurm answers", lambda: cluster.try_run("cluster-health ctl").returncode == 0)
