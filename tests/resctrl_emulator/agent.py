"""The real agent of a node with emulated performance counters: for nodes with an emulated resctrl.

    python -m resctrl_emulator.agent [--config sns.yaml] [--node NAME] [--observe] [--once]

It is `sns agent` but for this: instructions and cycles are those of the emulated programs (`perf`), and no job's cores
are known, because those of an emulated program are on an emulated machine.
"""

import argparse
import os
import sys
from pathlib import Path

from resctrl_emulator.perf import EmulatedPerf
from slurm_sns.cli.live.agent import serve
from slurm_sns.cli.live.agent_parts import CGROUPS, Hardware
from slurm_sns.cli.live.node_view import print_shown
from slurm_sns.config import configuration
from slurm_sns.errors import SnsError


def emulated(root: Path, processes: Path = Path("/proc"), cgroups: Path | None = CGROUPS) -> Hardware:
    """The hardware of a node whose resctrl is emulated at `root`."""
    return Hardware(EmulatedPerf(root, processes), lambda *_: {}, Path("/nowhere"), cgroups, processes)


def main(arguments: list[str] | None = None) -> int:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(prog="python -m resctrl_emulator.agent", description=__doc__)
    parser.add_argument("--config", type=Path, default=Path(os.environ.get("SNS_CONFIG", "/etc/slurm/sns.yaml")))
    parser.add_argument("--node", default=os.environ.get("SLURMD_NODENAME") or os.uname().nodename.partition(".")[0])
    parser.add_argument("--processes", type=Path, default=Path("/proc"), help="where the processes are")
    parser.add_argument("--cgroups", type=Path, default=CGROUPS, help="where Slurm makes cgroups of jobs")
    parser.add_argument("--observe", action="store_true")
    parser.add_argument("--once", action="store_true")
    chosen = parser.parse_args(arguments)
    try:
        settings = configuration.load(chosen.config)
        hardware = emulated(settings.agents.resctrl, chosen.processes, chosen.cgroups)
        shown = serve(settings, chosen.node, hardware, observes=chosen.observe, once=chosen.once)
    except SnsError as problem:
        sys.stderr.write(f"{parser.prog}: {problem}\n")
        return 1
    if shown is not None:
        print_shown(shown, as_json=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
