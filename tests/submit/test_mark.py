from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_sns.submit import mark
from slurm_sns.submit.hints import NO_HINTS, Hints
from slurm_sns.submit.mark import MOST_NICE

_HINTS = st.builds(
    Hints,
    alpha=st.none() | st.integers(1, 10**9).map(lambda billionths: billionths / 1e9),
    program=st.none() | st.from_regex(r"[A-Za-z0-9._+-]{1,64}", fullmatch=True),
    max_scale=st.none() | st.integers(1, 64),
    heuristic=st.none() | st.sampled_from(["first-fit", "mix-fit"]),
    exclusive=st.booleans(),
    reprofile=st.booleans(),
    restartable=st.booleans(),
    fixed=st.booleans(),
    advised=st.booleans(),
    nice=st.none() | st.integers(1, MOST_NICE),
    grant=st.none() | st.from_regex(r"[A-Za-z0-9._:-]{1,199}", fullmatch=True),
)


def test_the_mark_is_versioned_and_readable():
    hints = Hints(alpha=0.9, program="mg", max_scale=4, heuristic="mix-fit", exclusive=True, fixed=True)
    assert mark.write(hints) == "sns:1 alpha=0.9 program=mg max-scale=4 heuristic=mix-fit exclusive fixed"
    assert mark.write(NO_HINTS) == "sns:1"
    assert mark.write(Hints(alpha=1.0)) == "sns:1 alpha=1"


def test_the_word_advised_stands_last_and_a_nice_value_after_the_heuristic():
    hints = Hints(heuristic="mix-fit", nice=100, exclusive=True, fixed=True, advised=True)
    assert mark.write(hints) == "sns:1 heuristic=mix-fit nice=100 exclusive fixed advised"
    assert mark.write(Hints(nice=MOST_NICE)) == "sns:1 nice=2147483645"


@given(_HINTS)
def test_what_is_written_is_read_back(hints):
    assert mark.read(mark.write(hints)) == hints


@given(st.one_of(st.text(), st.text(alphabet="sns:1 alph=0.9exclusivdfn").map(lambda text: "sns:1 " + text)))
def test_reading_any_text_never_fails_and_only_our_own_form_is_ours(text):
    hints = mark.read(text)
    assert hints is None or mark.write(hints) == text


@pytest.mark.parametrize(
    "extra",
    [
        "",
        "mine",
        "sns:",
        "sns:2 alpha=0.9",
        "sns:1 ",
        "sns:1  alpha=0.9",
        "sns:1 alpha=0.90",
        "sns:1 alpha=2",
        "sns:1 alpha=nan",
        "sns:1 program=mg alpha=0.9",
        "sns:1 exclusive exclusive",
        "sns:1 exclusive=yes",
        "sns:1 colour=red",
        "sns:1 off",
        "sns:1\n",
        "sns:1 max-scale=65",
        "sns:1 program=a=b",
        "sns:1 nice=0",
        "sns:1 nice=-1",
        "sns:1 nice=+1",
        "sns:1 nice=01",
        "sns:1 nice=1.0",
        "sns:1 nice=",
        "sns:1 nice",
        "sns:1 nice=2147483646",
        "sns:1 nice=99999999999999999999",
        "sns:1 nice=\u0661",  # an Arabic digit
        "sns:1 nice=1 nice=1",
        "sns:1 nice=1 heuristic=mix-fit",
        "sns:1 fixed nice=1",
        "sns:1 advised fixed",
        "sns:1 advised=yes",
        "sns:1 advised advised",
        "sns:1 grant=",
        "sns:1 grant",
        "sns:1 grant=a=b",
        "sns:1 grant=a nice=1",
        "sns:1 exclusive grant=a",
        "sns:1 grant=a grant=a",
        "sns:1 grant=a\n",
        "sns:1 grant=\u0661",
        "sns:1 grant=" + 200 * "a",
        " sns:1",
        "xsns:1",
    ],
)
def test_what_is_not_exactly_our_form_is_not_our_mark(extra):
    assert mark.read(extra) is None
    assert not mark.is_marked(extra)


def test_a_heuristic_that_the_configuration_no_longer_knows_is_still_read():
    assert mark.read("sns:1 heuristic=retired-fit") == Hints(heuristic="retired-fit")


def test_a_grant_stands_after_the_nice_value_and_is_found_in_the_mark():
    hints = Hints(program="mg", nice=100, grant="1.k2:aB-_", exclusive=True)
    assert mark.write(hints) == "sns:1 program=mg nice=100 grant=1.k2:aB-_ exclusive"
    assert mark.grant_in(mark.write(hints)) == "1.k2:aB-_"
    assert [mark.grant_in(extra) for extra in ("", "grant=a", "sns:1", "sns:1 colour=red grant=a")] == [None] * 4


@given(_HINTS, st.integers(-MOST_NICE, MOST_NICE), st.none() | st.just("token"))
def test_a_placement_writes_its_own_grant_and_nothing_of_an_earlier_one(hints, nice, grant):
    written = mark.of_placement(hints, nice, grant)
    placed = hints if written is None else mark.read(written)
    assert placed == replace(hints, nice=nice if nice > 0 else None, grant=grant)
    assert (written is None) == (placed == hints)


@given(_HINTS)
def test_whoever_takes_a_placement_back_or_gives_a_job_to_slurm_removes_the_grant(hints):
    back, given_away = mark.without_grant(hints), mark.given_to_slurm(hints)
    assert (hints if back is None else mark.read(back)) == replace(hints, grant=None)
    assert (hints if given_away is None else mark.read(given_away)) == replace(hints, grant=None, advised=True)
    assert mark.of_placement(None, 5, "token") is mark.without_grant(None) is mark.given_to_slurm(None) is None
