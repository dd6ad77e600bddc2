"""The parts of `sns top` that need no screen: lines of the queue, the feed, words, and what acts send."""

import re
import threading

import pytest
from overviews import amounts, overview, running, small, waiting, with_gpus
from rich.cells import cell_len
from shown import EVIL, FORBIDDEN, NOW

from slurm_sns.cli.live.squeue_options import JobFilter
from slurm_sns.cli.live.top import acts, overview_check, overview_words
from slurm_sns.cli.live.top.cell_text import cells, fitted
from slurm_sns.cli.live.top.node_boxes import ASCII
from slurm_sns.cli.live.top.overview_feed import LEAST_S, MOST_S, RETRY_S, OverviewFeed
from slurm_sns.cli.live.top.queue_lines import ColumnLines, FormatLines, JobChoice, ListedJobs, place_of
from slurm_sns.errors import BadInput, Unreachable


def labels(rows) -> list[str]:
    return [row["label"] for row in rows]


class TestText:
    def test_it_takes_exactly_its_cells(self) -> None:
        for text in ("", "short", "a longer text", "\u4e2d\u6587\u5b57", "\u05d0\u05d1\u05d2", "e\u0301", EVIL):
            for width in range(12):
                assert cell_len(fitted(text, width)) == width
                assert cell_len(fitted(text, width, right=True)) == width

    def test_a_cut_text_is_marked(self) -> None:
        assert fitted("abcdef", 4) == "abc+"
        assert fitted("abcd", 4) == "abcd"
        assert fitted("ab", 4, right=True) == "  ab"

    def test_it_has_no_command_for_a_terminal(self) -> None:
        shown = fitted(EVIL, 100)
        assert not any(letter in shown for letter in FORBIDDEN)
        assert "[bold]" in shown
        assert cells(EVIL) == len(shown.rstrip())


class TestQueue:
    def lines(self, width: int, rows=None) -> tuple[str | None, list[str]]:
        return ColumnLines().lines(JobChoice().of(rows or small()["jobs"], folded=True), NOW, width)

    def test_it_has_the_columns_of_sns_queue_for_its_width(self) -> None:
        assert self.lines(79)[0].split() == ["POS", "JOBID", "USER", "SIZE", "SINCE", "NODES", "START", "WHY"]
        wide = self.lines(159)[0].split()
        assert {"ACCOUNT", "PARTITION", "NAME", "STATE", "BY-LIMITS"} <= set(wide)

    @pytest.mark.parametrize("width", [10, 40, 59, 79, 99, 139, 239])
    def test_every_line_is_as_wide_as_the_terminal(self, width: int) -> None:
        odd = [
            waiting(1, name=EVIL, user=EVIL, account="\u4e2d" * 30, partition="p" * 300, label="1_[1,3,5,7,9,11,...]")
        ]
        heading, lines = self.lines(width, [*odd, *small()["jobs"]])
        assert {cell_len(line) for line in (heading, *lines)} <= {width, cell_len(heading)}
        if width >= 59:
            assert {cell_len(line) for line in (heading, *lines)} == {width}
        assert not any(letter in "".join(lines) for letter in FORBIDDEN)

    def test_times_are_not_cut_for_a_long_name(self) -> None:
        _, [line] = self.lines(79, [waiting(1, user="u" * 40, label="1_[1,3,5,7,9,11,13-99%2]")])
        assert re.search(r"\d\d:\d\d to \d\d:\d\d", line)

    def test_a_column_stays_as_wide_as_it_was(self) -> None:
        form = ColumnLines()
        form.lines([waiting(1, user="longername")], NOW, 79)
        heading, _ = form.lines([waiting(1, user="al")], NOW, 79)
        assert "USER        SIZE" in heading

    def test_arrays_are_folded_or_not(self) -> None:
        listed = ListedJobs(small()["jobs"], JobChoice())
        assert "4722_[3-5]" in labels(listed.folded.rows)
        assert {"4722_3", "4722_4", "4722_5"} <= set(labels(listed.single.rows))

    def test_options_choose_and_sort_as_in_squeue(self) -> None:
        chosen = JobChoice(JobFilter(users="bob", states="PD,R"), "-i")
        assert labels(chosen.of(small()["jobs"], folded=True)) == ["4730", "4715"]

    def test_squeues_format_replaces_the_columns(self) -> None:
        heading, lines = FormatLines("%.8i %u").lines([waiting(7)], NOW, 20)
        assert (heading.rstrip(), lines[0].rstrip()) == ("   JOBID USER", "       7 alice")
        assert FormatLines("%i", heading=False).lines([waiting(7)], NOW, 9) == (None, ["7        "])

    @pytest.mark.parametrize(
        ("typed", "found"),
        [
            ("bob", ["4730", "4715"]),
            ("BOB lammps", ["4715"]),
            ("chemistry", ["4730"]),
            ("gpu", ["4717"]),
            ("running", ["4711", "4715", "4717"]),
            ("array limit", ["4722_[3-5]"]),
            ("dependency", ["4730"]),
            ("92160 4721", ["4721"]),
            ("nothing such", []),
        ],
    )
    def test_typed_words_are_looked_for_everywhere(self, typed: str, found: list[str]) -> None:
        assert labels(ListedJobs(small()["jobs"], JobChoice()).folded.with_words(typed)) == found


class TestPlace:
    @pytest.mark.parametrize(
        ("selected", "rows", "at"),
        [
            ("41", ["40", "41"], 1),
            ("41", ["40", "42"], None),
            ("41_[7-99]", ["40", "41_[8-99]"], 1),
            ("41_[7-99]", ["41_[3]", "41_[8-99%2]"], 1),  # the line that has its tasks
            ("41_[7-8]", ["40", "41_[10-99]"], 1),
            ("41_[7-8]", ["40", "410_[7-8]"], None),
            ("41_4", ["40", "41_[3-5]"], 1),
            ("41_4", ["40", "41_[5-9]"], None),  # this task has left
            ("41_[3-5]", ["40", "41_3", "41_4"], 1),
        ],
    )
    def test_a_job_is_found_by_its_label_or_its_tasks(self, selected: str, rows: list[str], at: int | None) -> None:
        assert place_of([waiting(2**40, label=each) for each in rows], waiting(2**40, label=selected)) == at

    def test_of_tasks_of_which_some_run_those_that_wait_are_found(self) -> None:
        rows = [running(50, ["c1"], label="41_7"), waiting(51, label="41_8")]
        assert place_of(rows, waiting(50, label="41_[7-8]")) == 1
        assert place_of(rows[:1], waiting(50, label="41_[7-8]")) == 0


class TestCheck:
    def test_a_whole_overview_is_read(self) -> None:
        overview_check.read(small(), NOW)

    @pytest.mark.parametrize("key", ["mode", "counts", "jobs", "nodes", "disabled", "chosen", "cycle_s", "at_s"])
    def test_one_without_something_is_refused(self, key: str) -> None:
        shown = {name: value for name, value in small().items() if name != key}
        with pytest.raises(KeyError, match=key):
            overview_check.read(shown, NOW)

    @pytest.mark.parametrize("key", overview_check.OF_JOB)
    def test_a_job_without_something_is_refused(self, key: str) -> None:
        shown = small()
        shown["jobs"][-1] = {name: value for name, value in shown["jobs"][-1].items() if name != key}
        with pytest.raises(KeyError, match=key):
            overview_check.read(shown, NOW)

    @pytest.mark.parametrize("key", sorted(small()["nodes"][0]))
    def test_a_node_without_something_is_refused(self, key: str) -> None:
        shown = small()
        shown["nodes"][0] = {name: value for name, value in shown["nodes"][0].items() if name != key}
        with pytest.raises(KeyError, match=key):
            overview_check.read(shown, NOW)


class TestFeed:
    def once(self, answer: object) -> tuple[float, list]:
        told: list = []

        def ask() -> object:
            if isinstance(answer, Exception):
                raise answer
            return answer

        return OverviewFeed(ask, lambda *news: told.append(news), lambda: NOW).once(), told

    def test_it_asks_again_when_there_can_be_something_new(self) -> None:
        assert self.once({"next_s": NOW + 7}) == (7, [({"next_s": NOW + 7}, "")])

    def test_a_wrong_clock_neither_floods_nor_stops_it(self) -> None:
        assert self.once({"next_s": NOW - 1e9})[0] == LEAST_S
        assert self.once({"next_s": NOW + 1e9})[0] == MOST_S

    @pytest.mark.parametrize("problem", [Unreachable("no scheduler\nanswers"), BadInput("command 'overview': unknown")])
    def test_an_error_is_told_in_one_line_and_it_goes_on(self, problem: Exception) -> None:
        assert self.once(problem) == (RETRY_S, [(None, " ".join(str(problem).split()))])

    @pytest.mark.parametrize("answer", ["", None, [], {"next_s": "x"}])
    def test_an_answer_that_is_none_is_told(self, answer: object) -> None:
        wait_s, [(got, why)] = self.once(answer)
        assert (wait_s, got) == (RETRY_S, None)
        assert why.startswith("the scheduler's answer cannot be read")
        assert why.endswith("; sns and the scheduler may be of different versions")

    def test_what_cannot_be_shown_is_told_and_it_goes_on(self) -> None:
        told: list = []

        def show(answer: object, why: str) -> None:
            if answer is not None:
                raise KeyError("mode")
            told.append(why)

        assert OverviewFeed(lambda: {"next_s": 0}, show).once() == RETRY_S
        assert "KeyError 'mode'; sns and the scheduler" in told[0]

    def test_it_asks_at_once_when_it_is_woken(self) -> None:
        asked = threading.Semaphore(0)

        def ask() -> object:
            asked.release()
            return {"next_s": NOW + 1e9}

        feed = OverviewFeed(ask, lambda *_: None, lambda: NOW)
        feed.start()
        assert asked.acquire(timeout=10)
        feed.wake()
        assert asked.acquire(timeout=10)
        feed.stop()

    def test_a_slow_answer_holds_up_nobody_who_stops(self) -> None:
        asked, answers = threading.Event(), threading.Event()

        def ask() -> object:
            asked.set()
            answers.wait(30)
            return {"next_s": 0}

        feed = OverviewFeed(ask, lambda *_: None)
        before = threading.enumerate()  # that of an earlier test may not have ended yet
        feed.start()
        assert asked.wait(10)
        feed.stop()
        [thread] = [each for each in threading.enumerate() if each.name == "overview" and each not in before]
        assert thread.daemon
        answers.set()
        thread.join(10)
        assert not thread.is_alive()


class TestWords:
    def test_the_first_line_says_mode_age_and_counts(self) -> None:
        told = overview_words.facts(small(), NOW)
        assert told == "enforce  6 waiting, 3 running, 1 never  cycle 12 ms by max-jobs, 1 s ago"

    def test_what_is_wrong_is_told_in_words(self) -> None:
        answer = overview([], [], disabled=True, trouble="slurmctld does not answer")
        assert overview_words.troubles(answer, "", 0, NOW) == [
            "disabled: jobs pass through to Slurm until sns enable",
            "slurmctld does not answer",
        ]
        assert overview_words.troubles(answer, "gone", NOW - 180, NOW)[0] == "no answer for 3 min, asking again: gone"
        assert overview_words.troubles(small(), "", 0, NOW) == []

    def test_a_silent_scheduler_is_told_only_when_something_new_was_due(self) -> None:
        old = overview([], [], at_s=NOW - 100, next_s=NOW - 1)
        assert overview_words.troubles(old, "", 0, NOW) == []
        silent = overview([], [], at_s=NOW - 100, next_s=NOW - 99)
        assert "no sign of life for 99 s" in overview_words.troubles(silent, "", 0, NOW)[0]

    def test_a_node_is_told_with_what_is_free_stranded_and_on_it(self) -> None:
        told = overview_words.of_node(small()["nodes"][0])
        assert told == "c1: free 2 of 28 cores, 0 of 128 GiB (stranded: 2 cores); a 4711, b 4712_3"
        assert overview_words.job_lines(small()["nodes"][1])[1] == "A 88  8c,16G  (of Slurm alone)"
        assert overview_words.job_lines(small()["nodes"][0])[2] == "  a job of somebody else  2c,16G"

    def test_stranded_gpus_are_told_where_free_ones_are(self) -> None:
        of = {**small()["nodes"][5], "stranded": with_gpus(amounts(0, 0), a100=1)}
        assert "1 of 4 GPUs a100 free (stranded: 1)" in overview_words.node_told(of)
        assert "1 of 4 GPUs a100 free (stranded: 1)" in overview_words.of_node(of)
        assert "1 of 4 GPUs a100 free" in overview_words.node_told(small()["nodes"][5])

    def test_the_help_fits_eighty_columns(self) -> None:
        assert max(map(len, overview_words.help_text(ASCII).splitlines())) <= 80


class TestActs:
    @pytest.mark.parametrize(
        ("label", "request_fields"),
        [
            ("41", {"job_id": 41}),
            ("41_7", {"job_id": 41, "task": 7}),
            ("41_[3,8-99%2]", {"job_id": 41, "task": 3}),
        ],
    )
    def test_a_line_of_several_tasks_is_explained_by_its_first(self, label: str, request_fields: dict) -> None:
        assert acts.explain_request(waiting(2**40, label=label)) == {"command": "explain", **request_fields}

    def test_a_release_names_what_it_gives_to_slurm(self) -> None:
        single, task, several = (acts.release(waiting(2**40, label=each)) for each in ("41", "41_7", "41_[3-5%2]"))
        assert single.request == {"command": "release", "job_id": 41}
        assert task.request == {"command": "release", "job_id": 41, "task": 7}
        assert several.request == {"command": "release", "job_id": 41}
        assert "job 41 (wrap)" in single.question
        assert "all waiting tasks of array 41" in several.question

    @pytest.mark.parametrize(
        ("options", "field"),
        [
            ("-t 1:55:00", "TimeLimit=1:55:00"),
            ("-t 1-00:00:00", "TimeLimit=1-00:00:00"),
            ("--mem=66G", "MinMemoryNode=67584"),
            ("--mem=500M", "MinMemoryNode=500"),
            ("--mem-per-cpu=3G", "MinMemoryCPU=3072"),
        ],
    )
    def test_time_and_memory_become_an_update(self, options: str, field: str) -> None:
        smaller = acts.smaller_request("41_7", {"kind": "", "options": options, "nodes": ["c2"]})
        assert smaller.command == ["scontrol", "update", "JobId=41_7", field]
        assert f"scontrol update JobId=41_7 {field}" in smaller.told
        assert "on c2" in smaller.told

    @pytest.mark.parametrize("options", ["-c 8 --mem=28G", "--ntasks-per-node=8", "--sns-max-scale=4", "--mem=1G; ls"])
    def test_what_slurm_cannot_change_is_told_as_options_of_sbatch(self, options: str) -> None:
        smaller = acts.smaller_request("41", {"kind": "", "options": options, "nodes": ["c2"]})
        assert smaller.command == []
        assert f"submit 41 again with {options}" in smaller.told

    def test_an_arrays_tasks_are_named_without_its_limit(self) -> None:
        change = {"kind": "time", "options": "-t 10:00", "nodes": ["c2"]}
        assert acts.smaller_request("41_[3,8-99%2]", change).command[2] == "JobId=41_[3,8-99]"
        assert acts.smaller_request("41_[1,3,...]", change).command == []
        assert acts.smaller_request("41 x", change).command == []


def test_running_jobs_are_not_folded() -> None:
    rows = [running(5, ["c1"], label="9_1"), running(6, ["c1"], label="9_2")]
    assert labels(JobChoice().of(rows, folded=True)) == ["9_1", "9_2"]
