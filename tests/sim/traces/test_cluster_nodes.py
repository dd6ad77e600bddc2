"""Nodes from a CSV, a slurm.conf, scontrol or sinfo: told apart by what is in the file."""

import io

import pytest

from slurm_sns.errors import BadInput
from slurm_sns.model import gpus_of
from slurm_sns.sim.traces.cluster_nodes import read_cluster, site_nodes_in, slurm_conf
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.site_partitions import EVERYWHERE
from slurm_sns.sim.traces.slurm_conf import SiteNode

CONF = """\
NodeName=n1 CPUs=8 CoresPerSocket=2 Sockets=2 ThreadsPerCore=2 RealMemory=16000 Weight=5 Feature=ib,avx
NodeName=n2 CPUs=4 RealMemory=8000 Gres=gpu:2
NodeName=n3 CPUs=4 RealMemory=8000 State=FUTURE
PartitionName=main Nodes=n[1-2]
PartitionName=debug Nodes=n1
"""
ONE_LINE = """\
NodeName=n1 Arch=x86_64 CoresPerSocket=2 CPUAlloc=0 CPUEfctv=8 CPUTot=8 CPULoad=0.01 AvailableFeatures=ib,avx \
ActiveFeatures=ib,avx Gres=(null) NodeAddr=n1 OS=Linux 5.14 #1 SMP RealMemory=16000 AllocMem=0 Sockets=2 Boards=1 \
State=IDLE ThreadsPerCore=2 Weight=5 Partitions=main,debug CfgTRES=cpu=8 Reason=see Weight=9
NodeName=n2 CoresPerSocket=4 CPUTot=4 AvailableFeatures=(null) Gres=gpu:2 RealMemory=8000 Sockets=1 State=DOWN+DRAIN \
ThreadsPerCore=1 Weight=1 Partitions=main
NodeName=n3 CoresPerSocket=4 CPUTot=4 RealMemory=8000 Sockets=1 State=FUTURE ThreadsPerCore=1 Weight=1
"""
SINFO = """\
NODELIST|CPUS|MEMORY|S:C:T|WEIGHT|AVAIL_FEATURES|PARTITION|GRES
n1|8|16000|2:2:2|5|ib,avx|main|(null)
n1|8|16000|2:2:2|5|ib,avx|debug|(null)
n2|4|8000|1:4:1|1|(null)|main*|gpu:2
"""
N1 = SiteNode("n1", 4, 16000, 5, frozenset({"ib", "avx"}), frozenset({"main", "debug"}), False, 2)
N2 = SiteNode("n2", 4, 8000, 1, frozenset(), frozenset({"main"}), True, 1, gpus_of({"": 2}))


def listed(name: str) -> tuple[SiteNode, ...] | None:
    return site_nodes_in(TraceFile.of(name))


@pytest.mark.parametrize(
    "text",
    [CONF, ONE_LINE, ONE_LINE.replace(" ", "\n   "), SINFO, "Fri Nov 27\n" + SINFO.replace("|", "  ")],
    ids=["slurm.conf", "scontrol -o", "scontrol", "sinfo", "sinfo -l"],
)
def test_the_same_nodes_are_read_from_each_of_slurms_forms(text, write):
    assert listed(write("nodes", text)) == (N1, N2)


def test_a_csv_is_read_as_ever(write):
    arrays, partitions = read_cluster(write("nodes.csv", "name,cores,mem_gb\nA,4,16\n"))
    assert (arrays.names, partitions) == (("A",), EVERYWHERE)


def test_a_list_of_nodes_comes_from_standard_input_too(monkeypatch):
    for text in ("name,cores,mem_gb\nn1,4,16\n", ONE_LINE):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert read_cluster("-")[0].names[0] == "n1"


def test_lines_that_slurm_conf_includes_count(write):
    write("nodes.conf", CONF)
    assert listed(slurm_conf(write("slurm.conf", "ClusterName=x\nInclude nodes.conf\n"))) == (N1, N2)


def test_sets_of_nodes_are_members_of_partitions(write):
    text = "NodeName=n[1-3] CPUs=4 Feature=ib\nNodeName=m1 CPUs=4\nNodeSet=s Feature=ib\nNodeSet=t Nodes=m1\n"
    found = listed(write("slurm.conf", text + "PartitionName=p Nodes=s,t\n"))
    assert [node.partitions for node in found] == [frozenset({"p"})] * 4


@pytest.mark.parametrize(
    "said",
    ["CPUs=32", "Boards=1 SocketsPerBoard=2 CoresPerSocket=16", "CoresPerSocket=32", "Sockets=2 CoresPerSocket=16"],
)
def test_cores_are_those_of_all_sockets_and_boards(said, write):
    arrays, _ = read_cluster(write("slurm.conf", f"NodeName=a {said} RealMemory=1000\nPartitionName=p Nodes=ALL\n"))
    assert arrays.capacity[0].tolist() == [32]


def test_cores_and_memory_for_slurm_itself_are_no_jobs(write):
    (node,) = listed(write("c", "NodeName=n CPUs=8 RealMemory=1000 CoreSpecCount=2 MemSpecLimit=100\n"))
    assert (node.cores, node.memory_mb) == (6, 900)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NodeName=n1 CPUs=many\n", "valid are whole numbers"),
        ("NodeName=n1 CPUs=" + "9" * 30 + "\n", "valid: 1 to"),
        ("NodeName=n1 CPUs=" + "9" * 5000 + "\n", "valid are whole numbers"),
        ("NodeName=n1 CPUs=4 RealMemory=" + "9" * 30 + "\n", "valid: 1 to"),
        ("NodeName=n1 CPUs=4 Weight=" + "9" * 30 + "\n", "has Weight"),
        ("NodeName=n[1-2 CPUs=4\n", "cannot be read"),
        ("NodeName=n[1-400000] CPUs=4\n", "no range"),
        ("NodeName=n+1 CPUs=4\n", "valid: letters"),
        ("Include nothing.conf\n", "0 nodes"),
        ("NODELIST STATE\nn1 idle\n", "try: sinfo"),
        ("NODELIST CPUS MEMORY\nn1 4\n", "fewer columns"),
        ("NodeName=n1 CPUTot=x\n", "valid are whole numbers"),
        (ONE_LINE + ONE_LINE, "twice"),
        ("", "empty"),
        ("hello\n", "valid: name,cores,mem_gb"),
    ],
)
def test_what_cannot_be_read_is_one_line(text, message, write):
    with pytest.raises(BadInput, match=message) as raised:
        read_cluster(write("nodes", text))
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400


def test_what_is_no_slurm_conf_is_refused_as_one(write):
    for text in (ONE_LINE, "name,cores,mem_gb\n"):
        with pytest.raises(BadInput, match="--nodes takes"):
            slurm_conf(write("nodes", text))
