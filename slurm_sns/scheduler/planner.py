"""A cycle's plan: that of the policy, checked, with more reasons for owners; and what the next cycle needs of it."""

from dataclasses import replace

from slurm_sns.log import Log
from slurm_sns.model import Action, Plan, Release, Start
from slurm_sns.policies.base import Policy
from slurm_sns.scheduler.learning.learner import explored
from slurm_sns.scheduler.snapshot.carried import Carried
from slurm_sns.scheduler.snapshot.explorations import Explorations
from slurm_sns.scheduler.snapshot.situation import Situation


class Planner:
    """Plans by one policy.

    Args:
        policy: the policy.
        withhold_limit_s: for how long capacity is withheld for the jobs of one user; None for no limit.
        log: gets a line for each error of a plan.
    """

    def __init__(self, policy: Policy, withhold_limit_s: float | None, log: Log) -> None:
        self._policy, self._withhold_limit_s, self._log = policy, withhold_limit_s, log

    def plan(self, situation: Situation, carried: Carried, now_s: float) -> tuple[Plan, Carried]:
        """The policy's plan, and what the next cycle needs of it beside what this one `carried`.

        Where no capacity is withheld for a waiting job, its reason to wait says so, and why.
        """
        plan = self._only_waiting(self._policy.plan(situation.snapshot), situation)
        plan = _saying_what_explores(plan, situation.explorations)
        users = {job.id: job.user_id for job in (*situation.jobs.values(), *situation.tasks.values())}
        withholding = carried.withholding.after(plan, users, now_s, self._withhold_limit_s)
        more = {
            job_id: f"{plan.waiting[job_id]}; no capacity is withheld for it: {why}"
            for job_id, why in situation.not_withheld.items()
            if job_id in plan.waiting
        }
        plan = replace(plan, waiting={**plan.waiting, **more}) if more else plan
        return plan, replace(carried, withholding=withholding, history=plan.history)

    def _only_waiting(self, plan: Plan, situation: Situation) -> Plan:
        """The plan without starts and releases of jobs that do not wait in the snapshot; each is logged as an error."""
        waiting = {job.id for job in situation.snapshot.waiting}
        wrong = [each for each in plan.actions if isinstance(each, Start | Release) and each.job_id not in waiting]
        for action in wrong:
            name = type(action).__name__
            self._log(f"error: the plan has a {name} of job {action.job_id}, which does not wait; not sent")
        return replace(plan, actions=tuple(each for each in plan.actions if each not in wrong)) if wrong else plan


def _saying_what_explores(plan: Plan, explorations: Explorations) -> Plan:
    """The plan, in which the reason of each start that explores says so."""
    if not explorations.offered:
        return plan
    actions: list[Action] = []
    for action in plan.actions:
        found = explored(action, explorations) if isinstance(action, Start) else None
        if found is not None and isinstance(action, Start):
            reason = f"{action.reason}; {found}" if action.reason else str(found)
            actions.append(replace(action, reason=reason))
        else:
            actions.append(action)
    return replace(plan, actions=tuple(actions))
