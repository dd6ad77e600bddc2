"""Profiles as a profiler sees them: sampled at a few numbers of ways, linear between them, and with errors.

The paper's prototype samples 2, 4, 8 and all ways, 5 s each in turn. What that misses (phases, the curve between the
points) is the paper's explanation for most of the jobs that break their alpha. Here each sampled IPC and bandwidth is
multiplied by an error factor that is drawn log-normally, once for each point: a run is long enough for its noise to
average out, not for its phases.

Source: Spread-n-Share (SC'19), sections 5.1 and 6.2; the size of the errors is our parameter.
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from slurm_sns.policies.profile import Program, Run

#: Section 5.1.
SAMPLED_WAYS = (2, 4, 8, 20)


def sampled(run: Run, points: tuple[int, ...] = SAMPLED_WAYS) -> Run:
    """The run as the profiler sees it: sampled at these numbers of cache ways and at all of them."""
    known = (*points[: bisect_left(points, run.ways[-1])], run.ways[-1])
    return replace(
        run,
        ways=known,
        ipc=tuple(run.ipc_at(each) for each in known),
        bandwidth_gbps=tuple(run.bandwidth_at(each) for each in known),
    )


def as_profiled(
    programs: Mapping[str, Program], seed: int, spread: float, points: tuple[int, ...] = SAMPLED_WAYS
) -> dict[str, Program]:
    """The programs as profiled once; `spread` is the standard deviation of the logarithm of each point's error."""
    rng = np.random.default_rng(seed)

    def measured(values: tuple[float, ...]) -> tuple[float, ...]:
        return tuple((np.array(values) * np.exp(rng.normal(0.0, spread, len(values)))).tolist())

    profiled = {}
    for name, program in sorted(programs.items()):
        runs = [sampled(run, points) for run in program.runs]
        noisy = [replace(run, ipc=measured(run.ipc), bandwidth_gbps=measured(run.bandwidth_gbps)) for run in runs]
        profiled[name] = replace(program, runs=tuple(noisy))
    return profiled
