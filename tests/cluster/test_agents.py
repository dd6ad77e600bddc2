"""The agents on the nodes of a real Slurm: programs that nobody has profiled, and caches that jobs keep.

Jobs, prolog, epilog, plugin, scheduler and agents are real; resctrl and the performance counters are emulated, and so
are the programs: how fast they run follows from the ways and the bandwidth that their nodes leave them.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster import Cluster, Seen
from slurm_sns.config.profiles_yaml import read_profiles
from slurm_sns.policies.profile import Run

pytestmark = pytest.mark.releases

NODES = ("c1", "c2", "c3", "c4")
PROGRAMS = Path(__file__).parents[2] / "containers" / "programs.yaml"
TRUE = {each.name: each for each in read_profiles(PROGRAMS)}
#: What is measured may differ from the truth by this share.
WITHIN = 0.05
#: What slurmd and srun take to start and end the tasks of a job, on a machine that is busy with other tests.
STARTS_S = 3.0
#: The configuration of the mini cluster, and how programs are learnt in it.
EXPLORING = "learning: {explore: true, most_nodes: 1.0}"
ALPHA = 0.9
#: Six exploring runs measure a program at three scales; two of them may give no measurement.
MOST_EXPLORING = 8
#: How long the program that has changed runs, and how often at most until it has been measured again: three strange
#: runs, one that is timed, one that is sampled, and more where a run began before the last one was reported.
CHANGED_S, STRANGE_RUNS, MOST_CHANGED = 4, 3, 8


class Agents:
    """The cluster with its agents."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        #: Names of programs that no earlier run of these tests has used.
        self.stamp = f"{time.time():.0f}"

    def submit(self, program: str, number: int = 1, options: str = "", runs: str = "", limit: str = "") -> list[int]:
        """Jobs of an emulated program; `runs` is what truly runs, if not the program of that name."""
        processes = TRUE[runs or program].runs[0].processes
        asked = f"-n{processes} --mem-per-cpu=200 --sns-program={program}-{self.stamp} {options}"
        return self.cluster.submit_all([(asked, f"sns-emulated {runs or program} {limit}")] * number)

    def started(self, job_id: int, timeout_s: float = 60) -> Seen:
        """The job, once it runs and is a program on its nodes."""

        def runs() -> bool:
            job = self.cluster.job(job_id)
            return job.state == "RUNNING" and all(f"sns_job{job_id}" in self.masks(node) for node in job.nodes)

        self.cluster.wait_for(f"job {job_id} runs in its group", runs, timeout_s)
        return self.cluster.job(job_id)

    def masks(self, node: str) -> dict[str, int]:
        """The ways of each of our groups in cache domain 0."""
        text = self.cluster.run("grep -sH L3 /sys/fs/resctrl/sns_*/schemata || true", node=node)
        found = {}
        for line in text.splitlines():
            path, _, schemata = line.partition(":")
            found[path.split("/")[-2]] = int(schemata.partition("=")[2].partition(";")[0], 16)
        return found

    def programs(self, node: str) -> list[dict[str, Any]]:
        """The emulated programs of a node: how fast they run now."""
        text = self.cluster.run("cat /sys/fs/resctrl/.emulator/programs", node=node)
        return [json.loads(line) for line in text.splitlines()]

    def speeds(self, node: str) -> dict[str, float]:
        """How fast each program that has work left runs now: 1 is alone with all ways."""
        return {each["name"]: each["speed"] for each in self.programs(node) if each["speed"]}

    def shown(self, program: str) -> dict[str, Any]:
        """What `sns profile show` says."""
        return json.loads(self.cluster.run(f"sns profile show {program}-{self.stamp} --json", "alice"))

    def wait_until_known(self, name: str) -> None:
        """The scheduler uses an imported profile some seconds later."""
        said = []

        def is_known() -> bool:
            answer = self.cluster.try_run(f"sns profile show {name} --json", "alice")
            said.append(answer.stderr)
            return answer.returncode == 0

        try:
            self.cluster.wait_for(f"{name} is known", is_known)
        except TimeoutError as late:
            log = self.cluster.run("tail -n 30 /var/log/sns/scheduler.log")
            status = self.cluster.try_ask({"command": "status"})
            raise TimeoutError(f"{late}\n{len(said)} tries, the last: {said[-1]}\n{status}\n{log}") from None

    def no_groups_are_left(self) -> bool:
        return not any(name.startswith("sns_job") for node in NODES for name in self.masks(node))


@pytest.fixture(scope="module")
def exploring(running_cluster: Cluster) -> Iterator[None]:
    """The scheduler explores."""
    if running_cluster.try_run("test -e /sys/fs/resctrl/schemata", node="c1").returncode:
        pytest.skip("c1 has no emulated resctrl (the host has no /dev/fuse, or SNS_RESCTRL=0), so no agent runs there")
    running_cluster.run(f"{{ cat /etc/slurm/sns.yaml; echo '{EXPLORING}'; }} > /etc/slurm/sns-exploring.yaml")
    running_cluster.daemon("restart", config="/etc/slurm/sns-exploring.yaml")
    running_cluster.wait_for_scheduler()
    yield
    running_cluster.daemon("restart")
    running_cluster.wait_for_scheduler()


@pytest.fixture
def agents(exploring: None, cluster: Cluster) -> Agents:  # noqa: ARG001 -- it is there
    """The cluster, with an agent on each of its four nodes."""
    agents = Agents(cluster)
    cluster.wait_for("the agents are connected", lambda: not away(cluster))
    return agents


def away(cluster: Cluster) -> Sequence[str]:
    """The nodes whose agents the scheduler does not hear."""
    return cluster.status()["agents"]["away"]


def assert_measured(shown: Mapping[str, Any], truth: Run) -> None:
    """The profile's run is the truth, as far as it was sampled; starting and ending a job takes its time, too."""
    [run] = [each for each in shown["runs"] if each["scale"] == truth.scale]
    assert truth.time_s * (1 - WITHIN) <= run["time_s"] <= truth.time_s * (1 + WITHIN) + STARTS_S
    for ways, ipc, gbps in zip(run["ways"], run["ipc"], run["bandwidth_gbps"], strict=True):
        assert ipc == pytest.approx(truth.ipc_at(ways), rel=WITHIN)
        assert gbps == pytest.approx(truth.bandwidth_at(ways), rel=WITHIN)


def test_a_program_never_seen_before_is_explored_measured_and_spread(agents: Agents) -> None:
    """Each scale is timed and sampled; what gave no measurement, on a machine that is busy, is done once more."""
    cluster = agents.cluster
    exploring: list[dict[str, Any]] = []
    later: list[dict[str, Any]] = []
    while len(later) < 2:
        numbers = agents.submit("solver")
        assert cluster.wait_for_end(numbers)[numbers[0]].state == "COMPLETED"
        [start] = cluster.starts(numbers).values()
        (exploring if "explor" in start["reason"] else later).append(start)
        assert len(exploring) <= MOST_EXPLORING, exploring
        assert "explor" not in start["reason"] or not later, "nothing is explored once the profile serves"
    scales = [start["scale"] for start in exploring]
    assert sorted(scales) == scales
    assert all(scales.count(scale) >= 2 for scale in (1, 2, 4))
    assert all(start["exclusive"] for start in exploring)
    shown = agents.shown("solver")
    [found] = shown["classes"]
    assert (found["class"], found["ideal_scale"]) == ("scaling", 4)
    for run in TRUE["solver"].runs:
        assert_measured(shown, run)
    assert all(start["scale"] == 4 and not start["exclusive"] for start in later)
    assert cluster.wait_for("no group is left", agents.no_groups_are_left) < 60


@pytest.fixture
def profiled(agents: Agents) -> Agents:
    """The programs `lattice` and `stream` have profiles: as they truly are."""
    agents.cluster.run("sns profile import /usr/src/slurm_sns/containers/programs.yaml", "slurm")
    agents.wait_until_known("lattice")
    return agents


#: A program that lives on its cache, and one that washes out everybody else's: each has its own ways.
CACHE, MEMORY = "lattice", "stream"
#: Programs that run on until they are cancelled.
ENDLESS = "--work-seconds 600"


def on_each_node(agents: Agents, program: str) -> list[int]:
    """A job of the program on each node."""
    asked = f"-n12 --mem-per-cpu=200 --sns-program={program} --sns-alpha={ALPHA}"
    numbers = agents.cluster.submit_all([(asked, f"sns-emulated {program} {ENDLESS}")] * len(NODES))
    agents.cluster.wait_for(f"{program} runs", lambda: all(program in agents.speeds(node) for node in NODES))
    return numbers


def ways(mask: int) -> int:
    return mask.bit_count()


def test_two_programs_share_a_node_in_partitions_and_keep_what_was_promised(profiled: Agents) -> None:
    """Alone a job has all the ways of jobs; with a second one each has what it was promised, and then again all."""
    cluster = profiled.cluster
    first = on_each_node(profiled, CACHE)
    alone = {node: profiled.masks(node) for node in NODES}
    for node, masks in alone.items():
        [(name, mask)] = [(name, mask) for name, mask in masks.items() if name.startswith("sns_job")]
        assert int(name.removeprefix("sns_job")) in first
        assert ways(mask) + ways(masks["sns_shared"]) == 20, f"{node}: nobody else needs ways"
    second = on_each_node(profiled, MEMORY)
    for node in NODES:
        masks = profiled.masks(node)
        assert len(masks) == 3, "each job has its group before its program begins"
        assert not any(one & other for one, other in combinations(masks.values(), 2))
        speeds = profiled.speeds(node)
        assert min(speeds.values()) >= ALPHA, f"{node}: {speeds}"
    [row] = {row["reason"] for row in cluster.queue() if row["state"] == "running"}
    assert "unpartitioned" not in row
    cluster.run(f"scancel {' '.join(map(str, second))}")
    cluster.wait_for("the ways are lent again", lambda: {node: profiled.masks(node) for node in NODES} == alone)
    cluster.run("scancel -u alice")
    cluster.wait_for("no group is left", profiled.no_groups_are_left)


def test_without_agents_the_same_programs_do_not_keep_it(profiled: Agents) -> None:
    cluster = profiled.cluster
    for node in NODES:
        cluster.run("sns-daemon stop agent && sns agent --clean-up", node=node)
    try:
        cluster.wait_for("no agent is connected", lambda: len(away(cluster)) == len(NODES))
        numbers = on_each_node(profiled, CACHE) + on_each_node(profiled, MEMORY)
        for node in NODES:
            assert profiled.speeds(node)[CACHE] < ALPHA

        def is_told() -> bool:
            told = [row["reason"] for row in cluster.queue() if row["job_id"] in numbers]
            return len(told) == len(numbers) and all("unpartitioned" in reason for reason in told)

        cluster.wait_for("it is told of each", is_told)
        cluster.run("scancel -u alice")
    finally:
        for node in NODES:
            cluster.run("sns-daemon start agent", node=node)


def test_a_program_that_has_changed_is_measured_again_while_its_old_curve_serves(agents: Agents) -> None:
    """Its profile says that it behaves as `stream`; what runs behaves as `lattice`, whose IPC is twice as high."""
    cluster, name = agents.cluster, f"changed-{agents.stamp}"
    believed = yaml.safe_load(PROGRAMS.read_text())["programs"][MEMORY]
    believed["runs"][0]["time_s"] = CHANGED_S
    cluster.write("/tmp/sns-changed.yaml", yaml.safe_dump({"programs": {name: believed}}))
    cluster.run("sns profile import /tmp/sns-changed.yaml", "slurm")
    agents.wait_until_known(name)
    [truth], [old] = TRUE[CACHE].runs, TRUE[MEMORY].runs
    served, reasons = [], []
    for _ in range(MOST_CHANGED):
        numbers = agents.submit("changed", runs=CACHE, limit=f"--work-seconds {CHANGED_S}")
        assert cluster.wait_for_end(numbers)[numbers[0]].state == "COMPLETED"
        reasons.append(cluster.starts(numbers)[numbers[0]]["reason"])
        served.append(agents.shown("changed")["runs"][0]["ipc"][-1])
        if served[-1] != old.ipc[-1]:
            break
    explored = ["explor" in reason for reason in reasons]
    first = explored.index(True)
    assert first >= STRANGE_RUNS, reasons
    assert all(explored[first:-1]), "from then on, until it has been measured; the last one may have begun after that"
    assert set(served[:-1]) == {old.ipc[-1]}, "until it has been measured again"
    assert served[-1] != old.ipc[-1]
    [run] = agents.shown("changed")["runs"]
    for ways_then, ipc in zip(run["ways"], run["ipc"], strict=True):
        assert ipc == pytest.approx(truth.ipc_at(ways_then), rel=WITHIN)
