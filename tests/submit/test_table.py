import shutil
import subprocess
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_sns.errors import BadInput
from slurm_sns.submit.messages import MESSAGES, say
from slurm_sns.submit.table import FilterTable, NodeShape, lua_string, lua_text

TABLE = FilterTable(
    mode="enforce",
    partitions={"b": (NodeShape(28, 28, 128000, 4),), "a": (NodeShape(4, 8, 32768, 2), NodeShape(8, 8, 65536, 1))},
    default_partition="b",
    heuristics=("first-fit", "mix-fit"),
    default_memory_per_cpu_mb=4500,
    heartbeat_path="/run/sns/heartbeat",
    heartbeat_timeout_s=10,
    kill_switch_path="/etc/slurm/sns/disabled",
)


def test_the_same_table_gives_the_same_bytes_whatever_the_order():
    table = replace(TABLE, sharing=("a", "b"))
    turned = replace(table, partitions=dict(reversed([(n, s[::-1]) for n, s in TABLE.partitions.items()])))
    assert lua_text(replace(turned, sharing=("b", "a"))) == lua_text(table)
    assert lua_text(TABLE).isascii()


@settings(max_examples=60)
@given(st.text(st.characters(codec="utf-8")))
def test_a_string_comes_back_as_it_was_and_ends_nothing(text):
    script = f"io.write({lua_string(text)})"
    lua = shutil.which("lua5.1") or "lua5.1"
    answer = subprocess.run([lua, "-"], input=script.encode(), capture_output=True, check=True)
    assert answer.stdout == text.encode()


@pytest.mark.parametrize("text", ['"', "\\", "\n", "]]", '"..os.exit()..', "\0", "\udcff"])
def test_nothing_harmful_stays_in_a_literal(text):
    assert set(lua_string(text)[1:-1]) & set('"\n\0') == set()
    assert lua_string(text).isascii()


@pytest.mark.parametrize(
    "changes", [{"mode": "off"}, {"heartbeat_timeout_s": -1}, {"default_memory_per_cpu_mb": 2**60}]
)
def test_values_that_lua_would_not_understand_are_refused(changes):
    with pytest.raises(BadInput, match="valid are"):
        lua_text(replace(TABLE, **changes))


def test_a_value_is_never_filled_twice():
    assert (
        say("flag", {"key": "{value}", "value": "{key}"})
        == "sns: {value} {key}: valid are yes, no, and the name without a value"
    )


@pytest.mark.parametrize("tells", [True, False])
def test_what_lua_reads_of_the_first_lease_and_of_flags(tells):
    table = lua_text(replace(TABLE, tells_users=tells, heartbeat_timeout_s=45))
    script = f"local t = (function() {table} end)(); io.write(t.first_lease_s, ' ', tostring(t.tells_users))"
    answer = subprocess.run(["lua5.1", "-"], input=script.encode(), capture_output=True, check=True)
    assert answer.stdout == f"90 {str(tells).lower()}".encode()


def test_every_message_says_who_speaks():
    assert all(text.startswith("sns: ") for text in MESSAGES.values())
