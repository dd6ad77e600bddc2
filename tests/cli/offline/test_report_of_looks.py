"""`sns report` of what `sns observe` wrote: hand-made looks with known answers, and files that somebody has damaged."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_output import read

from slurm_sns.cli.offline.looks import lines
from slurm_sns.cli.offline.looks.figures import read as together
from slurm_sns.cli.offline.looks.intervals import Sums, WatchedBlocks
from slurm_sns.cli.offline.looks.page import page_of
from slurm_sns.report.html import as_html
from slurm_sns.report.text import as_text

BEGAN_S = 1_795_000_000.0
SUMMARY = dict.fromkeys(("looks", "advised", "earlier", "same", "on_same_nodes", "later", "gone", "still_waiting"), 1)


def advice(job: str, **fields: object) -> dict[str, Any]:
    shown = {"job": job, "user": "-", "tasks": 4, "nodes": "c1", "heuristic": "mix-fit", "partition": "main", "cpus": 4}
    return {**shown, **fields}


def outcome(job: str, comparison: str, seconds: float | None = None, **fields: object) -> dict[str, Any]:
    shown = {"nodes": "c1", "on_same_nodes": False, "partition": "main", "cpus": 4}
    return {"job": job, "comparison": comparison, "seconds": seconds, **shown, **fields}


def look(at_s: float = 0.0, **fields: object) -> dict[str, Any]:
    """A look so many seconds after the first one."""
    shown: dict[str, Any] = {
        "version": 2,
        "began_s": BEGAN_S,
        "at_s": BEGAN_S + at_s,
        "read_s": 0.5,
        "plan_s": 0.1,
        "policy": "max-jobs",
        "partitions": ["main"],
        "pending": 10,
        "managed": 8,
        "not_managed": {"it asks for gres (--gres, --gpus)": 2},
        "advices": [],
        "as_before": 0,
        "outcomes": [],
        "overtaken": [],
        "left_out": {},
        "hidden": [],
        "summary": {**SUMMARY, "earlier_mean_s": None},
    }
    return {**shown, **fields}


def old(of: dict[str, Any], looks: int) -> dict[str, Any]:
    """The look as version 1 wrote it."""
    line = {name: value for name, value in of.items() if name not in ("began_s", "not_managed")}
    for name in ("advices", "outcomes"):
        line[name] = [
            {field: value for field, value in each.items() if field not in ("partition", "cpus")} for each in of[name]
        ]
    return {**line, "version": 1, "summary": {**of["summary"], "looks": looks}}


@pytest.fixture
def seen(tmp_path: Path):
    """Writes looks.jsonl, and gives its directory."""

    def seen(*looks: dict[str, Any], end: str = "") -> Path:
        text = "".join(f"{json.dumps(each)}\n" for each in looks)
        (tmp_path / "looks.jsonl").write_text(text + end)
        return tmp_path

    return seen


WATCH = (
    look(0, advices=[advice("1"), advice("2", cpus=1, partition="long"), advice("3", nodes="c[1-2]"), advice("4")]),
    look(30, outcomes=[outcome("1", "same", 0.0, on_same_nodes=True), outcome("9", "later", partition="long")]),
    look(
        60,
        outcomes=[outcome("2", "earlier", 40.0)],
        overtaken=[{"job": "3", "since_s": 60.0, "others": ["7", "8"]}],
        advices=[advice("5", heuristic="")],
    ),
    look(90, outcomes=[outcome("4", "earlier", 80.0, on_same_nodes=True), outcome("5", "gone", nodes="")]),
)


def values(directory: Path) -> Any:
    return together(directory / "looks.jsonl")[1]


class TestFigures:
    """What comes of looks whose answers are known."""

    def test_each_job_is_counted_by_what_became_of_it(self, seen) -> None:
        found = values(seen(*WATCH))["all"]
        counted = {name: found[name] for name in ("advised", "started", "earlier", "same", "gone", "still_waiting")}
        assert counted == {"advised": 5, "started": 3, "earlier": 2, "same": 1, "gone": 1, "still_waiting": 1}
        assert (found["on_same_nodes"], found["let_wait"]) == (2, 1)
        assert (found["mean_s"], found["median_s"], found["p90_s"]) == (60, 60, 80)
        assert found["still_waiting_mean_s"] == 90
        assert found["earlier_share"] == pytest.approx(2 / 3)

    def test_jobs_are_grouped_by_partition_size_and_heuristic(self, seen) -> None:
        found = values(seen(*WATCH))
        groups = {
            kind: [(each["name"], each["advised"], each["earlier"], each["let_wait"]) for each in found[f"by_{kind}"]]
            for kind in ("partition", "size", "heuristic", "policy")
        }
        assert groups == {
            "partition": [("main", 4, 1, 0), ("long", 1, 1, 1)],
            "size": [("1 CPU", 1, 1, 0), ("several CPUs of a node", 3, 1, 1), ("several nodes", 1, 0, 0)],
            "heuristic": [("mix-fit", 4, 2, 0), ("none", 1, 0, 0)],
            "policy": [("max-jobs", 5, 2, 1)],
        }

    def test_those_that_waited_longest_are_named_with_what_slurm_started_there(self, seen) -> None:
        longest = values(seen(*WATCH))["longest"]
        told = [(each["job"], each["seconds"], each["still_waits"], each["others"]) for each in longest]
        assert told == [("3", 90, True, 2), ("4", 80, False, 0), ("2", 40, False, 0)]
        assert (values(seen(*WATCH))["overtaken"], values(seen(*WATCH))["overtaking"]) == (1, 2)

    def test_the_histogram_has_each_job_that_would_have_started_earlier(self, seen) -> None:
        histogram = {each["name"]: each["jobs"] for each in values(seen(*WATCH))["histogram"] if each["jobs"]}
        assert histogram == {"up to 1 min": 1, "1 to 5 min": 1}

    def test_the_watch_is_that_of_its_runs_and_not_of_the_pause_between(self, seen) -> None:
        later = [look(each, began_s=BEGAN_S + 7200) for each in (7200, 7260)]
        found = values(seen(*WATCH, *later))
        assert (found["runs"], found["looks"], found["watched_s"], found["interval_s"]) == (2, 6, 90 + 60, 30)
        assert found["not_managed"] == {"it asks for gres (--gres, --gpus)": 2}

    def test_a_job_that_a_later_run_advises_again_counts_once(self, seen) -> None:
        again = look(7200, began_s=BEGAN_S + 7200, advices=[advice("3")])
        done = look(7230, began_s=BEGAN_S + 7200, outcomes=[outcome("3", "earlier", 20.0)])
        found = values(seen(*WATCH, again, done))["all"]
        assert (found["advised"], found["earlier"], found["still_waiting"]) == (5, 3, 0)

    def test_two_policies_that_watch_at_once_are_told_apart(self, seen) -> None:
        both = [each for one in WATCH for each in (one, {**one, "policy": "sns", "began_s": BEGAN_S + 1})]
        found = values(seen(*both))
        assert [(each["name"], each["advised"], each["earlier"]) for each in found["by_policy"]] == [
            ("max-jobs", 5, 2),
            ("sns", 5, 2),
        ]
        assert found["all"]["advised"] == 10

    def test_lines_of_version_1_are_read_without_what_they_lack(self, seen) -> None:
        first = [old(each, looks + 1) for looks, each in enumerate(WATCH)]
        found = values(seen(*first, old({**look(7200), "advices": [advice("6")]}, 1)))
        assert (found["runs"], found["unread"], found["all"]["advised"], found["not_managed"]) == (2, {}, 6, {})
        assert [each["name"] for each in found["by_partition"]] == ["not recorded"]
        assert {each["name"] for each in found["by_size"]} == {"one node", "several nodes"}

    @given(st.lists(st.lists(st.sampled_from("1234"), max_size=3), min_size=1, max_size=6), st.randoms())
    def test_no_advice_is_lost_or_counted_twice(self, tmp_path_factory, looks, random) -> None:
        standing, written, advised = set[str](), [], 0
        for at, jobs in enumerate(looks):
            ended = {job for job in standing if random.random() < 0.5}
            standing -= ended
            new = set(jobs) - standing
            standing |= new
            advised += len(new)
            outcomes = [outcome(job, random.choice(["earlier", "same", "gone"]), 50.0) for job in sorted(ended)]
            written.append(look(30.0 * at, outcomes=outcomes, advices=[advice(job) for job in sorted(new)]))
        path = tmp_path_factory.mktemp("seen") / "looks.jsonl"
        path.write_text("".join(f"{json.dumps(each)}\n" for each in written))
        found = together(path)[1]["all"]
        assert found["advised"] == advised == found["started"] + found["gone"] + found["still_waiting"]
        assert found["still_waiting"] == len(standing)


class TestIntervals:
    """The bootstrap over hours and days."""

    def test_hours_that_are_all_alike_leave_no_doubt(self) -> None:
        hours = [hour * 3600.0 for hour in range(48)]
        blocks = WatchedBlocks(hours)
        assert (blocks.over, blocks.count) == ("hours", 48)
        assert blocks.interval((at_s, Sums(60, 1)) for at_s in hours) == (60, 60)

    def test_the_interval_holds_the_ratio_and_narrows_with_more_hours(self) -> None:
        widths = []
        for count in (48, 240):
            jobs = [(hour * 3600.0, Sums(100.0 * (hour % 4), 1)) for hour in range(count)]
            low, high = WatchedBlocks(at_s for at_s, _ in jobs).interval(jobs)
            assert low < 150 < high
            widths.append(high - low)
        assert widths[1] < widths[0]

    @pytest.mark.parametrize(("hours", "with_jobs"), [(23, 23), (48, 9), (1, 1)])
    def test_too_little_has_no_interval(self, hours: int, with_jobs: int) -> None:
        blocks = WatchedBlocks(hour * 3600.0 for hour in range(hours))
        assert blocks.interval((hour * 3600.0, Sums(1, 1)) for hour in range(with_jobs)) is None

    def test_two_weeks_are_drawn_by_days(self) -> None:
        blocks = WatchedBlocks(hour * 3600.0 for hour in range(24 * 14))
        assert (blocks.over, blocks.count) == ("days", 14)


class TestPage:
    """What a reader sees."""

    def test_it_says_the_result_and_its_limits(self, sns, seen) -> None:
        _, output, errors = sns("report", seen(*WATCH))
        assert errors == ""
        text = " ".join(output.split())
        assert "4 looks, one every 30 s, 90 s of watching, policy max-jobs, partitions main." in text
        assert "slurm_sns would have started 5 jobs. Slurm started 3 of them, 2 (67 %) later" in text
        assert "60 s on average" in text
        assert "It is no forecast of the gain" in text
        assert "There are no intervals" in text
        assert "the times must not be added up" in text

    def test_json_is_as_documented(self, sns, seen) -> None:
        _, output, _ = sns("report", seen(*WATCH), "--json")
        found = read("sns report", output)
        assert (found["about"], found["looks"]["all"]["advised"]) == ("looks", 5)
        assert found["summary"]

    def test_where_nothing_would_start_it_says_that_it_does_not_help(self, sns, seen) -> None:
        for last_s, told in ((30, "Such a watch is too short to say more."), (90_000, "it does not help here")):
            _, output, _ = sns("report", seen(look(0), look(last_s)))
            assert told in " ".join(output.split())
        for end in (outcome("1", "same", 0.0), outcome("1", "gone")):
            _, output, _ = sns("report", seen(look(0, advices=[advice("1")]), look(30, outcomes=[end])))
            assert "would have started" in output

    def test_one_look_is_a_report_too(self, sns, seen) -> None:
        status, output, _ = sns("report", seen(look(0, advices=[advice("1")])))
        assert status in (0, None)
        assert "Slurm started none of them while it was watched" in output

    def test_hidden_jobs_are_said_at_the_top(self, sns, seen) -> None:
        _, output, _ = sns("report", seen(look(0, hidden=["jobs"], advices=[advice("1")])))
        assert "only their own jobs (PrivateData)" in output.split("What Slurm did")[0]

    def test_html_is_written_whole_and_hostile_names_are_words(self, sns, seen, tmp_path: Path) -> None:
        evil = "<script>alert(1)</script>"
        watch = (
            look(0, partitions=[evil], advices=[advice(evil, partition=evil, heuristic=evil, nodes=evil)]),
            look(600, outcomes=[outcome(evil, "earlier", 300.0)], not_managed={f"partition {evil}\x1b[2J": 2}),
        )
        out = tmp_path / "made" / "report.html"
        _, output, _ = sns("report", seen(*watch), "--out", out)
        assert output == f"the report is in {out}\n"
        assert "<script" not in out.read_text()
        assert "&lt;script&gt;" in out.read_text()
        assert "\x1b" not in out.read_text()
        assert [each.name for each in out.parent.iterdir()] == ["report.html"]
        assert "\x1b" not in sns("report", seen(*watch))[1]

    def test_the_same_looks_give_the_same_bytes(self, seen) -> None:
        path = seen(*WATCH, look(7200, began_s=BEGAN_S + 7200, partitions=["b", "a", "c"])) / "looks.jsonl"
        program = (
            "import sys; from pathlib import Path; from slurm_sns.cli.offline.report_of_looks import report_of_looks; "
            "from slurm_sns.report.html import as_html; print(as_html(report_of_looks(Path(sys.argv[1]))[0]))"
        )
        made = {
            subprocess.run(
                [sys.executable, "-c", program, path],
                env={**os.environ, "PYTHONHASHSEED": seed},
                check=True,
                capture_output=True,
            ).stdout
            for seed in ("1", "2")
        }
        assert len(made) == 1

    @pytest.mark.parametrize("hours", [1, 30, 24 * 16])
    def test_long_watches_have_intervals_and_a_chart_of_the_queue(self, seen, hours: int) -> None:
        looks = [
            look(
                600.0 * at,
                advices=[advice(str(at))],
                outcomes=[outcome(str(at - 1), "earlier", 10.0 * (at % 7 + 1))] if at else [],
            )
            for at in range(6 * hours)
        ]
        followed, found = together(seen(*looks) / "looks.jsonl")
        assert found["intervals_over"] == {1: "", 30: "hours", 384: "days"}[hours]
        assert (found["all"]["mean_low_s"] is None) == (hours == 1)
        page = page_of(found, followed)
        (queue,) = [section for section in page.sections if section.title == "The queue"]
        assert all(len(points) <= 200 for points in queue.charts[0].series.values())
        assert as_html(page)
        assert as_text(page, 80)


class TestDamage:
    """A bad line costs that line; a bad file gives one line of error."""

    @pytest.mark.parametrize(
        ("line", "why"),
        [
            (json.dumps(look(0))[:-40], lines.CUT_OFF),
            ("[]\n", lines.NO_LOOK),
            ("{}\n", lines.NO_LOOK),
            ('{"version": 1}\n', lines.NO_LOOK),
            ('{"version": 1, "summary": {"looks": "x"}}\n', lines.NO_LOOK),
            ('{"version": 1, "summary": {"looks": 1}, "at_s": 1, "advices": [3], "outcomes": []}\n', lines.NO_LOOK),
            ("[" * 100_000 + "}\n", lines.NO_LOOK),
            ("\x00\x01\n", lines.CUT_OFF),
            (json.dumps(look(0, version=3)) + "\n", lines.NEWER),
            (json.dumps(look(0, version=True)) + "\n", lines.NO_LOOK),
            (json.dumps(look(0, pending="10")) + "\n", lines.NO_LOOK),
            (json.dumps(look(float("nan"))) + "\n", lines.NO_LOOK),
            (json.dumps(look(1e300)) + "\n", lines.OUT_OF_RANGE),
            ('{"version": 1, "summary": {"looks": 1e400}, "at_s": 1, "advices": [], "outcomes": []}\n', lines.NO_LOOK),
            (json.dumps(look(0, pending=10**400)) + "\n", lines.OUT_OF_RANGE),
            (json.dumps(look(0, outcomes=[outcome("1", "earlier", -5.0)])) + "\n", lines.OUT_OF_RANGE),
        ],
    )
    def test_a_line_that_is_no_look_is_counted(self, sns, seen, line: str, why: str) -> None:
        directory = seen(*WATCH, end=line)
        found = values(directory)
        assert (found["unread"], found["looks"]) == ({why: 1}, 4)
        assert why in sns("report", directory)[1]

    def test_a_line_that_is_too_long_is_passed_over(self, seen, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lines, "LONGEST_LINE", 5000)
        directory = seen(look(0), look(30, hidden=["x" * 20_000]), look(60))
        found = values(directory)
        assert (found["unread"], found["looks"]) == ({lines.TOO_LONG: 1}, 2)

    @pytest.mark.parametrize("nodes", ["c[1-99999999]", "c[", "c[9-1]", ",,,"])
    def test_a_list_of_nodes_that_is_none_costs_the_size_only(self, seen, nodes: str) -> None:
        assert values(seen(look(0, advices=[advice("1", nodes=nodes)])))["all"]["advised"] == 1

    @given(st.binary(max_size=300))
    def test_no_bytes_are_a_traceback(self, tmp_path_factory, garbage: bytes) -> None:
        path = tmp_path_factory.mktemp("seen") / "looks.jsonl"
        path.write_bytes(garbage + b"\n" + json.dumps(look(0)).encode() + b"\n")
        assert together(path)[1]["looks"] == 1

    def test_what_cannot_be_reported_on_is_said_in_one_line(self, sns, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        (tmp_path / "none.jsonl").write_text('{"a": 1}\n')
        (tmp_path / "looks.jsonl").touch()
        (tmp_path / "dump").write_text("JobID|Start\n")
        for words, complaint in (
            ((), "one thing is reported on, not none; valid: a dump of sacct"),
            ((tmp_path, "--config", "x"), "not two; valid"),
            ((tmp_path / "empty",), "there is no looks.jsonl in this directory; valid"),
            ((tmp_path / "none.jsonl",), "there is no look in it (1 times the line is no look of sns observe); valid"),
            ((tmp_path,), "there is no look in it; valid"),
            ((tmp_path / "dump",), "needs the nodes: either --nodes FILE or --slurm-conf FILE"),
            ((tmp_path / "nothing",), "cannot be read (No such file or directory)"),
            ((tmp_path, "--out", tmp_path), "is a directory; valid"),
            ((tmp_path, "--out", tmp_path / "dump" / "y.html"), "is not a directory; valid"),
        ):
            status, output, errors = sns("report", *words)
            assert (status, output, errors.count("\n")) == (2, "", 1), errors
            assert complaint in errors
