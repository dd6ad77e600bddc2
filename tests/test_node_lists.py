"""Node lists are parsed once, and remembered within bounds."""

import pytest
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pytest_mock import MockerFixture

from slurm_sns import node_lists
from slurm_sns.errors import SnsError
from slurm_sns.node_lists import NodeLists, folded, without_repetitions


@pytest.fixture
def parsed(mocker: MockerFixture) -> list[str]:
    """The texts that were given to ClusterShell."""
    texts: list[str] = []
    real = node_lists.NodeSet

    def spy(text: str, **options: object) -> object:
        texts.append(text)
        return real(text, **options)

    mocker.patch.object(node_lists, "NodeSet", spy)
    return texts


def test_a_text_is_parsed_once(parsed: list[str]) -> None:
    lists = NodeLists()
    assert [lists.names("c[1-3]") for _ in range(3)] == 3 * [("c1", "c2", "c3")]
    assert lists.names("c[1-2]") == ("c1", "c2")
    assert parsed == ["c[1-3]", "c[1-2]"]


def test_nothing_is_no_list_and_is_not_parsed(parsed: list[str]) -> None:
    assert (NodeLists().names(None), NodeLists().names(""), parsed) == ((), (), [])


def test_a_text_that_cannot_be_read_is_an_error_each_time_and_costs_no_other_text() -> None:
    lists = NodeLists()
    for _ in range(2):
        with pytest.raises(SnsError, match=r"node list 'c\[1', which cannot be read"):
            lists.names("c[1")
        assert lists.names("c1") == ("c1",)


def test_no_more_texts_than_the_bound_are_remembered_and_the_one_not_asked_for_longest_goes(parsed: list[str]) -> None:
    lists = NodeLists(most_texts=2)
    for text in ("c1", "c2", "c1", "c3"):
        lists.names(text)
    parsed.clear()
    for text in ("c1", "c3", "c2"):
        lists.names(text)
    assert parsed == ["c2"]


def test_long_lists_take_the_room_of_many_short_ones(parsed: list[str]) -> None:
    """Of one user's many long lists only as many are remembered as there is room for."""
    lists = NodeLists(most_total=120)
    for text in ("c[1-40]", "c[2-41]", "c[3-42]"):
        assert len(lists.names(text)) == 40
    parsed.clear()
    for text in ("c[3-42]", "c[2-41]", "c[1-40]"):
        lists.names(text)
    assert parsed == ["c[1-40]"]


def test_a_list_that_is_larger_than_all_the_room_is_read_all_the_same() -> None:
    lists = NodeLists(most_total=10)
    assert len(lists.names("c[1-100]")) == 100
    assert lists.names("c1") == ("c1",)


def test_lists_of_the_same_nodes_share_their_names() -> None:
    lists = NodeLists()
    assert lists.names("c[10-11]")[1] is lists.names("c[11-12]")[0]


# --- what slurmctld keeps letter by letter


def names(text: str) -> tuple[str, ...] | None:
    try:
        return tuple(NodeSet(text, resolver=RESOLVER_NOGROUP))
    except NodeSetException:
        return None


NUMBERS = st.one_of(st.integers(0, 120).map(str), st.sampled_from(("00", "01", "007", "08", "09", "010")))
RANGES = st.one_of(NUMBERS, st.tuples(NUMBERS, NUMBERS).map("-".join))


@st.composite
def parts(draw: st.DrawFn) -> str:
    """Names that are alike but for a number."""
    prefix = draw(st.sampled_from(("c", "s-", "r1n", "gpu_a.")))
    return prefix + draw(
        st.one_of(NUMBERS, st.lists(RANGES, min_size=1, max_size=4).map(lambda of: f"[{','.join(of)}]"))
    )


ODD = st.sampled_from(("login", "c[1", "c1]", "", "c[1-2][3-4]", "c[1-2]x", "@all", "c1[2-3]", "a b", "c[]", "c[1,,2]"))


@pytest.mark.long
@settings(max_examples=300)
@given(st.lists(st.one_of(parts(), parts(), parts(), ODD), min_size=1, max_size=6).map(",".join))
@example("c[1-3],c2,c[2-5],c[08-10],c10")
@example("c[0-01]")
def test_a_list_without_repetitions_is_read_as_the_list_itself(text: str) -> None:
    assert names(without_repetitions(text)) == names(text)


def test_clustershell_gets_each_node_once_however_often_a_list_names_it() -> None:
    assert without_repetitions(",".join(f"c[1-{last}]" for last in range(2, 1000))) == "c[1-999]"
    assert without_repetitions(",".join(1000 * ["c7", "c9", "c8", "s1"])) == "c[7-9],s1"


def test_a_list_of_another_form_is_left_to_clustershell() -> None:
    for text in ("c[1-2]x", "c[3-1]", "login,c1", "c1,", "c[1-99999999]", "c[08-1]"):
        assert without_repetitions(text) == text


def test_node_names_are_folded_as_slurm_folds_them() -> None:
    assert folded(["c2", "c1", "c3", "s1"]) == "c[1-3],s1"
    assert folded([]) == ""
