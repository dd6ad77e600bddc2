"""Which changes a cycle sends when there are more than it may send."""

from hypothesis import given
from hypothesis import strategies as st

from slurm_sns.scheduler.gate.orders import round_robin


def owner(change: str) -> str:
    return change[0]


def test_each_owner_has_a_turn_before_any_has_a_second() -> None:
    assert round_robin(["a1", "a2", "a3", "b1", "c1", "c2"], owner, 5) == ["a1", "b1", "c1", "a2", "c2"]


def test_one_owners_changes_do_not_delay_anothers_single_one() -> None:
    flood = [f"a{number}" for number in range(1000)]
    assert "b0" in round_robin([*flood, "b0"], owner, 2)


def test_the_changes_of_a_single_owner_are_sent_up_to_the_limit() -> None:
    assert round_robin(["a1", "a2", "a3"], owner, 2) == ["a1", "a2"]
    assert round_robin([], owner, 2) == []


CHANGES = st.lists(st.sampled_from("abc")).map(lambda owners: [f"{who}{at}" for at, who in enumerate(owners)])


@given(CHANGES, st.integers(0, 20))
def test_nothing_is_lost_or_overtaken_and_no_owner_is_ahead_by_more_than_one(changes: list[str], most: int) -> None:
    sent = round_robin(changes, owner, most)
    assert len(sent) == min(most, len(changes))
    for who in "abc":
        own = [change for change in changes if owner(change) == who]
        number = sum(owner(change) == who for change in sent)
        assert [change for change in sent if owner(change) == who] == own[:number]
        is_waiting = number < len(own)
        assert not is_waiting or all(number >= sum(map(other.__eq__, map(owner, sent))) - 1 for other in "abc")
