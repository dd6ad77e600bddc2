"""Short schedules with few jobs, to which much happens.

In the same time more than twice as many run as of those of `drawn`, whose time goes mostly into jobs that nothing
happens to. So they show rare orders of events sooner. What they leave out is long stories, floods of jobs and agents.
"""

from typing import Any

from world.schedule import Drawing, Schedule

#: How often a job is an array, besides those of `drawn`, and how often that has a limit.
ARRAY, LIMITED = 0.3, 0.5


def dense(seed: int) -> Schedule:
    """The dense schedule of this seed."""
    return _Dense(seed).schedule()


class _Dense(Drawing):
    """Draws one dense schedule."""

    jobs, happenings = (1, 4), (3, 9)

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.story_s = self.random.triangular(5.0, 12.0, 6.5)

    def flood(self) -> None:
        """Much happens to few jobs."""
        self.edit()

    def draw_asked(self, label: int) -> dict[str, Any]:
        asked = super().draw_asked(label)
        if "array" in asked or not self.chance(ARRAY):
            return asked
        asked |= {"array": list(range(self.random.randint(2, 5))), "tasks": self.one(1, 1, 2)}
        asked["run_s"] = self.between(0.5, 3.0)
        if asked.get("nodes_min", 1) > asked["tasks"]:
            asked |= {"nodes_min": 1, "nodes_max": 1}
        if self.chance(LIMITED):
            asked["array_limit"] = self.one(1, 2, 3)
        return asked
