"""Answers of a scheduler that can try jobs: its rules of submission, and views of small clusters."""

import json
from dataclasses import replace

import json_output
from live import ALICE, ENFORCE, NOW, look, situation

from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.scheduler.answers.requests import Answers
from slurm_sns.scheduler.answers.trying import SubmissionRules
from slurm_sns.scheduler.answers.view import RecentCycles, View
from slurm_sns.scheduler.snapshot.spreading import SpreadRules
from slurm_sns.submit.table import FilterTable, NodeShape

POLICY = max_jobs(MatchingParameters())
TABLE = FilterTable("enforce", {"main": (NodeShape(28, 28, 128_000, 2),)}, "main", ("mix-fit",), 1000, "", 15, "")
RULES = SubmissionRules(TABLE, SpreadRules(POLICY.alternatives))


class NeverRecorded:
    """A decision record without decisions."""

    def of_job(self, _: int) -> list:
        return []

    def job_of_task(self, _: int, __: int) -> None:
        return None


def ask(
    request,
    *jobs,
    user=ALICE,
    nodes=None,
    rules=RULES,
    policy=POLICY,
    disabled=False,
    programs=None,
    board=None,
    **observed,
):
    """The answer to this request, after a cycle that planned these jobs on these nodes."""
    settings = replace(ENFORCE, mode=rules.table.mode)
    seen = situation(look(*jobs, nodes=nodes, **observed), settings=settings, spreading=rules.spreading)
    recent = RecentCycles()
    plan = policy.plan(seen.snapshot)
    recent.publish(View(NOW, 0.01, rules.table.mode, disabled, 1, 0, 0, seen, plan, programs or {}))
    admins = frozenset({0})
    told = {"settings": settings, "asked": set[int](), "rules": rules, "board": board}
    made = Answers(recent, NeverRecorded(), policy, admins, **told)
    command = f"sns {request['command']}"
    return json_output.read(command, json.dumps(made.answer(request, user)))
