"""`sns queue`: a table that fits the terminal, and a text that awk can read."""

import pytest
from rich.cells import cell_len
from shown import EVIL, FORBIDDEN, NOW, amounts, printed, row

from slurm_sns.cli.live.queue_view import plain_lines, table

WAITS = "no allowed node has 4 cores and 4096 MiB free; nearest: c1 lacks 2 cores"
RUNS = {"state": "running", "start_s": NOW - 30, "nodes": ["c1", "c2"], "position": None, "demand": None}


def test_an_empty_queue_is_said_in_words() -> None:
    assert table([], NOW, 80) == "no jobs"
    assert list(plain_lines([], NOW)) == ["no jobs"]
    assert list(plain_lines([], NOW, heading=False)) == [], "a script counts lines"


def test_a_wide_terminal_shows_every_column() -> None:
    heading, line = printed(table([row(reason=WAITS)], NOW, 200)).splitlines()
    assert heading.split() == [
        "POS",
        "JOBID",
        "USER",
        "ACCOUNT",
        "PARTITION",
        "NAME",
        "SIZE",
        "SINCE",
        "STATE",
        "NODES",
        "START",
        "BY-LIMITS",
        "WHY",
    ]
    assert line.split()[:8] == ["1", "7", "alice", "physics", "main", "wrap", "4c,4G", "67"]
    assert line.rstrip().endswith(WAITS)


def test_gpus_stand_in_the_size_of_a_job() -> None:
    demand = {"nodes": 2, **amounts(4, 4096), "gpus": {"a100": 2, "": 1}}
    assert "2x4c,4G,2gpu:a100,1gpu" in "\n".join(plain_lines([row(demand=demand)], NOW))


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 160, 300])
def test_the_table_fits_the_terminal_and_says_who_and_why(width: int) -> None:
    lines = printed(table([row(reason=WAITS), row(job_id=8, **RUNS)], NOW, width), width).splitlines()
    assert all(len(line) <= width for line in lines)
    assert {"POS", "JOBID", "USER", "SINCE", "WHY"} <= set(lines[0].split())


@pytest.mark.parametrize("width", [40, 80, 160, 300])
def test_a_very_long_queue_has_the_same_columns_in_lines_that_fit(width: int) -> None:
    rows = [row(job_id=number, name="语" * 30, nodes=["c1"] * (number % 2), reason=WAITS) for number in range(600)]
    few, many = (printed(table(some, NOW, width, hidden=3), width).splitlines() for some in (rows[:500], rows))
    assert many[0].split() == few[0].split()
    assert len(many) == 602
    assert many[-1] == "... and 3 more"
    assert all(cell_len(line) <= width for line in many)


@pytest.mark.parametrize("field", ["name", "user", "account", "partition", "reason", "state"])
def test_no_field_reaches_the_terminal_as_more_than_text_in_a_very_long_queue(field: str) -> None:
    text = printed(table([row(**{field: EVIL})] * 600, NOW, 400), 400)
    assert not [each for each in FORBIDDEN if each in text]
    assert text.count("[bold]") >= 600
    assert text.count("\n") == 601


def test_in_plain_text_a_job_is_one_line_whose_words_stand_at_fixed_places() -> None:
    heading, waiting, running = plain_lines([row(reason=WAITS), row(job_id=8, name="a b", **RUNS)], NOW)
    names = heading.split()
    told = dict(zip(names, waiting.split(maxsplit=len(names) - 1), strict=True))
    assert (told["POS"], told["JOBID"], told["SINCE"], told["NODES"], told["WHY"]) == ("1", "7", "4000", "-", WAITS)
    assert running.split() == ["-", "8", "alice", "physics", "main", "a_b", "4cpu", "30", "running", "c[1-2]", "-", "-"]


def test_a_suspended_job_is_shown_since_its_start() -> None:
    _, line = plain_lines([row(job_id=8, **{**RUNS, "state": "suspended"})], NOW)
    assert line.split()[-5:-2] == ["30", "suspended", "c[1-2]"]


def test_why_is_a_word_or_two_in_a_table_and_the_sentence_in_a_pipe() -> None:
    rows = [row(reason=WAITS, waits={"kind": "resources", "about": "cores", "features": "ib"})]
    assert printed(table(rows, NOW, 60)).splitlines()[1].split()[-2:] == ["cores", "(ib)"]
    assert list(plain_lines(rows, NOW))[1].endswith(WAITS)


def test_without_a_heading_the_jobs_stand_alone() -> None:
    assert len(printed(table([row()], NOW, 80, heading=False), 80).splitlines()) == 1
    assert len(list(plain_lines([row()], NOW, heading=False))) == 1


def test_an_over_aged_job_is_marked() -> None:
    lines = list(plain_lines([row(over_aged=True, position=1), row(job_id=8, position=2)], NOW))
    assert [line.split()[0] for line in lines[1:]] == ["!1", "2"]
    assert "!1" in printed(table([row(over_aged=True)], NOW, 80), 80)


@pytest.mark.parametrize(
    ("nodes", "demand", "words"),
    [
        (1, amounts(4, 4096), "4c,4G"),
        (2, amounts(8, 1536, 3, 60), "2x8c,1.5G,3w,60GB/s"),
    ],
)
def test_the_size_is_nodes_times_cores_and_memory_of_each(nodes: int, demand: dict, words: str) -> None:
    (_, line) = plain_lines([row(demand={"nodes": nodes, **demand})], NOW)
    assert line.split()[6] == words


def test_what_was_left_out_is_counted() -> None:
    assert "... and 3 more" in printed(table([row()], NOW, 80, hidden=3), 80)


@pytest.mark.parametrize("field", ["name", "user", "account", "partition", "reason", "state"])
def test_no_field_of_a_job_reaches_the_terminal_as_more_than_text(field: str) -> None:
    rows = [row(**{field: EVIL})]
    for text in (printed(table(rows, NOW, 400), 400), "\n".join(plain_lines(rows, NOW)) + "\n"):
        assert not [each for each in FORBIDDEN if each in text]
        assert "[bold]" in text, "and it is shown, not taken for markup"
        assert text.count("\n") == 2, "a heading and one line"
