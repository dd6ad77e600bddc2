"""Numbers of GPUs in CSVs, in Slurm's lists of nodes, and in dumps of sacct."""

import pytest

from slurm_sns.errors import BadInput
from slurm_sns.model import gpus_of
from slurm_sns.sim.traces.cluster_nodes import read_cluster
from slurm_sns.sim.traces.fluid_trace import WITH_GPUS, read_fluid
from slurm_sns.sim.traces.gpus import MOST_TYPES, gpus_in_gres, gpus_in_tres, on_each_node
from slurm_sns.sim.traces.read_trace import read_records

NODES = "name,cores,mem_gb,gpus\na,8,32,\nb,8,32,a100:4\nc,8,32,a100:2+1g.5gb:7\nd,8,32,2\n"
JOBS = "job_id,submit_s,run_s,cores,mem_gb,gpus\n1,0,60,1,1,\n2,0,60,1,1,2\n3,0,60,1,1,a100:3\n4,0,60,1,1,h100:1\n"
CONF = """\
NodeName=a CPUs=8 RealMemory=32000
NodeName=b CPUs=8 RealMemory=32000 Gres=gpu:a100:4,llc:11
NodeName=c CPUs=8 RealMemory=32000 Gres=gpu:a100:2,gpu:1g.5gb:7
NodeName=d CPUs=8 RealMemory=32000 Gres=gpu:2
PartitionName=p Nodes=ALL
"""
SCONTROL = """\
NodeName=a CPUTot=8 Sockets=1 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=32768 Gres=(null) Partitions=p
NodeName=b CPUTot=8 Sockets=1 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=32768 Gres=gpu:a100:4(S:0,1) Partitions=p
NodeName=c CPUTot=8 Sockets=1 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=32768 Gres=gpu:a100:2(S:0),gpu:1g.5gb:7 \
Partitions=p
NodeName=d CPUTot=8 Sockets=1 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=32768 Gres=gpu:2 Partitions=p
"""
BY_NODE = [gpus_of(each) for each in ({}, {"a100": 4}, {"a100": 2, "1g.5gb": 7}, {"": 2})]


@pytest.mark.parametrize(("name", "text"), [("nodes.csv", NODES), ("slurm.conf", CONF), ("nodes.txt", SCONTROL)])
def test_the_gpus_of_nodes_are_read_by_type(name, text, write):
    arrays, _ = read_cluster(write(name, text))

    assert arrays.gpu_names == ("gpu", "gpu:1g.5gb", "gpu:a100")
    assert [arrays.resources(column).gpus for column in arrays.capacity.T.tolist()] == BY_NODE


def test_the_gpus_of_jobs_are_on_each_of_their_nodes(write):
    arrays, _ = read_cluster(write("nodes.csv", NODES))
    trace = read_records(write("jobs.csv", JOBS), arrays)

    assert [trace.choices[kind][0].demand.gpus for kind in trace.kind.tolist()] == [
        (),
        gpus_of({"": 2}),
        gpus_of({"a100": 3}),
    ]
    assert trace.dropped == {"GPUs of a type that no node has": 1}


@pytest.mark.parametrize("cell", ["a100", "a100:4:2", "-1", "1.5", "a100:2+a100:1", "a100:2+", "4097", "a b:1"])
def test_a_bad_cell_is_named_by_line_with_what_is_valid(cell, write):
    arrays, _ = read_cluster(write("nodes.csv", NODES))
    for name, text in (("nodes.csv", NODES + f"e,8,32,{cell}\n"), ("jobs.csv", JOBS + f"5,0,60,1,1,{cell}\n")):
        path = write(name, text)
        with pytest.raises(BadInput) as raised:
            read_cluster(path) if name == "nodes.csv" else read_records(path, arrays)
        assert f"line 6: gpus is '{cell}'; valid: empty, or GPUs of a node as in 4, a100:4" in str(raised.value)
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize("gres", ["gpu:a100:many", "gpu:a100:99999", "gpu:a b:1", "gpu:a100:4:5"])
def test_gres_of_gpus_that_cannot_be_read_are_one_line_with_the_node(gres, write):
    text = SCONTROL.replace("Gres=gpu:2", f"Gres={gres.replace(' ', '/')}")
    with pytest.raises(BadInput, match=r"^.*nodes.txt: node d: Gres 'gpu:.*'; valid as gpu:4 or gpu:a100:4"):
        read_cluster(write("nodes.txt", text))


def test_more_types_than_a_planner_can_hold_are_refused(write):
    cells = [f"t{at}:1" for at in range(MOST_TYPES + 1)]
    lines = [f"n{at},8,32,{cell}\n" for at, cell in enumerate(cells)]
    with pytest.raises(BadInput, match=f"{MOST_TYPES + 1} types of GPUs; valid: at most {MOST_TYPES}"):
        read_cluster(write("nodes.csv", "name,cores,mem_gb,gpus\n" + "".join(lines)))
    assert len(read_cluster(write("nodes.csv", "name,cores,mem_gb,gpus\n" + "".join(lines[1:])))[0].names) == MOST_TYPES


@pytest.mark.parametrize(
    ("gres", "gpus"),
    [
        ("gpu", {"": 1}),
        ("gpu:a100", {"a100": 1}),
        ("llc:11,gpu:2(IDX:0-1),shard:8", {"": 2}),
        ("gpu:a:no_consume:2", {"a": 2}),
        ("gpu:a:1,gpu:a:2", {"a": 3}),
        ("", {}),
    ],
)
def test_gres_of_slurm(gres, gpus):
    assert gpus_in_gres(gres) == gpus_of(gpus)


def test_tres_of_a_job_are_divided_by_its_nodes():
    tres = {"cpu": "8", "gres/gpu": "9", "gres/gpu:a100": "4", "gres/gpu:b": "1"}

    assert gpus_in_tres(tres) == {"": 4, "a100": 4, "b": 1}
    assert on_each_node(gpus_in_tres(tres), 2) == gpus_of({"": 2, "a100": 2, "b": 1})
    assert on_each_node(gpus_in_tres({"gres/gpu:a100": "4"}), 4) == gpus_of({"a100": 1})


HEADER = "JobID|Submit|Start|State|ElapsedRaw|NNodes|AllocCPUS|ReqMem|ReqTRES|AllocTRES|Partition\n"


def sacct(*tres: tuple[str, str], nodes: int = 1) -> str:
    line = "{}|2026-11-27T20:00:00|2026-11-27T20:05:00|COMPLETED|60|{}|2|4G|cpu=2{}|cpu=2{}|p\n"
    return HEADER + "".join(line.format(at, nodes, *each) for at, each in enumerate(tres, 1))


def test_jobs_of_sacct_with_gpus_are_read_where_nodes_have_some(write):
    asked = (
        (",gres/gpu=2", ",gres/gpu:a100=2,gres/gpu=2"),  # what was asked for counts: any type
        (",gres/gpu:a100=2", ",gres/gpu:a100=2"),
        ("", ",gres/gpu=2"),
        (",gres/gpu=1,gres/shard=1", ""),
        ("", ""),
    )
    path = write("dump.psv", sacct(*asked, nodes=2))
    arrays, partitions = read_cluster(write("slurm.conf", CONF))
    trace = read_records(path, arrays, partitions=partitions)

    assert trace.identity.tolist() == [1, 2, 3, 5]
    gpus = [trace.choices[kind][0].demand.gpus for kind in trace.kind.tolist()]
    assert gpus == [gpus_of(each) for each in ({"": 1}, {"a100": 1}, {"": 1}, {})]
    assert trace.dropped == {"generic resources (GPUs and others)": 1}

    plain = write("plain.conf", "NodeName=a,b CPUs=8 RealMemory=32000\nPartitionName=p Nodes=ALL\n")
    without, partitions = read_cluster(plain)
    assert read_records(path, without, partitions=partitions).dropped == {"generic resources (GPUs and others)": 4}


def test_fluid_policies_leave_jobs_with_gpus_out_and_say_so(write):
    arrays, _ = read_cluster(write("nodes.csv", NODES))
    trace, _ = read_fluid(write("jobs.csv", JOBS), arrays)

    assert trace.identity.tolist() == [1]
    assert trace.dropped[WITH_GPUS] == 2
