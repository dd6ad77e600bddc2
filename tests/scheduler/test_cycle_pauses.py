"""When cycles begin, where jobs are submitted between them: with a clock that is set by hand."""

from slurm_sns.scheduler.cycle_pauses import CyclePauses


class Submitting:
    """A clock, and jobs that are submitted at these moments by it."""

    def __init__(self, *moments_s: float) -> None:
        self.now_s, self.seen_s, self.moments_s = 0.0, 0.0, moments_s

    def now(self) -> float:
        return self.now_s

    steady = now

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.now_s += seconds

    def forget(self) -> None:
        self.seen_s = self.now_s

    def wait(self, seconds: float) -> bool:
        until_s = self.now_s + seconds
        found = [each for each in self.moments_s if self.seen_s < each <= until_s]
        self.now_s = max(self.now_s, min(found, default=until_s))
        return bool(found)

    def cycles_s(self, number: int, *, took_s: float = 0.0, least_s: float = 0.0) -> list[float]:
        """When so many cycles begin that take so long, with a pause of a second after each."""
        pauses, found = CyclePauses(self, self), []
        for _ in range(number):
            pauses.end()
            found.append(round(self.now_s, 3))
            self.now_s += took_s
            pauses.begin(1.0 - took_s, least_s)
        return found


def test_a_submission_ends_a_pause_and_the_regular_cycle_stays_where_it_is() -> None:
    assert Submitting(0.3, 1.9).cycles_s(6) == [0, 0.3, 1, 1.9, 2, 3]


def test_one_that_comes_during_a_cycle_ends_the_pause_after_it_and_one_before_it_does_not() -> None:
    assert Submitting(0.05).cycles_s(3, took_s=0.1) == [0, 0.1, 1]
    assert Submitting(0.3, 0.5, 0.7).cycles_s(4, took_s=0.1) == [0, 0.3, 1, 2]


def test_a_flood_of_submissions_makes_twice_as_many_cycles() -> None:
    flood = Submitting(*[at / 100 for at in range(1, 1001)])
    assert flood.cycles_s(20)[::2] == [*range(10)]


def test_an_early_cycle_keeps_apart_from_those_around_it() -> None:
    assert Submitting(0.1).cycles_s(3, least_s=0.3) == [0, 0.3, 1]
    assert Submitting(0.8).cycles_s(3, least_s=0.3) == [0, 1, 2]
    assert Submitting(0.1).cycles_s(3, least_s=0.5) == [0, 1, 2]
    assert Submitting(0.1).cycles_s(3, least_s=1.5) == [0, 1, 2]
    assert Submitting(0.1, 0.3).cycles_s(4, took_s=0.2, least_s=0.2) == [0, 0.4, 1, 2]


def test_where_nobody_tells_of_submissions_cycles_are_regular() -> None:
    clock = Submitting(0.3)
    pauses = CyclePauses(clock, None)
    for _ in range(2):
        pauses.end()
        pauses.begin(1.0, 0.0)
    assert clock.now_s == 2
