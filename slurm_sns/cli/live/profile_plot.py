"""Figures of profiles in the style of the paper's figure 10: the only module that uses matplotlib.

Each row has the panels of one process count, each panel is one scale: IPC and bandwidth over ways, T-IPC at alpha, and
the ways and GB/s that a job would ask for.
"""

from pathlib import Path
from typing import Any

from slurm_sns.errors import BadInput, SnsError
from slurm_sns.policies.profile import Program, Run

SUFFIXES = (".png", ".svg")
PANEL_INCHES = (3.4, 2.9)
DOTS_PER_INCH = 120
IPC_COLOUR, BANDWIDTH_COLOUR = "tab:green", "tab:blue"


def require_suffix(path: Path) -> None:
    """Check the suffix of the figure's name.

    Raises:
        BadInput: we write no format with this suffix.
    """
    if path.suffix not in SUFFIXES:
        raise BadInput(f"--out is {path}; valid: a name that ends in {' or '.join(SUFFIXES)}")


def plot(program: Program, path: Path, alpha: float) -> None:
    """Write the figure; equal profiles give equal bytes.

    Raises:
        SnsError: the file cannot be written.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    counts = program.process_counts
    scales = sorted({run.scale for run in program.runs})
    width, height = PANEL_INCHES
    with mpl.rc_context({"svg.hashsalt": "sns", "svg.fonttype": "none"}):
        figure = Figure(figsize=(width * len(scales), height * len(counts)), layout="constrained")
        panels = figure.subplots(len(counts), len(scales), squeeze=False)
        for row, processes in enumerate(counts):
            runs = program.at(processes)
            for column, scale in enumerate(scales):
                if scale in runs:
                    _panel(panels[row][column], runs[scale], alpha)
                else:
                    panels[row][column].set_axis_off()
        figure.suptitle(f"{program.name} at alpha {alpha:g}")
        try:
            figure.savefig(path, dpi=DOTS_PER_INCH, metadata={"Date": None} if path.suffix == ".svg" else None)
        except OSError as problem:
            raise SnsError(f"{path} cannot be written: {problem.strerror}") from None


def _panel(axes: Any, run: Run, alpha: float) -> None:
    axes.set_title(f"{run.processes} processes, scale {run.scale}", fontsize="small")
    axes.set_xlabel("ways per node")
    axes.set_ylabel("IPC", color=IPC_COLOUR)
    axes.plot(run.ways, run.ipc, marker="o", markersize=3, color=IPC_COLOUR)
    axes.axhline(alpha * run.full_ipc, linestyle="--", linewidth=0.8, color=IPC_COLOUR)
    axes.set_ylim(0, 1.08 * run.full_ipc)
    other = axes.twinx()
    other.set_ylabel("GB/s per node", color=BANDWIDTH_COLOUR)
    other.plot(run.ways, run.bandwidth_gbps, marker="s", markersize=3, color=BANDWIDTH_COLOUR)
    other.set_ylim(0, 1.15 * max(*run.bandwidth_gbps, 1e-3))
    ways = run.fewest_ways(alpha, run.ways[-1])
    if ways is not None:
        bandwidth = run.bandwidth_at(ways)
        axes.axvline(ways, linestyle=":", linewidth=0.8, color="0.4")
        other.plot([ways], [bandwidth], marker="D", markersize=5, color="black")
        other.text(
            0.97, 0.06, f"w = {ways}, b = {bandwidth:.4g}", transform=other.transAxes, ha="right", fontsize="small"
        )
