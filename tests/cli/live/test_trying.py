"""`sns try`: options of sbatch from the command line, the environment and a script, and how the answer is shown."""

import json
from pathlib import Path

import pytest

from slurm_sns.cli.live.trying import VARIABLES, request_of
from slurm_sns.coverage.sbatch_options import PLACING
from slurm_sns.errors import BadInput

ANSWER = {
    "judgement": "managed",
    "why": "",
    "when": "waits",
    "nodes": [],
    "reason": "c2 lacks [4] cores",
    "starts": {"low_s": 1.0, "high_s": 4e9, "limits_s": 4e9, "not_before_s": None, "waits_for": "nodes c1, c2"},
    "position": 3,
    "waiting": 9,
    "alternatives": [
        {
            "demand": {
                "nodes": 2,
                "cores": 8,
                "memory_mb": 4096,
                "ways": 4,
                "bandwidth_gbps": 9,
                "closids": 1,
                "gpus": {},
            },
            "scale": 2,
            "exclusive": False,
            "slowdown": 1.25,
            "fitting": 1,
            "chosen": False,
        }
    ],
    "would_start": [{"kind": "memory", "options": "--mem=48G", "nodes": ["c3", "c4"]}],
    "assumed": ["account physics, as of your last job (-A)"],
    "at_s": 1.0,
}


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "job.sh"
    path.write_text("#!/bin/sh\n#SBATCH -n 40 --mem=4G  # as ever\n\n#SBATCH -J 'my job' -o out\necho\n#SBATCH -n 7\n")
    return path


def test_the_command_line_wins_over_the_environment_and_that_over_the_script(script: Path) -> None:
    words = ["-n", "8", "--mem-per-cpu=2G", str(script), "-n", "9"]
    request = request_of(words, {"SBATCH_PARTITION": "small", "SBATCH_TIMELIMIT": "10"})
    assert request["options"] == {
        "job-name": "my job",
        "partition": "small",
        "time": "10",
        "ntasks": "8",
        "mem": "4G",
        "mem-per-cpu": "2G",
    }
    assert list(request["options"]).index("mem") < list(request["options"]).index("mem-per-cpu")  # the last one counts
    assert (request["script_bytes"], request["script_deadline"]) == (script.stat().st_size, False)


@pytest.mark.parametrize("option", sorted({*VARIABLES.values()} - {"exclusive"}))
def test_every_variable_stands_for_an_option_that_a_job_is_placed_by(option: str) -> None:
    assert option in PLACING
    name = next(name for name, each in VARIABLES.items() if each == option)
    assert request_of(["-c1"], {name: "7"})["options"] == {option: "7", "cpus-per-task": "1"}


def test_what_follows_the_script_belongs_to_the_script(sns, config: Path, scheduler, script: Path) -> None:
    scheduler["try"] = ANSWER
    assert "would manage" in sns("try", "--config", config, "-n4", script, "--config", "mine.yaml")[1]


def test_h_shows_the_help(sns, config: Path) -> None:
    assert "Where a job of yours would start" in sns("try", "--config", config, "-h")[1]


def test_a_deadline_of_the_script_is_told(script: Path) -> None:
    script.write_text("#!/bin/sh\n#SBATCH --deadline=now+1hour\n")
    assert request_of([str(script)], {})["script_deadline"] is True


def test_the_answer_is_shown_with_what_would_start_it(sns, config: Path, scheduler) -> None:
    asked = []
    scheduler["try"] = lambda request: asked.append(request) or ANSWER
    status, output, errors = sns("try", "--config", config, "-n40", "--mem", "4G")
    assert (status, errors) == (0, "")
    assert asked == [{"command": "try", "options": {"ntasks": "40", "mem": "4G"}}]
    for text in (
        "would manage",
        "waits: c2 lacks [4] cores",
        "starts between now and ",
        ", when nodes c1, c2 come free",
        "place 3 of 9",
        "1.25",
        "--mem=48G  on c[3-4]",
        "promised",
    ):
        assert text in output
    assert json.loads(sns("try", "--json", "--config", config, "-n40")[1]) == ANSWER


@pytest.mark.parametrize(
    ("judgement", "text"),
    [("refused", "this job would be refused: why"), ("passes through", "slurm_sns would leave this job to Slurm: why")],
)
def test_another_judgement_is_one_line(sns, config: Path, scheduler, judgement: str, text: str) -> None:
    nothing = {"alternatives": [], "would_start": [], "assumed": [], "position": None, "reason": ""}
    scheduler["try"] = {**ANSWER, **nothing, "judgement": judgement, "why": "why", "when": "never"}
    assert sns("try", "--config", config, "-n40")[1] == f"{text}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "nothing to try; valid: options of sbatch"),
        (["--nosuch"], "option --nosuch not recognized; valid: the options of sbatch (man sbatch), and --sns-..."),
        (["-n"], "option -n requires argument; valid: the options of sbatch"),
        (
            ["-n", "4", "--json"],
            "and --sns-...; --config and --json come first",
        ),
        (
            ["/nosuch/job.sh"],
            "script '/nosuch/job.sh' cannot be read: No such file or directory; valid: a batch script",
        ),
        (["/"], "script '/' cannot be read: Is a directory"),
        (["a\0b"], "cannot be read"),
        (["-J", "x" * 5000], "--job-name is too long to be tried; valid: 3800 bytes"),
    ],
)
def test_what_sbatch_would_not_take_is_one_line(words: list[str], said: str) -> None:
    with pytest.raises(BadInput) as problem:
        request_of(words, {})
    assert said in str(problem.value)


@pytest.mark.parametrize("text", ["echo\n", "", "#!/bin/sh\n#SBATCH -J 'open\n", "#!/bin/sh\n#SBATCH --nosuch\n"])
def test_a_script_that_sbatch_would_not_take_is_bad_input(tmp_path: Path, text: str) -> None:
    path = tmp_path / "job.sh"
    path.write_text(text)
    with pytest.raises(BadInput):
        request_of([str(path)], {})


def test_a_script_of_any_bytes_is_read(tmp_path: Path) -> None:
    path = tmp_path / "job.sh"
    path.write_bytes(b"#!/bin/sh\n#SBATCH -n 2\n\xff\xfe\x00" + b"x" * (1 << 21))
    assert request_of([str(path)], {})["script_bytes"] == 1 << 20
