"""The parameters of the policies that compose several methods: those of the methods that they compose."""

from slurm_sns.policies.baselines.parameters import BatchParameters, EasyParameters
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.specification import GeometryChoice, Specification
from slurm_sns.policies.spread_n_share.parameters import REPRODUCTION, SpreadingParameters

COMBINED = Specification(
    "combined",
    "Max-Jobs with several ways to run each job, and heuristics that know cache and bandwidth.",
    (MatchingParameters, SpreadingParameters),
    "slurm_sns.policies.combined.combined:combined",
    geometry=GeometryChoice.BY_PROFILE,
    simulated=(REPRODUCTION,),
    runner="slurm_sns.sim.runners.spreading:programs",
)


FCFS = Specification(
    "fcfs",
    "First come, first served: jobs start in queue order, and the first that does not fit holds back the others.",
    (BatchParameters, SpreadingParameters),
    geometry=GeometryChoice.COMPACT,
    is_simulated_only=True,
    simulated=(REPRODUCTION,),
    runner="slurm_sns.sim.runners.in_order:in_order",
)


EASY = Specification(
    "easy",
    "EASY backfilling: later jobs start now if the first that does not fit can still start when it is expected to.",
    (EasyParameters, SpreadingParameters),
    geometry=GeometryChoice.COMPACT,
    plans_by_run_times=True,
    is_simulated_only=True,
    simulated=(REPRODUCTION,),
    runner="slurm_sns.sim.runners.in_order:in_order",
)
