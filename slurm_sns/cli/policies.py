"""`sns policies`: the policies that this installation has, where they run, and from which package they come."""

import json
import sys

from slurm_sns.cli.options import AsJson


def policies(*, as_json: AsJson = False) -> None:
    """List the policies: those of slurm_sns, and those of other installed packages (docs/develop/policy.md)."""
    from slurm_sns.cli.json_types import PoliciesJson, PolicyLine
    from slurm_sns.policies.registry import PACKAGES, PROBLEMS, REGISTRY, specification

    found: list[PolicyLine] = [
        {
            "name": each.name,
            "help": each.help,
            "runs": "simulator" if each.is_simulated_only else "cluster, simulator",
            "package": PACKAGES.get(each.name, "slurm_sns"),
        }
        for each in map(specification, REGISTRY)
    ]
    if as_json:
        told: PoliciesJson = {"policies": found, "problems": PROBLEMS}
        print(json.dumps(told, indent=1))
        return
    from rich.console import Console

    from slurm_sns.cli.live.terminal import new_table

    table = new_table("POLICY", "RUNS", "PACKAGE", "")
    for each in found:
        table.add_row(each["name"], each["runs"], each["package"], each["help"])
    Console().print(table)
    for problem in PROBLEMS:
        print(problem, file=sys.stderr)
