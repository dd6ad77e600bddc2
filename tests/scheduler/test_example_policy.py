"""The policy of tests/policies/example_policy.py, under which jobs take turns, driven by the live loop."""

import sys
from pathlib import Path

import pytest
from fake_slurm import FakeSlurm, Site
from live import ENFORCE

from slurm_sns.policies.registry import REGISTRY, specification
from slurm_sns.scheduler.loop import Scheduler
from slurm_sns.scheduler.observation import JobState
from slurm_sns.scheduler.ports import PolicyHistory

sys.path.append(str(Path(__file__).parent.parent / "policies"))


@pytest.fixture
def turns(mocker):
    mocker.patch.dict(REGISTRY, {"turns": "example_policy:TURNS"})
    yield specification("turns")
    specification.cache_clear()


@pytest.fixture
def site() -> Site:
    site = Site(FakeSlurm({"c1": 4}))
    site.slurm.shares = {}
    site.slurm.submit(4, run_s=9, may_restart=True)
    site.slurm.submit(4, run_s=40, may_restart=True)
    return site


def scheduler(site: Site, turns) -> Scheduler:
    policy = turns.policy(turns.parameters[0](turn_s=5, most_turns=2))
    ports, sign = site.ports(), lambda _: "1:a-grant"
    return Scheduler(ports, policy, ENFORCE, publish=site.views.append, specification=turns, sign=sign)


def test_jobs_take_turns_on_a_cluster(site: Site, turns) -> None:
    scheduler(site, turns).repeat(60, 1.0)

    changes = [line for line in site.log if "turn" in line or "waits" in line]
    assert changes[:5] == [
        "job 1: placed on c1: its turn",
        "job 1: suspended: its turn is over",
        "job 2: placed on c1: its turn",
        "job 2: suspended: its turn is over",
        "job 1: resumed: its turn",
    ]
    assert site.slurm.ended == [1, 2]
    assert site.slurm.shares == {2: 1}, "alone at last"


def test_a_restart_forgets_no_turn(site: Site, turns) -> None:
    site.slurm.run_s[1] = 40
    scheduler(site, turns).repeat(8, 1.0)
    assert site.slurm.jobs[1].state is JobState.SUSPENDED

    scheduler(site, turns).repeat(20, 1.0)

    assert "job 1: requeued: it has had all its turns" in site.log, "one turn before, one after"
    assert not [line for line in site.log if "anew" in line]


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        (
            PolicyHistory("turns", 2, "[]"),
            "the history of policy turns is of version 2, but the policy reads version 1: it starts without history",
        ),
        (PolicyHistory("turns", 1, "turns"), "the history of policy turns cannot be read"),
    ],
)
def test_what_cannot_be_read_of_it_is_one_line_and_the_policy_starts_anew(site: Site, turns, kept, words) -> None:
    site.history.memory = kept
    scheduler(site, turns).repeat(2, 1.0)
    assert [line for line in site.log if words in line]
    assert site.slurm.started == [(1, ("c1",))]
