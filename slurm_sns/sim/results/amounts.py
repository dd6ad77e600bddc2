"""Amounts as they stand in result files and traces: gigabytes, and decimal numbers."""

from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB


def gigabytes(memory_mb: int) -> str:
    """The memory in GB, exact: a MiB is a binary fraction of a GB."""
    whole, rest = divmod(memory_mb, MIB_PER_GB)
    return str(whole) if not rest else repr(memory_mb / MIB_PER_GB)


def decimal(number: float) -> str:
    """The number with up to six decimals, without zeros at the end."""
    return f"{number:.6f}".rstrip("0").rstrip(".")
