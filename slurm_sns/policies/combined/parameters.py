"""The parameters of the policies that compose several methods: those of the methods that they compose."""

from slurm_sns.policies.baselines.parameters import BatchParameters, EasyParameters
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


FCFS = Specification(
    "fcfs",
    "First come, first served: jobs start in queue order, and the first that does not fit holds back the others.",
    (BatchParameters, SnsParameters),
    "slurm_sns.policies.combined.batch:fcfs",
    spreads=True,
    runs_at_events=True,
    is_simulated_only=True,
    simulated=(REPRODUCTION,),
)


EASY = Specification(
    "easy",
    "EASY backfilling: later jobs start now if the first that does not fit can still start when it is expected to.",
    (EasyParameters, SnsParameters),
    "slurm_sns.policies.combined.batch:easy",
    spreads=True,
    plans_by_run_times=True,
    runs_at_events=True,
    is_simulated_only=True,
    simulated=(REPRODUCTION,),
)
