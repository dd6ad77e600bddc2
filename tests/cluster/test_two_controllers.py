"""Two controllers: the primary dies, the backup's scheduler plans; the primary comes back and plans again.

In a mini cluster of its own, because Slurm's configuration has two SlurmctldHost lines there.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from two_controllers import RAN, SAVED_AFTER_S, TwoControllers, changes

from cluster import Cluster

SCRIPT = Path(__file__).parents[2] / "containers" / "cluster.sh"


@pytest.fixture(scope="module")
def two() -> Iterator[TwoControllers]:
    """A mini cluster with two controllers, both with scheduler and watchdog."""
    subprocess.run([SCRIPT, "two"], check=True)
    found = TwoControllers(Cluster(f"{os.environ.get('SNS_PROJECT', 'slurm-sns')}-two"))
    found.cluster.run(f"mkdir -p {RAN}", "alice")
    found.wait_until_planning("ctl")
    yield found
    found.cluster.close()
    subprocess.run([SCRIPT, "two-down"], check=True)


def test_one_scheduler_plans_after_a_death_and_a_return_and_each_job_runs_once(two: TwoControllers) -> None:
    assert "this scheduler stands by; ctl plans: run this command there" in two.said("ctl2")
    assert "this scheduler stands by; ctl plans" in two.said("ctl2", "sns queue")
    assert "standing by" in two.cluster.run("cat /var/log/sns/watchdog.log", node="ctl2")
    numbers = two.submit(120)
    two.cluster.wait_for("they are saved", lambda: len(two.began()) >= 4 * SAVED_AFTER_S // 2)
    two.kill("ctl")
    two.wait_until_planning("ctl2")
    before = len(two.began())
    two.cluster.wait_for("the new planner's jobs run", lambda: len(two.began()) > before + 8)
    two.start("ctl")
    assert "this scheduler stands by" in two.said("ctl") or two.acting() == "ctl"
    two.wait_until_planning("ctl")
    assert "this scheduler stands by; ctl plans" in two.said("ctl2")
    two.wait_for_all(numbers)
    began = two.began()
    assert sorted(began) == numbers
    assert {number: moments for number, moments in began.items() if len(moments) > 1} == {}
    assert changes(two.placements()) <= 2, "never two planners"
    for host in ("ctl", "ctl2"):
        assert "freeing gated jobs" not in two.cluster.run("cat /var/log/sns/watchdog.log", node=host)
