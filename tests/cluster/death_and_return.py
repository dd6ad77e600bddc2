"""Two controllers: the primary is killed, comes back and hands over; by hand, and not yet run.

Each time the scheduler beside slurmctld is to plan.

In a mini cluster of its own, because Slurm's configuration has two SlurmctldHost lines there. No job begins or ends
within seconds of the kill: what slurmctld was told last is lost with it, also without slurm_sns, and Slurm may then run
such a job twice. `takeovers.py` does all of it under load.
"""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from two_controllers import BEGAN, HOSTS, RAN, SAVED_AFTER_S, TwoControllers, changes

from cluster import Cluster

SCRIPT = Path(__file__).parents[2] / "containers" / "cluster.sh"
#: Half a node: eight of them run at a time.
HALF, AT_A_TIME = "-n14 --mem=1G -t10", 8
#: A job that ends when the word in this file changes.
WORD = "/home/alice/word"
UNTIL_THE_NEXT_WORD = f'{BEGAN}; was=$(cat {WORD}); until [ "$(cat {WORD})" != "$was" ]; do sleep 0.3; done'


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


def say(two: TwoControllers, word: str) -> None:
    """Let the jobs that run end."""
    two.cluster.run(f"echo {word} > {WORD}.new; mv {WORD}.new {WORD}", "alice")


def wait_until_run(two: TwoControllers, number: int) -> None:
    """Wait until so many jobs have begun."""
    two.cluster.wait_for(f"{number} jobs have begun", lambda: len(two.began()) >= number, every_s=0.5)


def test_after_a_death_a_return_and_a_takeover_one_scheduler_plans_and_each_job_runs_once(two: TwoControllers) -> None:
    assert "this scheduler stands by; ctl plans: run this command there" in two.said("ctl2")
    assert "this scheduler stands by; ctl plans" in two.said("ctl2", "sns queue")
    assert "standing by" in two.cluster.run("cat /var/log/sns/watchdog.log", node="ctl2")
    say(two, "first")
    numbers = two.submit(4 * AT_A_TIME, HALF, UNTIL_THE_NEXT_WORD)
    wait_until_run(two, AT_A_TIME)
    time.sleep(SAVED_AFTER_S)

    two.kill("ctl")
    two.wait_until_planning("ctl2")
    say(two, "after the death")
    wait_until_run(two, 2 * AT_A_TIME)

    two.start("ctl")
    two.wait_until_planning("ctl")
    assert "this scheduler stands by; ctl plans" in two.said("ctl2")
    say(two, "after the return")
    wait_until_run(two, 3 * AT_A_TIME)

    two.take_over()
    two.wait_until_planning("ctl2")
    say(two, "after the takeover")
    wait_until_run(two, 4 * AT_A_TIME)

    say(two, "the end")
    two.wait_for_all(numbers)
    began = two.began()
    assert sorted(began) == numbers
    assert {number: moments for number, moments in began.items() if len(moments) > 1} == {}
    assert changes(two.placements()) == 3, "never two planners"
    for host in HOSTS:
        assert "freeing gated jobs" not in two.cluster.run("cat /var/log/sns/watchdog.log", node=host)
