"""`sns observe` as an ordinary user runs it, on a Slurm of which there is nothing but what scontrol prints."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest
import scontrol_samples as samples
from json_output import read

from slurm_sns.cli.live.observe import Observer, ObserveRequest
from slurm_sns.errors import BadInput, Unreachable
from slurm_sns.slurm.scontrol_state import ScontrolState

#: Prints the file named as the last word, and notes what it was asked. A reading user calls nothing but `show`.
SCONTROL = """#!/bin/sh
echo "$(basename $0) $*" >> {asked}
for last; do :; done
cat {shown}/$last
"""


class Slurm:
    """What Slurm shows: the text for each `scontrol show`."""

    def __init__(self, path: Path) -> None:
        self.shown, self.asked = path / "shown", path / "asked"
        self.commands = path / "bin"
        for each in (self.shown, self.commands):
            each.mkdir()
        for command in ("scontrol", "sacctmgr"):
            script = self.commands / command
            script.write_text(SCONTROL.format(shown=self.shown, asked=self.asked))
            script.chmod(0o755)
        self.show("config", samples.CONFIG)
        self.show("reservation", "No reservations in the system\n")
        self.show("partition", samples.partition())
        self.show("node", "".join(samples.node(NodeName=f"c{each}", Gres="(null)", GresUsed="") for each in (1, 2)))
        self.show("job", waiting(1) + waiting(2))

    def show(self, what: str, text: str) -> None:
        (self.shown / what).write_text(text)

    def ask(self, *words: str) -> str:
        return (self.shown / words[-1]).read_text()


def waiting(number: int, **fields: str) -> str:
    return samples.job(JobId=str(number), Partition="main", UserId=f"me({os.getuid()})", **fields)


pytestmark = pytest.mark.usefixtures("slurm")


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    slurm = Slurm(tmp_path)
    monkeypatch.setenv("PATH", str(slurm.commands), prepend=os.pathsep)
    return slurm


class Looking:
    """An observer whose clock moves on by its pauses; `at_pause` is called in each."""

    def __init__(self, slurm: Slurm, out: Path, **choice) -> None:
        out.mkdir(exist_ok=True)
        self.now_s, self.pauses = 1795193960.0, list[float]()
        self.at_pause = lambda: None
        self.state = ScontrolState(print, ask=slurm.ask)
        self.observer = Observer(
            self.state, ObserveRequest(out, **choice), 30, as_json=True, now=lambda: self.now_s, sleep=self._sleep
        )

    def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now_s += seconds
        self.at_pause()


def lines(out: Path) -> list[dict]:
    return [read("sns observe", line) for line in (out / "looks.jsonl").read_text().splitlines()]


def test_it_names_the_jobs_that_would_start_now(sns, tmp_path: Path) -> None:
    status, output, errors = sns("observe", "--once", "--out", tmp_path / "seen")
    assert status in (0, None), errors
    assert "2 jobs wait, 2 of them would be managed; 2 would start now" in output
    rows = [line.split()[:4] for line in output.splitlines() if line.startswith(("  1 ", "  2 "))]
    assert [(row[0], row[1], row[2]) for row in rows] == [("1", "me", "16"), ("2", "me", "16")]
    assert "1 look; 2 jobs that we would have started" in output


def test_nothing_is_asked_of_slurm_but_to_show_and_nothing_is_written_elsewhere(
    sns, slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o555)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
    sns("observe", "--once", "--out", tmp_path / "seen")
    asked = [line.split() for line in slurm.asked.read_text().splitlines()]
    assert {(words[0], *(word for word in words[1:] if word[0] != "-"))[:2] for words in asked} == {
        ("scontrol", "show")
    }
    assert [words[-1] for words in asked] == ["config", "job", "node", "reservation", "partition"]
    assert list(home.iterdir()) == []
    assert {path.name for path in (tmp_path / "seen").iterdir()} <= {"looks.jsonl", "sns.yaml", "compiled"}


def test_json_is_the_line_that_is_written(sns, tmp_path: Path) -> None:
    _, output, _ = sns("observe", "--once", "--json", "--out", tmp_path / "seen", "--policy", "max-jobs")
    assert lines(tmp_path / "seen") == [json.loads(output)]
    assert json.loads(output)["policy"] == "max-jobs"
    sns("observe", "--once", "--json", "--out", tmp_path / "seen")
    assert len(lines(tmp_path / "seen")) == 2, "appended"


def test_names_of_others_are_not_shown(slurm: Slurm, tmp_path: Path) -> None:
    slurm.show("job", samples.job(Partition="main", UserId=f"bob({os.getuid() + 1})", JobName="secret"))
    Looking(slurm, tmp_path / "seen").observer.run(1)
    (line,) = lines(tmp_path / "seen")
    assert [(each["job"], each["user"]) for each in line["advices"]] == [("1", "-")]
    assert not {"bob", "secret"} & set((tmp_path / "seen" / "looks.jsonl").read_text().replace('"', " ").split())


def test_later_looks_say_what_slurm_did(slurm: Slurm, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    looking = Looking(slurm, tmp_path / "seen", policy="max-jobs")

    def starts() -> None:
        shown = {**samples.RUNNING, "StartTime": "1795193980", "NodeList": "c2"}
        slurm.show("job", waiting(1, **shown) + waiting(2))

    looking.at_pause = starts
    looking.observer._as_json = False
    looking.observer.run(2)
    first, second = lines(tmp_path / "seen")
    assert ([each["job"] for each in first["advices"]], second["advices"], second["as_before"]) == (["1", "2"], [], 1)
    (outcome,) = second["outcomes"]
    assert (outcome["job"], outcome["comparison"], outcome["seconds"], outcome["nodes"]) == ("1", "earlier", 20.0, "c2")
    assert second["summary"]["earlier_mean_s"] == 20.0
    assert "we would have started it 20 s earlier" in capsys.readouterr().out


def test_a_report_says_what_the_looks_show_together(sns, slurm: Slurm, tmp_path: Path, capsys) -> None:
    looking = Looking(slurm, tmp_path / "seen", policy="max-jobs")
    slurm.show("job", waiting(1) + waiting(2) + waiting(3, TresPerNode="gres/gpu:1"))

    def starts() -> None:
        slurm.show("job", waiting(1, **{**samples.RUNNING, "StartTime": "1795193980", "NodeList": "c2"}) + waiting(2))

    looking.at_pause = starts
    looking.observer.run(3)
    capsys.readouterr()
    _, output, errors = sns("report", tmp_path / "seen", "--json")
    found = read("sns report", output)["looks"]
    assert errors == ""
    assert (found["looks"], found["runs"], found["interval_s"], found["unread"]) == (3, 1, 30, {})
    assert (found["all"]["advised"], found["all"]["mean_s"], found["all"]["still_waiting"]) == (2, 20, 1)
    assert [(each["name"], each["advised"]) for each in found["by_partition"]] == [("main", 2)]
    assert [(each["name"], each["advised"]) for each in found["by_size"]] == [("several CPUs of a node", 2)]
    assert found["not_managed"] == {"it asks for gres (--gres, --gpus)": pytest.approx(1 / 3)}
    assert {line["began_s"] for line in lines(tmp_path / "seen")} == {1795193960.0}


def test_slurm_is_asked_more_seldom_when_it_answers_slowly(slurm: Slurm, tmp_path: Path) -> None:
    looking = Looking(slurm, tmp_path / "seen")
    looking.observer.run(2)
    assert looking.pauses == [30]
    slow = type("Slow", (), {"__getattr__": lambda _, name: getattr(looking.state, name), "read_s": 4.0})()
    looking.observer._state = slow
    looking.observer.run(2)
    assert looking.pauses[1:] == [80]


def test_while_slurm_does_not_answer_the_pauses_double(slurm: Slurm, tmp_path: Path, capsys) -> None:
    looking = Looking(slurm, tmp_path / "seen")
    tries = iter(range(7))
    ask = looking.state._ask

    def fails(*words: str) -> str:
        if next(tries, None) is not None:
            raise Unreachable("scontrol: Unable to contact slurm controller\x1b[2J")
        return ask(*words)

    looking.state._ask = fails
    looking.observer.run(2)
    assert looking.pauses == [30, 60, 120, 240, 480, 600, 600, 30]
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "sns: scontrol: Unable to contact slurm controller?[2J; trying again in 30 s"


def test_the_only_look_that_fails_is_an_error_of_one_line(sns, slurm: Slurm, tmp_path: Path) -> None:
    (slurm.shown / "node").unlink()
    status, _, errors = sns("observe", "--once", "--out", tmp_path / "seen")
    assert (status, errors.count("\n")) == (1, 1)
    slurm.show("node", "")
    assert "shows no nodes" in sns("observe", "--once", "--out", tmp_path / "seen")[2]


def test_without_slurm_it_says_where_to_run_it(sns, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    status, _, errors = sns("observe", "--once")
    assert (status, errors) == (
        1,
        "sns: error: scontrol is not in PATH: run this on a login node of a cluster with Slurm\n",
    )


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--policy", "fcfs"), "--policy 'fcfs': valid are"),
        (("--partition", "none"), "partition 'none': Slurm has main"),
        (("--interval", "5"), "--interval"),
        (("--out", "/proc/x"), "/proc/x: cannot be made"),
        (("--config", "/nowhere.yaml"), "/nowhere.yaml"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(sns, tmp_path: Path, words, complaint) -> None:
    status, _, errors = sns("observe", "--once", "--out", tmp_path / "seen", *words)
    assert status == 2
    assert complaint in errors
    assert errors.count("\n") == 1


def test_own_settings_and_partitions_count(slurm: Slurm, write_config, tmp_path: Path) -> None:
    slurm.show("partition", samples.partition() + samples.partition(PartitionName="plain", Default="NO"))
    slurm.show("job", waiting(1) + samples.job(JobId="2", Partition="plain"))
    for choice in ({"partitions": ("plain",)}, {"partitions": ("plain",), "config": write_config()}):
        Looking(slurm, tmp_path / "seen", **choice).observer.run(1)
        line = lines(tmp_path / "seen")[-1]
        assert (line["partitions"], [each["job"] for each in line["advices"]]) == (["plain"], ["2"])
    with pytest.raises(BadInput, match="Slurm has main, plain"):
        Looking(slurm, tmp_path / "seen", partitions=("x",), config=tmp_path / "sns.yaml").observer.run(1)


def test_what_cannot_be_read_and_what_is_hidden_is_said(sns, slurm: Slurm, tmp_path: Path) -> None:
    slurm.show("config", samples.CONFIG.replace("= none\nSchedulerP", "= jobs,usage\nSchedulerP"))
    slurm.show("job", waiting(1) + waiting(2, JobName="a\nJobId=3 JobName=b"))
    _, output, _ = sns("observe", "--once", "--out", tmp_path / "seen")
    assert "left out: 1 times a job's line is cut off" in output
    assert "Slurm shows you your own jobs only" in output


def test_ctrl_c_ends_with_the_summary(sns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slurm_sns.cli.live.observe.Observer.run", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    status, output, _ = sns("observe", "--out", tmp_path / "seen")
    assert status in (0, None)
    assert "0 looks" in output


def test_a_missing_part_of_the_installation_is_named(sns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slurm_sns.cli.installations.find_spec", lambda name: None if name == "numba" else sys)
    status, _, errors = sns("observe", "--once")
    assert status == 1
    assert "sns observe needs numba" in errors
