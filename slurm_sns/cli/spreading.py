"""The options of `sns simulate` for Spread-n-Share's family of policies: ce, cs, sns and combined."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slurm_sns.errors import BadInput

if TYPE_CHECKING:
    from slurm_sns.policies.placement.pool import Pool
    from slurm_sns.policies.profile import Program
    from slurm_sns.policies.sns.parameters import SnsParameters
    from slurm_sns.sim.sns_trace import SnsTrace

SPREADING = ("ce", "cs", "sns", "combined")
COMBINED = "combined"
#: Those that plan by profiles, and so have something to learn.
LEARNING = ("sns", COMBINED)
#: How jobs advance: by the paper's own model, or slowed down by their neighbours.
AUTHORS = "authors"
PROGRESS = (AUTHORS, "contention")


@dataclass(frozen=True, slots=True)
class SpreadingOptions:
    """What was given on the command line; None where nothing was."""

    profiles: Path | None
    alpha: float | None
    scales: str | None
    beta: float | None
    progress: str | None
    learn: float | None
    seed: int

    def require_none(self, policy: str) -> None:
        """Accept options of a policy that has no use for these.

        Raises:
            BadInput: one of them was given.
        """
        for name in ("profiles", "alpha", "scales", "beta", "progress"):
            if getattr(self, name) is not None:
                raise BadInput(f"--{name} goes with --policy {', '.join(SPREADING)}, not with {policy}")

    def require_learnable(self, policy: str) -> None:
        """Accept what was given for learning.

        Raises:
            BadInput: the policy plans without profiles, there is nothing to learn, or the errors are no share.
        """
        if self.learn is None:
            return
        if policy not in LEARNING:
            raise BadInput(f"--learn goes with --policy {', '.join(LEARNING)}, not with {policy}")
        if self.profiles is None:
            raise BadInput("--learn needs --profiles: how the programs truly run")
        if not 0 <= self.learn <= 1:
            raise BadInput(f"--learn is {self.learn}; valid: 0 to 1")

    def parameters(self, queue_depth: int, config: Path | None) -> "SnsParameters":
        """The parameters of the paper's experiments, or those of a configuration, with what was given.

        Raises:
            BadInput: a value cannot be used.
        """
        from slurm_sns.policies.sns.parameters import REPRODUCTION, SnsParameters, require_valid

        if self.progress not in (None, *PROGRESS):
            raise BadInput(f"--progress is '{self.progress}'; valid: {', '.join(PROGRESS)}")
        parameters = REPRODUCTION
        if config is not None:
            from slurm_sns.config import load

            parameters = load(config).parameters(SnsParameters)
        parameters = replace(parameters, queue_depth=queue_depth)
        if self.alpha is not None:
            parameters = replace(parameters, alpha=self.alpha)
        if self.beta is not None:
            parameters = replace(parameters, beta=self.beta)
        if self.scales is not None:
            parameters = replace(parameters, scales=_scales(self.scales))
        require_valid(parameters)
        return parameters

    def programs(self, pool: "Pool") -> Mapping[str, "Program"]:
        """The profiles of the file, none without one; no curve may have more ways than any node.

        Raises:
            BadInput: naming file, line, program, field and what is valid.
        """
        if self.profiles is None:
            return {}
        from slurm_sns.config.profiles_yaml import read_profiles
        from slurm_sns.policies.placement.pool import WAYS

        most_ways = int(pool.capacity[WAYS].max()) or None
        return {program.name: program for program in read_profiles(self.profiles, most_ways)}


def summary_of(
    trace: "SnsTrace", placements: Any, parameters: "SnsParameters", options: SpreadingOptions
) -> dict[str, Any]:
    """What the summary of a run says beside what it says of every policy."""
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


def _scales(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) <= 2 for part in parts):
        raise BadInput(f"--scales is '{text[:40]}'; valid: 1 and others up to 64, each once, as in 1,2,4,8")
    return tuple(map(int, parts))
