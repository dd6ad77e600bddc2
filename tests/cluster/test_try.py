"""`sns try` and what would start a waiting job now: what they say of the next cycle comes true on a quiet cluster."""

import json
from typing import Any

from cluster import Cluster

PATIENCE_S = 120
SCRIPT = "#!/bin/bash\n#SBATCH -n 2 --mem=90G -t 10\nsleep 60\n"


def tried(cluster: Cluster, words: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(cluster.run(f"sns try --json {words}", "alice"))
    return answer


def nodes_of(cluster: Cluster, number: int) -> set[str]:
    """The nodes of the job, once it runs."""
    cluster.wait_for(f"{number} runs", lambda: cluster.job(number).state == "RUNNING", PATIENCE_S)
    return set(cluster.explain(number, "alice")["job"]["nodes"])


def test_a_job_goes_where_try_said_and_trying_submits_nothing(cluster: Cluster) -> None:
    cluster.write("/home/alice/tried.sh", SCRIPT, "alice")
    before = set(cluster.jobs())
    options = "-n 40 --mem=4G tried.sh"
    # Jobs of earlier tests have just left, and Slurm's backfill may keep nodes for one of them until it looks again.
    cluster.wait_for("Slurm keeps no node", lambda: "planned" not in cluster.run("sinfo -h -N -o %T"))
    cluster.wait_for_cycles(2)  # what is said is of the last one
    said = tried(cluster, options)
    assert (said["judgement"], said["when"]) == ("managed", "now")
    assert [each["demand"]["nodes"] for each in said["alternatives"]] == [2]
    assert set(cluster.jobs()) <= before
    number = int(cluster.run("sbatch --parsable -o /dev/null -n 40 --mem=4G tried.sh", "alice"))
    assert nodes_of(cluster, number) == set(said["nodes"])
    for words, judgement in (("-n4 -w c2", "passes through"), ("--mem=900G", "refused")):
        assert tried(cluster, words)["judgement"] == judgement
    wrong = cluster.try_run("sns try -n many", "alice")
    assert (wrong.returncode, wrong.stderr) == (2, "sns: error: --ntasks 'many': valid are whole numbers, as 4 or 4k\n")


def test_a_waiting_job_starts_with_the_memory_that_explain_proposes(cluster: Cluster) -> None:
    for number in cluster.submit_all([("-n1 --mem=100G", "sleep 300")] * 4):
        nodes_of(cluster, number)
    (waiting,) = cluster.submit_all([("-n1 --mem=30G", "sleep 60")])
    asked = {"command": "explain", "job_id": waiting}

    def changes() -> list[dict[str, Any]]:
        return (cluster.try_ask(asked, "alice") or {}).get("would_start", [])

    cluster.wait_for("it waits, and a change would start it", changes, PATIENCE_S)
    (change,) = changes()
    assert (change["kind"], change["options"]) == ("memory", "--mem=25G")
    assert "--mem=25G" in cluster.run(f"sns explain {waiting}", "alice")
    assert tried(cluster, "-n1 --mem=30G")["would_start"][0]["options"] == "--mem=25G"
    assert tried(cluster, "-n1 --mem=25G")["when"] == "now"
    cluster.run(f"scontrol update JobId={waiting} MinMemoryNode=25600", "alice")
    assert nodes_of(cluster, waiting) <= {"c1", "c2", "c3", "c4"}
