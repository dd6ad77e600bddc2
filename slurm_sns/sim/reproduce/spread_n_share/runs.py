"""Run sequences of programs on a few nodes under several policies and both progress models; all pages use this module.

The cluster is the paper's: nodes of 28 cores, 20 ways and 118 GB/s. The paper has 118.26; bandwidth here is in whole
GB/s.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.config.profiles_yaml import read_profiles
from slurm_sns.model import Resources
from slurm_sns.package_files import shared_path
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.node_arrays import BANDWIDTH, NodeArrays, amounts
from slurm_sns.policies.profile import Program
from slurm_sns.policies.spread_n_share.parameters import REPRODUCTION, SpreadingParameters
from slurm_sns.sim.engine.disciplines import TEXT, queue_depth_of, simulation_of
from slurm_sns.sim.engine.prototype_scales import PROTOTYPE_SCALES, prototype_alternatives
from slurm_sns.sim.engine.spreading_policies import CE, COMBINED, CS, MODELS, SNS, policy_of, progress_of
from slurm_sns.sim.progress.phased import Phases
from slurm_sns.sim.progress.progress import PlacedRun
from slurm_sns.sim.traces.program_trace import TraceReader
from slurm_sns.sim.traces.programs_csv import ProgramJob

PROFILES = "conf/profiles/spread-n-share.yaml"
NODE = Resources(28, 128 * 1024, 20, 118)
PAPER_NODES = 8
POLICIES = (CE, CS, SNS, COMBINED)
#: Seconds between cycles. Time is in whole seconds, so there is a cycle at every submit and finish.
INTERVAL_S = 1
QUEUE_DEPTH = 100_000

Column = NDArray[np.float64]


class Runs(NamedTuple):
    """The times of the jobs of one sequence, in the order of the jobs. In seconds."""

    start_s: Column
    end_s: Column
    submit_s: Column

    @property
    def wait_s(self) -> Column:
        """From submit to start."""
        return self.start_s - self.submit_s

    @property
    def run_s(self) -> Column:
        """From start to finish."""
        return self.end_s - self.start_s

    @property
    def turnaround_s(self) -> Column:
        """From submit to finish."""
        return self.end_s - self.submit_s

    @classmethod
    def of(cls, placements: Sequence[PlacedRun]) -> "Runs":
        """The columns of a simulation's placements."""
        rows = [(each.start_s, each.end_s, each.job.submit_s) for each in placements]
        return cls(*np.array(rows, dtype=np.float64).T)


@cache
def shipped_programs() -> Mapping[str, Program]:
    """The twelve test programs by name."""
    return {program.name: program for program in read_profiles(shared_path(PROFILES))}


def cluster(nodes: int = PAPER_NODES) -> NodeArrays:
    """A cluster of this many of the paper's nodes."""
    return NodeArrays(tuple(f"n{at}" for at in range(nodes)), amounts([NODE] * nodes))


def with_bandwidth(node_arrays: NodeArrays, gbps: int) -> NodeArrays:
    """The same nodes with another bandwidth."""
    capacity = node_arrays.capacity.copy()
    capacity[BANDWIDTH] = gbps
    return NodeArrays(node_arrays.names, capacity)


def place(
    policy: str,
    model: str,
    jobs: Sequence[ProgramJob],
    *,
    node_arrays: NodeArrays | None = None,
    programs: Mapping[str, Program] | None = None,
    true_programs: Mapping[str, Program] | None = None,
    parameters: SpreadingParameters = REPRODUCTION,
    planned_gbps: int | None = None,
    discipline: str = TEXT,
    matching: MatchingParameters | None = None,
    portfolio: tuple[str, ...] | None = None,
    phases: Phases | None = None,
    prototype_scales: bool = False,
    by_run_time: bool = False,
) -> tuple[PlacedRun, ...]:
    """The jobs' placements under the policy.

    The policy plans by `programs`; jobs advance by `true_programs` (None: by `programs`). With `planned_gbps` the
    policy plans as if every node had this bandwidth. `discipline` is the queue's (module disciplines). `matching` are
    the parameters that only combined takes, `portfolio` all of its members. With `phases` jobs advance under contention
    in phases. `prototype_scales`: under SNS jobs have the alternatives of the prototype (module prototype_scales),
    under CS its scales. `by_run_time`: under SNS neutral programs are tried by run time, not by scale.
    """
    true_pool = node_arrays or cluster()
    node_arrays = true_pool if planned_gbps is None else with_bandwidth(true_pool, planned_gbps)
    programs = shipped_programs() if programs is None else programs
    depth = queue_depth_of(discipline, QUEUE_DEPTH)
    parameters = replace(parameters, queue_depth=depth)
    matching = None if matching is None else replace(matching, queue_depth=depth)
    if prototype_scales:
        parameters = replace(parameters, scales=PROTOTYPE_SCALES)
    if policy == SNS and by_run_time:
        parameters = replace(parameters, neutral_by_run_time=True)
    make = partial(prototype_alternatives, parameters) if policy == SNS and prototype_scales else None
    reader = TraceReader(node_arrays, policy, programs, parameters, make_alternatives=make)
    planned = reader.of_programs("the sequence", jobs)
    authors = planned.model
    if true_programs is not None:
        authors = replace(reader, programs=true_programs).of_programs("the sequence", jobs).model
    simulation = simulation_of(
        discipline,
        node_arrays,
        planned.trace,
        policy_of(policy, parameters, matching, portfolio),
        queue_depth=depth,
        interval_s=INTERVAL_S,
        progress=progress_of(model, policy, true_pool, authors, phases),
    )
    return simulation.run().placements


def run_all(
    jobs: Sequence[ProgramJob], policies: Sequence[str] = POLICIES, models: Sequence[str] = MODELS, **options: Any
) -> dict[str, Any]:
    """Run every policy under every progress model; a result to keep: `policy/model` -> start and end of each job."""
    results: dict[str, Any] = {}
    for policy in policies:
        for model in models:
            runs = Runs.of(place(policy, model, jobs, **options))
            results[f"{policy}/{model}"] = {"start_s": runs.start_s.tolist(), "end_s": runs.end_s.tolist()}
    return results


def runs_of(result: Mapping[str, Any], policy: str, model: str) -> Runs:
    """One policy's runs from a result of `run_all` whose jobs were all submitted at 0."""
    kept = result[f"{policy}/{model}"]
    start_s = np.array(kept["start_s"])
    return Runs(start_s, np.array(kept["end_s"]), np.zeros_like(start_s))


def geometric_mean(ratios: Column) -> float:
    """The geometric mean, which the paper takes of dimensionless numbers."""
    return float(np.exp(np.log(ratios).mean()))
