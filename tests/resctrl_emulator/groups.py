"""A group of the tree: a control group with a CLOSID, or a monitoring group inside of one."""

from dataclasses import dataclass, field


@dataclass(eq=False)
class Group:
    """`parent`: the control group of a monitoring group, None for a control group. `rmid`: None without monitoring."""

    name: str
    closid: int
    rmid: int | None = None
    parent: "Group | None" = None
    is_exclusive: bool = False
    is_removed: bool = False
    owner: tuple[int, int] = (0, 0)
    cpus: set[int] = field(default_factory=set)
    monitors: dict[str, "Group"] = field(default_factory=dict)

    @property
    def rmids(self) -> tuple[int, ...]:
        """The RMIDs that its files sum up."""
        return tuple(group.rmid for group in (self, *self.monitors.values()) if group.rmid is not None)
