"""Emulated performance counters count as the kernel's would; a job's task can say which program it is."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from resctrl_emulator import mount, run_program
from resctrl_emulator.perf import EmulatedPerf
from slurm_sns.node.counters.perf_event import CYCLES, INSTRUCTIONS, Event, PerfError

pytestmark = pytest.mark.skipif(mount.why_not() is not None, reason=str(mount.why_not()))

#: It starts a child for each line that it reads, and prints the child's id.
PARENT = "while read line; do sleep 600 & echo $!; done"


class Shell:
    """A process that starts children when it is told to."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(["bash", "-c", PARENT], stdin=pipe, stdout=pipe, text=True)
        self.pid, self.children = self._process.pid, []

    def child(self) -> int:
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        self.children.append(int(self._process.stdout.readline()))
        return self.children[-1]

    def end(self) -> None:
        for child in self.children:
            os.kill(child, 9)
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def shell() -> Iterator[Shell]:
    started = Shell()
    yield started
    started.end()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A Xeon with an emulated clock, of its own: programs leave their counts."""
    with mount.mounted(tmp_path_factory.mktemp("perf") / "xeon", "xeon", "--clock", "emulated") as mounted:
        yield mounted


def start(root: Path, task: int) -> None:
    wish = {"start": "ep", "processes": 16, "tasks": [task], "cores": {"0": 8, "1": 8}}
    (root / ".emulator/programs").write_text(json.dumps(wish))


def passes(root: Path, seconds: float) -> None:
    (root / ".emulator/clock").write_text(f"advance {seconds}")


def values(perf: EmulatedPerf, *opened: int) -> list[int]:
    return [perf.read(each)[0].value for each in opened]


def test_a_thread_counts_itself_and_what_it_starts_from_then_on(root: Path, shell: Shell) -> None:
    perf = EmulatedPerf(root)
    before = shell.child()
    start(root, before)
    passes(root, 1)
    parent, child = (perf.open(CYCLES, of, -1) for of in (shell.pid, before))
    assert values(perf, parent, child) == [0, 0], "counting begins when it is opened"
    passes(root, 2)
    cycles = 2 * 16 * 2.4e9
    assert values(perf, parent, child) == [0, pytest.approx(cycles)], "the child was there before"


def test_a_child_of_the_same_tick_counts_for_its_parent_only_if_it_is_started_later(root: Path, shell: Shell) -> None:
    perf = EmulatedPerf(root)
    perf._now_ticks = lambda: 0  # as if all were of one tick
    before = shell.child()
    opened = perf.open(CYCLES, shell.pid, -1)
    after = shell.child()
    for task in (before, after):
        start(root, task)
        passes(root, 1)
    assert values(perf, opened) == [pytest.approx(16 * 2.4e9)]


def test_a_child_that_is_started_later_counts_for_its_parent(root: Path, shell: Shell) -> None:
    perf = EmulatedPerf(root)
    instructions, cycles = (perf.open(event, shell.pid, -1) for event in (INSTRUCTIONS, CYCLES))
    task = shell.child()
    start(root, task)
    passes(root, 1)
    counted = values(perf, instructions, cycles)
    assert counted[0] > 0 < counted[1]
    (root / ".emulator/programs").write_text(json.dumps({"stop": task}))
    assert values(perf, instructions, cycles) == counted, "what has ended stays counted"


def test_what_has_ended_or_is_no_counter_is_refused(root: Path) -> None:
    perf = EmulatedPerf(root)
    dead = subprocess.Popen(["true"])
    dead.wait()
    with pytest.raises(PerfError, match="No such process"):
        perf.open(CYCLES, dead.pid, -1)
    with pytest.raises(PerfError, match="no such counter"):
        perf.open(Event(1, 2), os.getpid(), -1)


@pytest.mark.long
def test_a_task_runs_until_its_work_is_done(root: Path) -> None:
    script = Path(run_program.__file__)
    command = [sys.executable, str(script), "ep", "--processes", "16", "--work-seconds", "5", "--root", str(root)]
    with subprocess.Popen(command, env={"SLURM_JOB_NUM_NODES": "2"}) as process:
        while str(process.pid) not in (root / ".emulator/programs").read_text():
            assert process.poll() is None
        shown = (root / ".emulator/programs").read_text().splitlines()
        [program] = [each for each in map(json.loads, shown) if each["tasks"] == [process.pid]]
        assert program["cores"] == {"0": 4, "1": 4}, "half of its processes are on the other node"
        assert process.poll() is None
        passes(root, 6)
        assert process.wait(60) == 0


def test_only_the_first_task_of_a_node_is_the_program(root: Path) -> None:
    script = Path(run_program.__file__)
    command = [sys.executable, str(script), "ep", "--root", str(root)]
    assert subprocess.run(command, env={"SLURM_LOCALID": "1"}, check=False).returncode == 0
