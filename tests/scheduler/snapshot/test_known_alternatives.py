"""What one user's jobs of many sizes cost, and whom: the ways of new sizes are found a number of them in each look."""

from dataclasses import replace

import pytest
from live import ALICE, BOB, ENFORCE, NOW, job, look, node, planned

from slurm_sns.errors import Closed, Infeasible
from slurm_sns.model import Alternative, Resources
from slurm_sns.policies.base import Choice
from slurm_sns.policies.profile import Program
from slurm_sns.scheduler.observation import ObservedJob
from slurm_sns.scheduler.snapshot.situation import Situation, read_situation
from slurm_sns.scheduler.snapshot.spreading import KnownAlternatives, SpreadRules

CHOICE = Choice((Alternative(1, Resources(1, 1)),))
LATER = "its owner has jobs of more than 2 new sizes: this one is looked at in a later cycle"


class Work:
    """Finds the same ways for every size, and counts how often."""

    def __init__(self) -> None:
        self.done = 0

    def __call__(self) -> Choice:
        self.done += 1
        return CHOICE


def test_a_size_is_worked_out_once_for_all_jobs_and_looks_in_which_some_job_has_it() -> None:
    known, work = KnownAlternatives(), Work()
    for _ in range(3):
        known.begin_cycle()
        assert [known.choice("small", None, user, work) for user in (ALICE, BOB)] == [CHOICE, CHOICE]
    assert work.done == 1


def test_a_size_that_no_job_had_for_a_whole_look_is_forgotten() -> None:
    known, work = KnownAlternatives(), Work()
    known.choice("small", None, ALICE, work)
    known.begin_cycle()
    known.begin_cycle()
    known.choice("small", None, ALICE, work)
    assert work.done == 2


def test_what_follows_from_a_profile_is_worked_out_anew_when_the_profile_is_another() -> None:
    known, work = KnownAlternatives(), Work()
    for profile in (Program("mg", ()), Program("mg", ()), Program("mg", (), 2), None):
        known.choice("small", profile, ALICE, work)
    assert work.done == 3


def test_that_a_job_can_never_run_is_known_as_well() -> None:
    known, never = KnownAlternatives(1), Infeasible("too large")
    assert [known.choice("huge", None, ALICE, lambda: never) for _ in range(3)] == 3 * [never]


def test_beyond_its_number_of_new_sizes_a_users_others_wait_and_nobody_elses() -> None:
    known, work = KnownAlternatives(2), Work()
    known.choice("a", None, ALICE, work)
    known.choice("b", None, ALICE, work)
    with pytest.raises(Closed, match=LATER):
        known.choice("c", None, ALICE, work)
    assert known.choice("a", None, ALICE, work) == CHOICE, "what is known costs nothing"
    assert known.choice("c", None, BOB, work) == CHOICE
    assert known.choice("c", None, ALICE, work) == CHOICE, "whoever made it known"


# --- in a look


def of_sizes(number: int, *, first: int = 1, **fields) -> list[ObservedJob]:
    return [job(first + at, memory_per_cpu_mb=1000 + at, **fields) for at in range(number)]


def looked(jobs: list[ObservedJob], spreading: SpreadRules, nodes=None) -> Situation:
    return read_situation(look(*jobs, nodes=nodes), {}, ENFORCE, NOW, spreading)


def test_jobs_of_many_sizes_are_planned_in_a_few_looks_and_the_jobs_of_others_in_the_first() -> None:
    spreading = SpreadRules(known=KnownAlternatives(2))
    jobs = [*of_sizes(5), *of_sizes(2, first=8, user_id=BOB, user="bob")]
    first = looked(jobs, spreading)
    assert planned(first) == [1, 2, 8, 9]
    assert first.blocked == dict.fromkeys((3, 4, 5), LATER)
    assert first.follow_ups == (), "a job that is put off stays ours"
    assert planned(looked(jobs, spreading)) == [1, 2, 3, 4, 8, 9]
    assert planned(looked(jobs, spreading)) == [1, 2, 3, 4, 5, 8, 9]


def test_jobs_of_one_size_are_one_new_size_however_many_they_are() -> None:
    many = [job(number) for number in range(1, 50)]
    assert len(planned(looked(many, SpreadRules(known=KnownAlternatives(1))))) == 49


def test_nodes_of_other_sizes_make_all_sizes_new() -> None:
    spreading = SpreadRules(known=KnownAlternatives(2))
    jobs = [replace(each, tasks=40, nodes_max=None) for each in of_sizes(2)]
    assert [each.alternatives[0].nodes for each in looked(jobs, spreading).snapshot.waiting] == [2, 2]
    larger = [node("c1", 64), node("c2", 64)]
    seen = looked([*jobs, *of_sizes(1, first=3)], spreading, larger)
    assert [each.alternatives[0].nodes for each in seen.snapshot.waiting] == [1, 1]
    assert seen.blocked == {3: LATER}


def test_a_look_that_no_other_follows_puts_nothing_off() -> None:
    assert len(planned(looked(of_sizes(300), SpreadRules()))) == 300
