"""resctrl.yaml: what the nodes of each type are to have, in agreement with gres.conf, slurm.conf, the nodes' code."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from slurm_sns.closids import closids_for_jobs
from slurm_sns.config.configuration import load
from slurm_sns.node.group_writes import SHARED, group_of
from slurm_sns.node.resctrl.groups import Groups
from slurm_sns.render.texts import texts

SOURCE = Path("/etc/slurm/sns.yaml")
GOLDEN = Path(__file__).parents[1] / "data" / "rendered"


def rendered(tmp_path: Path, *nodes: str, shared_ways: int = 2) -> dict[str, str]:
    """The texts for nodes with these resources: `llc_ways: 20`, ..."""
    entries = [f"{{names: n{place}, partitions: [main], memory_mb: 4000, {each}}}" for place, each in enumerate(nodes)]
    path = tmp_path / "sns.yaml"
    path.write_text(
        f"partitions: [main]\nnodes: [{', '.join(entries)}]\nspread_n_share: {{shared_ways: {shared_ways}}}\n"
    )
    return texts(load(path), SOURCE)


def types(tmp_path: Path, *nodes: str, shared_ways: int = 2) -> list[dict[str, Any]]:
    return yaml.safe_load(rendered(tmp_path, *nodes, shared_ways=shared_ways)["resctrl.yaml"])["node_types"]


def test_it_agrees_with_gres_conf_and_slurm_conf() -> None:
    found = texts(load(GOLDEN / "sns.yaml"), SOURCE)
    described = {each["nodes"]: each["gres"] for each in yaml.safe_load(found["resctrl.yaml"])["node_types"]}
    counted: dict[str, dict[str, int]] = {}
    for nodes, name, count in re.findall(r"^NodeName=(\S+) Name=(\S+) Count=(\d+) ", found["gres.conf"], re.MULTILINE):
        counted.setdefault(nodes, {})[name] = int(count)
    assert counted == {nodes: gres for nodes, gres in described.items() if gres}
    for nodes, gres in counted.items():
        words = ",".join(f"{name}:{count}" for name, count in gres.items())
        assert f"#     NodeName={nodes} Gres={words}\n" in found["slurm.conf"]


def test_groups_have_the_names_that_nodes_give_them(tmp_path: Path) -> None:
    (only,) = types(tmp_path, "cores: 4, llc_ways: 20")
    (tmp_path / "tree").mkdir()
    groups = Groups(tmp_path / "tree")
    groups.make(SHARED)
    groups.make(group_of(7))
    assert {path.name for path in (tmp_path / "tree").iterdir()} == {
        only["shared_group"]["name"],
        f"{only['job_groups']['prefix']}7",
    }


def test_jobs_have_what_the_shared_group_has_not(tmp_path: Path) -> None:
    (only,) = types(tmp_path, "cores: 28, llc_ways: 20, bandwidth_gbps: 118", shared_ways=3)
    assert only["shared_group"]["ways"] == 3
    assert only["job_groups"] == {
        "prefix": "sns_job",
        "most": 8,
        "least_ways": 2,
        "ways": 17,
        "bandwidth_gbps": 118,
    }


def test_as_many_closids_serve_as_many_jobs(tmp_path: Path) -> None:
    for each in types(tmp_path, "cores: 28, llc_ways: 20", "cores: 3, llc_ways: 20", "cores: 8, bandwidth_gbps: 100"):
        assert closids_for_jobs(each["closids"]) == each["job_groups"]["most"]


@pytest.mark.parametrize(
    ("nodes", "most"),
    [
        ("cores: 4, llc_ways: 20", 4),  # a job has a core
        ("cores: 64, llc_ways: 20", 9),  # and two ways
        ("cores: 64, bandwidth_gbps: 100", 64),
        ("cores: 64, llc_ways: 2", 0),
        ("cores: 64, llc_ways: 1", 0),
    ],
)
def test_a_node_has_no_more_groups_than_jobs_could_fill(tmp_path: Path, nodes: str, most: int) -> None:
    (only,) = types(tmp_path, nodes)
    assert only["job_groups"]["most"] == most


def test_a_node_has_no_more_groups_than_sns_yaml_gives_closids(tmp_path: Path) -> None:
    few, many = types(tmp_path, "cores: 28, llc_ways: 20, closids: 8", "cores: 28, llc_ways: 20, closids: 16")
    assert (few["closids"], few["job_groups"]["most"]) == (8, 6)
    assert (many["closids"], many["job_groups"]["most"]) == (11, 9)


def test_the_shared_group_has_no_more_ways_than_the_cache(tmp_path: Path) -> None:
    (only,) = types(tmp_path, "cores: 4, llc_ways: 4", shared_ways=6)
    assert (only["shared_group"]["ways"], only["job_groups"]["ways"]) == (4, 0)


def test_nodes_whose_resources_are_not_managed_need_no_resctrl(tmp_path: Path) -> None:
    assert types(tmp_path, "cores: 4") == [
        {
            "nodes": "n0",
            "mount_options": None,
            "gres": {},
            "closids": 0,
            "shared_group": None,
            "job_groups": None,
        }
    ]


@pytest.mark.parametrize("name", ["on", "null", "1e5", "0x10", "1_000", "12-30", "c[1-4],d7"])
def test_a_node_list_stays_a_text(tmp_path: Path, name: str) -> None:
    path = tmp_path / "sns.yaml"
    path.write_text(f"partitions: [m]\nnodes: [{{names: '{name}', partitions: [m], cores: 4, memory_mb: 4000}}]\n")
    (only,) = yaml.safe_load(texts(load(path), SOURCE)["resctrl.yaml"])["node_types"]
    assert only["nodes"] == name


def test_it_says_who_makes_the_groups_and_how_to_compare_it(tmp_path: Path) -> None:
    text = rendered(tmp_path, "cores: 4")["resctrl.yaml"]
    assert "The agent on a node (sns agent) makes and removes the groups" in text
    assert "sns check --node-reports DIR" in text
