"""Makes a schedule that violates a promise smaller: the fewest steps, and the plainest jobs, which still do.

Delta debugging (Zeller and Hildebrandt, 2002): chunks of steps are left out, large ones first, then single steps, until
none can go. Then what is left is made plainer: jobs lose what they ask for besides tasks, traps become moments,
partitions go. A smaller schedule counts only if it violates the same promise, which the beginning of the sentence
names.
"""

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

from world.kernel import Broken
from world.run import run, violations
from world.schedule import Schedule, Step
from world.schedule_agents import PLAIN, concerns_agents

#: A schedule is tried at most so many times while it is shrunk.
MOST_TRIES = 1500
#: What stays of a job that is made plainer.
NEEDED = frozenset({"tasks", "run_s", "walltime_s", "partition", "account"})

Check = Callable[[Schedule], Iterable[str]]


def promises_violated(schedule: Schedule) -> list[str]:
    """The sentences of a run; a simulation that fails counts as one."""
    try:
        return violations(run(schedule))
    except Broken as problem:
        return [f"the simulation failed: {problem}"]


def named(sentences: Iterable[str]) -> set[str]:
    """The promises that the sentences name: what stands before the first colon."""
    return {sentence.partition(":")[0] for sentence in sentences}


def shrunk(schedule: Schedule, check: Check = promises_violated) -> Schedule | None:
    """A smallest schedule that violates one of the same promises; None if this one violates none."""
    wanted = named(check(schedule))
    if not wanted:
        return None
    return _Shrinking(schedule, lambda smaller: bool(named(check(smaller)) & wanted)).smallest()


class _Shrinking:
    """One schedule on its way."""

    def __init__(self, schedule: Schedule, fails: Callable[[Schedule], bool]) -> None:
        self._best, self._fails = schedule, fails
        self._tries = 0

    def smallest(self) -> Schedule:
        while self._tries < MOST_TRIES:
            before = self._best
            self._leave_out()
            for candidate in iter(self._next_plainer, None):
                self._best = candidate
            if self._best == before:
                break
        return self._best

    def _is_smaller(self, candidate: Schedule) -> bool:
        self._tries += 1
        if self._tries > MOST_TRIES or not self._fails(candidate):
            return False
        self._best = candidate
        return True

    def _leave_out(self) -> None:
        """Leave out chunks of steps, each half as large as those before."""
        size = max(1, len(self._best.steps) // 2)
        while True:
            at = 0
            while at < len(self._best.steps):
                steps = self._best.steps
                if not self._is_smaller(replace(self._best, steps=steps[:at] + steps[at + size :])):
                    at += size
            if size == 1:
                return
            size = max(1, size // 2)

    def _next_plainer(self) -> Schedule | None:
        return next((each for each in self._plainer() if self._is_smaller(each)), None)

    def _plainer(self) -> Iterator[Schedule]:
        """Schedules that are plainer than the best by one thing."""
        best = self._best
        if best.ending != "healthy":
            yield replace(best, ending="healthy")
        if best.policy != "max-jobs":
            yield replace(best, policy="max-jobs")
        if best.agents is not None:
            yield replace(best, agents=None, steps=[each for each in best.steps if not concerns_agents(each)])
            for name, plain in PLAIN.items():
                if best.agents[name] != plain:
                    yield replace(best, agents={**best.agents, name: plain})
        if best.restarts is not None:
            yield replace(best, restarts=None)
        if best.many != 64:
            yield replace(best, many=64)
        for name in list(best.partitions):
            if name != "main":
                partitions = {key: value for key, value in best.partitions.items() if key != name}
                managed = tuple(each for each in best.managed if each != name)
                steps = [each for each in best.steps if name not in _words(each.data)]
                yield replace(best, partitions=partitions, managed=managed, steps=steps)
        for at, step in enumerate(best.steps):
            for plainer in _plainer_steps(step):
                yield replace(best, steps=[*best.steps[:at], plainer, *best.steps[at + 1 :]])


def _words(value: object) -> set[str]:
    """All texts in the data of a step, and the parts of lists of partitions."""
    if isinstance(value, dict):
        return set().union(*map(_words, value.values()))
    return set(value.split(",")) if isinstance(value, str) else set()


def _plainer_steps(step: Step) -> Iterator[Step]:
    if "trap" in step.data and step.what != "lost":
        yield _with(step, lambda data: data.pop("trap"))
    if step.what == "edit":
        for name in step.data["fields"]:
            if len(step.data["fields"]) > 1:
                yield _with(step, lambda data, name=name: data["fields"].pop(name))
    if step.what != "submit":
        return
    asked = step.data["asked"]
    for name in asked:
        if name not in NEEDED:
            yield _with(step, lambda data, name=name: data["asked"].pop(name))
    for name, plain in (("tasks", 1), ("walltime_s", 600), ("run_s", 3.0)):
        if asked[name] != plain:
            yield _with(step, lambda data, name=name, plain=plain: data["asked"].update({name: plain}))


def _with(step: Step, change: Callable[[dict[str, Any]], object]) -> Step:
    data = deepcopy(step.data)
    change(data)
    return Step(step.at_s, step.what, data)
