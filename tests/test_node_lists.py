"""Node lists are parsed once, and remembered within bounds."""

import pytest
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from odd_node_lists import ODD
from pytest_mock import MockerFixture

from slurm_sns import node_lists
from slurm_sns.errors import SnsError
from slurm_sns.node_lists import OF_AN_ENTRY, NodeLists, folded, unfolded


@pytest.fixture
def parsed(mocker: MockerFixture) -> list[str]:
    """The texts that were read, not taken from the cache."""
    texts: list[str] = []

    def spy(text: str) -> tuple[str, ...]:
        texts.append(text)
        return unfolded(text)

    mocker.patch.object(node_lists, "unfolded", spy)
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


def test_the_texts_not_asked_for_longest_are_forgotten_where_there_is_no_room(parsed: list[str]) -> None:
    lists = NodeLists(most_total=2 * (OF_AN_ENTRY + 3))
    for text in ("c1", "c2", "c1", "c3"):
        lists.names(text)
    parsed.clear()
    for text in ("c1", "c3", "c2"):
        lists.names(text)
    assert parsed == ["c2"]


def test_long_lists_take_the_room_of_many_short_ones(parsed: list[str]) -> None:
    """Of one user's many long lists only as many are remembered as there is room for."""
    lists = NodeLists(most_total=120 + 2 * OF_AN_ENTRY)
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


def test_each_of_the_lists_of_a_hundred_thousand_jobs_is_read_once(parsed: list[str]) -> None:
    lists, texts = NodeLists(), [f"c[{at}-{at + 3}]" for at in range(100_000)]
    for _ in range(2):
        for text in texts:
            lists.names(text)
    assert len(parsed) == len(texts)


def test_lists_of_the_same_nodes_share_their_names() -> None:
    lists = NodeLists()
    assert lists.names("c[10-11]")[1] is lists.names("c[11-12]")[0]


# --- what slurmctld prints, and keeps letter by letter


@pytest.mark.parametrize("text", ODD)
def test_lists_are_read_as_slurm_reads_them(text: str) -> None:
    names = ODD[text].split()
    assert sorted(unfolded(text)) == sorted(names)
    assert sorted(unfolded(folded(names))) == sorted(names)


@pytest.mark.parametrize("text", ["c[1", "c1]", "c[]", "c[1,,2]", "c[3-1]", "c[a-b]", "c[-1]", "c[1-70000]", "c[1-2]]"])
def test_what_slurm_does_not_read_is_no_list(text: str) -> None:
    with pytest.raises(SnsError, match="which cannot be read: "):
        unfolded(text)


NUMBERS = st.one_of(st.integers(0, 120).map(str), st.sampled_from(("00", "01", "007", "08", "09", "010")))
RANGES = st.one_of(NUMBERS, st.tuples(NUMBERS, NUMBERS).map("-".join))


@st.composite
def parts(draw: st.DrawFn) -> str:
    """Names that are alike but for a number."""
    prefix = draw(st.sampled_from(("c", "s-", "r1n", "gpu_a.")))
    return prefix + draw(
        st.one_of(NUMBERS, st.lists(RANGES, min_size=1, max_size=4).map(lambda of: f"[{','.join(of)}]"))
    )


@pytest.mark.long
@settings(max_examples=300)
@given(st.lists(parts(), min_size=1, max_size=6).map(",".join))
@example("c[1-3],c2,c[2-5],c[08-10],c10")
def test_what_clustershell_reads_is_read_alike(text: str) -> None:
    try:
        theirs = set(NodeSet(text, resolver=RESOLVER_NOGROUP))
    except NodeSetException:
        assume(False)
    ours = unfolded(text)
    assert (set(ours), len(ours)) == (theirs, len(theirs))


def test_a_list_that_names_the_same_nodes_again_and_again_is_read_in_no_time() -> None:
    assert len(unfolded(",".join(f"c[1-{last}]" for last in range(2, 10_000)))) == 9_999


TOO_MANY = {
    "many parts": ",".join(f"c{each}[0-65535]" for each in range(99)),
    "two brackets": "n[0-65535][0-65535][1-2]",
    "many brackets": 30 * "[0-9]",
    "one number behind many": ",".join(f"n{each}[0-65535][65535]" for each in range(3)),
    "the same range again in the first": f"n[{','.join(30_000 * ['0-9'])}][1]",
    "the same number again in the last": f"n[0-99][{','.join(30_000 * ['0'])}]",
    "short parts": ",".join(f"n[0-999][{each}]" for each in range(9_999)),
}


@pytest.mark.parametrize("text", TOO_MANY.values(), ids=TOO_MANY)
def test_a_list_of_more_names_than_any_cluster_has_is_an_error(text: str) -> None:
    with pytest.raises(SnsError, match="more than 131072 names"):
        unfolded(text)


def test_of_the_same_part_again_and_again_nothing_is_done_twice() -> None:
    assert len(unfolded(",".join(["n[1-99][0-9]"] * 9_000))) == 990


def test_a_text_that_cannot_be_read_is_not_read_again(parsed: list[str]) -> None:
    lists = NodeLists()
    for _ in range(3):
        with pytest.raises(SnsError):
            lists.names("c[1")
    assert parsed == ["c[1"]


def test_node_names_are_folded_as_slurm_folds_them() -> None:
    assert folded(["c2", "c1", "c3", "s1"]) == "c[1-3],s1"
    assert folded([]) == ""
