"""How nodes are connected: topology.conf and topology.yaml as Slurm's manual has them."""

import os
from pathlib import Path

import pytest

from slurm_sns.topology import FLAT, Topology, topology

TREE = """\
# three fabrics
SwitchName=IBN Nodes=n[001-002],gn1   # OPA
switchname=IBM nodes=m[1-2] LinkSpeed=4
SwitchName=IB Switches=IBM,IBG
SwitchName=IBG \\
  Nodes=g1,b1
SwitchName=TOP Switches=IBN,IB
"""
BLOCKS = "BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockName=b3 Nodes=n[5-6]\nBlockSizes=2,4\n"
TREE_YAML = """\
- topology: t
  cluster_default: true
  tree:
    switches:
      - {switch: top, children: 's[1-2]'}
      - {switch: s1, nodes: 'n[1-2]'}
      - {switch: s2, nodes: n3}
"""
BLOCK_YAML = """\
- topology: t
  block:
    block_sizes: [1]
    blocks: [{block: b, nodes: n1}, {block: c, nodes: n2}]
"""


def read(tmp_path: Path, plugin: str, **files: str) -> Topology:
    for name, text in files.items():
        (tmp_path / f"topology.{name}").write_text(text)
    return topology(tmp_path, plugin)


def test_a_tree_says_the_switches_above_each_node(tmp_path: Path) -> None:
    assert read(tmp_path, "topology/tree", conf=TREE) == Topology(
        {
            **dict.fromkeys(("n001", "n002", "gn1"), ("IBN", "TOP")),
            **dict.fromkeys(("m1", "m2"), ("IBM", "IB", "TOP")),
            **dict.fromkeys(("g1", "b1"), ("IBG", "IB", "TOP")),
        }
    )


def test_without_a_switch_its_nodes_are_not_connected(tmp_path: Path) -> None:
    conf = "SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\nSwitchName=top Switches=a,b\n"
    assert read(tmp_path, "topology/tree", conf=conf).without({"top"}) == Topology({"n1": ("a",), "n2": ("b",)})


def test_a_switch_that_joins_nothing_takes_those_above_it_with_it() -> None:
    """What is only joined by it, or through it, is not connected: also where nothing else is left."""
    topology = Topology({"n1": ("c", "middle", "top"), "n2": ("d", "middle", "top"), "n3": ("e", "top")})
    assert topology.without({"middle"}).switches == {"n1": ("c",), "n2": ("d",), "n3": ("e", "top")}
    alone = Topology({"n1": ("s",), "n2": ("s",)}).without({"s"})
    assert (alone.path("n1"), alone.path("n2"), alone.path("n9")) == (("n1",), ("n2",), ("n9",))
    assert FLAT.path("n1") == ()


def test_blocks_are_joined_by_their_sizes(tmp_path: Path) -> None:
    found = read(tmp_path, "topology/block", conf=BLOCKS).switches
    assert found["n1"] == found["n2"] == ("block 1", "2 blocks 1", "all blocks")
    assert found["n3"] == ("block 2", "2 blocks 1", "all blocks")
    assert found["n6"] == ("block 3", "2 blocks 2", "all blocks")


@pytest.mark.parametrize("plugin", ["", "topology/flat", "topology/default"])
def test_without_a_topology_all_nodes_are_connected_alike(tmp_path: Path, plugin: str) -> None:
    assert read(tmp_path, plugin) == FLAT


@pytest.mark.parametrize(
    ("yaml", "switches"),
    [
        (TREE_YAML, {"n1": ("s1", "top"), "n2": ("s1", "top"), "n3": ("s2", "top")}),
        (BLOCK_YAML, {"n1": ("block 1", "all blocks"), "n2": ("block 2", "all blocks")}),
        ("- topology: t\n  flat: true\n", {}),
    ],
)
def test_topology_yaml_goes_first(tmp_path: Path, yaml: str, switches) -> None:
    assert read(tmp_path, "topology/tree", yaml=yaml, conf=TREE) == Topology(switches)


@pytest.mark.parametrize(
    ("plugin", "files", "why"),
    [
        ("topology/3d_torus", {}, "TopologyPlugin is topology/3d_torus"),
        ("topology/tree", {}, "there is no "),
        ("topology/tree", {"conf": "SwitchName=a Switches=b\nSwitchName=b Switches=a Nodes=n1\n"}, "above itself"),
        ("topology/tree", {"conf": "SwitchName=a Nodes=n[1\n"}, "cannot be read"),
        ("topology/tree", {"conf": "SwitchName=a Nodes\n"}, "'Nodes' is not of the form Name=value"),
        ("topology/tree", {"conf": 'SwitchName="a Nodes=n1\n'}, "not of the form"),
        ("topology/block", {"conf": "BlockName=a Nodes=n1\nBlockSizes=x\n"}, "cannot be read"),
        ("topology/block", {"conf": "BlockSizes=4\n"}, "no blocks"),
        ("topology/tree", {"conf": "# nothing yet\n"}, "no switch has nodes"),
        ("topology/flat", {"yaml": "[" * 3000}, "cannot be read"),
        ("topology/flat", {"yaml": "- !!int ''\n"}, "cannot be read"),
        ("topology/flat", {"yaml": "- !!bool 'x'\n"}, "cannot be read"),
        ("topology/flat", {"yaml": "- topology: a\n  flat: true\n- topology: b\n  flat: true\n"}, "has 2 topologies"),
        ("topology/flat", {"yaml": "- topology: a\n  torus3d: {}\n"}, "neither tree, block nor flat"),
        ("topology/flat", {"yaml": "{"}, "cannot be read"),
        ("topology/flat", {"yaml": "- topology: a\n  tree: 7\n"}, "has not the form of Slurm's"),
        ("topology/flat", {"yaml": "5\n"}, "no list of topologies"),
    ],
)
def test_what_cannot_be_used_says_why_and_has_no_switches(tmp_path: Path, plugin: str, files, why: str) -> None:
    found = read(tmp_path, plugin, **files)
    assert why in found.unknown
    assert "\n" not in found.unknown
    assert not found.switches


def test_a_changed_file_is_read_again_and_an_unchanged_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "topology.conf"
    path.write_text("SwitchName=a Nodes=n1\n")
    first = topology(tmp_path, "topology/tree")
    assert topology(tmp_path, "topology/tree") is first
    path.write_text("SwitchName=b Nodes=n1\n")
    os.utime(path, ns=(1, 1))
    assert topology(tmp_path, "topology/tree").switches == {"n1": ("b",)}


def test_a_file_that_may_not_be_read_is_no_empty_one(tmp_path: Path) -> None:
    (tmp_path / "topology.conf").mkdir()
    assert "cannot be read" in topology(tmp_path, "topology/tree").unknown


def test_blanks_around_an_equals_sign_and_included_files_are_slurms_too(tmp_path: Path) -> None:
    (tmp_path / "more.conf").write_text("SwitchName = b Nodes = n2\n")
    conf = "SwitchName = a  Nodes=n1\nInclude more.conf\nSwitchName=top Switches=a,b\n"
    assert read(tmp_path, "topology/tree", conf=conf).switches == {"n1": ("a", "top"), "n2": ("b", "top")}
