"""What `sns check` reads of a small site, for tests."""

from slurm_sns.slurm.site import Site


def small_site(**fields) -> Site:
    """A site whose partition batch is the default one, but for these fields."""
    told = {
        "version": "26.05.5",
        "library": 45,
        "built_for": "26.05.5",
        "binding": "pyslurm 25.11.2",
        "user": "slurm",
        "options": {},
        "memory_per_cpu_mb": 2000,
        "partitions": {"batch": True},
        "nodes": (),
        "plugin_dirs": (),
        "plugstack": None,
        "keeps_accounts": True,
        "priority_type": "priority/multifactor",
    }
    return Site(**{**told, **fields})
