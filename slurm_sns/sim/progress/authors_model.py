"""How long a job runs at the scale and with the ways it was given: the model of the paper's own simulation.

run = T_trace * (T_k / T_1) * (F-IPC / IPC(w)), fixed at the start; neighbours change nothing. T_trace is the run time
under CE. A job without profile runs as long as the trace says. A job that demands no ways, as under CS, counts as
having all of them.

Source: Spread-n-Share (SC'19), section 6.4; the frequency factors (section 4.2) are those of our parameters.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from slurm_sns.model import Alternative, Job
from slurm_sns.policies.profile import Run
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters
from slurm_sns.policies.spread_n_share.scales import predicted_slowdown
from slurm_sns.sim.trace import SHORTEST_RUN_S, half_up

#: The runs of a program at a job's process count, by scale; empty or missing for a job without profile.
Runs = Mapping[int, Run]


@dataclass(frozen=True)
class AuthorsModel:
    """Run times for the jobs of one trace, from each job's run time under CE and the runs of its profile."""

    run_s: Mapping[int, float]
    runs: Mapping[int, Runs]
    parameters: SpreadingParameters

    def __call__(self, job: Job, alternative: Alternative) -> int:
        """The run time in whole seconds, rounded half up, at least one."""
        factor = time_factor(self.runs.get(job.id), alternative, self.parameters)
        return max(half_up(self.run_s[job.id] * factor), SHORTEST_RUN_S)

    def seconds(self, job: Job, scale: int) -> float:
        """The run time alone on its nodes at this scale with all ways."""
        runs = self.runs.get(job.id)
        return self.run_s[job.id] * (predicted_slowdown(runs, scale, None, self.parameters) if runs else 1.0)


def time_factor(runs: Runs | None, alternative: Alternative, parameters: SpreadingParameters) -> float:
    """How long a job with these runs takes in the alternative, relative to its run time under CE."""
    if not runs:
        return 1.0
    ways = None if alternative.exclusive else alternative.demand.ways or None
    return predicted_slowdown(runs, alternative.scale, ways, parameters)
