"""The options of squeue that `sns queue` has: they choose, sort and print as squeue does."""

import getpass
import json
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shown import EVIL, FORBIDDEN, NOW, row

from slurm_sns.cli.live.squeue_options import FIELDS, JobFilter, SqueueFormat, in_order
from slurm_sns.errors import BadInput
from slurm_sns.scheduler.answers.folded_arrays import MOST_LISTED, with_folded_arrays
from slurm_sns.task_ids import task_id

MEMORY = {"kind": "resources", "about": "memory", "features": ""}
ARRAY = row(job_id=4711, label="4711_[12-20:4,99%2]", waits=MEMORY, position=2, reason="lacks 5 MiB")
TASK = row(job_id=4720, label="4711_3", state="running", start_s=NOW - 93_784, nodes=["c2", "c3"], position=None)
BOBS = row(job_id=12, user="bob", account="chemistry", partition="long,main", position=1, state="held", cpus=9)
PLACED = row(job_id=13, state="placed, Slurm is starting it", position=None, partition="long", submit_s=NOW - 5)
ROWS = (BOBS, ARRAY, PLACED, TASK)


def labels(rows) -> list[str]:
    return [each["label"].partition("_[")[0] for each in rows]


@pytest.mark.parametrize(
    ("option", "named", "left"),
    [
        ("users", "bob", ["12"]),
        ("users", "bob, alice", ["12", "4711", "13", "4711_3"]),
        ("accounts", "chemistry,none", ["12"]),
        ("partitions", "long", ["12", "13"]),
        ("states", "PD", ["12", "4711", "13"]),
        ("states", "running,held", ["12", "4711_3"]),
        ("states", "waiting", ["4711"]),
        ("states", "Placed", ["13"]),
        ("states", "all", ["12", "4711", "13", "4711_3"]),
        ("jobs", "4711", ["4711", "4711_3"]),
        ("jobs", "4711_3,12", ["12", "4711_3"]),
        ("jobs", "4720", ["4711_3"]),
        ("jobs", "4711_16", ["4711"]),
        ("jobs", "4711_99", ["4711"]),
        ("jobs", "4711_13", []),
        ("jobs", "13_0", []),
    ],
)
def test_a_list_leaves_the_jobs_that_it_names(option: str, named: str, left: list[str]) -> None:
    assert labels(JobFilter(**{option: named}).of(ROWS)) == left


def test_lists_of_several_options_must_all_name_a_job() -> None:
    assert labels(JobFilter(users="alice", partitions="long").of(ROWS)) == ["13"]
    assert labels(JobFilter().of(ROWS)) == labels(ROWS)


def test_waiting_tasks_of_an_array_that_wait_alike_are_one_line_as_in_squeue() -> None:
    own = [row(job_id=number, label=f"4711_{task}", waits=MEMORY) for number, task in ((30, 21), (31, 10))]
    other = row(job_id=32, label="4711_11", waits={**MEMORY, "about": "cores"})
    rows = [BOBS, own[0], other, ARRAY, own[1], TASK]
    folded = with_folded_arrays(rows)
    assert [each["label"] for each in folded] == ["12", "4711_[10,12,16,20-21,99%2]", "4711_11", "4711_3"]
    assert folded[1] == {**own[0], "label": "4711_[10,12,16,20-21,99%2]"}, "it stands where its first task does"
    assert with_folded_arrays([own[0], TASK]) == [own[0], TASK]


def test_a_long_list_of_tasks_is_cut_where_squeue_cuts_it() -> None:
    rows = [row(label=label, waits=MEMORY) for label in ("41_[1-99999:2%5]", "41_0")]
    cut = with_folded_arrays(rows)[0]["label"]
    assert cut.startswith("41_[0-1,3,5,7,")
    assert cut.endswith(",...%5]")
    assert len(cut) < MOST_LISTED + 12


def test_a_list_of_tasks_that_slurm_cuts_off_stays_as_it_is() -> None:
    rows = [row(label="7_[3-9,20-...%5]", waits=MEMORY), row(label="7_1", waits=MEMORY), row(label="7_2", waits=MEMORY)]
    assert [each["label"] for each in with_folded_arrays(rows)] == ["7_[3-9,20-...%5]", "7_[1-2]"]


def test_tasks_beyond_a_list_that_slurm_cuts_off_count_as_its() -> None:
    rows = [row(job_id=7, label="7_[1,3,5-...]")]
    assert [len(JobFilter(jobs=f"7_{task}").of(rows)) for task in (2, 3, 900)] == [0, 1, 1]


@pytest.mark.parametrize(
    ("by", "order"),
    [
        ("i", ["12", "13", "4711_3", "4711"]),
        ("-i", ["4711", "4711_3", "13", "12"]),
        ("u,-i", ["4711", "4711_3", "13", "12"]),
        ("-user,+jobid", ["12", "13", "4711_3", "4711"]),
        ("pos", ["12", "4711", "13", "4711_3"]),
        ("-V", ["13", "12", "4711", "4711_3"]),
        ("S", ["4711_3", "12", "4711", "13"]),
        ("-M", ["4711_3", "12", "4711", "13"]),
        ("-size", ["12", "4711", "13", "4711_3"]),
    ],
)
def test_jobs_are_sorted_by_letters_of_squeue_or_by_columns(by: str, order: list[str]) -> None:
    assert labels(in_order(ROWS, by)) == order
    assert labels(in_order(ROWS, None)) == labels(ROWS)


def test_every_field_is_printed_as_squeue_prints_it() -> None:
    submitted = datetime.fromtimestamp(NOW - 4000).astimezone().strftime("%Y-%m-%dT%H:%M:%S")
    began = datetime.fromtimestamp(NOW - 93_784).astimezone().strftime("%Y-%m-%dT%H:%M:%S")
    words = "A|C|D|F|M|N|P|R|S|T|V|a|i|j|r|t|u"
    assert words.split("|") == [field.letter for field in FIELDS]
    heading, waits, runs = SqueueFormat("|".join(f"%{each}" for each in words.split("|"))).lines([ARRAY, TASK], NOW)
    assert heading == (
        "JOBID|CPUS|NODES|ARRAY_JOB_ID|TIME|NODELIST|PARTITION|NODELIST(REASON)|START_TIME|STATE|SUBMIT_TIME|ACCOUNT|"
        "JOBID|NAME|REASON|ST|USER"
    )
    assert waits == (
        f"4711|4|1|4711|0:00||main|(memory)|N/A|PENDING|{submitted}|physics|4711_[12-20:4,99%2]|wrap|memory|PD|alice"
    )
    assert runs == (
        f"4720|4|2|4711|1-02:03:04|c[2-3]|main|c[2-3]|{began}|RUNNING|{submitted}|physics|4711_3|wrap|None|R|alice"
    )


def test_a_task_in_its_arrays_record_has_the_id_of_the_array_as_slurm_has_no_other() -> None:
    assert list(SqueueFormat("%A").lines([row(job_id=task_id(41, 8), label="41_8")], NOW))[1] == "41"


def test_states_are_sorted_as_slurm_numbers_them() -> None:
    rows = [row(job_id=1, state="completing"), TASK, row(job_id=3, state="suspended"), ARRAY]
    assert labels(in_order(rows, "t")) == labels(in_order(rows, "T")) == ["4711", "4711_3", "3", "1"]


def test_a_field_is_as_wide_as_it_says_on_the_side_that_it_says() -> None:
    assert list(SqueueFormat("<%.6i> %3j|%u").lines([TASK], NOW)) == ["< JOBID> NAM|USER", "<4711_3> wra|alice"]
    assert list(SqueueFormat("%i").lines([TASK], NOW, heading=False)) == ["4711_3"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["-o", "%Q"], "--format '%Q': valid fields: %A (JOBID), %C (CPUS), "),
        (["-o", "50% %i"], "--format '50% ': a field is %, a width if you like (%8, %.8) and a letter: %A (JOBID)"),
        (["-o", "%.99999i"], "--format '%.99999i': a field is"),
        (["-t", "PD,XX"], "--states 'XX': valid: PD, PENDING, R, RUNNING, "),
        (["-j", "4711_[3]"], "JOBID '4711_[3]': valid are a job's number, as 41, and a task of an array, as 41_7"),
        (["-S", "u,priority"], "--sort 'priority': valid: squeue's letters A, C, "),
        (["-S", "-"], "--sort '-': valid: squeue's letters"),
        (["-u", "a,,b"], "--user 'a,,b': valid is a list with commas"),
        (["--why", "-o", "%i"], "--format goes without --why"),
        (["--why", "-n", "3"], "--limit goes without --why"),
        (["--json", "-o", "%i"], "--format goes without --json"),
    ],
)
def test_what_cannot_be_meant_is_one_line_that_says_what_is_valid(sns, config: Path, words, line: str) -> None:
    code, output, errors = sns("queue", *words, "--config", config)
    assert (code, output, errors.count("\n")) == (2, "", 1)
    assert errors.startswith(f"sns: error: {line}")


@given(st.text(max_size=20) | st.lists(st.sampled_from([*"%.8iRu ", "%j"]), max_size=9).map("".join))
def test_any_format_is_refused_in_words_or_printed_harmlessly(text: str) -> None:
    evil = row(name=EVIL, user=EVIL, label="7")
    try:
        lines = list(SqueueFormat(text).lines([evil], NOW))
    except BadInput:
        return
    assert len(lines) == 2
    assert not [each for each in FORBIDDEN for line in lines if each in line]


@given(st.lists(st.sampled_from(ROWS), max_size=8), st.lists(st.sampled_from([each.letter for each in FIELDS])))
def test_sorting_loses_no_job(rows, letters) -> None:
    if letters:
        assert sorted(labels(in_order(rows, ",".join(letters)))) == sorted(labels(rows))


def test_me_is_the_caller_and_counts_beside_other_users(sns, config: Path, scheduler) -> None:
    scheduler["queue"] = [row(job_id=1, user=getpass.getuser()), row(job_id=2, user="bob"), row(job_id=3)]
    for words, numbers in ((["--me"], "1"), (["--me", "-u", "bob"], "1 2"), (["-u", "alice"], "3")):
        assert sns("queue", "-h", "-o", "%i", *words, "--config", config) == (0, numbers.replace(" ", "\n") + "\n", "")


def test_options_choose_the_jobs_of_json_too(sns, config: Path, scheduler) -> None:
    scheduler["queue"] = list(ROWS)
    _, output, _ = sns("queue", "-p", "long", "-S", "-i", "--json", "--config", config)
    assert labels(json.loads(output)) == ["13", "12"]


def test_no_headings_of_no_jobs_are_no_lines(sns, config: Path, scheduler) -> None:
    scheduler["queue"] = []
    for words in (["-h"], ["-h", "-o", "%i"], ["-h", "--why"]):
        assert sns("queue", *words, "--config", config) == (0, "", "")
    assert sns("queue", "-o", "%i", "--config", config)[1] == "JOBID\n"


def test_waiting_jobs_are_sorted_and_shown_by_their_estimated_starts() -> None:
    def starts(low_s: float, limits_s: float | None) -> dict:
        return {"low_s": low_s, "high_s": low_s, "limits_s": limits_s, "not_before_s": None, "waits_for": ""}

    late, soon = (
        row(job_id=1, label="1", starts=starts(NOW + 90, NOW + 500)),
        row(job_id=2, label="2", starts=starts(NOW + 9, None)),
    )

    assert labels(in_order((late, BOBS, soon), "start")) == ["2", "1", "12"]
    assert labels(in_order((soon, BOBS, late), "S")) == ["1", "2", "12"]
    shown = datetime.fromtimestamp(NOW + 500).astimezone().strftime("%Y-%m-%dT%H:%M:%S")
    assert list(SqueueFormat("%S").lines((late, soon), NOW, heading=False)) == [shown, "N/A"]
