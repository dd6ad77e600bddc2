"""The nodes and tasks of a GPU cluster: columns by name, what is left out, and each wrong line with its message."""

import pytest

from slurm_sns.errors import BadInput
from slurm_sns.model import Resources, gpus_of
from slurm_sns.sim.traces.cluster_nodes import read_cluster
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.gpu_tasks import read_gpu_nodes, read_gpu_tasks
from slurm_sns.sim.traces.read_trace import read_records

NODES = "sn,cpu_milli,memory_mib,gpu,model\nc,32000,65536,0,\nt,16000,65536,2,T4\nv,96000,393216,8,V100M32\n"
HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"


def nodes(text=NODES):
    return read_gpu_nodes(TraceFile("nodes.csv", text.encode()))


def tasks(*lines, header=HEADER):
    return read_gpu_tasks(TraceFile("tasks.csv", "\n".join((header, *lines)).encode()), nodes())


def line(gpus="1", milli="1000", *, cpu="4000", memory="8192", spec="", times="100,400,110"):
    return f"p,{cpu},{memory},{gpus},{milli},{spec},LS,Running,{times}"


def test_nodes_have_cores_memory_and_gpus_by_model():
    assert [(node.name, node.capacity) for node in nodes()] == [
        ("c", Resources(32, 65536)),
        ("t", Resources(16, 65536, gpus=gpus_of({"T4": 2}))),
        ("v", Resources(96, 393216, gpus=gpus_of({"V100M32": 8}))),
    ]


def test_a_task_asks_for_whole_cores_a_gibibyte_at_least_and_gpus_of_any_model():
    (task,) = tasks(line(cpu="3152", memory="100", gpus="2")).tasks
    assert task.demand == Resources(4, 1024, gpus=gpus_of({"": 2}))
    assert (task.gpus, task.is_share, task.allowed) == (2, False, None)


def test_a_share_is_one_gpu_and_is_known_as_a_share_also_of_several_gpus():
    found = tasks(line(milli="460"), line(gpus="2", milli="500"), line(milli="1000"), line(gpus="0", milli="0"))
    assert [(task.gpus, task.is_share) for task in found.tasks] == [(1, True), (2, True), (1, False), (0, False)]
    whole = found.only(lambda task: not task.is_share, "share")
    assert (len(whole.tasks), whole.dropped) == (2, {"share": 2})


def test_gpu_spec_names_the_nodes_of_these_models_and_only_for_tasks_with_gpus():
    found = tasks(
        line(spec="T4"), line(spec="T4|V100M32"), line(spec="A100|T4"), line(gpus="0", milli="0", spec="A100")
    )
    assert [task.allowed for task in found.tasks] == [{"t"}, {"t", "v"}, {"t"}, None]


def test_what_no_node_can_hold_is_counted_by_reason():
    found = tasks(
        line(),
        line(spec="A100"),
        line(gpus="9"),
        line(gpus="4", spec="T4"),
        line(cpu="20000", gpus="1", spec="T4"),
        line(milli="0"),
        line(cpu=""),
        line(memory="nan"),
        line(milli=""),
        "p,4000",
    )
    assert len(found.tasks) == 1
    assert found.dropped == {
        "gpu_milli 0": 1,
        "gpu_spec of no node here": 1,
        "larger than any nodes": 3,
        "line with another number of fields than the header": 1,
        "unknown cpu_milli": 1,
        "unknown gpu_milli": 1,
        "unknown memory_mib": 1,
    }


def test_a_variant_without_times_and_models_has_other_columns_in_any_order():
    found = tasks("1,x,1024,2000", "0,y,1024,2000", header="num_gpu,odd,memory_mib,cpu_milli")
    assert [(task.line, task.gpus, task.is_share) for task in found.tasks] == [(1, 1, False), (2, 0, False)]
    with pytest.raises(BadInput, match=r"tasks.csv: it does not say when .*valid: columns creation_time, del"):
        found.trace()


def test_the_log_begins_at_the_first_end_and_runs_are_from_start_to_end():
    found = tasks(line(times="0,1000,0"), line(times="50,100,60"), line(times="300,900,310")).trace()
    jobs = zip(found.identity.tolist(), found.submit.tolist(), found.run.tolist(), strict=True)
    assert list(jobs) == [(1, 0, 900), (2, 0, 1), (3, 200, 590)]
    assert found.expected.tolist() == [900, 1, 590]


def test_a_task_without_usable_times_is_left_out_of_the_replay_alone():
    found = tasks(
        line(),
        line(times="100,400,"),
        line(times=",400,110"),
        line(times="100,,110"),
        line(times="100,105,110"),
    )
    assert len(found.tasks) == 5
    assert found.trace().dropped == {
        "never started": 1,
        "recorded times out of order": 1,
        "unknown creation_time": 1,
        "unknown deletion_time": 1,
    }


def test_without_recorded_starts_a_task_runs_from_its_creation():
    header = HEADER.removesuffix(",scheduled_time")
    found = tasks(line(times="0,100"), line(times="150,400"), header=header).trace()
    assert (found.submit.tolist(), found.run.tolist()) == ([0, 50], [1, 250])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (line(cpu="many"), r"line 2: cpu_milli is 'many'; valid: a number from 0 to"),
        (line(cpu="-1"), r"line 2: cpu_milli is '-1'; valid"),
        (line(memory="1e300"), r"line 2: memory_mib is '1e300'; valid"),
        (line(gpus="1.5"), r"line 2: num_gpu is '1.5'; valid: a whole number from 0 to 4096"),
        (line(milli="-5"), r"line 2: gpu_milli is '-5'; valid"),
        (line(times="inf,2,1"), r"line 2: creation_time is 'inf'; valid"),
    ],
)
def test_a_wrong_value_is_named_with_its_line(wrong, message):
    with pytest.raises(BadInput, match=f"tasks.csv: {message}"):
        tasks(wrong)


def test_a_file_without_the_columns_or_without_a_task_is_an_error_of_one_line():
    with pytest.raises(BadInput, match="line 1: column num_gpu is missing; valid: cpu_milli, memory_mib, num_gpu"):
        tasks("1,2", header="cpu_milli,memory_mib")
    with pytest.raises(BadInput, match="line 1: a column is named twice"):
        tasks("1,2,3,4", header="cpu_milli,memory_mib,num_gpu,num_gpu")
    with pytest.raises(BadInput, match=r"no job can run on these nodes: 1 unknown cpu_milli"):
        tasks(line(cpu=""))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sn,cpu_milli,gpu,model\n", "line 1: column memory_mib is missing; valid: sn"),
        (NODES + "t,16000,65536,2,T4\n", "line 5: sn is 't'; valid: each name once"),
        (NODES + "x,16000,65536,2,T4|V\n", r"line 5: model is 'T4\|V'; valid: letters"),
        (NODES + "x,16000,65536,,T4\n", "line 5: gpu is ''; valid: a number from 0 to 4096"),
        (NODES + "x,16000\n", "line 5: line with another number of fields than the header; valid: sn"),
        ("sn,cpu_milli,memory_mib,gpu,model\n", "0 nodes; valid: 1 to"),
    ],
)
def test_a_wrong_node_is_named_with_its_line(text, message):
    with pytest.raises(BadInput, match=f"nodes.csv: {message}"):
        nodes(text)


def test_any_replay_reads_such_lists_and_leaves_out_what_the_nodes_cannot_hold(tmp_path):
    for name, text in (
        ("nodes.csv", NODES),
        ("tasks.csv", "\n".join((HEADER, line(), line(spec="T4"), line(gpus="9")))),
    ):
        (tmp_path / name).write_text(text)
    arrays, partitions = read_cluster(str(tmp_path / "nodes.csv"))
    records = read_records(str(tmp_path / "tasks.csv"), arrays, load_factor=0.5, partitions=partitions)
    assert arrays.total == Resources(144, 524288, gpus=gpus_of({"T4": 2, "V100M32": 8}))
    assert [first.demand.gpus for (first,) in records.choices] == [(("gpu", 1),), (("gpu", 1),)]
    assert records.allowed_nodes == [None, {"t"}]
    assert records.dropped == {"larger than any nodes": 1}
    with pytest.raises(BadInput, match="a CSV has no time limits"):
        read_records(str(tmp_path / "tasks.csv"), arrays, user_estimates=True)
