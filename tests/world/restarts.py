"""Restarts of suspended jobs by the scheduler's own Restarter, as eager as they may be.

Whether a restart pays is left out: each job that may restart is restarted at once, wherever it may run next. Whatever
holds then holds with a decision that sends less. What it promises is in promises_restarts.
"""

from collections.abc import Callable, Mapping
from typing import Any

from slurm_sns.model import Plan, Snapshot
from slurm_sns.restarts.decision import Basis, RestartDecision, SuspendedJob, Term
from slurm_sns.restarts.rules import RestartRules
from slurm_sns.scheduler.observation import ObservedJob
from slurm_sns.scheduler.ports import Ports
from slurm_sns.scheduler.restarts.places import Place
from slurm_sns.scheduler.restarts.restarter import Restarter
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.situation import Situation

#: In how long a job is said to complete where it is, in seconds.
NEVER_S = 1e6


def rules_of(told: Mapping[str, Any]) -> RestartRules:
    """The rules by a schedule's own settings, which are named as in sns.yaml; a budget may be a part of an hour."""
    return RestartRules(
        sends=True,
        needs_hint=told.get("opt_in", "restartable") == "restartable",
        window_s=6000,
        only_suspended=True,
        least_suspended_s=told.get("least_suspended_s", 0),
        gain_s=0,
        max_moves=told.get("max_moves", 2),
        lost_core_hours_per_user_day=told.get("lost_core_hours_per_user_day", 500),
    )


class EagerRestarter(Restarter):
    """It decides on every suspended job in each cycle, and always for a restart."""

    def _is_due(self, _job: ObservedJob, _now_s: float) -> bool:
        return True

    def _decision(self, known: SuspendedJob, place: Place | None, _situation: Situation) -> RestartDecision:
        stays = Term(known.partition, Basis.PREEMPTORS, 0, NEVER_S, known.left_s)
        nodes, basis = ((), Basis.SITE) if place is None else (place.nodes, Basis.PLACE)
        return RestartDecision(stays, (Term(known.partition, basis, 0, 0, known.run_s, nodes),), 0)


def restarter(
    told: Mapping[str, Any] | None, ports: Ports, settings: Settings, plan: Callable[[Snapshot], Plan]
) -> Restarter | None:
    """What restarts jobs by these settings; None where nothing is restarted."""
    return None if told is None else EagerRestarter(rules_of(told), ports, settings, plan)
