"""Replay a week under Slurm alone and under slurm_sns, with the rules that a cluster has by default."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from slurm_sns.config.settings import MatchingSection
from slurm_sns.errors import BadInput
from slurm_sns.policies.baselines.parameters import SlurmParameters
from slurm_sns.policies.placement.heuristics import HEURISTICS
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.policies.placement.portfolio import Portfolio
from slurm_sns.policies.placement.rules import Rules
from slurm_sns.policies.registry import specification
from slurm_sns.sim.replay.trace_replay import replay_as_slurm, replay_by_priority
from slurm_sns.sim.run import TraceRun
from slurm_sns.sim.site_report.waiting_reasons import Instants, look
from slurm_sns.sim.site_report.windows import AFTER_RUNNING_S, WeekWindow
from slurm_sns.sim.trace import Integers

#: The policy that `sns draft` takes where nodes have no cache ways or bandwidth.
MAX_JOBS = "max-jobs"
#: Stands for Slurm alone where an interval of slurm_sns stands otherwise.
SLURM_ALONE = 0


@dataclass(frozen=True)
class LiveRules:
    """The rules of a cluster: those of its policy, and its age limit; and how its Slurm schedules alone.

    Its queue has Slurm's order (queue_order `slurm`). `slurm` is None where no slurm.conf says it: Slurm's defaults.
    """

    rules: Rules
    age_limit_s: int | None
    slurm: SlurmParameters | None = None


def live_rules(policy: str) -> LiveRules:
    """The rules of a cluster that has this policy, or one heuristic alone, and else the defaults of sns.yaml.

    Raises:
        BadInput: the policy is not one that places jobs by a portfolio without profiles.
    """
    if policy != MAX_JOBS and policy not in HEURISTICS:
        raise BadInput(f"--policy is '{policy[:40]}'; valid: {', '.join([MAX_JOBS, *HEURISTICS])}")
    portfolio = None if policy == MAX_JOBS else (policy,)
    placed = specification(MAX_JOBS).policy(portfolio=portfolio)
    assert isinstance(placed, Portfolio)  # noqa: S101  for mypy: the factory makes one
    settings = MatchingSection()
    # The simulator has no limit by user yet; this one is by job, so capacity is withheld more often than on a cluster.
    rules = replace(placed.rules, withhold_up_to_s=settings.withhold_limit_s)
    return LiveRules(rules, settings.age_limit_s)


class Piece(NamedTuple):
    """A replay to do: of which week, and with which interval of slurm_sns, or as SLURM_ALONE."""

    week: int
    interval_s: int
    window: WeekWindow
    node_arrays: NodeArrays
    live: LiveRules
    #: Whether the instants of the run are looked at.
    looks: bool


class WeekRun(NamedTuple):
    """The waits of the measured jobs, in their order, and what the instants of the run show, if they were looked at."""

    wait_s: Integers
    instants: Instants | None
    #: Jobs that ran at the begin by the record, and found no place at once.
    late: int


def run_piece(piece: Piece) -> WeekRun:
    """Do one replay. All jobs of the window start in it: none is lost."""
    window = piece.window
    run = _replayed(piece)
    wait_s = np.asarray(run.start - window.trace.submit)
    found = look(run, piece.node_arrays, window.seen_s) if piece.looks else None
    late = int(np.count_nonzero(wait_s[: window.running] > AFTER_RUNNING_S))
    return WeekRun(wait_s[window.measured].astype(np.int64), found, late)


def _replayed(piece: Piece) -> TraceRun:
    trace, live = piece.window.trace, piece.live
    if piece.interval_s == SLURM_ALONE:
        return replay_as_slurm(piece.node_arrays, trace, live.slurm or SlurmParameters())
    return replay_by_priority(
        piece.node_arrays, trace, live.rules, interval_s=piece.interval_s, age_limit_s=live.age_limit_s
    )
