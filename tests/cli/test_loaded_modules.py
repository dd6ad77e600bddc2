"""What the process of each command does not load: a user waits for each module, and a daemon keeps it in memory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

RUN = """\
import sys
sys.argv[1:] = %r
from slurm_sns.cli import main
try:
    main()
finally:
    print("loaded:", *sys.modules)
"""
#: What plans, replays and stores.
NUMBERS = {"numpy", "numba", "pandas", "scipy", "sqlalchemy", "matplotlib"}
#: What talks to agents over the network.
NETWORK = {"asyncio", "ssl"}
#: All settings of sns.yaml, and the table of policies, which asks each installed package for more of them.
SETTINGS = {"slurm_sns.config.configuration", "slurm_sns.policies.registry"}
#: What replays other policies than portfolios.
OTHER_ENGINES = {
    "slurm_sns.policies.dfrs.policy",
    "slurm_sns.policies.rescheduling.decision_kernel",
    "slurm_sns.sim.engine.planned",
    "slurm_sns.sim.profiling.learning_cluster",
    "slurm_sns.sim.replay.fluid_replay",
    "slurm_sns.sim.replay.pool_replay",
}
ASKS = NUMBERS | NETWORK | SETTINGS | {"slurm_sns.scheduler.observation", "textual", "slurm_sns.cli.offline"}


def loaded(*words: object) -> set[str]:
    """The modules that the command has loaded when it ends."""
    done = subprocess.run(
        [sys.executable, "-c", RUN % (list(map(str, words)),)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "PATH": "/nonexistent"},  # without Slurm's commands a daemon ends before it works
    )
    return set(done.stdout.rpartition("loaded: ")[2].split())


@pytest.mark.parametrize(
    ("words", "runs", "never"),
    [
        ("--version", "typer", NUMBERS | NETWORK | {"yaml", "rich"}),
        ("status", "slurm_sns.cli.live.status_view", ASKS),
        ("queue", "slurm_sns.cli.live.queue_view", ASKS),
        ("explain 1", "slurm_sns.cli.live.terminal", ASKS),
        ("watchdog", "slurm_sns.scheduler.watchdog", NUMBERS | NETWORK | {"slurm_sns.scheduler.loop", "rich"}),
        ("agent", "slurm_sns.node.agent.agent", NUMBERS | {"slurm_sns.scheduler.loop"}),
    ],
)
def test_a_process_loads_nothing_that_it_does_not_need(config: Path, words: str, runs: str, never: set[str]) -> None:
    options = [] if words == "--version" else ["--config", config]
    found = loaded(*words.split(), *options)
    assert runs in found
    assert not never & found


def test_the_help_of_sns_loads_all_commands_and_nothing_that_they_run() -> None:
    found = loaded("--help")
    assert {"slurm_sns.cli.live.asking", "slurm_sns.cli.offline.simulate"} <= found
    assert not (NUMBERS | NETWORK) & found


def test_a_small_trace_is_replayed_without_what_reads_large_ones(tmp_path: Path) -> None:
    trace, nodes = tmp_path / "trace.csv", tmp_path / "nodes.csv"
    trace.write_text("job_id,submit_s,run_s,cores,mem_gb\n1,0,10,1,1\n")
    nodes.write_text("name,cores,mem_gb\nA,4,16\n")
    found = loaded("simulate", trace, "--nodes", nodes, "--policy", "first-fit")
    assert {"numba", "slurm_sns.sim.runners.matching"} <= found
    assert not {"pandas", "scipy.linalg"} & found
    assert not OTHER_ENGINES & found
