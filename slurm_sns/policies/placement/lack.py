"""What a node lacks for a job to fit, in the words that plans and `sns explain` show; it needs no numpy."""

from dataclasses import dataclass

from slurm_sns.model import Resources


@dataclass(frozen=True, slots=True)
class Lack:
    """A node and how much it lacks of each resource (0 where there is enough)."""

    node: str
    lacks: Resources
    not_empty: bool = False

    def __str__(self) -> str:
        """As in: c3 lacks 4 cores and 2000 MiB."""
        units = (
            "core" if self.lacks.cores == 1 else "cores",
            "MiB",
            "ways",
            "GB/s of bandwidth",
            "CLOSID (each job with cache ways there has one)",
        )
        parts = [f"{amount} {unit}" for amount, unit in zip(self.lacks, units, strict=True) if amount > 0]
        if parts:
            return f"{self.node} lacks {' and '.join(parts)}"
        return (
            f"{self.node} is not empty" if self.not_empty else f"{self.node} has no room for even 1 core and 1024 MiB"
        )
