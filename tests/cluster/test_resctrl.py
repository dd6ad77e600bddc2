"""Caches and bandwidth on a node of the cluster. Its resctrl is emulated; jobs and processes are Slurm's."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import pytest

from cluster import PYTHON, Cluster

#: The node of the tests, and where its processes of our agent are put.
NODE, PLACE = "c1", "/tmp/resctrl"
ROOT = "/sys/fs/resctrl"
AGENT = Path(__file__).parents[1] / "node"
#: Without slurm_sns: Slurm starts them at once, where they are to run.
OPTIONS = f"-p plain -w {NODE} -n1 --mem=100"
CLEAN_UP = (
    "from pathlib import Path; from slurm_sns.node.resctrl.groups import Groups; "
    f"print(*Groups(Path('{ROOT}')).remove_all())"
)
#: Ways and GB/s of each job.
WAYS, GBPS = 1, 2


class Node:
    """The node with our agent."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def run(self, command: str) -> str:
        return self._cluster.run(command, node=NODE)

    def processes(self, jobs: Sequence[int]) -> dict[int, list[int]]:
        """The processes of each of these jobs that is there, as Slurm knows them."""
        # One by one: of all together it fails when another test has killed a slurmstepd.
        asked = "; ".join(f"scontrol listpids {job} | tail -n +2" for job in jobs)
        found: dict[int, list[int]] = {}
        for line in self.run(asked).splitlines():
            process, job, *_ = line.split()
            if int(process) > 0:  # -1 is a step that has no task, such as that of PrologFlags=Contain
                found.setdefault(int(job), []).append(int(process))
        return found

    def apply(self, threads: Mapping[int, Sequence[int]], killed_before: int | None = None) -> int:
        """An agent brings these jobs into force; the result is the exit code of its process."""
        jobs = [(job, WAYS, GBPS) for job in sorted(threads)]
        asked = json.dumps({"jobs": jobs, "threads": threads, "killed_before": killed_before})
        agent = f"{PYTHON} {PLACE}/applying_agent.py {ROOT}"
        return int(self.run(f"echo {shlex.quote(asked)} | {agent}"))

    def groups(self) -> dict[str, dict[str, str]]:
        """The groups in the tree, without prefix for ours: the texts of schemata, mode and tasks."""
        text = self.run(f"cd {ROOT} && grep -s '' */schemata */mode */tasks */cpus_list || true")
        found: dict[str, dict[str, str]] = {
            name: {} for name in self.run(f"cd {ROOT} && ls -d */").replace("/", "").split()
        }
        for line in text.splitlines():
            path, _, content = line.partition(":")
            name, _, file = path.partition("/")
            found[name][file] = found[name].get(file, "") + f"{content.strip()}\n"
        return {name: texts for name, texts in found.items() if name not in ("info", "mon_data", "mon_groups")}

    def tasks(self, group: str) -> set[int]:
        return set(map(int, self.run(f"cat {ROOT}/{group}/tasks").split()))

    def masks(self) -> dict[str, list[int]]:
        """Our groups' ways in both cache domains."""
        found = {}
        for name, texts in self.groups().items():
            if name.startswith("sns_"):
                [line] = [line for line in texts["schemata"].splitlines() if line.startswith("L3:")]
                found[name] = [int(part.partition("=")[2], 16) for part in line.split(";")]
        return found

    def refuse(self, path: str, access: str, number: str, status: str) -> None:
        """The emulator refuses the next access of this kind with this errno and these words."""
        fault = {"path": path, "access": access, "errno": number, "status": status}
        self.run(f"printf %s {shlex.quote(json.dumps(fault))} > {ROOT}/.emulator/faults")

    def faults(self) -> str:
        """What is still to be refused."""
        return self.run(f"cat {ROOT}/.emulator/faults")

    def clean_up(self) -> list[str]:
        return self.run(f'{PYTHON} -c "{CLEAN_UP}"').split()


@pytest.fixture
def node(cluster: Cluster) -> Iterator[Node]:
    """The node with the tests' own agent in place of sns agent, and an empty tree."""
    if cluster.try_run("test -c /dev/fuse", node=NODE).returncode:
        pytest.skip(f"{NODE} has no /dev/fuse for an emulated resctrl (the host has none, or SNS_RESCTRL=0)")
    node = Node(cluster)
    cluster.wait_for(
        f"{ROOT} on {NODE}", lambda: cluster.try_run(f"test -e {ROOT}/schemata", node=NODE).returncode == 0
    )
    node.run("sns-daemon stop agent")
    node.clean_up()
    node.run(f"mkdir -p {PLACE}")
    for name in ("applying_agent.py", "node_agent.py"):
        node.run(f"printf %s {shlex.quote((AGENT / name).read_text())} > {PLACE}/{name}")
    yield node
    cluster.run("scancel -u alice")
    node.clean_up()
    node.run(f"rmdir {ROOT}/someone 2> /dev/null; rm -rf {PLACE}; sns-daemon start agent")


@pytest.fixture
def foreign(node: Node) -> Iterator[int]:
    """A group that somebody else has made, with one process: its id."""
    node.run(f"mkdir {ROOT}/someone && printf 'L3:0=ff000;1=ff\\nMB:0=50\\n' > {ROOT}/someone/schemata")
    process = int(node.run("sleep 600 > /dev/null 2>&1 & echo $!"))
    node.run(f"echo {process} > {ROOT}/someone/tasks")
    yield process
    node.run(f"kill {process}; rmdir {ROOT}/someone")


def started(cluster: Cluster, number: int) -> list[int]:
    """So many jobs, whose batch scripts run: a job is RUNNING before its prolog is over."""
    numbers = cluster.submit_all([(OPTIONS, "sleep 600")] * number)
    cluster.wait_for("they run", lambda: all(cluster.jobs()[each].state == "RUNNING" for each in numbers))
    node = Node(cluster)
    cluster.wait_for("their scripts run", lambda: set(node.processes(numbers)) == set(numbers))
    return numbers


def test_a_node_shows_the_ways_closids_and_bandwidth_that_slurm_has_for_it(cluster: Cluster, node: Node) -> None:
    shown = json.loads(node.run("sns node show --json"))
    [cache] = shown["caches"]
    gres = cluster.run(f"scontrol show node {NODE} | grep -o 'Gres=.*'")
    assert f"llc:{cache['ways']}," in gres
    assert (cache["domains"], shown["bandwidth"]["unit"]) == ([0, 1], "percent")
    assert (shown["closids"], shown["closids_for_jobs"]) == (16, 14)
    assert [group["name"] for group in shown["groups"]] == [""]


def test_17_jobs_on_16_closids_run_beside_somebody_elses_group(cluster: Cluster, node: Node, foreign: int) -> None:
    others = node.groups()
    numbers = started(cluster, 17)
    processes = node.processes(numbers)
    assert set(processes) == set(numbers)

    assert node.apply(processes) == 0
    # One CLOSID each for the root group, the shared one and the foreign one: 13 of 16 are left.
    with_group, without = sorted(numbers)[:13], sorted(numbers)[13:]
    assert set(node.masks()) == {"sns_shared", *(f"sns_job{job}" for job in with_group)}
    for first, second in combinations(node.masks().values(), 2):
        assert all(first[domain] & second[domain] == 0 for domain in (0, 1))
    for job in with_group:
        assert node.tasks(f"sns_job{job}") >= set(processes[job])
    assert node.tasks("sns_shared") >= {process for job in without for process in processes[job]}
    assert {name: texts for name, texts in node.groups().items() if name == "someone"} == others
    assert node.tasks("someone") == {foreign}

    cluster.run(f"scancel {' '.join(map(str, with_group[:4]))}")
    cluster.wait_for_end(with_group[:4])
    left = node.processes(with_group[4:] + without)
    assert set(left) == {*with_group[4:], *without}
    assert node.apply(left) == 0
    assert set(node.masks()) == {"sns_shared", *(f"sns_job{job}" for job in left)}
    assert all(node.tasks(f"sns_job{job}") >= set(left[job]) for job in left)


def test_what_an_agent_killed_before_any_change_leaves_is_cleaned_up_and_the_jobs_go_on(
    cluster: Cluster, node: Node, foreign: int
) -> None:
    others = node.groups()
    # Two jobs: at least three groups to make, three schemata to write and two threads to move, and an agent for each.
    first, second = numbers = started(cluster, 2)
    processes = node.processes(numbers)
    killed_before = 0
    while (code := node.apply(processes, killed_before)) != 0:
        assert code == -9, f"killed before change {killed_before}"
        node.clean_up()
        assert node.groups() == others, f"killed before change {killed_before}"
        killed_before += 1
    assert killed_before >= 8
    assert set(node.masks()) == {"sns_shared", f"sns_job{first}", f"sns_job{second}"}

    assert node.apply({first: processes[first]}) == 0
    # Its group is made and the first job has given ways back: the second job's schemata would be next.
    assert node.apply(processes, killed_before=2) == -9
    assert node.apply(processes) == 0, "the next start finishes"
    assert all(node.tasks(f"sns_job{job}") >= set(processes[job]) for job in numbers)
    assert len(node.clean_up()) == len(numbers) + 1
    assert node.groups() == others
    assert node.tasks("someone") == {foreign}
    assert {process for found in processes.values() for process in found} <= node.tasks("")
    assert all(cluster.jobs()[job].state == "RUNNING" for job in numbers)


def test_a_group_that_vanished_is_made_again(cluster: Cluster, node: Node) -> None:
    first, second = numbers = started(cluster, 2)
    processes = node.processes(numbers)
    assert node.apply(processes) == 0
    in_force = node.masks()
    node.run(f"rmdir {ROOT}/sns_job{second}")
    assert set(node.masks()) == {"sns_shared", f"sns_job{first}"}
    assert node.apply(processes) == 0
    assert set(node.masks()) == set(in_force)
    for one, other in combinations(node.masks().values(), 2):
        assert all(one[domain] & other[domain] == 0 for domain in (0, 1))
    assert all(node.tasks(f"sns_job{job}") >= set(processes[job]) for job in numbers)


#: What the kernel refuses the second job: its file, the access, errno, the kernel's words, and the agent's exit code. A
#: job without a CLOSID, or a thread that has ended, is no error.
REFUSED = (
    ("", "make", "ENOSPC", "Out of CLOSIDs", 0),
    ("/schemata", "write", "EINVAL", "Mask out of range", 1),
    ("/schemata", "write", "EBUSY", "", 1),
    ("/tasks", "write", "ESRCH", "No task 1", 0),
)


def test_what_the_kernel_refuses_costs_no_other_job_its_group_and_the_next_apply_finishes(
    cluster: Cluster, node: Node
) -> None:
    first, second = numbers = started(cluster, 2)
    processes = node.processes(numbers)
    group = f"sns_job{second}"
    for file, access, number, status, code in REFUSED:
        assert node.apply({first: processes[first]}) == 0
        node.refuse(f"{group}{file}", access, number, status)
        assert node.apply(processes) == code, number
        assert node.faults() == "", f"{number} has happened"

        found = node.masks()
        assert all(found[f"sns_job{first}"][domain] & found["sns_shared"][domain] == 0 for domain in (0, 1)), number
        assert all(found[f"sns_job{first}"]), number
        assert node.tasks(f"sns_job{first}") >= set(processes[first]), number
        if access == "make":
            assert group not in found
            assert node.tasks("sns_shared") >= set(processes[second])
        assert all(cluster.jobs()[job].state == "RUNNING" for job in numbers), number

        assert node.apply(processes) == 0, number
        assert node.tasks(group) >= set(processes[second]), number
        assert all(
            own & other == 0 for own, other in zip(*(node.masks()[f"sns_job{job}"] for job in numbers), strict=True)
        )


#: Weights of these jobs by 3 CPUs and 1, and of their user by both; a quarter of two CPUs for each, as the kernel then
#: has it; the limits after they were lifted.
SHARES = f"""
import json, sys
from pathlib import Path
from slurm_sns.node.cgroups import Cgroups
cgroups, jobs = Cgroups(Path("/sys/fs/cgroup"), "{NODE}"), [int(job) for job in sys.argv[1:]]
own = [cgroups.provide(job) for job in jobs]
cpus = dict(zip(jobs, (3, 1)))
assert all(cgroups.set_weight(each, cpus[job]) for each, job in zip(own, jobs))
cgroups.weigh_users(cpus)
at = [Path("/sys/fs/cgroup", *each.names) for each in own]
weights = [int((each / "cpu.shares").read_text()) for each in (*at, at[0].parent)]
set_ = [cgroups.set_share(each, 0.25, 2) and cgroups.limit(each).cpus for each in own]
threads = [cgroups.threads(each) for each in own]
lifted = [cgroups.lift(each) and cgroups.limit(each).cpus for each in own]
print(json.dumps([weights, set_, threads, lifted]))
"""
REMOVE = f"""
import sys
from pathlib import Path
from slurm_sns.node.cgroups import Cgroups
cgroups = Cgroups(Path("/sys/fs/cgroup"), "{NODE}")
print(*[cgroups.remove(int(job)) for job in sys.argv[1:]])
"""
#: The threads of jobs, by their cgroups.
THREADS = f"""
import json, sys
from pathlib import Path
from slurm_sns.node.cgroups import Cgroups
cgroups = Cgroups(Path("/sys/fs/cgroup"), "{NODE}")
print(json.dumps({{job: cgroups.threads(cgroups.find(int(job))) for job in sys.argv[1:]}}))
"""


@pytest.fixture
def with_cgroups(cluster: Cluster) -> None:
    """Slurm makes cgroups of the node's jobs."""
    if cluster.try_run("grep -q proctrack/cgroup /etc/slurm/slurm.conf", node=NODE).returncode:
        pytest.skip(f"slurmd on {NODE} makes no cgroups (the host has no cgroup v1 or no /dev/fuse, or SNS_RESCTRL=0)")


@pytest.mark.usefixtures("with_cgroups")
def test_the_threads_of_slurms_job_cgroups_are_put_into_the_jobs_groups(cluster: Cluster, node: Node) -> None:
    numbers = started(cluster, 2)
    threads = json.loads(node.run(f"{PYTHON} -c {shlex.quote(THREADS)} {numbers[0]} {numbers[1]}"))
    processes = node.processes(numbers)
    assert all(set(threads[str(job)]) >= set(processes[job]) for job in numbers)
    assert not set(threads[str(numbers[0])]) & set(threads[str(numbers[1])])
    assert node.apply({int(job): found for job, found in threads.items()}) == 0
    for job in numbers:
        assert node.tasks(f"sns_job{job}") >= set(threads[str(job)])


@pytest.mark.usefixtures("with_cgroups")
def test_the_cpu_time_of_slurms_jobs_is_weighed_limited_and_set_free_again(cluster: Cluster, node: Node) -> None:
    numbers = started(cluster, 2)
    words = " ".join(map(str, numbers))
    weights, limits, threads, lifted = json.loads(node.run(f"{PYTHON} -c {shlex.quote(SHARES)} {words}"))
    assert weights == [3 * 256, 256, 4 * 16]
    assert (limits, lifted) == ([0.5, 0.5], [None, None])
    processes = node.processes(numbers)
    assert all(set(processes[job]) <= set(found) for job, found in zip(numbers, threads, strict=True))
    cluster.run(f"scancel {words}")
    cluster.wait_for_end(numbers)
    cluster.wait_for(
        "their threads have ended", lambda: node.run(f"{PYTHON} -c {shlex.quote(REMOVE)} {words} || true") != ""
    )
    assert node.run(f"find /sys/fs/cgroup/cpu -path '*slurm_{NODE}*/job_*'") == ""
