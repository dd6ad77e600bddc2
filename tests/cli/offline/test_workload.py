"""`sns workload` as a user calls it."""

import csv
import os
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from slurm_sns.cli.app import app
from slurm_sns.errors import BadInput
from slurm_sns.sim.traces.nodes_csv import read_nodes, read_site
from slurm_sns.sim.traces.pool_trace import read_pool_trace
from slurm_sns.sim.workloads.dfrs_synthetic import paper_trace
from slurm_sns.sim.workloads.idcp import burst_fortnight, idcp

SHARED = Path(os.environ.get("SNS_SHARED", Path(__file__).parents[3].parent / "shared"))
HPC2N = SHARED / "traces" / "HPC2N-2002-2.2-cln.swf.gz"
LOG_LINE = "{} {} -1 60 2 -1 -1 2 -1 524288 1 1 1 -1 1 -1 -1 -1\n"


def call(*words):
    return CliRunner().invoke(app(), ["workload", *map(str, words)], catch_exceptions=True)


def test_jobs_and_nodes_are_written_to_files(tmp_path):
    result = call(
        "netbatch-d", "--scale", 0.01, "--days", 1, "--out", tmp_path / "d.swf", "--nodes-out", tmp_path / "n.csv"
    )
    assert result.exit_code == 0
    lines = (tmp_path / "d.swf").read_text().splitlines()
    assert lines[0] == "; Version: 2.2"
    assert sum(not line.startswith(";") for line in lines) == round(9_054_066 * 0.01 / 30)
    assert len((tmp_path / "n.csv").read_text().splitlines()) == 1 + 27


def test_jobs_go_to_standard_output_without_out():
    result = call("netbatch-a", "--scale", 0.001, "--days", 0.1)
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()[-1].split()) == 18


def rows_of(text):
    """The jobs of a CSV file, as numbers by column."""
    rows = list(csv.DictReader(text.splitlines()))
    assert list(rows[0]) == ["job_id", "submit_s", "run_s", "tasks", "cpu_need", "memory_need"]
    return {name: [float(row[name]) for row in rows] for name in rows[0]}


def test_lublin_writes_the_papers_trace_and_its_nodes(tmp_path):
    result = call("lublin", "--seed", 7, "--out", tmp_path / "l.csv", "--nodes-out", tmp_path / "n.csv")
    assert result.exit_code == 0
    rows, trace = rows_of((tmp_path / "l.csv").read_text()), paper_trace(np.random.default_rng(7))
    assert rows["submit_s"] == trace.submit_s.tolist()
    assert rows["run_s"] == trace.run_s.tolist()
    assert rows["tasks"] == trace.tasks.tolist()
    nodes = read_nodes(str(tmp_path / "n.csv"))
    assert len(nodes.names) == 128
    assert (nodes.total.cores, nodes.total.memory_mb) == (4 * 128, 8 * 1024 * 128)


def test_lublin_has_the_jobs_the_nodes_the_set_and_the_load_that_were_asked_for():
    result = call("lublin", "--jobs", 50, "--nodes", 256, "--set", "combined", "--load", 0.4)
    assert result.exit_code == 0
    rows = rows_of(result.stdout)
    assert len(rows["tasks"]) == 50
    work_s = sum(run_s * tasks for run_s, tasks in zip(rows["run_s"], rows["tasks"], strict=True))
    assert work_s / (256 * rows["submit_s"][-1]) == pytest.approx(0.4, rel=1e-3)


def test_hpc2n_writes_the_whole_log_or_one_week_of_it(tmp_path):
    log = tmp_path / "log.swf"
    log.write_text("".join(LOG_LINE.format(job, submit) for job, submit in ((1, 5), (2, 604_800), (3, 604_810))))
    whole = rows_of(call("hpc2n", "--log", log).stdout)
    assert whole["submit_s"] == [5, 604_800, 604_810]
    assert (whole["tasks"], whole["cpu_need"], whole["memory_need"]) == ([1] * 3, [1] * 3, [0.5] * 3)
    result = call("hpc2n", "--log", log, "--week", 2, "--out", tmp_path / "w.csv", "--nodes-out", tmp_path / "n.csv")
    assert result.exit_code == 0
    second = rows_of((tmp_path / "w.csv").read_text())
    assert (second["job_id"], second["submit_s"]) == ([2, 3], [0, 10])
    assert len(read_nodes(str(tmp_path / "n.csv")).names) == 120
    problem = call("hpc2n", "--log", log, "--week", 3).exception
    assert str(problem) == "--week is 3; valid: 1 to 2"


def test_hpc2n_leaves_small_memory_as_recorded_without_the_floor(tmp_path):
    log = tmp_path / "log.swf"
    log.write_text(LOG_LINE.format(1, 5).replace("524288", "65536"))
    assert rows_of(call("hpc2n", "--log", log).stdout)["memory_need"] == [0.2]
    assert rows_of(call("hpc2n", "--log", log, "--no-memory-floor").stdout)["memory_need"] == [0.0625]


def test_the_last_week_of_the_real_log_is_the_182nd():
    if not HPC2N.is_file():
        pytest.skip(f"{HPC2N} is missing (SNS_SHARED names the folder)")
    assert len(rows_of(call("hpc2n", "--log", HPC2N, "--week", 182).stdout)["tasks"]) == 43
    assert "valid: 1 to 182" in str(call("hpc2n", "--log", HPC2N, "--week", 183).exception)


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".swf", ".swf.gz"])
def test_idcp_writes_jobs_with_pools_and_priorities_and_the_site(tmp_path, ending):
    jobs, nodes = tmp_path / f"jobs{ending}", tmp_path / "nodes.csv"
    result = call("idcp", "--scale", 0.005, "--days", 2, "--seed", 3, "--out", jobs, "--nodes-out", nodes)
    assert result.exit_code == 0
    site, trace = idcp(0.005, 2, 3)
    read = read_site(str(nodes))
    assert (read.pools, read.nodes.names) == (site.pools, site.nodes.names)
    again = read_pool_trace(str(jobs), read)
    for name in ("submit", "run", "cores", "memory", "pool", "priority", "limit"):
        assert np.array_equal(getattr(again, name), getattr(trace, name)), name


def test_idcp_writes_ten_weeks_unless_days_are_given():
    rows = list(csv.DictReader(call("idcp", "--scale", 0.001).stdout.splitlines()))
    assert 69 * 86_400 < int(rows[-1]["submit_s"]) < 70 * 86_400


def test_idcp_writes_the_fortnight_after_its_warm_up():
    rows = list(csv.DictReader(call("idcp", "--scale", 0.002, "--fortnight").stdout.splitlines()))
    trace, begin_s = burst_fortnight(0.002, 1)[1:3]
    assert [int(row["submit_s"]) for row in rows] == trace.submit.tolist()
    assert all(int(row["submit_s"]) > begin_s for row in rows if row["priority"] == "1")


def test_the_header_of_an_swf_file_says_how_it_was_generated(tmp_path):
    call("idcp", "--scale", 0.001, "--fortnight", "--seed", 2, "--out", tmp_path / "f.swf")
    note = "; Note: generated by sns workload idcp --scale 0.001 --fortnight --seed 2; no real log"
    assert note in (tmp_path / "f.swf").read_text().splitlines()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("idcp", "--days", 367), "--days is 367; valid: more than 0, at most 366"),
        (("idcp", "--days", 0), "--days is 0; valid: more than 0"),
        (("idcp", "--days", 14, "--fortnight"), "--days does not go with --fortnight; valid: one of them"),
        (("idcp", "--scale", 0.0001), "--scale is 0.0001; valid: 0.001 to 10.0"),
        (("idcp", "--load", 0.4), "--load does not go with idcp; valid: --scale, --days, --seed, --fortnight, --out"),
        (("idcp", "--out", "a.txt"), "a name that ends in .csv or .csv.gz or .swf or .swf.gz"),
        (("netbatch-a", "--fortnight"), "--fortnight does not go with netbatch-a"),
        (("netbatch-e",), "workload 'netbatch-e' is unknown; valid: netbatch-a"),
        (("netbatch-a", "--days", 31), "--days is 31.0; valid"),
        (("netbatch-a", "--scale", 11), "--scale is 11.0; valid"),
        (("netbatch-a", "--out", "a.txt"), "--out is a.txt; valid"),
        (("netbatch-a", "--out", "/nowhere/a.swf"), "/nowhere is not a directory"),
        (("netbatch-a", "--load", 0.5), "--load does not go with netbatch-a; valid: --scale, --days, --seed, --out"),
        (("netbatch-a", "--out", "a.csv"), "--out is a.csv; valid: a name that ends in .swf or .swf.gz"),
        (("lublin", "--days", 3), "--days does not go with lublin; valid: --jobs, --nodes, --load, --set, --seed"),
        (("lublin", "--out", "a.swf"), "--out is a.swf; valid: a name that ends in .csv or .csv.gz"),
        (("lublin", "--set", "all"), "--set is 'all'; valid: paper, batch, interactive, combined"),
        (("lublin", "--load", 0), "--load is 0; valid: more than 0, at most 100"),
        (("lublin", "--load", "nan"), "--load is nan; valid: more than 0, at most 100"),
        (("lublin", "--nodes", 100), "--nodes is 100; valid: a power of two from 32 to 65536"),
        (("lublin", "--jobs", 1, "--load", 0.5), "load 0.5: all jobs are submitted in one second; valid: more jobs"),
        (("hpc2n",), "hpc2n needs --log; valid: the file HPC2N-2002-2.2-cln.swf.gz"),
        (("hpc2n", "--log", "/nowhere/h.swf"), "/nowhere/h.swf: cannot be read"),
        (("hpc2n", "--log", "h.swf", "--seed", 3), "--seed does not go with hpc2n; valid: --log, --week"),
    ],
)
def test_bad_use_is_refused(words, message):
    problem = call(*words).exception
    assert isinstance(problem, BadInput)
    assert message in str(problem)
