"""Slurm's cgroups on trees as it makes them; the kernel's own cgroups where this machine has cgroup v1."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Set
from pathlib import Path

import pytest
from cgroup_trees import KernelFiles, make_v1, make_v2
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_sns.node.cgroups import (
    JOB_WEIGHTS,
    LEAST_QUOTA_US,
    LONGEST_PERIOD_US,
    PERIOD_US,
    CgroupError,
    CgroupGone,
    Cgroups,
    CpuLimit,
    JobCgroup,
    limit_of,
    writes,
)

SLUID = "sEKNKTV3WPV500"
OTHER_SLUID = "s6DDM82WRV0R00"

#: The hierarchy of cgroup v1 that limits CPU time, and may be written.
KERNEL_V1 = Path("/sys/fs/cgroup/cpu")


def a_process(processes: Path, number: int, title: str) -> None:
    (processes / str(number)).mkdir(parents=True)
    (processes / str(number) / "cmdline").write_bytes(title.encode() + b"\0")


def found(cgroups: Cgroups, job_id: int) -> JobCgroup:
    job = cgroups.find(job_id)
    assert job is not None
    return job


class TestFinding:
    @pytest.mark.parametrize("scope", ["slurmstepd.scope", "c1_slurmstepd.scope"])
    def test_a_job_of_cgroup_v2_is_found_with_and_without_the_nodes_name(self, tmp_path: Path, scope: str) -> None:
        make_v2(tmp_path, "job_17", scope)
        assert found(Cgroups(tmp_path, "c1"), 17) == JobCgroup(2, ("system.slice", scope, "job_17"))

    def test_a_job_on_another_node_of_this_machine_is_not_found(self, tmp_path: Path) -> None:
        make_v2(tmp_path, "job_17", "c2_slurmstepd.scope")
        assert Cgroups(tmp_path, "c1").find(17) is None

    def test_a_job_whose_cgroup_has_its_sluid_is_found_by_the_title_of_its_slurmstepd(self, tmp_path: Path) -> None:
        for sluid, process, title in (
            (OTHER_SLUID, 40, "slurmstepd: [170.batch]"),
            (SLUID, 41, "slurmstepd: [17.0 stepmgr]"),
        ):
            directory = make_v2(tmp_path / "cgroup", sluid)
            (directory / "step_0" / "slurm" / "cgroup.procs").write_text(f"99\n{process}\n")  # 99 has ended
            a_process(tmp_path / "proc", process, title)
        cgroups = Cgroups(tmp_path / "cgroup", "c1", processes=tmp_path / "proc")
        assert found(cgroups, 17).names[-1] == SLUID
        assert found(cgroups, 170).names[-1] == OTHER_SLUID
        assert cgroups.find(1) is None

    def test_a_users_process_cannot_pass_for_the_slurmstepd_of_a_job(self, tmp_path: Path) -> None:
        directory = make_v2(tmp_path / "cgroup", SLUID)
        (directory / "step_0" / "user" / "task_0" / "cgroup.procs").write_text("41\n")
        a_process(tmp_path / "proc", 41, "slurmstepd: [17.0]")
        assert Cgroups(tmp_path / "cgroup", "c1", processes=tmp_path / "proc").find(17) is None

    @pytest.mark.parametrize("slurm", ["slurm", "slurm_c1"])
    @pytest.mark.parametrize("hierarchy", ["cpu,cpuacct", "cpuacct,cpu", "cpu"])
    def test_a_job_of_cgroup_v1_is_found_in_the_hierarchy_that_limits_cpu_time(
        self, tmp_path: Path, hierarchy: str, slurm: str
    ) -> None:
        make_v1(tmp_path, 17, "blkio", slurm)
        make_v1(tmp_path, 17, hierarchy, slurm)
        assert found(Cgroups(tmp_path, "c1"), 17) == JobCgroup(1, (hierarchy, slurm, "uid_1000", "job_17"))

    def test_the_links_that_systemd_makes_for_joint_hierarchies_are_not_searched(self, tmp_path: Path) -> None:
        make_v1(tmp_path, 17, "cpu,cpuacct")
        (tmp_path / "cpu").symlink_to("cpu,cpuacct")
        assert found(Cgroups(tmp_path, "c1"), 17).names[0] == "cpu,cpuacct"

    def test_a_job_that_only_other_hierarchies_have_is_found_but_cannot_be_limited(self, tmp_path: Path) -> None:
        make_v1(tmp_path, 17, "freezer")
        (tmp_path / "cpu").mkdir()
        cgroups = Cgroups(tmp_path, "c1")
        job = found(cgroups, 17)
        with pytest.raises(
            CgroupError,
            match=r"freezer/.*/job_17/cpu\.cfs_quota_us does not exist .* valid: a cgroup of our own in cpu",
        ):
            cgroups.set_share(job, 0.5, 1)

    def test_nothing_is_found_where_slurm_has_made_nothing(self, tmp_path: Path) -> None:
        assert Cgroups(tmp_path, "c1").find(17) is None
        (tmp_path / "cgroup.controllers").touch()
        assert Cgroups(tmp_path, "c1").find(17) is None

    @pytest.mark.parametrize("node", ["../c1", "", "..", "/a"])
    def test_a_name_that_leads_elsewhere_is_refused(self, tmp_path: Path, node: str) -> None:
        with pytest.raises(CgroupError, match="cannot be a part of a cgroup's path; valid"):
            Cgroups(tmp_path, node)

    def test_a_root_that_is_missing_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(CgroupError, match=r"the cgroup root .*/none cannot be read: No such file"):
            Cgroups(tmp_path / "none", "c1").find(17)


class TestLimits:
    @pytest.mark.parametrize(
        ("share", "cores", "limit"),
        [
            (1, 8, CpuLimit(800_000, 100_000)),
            (0.25, 8, CpuLimit(200_000, 100_000)),
            (0.01, 1, CpuLimit(1_000, 100_000)),
            (0.005, 1, CpuLimit(1_000, 200_000)),
            (0.002, 1, CpuLimit(1_000, 500_000)),
            (0.001, 1, CpuLimit(1_000, 1_000_000)),
            (0.0001, 64, CpuLimit(1_000, 156_250)),
        ],
    )
    def test_a_small_share_needs_a_longer_period(self, share: float, cores: int, limit: CpuLimit) -> None:
        assert limit_of(share, cores) == limit

    @given(st.floats(0.001, 1), st.integers(1, 1024))
    def test_every_limit_is_one_that_the_kernel_takes_and_within_a_thousandth_of_the_share(
        self, share: float, cores: int
    ) -> None:
        limit = limit_of(share, cores)
        assert limit.quota_us is not None
        assert limit.quota_us >= LEAST_QUOTA_US
        assert PERIOD_US <= limit.period_us <= LONGEST_PERIOD_US
        assert limit.cpus == pytest.approx(share * cores, rel=1e-3)

    @pytest.mark.parametrize(("share", "cores"), [(0, 1), (-0.5, 1), (1.5, 1), (float("nan"), 1), (0.5, 0)])
    def test_what_is_no_share_is_refused(self, share: float, cores: int) -> None:
        with pytest.raises(CgroupError, match="valid: above 0, at most 1; 1 CPU or more"):
            limit_of(share, cores)

    def test_a_share_below_the_kernels_least_limit_is_refused(self) -> None:
        with pytest.raises(CgroupError, match=r"a share of 0.0004 of 2 CPUs is 0.0008 CPUs; .* least limit is 0.001"):
            limit_of(0.0004, 2)

    def test_a_share_is_set_read_back_and_lifted_on_cgroup_v2(self, tmp_path: Path) -> None:
        directory = make_v2(tmp_path, "job_17")
        cgroups = Cgroups(tmp_path, "c1")
        job = found(cgroups, 17)
        assert cgroups.limit(job) == CpuLimit(None, 100_000)
        assert cgroups.set_share(job, 0.25, 2)
        assert (directory / "cpu.max").read_text() == "50000 100000\n"
        assert cgroups.limit(job) == CpuLimit(50_000, 100_000)
        assert cgroups.lift(job)
        assert (directory / "cpu.max").read_text() == "max 100000\n"

    def test_a_share_is_set_read_back_and_lifted_on_cgroup_v1(self, tmp_path: Path) -> None:
        directory = make_v1(tmp_path, 17)
        cgroups = Cgroups(tmp_path, "c1")
        job = found(cgroups, 17)
        assert cgroups.set_share(job, 0.005, 1)
        assert (directory / "cpu.cfs_quota_us").read_text() == "1000\n"
        assert (directory / "cpu.cfs_period_us").read_text() == "200000\n"
        assert cgroups.limit(job) == CpuLimit(1_000, 200_000)
        assert cgroups.lift(job)
        assert cgroups.limit(job) == CpuLimit(None, 100_000)

    @pytest.mark.parametrize("kept", ["50000 100000", "100000 200000"])
    def test_a_limit_that_is_set_is_not_written_again_for_each_write_gives_a_new_quota(
        self, tmp_path: Path, kept: str
    ) -> None:
        directory = make_v2(tmp_path, "job_17", limit=kept)  # the second: doubled by the kernel
        cgroups = Cgroups(tmp_path, "c1")
        assert cgroups.set_share(found(cgroups, 17), 0.5, 1)
        assert (directory / "cpu.max").read_text() == f"{kept}\n"

    @given(*[st.builds(CpuLimit, st.none() | st.integers(1_000, 64_000_000), st.integers(1_000, 1_000_000))] * 2)
    def test_between_the_two_writes_of_cgroup_v1_no_job_has_more_than_before_or_after(
        self, before: CpuLimit, after: CpuLimit
    ) -> None:
        files = {"cpu.cfs_quota_us": before.quota_us, "cpu.cfs_period_us": before.period_us}
        seen = []
        for file, text in writes(1, before, after):
            files[file] = None if text == "-1" else int(text)
            period_us = files["cpu.cfs_period_us"]
            assert period_us is not None
            seen.append(CpuLimit(files["cpu.cfs_quota_us"], period_us))
        unlimited = float("inf")
        most = max(unlimited if limit.cpus is None else limit.cpus for limit in (before, after))
        assert all((unlimited if limit.cpus is None else limit.cpus) <= most for limit in seen)
        assert seen[-1] == after

    def test_without_the_cpu_controller_the_error_says_what_would_be_valid(self, tmp_path: Path) -> None:
        (make_v2(tmp_path, "job_17") / "cpu.max").unlink()
        cgroups = Cgroups(tmp_path, "c1")
        with pytest.raises(CgroupError, match=r"job_17/cpu.max does not exist .* valid: the controller cpu") as error:
            cgroups.set_share(found(cgroups, 17), 0.5, 1)
        assert "\n" not in str(error.value)


class TestWeights:
    """In proportion to the CPUs that jobs asked for."""

    @given(st.integers(1, 1000), st.integers(1, 1000))
    def test_jobs_weigh_in_proportion_to_their_cpus_on_both_versions(self, one: int, other: int) -> None:
        for weights in JOB_WEIGHTS.values():
            assert int(weights.text(one)) * other == int(weights.text(other)) * one

    def test_a_weight_is_set_and_taken_back_on_cgroup_v2(self, tmp_path: Path) -> None:
        directory = make_v2(tmp_path, "job_17")
        cgroups = Cgroups(tmp_path, "c1", files=KernelFiles(tmp_path))
        for cpus, weight in ((1, 10), (128, 1280), (1000, 10_000), (65_536, 10_000), (0, 100)):
            assert cgroups.set_weight(found(cgroups, 17), cpus)
            assert int((directory / "cpu.weight").read_text()) == weight
        cgroups.weigh_users({17: 4})  # there is nothing above the jobs

    def test_without_the_cpu_controller_the_error_says_what_would_be_valid(self, tmp_path: Path) -> None:
        (make_v2(tmp_path, "job_17") / "cpu.weight").unlink()
        cgroups = Cgroups(tmp_path, "c1")
        with pytest.raises(CgroupError, match=r"job_17/cpu.weight does not exist .* valid: the controller cpu"):
            cgroups.set_weight(found(cgroups, 17), 4)

    @pytest.mark.parametrize("make", [lambda root: make_v2(root, "job_17"), lambda root: make_v1(root, 17)])
    def test_a_cgroup_that_has_vanished_is_no_error(self, tmp_path: Path, make: Callable[[Path], Path]) -> None:
        directory = make(tmp_path)
        cgroups = Cgroups(tmp_path, "c1")
        job = found(cgroups, 17)
        shutil.rmtree(directory)
        assert not cgroups.set_weight(job, 4)
        cgroups.weigh_users({})

    @given(
        st.dictionaries(st.integers(1, 9), st.tuples(st.integers(1, 64), st.integers(1000, 1002)), max_size=9),
        st.frozensets(st.integers(1, 9)),
        st.sampled_from(["cpu", "cpu,cpuacct"]),
    )
    @settings(max_examples=30)
    def test_on_cgroup_v1_users_weigh_as_all_their_jobs_do(
        self, jobs: Mapping[int, tuple[int, int]], ended: Set[int], hierarchy: str
    ) -> None:
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            (root / "cpu").mkdir()
            cgroups = Cgroups(root, "c1", files=KernelFiles(root))
            if hierarchy != "cpu":
                (root / "cpu").rename(root / hierarchy)
            for job, (cpus, user) in jobs.items():
                make_v1(root, job, "freezer" if hierarchy == "cpu" else hierarchy, "slurm_c1", user)
                cgroup = cgroups.provide(job)
                assert cgroup is not None
                assert cgroups.set_weight(cgroup, cpus)
            for job in ended & jobs.keys():
                shutil.rmtree(next(root.glob(f"*/slurm_c1/*/job_{job}/step_batch")).parent)
                cgroups.remove(job)
            left = {job: of for job, of in jobs.items() if job not in ended}
            cgroups.weigh_users({job: cpus for job, (cpus, _) in left.items()})
            parts = [
                part_of(root / hierarchy / "slurm_c1" / f"uid_{user}" / f"job_{job}") for job, (_, user) in left.items()
            ]
            needs = [cpus for cpus, _ in left.values()]
            assert parts == pytest.approx([cpus / sum(needs) for cpus in needs])

    def test_a_job_that_nobody_has_weighed_counts_for_its_user_as_one_cpu(self, tmp_path: Path) -> None:
        for job in (1, 2):
            make_v1(tmp_path, job)
        Cgroups(tmp_path, "c1").weigh_users({1: 3})
        assert (tmp_path / "cpu,cpuacct/slurm/uid_1000/cpu.shares").read_text() == f"{16 * 4}\n"

    def test_jobs_in_cgroups_of_our_own_weigh_a_thread_outside_for_each_cpu(self, tmp_path: Path) -> None:
        (tmp_path / "cpu").mkdir()
        cgroups = Cgroups(tmp_path, "c1", files=KernelFiles(tmp_path))
        for job, user in ((1, 1000), (2, 1001)):
            make_v1(tmp_path, job, "freezer", "slurm_c1", user)
            cgroups.provide(job)
        for cpus, shares in ((4, 8 * 1024), (1000, 1 << 18)):
            cgroups.weigh_users({1: cpus, 2: cpus})
            assert (tmp_path / "cpu/slurm_c1/cpu.shares").read_text() == f"{shares}\n"


def part_of(cgroup: Path) -> float:
    """The part of all jobs' CPU time that the cgroup's weights give a job on cgroup v1, where all are busy."""
    part = 1.0
    for each in (cgroup, cgroup.parent):
        siblings = [path for path in each.parent.iterdir() if path.name.startswith("job_") or any(path.glob("job_*"))]
        part *= weight_of(each) / sum(map(weight_of, siblings))
    return part


def weight_of(cgroup: Path) -> int:
    return int((cgroup / "cpu.shares").read_text())


class TestVanishing:
    @pytest.mark.parametrize("make", [lambda root: make_v2(root, "job_17"), lambda root: make_v1(root, 17)])
    def test_a_cgroup_that_has_vanished_is_no_error(self, tmp_path: Path, make: Callable[[Path], Path]) -> None:
        directory = make(tmp_path)
        cgroups = Cgroups(tmp_path, "c1")
        job = found(cgroups, 17)
        shutil.rmtree(directory)
        with pytest.raises(CgroupGone):
            cgroups.limit(job)
        assert not cgroups.set_share(job, 0.5, 1)
        assert not cgroups.lift(job)
        assert cgroups.threads(job) == ()
        assert cgroups.cpus(job) == ()
        assert cgroups.find(17) is None


class TestLinks:
    def test_a_job_that_is_a_link_out_of_the_root_is_refused(self, tmp_path: Path) -> None:
        outside = make_v2(tmp_path / "outside", "job_17")
        directory = make_v2(tmp_path / "cgroup", "job_17")
        cgroups = Cgroups(tmp_path / "cgroup", "c1")
        job = found(cgroups, 17)
        shutil.rmtree(directory)
        directory.symlink_to(outside)
        for use in (cgroups.limit, cgroups.lift, cgroups.threads, lambda job: cgroups.set_share(job, 0.5, 1)):
            with pytest.raises(CgroupError, match="a symbolic link or a file; it is not used"):
                use(job)
        assert (outside / "cpu.max").read_text() == "max 100000\n"

    def test_a_limit_that_is_a_link_is_neither_read_nor_written(self, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        outside.write_text("max 100000\n")
        directory = make_v2(tmp_path / "cgroup", "job_17")
        (directory / "cpu.max").unlink()
        (directory / "cpu.max").symlink_to(outside)
        cgroups = Cgroups(tmp_path / "cgroup", "c1")
        with pytest.raises(CgroupError, match="a symbolic link or a file"):
            cgroups.set_share(found(cgroups, 17), 0.5, 1)
        assert outside.read_text() == "max 100000\n"

    def test_threads_behind_a_link_are_not_listed(self, tmp_path: Path) -> None:
        outside = make_v2(tmp_path / "outside", "job_1")
        (outside / "cgroup.threads").write_text("1\n")
        directory = make_v2(tmp_path / "cgroup", "job_17")
        (directory / "linked").symlink_to(outside)
        cgroups = Cgroups(tmp_path / "cgroup", "c1")
        assert cgroups.threads(found(cgroups, 17)) == ()

    def test_the_root_itself_may_be_a_link(self, tmp_path: Path) -> None:
        make_v2(tmp_path / "cgroup", "job_17")
        (tmp_path / "linked").symlink_to(tmp_path / "cgroup")
        assert Cgroups(tmp_path / "linked", "c1").find(17) is not None


class TestThreadsAndCpus:
    def test_the_threads_of_all_steps_are_listed(self, tmp_path: Path) -> None:
        directory = make_v2(tmp_path, "job_17")
        (directory / "step_0" / "slurm" / "cgroup.threads").write_text("30\n31\n")
        (directory / "step_0" / "user" / "task_0" / "cgroup.threads").write_text("12\n11\n")
        cgroups = Cgroups(tmp_path, "c1")
        assert cgroups.threads(found(cgroups, 17)) == (11, 12, 30, 31)

    def test_the_threads_of_cgroup_v1_are_listed(self, tmp_path: Path) -> None:
        directory = make_v1(tmp_path, 17)
        (directory / "step_batch" / "task_0" / "tasks").write_text("7\n8\n")
        cgroups = Cgroups(tmp_path, "c1")
        assert cgroups.threads(found(cgroups, 17)) == (7, 8)

    def test_the_cpus_of_a_job_are_those_of_its_cpuset(self, tmp_path: Path) -> None:
        (make_v2(tmp_path / "v2", "job_17") / "cpuset.cpus.effective").write_text("0-2,8\n")
        make_v1(tmp_path / "v1", 17)
        (make_v1(tmp_path / "v1", 17, "cpuset") / "cpuset.cpus").write_text("4,6-7\n")
        for version, cpus in (("v2", (0, 1, 2, 8)), ("v1", (4, 6, 7))):
            cgroups = Cgroups(tmp_path / version, "c1")
            assert cgroups.cpus(found(cgroups, 17)) == cpus

    def test_a_job_without_cpuset_has_no_cpus_of_its_own(self, tmp_path: Path) -> None:
        make_v2(tmp_path, "job_17")
        cgroups = Cgroups(tmp_path, "c1")
        assert cgroups.cpus(found(cgroups, 17)) == ()
        assert cgroups.cpus_of_all(found(cgroups, 17)) == ()

    def test_the_cpus_of_all_jobs_are_those_of_the_cgroup_above_users_and_jobs(self, tmp_path: Path) -> None:
        scope = make_v2(tmp_path / "v2", "job_17").parent
        (scope / "cpuset.cpus.effective").write_text("0-15\n")
        make_v1(tmp_path / "v1", 17)
        user = make_v1(tmp_path / "v1", 17, "cpuset").parent
        (user / "cpuset.cpus").write_text("0-3\n")
        (user.parent / "cpuset.cpus").write_text("0-15\n")
        for version in ("v1", "v2"):
            cgroups = Cgroups(tmp_path / version, "c1")
            assert cgroups.cpus_of_all(found(cgroups, 17)) == tuple(range(16))

    def test_only_cgroup_v2_has_a_directory_for_perf_events(self, tmp_path: Path) -> None:
        directory = make_v2(tmp_path, "job_17")
        cgroups = Cgroups(tmp_path, "c1")
        assert cgroups.directory(found(cgroups, 17)) == directory
        assert cgroups.directory(JobCgroup(1, ("cpu", "slurm", "uid_0", "job_17"))) is None


@pytest.fixture
def kernel_job() -> Iterator[Path]:
    """The cgroup of job 17 of the node snstestPID, in the kernel's own hierarchy."""
    if not (os.access(KERNEL_V1 / "cgroup.procs", os.W_OK) and (KERNEL_V1 / "cpu.cfs_quota_us").exists()):
        pytest.skip(f"{KERNEL_V1} cannot be written, or it is no cgroup v1 hierarchy with CFS quotas")
    directory = KERNEL_V1 / f"slurm_snstest{os.getpid()}" / "uid_0" / "job_17"
    directory.mkdir(parents=True)
    yield directory
    for cgroup in (directory, directory.parent, directory.parent.parent):
        if cgroup.is_dir():
            cgroup.rmdir()


class TestOnTheKernel:
    def cgroups(self) -> Cgroups:
        return Cgroups(KERNEL_V1.parent, f"snstest{os.getpid()}")

    def test_the_kernel_takes_every_limit_and_gives_it_back(self, kernel_job: Path) -> None:
        assert kernel_job.is_dir()
        cgroups = self.cgroups()
        job = found(cgroups, 17)
        for share, cores in ((1, 64), (0.5, 1), (0.01, 1), (0.001, 1), (0.3, 7), (0.0017, 1)):
            assert cgroups.set_share(job, share, cores)
            assert cgroups.limit(job) == limit_of(share, cores)
        assert cgroups.lift(job)
        assert cgroups.limit(job) == CpuLimit(None, 100_000)

    @pytest.mark.long
    def test_a_busy_job_gets_its_share_of_a_core_and_no_more(self, kernel_job: Path) -> None:
        cgroups = self.cgroups()
        job = found(cgroups, 17)
        cgroups.set_share(job, 0.2, 1)
        program = (
            "import time\ninput()\nused, began = time.process_time(), time.monotonic()\n"
            "while time.monotonic() < began + 1.5: pass\nprint(time.process_time() - used, time.monotonic() - began)"
        )
        pipe = subprocess.PIPE
        with subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe, text=True) as busy:
            (kernel_job / "cgroup.procs").write_text(str(busy.pid))
            assert busy.pid in cgroups.threads(job)
            used_s, took_s = map(float, busy.communicate("\n")[0].split())
        # The first period begins with a full quota, and a tick of 4 ms may be run over the quota.
        assert used_s <= 0.2 * took_s + 0.12

    def test_a_refusal_of_the_kernel_is_an_error_in_one_line(self, kernel_job: Path) -> None:
        (kernel_job.parent / "cpu.cfs_quota_us").write_text("10000")  # cgroup v1: no child has more than its parent
        with pytest.raises(CgroupError, match=r"^the kernel refuses '50000' in cpu/.*/job_17/cpu.cfs_quota_us$"):
            self.cgroups().set_share(found(self.cgroups(), 17), 0.5, 1)

    def test_a_cgroup_of_the_kernel_that_vanishes_is_no_error(self, kernel_job: Path) -> None:
        cgroups = self.cgroups()
        job = found(cgroups, 17)
        kernel_job.rmdir()
        with pytest.raises(CgroupGone):
            cgroups.limit(job)
        assert not cgroups.set_share(job, 0.5, 1)
        assert cgroups.threads(job) == ()


#: A hierarchy in which Slurm makes cgroups of jobs, beside that for CPU time.
KERNEL_FREEZER = KERNEL_V1.with_name("freezer")


class TestOnesOfOurOwn:
    """Slurm makes no cgroup of a job in cpu where that is a hierarchy apart."""

    def test_a_job_without_a_cgroup_in_cpu_gets_one_there_and_loses_it_at_its_end(self, tmp_path: Path) -> None:
        slurms = make_v1(tmp_path, 5, "freezer", "slurm_n1")
        (tmp_path / "cpu").mkdir()
        cgroups = Cgroups(tmp_path, "n1")
        own = cgroups.provide(5)
        assert own == JobCgroup(1, ("cpu", "slurm_n1", "uid_1000", "job_5"))
        shutil.rmtree(slurms)
        assert cgroups.provide(5) is None
        assert cgroups.remove(5)
        assert list((tmp_path / "cpu").iterdir()) == []
        assert not cgroups.remove(5)

    def test_another_jobs_cgroup_stays(self, tmp_path: Path) -> None:
        (tmp_path / "cpu").mkdir()
        for job in (5, 6):
            make_v1(tmp_path, job, "freezer", "slurm_n1")
            Cgroups(tmp_path, "n1").provide(job)
        assert Cgroups(tmp_path, "n1").remove(5)
        assert [path.name for path in (tmp_path / "cpu").glob("*/*/*")] == ["job_6"]

    @pytest.mark.parametrize("make", [make_v2, make_v1])
    def test_where_slurms_cgroup_limits_cpu_time_it_is_that(self, tmp_path: Path, make: Callable) -> None:
        directory = make(tmp_path, "job_5" if make is make_v2 else 5)
        cgroups = Cgroups(tmp_path, "n1")
        provided = cgroups.provide(5)
        assert provided == cgroups.find(5)
        assert provided is not None
        assert tmp_path.joinpath(*provided.names) == directory
        assert not cgroups.remove(5)

    def test_on_the_kernel_a_real_time_thread_stays_outside_and_keeps_no_other_one_there(self) -> None:
        node = f"snstest{os.getpid()}"
        slurms = KERNEL_FREEZER / f"slurm_{node}" / "uid_0" / "job_19"
        if not (os.access(KERNEL_V1 / "cgroup.procs", os.W_OK) and (KERNEL_V1 / "cpu.rt_runtime_us").exists()):
            pytest.skip("cpu of cgroup v1 cannot be written, or its cgroups take real-time threads")
        slurms.mkdir(parents=True)
        cgroups = Cgroups(KERNEL_V1.parent, node)
        jobs = [subprocess.Popen(["sleep", "60"]) for _ in range(3)]
        try:
            for job in jobs:
                (slurms / "cgroup.procs").write_text(str(job.pid))
            os.sched_setscheduler(jobs[0].pid, os.SCHED_FIFO, os.sched_param(1))
            own = cgroups.provide(19)
            assert own is not None
            assert cgroups.threads(own) == tuple(sorted(job.pid for job in jobs[1:]))
        finally:
            for job in jobs:
                job.kill()
                job.wait()
            while (slurms / "tasks").read_text():
                time.sleep(0.01)
            cgroups.remove(19)
            for cgroup in (slurms, slurms.parent, slurms.parent.parent):
                cgroup.rmdir()

    def test_on_the_kernel_the_jobs_threads_are_limited_and_their_children_too(self) -> None:
        if not all(os.access(each / "cgroup.procs", os.W_OK) for each in (KERNEL_V1, KERNEL_FREEZER)):
            pytest.skip("cpu and freezer of cgroup v1 cannot be written")
        node = f"snstest{os.getpid()}"
        slurms = KERNEL_FREEZER / f"slurm_{node}" / "uid_0" / "job_18"
        slurms.mkdir(parents=True)
        cgroups = Cgroups(KERNEL_V1.parent, node)
        job = subprocess.Popen(["sh", "-c", "read line; sleep 60 & sleep 60"], stdin=subprocess.PIPE)
        try:
            (slurms / "tasks").write_text(str(job.pid))
            own = cgroups.provide(18)
            assert own is not None
            assert cgroups.set_share(own, 0.25, 2)
            assert cgroups.limit(own) == limit_of(0.25, 2)
            assert job.stdin is not None
            job.stdin.write(b"go\n")
            job.stdin.close()
            job.stdin = None
            deadline = time.monotonic() + 10
            while len(cgroups.threads(own)) < 3 and time.monotonic() < deadline:
                time.sleep(0.01)
            assert len(cgroups.threads(own)) == 3, "the shell and its two children"
            with pytest.raises(CgroupError, match="busy"):
                cgroups.remove(18)
            assert cgroups.lift(own)
            assert cgroups.limit(own) == CpuLimit(None, 100_000)
        finally:
            for thread in (slurms / "tasks").read_text().split():
                os.kill(int(thread), signal.SIGKILL)
            job.communicate()
            while (slurms / "tasks").read_text():
                time.sleep(0.01)
            removed = cgroups.remove(18)
            for cgroup in (slurms, slurms.parent, slurms.parent.parent):
                cgroup.rmdir()
        assert removed
        assert not (KERNEL_V1 / f"slurm_{node}").exists()
