"""Which processes belong to a job: what descends from a slurmstepd of root, whatever they call themselves."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from slurm_sns.node.agent.cache_domains import CacheDomains
from slurm_sns.node.agent.tasks_of_job import Processes

#: Debian's user nobody.
NOBODY = 65534
#: It prints the id of a grandchild.
TREE = "bash -c 'sleep 600 & echo $!; wait'; true"


@contextmanager
def titled(title: str, script: str = TREE, **options: object) -> Iterator[tuple[int, int]]:
    """A process with this title: its id, and the number that its script prints."""
    process = subprocess.Popen(
        [title, "-c", script], executable="/bin/bash", stdout=subprocess.PIPE, start_new_session=True, **options
    )
    try:
        yield process.pid, int(process.stdout.readline())
    finally:
        os.killpg(process.pid, 9)
        process.communicate()


@pytest.fixture
def processes() -> Processes:
    """Those of this machine; ours are those that count."""
    return Processes(trusted=os.geteuid())


def test_what_descends_from_a_slurmstepd_is_its_jobs(processes: Processes) -> None:
    with titled("slurmstepd: [4194300.batch]") as (step, grandchild), titled("slurmstepd: [4194301.extern]") as other:
        found = processes.threads_of([4194300, 4194301, 4194302])
        assert {step, grandchild} <= set(found[4194300])
        assert set(other) <= set(found[4194301])
        assert not set(found[4194300]) & set(found[4194301])
        assert found[4194302] == ()
        assert {4194300, 4194301} <= set(processes.slurmstepds().values())


@pytest.mark.parametrize(
    "title",
    [
        "slurmstepd: [x.batch]",
        "slurmstepd:[4194300.batch]",
        " slurmstepd: [4194300.batch]",
        "slurmstepd: [41943000000000000.batch]",
        "slurmstepd: 4194300.batch",
        "slurmstepd spank prolog",
        "slurmstepd: [",
    ],
)
def test_another_title_is_no_slurmstepd(processes: Processes, title: str) -> None:
    with titled(title) as (process, _):
        assert process not in processes.slurmstepds()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become nobody")
def test_a_user_who_calls_a_process_slurmstepd_has_no_job(processes: Processes) -> None:
    with titled("slurmstepd: [4194300.batch]", user=NOBODY) as (process, child):
        assert process not in processes.slurmstepds()
        assert child not in processes.threads_of([4194300])[4194300]


def test_the_threads_of_a_process_are_all_there(processes: Processes) -> None:
    script = (
        f"exec -a 'slurmstepd: [4194300.0]' {sys.executable} -c "
        "'import threading, time; threading.Thread(target=time.sleep, args=(60,), daemon=True).start(); "
        "print(threading.active_count(), flush=True); time.sleep(60)'"
    )
    with titled("bash", script) as (process, count):
        assert len(processes.threads_of([4194300])[4194300]) == count == 2
        assert process in processes.threads_of([4194300])[4194300]


def test_a_process_that_ends_while_we_look_is_none(tmp_path: Path) -> None:
    (tmp_path / "77").symlink_to("/proc/999999999")
    (tmp_path / "self").symlink_to(f"/proc/{os.getpid()}")
    assert Processes(tmp_path).slurmstepds() == {}
    assert Processes(tmp_path).threads_of([1]) == {1: ()}


class TestCacheDomains:
    def cpu(self, root: Path, number: int, cache: int, siblings: str) -> None:
        directory = root / f"cpu{number}"
        (directory / "topology").mkdir(parents=True)
        (directory / "topology" / "thread_siblings_list").write_text(f"{siblings}\n")
        for index, (level, cache_id) in enumerate(((1, number), (1, number), (2, number), (3, cache))):
            (directory / "cache" / f"index{index}").mkdir(parents=True)
            (directory / "cache" / f"index{index}" / "level").write_text(f"{level}\n")
            (directory / "cache" / f"index{index}" / "id").write_text(f"{cache_id}\n")

    def test_cores_are_counted_by_the_cache_of_a_level(self, tmp_path: Path) -> None:
        for number in range(8):
            self.cpu(tmp_path, number, 0 if number % 4 < 2 else 4, f"{number % 4},{number % 4 + 4}")
        domains = CacheDomains(tmp_path)
        assert domains.cores([0, 1, 2], 3) == {0: 2, 4: 1}
        assert domains.cores([0, 4], 3) == {0: 1}, "two threads of one core"
        assert domains.cores([2, 3, 6, 7], 3) == {4: 2}
        assert domains.cores([2, 3, 6, 7], 2) == {6: 1, 7: 1}
        (tmp_path / "cpu8").mkdir()  # offline
        assert CacheDomains(tmp_path).cores(None, 3) == {0: 2, 4: 2}, "of the whole machine"

    def test_what_sysfs_does_not_say_of_all_cpus_is_not_known(self, tmp_path: Path) -> None:
        self.cpu(tmp_path, 0, 0, "0")
        assert CacheDomains(tmp_path).cores([0, 1], 3) == {}
        assert CacheDomains(tmp_path / "nowhere").cores([0], 3) == {}
        assert CacheDomains(tmp_path).cores([0], 4) == {}
