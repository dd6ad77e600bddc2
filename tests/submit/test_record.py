from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_sns.submit import record
from slurm_sns.submit.hints import NO_HINTS, Hints
from slurm_sns.submit.record import UNREADABLE, MemoryRequest, Record

_NUMBER = st.integers(0, 10**record.MOST_DIGITS - 1)
_NODES = st.lists(st.from_regex(r"[A-Za-z0-9_.-]{1,12}", fullmatch=True), min_size=1, max_size=5).map(tuple)
_TOLD = {
    "alpha": st.none() | st.integers(1, 10**9).map(lambda billionths: billionths / 1e9),
    "program": st.none() | st.from_regex(r"[A-Za-z0-9._+-]{1,64}", fullmatch=True),
    "max_scale": st.none() | st.integers(1, 64),
    "heuristic": st.none() | st.sampled_from(["first-fit", "mix-fit"]),
    "exclusive": st.booleans(),
    "reprofile": st.booleans(),
    "fixed": st.booleans(),
}
_HINTS = st.builds(Hints, **_TOLD, restartable=st.booleans()) | st.builds(
    Hints, **_TOLD, restartable=st.just(True), checkpoint_s=st.integers(1, 604_800)
)
_ANY = {"hints": _HINTS, "gate_s": st.none() | _NUMBER, "begin_s": st.none() | _NUMBER, "restarts": _NUMBER}
_ANY["own_partitions"] = st.just(()) | _NODES
_WAITING = st.builds(Record, **_ANY)
_GIVEN_AWAY = st.builds(Record, **_ANY, free_why=st.from_regex(r"[a-z0-9-]{1,64}", fullmatch=True))


@st.composite
def _placed(draw):
    replaces_tasks, replaces_memory = draw(st.booleans()), draw(st.booleans())
    return draw(
        st.builds(
            Record,
            **_ANY,
            nodes=_NODES,
            placed_s=_NUMBER,
            tasks_per_node=_NUMBER if replaces_tasks else st.none(),
            given_tasks_per_node=_NUMBER if replaces_tasks else st.none(),
            own_memory=st.builds(MemoryRequest, _NUMBER, st.booleans()) if replaces_memory else st.none(),
            given_memory_mb=_NUMBER if replaces_memory else st.none(),
            ways=_NUMBER,
            bandwidth_gbps=_NUMBER,
        )
    )


RECORDS = _WAITING | _GIVEN_AWAY | _placed()
#: Text of others, with what could be taken for a part of ours.
_OTHERS = st.text() | st.text(alphabet="sn:2 ;g=1\n\t") | st.sampled_from(["JS1:H4sI", "note; ", '{"a": 1}', "sns:1"])


def test_the_record_is_readable():
    placed = Record(
        hints=Hints(program="mg", fixed=True),
        gate_s=1764060000,
        restarts=1,
        own_partitions=("main", "old"),
        nodes=("c1", "c2"),
        placed_s=1764053000,
        tasks_per_node=0,
        given_tasks_per_node=4,
        own_memory=MemoryRequest(4000, is_by_cpu=True),
        given_memory_mb=16000,
        ways=3,
        bandwidth_gbps=12,
    )
    assert record.segment(placed) == (
        "sns:2 program=mg fixed g=1764060000 r=1 p=main,old n=c1,c2 at=1764053000 t=0 tg=4 mo=4000c mg=16000 w=3 bw=12"
    )
    assert record.segment(Record(free_why="deadline")) == "sns:2 free=deadline"
    assert record.segment(Record()) == "sns:2"
    hints = Hints(1.0, "mg", 4, "mix-fit", exclusive=True, reprofile=True, restartable=True, fixed=True)
    assert record.segment(Record(hints, gate_s=5)) == (
        "sns:2 alpha=1 program=mg max-scale=4 heuristic=mix-fit exclusive reprofile restartable fixed g=5"
    )
    assert record.segment(Record(replace(hints, checkpoint_s=600), gate_s=5)) == (
        "sns:2 alpha=1 program=mg max-scale=4 heuristic=mix-fit exclusive reprofile restartable=600 fixed g=5"
    )


@given(RECORDS)
def test_what_is_written_is_read_back(noted):
    assert record.read(record.segment(noted)) == noted


@given(_OTHERS, RECORDS)
def test_a_record_written_into_any_text_is_read_back(others, noted):
    assert record.read(record.written(others, noted)) == noted


@given(_OTHERS, RECORDS, RECORDS)
def test_writing_twice_gives_what_the_second_writing_gives_alone(others, first, second):
    assert record.written(record.written(others, first), second) == record.written(others, second)


@given(_OTHERS.filter(lambda text: record.read(text) is None), RECORDS)
def test_a_first_record_is_appended_and_the_text_of_others_stays_byte_for_byte(others, noted):
    separator = ";" if others else ""
    assert record.written(others, noted) == others + separator + record.segment(noted)


@given(
    st.text(alphabet="abc{}: ;\n").map(lambda text: text + ";"),
    RECORDS,
    st.text(alphabet="abc{}: ;\n").map(lambda text: ";" + text),
    RECORDS,
)
def test_text_before_and_after_our_segment_stays_byte_for_byte(before, first, after, second):
    whole = record.written(before + record.segment(first) + after, second)
    assert whole == before + record.segment(second) + after


@given(st.text() | st.text(alphabet="sns:2 g=b1rnat.,;\n\ud800").map(lambda text: "sns:2" + text))
def test_reading_any_text_raises_nothing_and_accepts_only_the_canonical_form(text):
    found = record.read(text)
    if found is not None and found != Record(free_why=UNREADABLE):
        assert record.segment(found) in text
    assert record.read(record.written(text, Record(gate_s=5))) == Record(gate_s=5)


@pytest.mark.parametrize("text", ["", "mine", "sns:", "xsns:2", "sns :2", "sns:off", "x,sns:2", "SNS:2", "note: sns"])
def test_text_without_a_segment_of_ours_is_no_record(text):
    assert record.read(text) is None


@pytest.mark.parametrize(
    "text",
    [
        *(f"sns:2 restartable={value}" for value in ("", "yes", "no", "0", "0600", "604801", "1.0")),
        *(
            "sns:2 restartable restartable=600",
            "sns:2 restartable=600 restartable=600",
            "sns:2 restartable=6 exclusive",
        ),
        "sns:1",
        "sns:3 g=5",
        "sns:20",
        "sns:2x",
        "sns:2  g=5",
        "sns:2\tg=5",
        "sns:2 g=",
        "sns:2 g",
        "sns:2 g=05",
        "sns:2 g=-5",
        "sns:2 g=+5",
        "sns:2 g=5.0",
        "sns:2 g=٥",  # noqa: RUF001 - an Arabic digit
        "sns:2 g=999999999999",
        "sns:2 g=" + 5000 * "9",
        "sns:2 g=5 g=5",
        "sns:2 b=5 g=5",
        "sns:2 r=0",
        "sns:2 g=5 fixed",
        "sns:2 colour=red",
        "sns:2 off",
        "sns:2 alpha=0.90",
        "sns:2 alpha=2",
        "sns:2 alpha=nan",
        "sns:2 alpha",
        "sns:2 program=mg alpha=0.9",
        "sns:2 program=a=b",
        "sns:2 program=a program=a",
        "sns:2 max-scale=65",
        "sns:2 heuristic=Mix",
        "sns:2 exclusive exclusive",
        "sns:2 exclusive=yes",
        "sns:2 fixed exclusive",
        "sns:2 exclusive alpha=0.9",
        "sns:2 grant=a",
        "sns:2 n=c1",
        "sns:2 at=5",
        "sns:2 n= at=5",
        "sns:2 n=c1,,c2 at=5",
        "sns:2 n=c[1-2] at=5",
        "sns:2 n=c1 at=5 t=4",
        "sns:2 n=c1 at=5 tg=4",
        "sns:2 n=c1 at=5 mo=4000 mg=5",
        "sns:2 n=c1 at=5 mo=4000n",
        "sns:2 w=3",
        "sns:2 n=c1 at=5 free=x",
        "sns:2 free=",
        "sns:2 free=Two",
        "sns:2 free=" + 65 * "a",
        "sns:2 g=5;sns:2 g=5",
        "sns:2 n=" + (1 << 16) * "a" + " at=5",
    ],
)
def test_a_segment_that_begins_as_ours_and_does_not_parse_is_slurms(text):
    assert record.read(text) == Record(free_why=UNREADABLE)


def test_a_heuristic_that_the_configuration_no_longer_knows_is_still_read():
    assert record.read("sns:2 heuristic=retired-fit") == Record(Hints(heuristic="retired-fit"))


def test_two_segments_are_unreadable_until_one_is_written_over_both():
    text = "a;sns:2 g=5;b\nsns:2 g=6"
    assert record.read(text) == Record(free_why=UNREADABLE)
    assert record.written(text, Record(gate_s=7)) == "a;sns:2 g=7;b\n"


def test_a_long_hostile_text_is_read_quickly():
    for text in ("sns:2" + 10**6 * " ", 10**6 * "sns:2 ", "sns:2 " + 10**6 * "a=", 10**6 * "sns:", 10**5 * "sns:2 ;"):
        assert record.read(text) in (None, Record(), Record(free_why=UNREADABLE))


@given(st.text())
def test_any_reason_becomes_a_word_that_can_be_read(text):
    noted = Record(hints=NO_HINTS, free_why=record.reason(text))
    assert record.read(record.segment(noted)) == noted


def test_a_reason_keeps_its_words():
    assert record.reason("its owner asks for: gres") == "its-owner-asks-for-gres"
