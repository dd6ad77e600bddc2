"""CPU time that the jobs of a node share: weights and limits in their cgroups, whatever happens in between.

The cgroups are plain files that answer as the kernel's do (cgroup_trees.py).
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest
from bare_node import BareNode
from cgroup_trees import AT_FIRST, make_v1, make_v2
from emulated_node import NODE
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_sns.node.agent.agent import LEASE_S
from slurm_sns.node.agent.in_force import CpuShares
from slurm_sns.node.agent.runs_here import RunHere
from slurm_sns.node.agent.state_file import StateFile
from slurm_sns.node.agent.tasks_of_job import Processes, SlurmTasks
from slurm_sns.node.cgroups import Cgroups
from slurm_sns.wire.values import Change, RunId

#: Each job's user.
USERS = {1: 1000, 2: 1000, 3: 1001, 4: 1002}


class SharedNode(BareNode):
    """A node whose jobs have cgroups of version 1 or 2; on 1 Slurm makes none in `cpu`, so that the agent does."""

    def __init__(self, directory: Path, version: int, **settings: object) -> None:
        self.version, self.root = version, directory / "cgroup"
        (self.root / "cpu").mkdir(parents=True)
        if version == 2:
            (self.root / "cgroup.controllers").write_text("cpu\n")
        super().__init__(directory, cgroups=self.root, **settings)

    def begins(self, job: int, restarts: int = 0) -> None:
        """A job's first step begins."""
        self.event("prolog", RunId(job, restarts))
        self.step_begins(job)

    def step_begins(self, job: int) -> None:
        """A step of a job that has none begins, with a thread."""
        self.jobs.running.add(job)
        if self.version == 2:
            make_v2(self.root, f"job_{job}", f"{NODE}_slurmstepd.scope")
        else:
            self.slurms(job).parent.mkdir(parents=True, exist_ok=True)
            make_v1(self.root, job, "freezer", f"slurm_{NODE}", USERS[job])
        self.thread_begins(job, 1000 + job)

    def thread_begins(self, job: int, thread: int) -> None:
        step, file = ("step_batch", "tasks") if self.version == 1 else ("step_0", "cgroup.threads")
        with (self.slurms(job) / step / file).open("a") as threads:
            threads.write(f"{thread}\n")

    def steps_end(self, job: int) -> None:
        """The last step of a job has ended: so have its threads."""
        self.jobs.running.discard(job)
        shutil.rmtree(self.slurms(job), ignore_errors=True)
        if self.version == 1 and self.cgroup(job).is_dir():
            (self.cgroup(job) / "tasks").write_text("")

    def ends(self, job: int, restarts: int = 0) -> None:
        self.steps_end(job)
        self.event("epilog", RunId(job, restarts))

    def slurms(self, job: int) -> Path:
        """The job's cgroup of Slurm's."""
        if self.version == 2:
            return self.root / "system.slice" / f"{NODE}_slurmstepd.scope" / f"job_{job}"
        return self.root / "freezer" / f"slurm_{NODE}" / f"uid_{USERS[job]}" / f"job_{job}"

    def cgroup(self, job: int) -> Path:
        """The job's cgroup that has CPU time."""
        return (
            self.slurms(job)
            if self.version == 2
            else self.root / "cpu" / self.slurms(job).relative_to(self.root / "freezer")
        )

    def in_force(self, job: int) -> tuple[str, float | None]:
        """The job's weight, and its limit in CPUs; None without a limit."""
        at = self.cgroup(job)
        if self.version == 2:
            (weight, (quota, period)) = (at / "cpu.weight").read_text(), (at / "cpu.max").read_text().split()
        else:
            weight = (at / "cpu.shares").read_text()
            quota, period = (at / "cpu.cfs_quota_us").read_text(), (at / "cpu.cfs_period_us").read_text()
        return weight.strip(), None if quota.strip() in ("max", "-1") else int(quota) / int(period)

    def parts(self) -> Mapping[int, float]:
        """The part of all jobs' CPU time that each job's weights give it, where all are busy."""
        if self.version == 2:
            return {int(job.name[4:]): part for job, part in parts_of(self.slurms(1).parent, "cpu.weight").items()}
        users = parts_of(self.root / "cpu" / f"slurm_{NODE}", "cpu.shares")
        return {
            int(job.name[4:]): of_all * of_user
            for user, of_all in users.items()
            for job, of_user in parts_of(user, "cpu.shares").items()
        }

    def there(self) -> Mapping[int, tuple[int, float]]:
        """The CPU time that the agent says is in force."""
        return {each.run.job_id: (each.cpus, each.cpu_share) for each in self.agent.state().jobs}

    def controller_knows(self) -> Mapping[int, tuple[int, float]]:
        """The same as the agent has told it last."""
        return {each.run.job_id: (each.cpus, each.cpu_share) for each in self.controller.states[-1].jobs}


def parts_of(parent: Path, file: str) -> Mapping[Path, float]:
    """The part of its parent's CPU time that each cgroup of jobs has by its weight."""
    weights = {path.parent: int(path.read_text()) for path in parent.glob(f"[uj]*_*/{file}")}
    return {cgroup: weight / sum(weights.values()) for cgroup, weight in weights.items()}


@pytest.fixture(params=[1, 2], ids=["cgroup v1", "cgroup v2"])
def version(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture
def node(version: int, tmp_path: Path) -> SharedNode:
    return SharedNode(tmp_path, version)


#: The weight of a CPU; what a cgroup has at first.
A_CPU, AT_FIRST_WEIGHT = {1: 256, 2: 10}, {1: "1024", 2: "100"}


def test_a_run_is_weighed_and_limited_by_what_it_asked_for_and_the_controller_is_told_at_once(node: SharedNode) -> None:
    node.begins(1)
    node.passes(2)
    assert node.there()[1] == (0, 1.0)
    node.told(Change(RunId(1), 1, cpus=8))
    assert node.in_force(1) == (str(8 * A_CPU[node.version]), 8.0), "never no limit: nothing else keeps it to its CPUs"
    assert node.controller_knows()[1] == (8, 1.0)
    node.told(Change(RunId(1), 2, cpus=8, cpu_share=0.25))
    assert node.in_force(1) == (str(8 * A_CPU[node.version]), 2.0)
    assert node.controller_knows()[1] == (8, 0.25)
    node.told(Change(RunId(1), 1, cpus=4))
    assert node.there()[1] == (8, 0.25), "an older word"


def test_the_cgroup_of_a_run_without_cpus_is_not_touched(node: SharedNode) -> None:
    node.begins(1)
    node.told(Change(RunId(1), 1, ways=2, cpu_share=0.25))
    node.passes(12)
    assert node.there()[1] == (0, 1.0)
    if node.version == 2:
        assert node.in_force(1) == (AT_FIRST_WEIGHT[2], None)
    else:
        assert not list((node.root / "cpu").iterdir())


def test_what_was_told_before_the_run_was_here_is_in_force_when_its_first_step_is(node: SharedNode) -> None:
    node.told(Change(RunId(1), 1, cpus=2, cpu_share=0.5))
    node.event("prolog", RunId(1))
    assert node.there()[1] == (0, 1.0), "there is nothing to limit yet"
    node.step_begins(1)
    node.passes(2)
    assert node.there()[1] == (2, 0.5)
    assert node.in_force(1)[1] == 1.0


def test_a_run_that_no_longer_shares_gets_back_what_its_cgroup_had(node: SharedNode) -> None:
    node.begins(1)
    node.told(Change(RunId(1), 1, cpus=8, cpu_share=0.25))
    node.told(Change(RunId(1), 2, ways=3))
    assert node.in_force(1) == (AT_FIRST_WEIGHT[node.version], None)
    assert node.controller_knows()[1] == (0, 1.0)


def test_a_cgroup_that_goes_with_the_last_step_and_comes_with_the_next_one_is_set_again(node: SharedNode) -> None:
    node.begins(1)
    node.told(Change(RunId(1), 1, cpus=2, cpu_share=0.5))
    node.steps_end(1)
    node.passes(12)
    assert node.there()[1] == (2, 0.5), "nothing runs that would have more"
    node.step_begins(1)
    node.passes(12)
    assert node.in_force(1) == (str(2 * A_CPU[node.version]), 1.0)


def test_threads_of_a_later_step_join_at_the_next_look_on_cgroup_v1(tmp_path: Path) -> None:
    node = SharedNode(tmp_path, 1)
    node.begins(1)
    node.told(Change(RunId(1), 1, cpus=2))
    assert (node.cgroup(1) / "tasks").read_text().split() == ["1001"]
    node.thread_begins(1, 2001)
    node.passes(11)
    assert (node.cgroup(1) / "tasks").read_text().split() == ["1001", "2001"]


def test_on_cgroup_v1_users_weigh_as_their_jobs_do_also_when_one_has_ended(tmp_path: Path) -> None:
    node = SharedNode(tmp_path, 1)
    for job, cpus in ((1, 3), (2, 1), (3, 4)):
        node.begins(job)
        node.told(Change(RunId(job), 1, cpus=cpus))
    assert node.parts() == {1: 3 / 8, 2: 1 / 8, 3: 1 / 2}
    node.ends(1)
    assert node.parts() == {2: 1 / 5, 3: 4 / 5}
    for job in (2, 3):
        node.ends(job)
    assert not list((node.root / "cpu").iterdir()), "nothing of ours is left"


def test_a_cgroup_of_ours_that_still_has_a_thread_at_the_epilog_is_removed_later(tmp_path: Path) -> None:
    node = SharedNode(tmp_path, 1)
    node.begins(1)
    node.told(Change(RunId(1), 1, cpus=3))
    node.steps_end(1)
    (node.cgroup(1) / "tasks").write_text("1001\n")
    node.event("epilog", RunId(1))
    assert node.said == []
    node.passes(22)
    assert [line.partition(":")[0] for line in node.said] == ["job 1"], "said once"
    (node.cgroup(1) / "tasks").write_text("")
    node.restart()
    assert not list((node.root / "cpu").iterdir())


class TestLease:
    """Who limits jobs must be there to raise the limits when neighbours end."""

    @pytest.fixture
    def limited(self, node: SharedNode) -> SharedNode:
        node.begins(1)
        node.told(Change(RunId(1), 1, cpus=4, cpu_share=0.5))
        return node

    def silence(self, node: SharedNode, seconds: int) -> None:
        for _ in range(seconds):
            node.controller.silent_s += 1
            node.passes(1)

    def test_without_a_word_for_a_minute_shares_count_as_1_until_there_is_one(self, limited: SharedNode) -> None:
        self.silence(limited, int(LEASE_S) - 1)
        assert limited.in_force(1)[1] == 2.0
        self.silence(limited, 1)
        assert limited.in_force(1) == (str(4 * A_CPU[limited.version]), 4.0)
        assert limited.controller_knows()[1] == (4, 1.0)
        limited.controller.silent_s = 0.5
        limited.passes(1)
        assert limited.in_force(1)[1] == 2.0, "what was told last"
        assert limited.controller_knows()[1] == (4, 0.5)

    def test_a_word_of_any_kind_renews_it(self, limited: SharedNode) -> None:
        for _ in range(10):
            self.silence(limited, 25)
            limited.controller.silent_s = 0.0
        limited.passes(1)
        assert limited.in_force(1)[1] == 2.0

    def test_an_agent_that_is_killed_again_and_again_does_not_prolong_it(self, limited: SharedNode) -> None:
        for _ in range(4):
            self.silence(limited, 15)
            limited.restart()
            limited.controller.silent_s = float("inf")  # a new process has heard nothing
        assert limited.in_force(1)[1] == 4.0

    def test_a_new_agent_keeps_limits_that_were_told_a_moment_ago(self, limited: SharedNode) -> None:
        limited.controller.silent_s = float("inf")
        limited.restart()
        assert limited.in_force(1)[1] == 2.0

    def test_an_agent_that_is_stopped_leaves_no_limit_below_what_was_asked_for(self, limited: SharedNode) -> None:
        limited.agent.stop()
        assert limited.in_force(1) == (str(4 * A_CPU[limited.version]), 4.0)
        limited.restart()
        assert limited.in_force(1)[1] == 2.0


class TestRestarts:
    def test_a_new_agent_takes_up_what_is_to_be_in_force(self, node: SharedNode) -> None:
        node.begins(1)
        node.told(Change(RunId(1), 1, cpus=4, cpu_share=0.5))
        for name, text in AT_FIRST[node.version].items():
            if name.startswith("cpu."):
                (node.cgroup(1) / name).write_text(text)
        node.restart()
        assert node.in_force(1) == (str(4 * A_CPU[node.version]), 2.0)
        assert node.there()[1] == (4, 0.5)

    @pytest.mark.parametrize("after", [Change(RunId(1), 2, cpus=4, cpu_share=0.25), Change(RunId(1), 2)])
    def test_killed_before_each_change_the_next_one_does_what_was_told(
        self, version: int, after: Change, tmp_path: Path
    ) -> None:
        """Also where the scheduler stops to share while the agent is dead."""
        for change in count():
            node = SharedNode(tmp_path / str(change), version)
            node.begins(1)
            node.kill_in(change)
            node.told(Change(RunId(1), 1, cpus=8, cpu_share=0.5))
            was_killed = not node.is_up
            if not was_killed:
                node.kill_in(change)
                node.told(after)
            node.told(after)  # to each new connection
            assert node.there()[1] == (after.cpus, after.cpu_share if after.cpus else 1.0)
            if after.cpus:
                assert node.in_force(1) == (str(4 * A_CPU[version]), 1.0)
            elif node.cgroup(1).is_dir():
                assert node.in_force(1) == (AT_FIRST_WEIGHT[version], None)
            if not was_killed:
                break
        assert change >= 2, "the weight and the limit at least"

    def test_a_state_of_an_agent_that_knew_no_cpus_is_read(self, node: SharedNode) -> None:
        node.begins(1)
        node.passes(11)
        path = node.state / "jobs.json"
        state = json.loads(path.read_text())
        del state["heard_s"]
        for name in ("cpus", "was_weighed"):
            del state["runs"][0][name]
        path.write_text(json.dumps(state))
        said: list[str] = []
        assert StateFile(node.state, said.append).load().runs.of(1) is not None
        assert said == []


def test_an_agent_that_observes_sets_nothing_and_says_so(version: int, tmp_path: Path) -> None:
    node = SharedNode(tmp_path, version, observes=True)
    node.begins(1)
    node.told(Change(RunId(1), 1, cpus=8, cpu_share=0.25))
    node.passes(12)
    assert node.there()[1] == (0, 1.0)
    if version == 2:
        assert node.in_force(1) == ("100", None)


def test_what_the_kernel_refuses_is_said_once_tried_again_and_not_told_as_in_force(tmp_path: Path) -> None:
    node = SharedNode(tmp_path, 2)
    node.begins(1)
    (node.cgroup(1) / "cpu.max").unlink()
    node.told(Change(RunId(1), 1, cpus=8, cpu_share=0.25))
    node.passes(25)
    lines = [line for line in node.said if "mon_groups" not in line]  # which the plain tree does not have
    assert len(lines) == 1
    assert lines[0].startswith("job 1: its CPU share of 0.25 is not in force: ")
    assert node.there()[1] == (0, 1.0)
    (node.cgroup(1) / "cpu.max").write_text("max 100000\n")
    node.passes(11)
    assert node.controller_knows()[1] == (8, 0.25)
    (node.cgroup(1) / "cpu.max").unlink()
    node.passes(11)
    assert node.controller_knows()[1] == (0, 1.0), "nobody knows what it has now"


def test_a_job_whose_cpuset_is_smaller_than_that_of_all_jobs_is_confined(tmp_path: Path) -> None:
    node = SharedNode(tmp_path, 2)
    (tmp_path / "proc").mkdir()
    tasks = SlurmTasks(node.cgroups, Processes(tmp_path / "proc"), node.said.append)
    for job, cpus in ((1, "0-1"), (2, "0-7"), (3, None)):
        node.begins(job)
        (node.slurms(job).parent / "cpuset.cpus.effective").write_text("0-7\n")
        if cpus:
            (node.slurms(job) / "cpuset.cpus.effective").write_text(f"{cpus}\n")
    assert {job: each.is_confined for job, each in tasks.of([1, 2, 3]).items()} == {1: True, 2: False, 3: False}


#: The kernel's own hierarchies of cgroup v1: the one that has CPU time, and one in which Slurm makes cgroups of jobs.
KERNEL, SLURMS = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup/freezer")


class KernelJobs:
    """Busy processes in cgroups of jobs, all on one CPU, where they have only what their weights give them."""

    def __init__(self) -> None:
        self.node, self.cpu = f"snstest{os.getpid()}", min(os.sched_getaffinity(0))
        self._processes: dict[int, list[subprocess.Popen[bytes]]] = {}
        self._cgroups: dict[int, Path] = {}

    def step_begins(self, job: int, user: int) -> None:
        """A step begins, with one busy process."""
        cgroup = SLURMS / f"slurm_{self.node}" / f"uid_{user}" / f"job_{job}"
        cgroup.mkdir(parents=True, exist_ok=True)
        busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        os.sched_setaffinity(busy.pid, {self.cpu})
        (cgroup / "cgroup.procs").write_text(str(busy.pid))
        self._processes.setdefault(job, []).append(busy)
        self._cgroups[job] = cgroup

    def parts(self, seconds: float = 2.0) -> Mapping[int, float]:
        """The part of all jobs' CPU time that each of them gets."""
        before = self._used_ns()
        time.sleep(seconds)
        used = {job: after - before[job] for job, after in self._used_ns().items()}
        return {job: each / sum(used.values()) for job, each in used.items()}

    def end(self, job: int) -> None:
        """The job's processes end, and Slurm removes its cgroup."""
        for process in self._processes.pop(job):
            process.kill()
            process.wait()
        cgroup = self._cgroups.pop(job)
        while (cgroup / "tasks").read_text():
            time.sleep(0.01)
        for each in (cgroup, cgroup.parent, cgroup.parent.parent):
            with suppress(OSError):  # another job's is below it
                each.rmdir()

    def end_all(self) -> None:
        for job in list(self._processes):
            self.end(job)

    def _used_ns(self) -> Mapping[int, int]:
        return {
            job: sum(int(Path(f"/proc/{each.pid}/schedstat").read_text().split()[0]) for each in processes)
            for job, processes in self._processes.items()
        }


@pytest.fixture
def kernel_jobs() -> Iterator[KernelJobs]:
    if not all(os.access(each / "cgroup.procs", os.W_OK) for each in (KERNEL, SLURMS)):
        pytest.skip("cpu and freezer of cgroup v1 cannot be written")
    jobs = KernelJobs()
    yield jobs
    jobs.end_all()
    CpuShares(Cgroups(KERNEL.parent, jobs.node), print).bring_about((), caps=True, anew=True)
    assert not (KERNEL / f"slurm_{jobs.node}").exists(), "nothing of ours is left"


@pytest.mark.long
def test_busy_jobs_of_several_users_get_cpu_time_in_proportion_to_what_they_asked_for(kernel_jobs: KernelJobs) -> None:
    said: list[str] = []
    shares = CpuShares(Cgroups(KERNEL.parent, kernel_jobs.node), said.append)
    for job, user in ((1, 0), (2, 0), (3, 1)):
        kernel_jobs.step_begins(job, user)
    runs = [RunHere(RunId(job), job, 0.0, cpus=cpus, was_weighed=True) for job, cpus in ((1, 3), (2, 1), (3, 1))]
    shares.bring_about(runs, caps=True, anew=True)
    assert kernel_jobs.parts() == pytest.approx({1: 0.6, 2: 0.2, 3: 0.2}, abs=0.05)
    kernel_jobs.step_begins(3, 1)
    kernel_jobs.end(2)
    shares.bring_about([runs[0], runs[2]], caps=True, anew=True)
    assert kernel_jobs.parts() == pytest.approx({1: 0.75, 3: 0.25}, abs=0.05), "with a thread more than it asked for"
    assert said == []


JOB = st.sampled_from(sorted(USERS))
EVENT = st.one_of(
    st.tuples(st.just("begins"), JOB),
    st.tuples(st.just("ends"), JOB),
    st.tuples(st.just("told"), JOB, st.integers(1, 64), st.sampled_from((1.0, 0.5, 0.125))),
    st.tuples(st.just("step"), JOB),
    st.tuples(st.just("time"), st.sampled_from((1, 11))),
    st.tuples(st.just("silence"), st.sampled_from((0.0, 59.0, 100.0))),
    st.tuples(st.just("restart")),
    st.tuples(st.just("killed"), st.integers(0, 9)),
)


@pytest.mark.long
@given(st.lists(EVENT, max_size=25), st.sampled_from((1, 2)))
@settings(max_examples=40)
def test_after_any_story_weights_are_in_proportion_to_needs_and_limits_are_shares_of_them(
    story: list[tuple], version: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        node = SharedNode(Path(directory), version)
        revisions, told, running = count(1), dict[int, Change](), dict[int, int]()
        does: dict[str, Callable[..., None]] = {
            "time": node.passes,
            "restart": node.restart,
            "killed": node.kill_in,
            "silence": lambda seconds: setattr(node.controller, "silent_s", seconds),
        }
        starts = count()
        for kind, *given in story:
            if kind in does:
                does[kind](*given)
                continue
            job = given[0]
            if kind == "begins" and job not in running:
                running[job] = next(starts)
                node.begins(job, running[job])
            elif kind == "ends" and job in running:
                node.ends(job, running.pop(job))
                told.pop(job, None)
            elif kind == "step" and job in running:
                node.steps_end(job)
                node.step_begins(job)
            elif kind == "told" and job in running:
                told[job] = Change(RunId(job, running[job]), next(revisions), cpus=given[1], cpu_share=given[2])
                node.told(told[job])
        # The scheduler tells until it hears that it is in force: also of runs whose prolog or epilog came to nobody.
        node.controller.silent_s = 0.0
        for job, restarts in running.items():
            node.event("prolog", RunId(job, restarts))
            told.setdefault(job, Change(RunId(job, restarts), next(revisions), cpus=1))
        node.passes(90)  # and those who ended without an epilog have vanished
        node.told(*told.values())
        node.passes(11)
        needs = {job: each.cpus for job, each in told.items()}
        assert node.parts() == pytest.approx({job: cpus / sum(needs.values()) for job, cpus in needs.items()})
        for job, change in told.items():
            assert node.in_force(job)[1] == pytest.approx(change.cpu_share * change.cpus)
            assert node.there()[job] == (change.cpus, change.cpu_share)
        assert not [line for line in node.said if "defect" in line]
