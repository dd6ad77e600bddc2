"""Table II of the DFRS paper: what preemptions and migrations cost on scaled traces with a load of at least 0.7.

A preemption moves the memory of all tasks of the job once, a migration that of the tasks that left a node, once.
Counted out and in it is twice as much. Bandwidth and frequency are over the makespan, from first submit to last end.

The paper does not say how it computes the load of a trace. The same traces are also scaled by another reading of it,
`BY_MEANS` of module runs, under which they are 1.8 times as loaded.
"""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

import numpy as np

from slurm_sns.sim.pages.judge import Claim
from slurm_sns.sim.pages.page import DataTable
from slurm_sns.sim.pages.running import Options
from slurm_sns.sim.reproduce.dfrs.costs import BOTH_GBPS, COLUMNS, GBPS, cost_tables, costs
from slurm_sns.sim.reproduce.dfrs.printed import TABLE_2, Cost
from slurm_sns.sim.reproduce.dfrs.runs import (
    ASAP_PER,
    BY_MEANS,
    DYNMCB8,
    FIVE_MINUTES,
    GREEDY_PMTN,
    GREEDY_PMTN_MIGR,
    PAPER_NAMES,
    PER,
    STRETCH_PER,
    Found,
    Instance,
    Unit,
    results,
    scaled_units,
)
from slurm_sns.sim.reproduce.dfrs.statistics import (
    INTERVALS,
    NEAR,
    Statistic,
    Table,
    average,
    gap,
    jackknife,
    largest,
    near,
    ratio,
)
from slurm_sns.sim.reproduce.page import Page
from slurm_sns.sim.workloads.dfrs_synthetic import NODE_GB, PAPER_LOADS, PAPER_NODES

LEAST_LOAD = 0.7
MB_PER_GB = 1000
#: "Comparable": within a quarter.
COMPARABLE = 1.25
FIGURES = {"average": average, "largest": largest}

#: The page's explanation of the claims that do not hold.
WHY = (
    "Preemptions are fewer than printed, most of all those of GREEDY-PMTN and GREEDY-PMTN-MIGR. A run shows a possible "
    "cause: the paper's traces may be more loaded than their nominal loads say by our definition. With the load by "
    "means more jobs compete for memory, and the averages move towards the printed ones. Each row of the table has the "
    "printed averages, with the largest values in parentheses, and our figures behind the arrows:"
)

HEADER = ("algorithm", "cost", "figure", "published", "ours", "low", "high", "ours_over_published", "ours_out_and_in")
TRACE_HEADER = ("workload", "seed", "load", "algorithm", "makespan_s", "tasks_moved", *COLUMNS)


def reproduce(options: Options) -> Page:
    """Run what is missing and return the page."""
    loads = [load for load in PAPER_LOADS if load >= LEAST_LOAD]
    units = scaled_units(options.seeds, FIVE_MINUTES, loads)
    heavier = scaled_units(options.seeds, FIVE_MINUTES, loads, BY_MEANS)
    return page_of(units, heavier, results(options, [*units, *heavier]), options.seeds)


def page_of(units: Sequence[Unit], heavier: Sequence[Unit], found: Mapping[Instance, Found], seeds: int) -> Page:
    """The page, from the results; `heavier` are the traces under the other reading of the load."""
    tables, heavier_tables = cost_tables(units, found), cost_tables(heavier, found)
    shown = [*_compact(tables), *_compact(heavier_tables, "by means: ")]
    return Page(
        title="DFRS: costs of preemptions and migrations (table II)",
        made=[
            (
                f"`sns reproduce dfrs-table2`: {seeds} traces of 1,000 jobs by the Lublin-Feitelson model for "
                f"{PAPER_NODES} nodes of {NODE_GB} GB, each scaled to the loads {LEAST_LOAD:g} to {PAPER_LOADS[-1]:g}, "
                "under the algorithms that preempt or migrate, with a rescheduling penalty of 5 minutes. A preemption "
                "moves the memory of all tasks of the job once; a migration moves that of the tasks that left a node "
                "once. Counted out and in, each bandwidth is twice as large. Bandwidth and frequency are over the "
                "makespan, from the first submit to the last end."
            ),
            (
                "The load of a trace is the sum of run time * tasks, divided by the nodes and the time of the last "
                "submit. The paper does not define it. In *load by means* the sum is the number of jobs * their mean "
                "run time * their mean number of tasks. Large jobs run longer in the model, so the traces are then "
                f"{_heavier(units, heavier, found):.1f} times as loaded as under our definition."
            ),
            (
                f"A printed figure is met if ours is within a factor of {NEAR:g} of it, 0.00 if ours is rounded to it. "
                f"*Comparable* means within a factor of {COMPARABLE:g}. {INTERVALS}"
            ),
        ],
        claims=[
            *_statements(tables),
            *_figures(tables, FIGURES),
            *_figures(heavier_tables, {"average": average}, "load by means: "),
        ],
        numbers=[
            DataTable("table-2", HEADER, _rows(tables)),
            DataTable("table-2-by-means", HEADER, _rows(heavier_tables)),
            DataTable("traces", TRACE_HEADER, _trace_rows([*units, *heavier], found)),
        ],
        remarks=[WHY],
        shown=DataTable("compact", ("algorithm", *COLUMNS), shown),
        seeds=seeds,
    )


def _heavier(units: Sequence[Unit], heavier: Sequence[Unit], found: Mapping[Instance, Found]) -> float:
    """How many times as loaded the heavier traces are, on average."""
    loads = [[found[each]["load"] for unit in of for each in unit] for of in (units, heavier)]
    return float(np.mean(np.array(loads[1]) / np.array(loads[0])))


# --- claims


def _statements(tables: Mapping[str, Table]) -> list[Claim]:
    """What section V says of the table; its 7 and 17 MB/s are 0.86 and 2.08 GB/s on 128 nodes."""
    greedy = (GREEDY_PMTN, GREEDY_PMTN_MIGR)
    others = [name for name in TABLE_2 if name not in greedy]

    def claim(text: str, measure: str, column: str, statistic: Statistic, bounds: tuple[float, float]) -> Claim:
        return Claim("sec. V", text, f"{column}: {measure}", jackknife(statistic, tables[column]), *bounds)

    return [
        claim(
            "GREEDY-PMTN and GREEDY-PMTN-MIGR have the lowest costs",
            "best of the others - worst of the two",
            BOTH_GBPS,
            gap(others, greedy),
            (0, inf),
        ),
        claim(
            "DYNMCB8 has the highest costs",
            f"{DYNMCB8} - worst of the others",
            BOTH_GBPS,
            gap((DYNMCB8,), [name for name in TABLE_2 if name != DYNMCB8]),
            (0, inf),
        ),
        claim(
            "DYNMCB8-PER and DYNMCB8-ASAP-PER have comparable costs",
            f"{ASAP_PER} / {PER}",
            BOTH_GBPS,
            ratio(ASAP_PER, PER),
            (1 / COMPARABLE, COMPARABLE),
        ),
        claim(
            "DYNMCB8-STRETCH-PER has lower preemption costs than DYNMCB8-PER",
            f"{STRETCH_PER} / {PER}",
            GBPS[0],
            ratio(STRETCH_PER, PER),
            (-inf, 1),
        ),
        claim(
            "DYNMCB8-STRETCH-PER has more than 100 % higher migration costs than DYNMCB8-PER",
            f"{STRETCH_PER} / {PER}",
            COLUMNS[-1],
            ratio(STRETCH_PER, PER),
            (2, inf),
        ),
        claim(
            "DYNMCB8-PER moves under 7 MB/s per node",
            "average, in MB/s per node",
            BOTH_GBPS,
            _per_node(average(PER)),
            (-inf, 7),
        ),
        claim(
            "DYNMCB8-PER moves under 17 MB/s per node on the worst trace",
            "largest, in MB/s per node",
            BOTH_GBPS,
            _per_node(largest(PER)),
            (-inf, 17),
        ),
    ]


def _per_node(gbps: Statistic) -> Statistic:
    """A bandwidth in GB/s as MB/s per node."""
    return lambda table: gbps(table) * MB_PER_GB / PAPER_NODES


def _figures(tables: Mapping[str, Table], figures: Mapping[str, Any], prefix: str = "") -> list[Claim]:
    """The claims on these of the printed figures."""
    return [
        near(
            "table II",
            f"{PAPER_NAMES[name]}: {column} {printed:.2f}{' at most' if figure == 'largest' else ''}",
            f"{prefix}{name}: {figure} {column}",
            printed,
            jackknife(figures[figure](name), tables[column]),
        )
        for name, row in TABLE_2.items()
        for column, cost in row.items()
        for figure, printed in cost._asdict().items()
        if figure in figures
    ]


# --- tables


def _rows(tables: Mapping[str, Table]) -> list[tuple[Any, ...]]:
    """Each figure, published and ours; bandwidths also counted out and in."""
    rows = []
    for name, row in TABLE_2.items():
        for column, cost in row.items():
            for figure, printed in cost._asdict().items():
                ours = jackknife(FIGURES[figure](name), tables[column])
                over = ours.mean / printed if printed else ""
                twice = 2 * ours.mean if column in GBPS else ""
                rows.append((name, column, figure, printed, ours.mean, ours.low, ours.high, over, twice))
    return rows


def _compact(tables: Mapping[str, Table], prefix: str = "") -> list[tuple[str, ...]]:
    """The printed table with our figures."""
    return [
        (prefix + PAPER_NAMES[name], *(_arrow(cost, tables[column], name) for column, cost in row.items()))
        for name, row in TABLE_2.items()
    ]


def _arrow(printed: Cost, table: Table, name: str) -> str:
    ours = average(name)(table), largest(name)(table)
    return f"{printed.average:.2f} ({printed.largest:.2f}) → {ours[0]:.2f} ({ours[1]:.2f})"


def _trace_rows(units: Sequence[Unit], found: Mapping[Instance, Found]) -> list[tuple[Any, ...]]:
    """Each trace under each algorithm."""
    rows = []
    for unit in units:
        for instance in unit:
            result = found[instance]
            for name in TABLE_2:
                outcome = result["algorithms"][name]
                columns = costs(outcome, result["jobs"]).values()
                rows.append((*instance[:3], name, outcome["makespan_s"], outcome["tasks_moved"], *columns))
    return rows
