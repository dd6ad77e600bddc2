"""Figures 3, 4, 6 and 12 of Spread-n-Share: the programs' demand for cache and memory bandwidth.

These numbers are inputs of every other experiment rather than results: the code that plans must return the printed
numbers from the profile file, and the law of module bandwidth_saturation must fit STREAM's. One thing is a result: the
fewest ways that a profiler finds when it samples 2, 4, 8 and all ways and interpolates, as the paper's profiler does.
"""

from slurm_sns.policies.profile import Run
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import Claim, exactly
from slurm_sns.sim.pages.page import DataTable
from slurm_sns.sim.pages.running import Options
from slurm_sns.sim.profiling.sampled_profiles import SAMPLED_WAYS, sampled
from slurm_sns.sim.progress.bandwidth_saturation import ONE_CORE_GBPS, Traffic, settled
from slurm_sns.sim.reproduce.page import Page, SavedFigure
from slurm_sns.sim.reproduce.spread_n_share.runs import NODE, shipped_programs

PROCESSES, KEPT = 16, 0.9
#: Ways for 90 % of full performance, and GB/s with all ways on one node (figures 4, 6 and 12).
PRINTED_WAYS = {"mg": 3, "cg": 10, "bfs": 18, "ep": 2, "hc": 2}
PRINTED_GBPS = {"mg": 112.0, "cg": 42.9, "ep": 0.09, "bfs": 0.12}
MG_ON_TWO_NODES_GBPS = 67.6
#: Cores -> GB/s that STREAM measured (figure 3); met within 1 %.
STREAM_GBPS = {1: 18.80, 2: 37.17, 28: 118.26}
PEAK_GBPS = STREAM_GBPS[28]
NEAR = 0.01


def reproduce(options: Options) -> Page:
    """Compute the numbers, draw the figures and return the page. Nothing is random."""
    programs = shipped_programs()
    runs = {name: program.at(PROCESSES)[1] for name, program in sorted(programs.items())}
    ways = list(range(2, NODE.ways + 1))
    shown = {name.upper(): (ways, [runs[name].kept_at(each) for each in ways]) for name in ("mg", "cg", "ep", "bfs")}
    figures.curves(options.out, "figure-6", {"": shown}, ("ways", "share of best performance"))
    cores = list(range(1, NODE.cores + 1))
    stream = [_stream_gbps(each) for each in cores]
    measured = (list(STREAM_GBPS), list(STREAM_GBPS.values()))
    figures.curves(
        options.out, "figure-3", {"": {"the law": (cores, stream), "STREAM": measured}}, ("cores", "GB/s"), joined=False
    )
    rows = [_row(name, run) for name, run in runs.items()]
    header = ("program", "ways for 90 %", "GB/s with these", "GB/s with all", "ways found by four samples", "too many")
    table = DataTable("figure-12", header, rows)
    made = (
        f"`sns reproduce spread-n-share-cache`: the shipped profiles at {PROCESSES} processes on one node, and the "
        "bandwidth law "
        "of `slurm_sns/sim/progress/bandwidth_saturation.py` compared with STREAM's points. The printed numbers are "
        "inputs of the profiles: these claims only check that the code returns them. The last two columns of the "
        "second table are a result: the fewest cache ways that a profiler finds when it samples "
        f"{', '.join(map(str, SAMPLED_WAYS))} ways and interpolates, as the paper's profiler does, and by how many "
        "they are too many."
    )
    return Page(
        title="Spread-n-Share: cache and bandwidth of the test programs (figures 3, 4, 6, 12)",
        made=[made],
        claims=_claims(runs, programs["mg"].at(PROCESSES)[2]),
        drawings=[
            SavedFigure(
                "figure-3", "Figure 3: STREAM's bandwidth by cores, and the contention model's law through it."
            ),
            SavedFigure("figure-6", "Figure 6: performance by ways."),
        ],
        shown=table,
        numbers=[table],
    )


def _stream_gbps(cores: int) -> float:
    return PEAK_GBPS * settled([Traffic(ONE_CORE_GBPS * cores, 1.0)], PEAK_GBPS)


def _row(name: str, run: Run) -> tuple[object, ...]:
    fewest, found = (each.fewest_ways(KEPT, NODE.ways) or NODE.ways for each in (run, sampled(run)))
    return (name, fewest, run.bandwidth_at(fewest), run.bandwidth_at(run.ways[-1]), found, found - fewest)


def _claims(runs: dict[str, Run], mg_on_two: Run) -> list[Claim]:
    claims = [
        _is(f"fig. {where}", text, what, value, printed)
        for name, printed in PRINTED_WAYS.items()
        for where, text, what, value in [
            ("6, 12", f"{name.upper()} needs {printed} ways for 90 %", "ways", runs[name].fewest_ways(KEPT, NODE.ways))
        ]
    ]
    for name, printed_gbps in PRINTED_GBPS.items():
        gbps = runs[name].bandwidth_at(NODE.ways)
        claims.append(
            _is("fig. 4", f"{name.upper()} moves {printed_gbps} GB/s on one node", "GB/s", gbps, printed_gbps)
        )
    on_two = mg_on_two.bandwidth_at(NODE.ways)
    text = f"MG moves {MG_ON_TWO_NODES_GBPS} GB/s on each of two nodes"
    claims.append(_is("fig. 4", text, "GB/s", on_two, MG_ON_TWO_NODES_GBPS))
    for cores, gbps in STREAM_GBPS.items():
        text = f"STREAM moves {gbps} GB/s on {cores} core{'s' if cores > 1 else ''}"
        claims.append(_is("fig. 3", text, "the law, GB/s", _stream_gbps(cores), gbps))
    return claims


def _is(where: str, text: str, measure: str, value: float | None, printed: float) -> Claim:
    """The input that our number is within 1 % of the printed one."""
    return Claim(where, text, measure, exactly(value or 0.0), (1 - NEAR) * printed, (1 + NEAR) * printed, is_input=True)
