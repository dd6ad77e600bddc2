"""The watchdog releases held jobs when, and only when, the scheduler shows no sign of life."""

import pytest
from fake_slurm import FakeSlurm
from live import NOW

from slurm_sns.errors import Refused, Unreachable
from slurm_sns.scheduler.observe.records import JobRecord, Stage
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.watchdog import Watchdog, is_stale


class Case:
    def __init__(self, mode: str = "enforce") -> None:
        self.slurm = FakeSlurm({"c1": 4})
        self.slurm.submit(1)
        self.beat: float | None = NOW
        self.log: list[str] = []
        self.records: dict[int, JobRecord] = {}
        self.dog = Watchdog(
            self.slurm,
            self.slurm,
            lambda: self.beat,
            clock=self.slurm,
            log=self.log.append,
            timeout_s=30,
            settings=Settings(mode=mode),
            records=lambda: self.records,
        )

    @property
    def is_held(self) -> bool:
        return self.slurm.jobs[1].priority == 0


@pytest.fixture
def case() -> Case:
    return Case()


@pytest.mark.parametrize("beat", [NOW, NOW - 30, NOW + 30])
def test_a_scheduler_that_lives_is_left_alone(case: Case, beat: float) -> None:
    case.beat = beat
    assert case.dog.look() == 0
    assert case.is_held
    assert case.log == []


@pytest.mark.parametrize("beat", [NOW - 30.5, 0, NOW + 31, None, float("nan"), float("inf")])
def test_held_jobs_are_released_when_the_heartbeat_is_old_missing_or_of_no_sense(case: Case, beat) -> None:
    case.beat = beat
    assert case.dog.look() == 1
    assert not case.is_held
    assert case.log[0] == "no heartbeat: releasing held jobs"


def test_a_placed_job_that_was_requeued_and_held_loses_our_boost_without_record_and_nodes(case: Case) -> None:
    """The store was lost, and its owner has cleared our node list."""
    case.beat = None
    case.slurm.change(1, nice=-60_000, restarts=1, reason="job requeued in held state")
    assert case.dog.look() == 0
    assert (case.is_held, case.slurm.jobs[1].nice) == (True, 0)


def test_a_placed_job_whose_owner_clears_its_nodes_loses_our_boost_without_record(case: Case) -> None:
    case.beat = None
    case.slurm.change(1, nice=-60_000, priority=900)
    case.dog.look()
    assert (case.slurm.jobs[1].nice, case.slurm.jobs[1].is_slurms) == (0, True)


def test_a_job_that_its_owner_holds_is_not_released(case: Case) -> None:
    case.beat = None
    case.slurm.change(1, pinned_to=("c1",), nice=-60_000)
    case.slurm.submit(1, extra="")
    case.slurm.submit(1, extra="sns:1 advised")
    assert case.dog.look() == 0


@pytest.mark.parametrize("stage", [Stage.HELD, Stage.PLACED])
def test_a_job_that_its_owner_holds_after_we_released_it_is_not_released_again(case: Case, stage: Stage) -> None:
    """Neither by the watchdog, whose records are those of a scheduler that is dead, nor by the next scheduler."""
    case.beat = None
    if stage is Stage.PLACED:
        case.slurm.change(1, pinned_to=("c1",), priority=1500, nice=-60_000)
    case.records = {1: JobRecord(1, case.slurm.jobs[1].submit_s, stage, ("c1",) if stage is Stage.PLACED else ())}
    assert case.dog.look() == 1
    case.slurm.change(1, priority=0, reason="JobHeldUser")
    assert case.dog.look() == 0
    case.records = {}
    assert case.dog.look() == 0
    assert case.is_held


def test_a_job_that_was_placed_and_never_started_is_unpinned_too(case: Case) -> None:
    case.beat = None
    case.slurm.change(1, pinned_to=("c1",), priority=1500, nice=-60_000)
    assert case.dog.look() == 1
    assert (case.slurm.jobs[1].pinned_to, case.is_held) == ((), False)


def test_a_job_that_slurm_holds_because_of_our_placement_is_released_and_an_administrators_hold_is_not(
    case: Case,
) -> None:
    case.beat = None
    case.slurm.change(1, pinned_to=("c1",), priority=0, nice=-60_000, reason="BadConstraints")
    assert case.dog.look() == 1
    assert (case.slurm.jobs[1].pinned_to, case.is_held) == ((), False)
    case.slurm.change(1, pinned_to=(), priority=0, nice=0, reason="JobHeldAdmin")
    assert case.dog.look() == 0


def test_a_job_whose_placement_cannot_be_taken_back_is_not_released(case: Case) -> None:
    """Released with our boost, which nobody would remove, it would be the first in its partition."""
    case.beat = None
    case.slurm.change(1, pinned_to=("c1",), priority=0, nice=-60_000, reason="BadConstraints")

    def refuse(_change) -> None:
        raise Refused("Job is no longer pending execution")

    case.slurm.unpin = refuse
    assert case.dog.look() == 0
    assert case.is_held
    assert case.log[-1] == "job 1: could not be released: Job is no longer pending execution"


def test_a_job_whose_mark_is_gone_is_known_from_the_store(case: Case) -> None:
    case.beat = None
    case.slurm.change(1, extra="mine")
    assert case.dog.look() == 0
    case.records = {1: JobRecord(1, case.slurm.jobs[1].submit_s, Stage.HELD)}
    assert case.dog.look() == 1
    assert not case.is_held


def test_a_placed_job_without_a_mark_that_its_owner_holds_keeps_our_nodes_which_say_so_until_it_is_free(
    case: Case,
) -> None:
    case.beat = None
    case.slurm.change(1, pinned_to=("c1",), priority=0, nice=-60_000, reason="JobHeldUser", extra="mine")
    case.records = {1: JobRecord(1, case.slurm.jobs[1].submit_s, Stage.PLACED, ("c1",))}
    for _ in range(2):
        assert case.dog.look() == 0
        assert (case.slurm.jobs[1].pinned_to, case.is_held) == (("c1",), True)
    case.slurm.change(1, priority=1500, reason="")
    assert case.dog.look() == 1
    assert (case.slurm.jobs[1].pinned_to, case.slurm.jobs[1].nice) == ((), 0)


@pytest.mark.parametrize("mode", ["observe", "advise"])
def test_what_an_earlier_enforce_left_held_is_released_in_any_mode(mode: str) -> None:
    case = Case(mode)
    case.beat = None
    case.slurm.submit(1, extra="sns:1 advised")
    assert case.dog.look() == 1
    assert (case.is_held, case.slurm.jobs[2].priority) == (False, 0)


def test_a_job_held_in_the_last_moment_is_released_at_the_next_look(case: Case) -> None:
    case.beat = None
    case.dog.look()
    case.slurm.submit(1)
    assert case.dog.look() == 1


def test_it_leaves_the_rest_to_a_scheduler_that_lives_again_meanwhile(case: Case) -> None:
    case.beat = None
    case.slurm.submit(1, 1)
    release = case.slurm.release

    def then_it_lives(order) -> None:
        release(order)
        case.beat = NOW

    case.slurm.release = then_it_lives
    assert case.dog.look() == 1
    assert [job.priority for job in case.slurm.jobs.values()] == [1000, 0, 0]
    assert case.log[-1] == "heartbeat is back"


def placed_by_a_dead_scheduler(case: Case) -> int:
    """The job is placed on c1, and no heartbeat is left. Returns when it was submitted."""
    case.beat = None
    submit_s = case.slurm.jobs[1].submit_s
    case.slurm.change(1, pinned_to=("c1",), priority=1500, nice=-60_000)
    case.records = {1: JobRecord(1, submit_s, Stage.PLACED, ("c1",))}
    return submit_s


@pytest.mark.parametrize(
    ("stage", "reason", "is_held"),
    [
        (Stage.HOLDING, "JobHeldUser", False),
        (Stage.HELD, "JobHeldUser", False),
        (Stage.HOLDING, "JobHeldAdmin", True),
        (Stage.RELEASED, "JobHeldUser", True),  # its owner's, by the records
        (Stage.PLACED, "JobHeldUser", True),
    ],
)
@pytest.mark.parametrize("beat", [NOW, None])
def test_a_hold_of_a_scheduler_that_lived_again_is_ended_where_the_mark_says_now_that_the_job_is_slurms(
    case: Case, stage: Stage, reason: str, is_held: bool, beat: float | None
) -> None:
    """The watchdog may stand still between its last check of a job and the change of the job; so may the scheduler."""
    submit_s = placed_by_a_dead_scheduler(case)
    unpin = case.slurm.unpin

    def then_it_lives(change) -> None:
        unpin(change)
        case.beat = beat
        case.records = {1: JobRecord(1, submit_s, stage)}
        case.slurm.change(1, priority=0, reason=reason)

    case.slurm.unpin = then_it_lives
    assert case.dog.look() == 1
    assert case.is_held is is_held


def test_the_next_look_ends_that_hold_where_the_answer_to_the_change_was_lost(case: Case) -> None:
    submit_s = placed_by_a_dead_scheduler(case)
    unpin = case.slurm.unpin

    def then_it_lives(change) -> None:
        unpin(change)
        case.beat = NOW
        case.records = {1: JobRecord(1, submit_s, Stage.HOLDING)}
        case.slurm.change(1, priority=0, reason="JobHeldUser")
        raise Unreachable("slurmctld does not answer: the reply was lost")

    case.slurm.unpin = then_it_lives
    with pytest.raises(Unreachable):
        case.dog.look()
    assert case.is_held
    assert case.dog.look() == 0
    assert not case.is_held
    case.slurm.change(1, priority=0, reason="JobHeldUser")
    assert case.dog.look() == 0
    assert case.is_held, "a later hold is its owner's"


def test_an_owners_hold_just_after_the_release_stays_when_the_scheduler_lives_again(case: Case) -> None:
    case.beat = None
    case.records = {1: JobRecord(1, case.slurm.jobs[1].submit_s, Stage.HELD)}
    release = case.slurm.release

    def then_it_lives(order) -> None:
        release(order)
        case.beat = NOW
        case.slurm.change(1, priority=0, reason="JobHeldUser")

    case.slurm.release = then_it_lives
    assert case.dog.look() == 1
    assert case.is_held


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
def test_a_clock_that_is_set_during_a_look_releases_nothing(case: Case, step_s: int, beats: str) -> None:
    def beat_around_the_step() -> float:
        if beats == "before":
            beat = case.slurm.now()
            case.slurm.step(step_s)
            return beat
        case.slurm.step(step_s)
        return case.slurm.now()

    dog = Watchdog(
        case.slurm,
        case.slurm,
        beat_around_the_step,
        clock=case.slurm,
        log=case.log.append,
        timeout_s=30,
        settings=Settings(mode="enforce"),
    )
    assert dog.look() == 0
    assert case.is_held


@pytest.mark.parametrize("step_s", [3600, -3600])
def test_a_clock_that_is_set_keeps_no_job_of_a_dead_scheduler_held(case: Case, step_s: int) -> None:
    case.slurm.step(step_s)
    released = []
    for _ in range(5):
        released.append(case.dog.look())
        case.slurm.sleep(1)
    assert released == [0, 0, 0, 1, 0]


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
        "no heartbeat: releasing held jobs",
        "slurmctld does not answer: no; trying again",
        "job 1: released to Slurm: the scheduler shows no sign of life",
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
    assert not case.is_held
    assert sum("Traceback" in line for line in case.log) == 1
