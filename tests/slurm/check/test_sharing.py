"""`sns check`: what keeps jobs from sharing cores as slurm_sns plans it."""

from dataclasses import replace
from pathlib import Path

import pytest
from sites import small_site

from slurm_sns.conf_text import Line
from slurm_sns.config import configuration
from slurm_sns.errors import SnsError
from slurm_sns.model import Resources
from slurm_sns.scheduler.observation import ObservedNode, ObservedPartition, PreemptionRules
from slurm_sns.slurm.check import Finding, sharing
from slurm_sns.slurm.check.sharing import Qos
from slurm_sns.slurm.site import Site, SitePartition

SHARED = SitePartition(ObservedPartition("shared", preempt_mode="OFF"), "FORCE:2", memory_per_cpu_mb=2000)
MAIN = SitePartition(ObservedPartition("main", preempt_mode="OFF"))
NODES = "NodeName=f[1-2] CPUs=8 CpuBind=none"
PARTITION = 'PartitionName=shared Nodes=f[1-2] OverSubscribe=FORCE:2 TRESBillingWeights="CPU=0.5"'
CONFIG = """\
partitions: [main, shared]
nodes:
  - {names: c1, partitions: [main], cores: 8, memory_mb: 32000}
  - {names: "f[1-2]", partitions: [shared], cores: 8, memory_mb: 32000}
agents: {controller: head}
"""


def configured(tmp_path: Path, more: str) -> configuration.Config:
    path = tmp_path / "sns.yaml"
    path.write_text(CONFIG + more)
    return configuration.load(path)


@pytest.fixture
def config(tmp_path: Path) -> configuration.Config:
    return configured(tmp_path, "sharing: {partitions: [shared]}\n")


def node(name: str, *partitions: str) -> ObservedNode:
    return ObservedNode(name, frozenset(partitions), Resources(8, 32_000), Resources(0, 0))


def site(*rules: SitePartition, **more) -> Site:
    shown = {
        "options": {"SelectTypeParameters": ("CR_CORE_MEMORY",)},
        "nodes": (node("c1", "main"), node("f1", "shared"), node("f2", "shared")),
        "rules": rules or (MAIN, SHARED),
        "memory_per_cpu_mb": None,
    }
    return small_site(**{**shown, **more})


def told(config: configuration.Config, of: Site) -> list[Finding]:
    return [each for each in sharing.rules(config, of) if not each.is_well]


def told_of_files(config: configuration.Config, *lines: str, known: tuple[Qos, ...] = ()) -> list[Finding]:
    read = [Line(Path("/etc/slurm/slurm.conf"), text) for text in lines]
    return [each for each in sharing.of_files(config, read, known) if not each.is_well]


def test_of_a_site_whose_jobs_can_share_cores_nothing_is_to_be_said(config) -> None:
    assert told(config, site()) == []
    assert told_of_files(config, "TaskPlugin=task/cgroup", NODES, PARTITION, known=(Qos("normal", "", 1.0),)) == []
    assert [each for each in sharing.of_agents(config, ["c1"], ["c1"]) if not each.is_well] == []
    assert list(sharing.rules(config, site()))


@pytest.mark.parametrize(
    ("of", "found"),
    [
        (site(preemption=PreemptionRules("preempt/qos", "SUSPEND,GANG")), "PreemptMode=SUSPEND,GANG"),
        (site(preemption=PreemptionRules("", "gang")), "PreemptMode=gang"),
        (
            site(SHARED, SitePartition(ObservedPartition("main", preempt_mode="GANG,SUSPEND"))),
            "PreemptMode=GANG,SUSPEND of partition main",
        ),
        (site(options={"SelectTypeParameters": ("CR_CORE",)}), "SelectTypeParameters=CR_CORE"),
        (site(options={}), "SelectTypeParameters=unset"),
        (site(replace(SHARED, oversubscribe="FORCE:4")), "OverSubscribe=FORCE:4"),
        (site(replace(SHARED, oversubscribe="FORCE:20")), "OverSubscribe=FORCE:20"),
        (site(replace(SHARED, oversubscribe="YES:2")), "OverSubscribe=YES:2"),
        (site(replace(SHARED, oversubscribe="NO")), "OverSubscribe=NO"),
        (site(replace(SHARED, memory_per_cpu_mb=None)), "no DefMemPerCPU"),
        (site(nodes=(node("f1", "shared", "all", "plain"), node("f2", "shared"))), "f1 also in all, plain"),
        (site(nodes=(node("f1", "shared", "all"), node("f2", "all", "shared"))), "f[1-2] also in all"),
    ],
)
def test_what_keeps_jobs_from_sharing_cores_is_wrong(config, of: Site, found: str) -> None:
    (wrong,) = told(config, of)
    assert (wrong.ok, wrong.found, bool(wrong.wanted), bool(wrong.advice)) == (False, found, True, True)


def test_memory_may_be_given_by_the_cluster_or_by_node(config) -> None:
    of_cluster = site(replace(SHARED, memory_per_cpu_mb=None), memory_per_cpu_mb=2000)
    by_node = site(replace(SHARED, memory_per_cpu_mb=None, has_memory_by_node=True))
    assert told(config, of_cluster) == told(config, by_node) == []


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (("TaskPlugin=task/cgroup,task/affinity", NODES, PARTITION), "TaskPlugin=task/cgroup,task/affinity"),
        (("TaskPlugin=affinity", NODES, PARTITION), "TaskPlugin=affinity"),
        (("NodeName=f1 CpuBind=none", "NodeName=f2 CpuBind=core", PARTITION), "f2 without CpuBind=none"),
        (("NodeName=f[1-2] CPUs=8", PARTITION), "f[1-2] without CpuBind=none"),
        (("NodeName=DEFAULT CpuBind=none", "NodeName=f[1-2] two words", PARTITION), "f[1-2] without CpuBind=none"),
        (
            (NODES, "PartitionName=shared Nodes=f[1-2]"),
            "no TRESBillingWeights, and no QOS of the partition with a UsageFactor below 1",
        ),
    ],
)
def test_what_of_slurm_conf_has_a_price_is_a_warning_that_names_it(config, lines: tuple[str, ...], found: str) -> None:
    (warning,) = told_of_files(config, *lines)
    assert (warning.ok, warning.warning, warning.found, bool(warning.advice)) == (True, True, found, True)


def test_a_qos_of_the_partition_may_charge_less(config) -> None:
    line = "PartitionName=shared Nodes=f[1-2] QOS=half"
    assert told_of_files(config, NODES, line, known=(Qos("half", "", 0.5),)) == []
    assert len(told_of_files(config, NODES, line, known=(Qos("half", "", 1.0),))) == 1


def test_a_longest_time_of_a_qos_is_a_warning_because_raised_limits_are_not_checked_against_it(
    config, tmp_path: Path
) -> None:
    known = sharing.qos("normal||1.000000\nlong|7-00:00:00|1.000000\nday|1-00:00:00|0.500000\n")
    (warning,) = told_of_files(config, NODES, PARTITION, known=known)
    assert (warning.warning, warning.found) == (True, "MaxWall of QOS day, long")
    assert "up to 4 times as long" in warning.advice
    as_slurm = configured(tmp_path, "sharing: {partitions: [shared], most_extension: 1}\n")
    assert told_of_files(as_slurm, NODES, PARTITION, known=known) == []


@pytest.mark.parametrize("shown", ["normal", "normal||much", "a|b|c|d"])
def test_an_answer_of_another_form_is_one_line(shown: str) -> None:
    with pytest.raises(SnsError, match="in a form that is not known"):
        sharing.qos(shown)


@pytest.mark.parametrize(
    ("away", "confined", "found"),
    [(["c1", "f2"], [], "none on f2"), (["f1", "f2"], [], "none on f[1-2]"), ([], ["c1", "f1"], "jobs are on f1")],
)
def test_nodes_without_an_agent_and_confined_jobs_are_wrong(config, away, confined, found: str) -> None:
    (wrong,) = [each for each in sharing.of_agents(config, away, confined) if not each.is_well]
    assert (wrong.ok, wrong.found, bool(wrong.advice)) == (False, found, True)


def test_where_no_partition_shares_cores_nothing_is_looked_at(tmp_path: Path) -> None:
    config = configured(tmp_path, "")
    gang = PreemptionRules("preempt/qos", "SUSPEND,GANG")
    assert list(sharing.rules(config, site(preemption=gang))) == []
    assert list(sharing.of_files(config, [], [])) == []
    assert list(sharing.of_agents(config, ["f1"], ["f1"])) == []
