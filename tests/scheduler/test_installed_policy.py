"""The policy of docs/develop/policy.md, driven by the live loop against a fake Slurm."""

import re
from pathlib import Path

import pytest
from fake_slurm import FakeSlurm, Site
from live import ENFORCE

from slurm_sns.scheduler.loop import Scheduler
from slurm_sns.scheduler.snapshot.spreading import SpreadRules

PAGE = (Path(__file__).parents[2] / "docs" / "develop" / "policy.md").read_text()
ROOMY = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_it_places_live_jobs_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ROOMY is not None
    (tmp_path / "roomy.py").write_text(ROOMY[1])
    monkeypatch.syspath_prepend(tmp_path)
    import roomy

    policy = roomy.ROOMY.policy(roomy.RoomyParameters(spare_cores=1))
    site = Site(FakeSlurm({"c1": 4, "c2": 8}))
    for cores in (3, 4, 3, 8):
        site.slurm.submit(cores, run_s=60)
    spreading = SpreadRules(policy.alternatives)
    Scheduler(site.ports(), policy, ENFORCE, spreading, publish=site.views.append).cycle()

    plan, said = site.views[-1].plan, "\n".join(site.log)
    assert {start.job_id: start.nodes for start in plan.starts} == {1: ("c2",), 2: ("c2",), 3: ("c1",)}
    assert "cores were free on c2" in said
    assert "0 nodes have 8 cores beside 1 spare ones" in said
    situation = site.views[-1].situation
    assert situation.explanations[1].summary == ("2 nodes can hold it beside 1 spare cores.",)
    cycle = policy.explain(situation.snapshot, plan, 1)
    assert {row.name: (row.outcome, row.figures["free cores"]) for row in cycle.considered} == {
        "c1": ("fits", 4),
        "c2": ("fits", 8),
    }
