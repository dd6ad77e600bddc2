"""The default runner: what a policy of another package is simulated by."""

from pathlib import Path

import pytest

from slurm_sns.errors import BadInput
from slurm_sns.policies.base import no_explanation, own_geometry
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.spread_n_share.parameters import REPRODUCTION
from slurm_sns.sim.request import SimulationRequest, SpreadingRequest
from slurm_sns.sim.runners.plans import by_plans

NODES = "name,cores,mem_gb\nn0,2,4\n"
#: Small jobs run until 70; the large one needs both cores, which are free at 30 if they are kept for it.
JOBS = (
    "job_id,submit_s,run_s,cores,mem_gb\n" + "".join(f"{at},{10 * at},20,1,1\n" for at in range(1, 6)) + "9,11,10,2,1\n"
)


class Nothing:
    """A policy that is known by its plans alone; it is not asked for one here."""

    alternatives = staticmethod(own_geometry)
    explain = staticmethod(no_explanation)
    plan = None


def asked(policy, **more) -> SimulationRequest:
    return SimulationRequest("theirs", policy, (), "slurm_sns.sim.runners.plans:by_plans", 1, **more)


def written(folder: Path, request: SimulationRequest) -> dict[str, str]:
    """When each job starts."""
    (folder / "nodes.csv").write_text(NODES)
    (folder / "jobs.csv").write_text(JOBS)
    replay = by_plans(str(folder / "jobs.csv"), str(folder / "nodes.csv"), request, 1.0, None)
    _, *rows = [line.split(",") for line in "".join(replay.run(lambda _: None).files["jobs.csv"]).splitlines()]
    return {row[0]: row[2] for row in rows}


def test_a_portfolio_heeds_the_age_limit(tmp_path):
    policy = max_jobs(MatchingParameters(reservations=0))

    assert written(tmp_path, asked(policy))["9"] == "70"
    assert written(tmp_path, asked(policy, age_limit_s=5))["9"] == "30"


def test_a_policy_known_by_its_plans_has_no_use_for_profiles(tmp_path):
    spreading = SpreadingRequest(REPRODUCTION, user_estimates=True)

    with pytest.raises(BadInput, match="--user-estimates go with portfolios, fcfs, easy and slurm, not with theirs"):
        written(tmp_path, asked(Nothing(), spreading=spreading))
