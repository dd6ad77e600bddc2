"""What a summary has more where jobs may have programs with profiles."""

from typing import Any

from slurm_sns.sim.request import SpreadingRequest
from slurm_sns.sim.run import TraceRun
from slurm_sns.sim.traces.program_trace import ProgramTrace


def spreading_summary(trace: ProgramTrace, run: TraceRun, spreading: SpreadingRequest) -> dict[str, Any]:
    """The entries that the summary has for policies that spread only."""
    parameters, jobs = spreading.parameters, len(trace.records)
    return {
        "alpha": parameters.alpha,
        "scales": list(parameters.scales),
        "beta": parameters.beta,
        "shared_ways": parameters.shared_ways,
        "even_scales_only": parameters.even_scales_only,
        "progress": spreading.progress,
        "profiles": None if spreading.profiles is None else spreading.profiles.name,
        "jobs_without_profile": trace.without_profile,
        "mean_run_s": (run.end_s - run.start_s).sum().item() / jobs,
        "mean_turnaround_s": (run.end_s - run.trace.submit_s).sum().item() / jobs,
    }
