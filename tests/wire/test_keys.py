"""The text of a key file: what is a key, which one signs, how one is replaced, and that no message shows a secret."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_sns.errors import BadInput
from slurm_sns.wire.keys import MOST_KEYS, Keys, added, key_line, promoted

OLD, NEW = "ab" * 32, "cd" * 40
TEXT = f"# of this site\n\nold {OLD}   # since spring\nnew {NEW}\n"


def test_the_first_key_signs_and_all_are_known_by_name() -> None:
    keys = Keys.parse(TEXT)
    assert keys.names == ("old", "new")
    assert keys.signing.secret == bytes.fromhex(OLD)
    assert keys.named("new").secret == bytes.fromhex(NEW)
    assert keys.named("other") is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "0 keys; valid: 1 to 16"),
        ("# nothing\n", "0 keys; valid: 1 to 16"),
        ("k abcd\n", "line 1 is no key; valid: an ID of 1 to 16 of a-z 0-9 -"),
        (f"k {OLD}0\n", "line 1 is no key"),
        (f"K {OLD}\n", "line 1 is no key"),
        (f"{'k' * 17} {OLD}\n", "line 1 is no key"),
        (f"k {OLD} {OLD}\n", "line 1 is no key"),
        (f"{OLD} k\n", "line 1 is no key"),
        (f"k {OLD}\nk {NEW}\n", "line 2: the ID k is there already"),
        ("".join(f"k{n} {OLD}\n" for n in range(MOST_KEYS + 1)), "17 keys; valid: 1 to 16"),
    ],
)
def test_a_text_that_is_no_key_file_is_refused_and_its_secrets_are_not_quoted(text: str, problem: str) -> None:
    with pytest.raises(BadInput, match=problem) as refused:
        Keys.parse(text)
    assert OLD not in str(refused.value)


def test_no_text_of_a_key_shows_its_secret() -> None:
    keys = Keys.parse(TEXT)
    assert OLD not in repr(keys)
    assert repr(keys.signing.secret) not in repr(keys)
    assert keys.signing.fingerprint not in OLD
    assert keys.signing.fingerprint != keys.named("new").fingerprint


@given(st.text(max_size=300))
def test_any_text_is_a_key_file_or_is_refused_in_one_line(text: str) -> None:
    assert problem_with(text).isprintable()


def problem_with(text: str) -> str:
    """Why the text is no key file; empty if it is one."""
    try:
        return "" if Keys.parse(text).keys else "no keys\n"
    except BadInput as problem:
        return str(problem)


def test_a_rotation_adds_then_promotes_and_keeps_comments() -> None:
    text = f"# of this site\nold {OLD}  # since spring"
    both = added(text, key_line("new", bytes.fromhex(NEW)))
    assert both == f"{text}\nnew {NEW}\n"
    assert Keys.parse(both).names == ("old", "new")
    assert promoted(both) == f"# of this site\nnew {NEW}\nold {OLD}  # since spring\n"
    assert promoted(f"k {OLD}\n") == f"k {OLD}\n"


def test_a_key_is_not_added_twice_and_none_is_made_too_short() -> None:
    with pytest.raises(BadInput, match="the ID old is there already"):
        added(TEXT, key_line("old", bytes(32)))
    with pytest.raises(BadInput, match="valid: an ID of 1 to 16"):
        key_line("k", bytes(31))
    with pytest.raises(BadInput, match="valid: an ID of 1 to 16"):
        key_line("two words", bytes(32))
