import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_sns.wire.grants import MOST_BYTES, grant_in, with_grant, without_grant

TOKENS = st.from_regex(r"[0-9]{1,3}:[A-Za-z0-9._:-]{1,150}", fullmatch=True)
#: Text of owners, with what could be taken for a part of ours.
OWNERS = st.text(max_size=200) | st.text(alphabet="sn:grant=1;a \udcff", max_size=60)


def test_the_grant_stands_after_the_owners_own_text():
    assert with_grant("", "1:k:41.0") == "sns:grant=1:k:41.0"
    assert with_grant("key=value;x", "1:k:41.0") == "key=value;x;sns:grant=1:k:41.0"


@given(OWNERS, TOKENS, TOKENS)
def test_the_last_grant_alone_stands_in_the_text(owners, first, second):
    once = with_grant(owners, first)
    twice = with_grant(once, second)
    assert (grant_in(once), grant_in(twice)) == (first, second)
    assert twice == with_grant(owners, second)


@given(OWNERS.filter(lambda text: without_grant(text) is None), TOKENS)
def test_without_the_grant_the_owners_text_is_what_it_was(owners, token):
    assert grant_in(owners) is None
    assert without_grant(with_grant(owners, token)) == owners


@given(st.text() | st.text(alphabet="sn:grant=1;\n\ud800").map(lambda text: "sns:grant=" + text))
def test_any_text_can_be_read_and_cleared(text):
    cleared = without_grant(text)
    if cleared is None:
        assert grant_in(text) is None
    else:
        assert grant_in(cleared) is None
        assert without_grant(cleared) is None
        assert len(cleared) < len(text)


@pytest.mark.parametrize(
    ("extra", "token"),
    [
        ("sns:grant=1:a", "1:a"),
        ("sns:grant=1:a;key=value", "1:a"),  # its owner has written behind it
        ("sns:grant=1:a;sns:grant=2:b", "2:b"),
        ("sns:grant=1:a;sns:grant=", "1:a"),
        ("x;sns:grant=1:a", "1:a"),
        ("x sns:grant=1:a", None),
        ("xsns:grant=1:a", None),
        ("SNS:grant=1:a", None),
        ("sns:grant=1:a b", None),
        ("sns:grant=1:a\n", None),
        ("sns:grant=", None),
        ("sns:grant=a", None),
        ("grant=1:a", None),
        ("", None),
    ],
)
def test_where_a_grant_stands(extra, token):
    assert grant_in(extra) == token


def test_a_text_that_slurm_would_refuse_is_not_written():
    token = "1:" + "a" * 100
    room = MOST_BYTES - len(f";sns:grant={token}")
    assert with_grant("x" * room, token) is not None
    assert with_grant("x" * (room + 1), token) is None
    assert with_grant("é" * (room // 2 + 1), token) is None


def test_a_long_hostile_text_is_read_quickly():
    for text in ("sns:grant=" * 10**5, ";sns:grant=1" * 10**5, "sns:grant=" + "a" * 10**6, ";" * 10**6):
        assert grant_in(text) is None
