"""The watchdog frees gated jobs when, and only when, the scheduler shows no sign of life."""

import pytest
from fake_slurm import FakeSlurm
from live import ADVISED, FOREIGN, HELD, NOW, SLURMS

from slurm_sns.errors import Refused, Unreachable
from slurm_sns.scheduler.gate.orders import Placement, place
from slurm_sns.scheduler.watchdog import Watchdog, is_stale


class Case:
    def __init__(self) -> None:
        self.slurm = FakeSlurm({"c1": 4})
        self.slurm.submit(1)
        self.beat: float | None = NOW
        self.log: list[str] = []
        self.dog = self.watchdog(lambda: self.beat)

    def watchdog(self, last_beat) -> Watchdog:
        return Watchdog(self.slurm, self.slurm, last_beat, clock=self.slurm, log=self.log.append, timeout_s=30)

    def place(self) -> None:
        """Place the job as the scheduler does."""
        self.slurm.apply(place(self.slurm.jobs[1], Placement(("c1",), 1, 128_000, 3, 12), NOW, has_boost=True))

    @property
    def is_gated(self) -> bool:
        return not self.slurm.jobs[1].record.is_slurms


@pytest.fixture
def case() -> Case:
    return Case()


@pytest.mark.parametrize("beat", [NOW, NOW - 30, NOW + 30])
def test_a_scheduler_that_lives_is_left_alone(case: Case, beat: float) -> None:
    case.beat = beat
    assert case.dog.look() == 0
    assert case.is_gated
    assert case.log == []


@pytest.mark.parametrize("beat", [NOW - 30.5, 0, NOW + 31, None, float("nan"), float("inf")])
def test_gated_jobs_are_freed_when_the_heartbeat_is_old_missing_or_of_no_sense(case: Case, beat) -> None:
    case.beat = beat
    assert case.dog.look() == 1
    assert case.slurm.status(1) == ((), False, "the-scheduler-shows-no-sign-of-life")
    assert case.log == ["no heartbeat: freeing gated jobs", "job 1: left to Slurm: the scheduler shows no sign of life"]
    assert case.dog.look() == 0, "once"


@pytest.mark.parametrize("held", [{}, HELD, {"priority": 0, "reason": "BadConstraints"}])
def test_a_placed_job_that_never_started_has_nothing_of_ours_on_it_and_stays_held_if_it_is(case: Case, held) -> None:
    case.beat = None
    before = case.slurm.jobs[1]
    case.place()
    case.slurm.change(1, **held)
    assert case.dog.look() == 1
    after = case.slurm.jobs[1]
    assert (after.pinned_to, after.ways, after.memory_per_cpu_mb) == ((), 0, before.memory_per_cpu_mb)
    assert after.priority == (0 if held else before.priority)
    assert after.record.is_slurms


def test_jobs_without_our_record_and_slurms_own_are_not_touched(case: Case) -> None:
    case.beat = None
    for fields in (FOREIGN, ADVISED, SLURMS, {**FOREIGN, **HELD}):
        case.slurm.submit(1, **fields)
    before = dict(case.slurm.jobs)
    assert case.dog.look() == 1
    assert {job_id for job_id, job in case.slurm.jobs.items() if job != before[job_id]} == {1}


def test_a_job_that_cannot_be_freed_is_a_line_of_the_log_and_tried_again(case: Case) -> None:
    case.beat = None

    def refuse(_order) -> None:
        raise Refused("Job is no longer pending execution")

    free, case.slurm.free = case.slurm.free, refuse
    assert case.dog.look() == 0
    assert case.log[-1] == "job 1: could not be freed: Job is no longer pending execution"
    case.slurm.free = free
    assert case.dog.look() == 1


def test_a_job_that_is_gated_in_the_last_moment_is_freed_at_the_next_look(case: Case) -> None:
    case.beat = None
    case.dog.look()
    case.slurm.submit(1)
    assert case.dog.look() == 1


def test_it_leaves_the_rest_to_a_scheduler_that_lives_again_meanwhile(case: Case) -> None:
    case.beat = None
    case.slurm.submit(1, 1)
    free = case.slurm.free

    def then_it_lives(order) -> None:
        free(order)
        case.beat = NOW

    case.slurm.free = then_it_lives
    assert case.dog.look() == 1
    assert [case.slurm.status(each)[1] for each in (1, 2, 3)] == [False, True, True]
    assert case.log[-1] == "heartbeat is back"


def test_it_says_when_the_heartbeat_is_back(case: Case) -> None:
    case.beat = None
    case.dog.look()
    case.beat = NOW
    case.dog.look()
    assert case.log[-1] == "heartbeat is back"


@pytest.mark.parametrize(("step_s", "words"), [(3600, "forward by 3600 s"), (-3600, "back by 3600 s")])
def test_a_clock_that_is_set_gives_a_living_scheduler_time_to_beat_by_it(case: Case, step_s: int, words: str) -> None:
    case.slurm.step(step_s)
    assert case.dog.look() == 0
    case.slurm.sleep(1)
    case.beat = case.slurm.now()
    for _ in range(10):
        assert case.dog.look() == 0
        case.slurm.sleep(1)
    assert case.log == [f"the clock was set {words}"]


@pytest.mark.parametrize("step_s", [3600, -3600])
@pytest.mark.parametrize("beats", ["before", "after"])
def test_a_clock_that_is_set_during_a_look_frees_nothing(case: Case, step_s: int, beats: str) -> None:
    def beat_around_the_step() -> float:
        if beats == "before":
            beat = case.slurm.now()
            case.slurm.step(step_s)
            return beat
        case.slurm.step(step_s)
        return case.slurm.now()

    dog = case.watchdog(beat_around_the_step)
    assert dog.look() == 0
    assert case.is_gated


@pytest.mark.parametrize("step_s", [50, -3600])
def test_a_clock_that_is_set_keeps_no_job_of_a_dead_scheduler_gated(case: Case, step_s: int) -> None:
    case.slurm.step(step_s)
    freed = []
    for _ in range(5):
        freed.append(case.dog.look())
        case.slurm.sleep(1)
    assert freed == [0, 0, 0, 1, 0]


def test_a_slurmctld_that_does_not_answer_is_asked_again_and_logged_once(case: Case) -> None:
    answers = iter([False, False, True])
    observe = case.slurm.observe

    def sometimes():
        if next(answers):
            return observe()
        raise Unreachable("slurmctld does not answer: no")

    case.slurm.observe = sometimes
    case.beat = None
    looks = iter([False] * 3)
    case.dog.run(1.0, lambda: next(looks, True))
    assert case.log == [
        "no heartbeat: freeing gated jobs",
        "slurmctld does not answer: no; trying again",
        "job 1: left to Slurm: the scheduler shows no sign of life",
        "over after 2 s: slurmctld does not answer: no",
    ]


@pytest.mark.parametrize(("beat", "stale"), [(100, False), (70, False), (69, True), (130, False), (131, True)])
def test_the_limit_itself_is_still_alive(beat: float, stale: bool) -> None:
    assert is_stale(beat, 100, 30) is stale


def test_a_defect_ends_no_watchdog(case: Case) -> None:
    case.beat = None
    real, looks = case.slurm.observe, []

    def observe():
        looks.append(1)
        if len(looks) == 1:
            raise ZeroDivisionError("a record of tomorrow")
        return real()

    case.slurm.observe = observe
    case.dog.run(1.0, lambda: len(looks) > 1)
    assert not case.is_gated
    assert sum("Traceback" in line for line in case.log) == 1


def test_while_slurmctld_acts_elsewhere_nothing_is_freed_however_old_the_heartbeat_is(case: Case) -> None:
    on_duty = [False]
    dog = Watchdog(
        *(case.slurm, case.slurm, lambda: None),
        clock=case.slurm,
        log=case.log.append,
        timeout_s=30,
        is_on_duty=lambda: on_duty[0],
    )
    assert dog.look() == 0
    assert case.is_gated
    assert len(case.log) == 1
    assert dog.status == case.log[0]
    assert dog.status.startswith("standing by: slurmctld acts on another host")
    on_duty[0] = True
    assert dog.look() == 1
    assert case.log[1:3] == ["slurmctld acts on this host: on duty", "no heartbeat: freeing gated jobs"]


def test_a_backup_that_has_taken_over_while_the_answer_was_waited_for_keeps_its_jobs(case: Case) -> None:
    on_duty = [True]

    class Slow(FakeSlurm):
        def observe(self):  # type: ignore[no-untyped-def] # of the fake
            on_duty[0] = False
            return case.slurm.observe()

    state = Slow({})
    log = case.log.append
    dog = Watchdog(
        *(state, case.slurm, lambda: None), clock=case.slurm, log=log, timeout_s=30, is_on_duty=lambda: on_duty[0]
    )
    assert dog.look() == 0
    assert case.is_gated
