"""The pages on Spread-n-Share: sequences of programs under several policies, and what is measured of them.

The cluster is the paper's: nodes of 28 cores, 20 ways and 118 GB/s. The paper has 118.26; bandwidth here is in whole
GB/s.

There are two throughputs of a sequence. By the paper's text it is 1 / mean turnaround. The figures come from the result
parser of the authors' prototype: 1 / geometric mean, over the jobs, of the turnaround divided by that under CE. Run
times over CE's are means of dimensionless numbers, which are geometric.

Source: Spread-n-Share (SC'19), section 6.2; SSparser.py of Uberun, the prototype (github.com/thu-pacman/Uberun).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.config.profiles_yaml import read_profiles
from slurm_sns.model import Resources
from slurm_sns.package_files import shared_path
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts
from slurm_sns.policies.profile import Program
from slurm_sns.policies.spread_n_share.parameters import REPRODUCTION, SpreadingParameters
from slurm_sns.sim.engine.disciplines import TEXT, queue_depth_of, simulation_of
from slurm_sns.sim.engine.spreading_policies import (
    CE,
    COMBINED,
    CS,
    PROTOTYPE_SCALES,
    SNS,
    policy_of,
    progress_of,
    prototype_alternatives,
)
from slurm_sns.sim.pages.judge import Draws, drawn, found_of
from slurm_sns.sim.pages.running import DataTable
from slurm_sns.sim.progress.phased import Phases
from slurm_sns.sim.progress.progress import PlacedRun
from slurm_sns.sim.request import CONTENTION, MODELS
from slurm_sns.sim.traces.program_trace import ProgramJob, TraceReader
from slurm_sns.sim.workloads.sequences import TestProgram, jobs_of, population, sequence

PROFILES = "conf/profiles/spread-n-share.yaml"
NODE = Resources(28, 128 * 1024, 20, 118)
PAPER_NODES = 8
POLICIES = (CE, CS, SNS, COMBINED)
#: Where SNS and combined are compared, both withhold capacity for the first job without a place, or neither does.
SNS_WITHHOLDING, COMBINED_WITHHOLDING = f"{SNS}, withholding", f"{COMBINED}, withholding"
#: Name -> policy, and what `place` is given. SNS itself never withholds: SNS that does is combined with its member.
COMPARED: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    CE: (CE, {}),
    CS: (CS, {}),
    SNS: (SNS, {}),
    COMBINED: (COMBINED, {"matching": MatchingParameters(reservations=0)}),
    SNS_WITHHOLDING: (COMBINED, {"matching": MatchingParameters(reservations=1), "portfolio": ("idlest",)}),
    COMBINED_WITHHOLDING: (COMBINED, {"matching": MatchingParameters(reservations=1)}),
}
ALPHA = REPRODUCTION.alpha
#: Seconds between cycles. Time is in whole seconds, so there is a cycle at every submit and finish.
INTERVAL_S = 1
QUEUE_DEPTH = 100_000

Column = NDArray[np.float64]

# --- runs


class Runs(NamedTuple):
    """The times of the jobs of one sequence, in the order of the jobs. In seconds."""

    submit_s: Column
    wait_s: Column
    run_s: Column

    @classmethod
    def of(cls, placements: Sequence[PlacedRun]) -> "Runs":
        """The columns of a simulation's placements."""
        submit_s, start_s, end_s = np.array([(e.job.submit_s, e.start_s, e.end_s) for e in placements], np.float64).T
        return cls(submit_s, start_s - submit_s, end_s - start_s)


@cache
def shipped_programs() -> Mapping[str, Program]:
    """The twelve test programs by name."""
    return {program.name: program for program in read_profiles(shared_path(PROFILES))}


@cache
def members() -> tuple[TestProgram, ...]:
    """The pairs of a program and its processes that sequences are drawn from."""
    return population(shipped_programs())


def drawn_jobs(seed: int) -> tuple[ProgramJob, ...]:
    """The jobs of one of the paper's random sequences."""
    return jobs_of(sequence(members(), seed))


def cluster(nodes: int = PAPER_NODES, node: Resources = NODE) -> NodeArrays:
    """A cluster of this many nodes, by default the paper's."""
    return NodeArrays(tuple(f"n{at}" for at in range(nodes)), amounts([node] * nodes))


def place(
    policy: str,
    model: str,
    jobs: Sequence[ProgramJob],
    *,
    node_arrays: NodeArrays | None = None,
    planned_nodes: NodeArrays | None = None,
    programs: Mapping[str, Program] | None = None,
    true_programs: Mapping[str, Program] | None = None,
    parameters: SpreadingParameters = REPRODUCTION,
    discipline: str = TEXT,
    matching: MatchingParameters | None = None,
    portfolio: tuple[str, ...] | None = None,
    phases: Phases | None = None,
    prototype_scales: bool = False,
) -> tuple[PlacedRun, ...]:
    """The jobs' placements under the policy.

    The policy plans by `programs` and as if the nodes were `planned_nodes`; jobs advance by `true_programs` and on
    `node_arrays` (None: the same). `discipline` is the queue's (module disciplines). `matching` are the parameters that
    only combined takes, `portfolio` all of its members. With `phases` jobs advance under contention in phases.
    `prototype_scales`: under SNS jobs have the alternatives of the prototype (module spreading_policies), under CS its
    scales.
    """
    true_pool = node_arrays or cluster()
    planned_nodes = planned_nodes or true_pool
    depth = queue_depth_of(discipline, QUEUE_DEPTH)
    parameters = replace(parameters, queue_depth=depth)
    matching = None if matching is None else replace(matching, queue_depth=depth)
    if prototype_scales:
        parameters = replace(parameters, scales=PROTOTYPE_SCALES)
    make = partial(prototype_alternatives, parameters) if policy == SNS and prototype_scales else None
    reader = TraceReader(planned_nodes, policy, programs or shipped_programs(), parameters, make_alternatives=make)
    planned = reader.of_programs("the sequence", jobs)
    authors = planned.model
    if true_programs is not None:
        authors = replace(reader, programs=true_programs).of_programs("the sequence", jobs).model
    simulation = simulation_of(
        discipline,
        planned_nodes,
        planned.trace,
        policy_of(policy, parameters, matching, portfolio),
        queue_depth=depth,
        interval_s=INTERVAL_S,
        progress=progress_of(model, policy, true_pool, authors, phases),
    )
    return simulation.run().placements


#: What is kept of the runs of a sequence: waits and run times by job.
Kept = Mapping[str, list[float]]


def kept(placements: Sequence[PlacedRun]) -> dict[str, list[float]]:
    """The waits and run times of placements."""
    runs = Runs.of(placements)
    return {"wait_s": runs.wait_s.tolist(), "run_s": runs.run_s.tolist()}


def run_all(
    jobs: Sequence[ProgramJob], policies: Sequence[str] = POLICIES, models: Sequence[str] = MODELS, **options: Any
) -> dict[str, dict[str, Kept]]:
    """The runs under every progress model and policy."""
    return {model: {policy: kept(place(policy, model, jobs, **options)) for policy in policies} for model in models}


def run_compared(jobs: Sequence[ProgramJob], **options: Any) -> dict[str, Kept]:
    """The runs under contention, by the names of `COMPARED`."""
    return {name: kept(place(policy, CONTENTION, jobs, **of, **options)) for name, (policy, of) in COMPARED.items()}


# --- statistics

#: Run times are whole seconds: an excess over what alpha allows that is below this fraction is a rounding error.
ROUNDING = 1e-3
#: The two ways to compute a sequence's throughput.
ARITHMETIC, GEOMETRIC = "arithmetic", "geometric"


@dataclass(frozen=True)
class Sequences:
    """Some sequences of equally many jobs: by policy the waits and run times, shape (sequences, jobs)."""

    wait_s: Mapping[str, Column]
    run_s: Mapping[str, Column]
    throughput: str = ARITHMETIC

    @classmethod
    def of(cls, results: Sequence[Mapping[str, Kept]], throughput: str = ARITHMETIC) -> "Sequences":
        """The sequences of kept runs by policy."""
        wait_s, run_s = (
            {policy: np.array([result[policy][what] for result in results]) for policy in results[0]}
            for what in ("wait_s", "run_s")
        )
        return cls(wait_s, run_s, throughput)

    def __len__(self) -> int:
        return len(self.run_s[CE])

    def take(self, rows: NDArray[np.int64] | slice, jobs: slice = slice(None)) -> "Sequences":
        """These sequences alone, or these jobs of them; a sequence may be taken several times."""
        wait_s, run_s = ({p: of[rows][:, jobs] for p, of in table.items()} for table in (self.wait_s, self.run_s))
        return Sequences(wait_s, run_s, self.throughput)

    def turnaround_s(self, policy: str) -> Column:
        """From submit to finish."""
        return self.wait_s[policy] + self.run_s[policy]

    def gains(self, policy: str, over: str = CE) -> Column:
        """By how many percent the throughput of each sequence exceeds that under another policy."""
        own, other = self.turnaround_s(policy), self.turnaround_s(over)
        if self.throughput == GEOMETRIC:
            more: Column = 100 * (np.exp(np.log(other / own).mean(axis=1)) - 1)
        else:
            more = 100 * (other.mean(axis=1) / own.mean(axis=1) - 1)
        return more

    def ratios(self, policy: str) -> Column:
        """The run time of each job divided by its run time under CE, shape (sequences, jobs)."""
        return self.run_s[policy] / self.run_s[CE]

    def mean_ratios(self, policy: str) -> Column:
        """The geometric mean of `ratios`, by sequence."""
        means: Column = np.exp(np.log(self.ratios(policy)).mean(axis=1))
        return means

    def broken(self, policy: str) -> Column:
        """Of each job that breaks its alpha: c, its run time divided by that under CE, which exceeds 1 / alpha."""
        ratios = self.ratios(policy).ravel()
        broken: Column = ratios[ratios * ALPHA > 1 + ROUNDING]
        return broken

    def columns(self, policy: str) -> dict[str, Column]:
        """By sequence: `throughput`, % over CE; `run`, over CE's; `broken`: the % of the jobs that break their alpha.

        `broken_by`: by how many percent run times exceed what alpha allows, on average over all jobs.
        """
        excess = self.ratios(policy) * ALPHA - 1
        return {
            "throughput": self.gains(policy),
            "run": self.mean_ratios(policy),
            "broken": 100 * (excess > ROUNDING).mean(axis=1),
            "broken_by": 100 * np.maximum(excess, 0).mean(axis=1),
        }


def geometric_mean(ratios: Column) -> float:
    """The geometric mean, which the paper takes of dimensionless numbers."""
    return float(np.exp(np.log(ratios).mean()))


def broken_by(ratios: Column) -> float:
    """The prototype's measure: the geometric mean of c, less 1, in percent; 0 where no alpha is broken."""
    return 100 * (geometric_mean(ratios) - 1) if len(ratios) else 0.0


def above_alpha(ratios: Column) -> float:
    """Our own measure: by how many percent, on average, these run times exceed what alpha allows; 0 without any."""
    return 100 * float((ratios * ALPHA - 1).mean()) if len(ratios) else 0.0


def summary(of: Sequences, policy: str) -> dict[str, float]:
    """Over all sequences: both throughputs in percent over CE, run times, and broken alphas of 720 in both units."""
    broken = of.broken(policy)
    return {
        **{by: float(replace(of, throughput=by).gains(policy).mean()) for by in (ARITHMETIC, GEOMETRIC)},
        "run": geometric_mean(of.ratios(policy).ravel()),
        "broken": len(broken) * BLOCK / len(of),
        "broken_by": broken_by(broken),
        "broken_most": 100 * float(broken.max(initial=1.0) - 1),
        "above_alpha": above_alpha(broken),
    }


def _mean(values: Column) -> float:
    """The mean; 0 where there are no values."""
    return float(values.mean()) if len(values) else 0.0


#: The paper's number of sequences; how many blocks of them are drawn, and the seed of the draws.
BLOCK, DRAWS, DRAWS_SEED = 36, 2000, 36
#: The numbers that the paper prints, by name, and how we compute them.
NUMBERS: Mapping[str, Callable[[Sequences], float]] = {
    "cs gain": lambda of: of.gains(CS).mean(),
    "sns gain": lambda of: of.gains(SNS).mean(),
    "sns most": lambda of: of.gains(SNS).max(),
    "sns losses": lambda of: (of.gains(SNS) < 0).sum(),
    "sns least": lambda of: of.gains(SNS).min(),
    "wins over cs": lambda of: (of.gains(SNS, CS) > 0).sum(),
    "won by": lambda of: _mean((gains := of.gains(SNS, CS))[gains > 0]),
    "won by most": lambda of: of.gains(SNS, CS).max(),
    "lost by": lambda of: 0.0 - _mean((gains := of.gains(SNS, CS))[gains < 0]),
    "lost by most": lambda of: 0.0 - min(of.gains(SNS, CS).min(), 0.0),
    "faster jobs": lambda of: 100 * (1 - geometric_mean(of.ratios(SNS).ravel())),
    "slowest sequence": lambda of: 100 * (of.mean_ratios(SNS).max() - 1),
    "slower sequences": lambda of: (of.mean_ratios(SNS) > 1).sum(),
    "faster than cs": lambda of: (of.mean_ratios(SNS) < of.mean_ratios(CS)).sum(),
    "cs slowest": lambda of: of.ratios(CS).max(),
    "broken": lambda of: len(of.broken(SNS)),
    "broken by": lambda of: broken_by(of.broken(SNS)),
    "broken by most": lambda of: 100 * (of.broken(SNS).max(initial=1.0) - 1),
}


def draws_of(sequences: Sequences, numbers: Mapping[str, Callable[[Sequences], float]] = NUMBERS) -> dict[str, Column]:
    """The numbers of each drawn block, by name."""
    lots = np.random.default_rng(DRAWS_SEED)
    blocks = [sequences.take(lots.integers(len(sequences), size=BLOCK)) for _ in range(DRAWS)]
    return {name: np.array([float(number(block)) for block in blocks]) for name, number in numbers.items()}


def drawn_in_halves(draws: Column) -> Draws:
    """Our draws of a number, one for each seed."""
    half = len(draws) // 2
    return drawn(draws, (draws[:half], draws[half:]))


# --- tables

#: By policy or variant, then by measure: one value for each seed.
Columns = Mapping[str, Mapping[str, Column]]


def table(stem: str, first: str, columns: Columns, measures: Mapping[str, str]) -> DataTable:
    """A row for each name with the intervals of the measures; empty where it has none."""
    rows = [
        (name, *(found_of(of[measure]) if measure in of else "" for measure in measures))
        for name, of in columns.items()
    ]
    return DataTable(stem, (first, *measures.values()), rows)
