"""The parameters of matching, with the paper's or its authors' defaults."""

from dataclasses import dataclass

#: The paper's five (section 4), in the order that breaks ties between equally good schedules.
PAPER_PORTFOLIO = ("best-fit-memory", "worse-fit-memory", "best-fit-cores", "worse-fit-cores", "mix-fit")


@dataclass(frozen=True, slots=True)
class MatchingParameters:
    """How one cycle matches.

    `portfolio`: heuristics that compete; one name makes Max-Jobs that heuristic alone. `queue_depth`: how many jobs of
    the ordered queue a cycle looks at. `reservations`: at how many of the first queue positions an unmatched job has
    capacity withheld. `default_heuristic`: the pool's choice for jobs that name none; None leaves it to the member.
    """

    portfolio: tuple[str, ...] = PAPER_PORTFOLIO
    queue_depth: int = 1000
    reservations: int = 1
    default_heuristic: str | None = None
