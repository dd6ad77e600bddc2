"""Which jobs a look reads again, and which orders are withheld: with a table for slurmctld that counts its reads."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_sns.slurm.seen_jobs import ALL_S, LONG_S, MEASURED_S, MOST_AGAIN, MOVING, SeenJobs

WAITS, RUNS = 0, 1


@dataclass(frozen=True)
class Shown:
    """A record, as far as these tests need one; priority 0 is a hold."""

    state: int = WAITS
    tasks: int = 0
    wish: int = 1
    priority: int = 100
    user: int = 1

    @property
    def raw(self) -> bytes:
        return repr(self).encode()

    def but(self, names: frozenset[str]) -> dict[str, int]:
        return {name: value for name, value in vars(self).items() if name not in names}


@dataclass
class Table:
    """A slurmctld. A full read takes `load_s` by its clock."""

    load_s: float
    now_s: float = 0.0
    jobs: dict[int, Shown] = field(default_factory=dict)
    full_reads: int = 0
    single_reads: list[int] = field(default_factory=list)
    users_read: list[int] = field(default_factory=list)
    of_user_s: float = 0.0
    fails: bool = False

    def load(self) -> dict[int, Shown]:
        self._answer()
        self.now_s += self.load_s
        self.full_reads += 1
        return dict(self.jobs)

    def of(self, job_id: int) -> dict[int, Shown]:
        self._answer()
        self.single_reads.append(job_id)
        return {job_id: self.jobs[job_id]} if job_id in self.jobs else {}

    def of_user(self, user: int) -> dict[int, Shown]:
        self._answer()
        self.users_read.append(user)
        self.now_s += self.of_user_s
        return {job_id: job for job_id, job in self.jobs.items() if job.user == user}

    @staticmethod
    def users(jobs: Iterable[Shown]) -> set[int]:
        return {job.user for job in jobs}

    def states(self) -> dict[int, bytes]:
        self._answer()
        return {job_id: b"%d %d" % (job.state, job.tasks) for job_id, job in self.jobs.items()}

    def _answer(self) -> None:
        if self.fails:
            raise ConnectionError

    def forget_reads(self) -> None:
        self.full_reads, self.single_reads, self.users_read = 0, [], []

    def edit(self, job_id: int, **fields: int) -> None:
        self.jobs[job_id] = replace(self.jobs[job_id], **fields)


def known(table: Table) -> SeenJobs:
    return SeenJobs(lambda: SimpleNamespace(Jobs=table), lambda: table.now_s, least_jobs=1)


@pytest.fixture
def table() -> Table:
    return Table(2 * LONG_S, jobs={number: Shown() for number in range(1, 11)})


@pytest.fixture
def seen(table: Table) -> SeenJobs:
    """What has looked twice at a slurmctld that takes long: from then on it knows the states."""
    looks = known(table)
    looks.look()
    looks.look()
    table.forget_reads()
    return looks


def test_where_reading_all_is_quick_each_look_reads_all() -> None:
    table = Table(LONG_S / 2, jobs={1: Shown()})
    looks = known(table)
    for wish in range(5):
        table.edit(1, wish=wish)
        assert looks.look()[1].wish == wish
    assert (table.full_reads, table.single_reads) == (5, [])
    assert looks.outdated([1]) == set()
    assert table.single_reads == []


def test_a_binding_without_states_reads_all_at_each_look() -> None:
    table = Table(2 * LONG_S, jobs={1: Shown()})
    binding = SimpleNamespace(Jobs=SimpleNamespace(load=table.load))
    looks = SeenJobs(lambda: binding, lambda: table.now_s, least_jobs=1)
    assert [looks.look()[1] for _ in range(3)] == [Shown()] * 3
    assert table.full_reads == 3


def test_new_jobs_and_those_whose_state_or_tasks_changed_are_read_again(table: Table, seen: SeenJobs) -> None:
    table.jobs[11] = Shown(wish=7)
    table.edit(2, state=RUNS, wish=2)
    table.edit(3, tasks=5)
    del table.jobs[4]
    assert seen.look() == table.jobs
    assert (table.full_reads, sorted(table.single_reads)) == (0, [2, 3, 11])


def test_what_we_change_is_read_again_at_the_next_look(table: Table, seen: SeenJobs) -> None:
    assert seen.outdated([5]) == set()
    table.edit(5, wish=9)
    table.forget_reads()
    assert seen.look()[5].wish == 9
    assert table.single_reads == [5]


def test_a_job_that_its_owner_has_changed_gets_no_order_and_is_as_it_is_from_then_on(
    table: Table, seen: SeenJobs
) -> None:
    seen.look()
    table.edit(5, wish=9)
    assert seen.outdated([5, 6]) == {5}
    table.forget_reads()
    assert seen.outdated([5]) == {5}, "what is decided on it is as old as before"
    assert table.single_reads == []
    assert seen.look()[5].wish == 9


def test_what_slurmctld_changes_itself_withholds_no_order(table: Table, seen: SeenJobs) -> None:
    seen.look()
    assert "priority" in MOVING
    table.edit(5, priority=101)
    assert seen.outdated([5]) == set()


def test_a_job_that_is_gone_gets_no_order(table: Table, seen: SeenJobs) -> None:
    seen.look()
    del table.jobs[5]
    assert seen.outdated([5, 99]) == {5, 99}
    assert 5 not in seen.look()


def test_all_are_read_when_many_may_have_changed(table: Table, seen: SeenJobs) -> None:
    table.jobs |= {number: Shown() for number in range(100, 101 + MOST_AGAIN)}
    table.edit(5, wish=9)
    assert seen.look() == table.jobs
    assert (table.full_reads, table.single_reads, table.users_read) == (1, [], [])


def test_looks_read_the_jobs_of_each_user_in_turn_as_many_as_time_has_gone_by(table: Table) -> None:
    table.jobs = {number: Shown(user=number // 10) for number in range(100)}
    looks = known(table)
    looks.look(), looks.look()
    table.forget_reads()
    for number in table.jobs:
        table.edit(number, wish=9)
    read = []
    for _ in range(10):
        table.now_s += ALL_S / 10
        shown = looks.look()
        read.append(len(table.users_read))
        assert {job.user for job in shown.values() if job.wish == 9} == {*table.users_read}
    assert all(before < after <= before + 2 for before, after in pairwise([0, *read][:9]))
    assert {*table.users_read} == {*range(10)}
    assert (table.full_reads, table.single_reads) == (0, [])


def test_who_has_most_jobs_is_read_no_more_often_than_others_and_after_a_pause_all_once(table: Table) -> None:
    table.jobs = {number: Shown(user=min(10, number)) for number in range(100)}
    looks = known(table)
    looks.look()
    table.forget_reads()
    for _ in range(300):
        table.now_s += ALL_S / 100
        looks.look()
    assert {table.users_read.count(user) for user in range(11)} <= {2, 3, 4}
    table.forget_reads()
    table.now_s += 10 * ALL_S
    looks.look()
    assert sorted(table.users_read) == [*range(11)]


def test_all_are_read_at_once_now_and_then_and_where_that_is_quick_again_in_each_look(
    table: Table, seen: SeenJobs
) -> None:
    table.load_s = LONG_S / 2
    table.now_s += MEASURED_S - 1
    seen.look()
    assert table.full_reads == 0
    table.now_s += 1
    for _ in range(3):
        seen.look()
    assert table.full_reads == 3


def test_a_user_who_has_no_job_left_is_not_asked_for_and_a_new_one_is(table: Table, seen: SeenJobs) -> None:
    table.jobs = {20: Shown(user=2)}
    for _ in range(4):
        table.now_s += ALL_S
        assert seen.look() == table.jobs
    assert table.users_read == [1, 2, 2]


def test_before_very_many_orders_all_are_read_at_once(table: Table) -> None:
    table.jobs = {number: Shown() for number in range(MOST_AGAIN + 2)}
    looks = known(table)
    for _ in range(3):
        looks.look()
    table.edit(7, wish=2)
    table.forget_reads()
    shown = dict(table.jobs)
    del table.jobs[8]
    assert looks.outdated(shown) == looks.outdated(shown) == {7, 8}
    assert (table.full_reads, table.single_reads) == (1, [])
    assert looks.look() == table.jobs
    assert looks.outdated(table.jobs) == set()


def test_a_job_that_is_watched_is_read_by_each_look(table: Table, seen: SeenJobs) -> None:
    for priority in range(1, 4):
        table.edit(5, priority=priority)
        table.edit(6, priority=priority)
        shown = seen.look([5, 99])
        assert (shown[5].priority, shown[6].priority) == (priority, 100)
    assert (table.full_reads, table.single_reads) == (0, [5, 5, 5])


def test_reading_very_many_users_takes_a_part_of_the_time_and_each_has_a_turn(table: Table) -> None:
    table.jobs = {number: Shown(user=number) for number in range(200)}
    table.of_user_s = 1.0
    looks = known(table)
    looks.look(), looks.look()
    table.forget_reads()
    began_s = table.now_s
    while len(table.users_read) < 200:
        table.now_s += 10.0
        looks.look()
    assert len({*table.users_read}) == 200
    assert len(table.users_read) <= 0.3 * (table.now_s - began_s)


def test_a_job_that_is_held_or_no_longer_held_gets_no_order(table: Table, seen: SeenJobs) -> None:
    table.edit(6, priority=0)
    table.now_s += ALL_S
    seen.look()
    seen.look()
    table.edit(5, priority=0)
    table.edit(6, priority=100)
    table.edit(7, priority=99)
    assert seen.outdated([5, 6, 7]) == {5, 6}


def test_a_slow_read_of_few_jobs_says_nothing_about_the_next_one() -> None:
    table = Table(2 * LONG_S, jobs={number: Shown() for number in range(10)})
    looks = SeenJobs(lambda: SimpleNamespace(Jobs=table), lambda: table.now_s)
    for _ in range(3):
        looks.look()
    assert (table.full_reads, table.single_reads) == (3, [])


def test_states_from_before_quick_reads_are_not_compared_with(table: Table, seen: SeenJobs) -> None:
    table.edit(5, state=RUNS, wish=2)
    table.load_s = LONG_S / 2
    table.now_s += MEASURED_S
    seen.look()
    seen.look()
    table.load_s = 2 * LONG_S
    seen.look()
    table.edit(5, state=WAITS, wish=3)
    assert seen.look()[5] == table.jobs[5]


@pytest.mark.parametrize("asked", ["look", "outdated"])
def test_a_slurmctld_that_does_not_answer_leaves_nothing_unread(table: Table, seen: SeenJobs, asked: str) -> None:
    seen.look()
    seen.outdated([6])
    table.edit(5, state=RUNS, wish=9)
    table.edit(6, wish=8)
    table.fails = True
    with pytest.raises(ConnectionError):
        seen.look() if asked == "look" else seen.outdated([7])
    table.fails = False
    assert seen.look() == table.jobs


EVENTS = st.lists(
    st.tuples(st.sampled_from(["submit", "start", "task", "end", "edit", "order", "look", "wait"]), st.integers(0, 7)),
    max_size=40,
)


@given(EVENTS)
def test_no_order_goes_to_a_job_that_is_not_what_it_was_decided_on(events: list[tuple[str, int]]) -> None:
    table = Table(2 * LONG_S, jobs={number: Shown(tasks=3, user=number % 2) for number in range(4)})
    looks = known(table)
    looks.look()
    decided, just_read, ordered = dict(looks.look()), set(table.jobs), set[int]()
    for count, (what, number) in enumerate(events):
        table.now_s += 1
        match what:
            case "submit":
                table.jobs[number] = Shown(wish=1000 + count, user=number % 2)
            case "start" | "task" | "edit" if number in table.jobs:
                changes = {"start": {"state": RUNS}, "task": {"tasks": count}, "edit": {"wish": count}}
                table.edit(number, **changes[what])
            case "end":
                table.jobs.pop(number, None)
            case "order" if number in decided and number not in ordered:  # a cycle changes a job once
                ordered.add(number)
                if not looks.outdated([number]) and number in table.jobs:
                    assert table.jobs[number] == decided[number] or number in just_read
                    table.edit(number, wish=-count)
            case "look" | "wait":
                table.now_s += ALL_S if what == "wait" else 0
                table.forget_reads()
                decided = dict(looks.look())
                of_users = {job_id for job_id, job in table.jobs.items() if job.user in table.users_read}
                just_read = set(table.jobs) if table.full_reads else of_users | set(table.single_reads)
                _check_look(table, decided, ordered, just_read)
                ordered = set()


def _check_look(table: Table, decided: dict[int, Shown], ordered: set[int], just_read: set[int]) -> None:
    """The ids and states are those of now, and so is all else of a job that was read, or that we have changed."""
    assert decided.keys() == table.jobs.keys()
    assert ordered & table.jobs.keys() <= just_read
    for job_id, job in table.jobs.items():
        assert (decided[job_id].state, decided[job_id].tasks) == (job.state, job.tasks)
        assert decided[job_id] == job or job_id not in just_read
