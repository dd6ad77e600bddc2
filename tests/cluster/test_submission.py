"""The messages that a user gets at submission: wrong hints, and jobs that could never run."""

import pytest

from cluster import Cluster

REFUSED = {
    "--sns-alpha=1.9": "alpha must be a number above 0 and at most 1, such as 0.9",
    "--sns-alpha=abc": "alpha must be a number above 0 and at most 1, such as 0.9",
    "--sns-alpha=": "a value is missing, such as 0.9",
    "--comment sns:alpha=": "a value is missing, such as 0.9",
    "--comment sns:alpha=1.9": "alpha must be a number above 0 and at most 1, such as 0.9",
    "--sns-heuristic=tetris": "unknown heuristic; valid are first-fit, best-fit-cores",
    "--comment sns:heuristic=tetris": "unknown heuristic; valid are first-fit, best-fit-cores",
    "--comment sns:speed=9": "unknown hint; valid are",
    "--sns-max-scale=0": "the largest scale must be a whole number from 1 to 64",
    "--mem=128G": "no node has 131072 MiB of memory: the largest node of partition main has 28 cores",
    "-n113": "at most 112 do",
    "-p small -n9": "at most 8 do",
    "-p small -c8": "the largest node of partition small has 4 cores",
}


@pytest.mark.parametrize("options", REFUSED)
def test_a_wrong_hint_or_an_impossible_job_is_refused_with_what_is_valid(cluster: Cluster, options: str) -> None:
    answer = cluster.try_run(f"sbatch -o /dev/null {options} --wrap true", "alice")
    assert answer.returncode != 0
    assert REFUSED[options] in " ".join(answer.stderr.split())
    assert not cluster.run("squeue -h -u alice").strip()


@pytest.mark.parametrize("command", ["sbatch", "srun", "salloc"])
def test_the_options_are_in_slurms_own_help(cluster: Cluster, command: str) -> None:
    text = cluster.run(f"{command} --help")
    for name in ("alpha", "program", "max-scale", "heuristic", "exclusive", "reprofile", "restartable"):
        assert f"--sns-{name}" in text


def test_hints_of_both_kinds_become_one_record(cluster: Cluster) -> None:
    number = cluster.submit("-n1 --begin=now+600 --sns-alpha=0.5 --comment sns:program=mg,alpha=0.9", "true")
    assert cluster.job(number).noted == "sns:2 alpha=0.5 program=mg"


@pytest.mark.parametrize(
    ("said", "noted"), [("", "restartable"), ("=600", "restartable=600"), ("=yes", "restartable"), ("=no", "")]
)
def test_a_restartable_job_may_say_how_often_it_writes_checkpoints(cluster: Cluster, said: str, noted: str) -> None:
    number = cluster.submit(f"-n1 --begin=now+600 --sns-restartable{said}", "true")
    assert cluster.job(number).noted == f"sns:2 {noted}".rstrip()


def test_a_bad_configuration_is_one_line_and_exit_2(cluster: Cluster) -> None:
    cluster.run("sed 's/^mode: enforce/mode: full-speed/' /etc/slurm/sns.yaml > /tmp/sns-bad.yaml")
    answer = cluster.try_run("sns scheduler --config /tmp/sns-bad.yaml", "slurm")
    assert answer.returncode == 2
    assert answer.stderr.count("\n") == 1
    assert "mode" in answer.stderr
    assert "enforce" in answer.stderr
