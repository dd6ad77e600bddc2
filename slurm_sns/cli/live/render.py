"""`sns render`: writes the files that Slurm, systemd and the plugins read, from sns.yaml."""

import json
from pathlib import Path
from typing import Annotated

import typer

from slurm_sns.cli import options


def render(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write, such as /etc/slurm/sns.")],
    config: options.Config = options.DEFAULT_CONFIG,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 if files differ.")] = False,
    as_json: options.AsJson = False,
) -> int:
    """Write the configuration files for Slurm, systemd and the plugins. Files that are right already stay untouched."""
    from slurm_sns.config import load
    from slurm_sns.render import files
    from slurm_sns.render.texts import texts

    rendered = texts(load(config), config.absolute())
    changed = files.differing(directory, rendered) if check else files.write(directory, rendered)
    unchanged = sorted(set(rendered) - set(changed))
    if as_json:
        print(
            json.dumps({"directory": str(directory), "changed": changed, "unchanged": unchanged, "written": not check})
        )
    else:
        for name in changed:
            print(f"{directory / name}: {'differs' if check else 'written'}")
        if not changed:
            print(f"{directory}: up to date, {len(unchanged)} files")
    return 1 if check and changed else 0
