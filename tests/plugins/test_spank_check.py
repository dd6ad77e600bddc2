"""The checks of the SPANK plugin are those of `slurm_sns.submit.hints`, to the word of their messages."""

import ctypes

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_sns.errors import BadInput
from slurm_sns.submit.hints import RESTARTABLE, VALUED, parse

HEURISTICS = ("first-fit", "best-fit-memory", "mix-fit")
CHECKED = (*VALUED, RESTARTABLE)


@pytest.fixture(scope="session")
def check(parts):
    """The compiled check: (hint, value, heuristics) -> None or the message."""
    library = parts
    library.sns_check.restype = ctypes.c_bool
    library.sns_is_heuristics.restype = ctypes.c_bool

    def ask(hint, value, heuristics=HEURISTICS):
        message = ctypes.create_string_buffer(4096)
        given_names = ",".join(heuristics).encode()
        valid = library.sns_check(hint.encode(), value, given_names, message, ctypes.c_size_t(len(message)))
        return None if valid else message.value.decode("ascii")

    ask.library = library
    return ask


def expected(hint, value):
    try:
        parse("", [(hint, value.decode("utf-8", "surrogateescape"))], HEURISTICS)
    except BadInput as problem:
        return str(problem)
    return None


VALUES = (
    *(b"0.9", b"1", b"0", b"1.0", b"1.000000000", b"1.0000000000", b"1.1", b"1.9", b".5", b"5.", b".", b"", b"0.0"),
    *(
        b"0.000000001",
        b"0.0000000001",
        b"00.5",
        b"1e-1",
        b"0x1p-1",
        b"nan",
        b"inf",
        b"-0.5",
        b"+0.5",
        b" 0.5",
        b"0.5\n",
    ),
    *(
        b"64",
        b"65",
        b"9",
        b"99",
        b"100",
        b"01",
        b"6.0",
        b"4\n",
        b"mg",
        b"a" * 64,
        b"a" * 65,
        b"a b",
        b"../x",
        b"A-Z_0+.",
    ),
    *(
        b"mix-fit",
        b"MIX-FIT",
        b"mix",
        b"first-fit,mix-fit",
        b"first-fit,",
        b",",
        b"\xff\xfe",
        b"\x1b[31m\x7f",
        b"%s%n'",
    ),
    *(
        b"yes",
        b"no",
        b"YES",
        b"600",
        b"604799",
        b"604800",
        b"604801",
        b"999999",
        b"1000000",
        b"0600",
        b"600s",
        b"6" * 400,
    ),
    *(b"x" * 40, b"x" * 39 + b" y", b"\xc3\xa9" * 25),
)


@pytest.mark.parametrize("hint", CHECKED)
@pytest.mark.parametrize("value", VALUES)
def test_each_value_is_judged_as_python_judges_it(check, hint, value):
    assert check(hint, value) == expected(hint, value)


@settings(max_examples=500)
@given(
    hint=st.sampled_from(CHECKED),
    value=st.one_of(st.binary(max_size=70), st.text("0146.89", max_size=12).map(str.encode)),
)
def test_any_bytes_are_judged_as_python_judges_them(check, hint, value):
    value = value.replace(b"\0", b"")
    assert check(hint, value) == expected(hint, value)


def test_without_a_list_any_name_of_a_heuristic_goes_to_the_controller(check):
    assert check("heuristic", b"other-fit", ()) is None
    assert "unknown heuristic; valid are those of the cluster" in check("heuristic", b"Other Fit", ())


LISTS = {b"mix-fit": True, b"a,b-1": True, b"a" * 1024: True}
LISTS |= dict.fromkeys((b"", b",a", b"a,", b"a,,b", b"A", b"a b", b"a" * 1025), False)


@pytest.mark.parametrize(("names", "valid"), [*LISTS.items()])
def test_the_list_in_plugstack_conf_has_a_grammar(check, names, valid):
    assert check.library.sns_is_heuristics(names) is valid
