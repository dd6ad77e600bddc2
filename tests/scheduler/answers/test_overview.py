"""The overview: what is on each node, what one user sees of it, and what it may cost."""

import json
from dataclasses import replace

from fake_slurm import FakeHistory
from hypothesis import given
from hypothesis import strategies as st
from live import BOB, ENFORCE, FOREIGN, HELD, NOW, job, look, node, pinned, running, situation, tasks

from slurm_sns.errors import SnsError
from slurm_sns.log import Outage
from slurm_sns.model import Resources
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.scheduler.answers.last_day import LastDay
from slurm_sns.scheduler.answers.overview import SharedOverview
from slurm_sns.scheduler.answers.redaction import TROUBLE, UNAVAILABLE, for_user
from slurm_sns.scheduler.answers.view import View
from slurm_sns.scheduler.start_estimates.board import EstimateBoard

OF_BOB = {"user_id": BOB, "user": "bob"}
CROWD = (
    tasks(1, 28),
    tasks(2, 28, **OF_BOB, name="of bob"),
    tasks(3, 28, **OF_BOB),
    running(5, "c1", **OF_BOB, occupies=Resources(2, 1000)),
    running(9, "c1", occupies=Resources(1, 1000)),
    pinned(6, "c2", reason="Priority"),
    job(7, **HELD),
    job(8, **FOREIGN),
)
NODES = (node("c1", taken=(3, 2000)), node("c2"), node("c3"), node("c4", unavailable="drain: bob's disk"))


def view(*jobs, nodes=NODES, mode="enforce", at_s=NOW) -> View:
    seen = situation(look(*jobs, nodes=nodes), settings=replace(ENFORCE, mode=mode))
    return View(at_s, 0.012, mode, False, 3, 2, 5, seen, max_jobs(MatchingParameters()).plan(seen.snapshot))


class Times:
    """A clock, and CPU time that goes on by a step with each reading."""

    def __init__(self, step_s: float = 0.0) -> None:
        self.now_s, self.used_s, self.step_s = float(NOW), 0.0, step_s

    def cpu_s(self) -> float:
        self.used_s += self.step_s
        return self.used_s


def shared(times: Times) -> SharedOverview:
    times_of = {"now_s": lambda: times.now_s, "cpu_s": times.cpu_s}
    return SharedOverview(ENFORCE, EstimateBoard(), list, interval_s=1.0, **times_of)


def overview(of: View, user: str | None = None, trouble: str = "") -> dict:
    return json.loads(shared(Times()).answer(of, trouble, user))


def test_each_node_has_the_jobs_that_are_on_it_with_what_they_hold() -> None:
    nodes = {each["name"]: each for each in overview(view(*CROWD))["nodes"]}
    assert [(each["label"], each["managed"], each["holds"]["cores"]) for each in nodes["c1"]["jobs"]] == [
        ("5", True, 2),
        ("9", True, 1),
    ]
    assert nodes["c1"]["capacity"]["cores"] == 28
    assert nodes["c1"]["free"]["cores"] == 25
    assert nodes["c2"]["jobs"][0]["label"] == "6"


def test_what_the_cycle_has_placed_stands_on_its_nodes() -> None:
    nodes = {each["name"]: each for each in overview(view(tasks(1, 28), nodes=NODES[1:]))["nodes"]}
    (placed,) = [name for name, each in nodes.items() if each["jobs"]]
    assert nodes[placed]["jobs"][0]["label"] == "1"
    assert nodes[placed]["free"]["cores"] == 0


def test_an_unavailable_node_says_why_and_strands_nothing() -> None:
    last = overview(view(*CROWD))["nodes"][-1]
    assert (last["name"], last["unavailable"], last["stranded"]["cores"]) == ("c4", "drain: bob's disk", 0)


def test_a_node_on_which_capacity_is_withheld_names_the_job() -> None:
    busy = running(5, "c1", **OF_BOB, tasks=20, cpus=20)
    nodes = overview(view(busy, tasks(1, 28), nodes=[node("c1", taken=(20, 2000))]))["nodes"]
    assert nodes[0]["kept_for"] == ["1"]


def test_jobs_are_those_of_the_queue_in_its_order() -> None:
    told = overview(view(*CROWD))
    assert [row["job_id"] for row in told["jobs"]][-2:] == [5, 9]
    assert told["counts"]["running"] == 2
    assert told["counts"]["never"] == 0


def test_a_user_sees_their_own_jobs_and_nothing_of_others() -> None:
    told = overview(view(*CROWD), "bob")
    assert {row["user"] for row in told["jobs"]} == {"bob"}
    (first, second) = told["nodes"][0]["jobs"]
    assert (first["label"], second["label"]) == ("5", "")
    assert told["counts"] == overview(view(*CROWD))["counts"]


def test_somebody_unknown_sees_no_names_and_no_reasons() -> None:
    whole = overview(view(*CROWD), trouble="slurmctld does not answer bob")
    told = for_user(whole, None)
    assert told["jobs"] == []
    assert told["trouble"] == TROUBLE
    assert [each["unavailable"] for each in told["nodes"]] == ["", "", "", UNAVAILABLE]
    assert not any(share["label"] for each in told["nodes"] for share in each["jobs"])


@given(st.lists(st.sampled_from(["alice", "bob", "carol"]), min_size=1, max_size=6))
def test_no_user_is_told_a_label_or_a_name_of_another_users_job(owners: list[str]) -> None:
    ids = {"alice": 1000, "bob": BOB, "carol": 3000}
    jobs = [
        tasks(100 + at, 20, user=owner, user_id=ids[owner], name=f"name-of-{owner}") for at, owner in enumerate(owners)
    ]
    whole = overview(view(*jobs))
    for user in ("alice", "bob", "carol"):
        text = json.dumps(for_user(whole, user))
        for at, owner in enumerate(owners):
            if owner != user:
                assert f'"{100 + at}"' not in text
                assert f"job {100 + at}" not in text
                assert f"name-of-{owner}" not in text


class TestItsCost:
    def test_who_asks_again_within_the_time_gets_the_same(self) -> None:
        times = Times(step_s=0.1)
        of = shared(times)
        first = of.answer(view(tasks(1, 28)), "", None)
        assert of.answer(view(tasks(2, 28)), "", None) == first

    def test_it_is_made_anew_when_fifty_times_what_it_took_has_passed(self) -> None:
        times = Times(step_s=0.1)
        of = shared(times)
        next_s = json.loads(of.answer(view(tasks(1, 28)), "", None))["next_s"]
        assert next_s == NOW + 0.1 * 50
        times.now_s = next_s
        assert [row["job_id"] for row in json.loads(of.answer(view(tasks(2, 28)), "", None))["jobs"]] == [2]

    def test_what_each_further_user_costs_counts_as_well(self) -> None:
        times = Times(step_s=0.1)
        of = shared(times)
        seen = view(*CROWD)
        of.answer(seen, "", None)
        assert json.loads(of.answer(seen, "", "bob"))["next_s"] == NOW + 2 * 0.1 * 50

    def test_who_asked_first_is_told_of_what_the_others_cost(self) -> None:
        of, seen = shared(Times(step_s=0.1)), view(*CROWD)
        for user in (None, "bob"):
            of.answer(seen, "", user)
        assert json.loads(of.answer(seen, "", None))["next_s"] == NOW + 2 * 0.1 * 50

    def test_before_the_next_cycle_ends_there_is_nothing_to_ask_for(self) -> None:
        times = Times()
        of, seen = shared(times), view(*CROWD)
        assert json.loads(of.answer(seen, "", None))["next_s"] == NOW + 1
        times.now_s += 30  # cycles fail
        assert json.loads(of.answer(seen, "", None))["next_s"] == NOW + 30.5

    def test_trouble_is_told_while_it_lasts_though_no_cycle_ends(self) -> None:
        of, seen = shared(Times()), view(*CROWD)
        for trouble in ("", "slurmctld does not answer", ""):
            assert json.loads(of.answer(seen, trouble, "bob"))["trouble"] == trouble

    def test_a_clock_that_was_set_back_does_not_keep_an_old_one(self) -> None:
        times = Times(step_s=0.1)
        of = shared(times)
        of.answer(view(tasks(1, 28)), "", None)
        times.now_s = 10.0
        assert [row["job_id"] for row in json.loads(of.answer(view(tasks(2, 28)), "", None))["jobs"]] == [2]

    def test_of_many_users_some_are_told_later_and_it_is_made_anew_all_the_same(self) -> None:
        times = Times(step_s=0.01)
        of, refused, made = shared(times), 0, set()
        for second in range(600):
            times.now_s += 1
            seen = view(at_s=times.now_s)
            for at in range(5):
                try:
                    told = json.loads(of.answer(seen, "", f"user{(5 * second + at) % 100}"))
                except SnsError:
                    refused += 1
                else:
                    made.add(told["at_s"])
        assert refused
        assert len(made) > 10


def lines() -> tuple[list[str], Outage]:
    said: list[str] = []
    return said, Outage(said.append)


class TestTheLastDay:
    def test_a_moment_is_noted_every_five_minutes_and_kept_for_a_day(self) -> None:
        day = LastDay(FakeHistory(), lambda: [10.0, 20.0, 300.0], lines()[1])
        for at_s in range(0, 90_000, 100):
            day.publish(view(tasks(1, 28), nodes=[node("c1", taken=(8, 2000))], at_s=NOW + at_s))
        assert len(day.points) == 288
        last = day.points[-1]
        assert (last["waiting_cores"], last["wait_p50_s"], last["wait_p90_s"]) == (28, 20.0, 300.0)

    def test_it_goes_on_after_a_restart(self) -> None:
        kept = FakeHistory()
        before = LastDay(kept, list, lines()[1])
        before.publish(view(tasks(1, 28), nodes=[]))
        assert LastDay(kept, list, lines()[1]).points == before.points

    def test_without_a_store_it_goes_on_in_memory_and_says_so_once(self) -> None:
        said, outage = lines()
        day = LastDay(FakeHistory(broken=True), list, outage)
        for at_s in (0, 300, 600):
            day.publish(view(at_s=NOW + at_s))
        assert len(day.points) == 3
        assert said == ["the store's tries cannot be written: database or disk is full"]
