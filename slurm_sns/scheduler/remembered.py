"""What is remembered over a restart beside the jobs' own records: tries of placements, policies' history, decisions.

All of it may be lost: that costs time, never correctness.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


@dataclass(frozen=True, slots=True)
class Try:
    """What came of the last placements of a waiting job that Slurm refused or did not start.

    Slurm may reuse job ids after its state was wiped; `submit_s` tells the jobs apart.

    Attributes:
        job_id: Slurm's id of the job, for an array's waiting tasks that of their record.
        submit_s: when it was submitted.
        failures: how many of its placements failed since its last start.
        tried_s: when it was last placed.
        retry_s: when it may be planned again.
        note: why the last placement failed.
        limited_by: Slurm's reason if that was a limit of the job's owner, otherwise empty.
    """

    job_id: int
    submit_s: int
    failures: int = 0
    tried_s: float = 0.0
    retry_s: float = 0.0
    note: str = ""
    limited_by: str = ""


class PolicyHistory(NamedTuple):
    """The history of a policy's last plan, as JSON in the form of this version; an empty text is no history."""

    policy: str
    version: int
    text: str


@dataclass(frozen=True, slots=True)
class Decision:
    """One line of the decision record: `action` is "start" (on `nodes`) or "note".

    `chosen` and `matched` are those of the cycle: the heuristic whose schedule was dispatched, and how many jobs each
    heuristic matched. For a start, `scale` and `demand` are those of the alternative that was taken (`demand` by
    resource, on each node), and `considered` says how a spreadable job's alternatives came about
    (policies.spread_n_share.explanation, as JSON values). A note that came several times in a row is one line, the last
    one; `times` counts them.
    """

    job_id: int
    user_id: int
    at_s: float
    action: str
    nodes: tuple[str, ...]
    reason: str
    cycle_id: int
    chosen: str
    matched: Mapping[str, int]
    scale: int = 1
    exclusive: bool = False
    demand: Mapping[str, int] = field(default_factory=dict)
    considered: Mapping[str, Any] | None = None
    times: int = 1
