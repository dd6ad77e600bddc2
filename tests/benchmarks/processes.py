"""Commands as a user waits for them: whole processes, with a scheduler that answers, beside `python -c pass`.

    python tests/benchmarks/processes.py DIRECTORY [--jobs 3 10000] [--trace 1 1000000] [--repeat 20]
                                         [--only simulate ...] [--policy max-jobs] [--before CHECKOUT]

Prints JSON: for each command the median and the 99th percentile of wall-clock and of user + system seconds, the peak
memory, how many modules are imported, and `to_python`, the median wall time beside that of Python alone. `status`,
`queue` and `explain` ask a socket of this program, whose answers are a scheduler's about so many waiting jobs on a
thousand nodes; they are made before (`answer_s`), and an admin asks. `simulate` replays so many jobs of a trace like
pool-a's, which is made in DIRECTORY if it is not there; `to_replay` is its wall time beside that of the replay alone,
by its own account. For `watchdog` and `agent` their imports are measured: they run for months. With `--before` each is
run in turn with the same of that checkout. A run that compiles comes first.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pool_a import write_pool
from profiled_jobs import PARTITION, SETTINGS, observation_of

from slurm_sns.json_text import JsonText, encoded
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.scheduler.answers.requests import Answers
from slurm_sns.scheduler.answers.view import RecentCycles, View
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.situation import read_situation
from slurm_sns.sockets.unix_socket import ControlSocket

NODES = 1_000
SNS = "from slurm_sns.cli import run; run()"
#: What `sns watchdog` and `sns agent` import before they begin.
DAEMONS = {
    "watchdog": "import slurm_sns.cli.app; from slurm_sns.cli.live import daemons, process; "
    "import slurm_sns.scheduler.watchdog",
    "agent": "import slurm_sns.cli.app; from slurm_sns.cli.live import agent, agent_parts, process",
}
#: As a user has it: Python keeps what it has compiled.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
#: Starts a command, without its output, and prints what the operating system counted for it.
START = """\
import json, os, sys, time
silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
began = time.perf_counter()
_, status, usage = os.wait4(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=silent), 0)
wall_s = time.perf_counter() - began
print(json.dumps([wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, os.waitstatus_to_exitcode(status)]))
"""


class NeverRecorded:
    """A decision record without decisions."""

    def of_job(self, _: int) -> list:
        """Nothing."""
        return []


class Account(NamedTuple):
    """What the operating system counted for one process."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    #: That of the replay alone; 0 for another command.
    replay_s: float = 0.0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--jobs", type=int, nargs="*", default=[3, 10_000])
    parser.add_argument("--trace", type=int, nargs="*", default=[1, 1_000_000])
    parser.add_argument("--policy", default="mix-fit", help="that of the simulations")
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--only", nargs="*", default=[], help="commands that begin with one of these words")
    parser.add_argument("--before", type=Path, metavar="CHECKOUT")
    given = parser.parse_args()
    given.directory.mkdir(parents=True, exist_ok=True)
    checkouts = {"now": Path(__file__).parents[2]} | ({"before": given.before.resolve()} if given.before else {})

    def of(commands: dict[str, list[str]]) -> dict[str, Any]:
        wanted = {name: it for name, it in commands.items() if not given.only or name.startswith(tuple(given.only))}
        return {name: _measured(command, checkouts, given.repeat) for name, command in wanted.items()}

    found = of({name: _python(code) for name, code in DAEMONS.items()})
    found |= of({"--version": _sns("--version"), "--help": _sns("--help"), "status --help": _sns("status", "--help")})
    for jobs in given.jobs:
        found |= _asking(given.directory, jobs, of)
    for jobs in given.trace:
        found |= of({f"simulate, {jobs} jobs": _simulate(given.directory, jobs, given.policy)})
    python = {name: _python("pass") for name in checkouts}
    alone = _times([_account(python["now"], Path.cwd()) for _ in range(given.repeat)])
    for each in found.values():
        for figures in each.values():
            figures["to_python"] = round(figures["wall_s"] / alone["wall_s"], 1)
    sys.stdout.write(json.dumps({"python -c pass": alone, **found}, indent=2) + "\n")


def _python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def _sns(*words: object) -> list[str]:
    return [*_python(SNS), *map(str, words)]


def _asking(directory: Path, jobs: int, of: Callable[[dict[str, list[str]]], dict[str, Any]]) -> dict[str, Any]:
    """Measure the commands that ask a scheduler with so many waiting jobs."""
    config = directory.resolve() / "sns.yaml"
    paths = {name: str(config.parent) for name in ("run_dir", "state_dir", "slurm_dir")}
    nodes = {"names": f"n[00000-{NODES - 1:05}]", "partitions": [PARTITION], "cores": 28, "memory_mb": 131_072}
    # JSON is YAML.
    config.write_text(json.dumps({"mode": "enforce", "partitions": [PARTITION], "nodes": [nodes], "paths": paths}))
    requests = {"status": {}, "queue": {}, "explain": {"job_id": 1}}
    answers = _answers(jobs)
    replies = {}
    for name, fields in requests.items():
        began = time.perf_counter()
        replies[name] = JsonText(encoded(answers.answer({"command": name, **fields}, 0)))
        sys.stderr.write(f"{name} of {jobs} jobs: answer_s {time.perf_counter() - began:.3f}\n")
    with ControlSocket(config.parent / "scheduler.sock", lambda request, _: replies[request["command"]], _anybody()):
        return of(
            {
                f"{name}, {jobs} jobs": _sns(name, *map(str, fields.values()), "--config", config)
                for name, fields in requests.items()
            }
        )


def _anybody() -> frozenset[int]:
    """Whom the socket serves without a pause between two requests: who runs this."""
    return frozenset({os.getuid()})


def _answers(jobs: int) -> Answers:
    """A scheduler's answers after one cycle with so many waiting jobs."""
    settings: Settings = SETTINGS
    policy = max_jobs(MatchingParameters(queue_depth=jobs))
    situation = read_situation(observation_of(jobs, NODES, 0.9, seed=1), {}, settings, jobs)
    recent = RecentCycles()
    recent.publish(View(time.time(), 0.1, "enforce", False, 1, 0, 0, situation, policy.plan(situation.snapshot)))
    return Answers(recent, NeverRecorded(), policy, frozenset({0}), settings=settings, asked=set())


def _simulate(directory: Path, jobs: int, policy: str) -> list[str]:
    trace = directory / f"{jobs}.jobs.csv", directory / f"{jobs}.nodes.csv"
    if not trace[0].is_file():
        made = directory / f"pool-{jobs}"
        made.mkdir(exist_ok=True)
        write_pool(made, jobs, 1_633, 0.8, seed=1)
        trace[0].write_bytes(
            subprocess.run(["gzip", "-dc", made / "trace.csv.gz"], check=True, capture_output=True).stdout
        )
        (made / "nodes.csv").rename(trace[1])
    words = [trace[0].resolve(), "--nodes", trace[1].resolve(), "--policy", policy, "--json"]
    return _sns("simulate", *words, "--out", directory.resolve() / "out")


def _measured(command: list[str], checkouts: dict[str, Path], repeat: int) -> dict[str, Any]:
    """The figures of a command in each checkout, run in turn."""
    modules = {name: _modules(command, checkout) for name, checkout in checkouts.items()}  # these runs compile, too
    runs: dict[str, list[Account]] = {name: [] for name in checkouts}
    for _ in range(repeat):
        for name, checkout in checkouts.items():
            runs[name].append(_account(command, checkout))
    return {name: {**_times(of), "modules": modules[name]} for name, of in runs.items()}


def _times(runs: list[Account]) -> dict[str, float]:
    wall, cpu = [run.wall_s for run in runs], [run.cpu_s for run in runs]
    to_replay = [run.wall_s / run.replay_s for run in runs if run.replay_s]
    return ({"to_replay": round(float(np.median(to_replay)), 2)} if to_replay else {}) | {
        "wall_s": round(float(np.median(wall)), 4),
        "wall_p99_s": round(float(np.percentile(wall, 99)), 4),
        "cpu_s": round(float(np.median(cpu)), 4),
        "cpu_p99_s": round(float(np.percentile(cpu, 99)), 4),
        "peak_mb": round(max(run.peak_mb for run in runs), 1),
    }


def _account(command: list[str], checkout: Path) -> Account:
    """Run the command once, with the code of that checkout: Python looks for it in its own directory first."""
    # By way of a small process: Linux counts the memory of the process that starts another to the other's peak.
    starting = [*_python(START), *command]
    started = subprocess.run(starting, cwd=checkout, env=ENVIRONMENT, capture_output=True, check=False, text=True)
    wall_s, cpu_s, peak_kb, status = json.loads(started.stdout)
    if status:
        sys.exit(f"{' '.join(command)} failed with {status}: {started.stderr}")
    return Account(wall_s, cpu_s, peak_kb / 1024, _replay_s(command))


def _replay_s(command: list[str]) -> float:
    """How long a simulation says that its replay has taken; 0 for another command."""
    if "--out" not in command:
        return 0.0
    summary = Path(command[command.index("--out") + 1], "summary.json")
    return float(json.loads(summary.read_text(encoding="utf-8"))["wall_s"])


def _modules(command: list[str], checkout: Path) -> int:
    """How many modules the command imports, as Python itself lists them."""
    listing = [command[0], "-X", "importtime", *command[1:]]
    done = subprocess.run(listing, cwd=checkout, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed: {done.stderr.splitlines()[-1]}")
    return sum(line.startswith("import time:") for line in done.stderr.splitlines()) - 1  # without the heading


if __name__ == "__main__":
    main()
