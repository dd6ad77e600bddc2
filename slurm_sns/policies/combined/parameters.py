"""The parameters of the combined policy: those of matching and those of Spread-n-Share."""

from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.sns.parameters import REPRODUCTION, SnsParameters
from slurm_sns.policies.specification import Specification

COMBINED = Specification(
    "combined",
    "Max-Jobs with several ways to run each job, and heuristics that know cache and bandwidth.",
    (MatchingParameters, SnsParameters),
    "slurm_sns.policies.combined.combined:combined",
    spreads=True,
    plans_by_profiles=True,
    has_portfolio=True,
    runs_at_events=True,
    simulated=(REPRODUCTION,),
)
