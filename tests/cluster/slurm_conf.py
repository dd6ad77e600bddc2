"""More lines in the mini cluster's slurm.conf, for a while."""

from collections.abc import Iterator
from contextlib import contextmanager

from cluster import Cluster

SLURM_CONF, SNS_YAML = "/etc/slurm/slurm.conf", "/etc/slurm/sns.yaml"
#: A copy of both, from which they are restored.
SAVED = "/tmp/before-the-change"


@contextmanager
def added_to_slurm_conf(cluster: Cluster, *lines: str, sns_yaml: str = "") -> Iterator[None]:
    """Run Slurm with these lines besides; `sns_yaml` edits our configuration (sed). alice's jobs are cancelled then."""
    added = "\n".join(lines)
    cluster.run(f"mkdir -p {SAVED}; cp -p {SLURM_CONF} {SNS_YAML} {SAVED}")
    try:
        cluster.run(f"printf '\\n%s\\n' '{added}' >> {SLURM_CONF}")
        if sns_yaml:
            cluster.run(f"sed -i '{sns_yaml}' {SNS_YAML}")
        reconfigure(cluster)
        yield
    finally:
        cluster.run(f"scancel -u alice; cp -p {SAVED}/slurm.conf {SLURM_CONF}; cp -p {SAVED}/sns.yaml {SNS_YAML}")
        reconfigure(cluster)


def reconfigure(cluster: Cluster) -> None:
    """Have Slurm read the configuration files again."""
    cluster.run("sns render /etc/slurm/sns && scontrol reconfigure")
    cluster.wait_for("Slurm answers", lambda: cluster.try_run("cluster-health ctl").returncode == 0)
