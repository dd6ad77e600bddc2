"""What jobs wait for: a word or two for each, and how many wait for what (`sns queue --why`)."""

from pathlib import Path

import json_output
import pytest
from shown import EVIL, FORBIDDEN, printed, row

from slurm_sns.cli.live.waiting_words import WORDS, cell, groups, histogram, histogram_lines
from slurm_sns.model import WaitKind


def waits(kind: str, about: str = "", features: str = "") -> dict[str, str]:
    return {"kind": kind, "about": about, "features": features}


def waiting(number: int, kind: str, about: str = "", features: str = "") -> dict:
    return row(job_id=number, waits=waits(kind, about, features))


ROWS = [
    waiting(1, "next", "c1"),
    *(waiting(number, "resources", "memory") for number in range(2, 42)),
    waiting(42, "resources", "memory", "ib"),
    *(waiting(number, "withheld", "another user's job on c1") for number in range(50, 62)),
    *(waiting(number, "never", "dependency") for number in (70, 71, 72)),
    row(job_id=80, state="running"),
]


def test_jobs_are_counted_by_what_they_wait_for_the_most_first() -> None:
    assert list(histogram_lines(groups(ROWS))) == [
        "JOBS  FIRST  WAIT FOR",
        "  40      2  memory",
        "  12     50  capacity that is withheld for another user's job on c1",
        "   3     70  nothing, because they can never start as they are: dependency",
        "   1      1  more room on c1, where capacity is withheld for them",
        "   1     42  memory on nodes with ib",
    ]
    shown = printed(histogram(groups(ROWS)), 60).splitlines()
    assert [line.split()[0] for line in shown[:3]] == ["JOBS", "40", "12"]


def test_every_waiting_job_is_counted_once_and_no_other() -> None:
    assert sum(each["jobs"] for each in groups(ROWS)) == len(ROWS) - 1
    assert list(histogram_lines(groups([row(state="running")]))) == ["no jobs wait"]
    assert printed(histogram([])).strip() == "no jobs wait"


def test_every_kind_has_words() -> None:
    assert set(WORDS) == set(WaitKind)


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (waits("resources", "cores and memory"), "cores and memory"),
        (waits("nodes"), "nodes"),
        (waits("nodes", "one switch"), "nodes: one switch"),
        (waits("too large", features="ib&gpu"), "more or larger nodes (ib&gpu)"),
        (waits("withheld", "job 7 on c1"), "withheld for job 7 on c1"),
        (waits("limit", "AssocGrpCpuLimit"), "limit: AssocGrpCpuLimit"),
        (waits("limit", "{of}"), "limit: {of}"),
        (waits("kind of tomorrow", "x"), "kind of tomorrow: x"),
        (waits("other"), "Slurm's word"),
    ],
)
def test_a_cell_is_a_word_or_two_and_the_reason_where_there_are_none(cause, words: str) -> None:
    assert cell(row(waits=cause, reason="Slurm's word")) == words


def test_a_job_that_does_not_wait_is_placed_or_says_what_is_wrong_where_it_runs() -> None:
    assert cell(row(state="placed, Slurm is starting it", reason="by mix-fit")) == "placed"
    assert cell(row(state="would be placed", reason="by mix-fit")) == "would be placed"
    assert cell(row(state="running", reason="unpartitioned on c1: no agent")) == "unpartitioned on c1: no agent"


@pytest.mark.parametrize("name", ["about", "features"])
def test_nothing_that_a_user_wrote_reaches_the_terminal_as_more_than_text(name: str) -> None:
    counted = groups([row(waits={**waits("resources", "cores"), name: EVIL})])
    for text in (printed(histogram(counted), 200), "\n".join(histogram_lines(counted)) + "\n"):
        assert not [each for each in FORBIDDEN if each in text]
        assert text.count("\n") == 2


def test_the_histogram_counts_the_jobs_that_the_other_options_leave(sns, config: Path, scheduler) -> None:
    scheduler["queue"] = [*ROWS, row(job_id=90, user="bob", waits=waits("nodes"))]
    line = "   1     90  enough nodes at once\n"
    assert sns("queue", "--why", "-u", "bob", "--config", config) == (0, f"JOBS  FIRST  WAIT FOR\n{line}", "")
    _, output, _ = sns("queue", "--why", "--json", "--config", config)
    found = json_output.read("sns queue --why", output)
    assert found[0] == {**waits("resources", "memory"), "words": "memory", "jobs": 40, "first": "2"}
