import pytest

from slurm_sns.errors import BadInput
from slurm_sns.submit import hints
from slurm_sns.submit.hints import (
    FLAGS,
    KEYS,
    MOST_BYTES,
    NO_HINTS,
    Hints,
    asks_for_spreading,
    from_comment,
    is_alpha,
    is_checkpoint,
    is_max_scale,
    is_program,
    parse,
)

HEURISTICS = ("first-fit", "mix-fit")


@pytest.mark.parametrize("text", ["0.9", ".9", "0.90", "1", "1.0", "1.000000000", "0.000000001", "0.5"])
def test_a_plain_number_above_0_and_at_most_1_is_an_alpha(text):
    assert is_alpha(text)
    assert 0 < float(text) <= 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "0.0",
        ".",
        "1.",
        "0.",
        "1.1",
        "1.9",
        "2",
        "-0.5",
        "+0.5",
        "5e-1",
        "0x1p-1",
        "nan",
        "inf",
        "abc",
        " 0.5",
        "0.5\n",
        "0,5",
        "00.5",
        "0.0000000001",
        "\u0660.\u0665",  # Arabic digits
        "½",
    ],
)
def test_everything_else_is_none(text):
    assert not is_alpha(text)


def test_program_names_and_scales_have_limits():
    assert is_program("a" * 64)
    assert not is_program("a" * 65)
    assert not any(map(is_program, ["", "a b", "../a", "é", "a\n", "$(x)"]))
    assert [n for n in range(100) if is_max_scale(str(n))] == list(range(1, 65))
    assert not any(map(is_max_scale, ["", "01", "1.0", "+1", "1\n", "٤"]))


def test_seconds_between_checkpoints_are_a_plain_number_up_to_a_week():
    assert all(map(is_checkpoint, ["1", "9", "600", "100000", "604800"]))
    odd = [
        "",
        "0",
        "00",
        "01",
        "0600",
        "604801",
        "700000",
        "1000000",
        "-1",
        "+1",
        "1.0",
        "1e3",
        "0x10",
        " 600",
        "600\n",
    ]
    assert not any(map(is_checkpoint, [*odd, "600s", "10:00", "٤", "9" * 5000]))


@pytest.mark.parametrize(
    ("value", "is_restartable", "checkpoint_s"),
    [("", True, None), ("=yes", True, None), ("=no", False, None), ("=1", True, 1), ("=604800", True, 604_800)],
)
def test_a_restartable_job_may_say_how_often_it_writes_checkpoints(value, is_restartable, checkpoint_s):
    told = Hints(restartable=is_restartable, checkpoint_s=checkpoint_s)
    assert parse(f"sns:restartable{value}", (), HEURISTICS) == told
    assert parse("", [("restartable", value.removeprefix("="))], HEURISTICS) == told


@pytest.mark.parametrize("value", ["", "yes", "no", "900"])
def test_the_option_replaces_the_checkpoints_of_the_comment(value):
    option = [("restartable", value)]
    assert parse("sns:restartable=600", option, HEURISTICS) == parse("", option, HEURISTICS)


@pytest.mark.parametrize("comment", ["", "my run", "about sns:alpha=0.9", "SNS:off", " sns:off", "sns"])
def test_any_other_comment_holds_no_hints(comment):
    assert parse(comment, (), HEURISTICS) == NO_HINTS


def test_hints_of_a_comment():
    comment = "sns:alpha=0.9,program=mg,max-scale=4,heuristic=mix-fit,exclusive,reprofile=yes,restartable=no"
    assert parse(comment, (), HEURISTICS) == Hints(0.9, "mg", 4, "mix-fit", exclusive=True, reprofile=True)


def test_hints_of_options():
    options = [("alpha", "0.75"), ("restartable", ""), ("program", "lu")]
    assert parse("hello", options, HEURISTICS) == Hints(alpha=0.75, program="lu", restartable=True)


def test_the_option_wins_over_the_comment_for_the_same_hint_only():
    hints = parse("sns:alpha=0.5,program=mg,exclusive=no", [("alpha", "0.9"), ("exclusive", "")], HEURISTICS)
    assert hints == Hints(alpha=0.9, program="mg", exclusive=True)


def test_off_wins_over_all_options():
    assert parse("sns:off", [("alpha", "0.9")], HEURISTICS) == Hints(off=True)


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("sns:alpha=1.9", "--comment sns:alpha '1.9': alpha must be a number above 0 and at most 1, such as 0.9"),
        ("sns:alpha=", "--comment sns:alpha: a value is missing, such as 0.9"),
        ("sns:alpha", "--comment sns:alpha: a value is missing, such as 0.9"),
        ("sns:", "--comment 'sns:': unknown hint; valid are alpha, program, max-scale,"),
        ("sns:beta=1", "'sns:beta': unknown hint; valid are alpha, program, max-scale, heuristic, exclusive,"),
        ("sns:alpha=1,alpha=1", "--comment sns:alpha: given twice"),
        ("sns:heuristic=best", "'best': unknown heuristic; valid are first-fit, mix-fit"),
        ("sns:max-scale=0", "'0': the largest scale must be a whole number from 1 to 64"),
        ("sns:program=a b", "'a b': a program name is 1 to 64 of the characters"),
        ("sns:exclusive=", "--comment sns:exclusive: a value is missing, such as yes"),
        ("sns:exclusive=maybe", "'maybe': valid are yes, no, and the name without a value"),
        ("sns:restartable=", "--comment sns:restartable: a value is missing, such as yes"),
        (
            "sns:restartable=0",
            "--comment sns:restartable '0': valid are yes, no, the name without a value, and",
        ),
        ("sns:restartable=10m", "and the seconds between two checkpoints, a whole number from 1 to 604800"),
        ("sns:off,alpha=0.9", "sns:off stands alone"),
    ],
)
def test_a_wrong_hint_is_named_with_its_value_and_what_is_valid(comment, said):
    with pytest.raises(BadInput) as problem:
        from_comment(comment, HEURISTICS)
    assert said in str(problem.value)


LONGEST = "alpha=0.123456789,program={0},max-scale=64,heuristic={0},exclusive=yes,reprofile=yes,restartable=604800"


def test_all_hints_each_as_long_as_it_can_be_are_not_too_long():
    name = "a" * 64
    assert len("sns:" + LONGEST.format(name)) < MOST_BYTES
    assert from_comment("sns:" + LONGEST.format(name), (name,)).restartable


@pytest.mark.parametrize("text", ["," * MOST_BYTES, "program=" + "a" * 4_000_000, "off" + " " * MOST_BYTES, "é" * 255])
def test_longer_hints_are_refused_unread_in_one_line_that_says_what_is_valid(text, monkeypatch):
    monkeypatch.setattr(hints, "_with", lambda *_: pytest.fail("a hint was read"))
    with pytest.raises(BadInput) as problem:
        from_comment("sns:" + text, HEURISTICS)
    assert "hints have at most 512 bytes; valid are alpha, program, max-scale, heuristic," in str(problem.value)
    assert len(str(problem.value)) < 200


def test_a_long_comment_without_hints_is_nobodys_business():
    assert from_comment("about sns:" * 1000, HEURISTICS) == NO_HINTS


@pytest.mark.parametrize(
    ("told", "asks"),
    [
        (NO_HINTS, False),
        (Hints(exclusive=True, heuristic="mix-fit", max_scale=1), False),
        (Hints(alpha=1.0), True),
        (Hints(program="mg"), True),
        (Hints(max_scale=2), True),
    ],
)
def test_an_alpha_a_program_or_a_largest_scale_above_1_asks_for_spreading(told, asks):
    assert asks_for_spreading(told) is asks


def test_an_option_that_a_newer_plugin_sends_is_refused_by_name():
    with pytest.raises(BadInput, match="option '--sns-colour': unknown hint; valid are --sns-alpha,"):
        parse("", [("colour", "red")], HEURISTICS)


@pytest.mark.parametrize("value", ["\x00\x1b[31m", "\udcff\udc80", "\ud800", "ü" * 1000, "a\r\nb", "{value}{key}", "'"])
@pytest.mark.parametrize("key", [*KEYS, "other"])
def test_hostile_bytes_never_appear_in_a_message(key, value):
    with pytest.raises(BadInput) as problem:
        parse(f"sns:{key}={value}", (), HEURISTICS)
    message = str(problem.value)
    assert message.isascii()
    assert message.isprintable()
    assert len(message) < 300


def test_flags_are_keys_too():
    assert set(FLAGS) < set(KEYS)
