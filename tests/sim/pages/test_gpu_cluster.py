"""The page of a GPU cluster: which tasks come when, what counts as unusable, and the whole page on a small log."""

from collections import Counter

import numpy as np
import pytest

from slurm_sns.errors import BadInput
from slurm_sns.model import Node, Resources, gpus_of
from slurm_sns.sim.pages import FOLDERS
from slurm_sns.sim.pages.claims import PageClaims
from slurm_sns.sim.pages.page import write
from slurm_sns.sim.pages.running import Options, WorkerProcesses
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.gpu_tasks import read_gpu_tasks
from sns_reproductions.gpu_cluster import run as page

HEADER = "cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time,scheduled_time"


def node(name, *, cores=16, memory_mb=65536, gpus=4, model="T4"):
    size = Resources(cores, memory_mb, gpus=gpus_of({model: gpus}))
    return Node(name, size, size)


def log(nodes, *lines):
    return read_gpu_tasks(TraceFile("tasks.csv", "\n".join((HEADER, *lines)).encode()), nodes)


NODES = "sn,cpu_milli,memory_mib,gpu,model\na,16000,65536,4,T4\nb,16000,65536,4,T4\nc,16000,65536,0,\n"
GPUS = ("1,1000", "1,500", "0,0", "4,1000", "1,470")


@pytest.fixture
def files(monkeypatch):
    """Lets the page read these texts instead of the log."""

    def give(nodes, *lines, header=HEADER):
        texts = {page.NODES: nodes, page.TASKS: "\n".join((header, *lines))}
        monkeypatch.setattr(page, "log_file", lambda name: TraceFile("tasks.csv", texts[name].encode()))

    forget()
    yield give
    forget()


def forget():
    page.cluster.cache_clear()
    page.tasks_on.cache_clear()


@pytest.fixture
def small(files, monkeypatch):
    """A log of tasks of one to four GPUs or of shares, one a minute, on two nodes with GPUs and one without."""
    times = [f"{60 * at},{60 * at + 200 + 70 * (at % 7)},{60 * at + 1}" for at in range(200)]
    files(NODES, *(f"{2000 * (1 + at % 5)},2048,{GPUS[at % 5]},,{time}" for at, time in enumerate(times)))
    monkeypatch.setattr(page, "EVERY", 1)
    return page.tasks_on(page.cluster(), page.ROUNDED)


def test_a_gpu_is_stranded_only_where_cores_or_memory_are_missing():
    nodes = (node("a"), node("b"), node("other", model="V100"))
    tasks = log(nodes, "4000,1024,2,1000,T4,,,", "1000,1024,0,0,,,,").tasks
    measuring = page.Measuring.of(nodes, tasks)
    free = np.array([[16, 3, 16], [65536, 65536, 65536], [1, 4, 4]])
    # a: too few GPUs for the task. b: too few cores. other: another model. Tasks without GPUs do not count.
    assert measuring.judge(free).tolist() == [3, 1 + 4 + 4, 4]
    free[0, 1] = 4
    assert measuring.judge(free).tolist() == [3, 1 + 4, 0]


def test_each_kind_of_task_counts_as_often_as_it_is_there():
    nodes = (node("a"),)
    tasks = log(nodes, *["1000,1024,4,1000,,,,"] * 3, "1000,1024,1,1000,,,,").tasks
    free = np.array([[16], [65536], [2]])
    assert page.Measuring.of(nodes, tasks).judge(free).tolist() == [2, 2 * 3 / 4, 0]


def test_a_part_of_the_cluster_has_the_same_kinds_of_nodes_in_the_order_of_the_list():
    nodes = [node(f"n{at}", model="T4" if at % 2 else "V100") for at in range(40)]
    part = page.part_of(nodes, 10)
    assert len(part) == 4
    assert sorted(dict(each.capacity.gpus).get("gpu:T4", 0) for each in part) == [0, 0, 4, 4]
    assert list(part) == [each for each in nodes if each in part]


def test_tasks_come_until_the_demand_is_130_percent_and_none_ends_before(small):
    jobs = page.demanded(small.tasks, 8, seed=1)
    total = np.cumsum(page.held_by(jobs)[2])
    assert total[-1] >= 8 * 1.3 > total[-2]
    cycle = -(-jobs.submit // page.INTERVAL_S)
    assert (cycle == np.clip(np.ceil(100 * total / 8), 1, page.MOST_DEMAND)).all()
    assert jobs.run.min() > jobs.submit.max()
    assert page.demanded(small.tasks, 8, seed=2).kind.tolist() != jobs.kind.tolist()


@pytest.mark.parametrize("percent", [5, 20, 70, 100])
def test_arrivals_are_moved_until_the_gpus_have_the_load(small, percent):
    jobs = small.trace()
    factor = page.factor_for(jobs, 32, percent)
    assert page.load_of(jobs.at_load(factor, np.inf, "log"), 32) == pytest.approx(percent / 100, abs=0.01)


def test_a_log_without_gpus_is_an_error_of_one_line(files):
    files(NODES, "1000,1024,1,500,,,,", "1000,1024,0,0,,,,")
    with pytest.raises(BadInput, match=r"tasks.csv: without shares no task asks for a GPU; valid: one or more"):
        page.tasks_on(page.cluster(), page.WITHOUT)


@pytest.mark.usefixtures("small")
def test_the_judgement_has_even_tasks_only_and_those_of_several_gpus_eight_times():
    tasks = page.tasks_on(page.cluster(), page.SEVERAL).tasks
    often = Counter(task.line for task in tasks)

    assert page.judged_on() == (page.WITHOUT, page.SEVERAL)
    assert not any(task.is_share or task.line % 2 for task in tasks)
    assert {(task.gpus > 1, often[task.line]) for task in tasks} == {(False, 1), (True, 8)}


@pytest.mark.usefixtures("small")
def test_a_full_cluster_has_all_gpus_allocated_and_no_more():
    found = page.fill((page.ROUNDED, 1))
    for values in found.values():
        allocated, unusable, stranded = np.array(values).T
        assert (np.diff(allocated) >= 0).all()
        assert allocated.max() <= 100
        assert (allocated + unusable <= 100 + 1e-9).all()
        assert (stranded <= unusable).all()


@pytest.mark.usefixtures("small")
def test_the_page_is_written_from_a_small_log(tmp_path):
    folder = FOLDERS["gpu-cluster"]
    content = PageClaims.of(folder)
    options = Options(tmp_path, seeds=2, workers=WorkerProcesses(1), quick=True)
    results = page.run(options, content.content.data)
    claims = write(tmp_path, content, results)
    assert {claim.group for claim in claims} == {
        "as demand rises",
        "at the log's own arrivals",
        "in time",
        "with best-fit-gpus, as demand rises",
        "with best-fit-gpus, in time",
    }
    text = (tmp_path / "README.md").read_text()
    assert "3 nodes, 2 of them with 8 GPUs" in text
    waits = {key: value for key, value in results.quantities.items() if key.endswith(": mean_wait_s")}
    assert all(float(value) >= 0 for key, value in waits.items() if " above " not in key)


def test_a_list_without_times_and_shares_has_one_variant_and_no_replays(files, tmp_path):
    files(NODES, "1000,1024,1", "2000,1024,2", "1000,1024,0", header="cpu_milli,memory_mib,num_gpu")
    content = PageClaims.of(FOLDERS["gpu-cluster"])
    results = page.run(Options(tmp_path, seeds=1, workers=WorkerProcesses(1)), content.content.data)
    write(tmp_path, content, results)
    assert results.fields["variants"] == (page.ROUNDED,)
    assert "it is not replayed" in (tmp_path / "README.md").read_text()
