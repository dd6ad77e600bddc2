"""The page of estimated starts: what is known at a moment, and that ranges hold where nothing changes."""

import numpy as np
import pytest

from slurm_sns.model import Resources
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts
from sns_reproductions.estimates.run import judged_starts, kin_of
from sns_reproductions.logs import Log

MACHINES = ((4, 4, 8192),)


def swf(rows) -> str:
    """Lines of SWF: submit, run time, processors, limit, owner, program of each job."""
    lines = []
    for number, (submit, run, processors, limit, owner, program) in enumerate(rows, 1):
        fields = [-1] * 18
        known = {0: number, 1: submit, 3: run, 4: processors, 7: processors, 8: limit, 10: 1, 11: owner, 13: program}
        for at, value in known.items():
            fields[at] = value
        lines.append(" ".join(map(str, fields)))
    return "\n".join(lines) + "\n"


@pytest.fixture
def log(tmp_path, monkeypatch):
    """A log of a site on which nothing ever changes: jobs come at random and use a quarter of their limits, or all."""
    rng = np.random.default_rng(3)
    submits = np.cumsum(rng.exponential(330, 1500)).astype(int).tolist()
    rows = []
    for submit in submits:
        limit = int(rng.choice([1800, 3600, 7200]))
        share = rng.choice([0.25, 1.0], p=[0.7, 0.3]) * rng.uniform(0.8, 1)
        rows.append((submit, max(1, int(limit * share)), int(rng.integers(1, 5)), limit, int(rng.integers(4)), 7))
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "made.swf").write_text(swf(rows))
    monkeypatch.setenv("SNS_SHARED", str(tmp_path))
    return Log(("made.swf",), MACHINES)


def test_owner_and_program_are_those_of_the_log(log):
    pool = NodeArrays(("a",), amounts([Resources(4, 8192)]))
    jobs = log.records(pool, 1.0, user_estimates=True)

    assert len(kin_of(log, jobs)) == len(jobs)
    assert {kin.program for kin in kin_of(log, jobs)} == {"7"}


def test_where_nothing_changes_four_of_five_starts_lie_in_their_range(log):
    judged = judged_starts(log, quick=False)[100:]

    inside = [each.told is not None and each.told.has(each.wait_s) for each in judged]
    assert len(judged) > 300
    assert 0.7 < np.mean(inside) < 0.9
    ours = np.median([abs(each.told.middle_s - each.wait_s) for each in judged if each.told])
    assert ours < np.median([abs(each.booked_s - each.wait_s) for each in judged])
