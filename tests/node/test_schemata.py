"""The text of a schemata file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_sns.errors import SnsError
from slurm_sns.node.resctrl.schemata import BANDWIDTHS, CACHES, Schemata, lines, parse

VALUES = st.dictionaries(st.integers(0, 999), st.integers(0, 2**32 - 1), min_size=1)


@given(st.dictionaries(st.sampled_from([*CACHES, *BANDWIDTHS]), VALUES))
def test_what_is_written_is_read_again(schemata: Schemata) -> None:
    assert parse(lines(schemata)) == schemata


def test_masks_are_hexadecimal_bandwidth_is_decimal_and_each_line_ends_in_a_newline() -> None:
    assert lines({"L3": {1: 0xFF, 0: 0xF00}, "MB": {0: 20, 10: 100}}) == "L3:0=f00;1=ff\nMB:0=20;10=100\n"


def test_a_resource_without_domains_has_no_line() -> None:
    assert lines({"L3": {}, "MB": {0: 10}}) == "MB:0=10\n"


def test_the_kernel_pads_names_and_values() -> None:
    text = "    MB:0=  100;1=   40\n    L2:0=0ffff;3=000f0\nL3DATA:0=00fff\n"
    assert parse(text) == {"MB": {0: 100, 1: 40}, "L2": {0: 0xFFFF, 3: 0xF0}, "L3DATA": {0: 0xFFF}}


def test_resources_that_we_do_not_know_are_left_out() -> None:
    assert parse("MB_HLIM:0=yes\nL3:0=f\n\n") == {"L3": {0: 0xF}}


@pytest.mark.parametrize("text", ["L3:0\n", "L3:\n", "L3:x=f\n", "MB:0=ff\n", "L3:0=f;\n", "L3:uninitialized\n"])
def test_a_line_of_another_form_is_refused_with_what_is_valid(text: str) -> None:
    with pytest.raises(SnsError, match="; valid: "):
        parse(text)
