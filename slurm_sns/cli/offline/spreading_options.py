"""The options of `sns simulate` for policies that spread: Spread-n-Share's family, fcfs and easy."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slurm_sns.errors import BadInput
from slurm_sns.policies.registry import REGISTRY, specification
from slurm_sns.policies.specification import GeometryChoice, Specification

if TYPE_CHECKING:
    from slurm_sns.policies.placement.node_arrays import NodeArrays
    from slurm_sns.policies.profile import Program
    from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters
    from slurm_sns.sim.traces.program_trace import ProgramTrace

#: The progress models: the paper's own, and contention, where neighbours slow a job down.
AUTHORS = "authors"
PROGRESS = (AUTHORS, "contention")


@dataclass(frozen=True, slots=True)
class SpreadingOptions:
    """The values that were given on the command line; None for an option that was not given.

    With `user_estimates` jobs are expected to run until their time limits, otherwise as long as they do.
    """

    profiles: Path | None
    progress: str | None
    learn: float | None
    seed: int
    user_estimates: bool = False

    def require_taken(self, policy: Specification, called: str) -> None:
        """Check that the policy uses the given options; `called` is the policy's name on the command line.

        Raises:
            BadInput: an option goes with other policies only, or its value is not valid; the message says what is.
        """
        spreading = _names(lambda each: each.geometry is not GeometryChoice.OWN)
        for name in ("profiles", "progress"):
            if getattr(self, name) is not None and policy.geometry is GeometryChoice.OWN:
                raise BadInput(f"--{name} goes with --policy {spreading}, not with {called}")
        if self.user_estimates and not policy.plans_by_run_times:
            planning = _names(lambda each: each.plans_by_run_times)
            raise BadInput(f"--user-estimates goes with --policy {planning}, not with {called}")
        if self.progress not in (None, *PROGRESS):
            raise BadInput(f"--progress is '{self.progress}'; valid: {', '.join(PROGRESS)}")
        if self.learn is None:
            return
        if policy.geometry is not GeometryChoice.BY_PROFILE:
            learning = _names(lambda each: each.geometry is GeometryChoice.BY_PROFILE)
            raise BadInput(f"--learn goes with --policy {learning}, not with {called}")
        if self.profiles is None:
            raise BadInput("--learn needs --profiles: how the programs truly run")
        if not 0 <= self.learn <= 1:
            raise BadInput(f"--learn is {self.learn}; valid: 0 to 1")

    def programs(self, node_arrays: "NodeArrays") -> Mapping[str, "Program"]:
        """The profiles of the file by program; empty without a file. No curve may have more ways than any node.

        Raises:
            BadInput: the file is not valid; the message names file, line, program, field and what is valid.
        """
        if self.profiles is None:
            return {}
        from slurm_sns.config.profiles_yaml import read_profiles
        from slurm_sns.policies.placement.node_arrays import WAYS

        most_ways = int(node_arrays.capacity[WAYS].max()) or None
        return {program.name: program for program in read_profiles(self.profiles, most_ways)}


def summary_of(
    trace: "ProgramTrace", placements: Any, parameters: "SpreadingParameters", options: SpreadingOptions
) -> dict[str, Any]:
    """The entries that the summary has for policies that spread only."""
    runs = [placed.end_s - placed.start_s for placed in placements]
    turnarounds = [placed.end_s - placed.job.submit_s for placed in placements]
    return {
        "alpha": parameters.alpha,
        "scales": list(parameters.scales),
        "beta": parameters.beta,
        "shared_ways": parameters.shared_ways,
        "even_scales_only": parameters.even_scales_only,
        "progress": options.progress or AUTHORS,
        "profiles": None if options.profiles is None else options.profiles.name,
        "jobs_without_profile": trace.without_profile,
        "mean_run_s": sum(runs) / len(runs),
        "mean_turnaround_s": sum(turnarounds) / len(turnarounds),
    }


def _names(is_one: Callable[[Specification], bool]) -> str:
    return ", ".join(each.name for each in map(specification, REGISTRY) if is_one(each))
