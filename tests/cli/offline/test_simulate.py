"""`sns simulate` as a user runs it: results line for line, summaries, and errors of one line."""

import csv
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from json_output import read

from slurm_sns.cli import main

DATA = Path(__file__).parents[2] / "data" / "netbatch"
SHARED = Path(os.environ.get("SNS_SHARED", Path(__file__).parents[3].parent / "shared"))

AUTHORS_PORTFOLIO = (
    "best-fit-memory,worse-fit-memory,best-fit-cores,worse-fit-cores,mix-fit,memory-first-best,memory-first-worse"
)
PAPER_HEURISTICS = ("first-fit", "best-fit-cores", "best-fit-memory", "worse-fit-cores", "worse-fit-memory", "mix-fit")


def sns(*arguments, **options) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", "from slurm_sns.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=False, **options)


@pytest.fixture
def sns_here(monkeypatch, capfdbinary):
    """The same in this process: many small commands without as many starts of Python."""

    def run(*arguments) -> subprocess.CompletedProcess:
        monkeypatch.setattr(sys, "argv", ["sns", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfdbinary.readouterr()
        return subprocess.CompletedProcess(sys.argv, ended.value.code, out, err)

    return run


def simulate(*arguments) -> dict:
    done = sns("simulate", *arguments, "--json")
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""
    return read("sns simulate", done.stdout)


def shared_file(path: str) -> Path:
    """A file of the shared folder: traces and results that are not part of the project."""
    if not (SHARED / path).is_file():
        pytest.skip(f"{SHARED / path} is missing (SNS_SHARED names the folder)")
    return SHARED / path


def policy_options(name: str) -> list[str]:
    """Those of the references, whose cycles look at 1,000 jobs."""
    policy = ["--policy", "max-jobs", "--portfolio", AUTHORS_PORTFOLIO] if name == "max-jobs-7" else ["--policy", name]
    return [*policy, "--queue-depth", "1000"]


def job_nodes(out: Path) -> list[str]:
    """Our jobs.csv in the form of the reference results."""
    lines = (out / "jobs.csv").read_text().splitlines()
    assert lines[0] == "job_id,submit_s,start_s,end_s,nodes,cores,mem_gb,ways,bandwidth_gbps,scale"
    rows = [line.split(",") for line in lines[1:]]
    return ["job_id,start_s,node", *(f"{row[0]},{row[2]},{row[4]}" for row in rows)]


def reference(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().splitlines()


@pytest.mark.long
@pytest.mark.parametrize("name", [*PAPER_HEURISTICS, "max-jobs-7"])
def test_the_small_reference_is_reproduced_line_for_line(name, tmp_path):
    inputs = [DATA / "small.jobs.csv.gz", "--nodes", DATA / "small.nodes.csv"]

    summary = simulate(*inputs, *policy_options(name), "--out", tmp_path)

    expected = json.loads((DATA / "small.summary.json").read_text())["small"][name]
    assert job_nodes(tmp_path) == reference(DATA / f"small.{name}.csv.gz")
    assert summary["jobs"] == 2000
    assert summary["mean_wait_s"] == pytest.approx(expected["mean_wait_s"], abs=1e-4)
    assert summary["mean_slowdown"] == pytest.approx(expected["mean_slowdown"], abs=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("name", ["mix-fit"])  # the others too, by hand: they take 3 s each, max-jobs-7 17 s
def test_pool_a_is_reproduced_line_for_line(name, tmp_path):
    trace = shared_file("reference/netbatch/pool-a.jobs.csv.gz")
    nodes = shared_file("reference/netbatch/pool-a.nodes.csv")
    expected = shared_file(f"reference/netbatch/pool-a.{name}.csv.gz")

    simulate(trace, "--nodes", nodes, *policy_options(name), "--out", tmp_path)

    assert job_nodes(tmp_path) == reference(expected)


@pytest.fixture
def alike(tmp_path):
    """A list of nodes of the same size: alike((count, prefix, cores, GB), ...)."""

    def alike(*kinds: tuple[int, str, int, float]) -> Path:
        lines = [f"{prefix}{at},{cores},{gb}" for count, prefix, cores, gb in kinds for at in range(1, count + 1)]
        path = tmp_path / "alike.csv"
        path.write_text("\n".join(["name,cores,mem_gb", *lines]) + "\n")
        return path

    return alike


@pytest.mark.long
def test_hpc2n_runs(alike):
    """240 processors by the header: 120 nodes of 2 processors and 2 GB."""
    trace = shared_file("traces/HPC2N-2002-2.2-cln.swf.gz")

    summary = simulate(trace, "--nodes", alike((120, "n", 2, 2)), "--policy", "mix-fit", "--limit", 20_000)

    assert summary["jobs"] == 20_000
    assert summary["dropped"] == {}
    assert 0.4 < summary["utilisation_cores"] < 1


@pytest.mark.long
def test_wagap_runs_on_its_own_machines(alike):
    trace = shared_file("traces/wagap-2013.swf.gz")
    machines = [line.split() for line in shared_file("traces/wagap-2013.machines").read_text().splitlines()]
    nodes = alike(*((int(count), name, int(cores), int(kb) / 1024**2) for _, name, count, cores, _, kb in machines))

    summary = simulate(trace, "--nodes", nodes, "--policy", "max-jobs", "--limit", 5_000)

    assert summary["jobs"] + sum(summary["dropped"].values()) == 5_000
    assert summary["mean_slowdown"] >= 1


@pytest.mark.long
def test_trinity_runs_with_jobs_on_thousands_of_nodes(alike, tmp_path):
    """9,408 nodes of 32 cores by the header; memory is unknown in this log."""
    trace = shared_file("traces/trinity-2016-completed-rebuilt.swf.gz")
    nodes = alike((9408, "t", 32, 128))

    summary = simulate(trace, "--nodes", nodes, "--policy", "best-fit-cores", "--limit", 5_000, "--out", tmp_path / "o")

    rows = [line.split(",") for line in (tmp_path / "o" / "jobs.csv").read_text().splitlines()[1:]]
    assert summary["jobs"] == len(rows) == 5_000
    assert max(row[4].count("+") + 1 for row in rows) > 1000


@pytest.fixture
def tiny(tmp_path):
    """A trace and a list of nodes of a few lines, as options."""
    (tmp_path / "jobs.csv").write_text(
        "job_id,submit_s,run_s,cores,mem_gb,nodes\n7,0,60,2,1.5,1\n8,1,60,4,2,2\n9,2,0,1,0.5,1\n10,3,5,9,1,1\n"
    )
    (tmp_path / "nodes.csv").write_text("name,cores,mem_gb\nA,4,16\nB,4,16\n")
    return [tmp_path / "jobs.csv", "--nodes", tmp_path / "nodes.csv", "--policy", "max-jobs"]


@pytest.mark.long
def test_out_gets_three_files_and_nothing_else(tiny, tmp_path):
    summary = simulate(*tiny, "--out", tmp_path / "new" / "out")
    out = tmp_path / "new" / "out"

    assert sorted(path.name for path in out.iterdir()) == ["cycles.csv", "jobs.csv", "summary.json"]
    assert (out / "jobs.csv").read_text().splitlines()[1:] == [
        "7,0,0,60,A,2,1.5,,,",
        "8,1,60,120,A+B,4,2,,,",
        "9,2,120,121,A,1,1,,,",
    ]
    cycles = (out / "cycles.csv").read_text().splitlines()
    assert cycles[0] == "time_s,waiting,started,chosen,winners"
    assert cycles[1] == (
        "0,1,1,best-fit-memory,best-fit-memory+worse-fit-memory+best-fit-cores+worse-fit-cores+mix-fit"
    )
    assert json.loads((out / "summary.json").read_text()) == summary
    assert summary["dropped"] == {"larger than any nodes": 1}


@pytest.mark.long
def test_the_same_input_gives_the_same_bytes_whatever_the_hash_seed(tmp_path):
    inputs = [DATA / "small.jobs.csv.gz", "--nodes", DATA / "small.nodes.csv", "--policy", "max-jobs", "--seed", "5"]
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        assert sns("simulate", *inputs, "--out", tmp_path / seed, env=environment).returncode == 0

    for name in ("jobs.csv", "cycles.csv"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


@pytest.mark.long
def test_the_summary_is_a_small_table_without_json(tiny):
    done = sns("simulate", *tiny)

    assert done.returncode == 0
    assert b"mean wait" in done.stdout
    assert b"wins mix-fit" in done.stdout
    assert done.stderr == b""


@pytest.mark.long
def test_swf_is_read_from_standard_input(tiny):
    line = b"1 0 -1 60 2 -1 -1 2 -1 -1 1 1 1 -1 1 -1 -1 -1\n"

    done = sns("simulate", "-", *tiny[1:], "--json", input=gzip.compress(line))

    assert json.loads(done.stdout)["jobs"] == 1


@pytest.mark.long
def test_settings_come_from_the_configuration_unless_given(tiny, tmp_path):
    config = tmp_path / "sns.yaml"
    config.write_text(
        "partitions: [batch]\n"
        "nodes: [{names: 'c[1-2]', partitions: [batch], cores: 4, memory_mb: 16000}]\n"
        "matching: {portfolio: [mix-fit, first-fit], queue_depth: 7, reservations: 2}\n"
    )

    from_file = simulate(*tiny, "--config", config)
    given = simulate(*tiny, "--config", config, "--queue-depth", 9, "--portfolio", "first-fit", "--age-limit", 5)

    assert (from_file["portfolio"], from_file["queue_depth"], from_file["reservations"]) == (
        ["mix-fit", "first-fit"],
        7,
        2,
    )
    assert (from_file["age_limit_s"], given["age_limit_s"]) == (21600, 5)
    assert (given["portfolio"], given["queue_depth"], given["reservations"]) == (["first-fit"], 9, 2)


@pytest.mark.long
def test_on_nodes_with_gpus_max_jobs_begins_with_best_fit_gpus_unless_a_portfolio_is_named(tmp_path):
    (tmp_path / "nodes.csv").write_text("name,cores,mem_gb,gpus\nidle,4,8,a:2\nnone,4,8,\n")
    (tmp_path / "jobs.csv").write_text("job_id,submit_s,run_s,cores,mem_gb\n1,0,90,1,1\n2,0,90,1,1\n")
    tiny = [tmp_path / "jobs.csv", "--nodes", tmp_path / "nodes.csv", "--policy", "max-jobs", "--out", tmp_path / "out"]

    def places() -> list[str]:
        lines = (tmp_path / "out" / "jobs.csv").read_text().splitlines()
        return [line["nodes"] for line in csv.DictReader(lines)]

    assert simulate(*tiny)["portfolio"] == ["best-fit-gpus", *AUTHORS_PORTFOLIO.split(",")[:5]]
    assert places() == ["none", "none"]
    assert simulate(*tiny, "--portfolio", "first-fit")["portfolio"] == ["first-fit"]
    assert places() == ["idle", "idle"]


@pytest.mark.long
def test_the_age_limit_lets_a_job_go_first_whatever_its_project_holds(tmp_path):
    (tmp_path / "nodes.csv").write_text("name,cores,mem_gb\nA,2,2\n")
    (tmp_path / "jobs.csv").write_text(
        "job_id,submit_s,run_s,cores,mem_gb,project\n1,0,1000,1,1,p\n2,0,90,1,1,p\n3,5,50,1,1,p\n4,6,50,1,1,q\n"
    )
    given = [tmp_path / "jobs.csv", "--nodes", tmp_path / "nodes.csv", "--policy", "mix-fit", "--out", tmp_path / "out"]

    def start_of_3() -> str:
        return (tmp_path / "out" / "jobs.csv").read_text().splitlines()[3].split(",")[2]

    assert simulate(*given)["age_limit_s"] is None
    assert start_of_3() == "150"
    assert simulate(*given, "--age-limit", 60)["age_limit_s"] == 60
    assert start_of_3() == "90"


SWF_LINE = b"1 0 -1 60 2 -1 -1 2 -1 -1 1 1 1 -1 1 -1 -1 -1\n"
HEADER = b"job_id,submit_s,run_s,cores,mem_gb\n"
#: Name of the file: what is in it, and what the error says.
BROKEN = {
    "truncated.swf.gz": (gzip.compress(SWF_LINE * 99)[:-9], "is truncated"),
    "damaged.swf.gz": (gzip.compress(SWF_LINE * 99)[:20] + b"?" * 40, "the gzip file is"),
    "plain.swf.gz": (SWF_LINE, "not a gzip file, although its name ends in .gz"),
    "binary.swf": (bytes(range(256)), "a binary file"),
    "binary.csv": (HEADER + bytes(range(256)), "a binary file"),
    "empty.swf": (b"", "the file is empty"),
    "blank.csv": (b"\n \n\n", "the file is empty"),
    "comments.swf": (b"; nothing\n; else\n", "there is no job in it"),
    "header.csv": (HEADER, "there is no line after the header"),
    "wrong.csv": (b"a,b\n1,2\n", "line 1: column job_id is missing"),
    "unknown.csv": (
        HEADER.replace(b"run_s", b"run_s,colour") + b"1,0,1,red,1,1\n",
        "line 1: column 'colour' is unknown",
    ),
    "twice.csv": (HEADER.strip() + b",cores\n1,0,1,1,1,1\n", "line 1: a column is named twice"),
    "fields.swf": (SWF_LINE + b"2 0 -1 60\n", "line 2 has 4 fields; SWF has 18"),
    "fields.csv": (HEADER + b"1,0,1,1,1\r\n2,0,1,1\r\n", "line 3 has 4 fields; the header has 5"),
    "negative.csv": (HEADER + b"1,0,1,1,1\n2,-5,1,1,1\n", "line 3: submit_s is '-5'; valid: a number from 0"),
    "nan.csv": (HEADER + b"1,0,nan,1,1\n", "line 2: run_s is 'nan'"),
    "nan.swf": (SWF_LINE.replace(b"60", b"nan"), "line 1: run time is 'nan'; valid: a number"),
    "huge.csv": (HEADER + b"1,1e300,1,1,1\n", "line 2: submit_s is '1e300'; valid: a number from 0 to 1e+12"),
    "huge.swf": (SWF_LINE.replace(b"60", b"9" * 400), "line 1: run time is inf"),
    "word.swf": (SWF_LINE + SWF_LINE.replace(b"1 0", b"2 soon", 1), "line 2: submit is 'soon'; valid: a number"),
    "same.csv": (HEADER + b"1,0,1,1,1\n1,0,1,1,1\n", "line 3: job_id is '1'; valid: each value once"),
    "same.swf": (SWF_LINE * 2, "line 2: job 1 is there twice; valid: each once"),
    "large.csv": (HEADER + b"1,0,1,99,1\n", "no job can run on these nodes: 1 larger than any nodes"),
    "quoted.csv": (HEADER + b'1,0,1,"1",1\n', "line 2 has a quoted field"),
    "half.csv": (HEADER + b"1,0,1,1.5,1\n", "line 2: cores is '1.5'; valid: a whole number"),
    "mark.csv": (b"\xef\xbb\xbf" + HEADER + b"1,0,1,0,1\n", "line 2: cores is '0'; valid: a number from 1"),
}
BROKEN_NODES = {
    "columns": (b"name,cores\nA,4\n", "line 1: column mem_gb is missing"),
    "no cores": (b"name,cores,mem_gb\nA,0,4\n", "line 2: cores is '0'"),
    "a name": (b"name,cores,mem_gb\nA+B,4,4\n", "line 2: name is 'A+B'"),
    "a name twice": (b"name,cores,mem_gb\nA,4,4\nA,4,4\n", "line 3: name is 'A'; valid: each value once"),
    "nothing": (b"", "the file is empty"),
    "memory": (b"name,cores,mem_gb\nA,4,1e11\n", "line 2: mem_gb is '1e11'; valid: a number from 0 to"),
    "too many cores": (b"name,cores,mem_gb\nA,1e11,4\n", "line 2: cores is '1e11'; valid: a number from 1 to"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_trace_is_one_line_exit_2_and_nothing_is_written(name, tiny, tmp_path, sns_here):
    content, words = BROKEN[name]
    (tmp_path / name).write_bytes(content)

    done = sns_here("simulate", tmp_path / name, *tiny[1:], "--out", tmp_path / "out")

    assert_one_line(done, words)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", BROKEN_NODES)
def test_a_broken_list_of_nodes_is_one_line_exit_2_and_nothing_is_written(name, tiny, tmp_path, sns_here):
    content, words = BROKEN_NODES[name]
    (tmp_path / "nodes.csv").write_bytes(content)

    assert_one_line(sns_here("simulate", *tiny, "--out", tmp_path / "out"), words)
    assert not (tmp_path / "out").exists()


@pytest.mark.long
@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
@pytest.mark.parametrize("begins", [b"", b"\xef\xbb\xbf"])
def test_line_ends_and_byte_order_marks_of_other_systems_are_read(begins, ends, tiny, tmp_path):
    for name, text in (("t.csv", HEADER + b"1,0,1.5,1,0.5\n2,3,1,1,1"), ("t.swf", b"; x\n\n" + SWF_LINE + b"\t")):
        (tmp_path / name).write_bytes(begins + text.replace(b"\n", ends))

        assert simulate(tmp_path / name, *tiny[1:])["jobs"] == text.count(b"\n1") + text.count(b"\n2")


@pytest.mark.long
def test_submits_out_of_order_are_sorted_with_a_note(tiny, tmp_path):
    (tmp_path / "late.csv").write_bytes(HEADER + b"1,90,5,1,1\n2,0,5,1,1\n3,0,5,1,1\n")

    done = sns("simulate", tmp_path / "late.csv", *tiny[1:], "--out", tmp_path / "out")

    assert done.returncode == 0
    assert done.stderr.decode() == f"sns: note: {tmp_path}/late.csv: 2 jobs come after later ones; sorted by submit\n"
    assert [line.split(",")[0] for line in (tmp_path / "out" / "jobs.csv").read_text().splitlines()] == [
        "job_id",
        "2",
        "3",
        "1",
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--policy", "magic"], "--policy is 'magic'; valid: first-fit, best-fit-cores"),
        (["--portfolio", "mix-fit,magic"], "portfolio: heuristic 'magic' is unknown; valid: first-fit"),
        (["--policy", "mix-fit", "--portfolio", "mix-fit"], "--portfolio goes with --policy max-jobs"),
        (["--load-factor", "0"], "--load-factor is 0.0; valid: more than 0"),
        (["--load-factor", "nan"], "--load-factor is nan"),
        (["--interval", "0"], "--interval"),
        (["--queue-depth", "0"], "--queue-depth"),
        (["--limit", "0"], "--limit"),
        (["--age-limit", "0"], "--age-limit"),
        (["--nodes", "/nonexistent.csv"], "/nonexistent.csv: cannot be read"),
        (["--config", "/nonexistent.yaml"], "/nonexistent.yaml"),
        (["--out", "/dev/null"], "/dev/null is not a directory"),
        (["--colour"], "--colour"),
    ],
)
def test_bad_use_is_one_line_and_exit_2(options, words, tiny, sns_here):
    assert_one_line(sns_here("simulate", *tiny, *options), words)


def assert_one_line(done: subprocess.CompletedProcess, words: str) -> None:
    error = done.stderr.decode()
    assert done.returncode == 2, error
    assert error.startswith("sns: error: ")
    assert error.count("\n") == 1
    assert words in error
    assert done.stdout == b""
