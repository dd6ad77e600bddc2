"""How many jobs a second each policy replays, of one trace; beside another checkout, such as a commit before.

    python tests/benchmarks/policies.py TRACE NODES [--policy easy ...] [--limit N] [--repeat 3] [--before CHECKOUT]

Prints JSON. For each policy: jobs by the seconds of the replay, as the command's own summary has them (the least of the
runs, and their median), the user + system seconds of the whole process, and the peak memory; with `--before` the same
of that checkout, run in turn, and how many times as fast the replay of this one is. A run that compiles comes first and
is not measured. The machine should be quiet.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from replay import Account, account

from slurm_sns.policies.registry import REGISTRY, specification
from slurm_sns.policies.rescheduling.parameters import RESCHEDULING

#: Every policy but the one that needs a trace of pools, and one heuristic.
POLICIES = ["mix-fit", *(name for name in REGISTRY if specification(name) != RESCHEDULING)]


def main() -> None:
    """Measure, print JSON."""
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    reader.add_argument("trace", type=Path)
    reader.add_argument("nodes", type=Path)
    reader.add_argument("--policy", action="append", help="a policy; may be repeated; default: all")
    reader.add_argument("--limit", type=int, help="how many jobs are read")
    reader.add_argument("--repeat", type=int, default=3)
    reader.add_argument("--before", type=Path, help="another checkout")
    given = reader.parse_args()
    here = Path(__file__).parents[2]
    checkouts = {"now": here} if given.before is None else {"before": given.before, "now": here}
    limit = [] if given.limit is None else ["--limit", str(given.limit)]
    found = {}
    for policy in given.policy or POLICIES:
        runs: dict[str, list[Account]] = {name: [] for name in checkouts}
        for turn in range(given.repeat + 1):
            for name, checkout in checkouts.items():
                trace, nodes = given.trace.absolute(), given.nodes.absolute()
                run = account(trace, nodes, "--policy", policy, *limit, checkout=checkout)
                if turn:
                    runs[name].append(run)
        found[policy] = {name: figures(of) for name, of in runs.items()}
        if given.before is not None:
            found[policy]["times_as_fast"] = round(
                found[policy]["now"]["jobs_per_s"] / found[policy]["before"]["jobs_per_s"], 2
            )
    sys.stdout.write(json.dumps({"trace": given.trace.name, "policies": found}, indent=2) + "\n")


def figures(runs: list[Account]) -> dict:
    """The figures of one policy in one checkout."""
    jobs = runs[0].summary["jobs"]
    replay_s = [max(run.summary["wall_s"], 1e-3) for run in runs]
    return {
        "jobs": jobs,
        "jobs_per_s": round(jobs / min(replay_s)),
        "jobs_per_s_median": round(jobs / float(np.median(replay_s))),
        "process_cpu_s": round(min(run.cpu_s for run in runs), 2),
        "peak_mb": round(max(run.peak_mb for run in runs)),
    }


if __name__ == "__main__":
    main()
