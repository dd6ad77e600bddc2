"""`sns report` of a site's accounting, as an admin runs it: the page, its JSON, and what bad dumps cost."""

import io
import json
import random
import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from json_output import read

from slurm_sns.cli import main

CONF = "NodeName=n[1-2] CPUs=4 RealMemory=16384\nPartitionName=main Nodes=ALL\nPartitionName=one Nodes=n1\n"
COLUMNS = "JobID|User|Partition|State|Submit|Start|ElapsedRaw|TimelimitRaw|NNodes|AllocCPUS|ReqMem|Priority|SubmitLine"
DAYS = 44


def jobs(days: int = DAYS) -> list[str]:
    """Each hour three jobs: two that take half a node with most of its memory, and a small one."""
    lines = []
    for hour in range(24 * days):
        clock = f"{datetime(2026, 10, 1, tzinfo=UTC) + timedelta(hours=hour):%Y-%m-%dT%H}"
        for at, (partition, cores, memory) in enumerate((("main", 2, "12G"), ("one", 2, "12G"), ("main", 1, "1G"))):
            moments = [f"{clock}:{minute:02}:00" for minute in (at, 10 + at)]
            asked = f"{900 + 60 * at}|60|1|{cores}|{memory}|{100 - at}|sbatch -n {cores} job.sh"
            lines.append(f"{len(lines)}|u{hour % 3}|{partition}|COMPLETED|{moments[0]}|{moments[1]}|{asked}\n")
    return lines


DUMP = COLUMNS + "\n" + "".join(jobs())


@pytest.fixture
def sns(tmp_path, monkeypatch, capsys):
    (tmp_path / "slurm.conf").write_text(CONF)
    monkeypatch.chdir(tmp_path)

    def run(text: str | bytes, *words: str) -> tuple[int, str, str]:
        (tmp_path / "dump").write_bytes(text if isinstance(text, bytes) else text.encode())
        options = () if "--nodes" in words else ("--slurm-conf", "slurm.conf")
        monkeypatch.setattr(sys, "argv", ["sns", "report", "dump", *options, "--jobs", "1", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return (ended.value.code or 0, *capsys.readouterr())

    return run


@pytest.mark.long
def test_the_json_is_as_documented_and_measures_whole_weeks(sns):
    code, out, error = sns(DUMP, "--json")
    assert (code, error) == (0, "")
    found = read("sns report", out)["accounting"]
    assert (found["jobs"], found["weeks"], found["weeks_there"]) == (72 * DAYS, 6, 6)
    assert found["overall"]["jobs"] == 6 * 7 * 72
    assert found["overall"]["recorded"]["mean_s"] == 600
    assert [each["name"] for each in found["partitions"]] == ["main", "one"]
    assert sum(each["jobs"] for each in found["partitions"]) == found["overall"]["jobs"]
    assert found["lines"] == found["lines_judged"] == 72 * DAYS
    for each in found["partitions"]:
        low, high = each["difference_95"]
        assert low <= each["difference_s"] <= high


@pytest.mark.long
def test_lines_in_another_order_give_the_same_page(sns):
    lines = jobs()
    random.Random(1).shuffle(lines)
    first = sns(DUMP)
    assert first[0] == 0
    assert sns(COLUMNS + "\n" + "".join(lines)) == first


@pytest.mark.long
def test_the_page_says_what_was_left_out_and_too_few_weeks_advise_nothing(sns):
    garbage = [f"{each}|{each}\n" for each in range(30)] + ["\x01\x02 \xff|||\n"] * 3
    few = jobs(days=9)
    code, out, error = sns(COLUMNS + "\n" + "".join(few[:100] + garbage + few[100:]))
    assert (code, error) == (0, "")
    assert "line with another number of fields than the header" in out
    assert " 33" in out
    assert "at least 6 weeks" in " ".join(out.split())
    assert "Let it manage" not in out
    assert "There is no 95 % interval" in " ".join(out.split())


@pytest.mark.long
def test_html_is_written_and_partitions_are_measured_alone(sns, tmp_path):
    hostile = DUMP.replace("|one|", "|<script>|")
    (tmp_path / "slurm.conf").write_text(CONF.replace("=one", "=<script>"))
    code, out, error = sns(hostile, "--partition", "<script>", "--out", "page.html", "--json", "--weeks", "1")
    assert (code, error) == (0, "")
    found = json.loads(out)["accounting"]
    assert [each["name"] for each in found["partitions"]] == ["<script>"]
    assert (found["weeks"], found["overall"]["jobs"]) == (1, 7 * 24)
    assert "<script>" not in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("text", "words", "says"),
    [
        ("", (), "empty"),
        ("\0\1", (), "binary"),
        ("hello\n", (), "no dump of sacct; valid"),
        ("".join(jobs(1)), (), "line 1 names no JobID"),
        (COLUMNS + "\n", (), "no job can run"),
        (COLUMNS.replace("|", "#") + "\n", (), "no dump of sacct; valid"),
        (COLUMNS.replace("Start", "Begin") + "\n" + "".join(jobs(1)), (), "sacct was not asked for Start"),
        (COLUMNS.replace("Partition", "P") + "\n" + "".join(jobs(1)), (), "sacct was not asked for Partition"),
        (DUMP[:30], (), "sacct was not asked for"),
        (DUMP, ("--policy", "sns"), "valid: max-jobs, "),
        (DUMP, ("--partition", "gone"), "valid: main, one"),
        (DUMP, ("--config", "sns.yaml"), "one thing is reported on"),
        (DUMP, ("--nodes", "gone"), "cannot be read"),
    ],
)
def test_a_bad_dump_is_one_line_of_error(text, words, says, sns):
    code, out, error = sns(text, *words)
    assert (code, out) == (2, "")
    assert says in error
    assert error.count("\n") == 1


def test_a_dump_needs_the_nodes_and_its_options_go_with_no_looks(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for words, says in (
        (["dump"], "either --nodes FILE or --slurm-conf FILE"),
        (["gone"], "gone: cannot be read"),
        (["--config", "sns.yaml", "--weeks", "1"], "--weeks goes with a dump"),
        ([str(tmp_path)], "there is no looks.jsonl in this directory"),
    ):
        (tmp_path / "dump").write_text(DUMP)
        monkeypatch.setattr(sys, "argv", ["sns", "report", *words])
        with pytest.raises(SystemExit):
            main()
        assert says in capsys.readouterr().err


def jobs_with_gpus(days: int) -> str:
    """At ten to each hour three jobs for 25 minutes, of which two find cores: the GPUs would be enough for four."""
    columns = f"{COLUMNS}|ReqTRES|AllocTRES\n"
    # The first one says when the week begins.
    lines = ["0|u1|main|COMPLETED|2026-10-01T00:00:00|2026-10-01T00:00:00|60|60|1|1|1G|100|sbatch job.sh||\n"]
    for hour in range(24 * days):
        clock = f"{datetime(2026, 10, 1, tzinfo=UTC) + timedelta(hours=hour):%Y-%m-%dT%H}"
        for minute in (50, 50, 51):
            tres = "billing=3,cpu=3,gres/gpu=1,gres/gpu:a=1,mem=1G,node=1"
            asked = f"1500|60|1|3|1G|100|sbatch -n 3 --gres=gpu:a:1 job.sh|{tres}|{tres}"
            lines.append(f"{len(lines)}|u1|main|COMPLETED|{clock}:{minute}:00|{clock}:{minute}:30|{asked}\n")
    return columns + "".join(lines)


@pytest.mark.long
def test_gpus_that_stand_idle_for_want_of_cores_are_counted_in_hours_by_type(sns, tmp_path):
    (tmp_path / "slurm.conf").write_text(f"GresTypes=gpu\n{CONF.replace('=16384', '=16384 Gres=gpu:a:2')}")
    code, out, error = sns(jobs_with_gpus(days=8), "--json", "--out", "page.html")
    assert (code, error) == (0, "")
    found = read("sns report", out)["accounting"]
    # At each full hour two jobs run and one waits: two of four GPUs have one core beside them. Every half an hour
    # is looked at.
    for side in ("slurm_idle", "sns_idle"):
        assert found[side]["gpus"] == [
            {"type": "a", "gpus": 4, "idle": 0.5, "stranded": 0.5, "stranded_hours": 2 * 0.5 * 24 * 7}
        ]
    page = " ".join((tmp_path / "page.html").read_text().split())
    assert "Stranded cores, memory and GPUs" in page
    assert "GPUs a" in page


@pytest.mark.long
def test_a_site_without_gpus_reads_nothing_of_them(sns):
    code, out, _ = sns(DUMP, "--weeks", "1", "--json", "--out", "page.html")
    assert code == 0
    assert "gpus" not in json.loads(out)["accounting"]["slurm_idle"]
    (stranded,) = re.findall(
        "<h2[^>]*>Stranded cores and memory</h2>(.*?)<h2", Path("page.html").read_text(), re.DOTALL
    )
    assert "idle" in stranded
    assert "GPU" not in stranded


@pytest.mark.long
def test_dump_and_nodes_come_through_pipes(tmp_path, monkeypatch, capsys):
    (tmp_path / "show").write_text("NodeName=n1 CPUTot=4 RealMemory=16384 Partitions=main,one\n")
    for argv, given in (
        (["-", "--nodes", str(tmp_path / "show")], DUMP),
        (["dump", "--nodes", "-"], (tmp_path / "show").read_text()),
    ):
        (tmp_path / "dump").write_text(DUMP)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
        monkeypatch.setattr(sys, "argv", ["sns", "report", *argv, "--jobs", "1", "--weeks", "1"])
        with pytest.raises(SystemExit) as ended:
            main()
        out, error = capsys.readouterr()
        assert (ended.value.code or 0, error) == (0, "")
        assert "Slurm alone has the defaults of SchedulerParameters" in " ".join(out.split())


def test_a_partition_without_jobs_is_refused_with_those_that_have_some(sns):
    code, out, error = sns(DUMP, "--partition", "gpu\x1b")
    assert (code, out) == (2, "")
    assert "no job of it in the dump; valid: main, one" in error
    assert "\x1b" not in error
