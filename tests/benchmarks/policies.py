"""How many jobs a second each policy replays, of one trace; beside another checkout, such as a commit before.

    python tests/benchmarks/policies.py TRACE NODES [--policy easy ...] [--limit N] [--repeat 3] [--before CHECKOUT]

Prints JSON. For each policy: jobs by the user + system seconds of the process, less those of the same process with
`--limit 1` (the least of the runs, and their median), and the peak memory; with `--before` the same of that checkout,
run in turn, and how many times as fast this one is. A run that compiles comes first and is not measured. Take traces of
many thousand jobs: what is left of a second of CPU time for fewer is noise.
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
        runs: dict[str, list[tuple[Account, Account]]] = {name: [] for name in checkouts}
        for turn in range(given.repeat + 1):
            for name, checkout in checkouts.items():
                one, whole = (
                    account(
                        given.trace.absolute(), given.nodes.absolute(), "--policy", policy, *more, checkout=checkout
                    )
                    for more in (["--limit", "1"], limit)
                )
                if turn:
                    runs[name].append((one, whole))
        found[policy] = {name: figures(of) for name, of in runs.items()}
        if given.before is not None:
            found[policy]["times_as_fast"] = round(
                found[policy]["now"]["jobs_per_s"] / found[policy]["before"]["jobs_per_s"], 2
            )
    sys.stdout.write(json.dumps({"trace": given.trace.name, "policies": found}, indent=2) + "\n")


def figures(runs: list[tuple[Account, Account]]) -> dict:
    """The figures of one policy in one checkout."""
    jobs = runs[0][1].summary["jobs"]
    start_s = min(one.cpu_s for one, _ in runs)
    cpu_s = [max(whole.cpu_s - start_s, 1e-3) for _, whole in runs]
    return {
        "jobs": jobs,
        "jobs_per_s": round(jobs / min(cpu_s)),
        "jobs_per_s_median": round(jobs / float(np.median(cpu_s))),
        "peak_mb": round(max(whole.peak_mb for _, whole in runs)),
    }


if __name__ == "__main__":
    main()
