"""`sns draft`: a first sns.yaml; `sns sources`: the directory of the files that an admin builds or copies."""

from typing import Annotated

import typer


def draft(
    partition: Annotated[
        list[str] | None,
        typer.Option("--partition", help="A partition to manage (repeatable); default: the default partition."),
    ] = None,
    llc_ways: Annotated[
        int, typer.Option(min=0, max=64, help="Last-level-cache ways of each node; 0: not managed.")
    ] = 0,
    bandwidth_gbps: Annotated[int, typer.Option(min=0, max=100_000, help="GB/s of each node; 0: not managed.")] = 0,
) -> None:
    """Print a first sns.yaml, from the running Slurm and its slurm.conf: read it, change it, put it into /etc/slurm."""
    from slurm_sns.config.settings import PathsSection
    from slurm_sns.slurm.api import configuration_path
    from slurm_sns.slurm.check import conf_text
    from slurm_sns.slurm.check.files import site_words
    from slurm_sns.slurm.draft import draft as text
    from slurm_sns.slurm.site import read_site

    site = read_site()
    words = site_words(conf_text.read(configuration_path()), PathsSection().slurm_dir)
    print(text(site, words, partition or (), llc_ways=llc_ways, bandwidth_gbps=bandwidth_gbps), end="")


def sources() -> None:
    """Print the directory of conf/ and plugins/ in this installation, whose files are copied or built by hand."""
    from slurm_sns.package_files import shared_path

    print(shared_path("conf").parent)
