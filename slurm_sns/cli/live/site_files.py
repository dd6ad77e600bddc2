"""`sns draft`: a first sns.yaml; `sns render`: the files made from it; `sns sources`: those to build or copy."""

import json
from pathlib import Path
from typing import Annotated

import typer

from slurm_sns.cli import options


def draft(
    partition: Annotated[
        list[str] | None, typer.Option(help="A partition to manage (repeatable); default: the default partition.")
    ] = None,
    llc_ways: Annotated[
        int, typer.Option(min=0, max=64, help="Last-level-cache ways of each node; 0: not managed.")
    ] = 0,
    bandwidth_gbps: Annotated[int, typer.Option(min=0, max=100_000, help="GB/s of each node; 0: not managed.")] = 0,
) -> None:
    """Print a first sns.yaml, from the running Slurm and its slurm.conf: read it, change it, put it into /etc/slurm."""
    from slurm_sns import conf_text
    from slurm_sns.config.paths import PathsSection
    from slurm_sns.slurm.api import configuration_path
    from slurm_sns.slurm.check.files import site_words
    from slurm_sns.slurm.draft import draft as text
    from slurm_sns.slurm.site import read_site

    site = read_site()
    words = site_words(conf_text.read(configuration_path()), PathsSection().slurm_dir)
    print(text(site, words, partition or (), llc_ways=llc_ways, bandwidth_gbps=bandwidth_gbps), end="")


def render(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write, such as /etc/slurm/sns.")],
    config: options.Config = options.DEFAULT_CONFIG,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 if files differ.")] = False,
    as_json: options.AsJson = False,
) -> int:
    """Write the configuration files for Slurm, systemd and the plugins. Files that are right already stay untouched."""
    from slurm_sns.cli.json_types import RenderJson
    from slurm_sns.config.configuration import load
    from slurm_sns.render import files
    from slurm_sns.render.texts import texts

    rendered = texts(load(config), config.absolute())
    changed = files.differing(directory, rendered) if check else files.write(directory, rendered)
    unchanged = sorted(set(rendered) - set(changed))
    if as_json:
        told: RenderJson = {
            "directory": str(directory),
            "changed": changed,
            "unchanged": unchanged,
            "written": not check,
        }
        print(json.dumps(told))
    else:
        for name in changed:
            print(f"{directory / name}: {'differs' if check else 'written'}")
        if not changed:
            print(f"{directory}: up to date, {len(unchanged)} files")
    return 1 if check and changed else 0


def sources() -> None:
    """Print the directory of conf/ and plugins/ in this installation, whose files are copied or built by hand."""
    from slurm_sns.package_files import shared_path

    print(shared_path("conf").parent)
