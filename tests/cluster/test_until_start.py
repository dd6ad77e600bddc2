"""Under `withhold: until-start` a wide job's nodes are kept from its start on: jobs that end before pass it."""

import json
from collections.abc import Iterator

import pytest

from cluster import Cluster

PATIENCE_S = 120
CONFIG = "/tmp/sns-until-start.yaml"
#: They end when their owner says so; the limit of the first one is the soonest.
ENDS = "until [ -e /home/alice/go ]; do sleep 0.3; done"


@pytest.fixture
def until_start(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with a scheduler under the rule until-start."""
    cluster.run(f"sed 's/^matching:/&\\n  withhold: until-start/' /etc/slurm/sns.yaml > {CONFIG}")
    cluster.daemon("restart", "scheduler", config=CONFIG)
    cluster.wait_for_scheduler()
    cluster.run("rm -f go", "alice")
    yield cluster
    cluster.run("scancel -u alice; scancel -u bob")
    cluster.daemon("restart", "scheduler")
    cluster.wait_for_scheduler()


def node_of(cluster: Cluster, number: int) -> str:
    """The node of a job on one node, once it runs."""
    cluster.wait_for(f"{number} runs", lambda: cluster.job(number).state == "RUNNING", PATIENCE_S)
    (name,) = cluster.job(number).nodes
    return name


def test_who_ends_before_a_promised_start_passes_and_who_does_not_leaves_the_kept_nodes_alone(
    until_start: Cluster,
) -> None:
    cluster = until_start
    fillers = cluster.submit_all(
        [("-n28 --mem=1G -t30", ENDS), ("-n28 --mem=1G -t90", "sleep 3600"), ("-n20 --mem=1G -t90", "sleep 3600")]
    )
    soon, late, partly = (node_of(cluster, each) for each in fillers)
    (kept,) = {"c1", "c2", "c3", "c4"} - {soon, late, partly}
    wide = cluster.submit("-N2 -n56 --mem=1G -t10", "sleep 2", "bob")
    promised = f"if jobs end at their limits, it starts on {', '.join(sorted((soon, kept)))}"
    cluster.wait_for("it is promised a start", lambda: promised in cluster.row(wide).get("reason", ""), PATIENCE_S)
    why = cluster.run("sns queue --why", "bob")
    assert f"more room on {', '.join(sorted((soon, kept)))}, where capacity is withheld for them" in why

    short, beside, long = cluster.submit_all(
        [("-n16 --mem=1G -t5", "sleep 5"), ("-n4 --mem=1G -t120", "sleep 3600"), ("-n16 --mem=1G -t120", "sleep 5")]
    )
    assert node_of(cluster, short) == kept
    assert node_of(cluster, beside) == partly, "it needs no kept node"
    cluster.wait_for_end([short])
    asked = {"command": "explain", "job_id": long}

    def times() -> list[str]:
        changes = (cluster.try_ask(asked, "alice") or {}).get("would_start", [])
        return [each["options"] for each in changes if each["kind"] == "time" and each["nodes"] == [kept]]

    cluster.wait_for("a shorter limit would start it", times, PATIENCE_S)
    assert cluster.job(long).is_gated
    text = cluster.run(f"sns explain {long}", "alice")
    assert "would fit, but capacity is withheld for another user's job, which starts in 0:2" in text
    assert f"job {wide}" not in text
    assert "if jobs end at their limits" in text
    tried = json.loads(cluster.run("sns try --json -n16 --mem=1G -t 120", "alice"))
    assert "time" in {each["kind"] for each in tried["would_start"]}
    assert f"job {wide}" not in json.dumps(tried)
    (option,) = times()
    assert json.loads(cluster.run(f"sns try --json -n16 --mem=1G {option}", "alice"))["when"] == "now"

    cluster.run(f"scontrol update JobId={long} TimeLimit={option.removeprefix('-t ')}", "alice")
    assert node_of(cluster, long) == kept
    assert cluster.job(wide).is_gated
    cluster.wait_for_end([long])
    cluster.run("touch go", "alice")
    ended = cluster.wait_for_end([wide])[wide]
    assert (ended.state, set(ended.nodes)) == ("COMPLETED", {soon, kept})
