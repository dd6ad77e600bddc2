"""What Slurm 22.05, 24.11 and 26.05 printed of the same jobs is read alike, and as the jobs were submitted."""

import re
from pathlib import Path

import pytest
import scontrol_samples as samples

from slurm_sns import gpus
from slurm_sns.coverage import sacct
from slurm_sns.gpus import GpuRequest
from slurm_sns.scheduler.observation import JobState, Observation, ObservedJob
from slurm_sns.sim.traces import cluster_nodes
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.sacct_trace import WRONG_FIELDS, read_sacct
from slurm_sns.slurm import scontrol_text
from slurm_sns.slurm.scontrol_state import ScontrolState

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
RELEASES = ("22.05.8", "24.11.5", "26.05.5")
ODD_NAME = "26 a b=c JobState=RUNNING \"q\" 's' ü|;%\t\\x"


class RecordedSlurm:
    """Answers with what this release answered, and only what it was asked then."""

    def __init__(self, release: str) -> None:
        self.folder = RECORDED / release
        lines = (self.folder / "commands.tsv").read_text(encoding="utf-8").splitlines()
        self.files = {command: f"{name}.txt" for name, command in (line.split("\t", 1) for line in lines)}

    def __call__(self, *words: str, timeout_s: float = 0) -> str:
        assert timeout_s >= 0
        return (self.folder / self.files[" ".join(words)]).read_bytes().decode()


@pytest.fixture(scope="module", params=RELEASES)
def state(request: pytest.FixtureRequest) -> ScontrolState:
    return ScontrolState(print, ask=RecordedSlurm(request.param))


@pytest.fixture(scope="module")
def seen(state: ScontrolState) -> Observation:
    return state.observe()


@pytest.fixture
def jobs(seen: Observation) -> dict[str, ObservedJob]:
    """By the number in the name that each was submitted with; of the parts of an array or a job the last."""
    return {job.name.split("-")[0].split(" ")[0]: job for job in seen.jobs}


def test_every_job_is_read_but_those_whose_text_looks_like_slurms_own(state: ScontrolState, seen: Observation) -> None:
    read, left_out = {job.id for job in seen.jobs}, {30, 31, 32}
    assert read | left_out == set(range(1, 37))
    assert not read & left_out
    assert not any(job.unreadable for job in seen.jobs)
    # From 26.05 on the command line is shown, too: the line break that job 31 has in its name stands there again.
    cut_off = 2 if state.site(seen).version.startswith("26") else 1
    assert state.left_out == {
        "a text of a job looks like Slurm's own fields": 2,
        "a job's line is cut off": cut_off,
        "two records have the same JobId": 1,
    }


def test_what_runs_and_what_has_ended(jobs: dict[str, ObservedJob]) -> None:
    running = {number: job.allocated for number, job in jobs.items() if job.state is JobState.RUNNING}
    assert running == {
        "1": ("n1",),
        "2": ("n2", "n3"),
        "3": ("n7",),
        "6": ("n2",),
        "10": ("n3",),
        "11": ("n8",),  # its node is powered up for it
    }
    assert [number for number, job in jobs.items() if job.state is JobState.ENDED] == ["7", "8", "9"]
    assert (jobs["4"].state, jobs["4"].allocated) == (JobState.SUSPENDED, ("n1",))
    assert [number for number, job in jobs.items() if not job.is_batch] == ["10"]


@pytest.mark.parametrize(
    ("number", "reason"),
    [("5", "BeginTime"), ("12", "Resources"), ("15", "JobHeldUser"), ("17", "Dependency"), ("23", "Reservation")],
)
def test_why_a_job_waits(jobs: dict[str, ObservedJob], number: str, reason: str) -> None:
    assert (jobs[number].state, jobs[number].reason) == (JobState.PENDING, reason)


def test_what_cannot_start_now_says_so(jobs: dict[str, ObservedJob]) -> None:
    assert jobs["22"].reason.startswith("ReqNodeNotAvail,_UnavailableNodes:n")
    assert (jobs["21"].reason, jobs["21"].partitions, jobs["21"].is_alone) == ("JobHeldAdmin", ("closed",), True)
    assert (jobs["5"].begin_s or 0) > (jobs["5"].submit_s or 0) + 100, "requeued: Slurm waits two minutes"


@pytest.mark.parametrize(
    ("number", "tasks_and_cpus", "memory_per_cpu_mb", "memory_per_node_mb"),
    [
        *(("1", (4, 4), 1000, None), ("2", (16, 16), None, 16384), ("3", (2, 8), None, 2000)),
        *(("12", (90, 90), 1000, None), ("14", (56, 56), 2048, None), ("18", (2, 2), None, 500)),
        ("25", (1, 1), None, 2000),
    ],
)
def test_cores_and_memory(
    jobs: dict[str, ObservedJob],
    number: str,
    tasks_and_cpus: tuple[int, int],
    memory_per_cpu_mb: int,
    memory_per_node_mb: int,
) -> None:
    job = jobs[number]
    assert (job.tasks, job.cpus) == tasks_and_cpus
    assert (job.memory_per_cpu_mb, job.memory_per_node_mb) == (memory_per_cpu_mb, memory_per_node_mb)


def test_tasks_alone_leave_the_number_of_nodes_open(jobs: dict[str, ObservedJob]) -> None:
    assert (jobs["12"].nodes_max, jobs["12"].asks_for) == (None, ())
    assert (jobs["15"].nodes_max, jobs["15"].asks_for) == (None, ()), "before 26.05 a held one shows Slurm's estimate"
    assert (jobs["13"].nodes_min, jobs["13"].nodes_max, jobs["13"].is_alone) == (1, 1, True)


def test_a_held_job_that_fits_one_node_looks_fixed_to_it_before_26_05(
    state: ScontrolState, seen: Observation, jobs: dict[str, ObservedJob]
) -> None:
    assert jobs["33"].nodes_max == (1 if state.site(seen).version == "24.11.5" else None)


def test_a_range_of_nodes_is_seen_after_slurm_has_planned_the_job(jobs: dict[str, ObservedJob]) -> None:
    assert (jobs["14"].nodes_min, jobs["14"].nodes_max) == (2, 4)
    assert jobs["14"].asks_for == ("range of nodes",)


@pytest.mark.parametrize(
    ("number", "asked"),
    [
        ("2", ("gres",)),
        ("3", ("boards, sockets, cores, threads",)),
        ("18", ("heterogeneous job",)),
        ("19", ("licences",)),
        ("23", ("reservation",)),
        (
            "24",
            ("contiguous", "switches", "boards, sockets, cores, threads", "tasks per board, socket, core"),
        ),
        ("25", ("deadline",)),
        ("30", ("prefer", "exclusive or oversubscribe")),
    ],
)
def test_what_is_left_to_slurm(jobs: dict[str, ObservedJob], number: str, asked: tuple[str, ...]) -> None:
    assert jobs[number].asks_for == asked


def test_the_gpus_of_jobs_are_read_from_each_release(jobs: dict[str, ObservedJob]) -> None:
    assert jobs["3"].gpus == GpuRequest(gpus.JOB, (("a100", 1),))
    assert (jobs["20"].gpus, jobs["20"].asks_for) == (GpuRequest(gpus.TASK, (("", 1),), 2, 1024), ())


def test_arrays_and_what_else_a_job_says(seen: Observation, jobs: dict[str, ObservedJob]) -> None:
    assert {job.label for job in seen.jobs if "array" in job.name} == {"6_1", "6_2", "6_3", "18_[0-5,9%2]"}
    assert (jobs["16"].array_limit, jobs["3"].cpus_per_task, jobs["2"].tasks_per_node) == (2, 2, 8)
    assert {*jobs["25"].partitions} == {"main", "small"}
    assert (jobs["17"].constraint, jobs["17"].excluded, jobs["17"].waits_for_others) == ("ib&avx512", ("n3",), True)
    assert (jobs["15"].nice, jobs["25"].qos, jobs["14"].walltime_s) == (50, "high", 172_800)
    assert {job.user for job in seen.jobs} == {"alice", "bob"}


def test_odd_texts_survive(seen: Observation, jobs: dict[str, ObservedJob]) -> None:
    assert jobs["26"].name == ODD_NAME
    assert (jobs["26"].state, jobs["26"].allocated) == (JobState.PENDING, ())
    assert [job.name for job in seen.jobs if job.id == 35] == ["32\nof three\nlines"]
    assert (jobs["31"].comment, jobs["31"].asks_for) == ("sns:off", ("sns:off",)), "behind a script of four lines"
    assert [job.name for job in seen.jobs if "18-" in job.name] == ["18-het", "18-het"]


def test_every_node_is_read(seen: Observation) -> None:
    shown = [(node.name, node.capacity.cores, node.capacity.memory_mb, node.allocated.cores) for node in seen.nodes]
    assert shown == [
        *(("n1", 28, 128_000, 4), ("n2", 28, 128_000, 11), ("n3", 28, 128_000, 9)),
        *(("n4", 28, 128_000, 0), ("n5", 28, 128_000, 0), ("n7", 7, 60_000, 4), ("n8", 28, 128_000, 1)),
    ]
    nodes = {node.name: node for node in seen.nodes}
    assert (nodes["n2"].capacity.ways, nodes["n2"].allocated.ways, nodes["n2"].allocated.memory_mb) == (20, 4, 19_384)
    assert (nodes["n1"].partitions, nodes["n4"].features) == ({"main", "closed"}, {"opa", "avx512"})
    assert not any(node.unreadable for node in seen.nodes)


def test_why_a_node_is_not_there(seen: Observation) -> None:
    unavailable = {node.name: node.unavailable for node in seen.nodes if node.unavailable}
    assert unavailable == {
        "n4": 'drain: fan 2 broken; see ticket=17 "soon',  # Slurm itself takes the last quote away
        "n5": "down+not_responding: no power",
        "n8": "not_responding",
    }


def test_partitions_reservations_and_what_slurmdbd_says(state: ScontrolState, seen: Observation) -> None:
    shown = [(each.name, each.state, each.tier, each.nodes_max, each.walltime_s) for each in seen.partitions]
    assert shown == [("main", "UP", 1, None, 172_800), ("small", "UP", 10, 1, None), ("closed", "DOWN", 1, None, None)]
    assert [(each.name, each.nodes) for each in seen.reservations] == [("upkeep", {"n2", "n3"}), ("course", {"n1"})]
    assert seen.qos_priorities == (("high", 100), ("normal", 0))
    assert dict(seen.shares) == {"root": 1, "chemistry": 1, "physics": 3}
    assert seen.tres_limits.of_users == {"root": set(), "bob": set(), "alice": {"gres/llc", "cpu"}}
    assert seen.preemption.of_qos == (("high", {"normal"}),)
    assert (state.site(seen).default_partition, state.site(seen).memory_per_cpu_mb) == ("main", 1000)


@pytest.mark.parametrize("release", RELEASES)
def test_the_configuration_as_our_own_library_takes_it(release: str) -> None:
    shown = scontrol_text.configuration((RECORDED / release / "config.txt").read_text(encoding="utf-8"))
    assert (shown.version, shown.slurm_user_name, shown.min_job_age, shown.job_requeue) == (
        release,
        "slurm",
        3600,
        True,
    )
    assert (shown.gres_types, shown.job_submit_plugins, shown.priority_flags) == (["llc", "gpu"], [], [])
    assert {"gres/llc", "cpu"} <= {*shown.accounting_storage_tres}
    assert [Path(each).name for each in shown.plugin_dirs] == ["slurm-wlm"]
    assert (shown.plugin_stack_config, shown.slurmctld_parameters) == (None, [])
    assert shown.max_dbd_msgs > 10_000


@pytest.mark.parametrize("release", [each for each in RELEASES if each in samples.RELEASES])
def test_the_samples_written_by_hand_have_the_fields_of_the_recorded_jobs_in_their_order(release: str) -> None:
    def names(line: str) -> list[str]:
        return re.findall(r"(?:^| )([A-Za-z][A-Za-z0-9_:/]*)=", line)

    shown = (RECORDED / release / "job.txt").read_bytes().decode()
    (recorded,) = (names(line) for line in shown.split("\n") if " JobName=12-tasks " in line)
    assert [name for name in recorded if name != "SchedNodeList"] == names(samples.job(release))


@pytest.mark.parametrize("release", RELEASES)
def test_the_lists_of_nodes_that_sns_simulate_takes(release: str) -> None:
    slurm = RecordedSlurm(release)
    of_scontrol, of_sinfo = (
        cluster_nodes.site_nodes_in(TraceFile.of(str(slurm.folder / slurm.files[command])))
        for command in (sacct.NODES, sacct.SINFO)
    )
    assert of_scontrol is not None
    assert of_sinfo is not None
    sizes = {node.name: (node.cores, node.memory_mb, node.weight) for node in of_scontrol}
    assert sizes == {
        **dict.fromkeys(("n1", "n2", "n3", "n8"), (28, 128_000, 1)),
        **dict.fromkeys(("n4", "n5"), (28, 128_000, 10)),
        "n7": (7, 60_000, 1),
    }
    sizes["n7"] = (8, 64_000, 1)  # sinfo does not say what is kept for the system
    assert {node.name: (node.cores, node.memory_mb, node.weight) for node in of_sinfo} == sizes
    assert [(node.partitions, node.features) for node in of_sinfo] == [
        (node.partitions, node.features) for node in of_scontrol
    ]


@pytest.mark.parametrize("release", RELEASES)
def test_every_line_of_sacct_is_a_job_or_is_counted(release: str) -> None:
    slurm = RecordedSlurm(release)
    cluster = cluster_nodes.read_site_cluster(str(slurm.folder / slurm.files[sacct.NODES]))
    dump = slurm.folder / slurm.files[sacct.COMMAND]
    trace = read_sacct(TraceFile.of(str(dump)), cluster.node_arrays, cluster.partitions)
    assert len(trace.submit) + sum(trace.dropped.values()) == len(dump.read_text(encoding="utf-8").splitlines()) - 1
    assert trace.dropped[WRONG_FIELDS] == 1, "the second line of a script in SubmitLine, whose job is read"
    assert {*trace.dropped} <= {WRONG_FIELDS, "not ended", "part of a heterogeneous job"}
    assert len(trace.submit) == 4, "three have ended, and one run of the job that was requeued"
