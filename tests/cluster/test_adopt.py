"""`sns adopt`: fifty jobs as the version before left them, in every state of theirs, taken over once."""

from cluster import Cluster

#: The boost of that version; 5 is a nice value of the owner's own.
BOOST = -2_000_000_000
#: All wait in a partition whose nodes are drained, so that nothing starts before it is meant to.
SMALL = "-p small -n1"


def nices(cluster: Cluster) -> dict[int, int]:
    """The nice value of each job that waits or runs."""
    shown = cluster.run("squeue -a -r -h -O 'JobID:20,nice:20'")
    return {int(job): int(nice) for job, nice in (line.split() for line in shown.splitlines())}


def test_the_jobs_of_the_version_before_are_taken_over(cluster: Cluster) -> None:
    cluster.run("sns disable; sns-daemon kill scheduler; sns-daemon kill watchdog")
    cluster.run("scontrol update NodeName=s[1-2] State=DRAIN Reason=test")
    try:
        check(cluster)
    finally:
        cluster.run("scontrol update NodeName=s[1-2] State=RESUME; sns enable")


def check(cluster: Cluster) -> None:
    held = cluster.submit_all([(f"{SMALL} -H --extra='sns:1 alpha=0.9'", "sleep 1")] * 18)
    (array,) = cluster.submit_all([(f"{SMALL} -H --array=1-3 --extra=sns:1", "sleep 1")])
    advised = cluster.submit_all([(f"{SMALL} --extra='sns:1 advised'", "sleep 1")] * 5)
    advised_held = cluster.submit_all([(f"{SMALL} -H --extra='sns:1 advised'", "sleep 1")] * 5)
    placed = cluster.submit_all([(f"{SMALL} --extra='sns:1 nice=5'", "sleep 1")] * 6)
    owner_held = cluster.submit_all([(f"{SMALL} -H --extra=sns:1", "sleep 1")] * 5)
    admin_held = cluster.submit_all([(f"{SMALL} --extra=sns:1", "sleep 1")] * 4)
    running = cluster.submit_all([("-n1 --extra=sns:1", "sleep 60")] * 4)
    plain = cluster.submit_all([(SMALL, "sleep 1")] * 2)
    cluster.wait_for("they run", lambda: {cluster.jobs()[number].state for number in running} == {"RUNNING"})
    update = f"scontrol update Nice={BOOST} ReqNodeList=s1 JobId="
    cluster.run("; ".join(f"{update}{number}" for number in (*placed, *owner_held)))
    cluster.run("; ".join(f"scontrol update Nice={BOOST} JobId={number}" for number in running))
    cluster.run("; ".join(f"scontrol hold {number}" for number in admin_held))

    told = cluster.run("sns adopt")
    assert told.splitlines()[-2] == "6 freed, 19 gated, 9 held, 10 slurms", told
    seen = cluster.jobs()
    assert all(seen[number].is_gated and not seen[number].is_held for number in held)
    of_array = cluster.fields(array)
    assert of_array["Priority"] != "0", of_array
    assert of_array["AdminComment"] == "sns:2", of_array
    assert cluster.jobs()[held[0]].admin_comment.startswith("sns:2 alpha=0.9 g=")
    assert all(not seen[number].pinned_to for number in (*placed, *owner_held))
    assert all(seen[number].is_held for number in (*advised_held, *owner_held, *admin_held))
    assert all(not seen[number].is_held for number in (*advised, *placed, *plain))
    assert all(seen[number].state == "RUNNING" for number in running)
    own = nices(cluster)
    assert {own[number] for number in placed} == {5}
    assert {own[number] for number in (*owner_held, *held)} == {0}
    assert cluster.run("sns adopt").strip() == "no job of the version before waits"

    cluster.run("sns enable; sns-daemon start scheduler")
    cluster.wait_for_scheduler()
    cluster.run("sns-daemon start watchdog")
    cluster.run("scontrol update NodeName=s[1-2] State=RESUME")
    ended = cluster.wait_for_end((*held, *advised, *placed, *plain))
    assert all(ended[number].state == "COMPLETED" for number in (*held, *advised, *placed, *plain))
    assert all("n=" in ended[number].admin_comment for number in held), "the new scheduler has placed them"
    cluster.wait_for("the array has run", lambda: "COMPLETED" in cluster.run(f"squeue -t all -h -o %T -j {array}"))
    left = cluster.jobs()
    assert all(left[number].is_held for number in (*advised_held, *owner_held, *admin_held))
    cluster.run("scancel -u alice")
