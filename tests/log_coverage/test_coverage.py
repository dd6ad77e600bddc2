"""`sns coverage`: the jobs of a log through the judgement of the submit filter."""

import gzip
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from json_output import read

from slurm_sns.coverage.judged import MANAGED, all_partitions, coverage
from slurm_sns.coverage.logs import read_log
from slurm_sns.coverage.sacct import COLUMNS
from slurm_sns.coverage.sbatch_options import submission
from slurm_sns.errors import BadInput
from slurm_sns.submit.submission import Submission, unplaced
from slurm_sns.submit.table import FilterTable

SHARED = Path(os.environ.get("SNS_SHARED", Path(__file__).parents[2].parent / "shared")) / "traces"
WEEK = SHARED / "slurm-week" / "ubhpc_workload_week.events.gz"
TABLE = FilterTable("enforce", {"main": (), "": ()}, "", (), 0, "", 30, "")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("-n 4 job.sh", None),
        ("-n4 -N2 --constraint=ib&avx job.sh", None),
        ("-C ib -x n1 --exclusive job.sh", None),
        ("job.sh --exclusive=user -w n1", None),  # those are the script's
        ("--exclusive=user job.sh", "exclusive or oversubscribe"),
        ("--constr='[a|b]' job.sh", "constraint"),
        ("-N2-4 -n8 job.sh", "range of nodes"),
        ("-N 2 -n8 job.sh", None),
        ("--nodel n[1-2] job.sh", "node list"),
        ("-w n1 job.sh", "node list"),
        ("--gres=gpu:2 job.sh", "gres"),
        ("-G 1 job.sh", "gres"),
        ("-L matlab:1 job.sh", "licences"),
        ("--switches=1@5 job.sh", "switches"),
        ("-O -n4 job.sh", "overcommit"),
        ("--mincpus=8 job.sh", "minimum CPUs"),
        ("--parsable --nice=5 --requeue -t 1:00 -o out --wrap 'true -w'", None),
    ],
)
def test_a_command_line_is_judged_as_the_job_would_be(line: str, reason: str | None) -> None:
    assert unplaced(submission(shlex.split(line))) == reason


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("-N2 -n 8 -c 2 --mem=4G -p a,b", {"min_nodes": 2, "max_nodes": 2, "num_tasks": 8, "cpus_per_task": 2}),
        ("--mem-per-cpu 512 -n1k", {"min_mem_per_cpu": 512, "num_tasks": 1024}),
        ("--ntasks-per-node=4", {"ntasks_per_node": 4}),
        ("--exclusive", {"shared": 0}),
        ("--comment sns:off", {"comment": "sns:off"}),
    ],
)
def test_the_options_are_the_fields_of_the_job(line: str, fields) -> None:
    found = submission(line.split())
    assert {name: getattr(found, name) for name in fields} == fields


@pytest.mark.parametrize("line", ["--nosuch", "-n x", "--mem=much", "-N"])
def test_what_sbatch_would_refuse_is_refused(line: str) -> None:
    with pytest.raises(BadInput):
        submission(line.split())


SACCT = """\
JobID|User|Partition|State|ElapsedRaw|AllocCPUS|NNodes|ReqTRES|Constraints|Reservation|SubmitLine
1|alice|main|COMPLETED|3600|4|1|billing=4,cpu=4,mem=1G,node=1|ib||sbatch -n 4 job.sh
1.batch||||3600|4|1||||
2_7|alice|main|COMPLETED|1800|2|1|cpu=2,gres/gpu=1,node=1|||/usr/bin/sbatch job.sh
3|bob|main|COMPLETED|3600|10|1|cpu=10|||srun -n10 true
4|bob|plain|COMPLETED|3600|1|1|cpu=1|||sbatch job.sh
5|carol|main|COMPLETED|7200|8|2|cpu=8|[a|b]|maint|sbatch -N2 job.sh
6|carol|main|PENDING|0|0|2|cpu=8||maint|sbatch -N2 job.sh
7+0|carol|main|COMPLETED|3600|1|1|cpu=1|||sbatch a : b
8|dan|main|COMPLETED|x|1|1|cpu=1|||sbatch --bogus a
"""


def test_what_several_columns_of_sacct_say_is_put_together() -> None:
    log = read_log("x", SACCT.replace("[a|b]", "[a&b]"))
    found = coverage(log.jobs, TABLE)
    assert {(each.reason, each.jobs, each.core_hours) for each in found.tallies} == {
        (MANAGED, 1, 4),
        ("gres", 1, 1),
        ("not a batch job", 1, 10),
        ("partition not managed", 1, 1),
        ("reservation", 2, 16),
        ("heterogeneous job", 1, 1),
    }
    assert (found.users, found.users_managed_entirely, found.users_not_managed) == (3, 0, 2)
    assert sum(log.unread.values()) == 1
    assert found.tallies[0].reason == MANAGED


@pytest.mark.parametrize(
    ("tres", "line", "reason"),
    [
        ("cpu=2,gres/gpu=4,gres/gpu:a100=4", "sbatch a.sh", MANAGED),
        ("cpu=2,gres/gpu=4,gres/gpu:1g.5gb=1", "sbatch a.sh", MANAGED),
        ("cpu=2,gres/gpu=4", "sbatch -G 4 a.sh", MANAGED),
        ("cpu=2,gres/gpu=4", "sbatch --gpus-per-task=a100:2 -n2 a.sh", MANAGED),
        ("cpu=2,gres/gpu=4,gres/shard=1", "sbatch a.sh", "gres"),
        ("cpu=2,gres/gpu=4", "sbatch --gres-flags=enforce-binding -G 4 a.sh", "gres"),
    ],
)
def test_jobs_with_gpus_are_managed_where_the_site_names_its_gpus(tres: str, line: str, reason: str) -> None:
    columns = "JobID|User|Partition|ElapsedRaw|AllocCPUS|NNodes|ReqTRES|SubmitLine"
    log = read_log("x", f"{columns}\n1|alice|main|60|2|1|{tres}|{line}\n")
    (found,) = coverage(log.jobs, all_partitions(log.jobs)).tallies
    assert found.reason == reason
    (found,) = coverage(log.jobs, TABLE).tallies
    assert found.reason in {"gres", "gres per task"}


def test_one_bad_record_costs_that_record_only() -> None:
    """A `|` inside of a column, numbers that are none, a very long line."""
    nines, long = "9" * 400, "x" * 200_000
    bad = [
        "2|alice|main|COMPLETED|60|1|1|cpu=1|a|b||sbatch -C a|b x.sh",
        f"3|alice|main|COMPLETED|60|1|1|cpu=1|||sbatch --mem={nines} x.sh",
        "4|alice|main|COMPLETED|nan|1|1|cpu=1|||sbatch x.sh",
        "5|alice|main|COMPLETED|inf|1|1|cpu=1|||sbatch x.sh",
        "7|alice|main|COMPLETED|60|1|1|cpu=1|||sbatch -N many x.sh",
    ]
    rows = [*SACCT.splitlines()[:2], *bad, f"6|alice|main|COMPLETED|3600|1|1|cpu=1|||sbatch x.sh {long}"]
    log = read_log("x", "\n".join(rows))
    assert (len(log.jobs), sum(log.unread.values())) == (2, 5)
    assert coverage(log.jobs, TABLE).core_hours == 5
    tabs = "\n".join(row.replace("|", "\t") for row in rows[:2]).replace("ib", "ib|opa")
    assert read_log("x", tabs).jobs[0].asked.features == "ib|opa"


@pytest.mark.parametrize(
    ("memory", "on_each", "for_each_cpu"),
    [("8G", 4096, None), ("8Gn", 8192, None), ("1Gc", None, 1024), ("3M", 2, None)],
)
def test_memory_without_a_suffix_is_that_of_all_nodes(
    memory: str, on_each: int | None, for_each_cpu: int | None
) -> None:
    (job,) = read_log("x", f"JobID|User|NNodes|ReqMem|AllocCPUS\n1|alice|2|{memory}|4\n").jobs
    assert (job.asked.min_mem_per_node, job.asked.min_mem_per_cpu) == (on_each, for_each_cpu)


def test_the_dump_of_the_one_command_is_read() -> None:
    said = {"JobID": "1", "User": "alice", "ElapsedRaw": "3600", "AllocCPUS": "4", "Constraints": "a|b"}
    row = [said.get(column, "") for column in COLUMNS]
    (job,) = read_log("x", "\t".join(COLUMNS) + "\n" + "\t".join(row) + "\n").jobs
    assert (job.core_hours, job.asked.features) == (4, "a|b")


@pytest.mark.parametrize(
    "text", ["", "JobID|State\n1|RUNNING\n", "JobID|User|State\n1|a|RUNNING\n", "no log\n", "JobID|User|NNodes\n"]
)
def test_what_is_no_log_is_refused_with_what_to_do(text: str) -> None:
    with pytest.raises(BadInput, match=r"try: sacct|no job in it"):
        read_log("x", text)


def run(*words: str, standard_input: str = "") -> subprocess.CompletedProcess:
    command = [str(Path(sys.executable).with_name("sns")), "coverage", *words]
    return subprocess.run(command, input=standard_input, capture_output=True, text=True, check=False)


def test_the_command_prints_a_page_or_json(tmp_path: Path) -> None:
    page = run("-", standard_input=SACCT)
    assert page.returncode == 0, page.stderr
    assert "| managed | 3 |" in page.stdout
    assert "ReqNodes (node lists)" in page.stdout, "what the dump has no column for"
    told = read("sns coverage", run("-", "--json", standard_input=SACCT).stdout)
    assert told["tallies"][0]["reason"] == "managed"
    assert run("-", "--out", str(tmp_path / "page.md"), standard_input=SACCT).stdout == ""
    assert (tmp_path / "page.md").read_text().startswith("# Jobs of - that")
    wrong = run(str(tmp_path / "none"))
    assert (wrong.returncode, len(wrong.stderr.splitlines())) == (2, 1)


def test_outputs_of_sacct_from_the_field_are_read_or_refused() -> None:
    names = ("sacct-all-cols.txt", "sacct-job13936577.csv")
    texts = [SHARED / "sacct" / name for name in names]
    if not all(path.exists() for path in texts):
        pytest.skip(f"{texts[0]} is not there")
    with_all_columns, without_users = (path.read_text() for path in texts)
    found = coverage(read_log(names[0], with_all_columns).jobs, FilterTable("enforce", {}, "", (), 0, "", 30, ""))
    assert found.jobs > 0
    with pytest.raises(BadInput, match="try: sacct"):
        read_log(names[1], without_users)


def test_of_a_real_week_nearly_all_would_be_managed() -> None:
    if not WEEK.exists():
        pytest.skip(f"{WEEK} is not there")
    log = read_log(WEEK.name, gzip.decompress(WEEK.read_bytes()).decode())
    names = ("general-compute", "")
    found = coverage(log.jobs, FilterTable("enforce", dict.fromkeys(names, ()), "", (), 0, "", 30, ""))
    assert (found.jobs, found.users, sum(log.unread.values())) == (19_579, 64, 0)
    managed = found.tallies[0]
    jobs, hours = found.part(managed)
    assert managed.reason == MANAGED
    assert jobs > 0.99
    assert hours >= 0.97


def test_a_job_that_asks_for_nothing_is_managed() -> None:
    assert unplaced(Submission(partition="main")) is None
