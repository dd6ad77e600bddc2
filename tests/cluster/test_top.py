"""`sns top` on a real terminal of the controller: a job that waits is tried with less, by keys alone, and starts."""

import re

from cluster import Cluster

PATIENCE_S = 120
#: Keys after seconds: nodes, queue, the last waiting job explained, its only change, yes, back, quit.
KEYS = (("4", "n"), ("1", "n"), ("1", "\\r"), ("3", "t"), ("1", "\\r"), ("1", "y"), ("4", "\\033"), ("1", "q"))


def screen(cluster: Cluster, options: str) -> str:
    """All that `sns top` writes while alice presses the keys, without the commands to the terminal."""
    typed = "; ".join(f"sleep {after}; printf '{key}'" for after, key in KEYS)
    command = f"stty rows 24 cols 80; TERM=xterm LANG=C.UTF-8 exec sns top {options}"
    on_a_terminal = "import pty, sys; pty.spawn(sys.argv[1:])"
    written = cluster.run(f"({typed}) | python3 -c '{on_a_terminal}' sh -c '{command}'", "alice")
    return re.sub(r"\x1b\[[0-9;?$>]*[A-Za-z]|\x1b.", "", written)


def test_a_waiting_job_is_tried_with_less_on_the_terminal_and_starts(cluster: Cluster) -> None:
    busy = cluster.submit_all([("-n1 --mem=100G", "sleep 300")] * 4)
    cluster.wait_for("four run", lambda: all(cluster.job(each).state == "RUNNING" for each in busy), PATIENCE_S)
    (waiting,) = cluster.submit_all([("-n1 --mem=30G", "sleep 60")])
    asked = {"command": "explain", "job_id": waiting}
    cluster.wait_for(
        "it waits, and a change would start it",
        lambda: (cluster.try_ask(asked, "alice") or {}).get("would_start", []),
        PATIENCE_S,
    )
    seen = screen(cluster, f"-j {waiting}")
    assert f"job {waiting}: waiting" in seen
    assert "cores across, memory up" in seen
    assert f"scontrol update JobId={waiting} MinMemoryNode=25600" in seen
    assert "Slurm has changed the job" in seen
    assert "Traceback" not in seen
    cluster.wait_for("it runs", lambda: cluster.job(waiting).state == "RUNNING", PATIENCE_S)
