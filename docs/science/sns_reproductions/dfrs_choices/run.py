"""Run what the paper tells of experiments that it does not print: other periods, and a priority without the square.

On each instance (module dfrs) the periodic algorithms are run with other periods than the paper's. The algorithms that
pause jobs are run with the priority max(30 s, flow time) / virtual time, without a penalty. Factors are over the
smallest stretch of the paper's nine algorithms with its period and its priority.

*Priority.* The simulation of any policy runs the trace, and the policy gives the square root of each job's virtual time
to the kernel, which squares it. DYNMCB8-STRETCH-PER is left out: it also computes yields from the virtual times.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from math import sqrt
from typing import Any

from slurm_sns.policies.dfrs.algorithms import ALGORITHMS
from slurm_sns.policies.dfrs.instant import Instant, YieldDecision
from slurm_sns.policies.dfrs.parameters import PeriodicParameters
from slurm_sns.policies.dfrs.policy import Dfrs
from slurm_sns.sim.engine.planned import PlannedSimulation
from slurm_sns.sim.pages.judge import Quantity
from slurm_sns.sim.pages.running import DataTable, Options, PageResults
from slurm_sns.sim.replay.fluid_replay import replay_fluid
from slurm_sns.sim.results.metrics import bounded_stretch
from slurm_sns.sim.trace import TraceArrays
from slurm_sns.sim.traces.fluid_trace import whole_nodes
from sns_reproductions import dfrs
from sns_reproductions.dfrs import Found, Instance, Unit, Values
from sns_reproductions.dfrs_table2.run import BOTH_GBPS, cost_tables
from sns_reproductions.dfrs_time.run import as_values

PERIODIC = (dfrs.PER, dfrs.ASAP_PER, dfrs.STRETCH_PER)
PREEMPTING = (dfrs.GREEDY_PMTN, dfrs.GREEDY_PMTN_MIGR, dfrs.DYNMCB8, dfrs.PER, dfrs.ASAP_PER)
WITHOUT_SQUARE = "without the square"
#: How often a job is preempted or migrated.
PER_JOB = "preemptions and migrations per job"
HEADER = ("penalty_s", "algorithm", "average_factor", "low", "high", "preemptions_and_migrations_per_job", "gbps")

#: The periods that are compared, in seconds, by the penalty in seconds.
Periods = Mapping[int, Sequence[int]]


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Run what is missing."""
    seeds, loads = range(1, options.seeds + 1), dfrs.QUICK_LOADS[:1] if options.quick else dfrs.QUICK_LOADS
    periods: Periods = dict(data["periods"])
    units = {penalty_s: dfrs.units_of(dfrs.SCALED, seeds, loads, penalty_s) for penalty_s in periods}
    paper = dfrs.results(options, units.values())
    found = dfrs.results(options, units.values(), partial(run_periods, periods=periods), "dfrs-periods")
    plain = dfrs.results(options, [units[dfrs.FREE]], run_without_square, "dfrs-priorities")
    quantities: dict[str, Quantity] = {}
    rows = []
    for penalty_s, own in units.items():
        factors = factors_of(own, paper, found, plain if penalty_s == dfrs.FREE else {})
        costs = costs_of(own, found)
        known = dfrs.quantities(factors, {}, f"{penalty_s} s ")
        for cost, table in costs.items():
            known |= dfrs.quantities(table, {}, f"{penalty_s} s {cost} ")
        for name in factors:
            of_cost = (float(table[name].mean()) if name in table else "" for table in costs.values())
            rows.append((penalty_s, name, *known[f"{penalty_s} s average of {name}"], *of_cost))
        quantities |= known
    return PageResults(
        quantities,
        [DataTable("choices", HEADER, rows)],
        {"loads": loads, "periodic": PERIODIC, "preempting": PREEMPTING},
        options.seeds,
    )


def label(name: str, choice: int | str) -> str:
    """An algorithm with another period in seconds, or without the square, for results, tables and claims."""
    return f"{name}, {choice} s" if isinstance(choice, int) else f"{name}, {choice}"


def run_periods(instance: Instance, periods: Periods) -> Found:
    """The periodic algorithms with each of the penalty's periods, in the form of `dfrs.run`."""
    trace, nodes = dfrs.trace_of(instance)
    penalty_s, found = int(instance[-1]), {}
    for name in PERIODIC:
        for period_s in periods[penalty_s]:
            ran = replay_fluid(whole_nodes(nodes), trace, ALGORITHMS[name], period_s=period_s, penalty_s=penalty_s)
            found[label(name, period_s)] = dfrs.outcome(ran)
    return {"jobs": len(trace), "algorithms": found}


def run_without_square(instance: Instance) -> dict[str, float]:
    """The largest bounded stretch of each algorithm that pauses jobs, with the priority without the square."""
    trace, nodes = dfrs.trace_of(instance)
    policies = {name: UnsquaredDfrs(ALGORITHMS[name], PeriodicParameters(dfrs.PERIOD_S)) for name in PREEMPTING}
    return {name: largest_stretch(trace, nodes, policy, int(instance[-1])) for name, policy in policies.items()}


class UnsquaredDfrs(Dfrs):
    """DFRS with the priority max(30 s, flow time) / virtual time; not for DYNMCB8-STRETCH-PER."""

    def decide(self, at: Instant) -> YieldDecision:
        """The decision; the kernel uses the virtual times in the priorities only, where it squares them."""
        jobs = tuple(job._replace(virtual_s=sqrt(job.virtual_s)) for job in at.jobs)
        return super().decide(at._replace(jobs=jobs))


def largest_stretch(trace: TraceArrays, nodes: int, policy: Dfrs, penalty_s: int) -> float:
    """The largest bounded stretch of a trace's jobs under the policy, by the simulation of any policy."""
    ran = PlannedSimulation(whole_nodes(nodes), as_values(trace), policy, penalty_s=penalty_s).run()
    ends = [float(placed.end_s) for placed in ran.placements]
    return float(bounded_stretch(ends - trace.submit_s, trace.run_s).max())


def factors_of(
    units: Sequence[Unit],
    paper: Mapping[Instance, Found],
    periods: Mapping[Instance, Found],
    plain: Mapping[Instance, Mapping[str, float]],
) -> dict[str, Values]:
    """The degradation factors: of the paper's algorithms that pause jobs, and by `label` of those with other choices.

    All are over the smallest stretch of the paper's nine.
    """
    of_paper = {name: dfrs.values(units, paper, "algorithms", name, "max_stretch") for name in dfrs.NINE}
    best: Values = of_paper[dfrs.FCFS].copy()
    for of in of_paper.values():
        best = best.clip(max=of)
    largest = {name: of_paper[name] for name in dict.fromkeys((*PREEMPTING, *PERIODIC))}
    for name in periods[units[0][0]]["algorithms"]:
        largest[name] = dfrs.values(units, periods, "algorithms", name, "max_stretch")
    for name in PREEMPTING if plain else ():
        largest[label(name, WITHOUT_SQUARE)] = dfrs.values(units, plain, name)
    return {name: of / best for name, of in largest.items()}


def costs_of(units: Sequence[Unit], periods: Mapping[Instance, Found]) -> dict[str, dict[str, Values]]:
    """How often jobs are preempted and migrated, and GB/s, by `label`."""
    names = list(periods[units[0][0]]["algorithms"])
    tables = cost_tables(units, periods, names)
    per_job = {name: tables["preemptions per job"][name] + tables["migrations per job"][name] for name in names}
    return {PER_JOB: per_job, BOTH_GBPS: dict(tables[BOTH_GBPS])}
