"""Applying on the mounted emulator: the kernel's answers, real processes as jobs, real kills."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from errno import EBUSY, EINVAL, EIO, ENODEV, ENOSPC, EPERM
from pathlib import Path

import pytest
from applying_agent import WithThreads
from node_agent import MIXES, Agent, Running, assert_is_accepted, unguarded
from resctrl_emulator import mount
from resctrl_emulator.clients import MountedClient
from resctrl_emulator.machines import MACHINES

from slurm_sns.node.apply import Applied
from slurm_sns.node.counters.monitoring_files import MonitoringFiles
from slurm_sns.node.group_writes import SHARED, group_of
from slurm_sns.node.resctrl.groups import CannotMake, DeadTask, Files, GroupGone, Groups, ResctrlError

pytestmark = pytest.mark.skipif(mount.why_not() is not None, reason=str(mount.why_not()))


class Watched(Files):
    """The mounted tree. `before` and `after` are called around each change; `inhabited` are groups with threads."""

    def __init__(self) -> None:
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None
        self.inhabited: set[str] = set()
        self.changes = 0

    def write(self, path: Path, text: str) -> None:
        with self._watched():
            super().write(path, text)
            if path.name == "tasks":
                self.inhabited.add(path.parent.name.removeprefix("sns_"))

    def make_directory(self, path: Path) -> None:
        with self._watched():
            super().make_directory(path)

    def remove_directory(self, path: Path) -> None:
        with self._watched():
            super().remove_directory(path)
            self.inhabited.discard(path.name.removeprefix("sns_"))

    @contextmanager
    def _watched(self) -> Iterator[None]:
        self.before()
        self.changes += 1
        yield
        self.after()


class Processes:
    """A process for each job: it sleeps. The emulator sees the processes of `folder`, links to those of /proc."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    def of(self, job_id: int) -> int:
        """The job's process, which begins if there is none yet."""
        if job_id not in self._running:
            self._running[job_id] = subprocess.Popen(["sleep", "600"])
            self.show(self._running[job_id].pid)
        return self._running[job_id].pid

    def keep(self, job_ids: Sequence[int]) -> None:
        """All others end."""
        for job_id in self._running.keys() - set(job_ids):
            process = self._running.pop(job_id)
            process.kill()
            process.wait()
            (self._folder / str(process.pid)).unlink()

    def show(self, process_id: int) -> None:
        """The emulator sees this process, too."""
        (self._folder / str(process_id)).symlink_to(f"/proc/{process_id}")


class Node(Agent):
    """A node on which the jobs are processes."""

    def __init__(self, root: Path, processes: Processes) -> None:
        self.files = Watched()
        super().__init__(root, self.files)
        self.root, self.processes = root, processes

    def threads(self, job: Running) -> Sequence[int]:
        return [self.processes.of(job.job_id)]

    def run(self, *jobs: Running) -> Applied:
        self.processes.keep([job.job_id for job in jobs])
        self.lay_out(*jobs)
        return self.apply(*jobs)

    def watch(self, *jobs: Running) -> list[tuple[int, int]]:
        """From now on: jobs, with the domain, that had not their ways for themselves after a change of the tree."""
        broken: list[tuple[int, int]] = []

        def look() -> None:
            ways = {job.job_id: job.ways for job in jobs if group_of(job.job_id) in self.files.inhabited}
            broken.extend(unguarded(self, ways, self.files.inhabited))

        self.files.after = look
        return broken

    def is_inhabited_as_planned(self, *jobs: Running) -> bool:
        """Whether the kernel shows each job's process in its group, or in the shared group if it has none."""
        present = self.groups.names()
        names = [group_of(job.job_id) if group_of(job.job_id) in present else SHARED for job in jobs]
        shown = {name: self.groups.tasks(name) for name in names}
        return all(self.processes.of(job.job_id) in shown[name] for job, name in zip(jobs, names, strict=True))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The processes of the emulated machine: ours is the first."""
    folder = tmp_path_factory.mktemp("processes")
    Processes(folder).show(os.getpid())
    return folder


@pytest.fixture(scope="module")
def mounts(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Path]]:
    """A mounted tree of each machine type that is asked for, as after a fresh mount."""
    with ExitStack() as stack:
        found: dict[str, Path] = {}

        def of(machine: str) -> Path:
            if machine not in found:
                directory = tmp_path_factory.mktemp("resctrl") / machine
                found[machine] = stack.enter_context(mount.mounted(directory, machine, "--processes", str(folder)))
            MountedClient(found[machine]).reset()
            return found[machine]

        yield of


@pytest.fixture
def root(mounts: Callable[[str], Path]) -> Iterator[Path]:
    """A Xeon: two cache domains, 20 ways, 16 CLOSIDs."""
    mounted = mounts("xeon")
    yield mounted
    assert (mounted / ".emulator/faults").read_text() == "", "every fault has happened"


@pytest.fixture
def processes(folder: Path) -> Iterator[Processes]:
    running = Processes(folder)
    yield running
    running.keep(())


@pytest.fixture
def node(root: Path, processes: Processes) -> Node:
    return Node(root, processes)


def tree_of(root: Path, *, without: str = "") -> dict[str, str]:
    """What the groups show, by path; not the names that begin with `without`, and no tasks of the root group."""
    groups = [path for path in root.iterdir() if path.is_dir() and path.name not in ("info", "mon_data", "mon_groups")]
    shown = {
        f"{group.name}/{name}": (group / name).read_text()
        for group in groups
        if not (without and group.name.startswith(without))
        for name in ("schemata", "mode", "tasks", "cpus_list")
    }
    return {**shown, "schemata": (root / "schemata").read_text(), "mode": (root / "mode").read_text()}


def refuse(root: Path, path: str, access: str, number: str, status: str) -> None:
    """The kernel will refuse the next access of this kind."""
    fault = {"path": path, "access": access, "errno": number, "status": status}
    (root / ".emulator/faults").write_text(json.dumps(fault))


@contextmanager
def someone(root: Path, processes: Processes, schemata: str = "") -> Iterator[Path]:
    """A group that somebody else has made, with a process."""
    group = root / "someone"
    group.mkdir()
    if schemata:
        (group / "schemata").write_text(schemata)
    (group / "tasks").write_text(f"{processes.of(0)}\n")
    yield group
    group.rmdir()


class TestGoldenSchemata:
    @pytest.mark.long
    @pytest.mark.parametrize("machine", sorted(MACHINES))
    def test_of_a_machine_type(self, machine: str, mounts: Callable[[str], Path], tmp_path: Path) -> None:
        root = mounts(machine)
        agent, text = WithThreads(root, {}), []
        for title, jobs in MIXES.items():
            agent.lay_out(*jobs)
            applied = agent.apply(*jobs)
            assert agent.is_in_force()
            text.append(f"# {title}")
            text += [f"# without ways: job {job}" for job in agent.planned.without]
            text += [f"# without a group: job {job}" for job in applied.without]
            for name in agent.groups.names():
                text += [f"sns_{name}", *(root / f"sns_{name}" / "schemata").read_text().splitlines()]
            text.append("")
        assert_is_accepted(f"emulated-{machine}", "\n".join(text), tmp_path)


class TestJobs:
    SEVENTEEN = tuple(Running(number, 1, 2) for number in range(1, 18))

    @pytest.mark.long
    @pytest.mark.parametrize("foreign_groups", [0, 1])
    def test_17_come_and_go_on_16_closids_and_every_one_keeps_its_guarantee(
        self, foreign_groups: int, node: Node, processes: Processes
    ) -> None:
        jobs, most = self.SEVENTEEN, 14 - foreign_groups
        with ExitStack() as stack:
            if foreign_groups:
                stack.enter_context(someone(node.root, processes, "L3:0=ff000;1=ff\nMB:0=50;1=100\n"))
            others = tree_of(node.root)
            broken = node.watch(*jobs)
            for present in (jobs[:1], jobs[:2], jobs[:6], jobs, (*jobs[3:5], *jobs[6:]), jobs[10:], ()):
                processes.keep([0, *(job.job_id for job in present)])
                node.lay_out(*present)
                assert node.apply(*present).overlapped == ()
                assert broken == []
                assert node.is_in_force()
                assert node.is_inhabited_as_planned(*present)
                assert set(node.planned.without) == {job.job_id for job in present[most:]}
                assert len(node.groups.names()) == 1 + min(len(present), most)
            node.groups.remove_all()
            assert tree_of(node.root) == others

    def test_all_16_closids_are_taken_then(self, node: Node) -> None:
        node.run(*self.SEVENTEEN)
        with pytest.raises(CannotMake, match="Out of CLOSIDs"):
            node.groups.make("one_more")

    def test_jobs_that_have_to_move_keep_their_guarantee_at_every_moment(self, node: Node) -> None:
        first = (Running(1, 8), Running(2, 5), Running(3, 2), Running(4, 2))
        mixes = (
            first,
            (*first[:3], Running(5, 3)),
            (*first[1:3], Running(6, 9)),
            (first[1], Running(7, 7), Running(8, 6)),
        )
        broken, moved = node.watch(*{job for jobs in mixes for job in jobs}), 0
        for jobs in mixes:
            assert node.run(*jobs).overlapped == ()
            assert broken == []
            assert node.is_in_force()
            moved += sum(len(each.moved) for each in node.layouts.values())
        assert moved == 8, "else nothing is shown"

    def test_a_job_on_one_cache_domain_takes_nothing_from_those_on_the_other(self, node: Node) -> None:
        first, second, both = Running(1, 4, cores={0: 8}), Running(2, 6, cores={1: 8}), Running(3, 5)
        broken = node.watch(first, second, both)
        node.run(first, second)
        assert {name: by_domain for name, by_domain in node.masks().items() if name != SHARED} == {
            "job1": {0: 0x3FFFF, 1: 0xC0000},
            "job2": {0: 0xC0000, 1: 0x3FFFF},
        }
        node.run(first, second, both)
        shown = node.masks()
        assert [shown["job1"][0].bit_count(), shown["job3"][0].bit_count()] == [9, 9]
        assert [shown["job2"][1].bit_count(), shown["job3"][1].bit_count()] == [10, 8]
        assert broken == []

    def test_spare_ways_are_given_back_before_the_next_job_has_threads(self, node: Node) -> None:
        alone, next_one = Running(1, 4), Running(2, 12)
        node.run(alone)
        assert node.masks()["job1"] == {0: 0x3FFFF, 1: 0x3FFFF}
        broken = node.watch(alone, next_one)
        node.run(alone, next_one)
        assert broken == []
        assert node.masks()["job1"][0].bit_count() == 5
        assert node.masks()["job2"][0].bit_count() == 13
        node.run(alone)
        assert node.masks()["job1"] == {0: 0x3FFFF, 1: 0x3FFFF}

    def test_a_child_that_a_job_forks_is_in_its_group(self, node: Node) -> None:
        node.run(Running(1, 4))
        parent = "import subprocess, sys; child = subprocess.Popen(['sleep', '60']); print(child.pid, flush=True)"
        with subprocess.Popen(
            [sys.executable, "-c", f"input(); {parent}; input(); child.kill()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            node.processes.show(process.pid)
            node.groups.move("job1", [process.pid])
            process.stdin.write("\n")
            process.stdin.flush()
            child = int(process.stdout.readline())
            node.processes.show(child)
            assert {process.pid, child} < set(node.groups.tasks("job1"))
            process.stdin.write("\n")

    def test_the_system_goes_to_the_shared_group_and_comes_back(self, node: Node) -> None:
        node.run(Running(1, 4))
        node.groups.move_all(SHARED, node.groups.root_tasks)
        assert os.getpid() in node.groups.tasks(SHARED)
        assert node.groups.root_tasks() == ()
        node.groups.remove_all()
        assert {os.getpid(), node.processes.of(1)} <= set(node.groups.root_tasks())


class TestOthers:
    def test_ways_that_an_exclusive_group_has_are_left_to_it(self, node: Node, processes: Processes) -> None:
        (node.root / "schemata").write_text("L3:0=ffff;1=fff00\n")
        with someone(node.root, processes, "L3:0=30000;1=ff\n") as group:
            (group / "mode").write_text("exclusive\n")
            others = tree_of(node.root)
            node.lay_out(Running(1, 4), Running(2, 4))
            node.apply(Running(1, 4), Running(2, 4))
            assert {mask & 0x30000 for mask in (shown[0] for shown in node.masks().values())} == {0}
            assert {mask & 0xFF for mask in (shown[1] for shown in node.masks().values())} == {0}
            assert node.is_in_force()
            assert tree_of(node.root, without="sns_") == others

    def test_a_group_that_vanished_is_made_again(self, node: Node) -> None:
        jobs = (Running(1, 4), Running(2, 6))
        node.run(*jobs)
        (node.root / "sns_job2").rmdir()
        assert node.run(*jobs).made == (2,)
        assert node.is_in_force()
        assert node.is_inhabited_as_planned(*jobs)

    def test_a_group_that_vanishes_between_two_changes_is_made_again(self, node: Node) -> None:
        jobs = (Running(1, 2), Running(2, 12))
        node.run(Running(1, 4), Running(2, 6))
        vanishing = iter([True])

        def vanish() -> None:
            if next(vanishing, False):
                (node.root / "sns_job2").rmdir()

        node.files.before = vanish
        assert node.run(*jobs).made == (2,)
        assert node.is_in_force()
        assert node.is_inhabited_as_planned(*jobs)


class TestMonitoringGroups:
    """Jobs that share a group are counted apart."""

    def test_two_jobs_of_one_group_are_counted_apart(self, node: Node, processes: Processes) -> None:
        jobs, group = {1: processes.of(1), 2: processes.of(2)}, SHARED
        node.groups.make(group)
        node.groups.move(group, jobs.values())
        for job, process in jobs.items():
            assert node.groups.make(group, f"job{job}")
            assert not node.groups.make(group, f"job{job}"), "it is there already"
            assert node.groups.move(group, [process], f"job{job}") == (process,)
            assert node.groups.tasks(group, f"job{job}") == (process,)
        assert node.groups.monitors(group) == ("job1", "job2")

        wish = {"start": "mg", "processes": 16, "scale": 1, "tasks": [jobs[1]], "cores": {"0": 8, "1": 8}}
        (node.root / ".emulator/programs").write_text(json.dumps(wish))
        said: list[str] = []
        files = {job: MonitoringFiles(node.groups.directory(group, f"job{job}"), None, said.append) for job in jobs}
        before = {job: moved(files[job]) for job in jobs}
        time.sleep(0.2)
        after = {job: moved(files[job]) for job in jobs}
        (node.root / ".emulator/programs").write_text(json.dumps({"stop": jobs[1]}))
        for each in files.values():
            each.close()
        assert (after[1] > before[1], after[2] == before[2], said) == (True, True, [])

        node.groups.remove(group, "job1")
        assert node.groups.monitors(group) == ("job2",)
        node.groups.remove(group, "job1")
        node.groups.remove_all()
        assert node.groups.names() == ()

    def test_a_thread_of_another_group_is_refused(self, node: Node, processes: Processes) -> None:
        node.groups.make(SHARED)
        node.groups.make(SHARED, "job1")
        with pytest.raises(ResctrlError):
            node.groups.move(SHARED, [processes.of(1)], "job1")

    def test_the_monitoring_groups_of_others_stay(self, node: Node) -> None:
        foreign = node.root / "mon_groups" / "someone"
        foreign.mkdir()
        node.groups.make(SHARED)
        node.groups.make(SHARED, "job1")
        node.groups.remove_all()
        assert foreign.is_dir()
        foreign.rmdir()

    def test_when_the_rmids_are_used_up_it_says_so_and_the_job_is_counted_with_its_group(self, node: Node) -> None:
        rmids = int((node.root / "info/L3_MON/num_rmids").read_text())
        node.groups.make(SHARED)
        for at in range(2, rmids):  # one is the root group's own, one the shared group's
            node.groups.make(SHARED, f"job{at}")
        with pytest.raises(CannotMake, match="Out of RMIDs"):
            node.groups.make(SHARED, "one-more")
        node.groups.remove_all()
        node.groups.make(SHARED)
        assert node.groups.make(SHARED, "job1")
        node.groups.remove_all()


def moved(files: MonitoringFiles) -> int:
    """The bytes that a group has moved in all domains."""
    return sum(each.moved or 0 for each in files.read().values())


#: What the kernel refuses, with its words; "ok" where it has none.
REFUSED: Mapping[str, tuple[str, str]] = {
    "no colon": ("L3 0=f\n", "Missing ':'"),
    "an unknown resource": ("L9:0=f\n", "Unknown or unsupported resource name 'L9'"),
    "no number for a domain": ("L3:zero=f\n", "Missing '=' or non-numeric domain"),
    "an unknown domain": ("L3:7=f\n", "ok"),
    "a domain twice": ("L3:0=f;0=f\n", "Duplicate domain 0"),
    "no hexadecimal mask": ("L3:0=zz\n", "Non-hex character in the mask zz"),
    "no way": ("L3:0=0\n", "Mask out of range"),
    "more ways than there are": ("L3:0=1fffff\n", "Mask out of range"),
    "a hole": ("L3:0=f7\n", "The mask f7 has non-consecutive 1-bits"),
    "too little bandwidth": ("MB:0=5\n", "MB value 5 out of range [10,100]"),
    "a good line and a bad one": ("L3:0=f\nMB:0=5\n", "MB value 5 out of range [10,100]"),
    "no newline at the end": ("L3:0=f", "ok"),
}


class TestRefusals:
    """Each row of the kernel's answers as an error of ours, and what an application does about it."""

    @pytest.mark.parametrize("why", REFUSED)
    def test_of_a_line_is_told_in_the_kernels_words_and_changes_nothing(self, why: str, root: Path) -> None:
        text, status = REFUSED[why]
        groups = Groups(root)
        groups.make("job1")
        before = groups.read("job1")
        with pytest.raises(ResctrlError) as refused:
            groups.write("job1", text)
        assert os.strerror(EINVAL) in str(refused.value)
        assert (status in str(refused.value)) == (status != "ok")
        assert groups.read("job1") == before

    def test_of_too_few_ways(self, mounts: Callable[[str], Path]) -> None:
        groups = Groups(mounts("haswell"))
        groups.make("job1")
        with pytest.raises(ResctrlError, match="Need at least 2 bits in the mask"):
            groups.write("job1", "L3:0=1\n")

    def test_of_a_dead_thread_is_no_error(self, node: Node) -> None:
        node.groups.make("job1")
        dead = subprocess.Popen(["true"])
        dead.wait()
        assert node.groups.move("job1", [dead.pid, os.getpid()]) == (os.getpid(),)

    JOBS = (Running(1, 4, 20), Running(2, 12))
    WRITES = (
        ("EINVAL", "Overlaps with exclusive group", ResctrlError),
        ("EINVAL", "Mask out of range", ResctrlError),
        ("EINVAL", "", ResctrlError),
        ("EPERM", "", ResctrlError),
        ("EBUSY", "", ResctrlError),
        ("EIO", "", ResctrlError),
        ("ENOSPC", "", CannotMake),
    )

    @pytest.mark.long
    @pytest.mark.parametrize("path", ["sns_job1/schemata", "sns_job2/schemata", "sns_shared/schemata"])
    @pytest.mark.parametrize(("number", "status", "kind"), WRITES)
    def test_of_a_write_stops_there_with_every_guarantee_kept_and_the_next_call_finishes(
        self, path: str, number: str, status: str, kind: type[ResctrlError], node: Node
    ) -> None:
        alone = self.JOBS[:1] if "shared" not in path else ()
        node.run(*alone)
        broken = node.watch(*self.JOBS)
        refuse(node.root, path, "write", number, status)
        with pytest.raises(kind, match=path) as refused:
            node.run(*self.JOBS)
        expected = {"EINVAL": EINVAL, "EPERM": EPERM, "EBUSY": EBUSY, "EIO": EIO}.get(number, ENOSPC)
        assert os.strerror(expected) in str(refused.value)
        assert status in str(refused.value)
        node.apply(*self.JOBS)
        assert broken == []
        assert node.is_in_force()
        assert node.is_inhabited_as_planned(*self.JOBS)

    @pytest.mark.parametrize("number", ["ENODEV", "ENOENT"])
    def test_because_the_group_is_gone_is_tried_once_more(self, number: str, node: Node) -> None:
        refuse(node.root, "sns_job2/schemata", "write", number, "")
        node.run(*self.JOBS)
        assert node.is_in_force()
        for _ in range(2):
            refuse(node.root, "sns_job2/schemata", "write", "ENODEV", "")
        with pytest.raises(GroupGone, match=os.strerror(ENODEV)):
            node.run(Running(1, 6), Running(2, 8))

    @pytest.mark.parametrize(
        ("number", "status"),
        [
            ("ENOSPC", "Out of CLOSIDs"),
            ("ENOSPC", "Out of RMIDs"),
            ("EBUSY", "Out of RMIDs"),  # those of removed groups, while their lines are in the cache
            ("ENOSPC", "No space on L3:0"),
        ],
    )
    def test_of_a_new_group_lets_the_job_run_in_the_shared_part(self, number: str, status: str, node: Node) -> None:
        refuse(node.root, "sns_job2", "make", number, status)
        applied = node.run(*self.JOBS)
        assert list(applied.without) == [2]
        assert status in applied.without[2]
        assert node.is_inhabited_as_planned(*self.JOBS)
        refuse(node.root, "sns_job3", "make", number, status)
        with pytest.raises(CannotMake):
            node.groups.make("job3")
        assert node.run(*self.JOBS).made == (2,)
        assert node.is_inhabited_as_planned(*self.JOBS)

    @pytest.mark.parametrize("number", ["EPERM", "EBUSY"])
    def test_to_remove_a_group_is_told_and_the_next_call_removes_it(self, number: str, node: Node) -> None:
        node.run(*self.JOBS)
        refuse(node.root, "sns_job2", "remove", number, "")
        with pytest.raises(ResctrlError, match="sns_job2 cannot be removed"):
            node.run(*self.JOBS[:1])
        node.apply(*self.JOBS[:1])
        assert node.groups.names() == ("job1", SHARED)
        assert node.is_in_force()

    @pytest.mark.parametrize(("number", "kind"), [("EPERM", ResctrlError), ("ESRCH", DeadTask)])
    def test_to_move_a_thread(self, number: str, kind: type[ResctrlError], node: Node) -> None:
        refuse(node.root, "sns_job1/tasks", "write", number, "No task 1" if kind is DeadTask else "")
        if kind is DeadTask:
            node.run(*self.JOBS)
            assert node.groups.tasks("job1") == (), "the kernel said that it has ended"
        else:
            with pytest.raises(kind, match="sns_job1"):
                node.run(*self.JOBS)
        node.apply(*self.JOBS)
        assert node.is_inhabited_as_planned(*self.JOBS)

    def test_a_locked_tree_is_waited_for(self, node: Node) -> None:
        holder = (
            "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX); print(flush=True)"
        )
        with subprocess.Popen(
            [sys.executable, "-c", f"{holder}; input()", str(node.root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            process.stdout.readline()
            with pytest.raises(ResctrlError, match="is locked by another program for 0"), node.groups.lock(0):
                pass
            process.kill()  # the kernel gives a dead process's lock back
        with node.groups.lock(0):
            pass


class TestRestart:
    JOBS = (Running(1, 4, 20), Running(2, 3, 5, {0: 4}), Running(3, 6))

    def test_nothing_is_written_when_all_is_in_force(self, node: Node) -> None:
        node.run(*self.JOBS)
        again = Node(node.root, node.processes)
        again.lay_out_after_a_restart(*self.JOBS)
        assert again.apply(*self.JOBS) == Applied()
        assert again.files.changes == 0

    def test_no_job_moves_whatever_came_and_went_meanwhile(self, node: Node) -> None:
        node.run(*self.JOBS)
        in_force = node.masks()
        jobs = (*self.JOBS[1:], Running(4, 5))
        node.processes.keep([job.job_id for job in jobs])
        again = Node(node.root, node.processes)
        again.files.inhabited = {SHARED, *(group_of(job.job_id) for job in self.JOBS[1:])}
        broken = again.watch(*jobs)
        again.lay_out_after_a_restart(*jobs)
        assert [each.moved for each in again.layouts.values()] == [(), ()]
        again.apply(*jobs)
        assert broken == []
        assert again.is_in_force()
        assert again.is_inhabited_as_planned(*jobs)
        for domain, each in again.layouts.items():
            for job in each.guaranteed.keys() & {2, 3}:
                assert each.guaranteed[job] & ~in_force[group_of(job)][domain] == 0

    def test_what_others_did_to_our_groups_meanwhile_is_undone(self, node: Node) -> None:
        node.run(*self.JOBS)
        (node.root / "sns_job1" / "schemata").write_text("L3:0=3;1=fffff\nMB:0=100\n")
        (node.root / "sns_job3").rmdir()
        (node.root / "sns_old").mkdir()
        again = Node(node.root, node.processes)
        again.lay_out_after_a_restart(*self.JOBS)
        again.apply(*self.JOBS)
        assert "old" not in again.groups.names()
        assert again.is_in_force()
        assert again.is_inhabited_as_planned(*self.JOBS)
        assert again.groups.read("job1")["MB"] == {0: 20, 1: 20}


class TestKilled:
    """kill -9 between any two changes; then the agent starts again, or the node is cleaned up."""

    BEFORE = (Running(1, 4, 20), Running(2, 3, 5, {0: 4}), Running(3, 6))
    AFTER = (Running(1, 4, 30), Running(3, 6), Running(4, 5, 10), Running(5, 0, 10), Running(6, 2))

    @pytest.fixture
    def killed(self, node: Node) -> Iterator[Callable[[int], bool]]:
        """`killed(n)`: an agent was killed before its n-th change; False: there are not so many."""
        script = Path(__file__).parent / "applying_agent.py"
        jobs = {job.job_id for job in (*self.BEFORE, *self.AFTER)}
        with subprocess.Popen(
            [sys.executable, str(script), str(node.root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:

            def kill(number: int) -> bool:
                node.groups.remove_all()
                node.lay_out(*self.BEFORE)
                node.apply(*self.BEFORE)
                threads = {job: [node.processes.of(job)] for job in jobs}
                asked = {"jobs": self.AFTER, "threads": threads, "killed_before": number}
                process.stdin.write(f"{json.dumps(asked)}\n")
                process.stdin.flush()
                code = int(process.stdout.readline())
                assert code in (0, -signal.SIGKILL)
                return code != 0

            yield kill

    @pytest.mark.long
    def test_a_clean_up_leaves_nothing_of_ours_and_everything_of_others(
        self, node: Node, processes: Processes, killed: Callable[[int], bool]
    ) -> None:
        with someone(node.root, processes, "L3:0=f0000;1=ff\nMB:0=50\n"):
            others, number = tree_of(node.root), 0
            while killed(number):
                Groups(node.root).remove_all()
                assert tree_of(node.root) == others
                assert {processes.of(1), processes.of(3)} <= set(node.groups.root_tasks())
                number += 1
            assert number > 15

    @pytest.mark.long
    def test_the_next_start_finishes_with_every_guarantee_kept(self, node: Node, killed: Callable[[int], bool]) -> None:
        number = 0
        while killed(number):
            again = Node(node.root, node.processes)
            again.lay_out_after_a_restart(*self.AFTER)
            staying = {1: 4, 3: 6}
            inhabited = {name for name in again.groups.names() if again.groups.tasks(name)}
            assert unguarded(again, staying, inhabited) == []
            again.files.inhabited = inhabited
            broken = again.watch(*self.AFTER)
            again.apply(*self.AFTER)
            assert broken == []
            assert again.is_in_force()
            assert again.is_inhabited_as_planned(*self.AFTER)
            number += 1
        assert number > 15
