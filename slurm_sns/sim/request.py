"""What is to be simulated: the policy with its parameters, and how it replays a trace."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from slurm_sns.config.profiles_yaml import read_profiles
from slurm_sns.policies.base import Policy
from slurm_sns.policies.placement.node_arrays import WAYS, NodeArrays
from slurm_sns.policies.profile import Program
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters

#: The progress models: the paper's own, and contention, where neighbours slow a job down.
AUTHORS, CONTENTION = "authors", "contention"
MODELS = (AUTHORS, CONTENTION)

_Parameters = TypeVar("_Parameters")


@dataclass(frozen=True, slots=True)
class SpreadingRequest:
    """What goes with policies that choose the geometry of jobs.

    `profiles` is a file of profiles, None without. `learn`: the policy begins without profiles and learns them from
    measurements with this relative standard deviation, drawn with `seed`; None: it knows them. With `user_estimates`
    jobs are expected to run until their time limits, otherwise as long as they do.
    """

    parameters: SpreadingParameters
    profiles: Path | None = None
    progress: str = AUTHORS
    learn: float | None = None
    seed: int = 0
    user_estimates: bool = False

    def programs(self, node_arrays: NodeArrays) -> Mapping[str, Program]:
        """The profiles of the file by program; empty without a file. No curve may have more ways than any node.

        Raises:
            BadInput: the file is not valid; the message names file, line, program, field and what is valid.
        """
        if self.profiles is None:
            return {}
        most_ways = int(node_arrays.capacity[WAYS].max()) or None
        return {program.name: program for program in read_profiles(self.profiles, most_ways)}


@dataclass(frozen=True)
class SimulationRequest:
    """How to replay a trace.

    `policy` None: it makes no plans, and its runner simulates it by its `parameters`. `age_limit_s` None: no
    job becomes over-aged; `spreading` None: no job is spread. `penalty_s` is what a resume or a move costs. `given` are
    the names of the parameters that the user has set.
    """

    name: str
    policy: Policy | None
    parameters: tuple[object, ...]
    runner: str
    interval_s: int
    age_limit_s: int | None = None
    shares: Mapping[str, float] = field(default_factory=dict)
    spreading: SpreadingRequest | None = None
    penalty_s: int = 0
    given: frozenset[str] = frozenset()

    def parameters_of(self, kind: type[_Parameters]) -> _Parameters:
        """The policy's parameters of this type; it must have some."""
        return next(each for each in self.parameters if isinstance(each, kind))
