"""Short schedules with few jobs, to which much happens.

In the same time more than twice as many run as of those of `drawn`, whose time goes mostly into jobs that nothing
happens to. So they show rare orders of events sooner. What they leave out is long stories, floods of jobs and agents.
"""

from typing import Any

from world.schedule import GROUPS, Drawing, Schedule, with_faults

#: How often a job is an array, besides those of `drawn`, and how often that has a limit.
ARRAY, LIMITED = 0.3, 0.5
#: What people do comes so much more often than what fails.
OFTEN = 2


def dense(seed: int) -> Schedule:
    """The dense schedule of this seed."""
    return with_faults(_Dense(seed).schedule())


class _Dense(Drawing):
    """Draws one dense schedule."""

    def schedule(self) -> Schedule:
        self.story_s = self.random.triangular(5.0, 12.0, 6.5)
        policy = "combined" if self.chance(0.12) else "max-jobs"
        self.draw_site(is_spread=policy == "combined")
        for label in range(self.one(1, 1, 2, 2, 3, 4)):
            self.draw_submission(label)
        groups = {draw: weight * self._often(draw) for draw, _, weight in GROUPS if draw is not Drawing.flood}
        kinds = [draw for draw in groups if self.chance(min(1.0, 0.15 + 0.12 * groups[draw]))] or [Drawing.edit]
        if not {Drawing.edit, Drawing.hold} & set(kinds):
            kinds.append(self.one(Drawing.edit, Drawing.hold))
        for _ in range(self.random.randint(3, 9)):
            self.random.choices(kinds, [groups[draw] for draw in kinds])[0](self)
        return self.finished(policy)

    @staticmethod
    def _often(draw: Any) -> int:
        return OFTEN if draw in (Drawing.edit, Drawing.hold, Drawing.requeue) else 1

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
