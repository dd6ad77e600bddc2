"""Node lists are parsed once, and remembered within bounds."""

import pytest
from pytest_mock import MockerFixture

from slurm_sns.errors import SnsError
from slurm_sns.slurm import node_lists
from slurm_sns.slurm.node_lists import NodeLists


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
