"""The nodes of a site from its slurm.conf."""

import os
from pathlib import Path

import pytest

from slurm_sns.conf_text import read
from slurm_sns.errors import BadInput
from slurm_sns.model import Resources, gpus_of
from slurm_sns.policies.baselines.parameters import SlurmParameters
from slurm_sns.sim.traces.slurm_conf import SiteNode, node_arrays, site_nodes, slurm_parameters
from slurm_sns.topology import Topology

SHARED = Path(os.environ.get("SNS_SHARED", Path(__file__).parents[3].parent / "shared"))
CONF = """\
ClusterName=x
NodeName=DEFAULT RealMemory=1000 Sockets=2 CoresPerSocket=4 Weight=60 # for those below
NodeName=n[1-2] Feature=fast,OPA
nodename=g1 Gres=gpu:2 Features=V100 Weight=190
NodeName=DEFAULT CPUs=16 Sockets=1
NodeName=t1 ThreadsPerCore=2 CoresPerSocket=8
PartitionName=DEFAULT State=UP Nodes=n1
PartitionName=all Nodes=ALL
PartitionName=one
"""


def nodes(tmp_path: Path, text: str) -> tuple[SiteNode, ...]:
    path = tmp_path / "slurm.conf"
    path.write_text(text)
    return site_nodes(read(path))


def test_lines_of_defaults_count_for_the_nodes_and_partitions_below_them(tmp_path: Path) -> None:
    fast = frozenset({"fast", "OPA"})
    assert nodes(tmp_path, CONF) == (
        SiteNode("n1", 8, 1000, 60, fast, frozenset({"all", "one"}), has_gres=False),
        SiteNode("n2", 8, 1000, 60, fast, frozenset({"all"}), has_gres=False),
        SiteNode("g1", 8, 1000, 190, frozenset({"V100"}), frozenset({"all"}), True, 1, gpus_of({"": 2})),
        SiteNode("t1", 8, 1000, 60, frozenset(), frozenset({"all"}), has_gres=False, cpus_per_core=2),
    )


@pytest.mark.parametrize("text", ["NodeName=n1 Sockets=x\n", "NodeName=n1 Weight\n", "NodeName=n[1 CPUs=4\n"])
def test_what_cannot_be_read_is_one_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(Exception, match=r"n1|Weight|n\[1") as raised:
        nodes(tmp_path, text)
    assert "\n" not in str(raised.value)


def test_the_nodes_of_a_simulation_have_weights_and_switches(tmp_path: Path) -> None:
    topology = Topology({"n1": ("a",), "n2": ("a",), "g1": ("b",)})
    arrays = node_arrays(nodes(tmp_path, CONF), topology)
    assert arrays.regions.weight.tolist() == [0, 0, 1, 0]
    assert arrays.regions.switch.tolist() == [[0, 0, 1, 2]], "a node under no switch is alone"
    shown = arrays.node(2, Resources(1, 1))
    assert (shown.name, shown.weight, shown.switches) == ("g1", 1, ("0:1",))
    assert not node_arrays(nodes(tmp_path, CONF), heeds_weight=False).regions.weighs


def test_of_a_real_site_all_nodes_are_read() -> None:
    path = SHARED / "traces" / "slurm-week" / "ubhpc_slurm.conf"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    found = site_nodes(read(path))
    assert len(found) == 217
    assert sum(node.has_gres for node in found) == 10
    assert {node.cores for node in found} == {32, 40}
    assert sum("general-compute" in node.partitions for node in found) == 215


def test_a_bad_number_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="valid are whole numbers"):
        nodes(tmp_path, "NodeName=n1 RealMemory=much\n")


def test_how_slurm_schedules_is_read_in_our_units(tmp_path: Path) -> None:
    path = tmp_path / "slurm.conf"
    said = "bf_max_job_user=100,bf_window=4320,bf_interval=120,BF_max_job_test=2500,bf_continue,batch_sched_delay=0"
    path.write_text(f"SchedulerParameters={said}\nEpilog=/etc/epilog\n")
    found = slurm_parameters(read(path))
    assert (found.bf_window_s, found.bf_interval_s, found.bf_max_job_test) == (259_200, 120, 2500)
    assert (found.bf_resolution_s, found.batch_sched_delay_s, found.epilog) == (60, 0, True)


@pytest.mark.parametrize(
    "said", ["bf_interval=0", "bf_interval=-1", "bf_interval=soon", f"bf_interval={10**30}", "=", ""]
)
def test_an_odd_value_is_slurms_default(tmp_path: Path, said: str) -> None:
    path = tmp_path / "slurm.conf"
    path.write_text(f"SchedulerParameters={said}\n")
    assert slurm_parameters(read(path)) == SlurmParameters()
