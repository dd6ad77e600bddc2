"""A policy that suspends, resumes, requeues and sets shares, plugged in through the registry alone."""

from collections import Counter
from fractions import Fraction

import pytest
from trace_jobs import JobMaker, trace_of

from slurm_sns.cli import main
from slurm_sns.errors import BadInput, SnsError
from slurm_sns.model import Plan, Resources, Snapshot, Suspend
from slurm_sns.policies.base import own_geometry
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts
from slurm_sns.policies.registry import REGISTRY, specification
from slurm_sns.sim.engine.planned import PlannedSimulation

ONE_NODE = NodeArrays(("n0",), amounts([Resources(4, 64 * 1024)]))


@pytest.fixture
def turns(mocker):
    specification.cache_clear()
    mocker.patch.dict(REGISTRY, {"turns": "example_policy:TURNS"})
    yield specification("turns")
    specification.cache_clear()


class KeptPlans:
    """A policy whose plans are kept, and what its simulation gave."""

    def __init__(self, policy) -> None:
        self._policy, self.plans, self.outcome = policy, [], None

    def plan(self, snapshot):
        self.plans.append(self._policy.plan(snapshot))
        return self.plans[-1]


def simulated(policy, *runs_s: int) -> KeptPlans:
    """Jobs that run for so many seconds, all submitted at 0."""
    maker = JobMaker(1.0)
    jobs = [maker.job(at, 0, run_s, nodes=1, cores=4, memory_mb=1024) for at, run_s in enumerate(runs_s)]
    kept = KeptPlans(policy)
    kept.outcome = PlannedSimulation(ONE_NODE, trace_of("test", jobs, Counter(), ONE_NODE), kept).run()
    return kept


def actions(simulation: KeptPlans) -> list[tuple[str, int]]:
    return [(type(action).__name__, action.job_id) for plan in simulation.plans for action in plan.actions]


def test_jobs_take_turns(turns):
    simulation = simulated(turns.policy(), 8, 20)

    assert actions(simulation) == [
        *[("Start", 0), ("Suspend", 0), ("Start", 1), ("Suspend", 1), ("Resume", 0)],  # at 0, 10 and 20
        *[("Resume", 1), ("SetShare", 1)],  # 0 ends at 26; at 36 nobody waits for the end of 1's turn
    ]
    assert [placed.end_s for placed in simulation.outcome.placements] == [26, 46]


def test_what_the_policy_remembers_decides_who_starts_again(turns):
    simulation = simulated(turns.policy(turns.parameters[0](most_turns=2)), 40, 8)

    assert actions(simulation)[4:] == [
        *[("Resume", 0), ("Requeue", 0), ("Resume", 1)],  # 0 has had two turns at 30
        *[("Start", 0), ("SetShare", 0)],  # from the beginning at 36, alone from 46 on
    ]
    assert [placed.end_s for placed in simulation.outcome.placements] == [81, 36]


def test_exact_times_stay_exact(turns):
    policy = turns.policy(turns.parameters[0](turn_s=Fraction(10, 3), most_turns=100))

    simulation = simulated(policy, 8, 20)

    # A turn is 10/3 s and 5/3 s of work: 0 ends 4/3 s of work after its fourth and 1's; 1 is alone from then on.
    ends_s = [placed.end_s for placed in simulation.outcome.placements]
    assert ends_s == [Fraction(10, 3) * 8 + Fraction(8, 3), ends_s[1]]
    assert isinstance(ends_s[1], Fraction)


class Suspending:
    """Suspends a job that is not there."""

    alternatives = staticmethod(own_geometry)

    def plan(self, snapshot: Snapshot) -> Plan:  # noqa: ARG002  a policy's shape
        return Plan((Suspend(7),))


class Sleeping(Suspending):
    """Wants to be asked again and again, and does nothing."""

    def plan(self, snapshot: Snapshot) -> Plan:
        return Plan(wake_s=snapshot.now_s + 1)


@pytest.mark.parametrize(
    ("policy", "words"),
    [(Suspending(), "job 7: Suspend in a plan, but it is not running"), (Sleeping(), "2 jobs that never started")],
)
def test_a_policy_whose_actions_cannot_be_is_a_defect(policy, words):
    with pytest.raises(SnsError, match=words):
        simulated(policy, 8, 8)


def test_its_parameters_have_limits(turns):
    with pytest.raises(BadInput, match="turn_s is 0; valid: from 1 to 3600"):
        turns.policy(turns.parameters[0](turn_s=0))


@pytest.mark.usefixtures("turns")
def test_sns_simulate_runs_it_and_prints_its_summary(tmp_path, capsys, monkeypatch):
    (tmp_path / "nodes.csv").write_text("name,cores,mem_gb\nn0,4,64\n")
    (tmp_path / "jobs.csv").write_text("job_id,submit_s,run_s,cores,mem_gb\n1,0,8,4,1\n2,0,20,4,1\n")
    line = ["simulate", str(tmp_path / "jobs.csv"), "--nodes", str(tmp_path / "nodes.csv"), "--policy", "turns"]
    monkeypatch.setattr("sys.argv", ["sns", *line])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (0, None)
    assert "mean wait" in capsys.readouterr().out

    monkeypatch.setattr("sys.argv", ["sns", *line, "--age-limit", "5"])
    with pytest.raises(SystemExit) as refused:
        main()
    assert refused.value.code == 2
    assert "--age-limit goes with policies that match, not with turns" in capsys.readouterr().err
