"""`sns check`: what of the site's own configuration keeps slurm_sns from placing jobs, and what of it has a price."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import recorded
import yaml
from sites import small_site

from slurm_sns import conf_text
from slurm_sns.config import configuration
from slurm_sns.model import Resources
from slurm_sns.scheduler.observation import ObservedNode, ObservedPartition, PreemptionRules
from slurm_sns.slurm import site as reading
from slurm_sns.slurm.check import Finding, site_settings, sns_yaml
from slurm_sns.slurm.draft import draft
from slurm_sns.slurm.site import Site, SitePartition, federation_of
from slurm_sns.topology import Topology

BATCH = SitePartition(ObservedPartition("batch", preempt_mode="REQUEUE"))
URGENT = SitePartition(ObservedPartition("urgent", tier=10, preempt_mode="REQUEUE"))
PREEMPTING = PreemptionRules("preempt/partition_prio", "REQUEUE")
SHARING = """\
partitions: [batch]
nodes: [{names: 'n[1-2]', partitions: [batch], cores: 8, memory_mb: 32000}]
agents: {controller: head}
sharing: {partitions: [batch]}
"""


def node(name: str) -> ObservedNode:
    """Eight cores, 16 CPUs."""
    has = Resources(8, 32_000)
    return ObservedNode(name, frozenset({"batch", "urgent"}), has, Resources(0, 0), threads_per_core=2)


def site(*rules: SitePartition, **more) -> Site:
    shown = {
        "options": {"SchedulerParameters": ("bf_continue", "bf_interval=30")},
        "partitions": {"batch": True, "urgent": False},
        "nodes": (node("n1"), node("n2")),
        "rules": rules or (BATCH,),
    }
    return small_site(**{**shown, **more})


@pytest.fixture
def config(tmp_path: Path):
    path = tmp_path / "sns.yaml"
    path.write_text(
        "mode: observe\npolicy: max-jobs\npartitions: [batch, urgent]\ndefault_partition: batch\n"
        "nodes: [{names: 'n[1-2]', partitions: [batch, urgent], cores: 8, memory_mb: 32000}]\n"
        "slurm: {memory_per_cpu_mb: 2000}\n"
    )
    return configuration.load(path)


def told(config, of: Site) -> list[Finding]:
    """What is not simply right."""
    return [each for each in site_settings.rules(config, of) if not each.is_well]


def test_of_a_site_that_lets_jobs_share_nodes_nothing_is_to_be_said(config) -> None:
    assert told(config, site(BATCH, URGENT)) == []
    assert told(config, site(replace(BATCH, oversubscribe="YES:4", cpus_per_node=16, cpus_per_socket=16))) == []
    assert told(config, site(replace(BATCH, oversubscribe="EXCLUSIVE"))) == []


def test_a_partition_that_shares_cores_forces_it(tmp_path: Path) -> None:
    path = tmp_path / "sns.yaml"
    path.write_text(SHARING)
    assert [each.what for each in told(configuration.load(path), site(replace(BATCH, oversubscribe="FORCE:2")))] == []


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ({"oversubscribe": "FORCE:4"}, "OverSubscribe=FORCE:4"),
        ({"is_user_exclusive": True}, "ExclusiveUser=YES"),
        ({"cpus_per_node": 8}, "MaxCPUsPerNode=8"),
        ({"cpus_per_socket": 4}, "MaxCPUsPerSocket=4"),
        ({"is_user_exclusive": True, "cpus_per_node": 8}, "ExclusiveUser=YES, MaxCPUsPerNode=8"),
    ],
)
def test_a_partition_whose_jobs_do_not_share_nodes_or_not_all_cpus_is_not_to_be_managed(config, rule, found) -> None:
    (wrong,) = told(config, site(replace(BATCH, **rule)))
    assert (wrong.ok, wrong.found) == (False, found)
    assert wrong.advice.startswith("sns.yaml: leave batch out of partitions")


def test_what_a_partition_that_is_not_managed_does_is_its_own_affair(config) -> None:
    other = SitePartition(ObservedPartition("other"), "FORCE", is_user_exclusive=True)
    assert told(config, site(BATCH, other)) == []


def test_a_cluster_of_a_federation_is_not_to_be_managed(config) -> None:
    (wrong,) = told(config, site(federation="fed"))
    assert (wrong.ok, wrong.found, "clusters-=" in wrong.advice) == (False, "fed", True)
    shown = "Federation: fed\nSelf:       mini:10.0.0.1:6817 ID:1 FedState:ACTIVE Features:\n"
    assert (federation_of(shown), federation_of(""), federation_of("\n")) == ("fed", "", "")


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({"priority_type": "priority/basic"}, "priority/basic"),
        ({"site_factor_plugin": "site_factor/own"}, "priority/multifactor, site_factor/own"),
        ({"priority_weights": 1_900_000_001}, "PriorityWeight* of 1900000001 in all"),
        ({"options": {"SchedulerParameters": ("extra_constraints",)}}, "SchedulerParameters=extra_constraints"),
        (
            {"options": {"SlurmctldParameters": ("enable_expedited_requeue",)}},
            "SlurmctldParameters=enable_expedited_requeue",
        ),
        (
            {"admin_comments": ("sns:2 g=1", "site: ok;sns:2 free=x", "\x1b[31mmine;", "sns:2 g=?")},
            "2 waiting or running jobs have other text in it, such as 'site: ok', 1 have a record that cannot be read",
        ),
        ({"options": {"SchedulerParameters": ("bf_interval=600",)}}, "bf_interval=600"),
        ({"preemption": PreemptionRules("preempt/qos", "REQUEUE")}, "those whose QOS may"),
        ({"preemption": PreemptionRules("preempt/qos", "WITHIN,REQUEUE")}, "PreemptMode is WITHIN,REQUEUE"),
        (
            {"preemption": PREEMPTING, "rules": (BATCH, URGENT)},
            "partition urgent has a higher PriorityTier than batch on the same nodes",
        ),
    ],
)
def test_what_has_a_price_is_a_warning_that_names_it(config, more, found: str) -> None:
    (warning,) = told(config, site(**more))
    assert (warning.ok, warning.warning, warning.found, bool(warning.advice)) == (True, True, found, True)


SHARED = site_settings.SharedByControllers("a", True, "nfs4", has_file_store=False)


def of_controllers(path: Path, text: str, shared: site_settings.SharedByControllers) -> list[Finding]:
    (path / "slurm.conf").write_text(text)
    return list(site_settings.controllers(conf_text.read(path / "slurm.conf"), shared))


def test_one_controller_needs_to_share_nothing(tmp_path: Path) -> None:
    local = site_settings.SharedByControllers("a", True, "ext4", has_file_store=True)
    assert of_controllers(tmp_path, "ClusterName=site\nSlurmctldHost=a\n", local) == []


TWO = "ClusterName=site\nSlurmctldHost=a\nslurmctldhost=b(10.0.0.2)\n"


def test_several_controllers_that_share_all_are_well(tmp_path: Path) -> None:
    found = of_controllers(tmp_path, TWO, SHARED)
    assert len(found) == 3
    assert all(each.is_well for each in found)


@pytest.mark.parametrize(
    ("differs", "ok", "said"),
    [
        ({"is_one_of_them": False, "host_name": "login"}, False, "login"),
        ({"file_system": "xfs"}, True, "xfs"),
        ({"has_file_store": True}, True, "SQLite on this machine"),
    ],
)
def test_what_several_controllers_do_not_share_is_named(tmp_path: Path, differs, ok: bool, said: str) -> None:
    (found,) = [each for each in of_controllers(tmp_path, TWO, SHARED._replace(**differs)) if not each.is_well]
    assert (found.ok, found.found, bool(found.advice)) == (ok, said, True)


def test_the_sites_rules_are_read_of_the_running_slurm(pyslurm, mocker) -> None:
    mocker.patch("slurm_sns.slurm.site.pyslurm", return_value=pyslurm)
    mocker.patch("slurm_sns.slurm.site._library", return_value=45)
    mocker.patch("slurm_sns.slurm.site.run", return_value="")
    pyslurm.__dict__.update(__file__="/nowhere/pyslurm.py", __version__="25.11.2")
    weights = {f"priority_weight_{name}": 1 for name in ("age", "assoc", "fair_share", "job_size", "partition", "qos")}
    pyslurm.slurmctld.Config.load.return_value = recorded_config(**weights, priority_weight_tres={"cpu": "1000"})
    rules = {"oversubscribe": "YES:4", "is_user_exclusive": True, "max_cpus_per_node": 8}
    rules |= {"default_memory_per_cpu": 2800}
    shown = recorded.partition(**rules, max_cpus_per_socket="UNLIMITED", is_default=True)
    pyslurm.Partitions.load.return_value = {"main": shown}
    pyslurm.Nodes.load.return_value = {}
    jobs = [recorded.job(admin_comment="sns:2 g=1"), recorded.job(), recorded.job(admin_comment="x", state="COMPLETED")]
    pyslurm.Jobs.load.return_value = dict(enumerate(jobs))
    seen = reading.read_site()
    assert seen.admin_comments == ("sns:2 g=1",)
    assert [(each.oversubscribe, each.is_user_exclusive, each.cpus_per_node) for each in seen.rules] == [
        ("YES:4", True, 8)
    ]
    assert (seen.rules[0].cpus_per_socket, seen.priority_weights) == (None, 1006)
    assert (seen.memory_per_cpu_mb, seen.memory_of(["main"])) == (None, 2800)
    assert (seen.has_boost, seen.options["SlurmctldParameters"]) == (True, ("idle_on_node_suspend", "x=1"))
    assert seen.preemption == PreemptionRules("preempt/qos", "REQUEUE")
    assert (seen.min_job_age_s, seen.requeues_jobs) == (300, True)
    assert reading.requeue_s(10, {"bf_continue": True, "requeue_delay": 5}, "26.05.5") == 15
    assert reading.requeue_s(10, {"requeue_delay": 5}, "24.11.5") == 130, "24.11 does not know the option"


def recorded_config(**fields) -> SimpleNamespace:
    """What is read of pyslurm.slurmctld.Config."""
    lists = ("job_submit_plugins", "gres_types", "accounting_storage_tres", "priority_flags", "scheduler_parameters")
    lists += ("select_type_parameters", "topology_plugin")
    others = ("default_memory_per_cpu", "plugin_dirs", "plugin_stack_config", "accounting_storage_type")
    empty = dict.fromkeys((*lists, *others, "priority_site_factor_plugin"))
    told = {"priority_type": "priority/multifactor", "slurmctld_parameters": {"idle_on_node_suspend": True, "x": 1}}
    told |= {"version": "26.05.5", "slurm_user_name": "slurm", "preempt_type": "preempt/qos", "preempt_mode": "REQUEUE"}
    told |= {"min_job_age": 300, "job_requeue": 1}
    return SimpleNamespace(**{**empty, **told, **fields})


TREE = Topology({"n1": ("a", "top"), "n2": ("b", "top")})


@pytest.mark.parametrize(
    ("topology", "never_across", "what", "found"),
    [
        (Topology(unknown="TopologyPlugin is topology/3d_torus"), [], "several nodes", "topology/3d_torus"),
        (Topology({"n1": ("a",)}), [], "every node is under a switch", "n2 under none"),
        (TREE, ["tip"], "never_across", "tip"),
        (Topology(), ["top"], "never_across", "top"),
    ],
)
def test_a_topology_that_jobs_cannot_be_laid_by_is_told(config, topology, never_across, what, found) -> None:
    scheduler = replace_setting(config, never_across=tuple(never_across))
    (wrong,) = told(scheduler, site(topology=topology))
    assert what in wrong.what
    assert found in wrong.found
    assert wrong.ok != bool(never_across)


def replace_setting(config, **changed):
    return config.model_copy(update={"scheduler": config.scheduler.model_copy(update=changed)})


def test_a_topology_that_jobs_are_laid_by_needs_no_word(config) -> None:
    assert told(replace_setting(config, never_across=("top",)), site(topology=TREE)) == []


def test_jobs_whose_cores_lie_on_one_socket_are_told_where_ways_or_bandwidth_are_planned(config) -> None:
    options = {"SchedulerParameters": (), "SelectTypeParameters": ("CR_CORE_MEMORY", "CR_CORE_DEFAULT_DIST_BLOCK")}
    assert told(config, site(options=options)) == []
    with_ways = config.model_copy(update={"nodes": (config.nodes[0].model_copy(update={"llc_ways": 11}),)})
    (warned,) = told(with_ways, site(options=options))
    assert (warned.ok, warned.warning, warned.found) == (True, True, "SelectTypeParameters=CR_CORE_DEFAULT_DIST_BLOCK")


def test_of_a_real_sites_configuration_its_admins_are_told_one_thing(tmp_path: Path) -> None:
    """UB-HPC's slurm.conf, as slurmctld shows it: memory by partition, blocks of cores, weights, three fabrics."""
    fabrics = {"n": ("IBN", "TOP"), "m": ("IBM", "TOP"), "g": ("IBG", "TOP"), "b": ("IBG", "TOP")}
    kinds = {
        "n": (87, 32, 187_000, 60),
        "m": (96, 40, 187_000, 70),
        "b": (24, 40, 754_000, 160),
        "g": (8, 40, 187_000, 190),
    }
    partition = "general-compute"
    nodes = {
        f"{kind}{at:03}": ObservedNode(
            f"{kind}{at:03}",
            frozenset({partition}),
            Resources(cores, memory),
            Resources(0, 0),
            weight=weight,
            sockets=2,
        )
        for kind, (count, cores, memory, weight) in kinds.items()
        for at in range(1, count + 1)
    }
    debug = replace(nodes["g001"], name="gn001", partitions=frozenset({"debug"}))
    words = ("bf_max_job_user=100", "bf_window=4320", "bf_interval=120", "bf_max_job_test=2500", "bf_continue")
    hpc = small_site(
        memory_per_cpu_mb=None,
        options={
            "SchedulerParameters": (*words, "default_queue_depth=2500", "max_script_size=1048576"),
            "SelectTypeParameters": ("CR_CORE_MEMORY", "CR_CORE_DEFAULT_DIST_BLOCK"),
        },
        partitions={partition: True, "debug": False},
        nodes=(*nodes.values(), debug),
        rules=tuple(
            SitePartition(ObservedPartition(name, tier=tier, preempt_mode="REQUEUE"), memory_per_cpu_mb=2800)
            for name, tier in ((partition, 100), ("debug", 700))
        ),
        preemption=PREEMPTING,
        priority_weights=1_470_000,
        topology=Topology({name: fabrics[name[0]] for name in nodes}),
    )
    drafted = yaml.safe_load(draft(hpc, {"SchedulerParameters": words}, ()))
    assert drafted["slurm"]["memory_per_cpu_mb"] == 2800
    assert (drafted["matching"], drafted["partitions"]) == ({"queue_order": "slurm"}, [partition])
    path = tmp_path / "sns.yaml"
    path.write_text(yaml.safe_dump(drafted))
    config = configuration.load(path)
    assert [each for each in sns_yaml.description(config, hpc) if not each.is_well] == []
    (slow,) = told(config, hpc)
    assert (slow.ok, slow.warning, slow.found) == (True, True, "bf_interval=120")
    with_ways = config.model_copy(update={"nodes": (config.nodes[0].model_copy(update={"llc_ways": 11}),)})
    (_, cores) = told(with_ways, hpc)
    assert cores.found == "SelectTypeParameters=CR_CORE_DEFAULT_DIST_BLOCK", "where jobs share caches"


def with_restarts(tmp_path: Path):
    path = tmp_path / "restarts.yaml"
    path.write_text((tmp_path / "sns.yaml").read_text() + "rescheduling: {restart: propose}\n")
    return configuration.load(path)


SUSPENDS = PreemptionRules("preempt/partition_prio", "GANG,SUSPEND")


def test_restarts_need_preemption_that_suspends_jobs_that_slurm_may_requeue_and_still_shows(config, tmp_path) -> None:
    asked = with_restarts(tmp_path)
    well = {"preemption": SUSPENDS}
    assert told(asked, site(BATCH, **well)) == []
    assert [each.found for each in told(asked, site(BATCH, **{**well, "min_job_age_s": 2}))] == ["MinJobAge=2"]
    assert [each.found for each in told(asked, site(BATCH, **{**well, "requeues_jobs": False}))] == ["JobRequeue=0"]
    assert [each.found for each in told(asked, site(BATCH))] == ["OFF"]
    assert told(config, site(BATCH, requeues_jobs=False)) == [], "they are off"


@pytest.mark.parametrize(
    ("version", "ok", "warns"),
    [
        *(("23.11.4", False, False), ("24.05.1", False, False), ("24.11.5", True, False)),
        *(("26.05.5", True, False), ("26.11.0", True, True), ("27.05.0-0rc1", True, True), ("", False, False)),
    ],
)
def test_a_release_that_is_too_old_is_wrong_and_one_that_nobody_has_tried_is_a_warning(
    version: str, ok: bool, warns: bool
) -> None:
    finding = site_settings.release(version)
    assert (finding.ok, finding.warning, finding.wanted) == (ok, warns, "24.11 to 26.05")
