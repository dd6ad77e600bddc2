"""`sns check`: what is missing at a site, and the lines that mend it."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from sites import small_site

from slurm_sns import conf_text
from slurm_sns.config import configuration
from slurm_sns.errors import BadInput
from slurm_sns.model import Resources, gpus_of
from slurm_sns.render.texts import texts
from slurm_sns.scheduler.observation import ObservedNode, ObservedPartition
from slurm_sns.slurm.check import files, sns_yaml
from slurm_sns.slurm.draft import draft
from slurm_sns.slurm.site import Site, SitePartition, library_of

SOURCE = Path("/etc/slurm/sns.yaml")
SITE = """\
ClusterName=site
SchedulerParameters=bf_continue,\\
bf_interval=30
PriorityFlags=CALCULATE_RUNNING
NodeName=DEFAULT State=UNKNOWN
NodeName=n[1-2] CPUs=8 RealMemory=32000 \\
  Gres=gpu:2   # the new ones
NodeName=login CPUs=2
PartitionName=batch Nodes=n[1-2] Default=YES
"""


def node(name: str, **gres: Any) -> ObservedNode:
    return ObservedNode(name, frozenset({"batch"}), Resources(8, 32000, **gres), Resources(0, 0), threads_per_core=2)


def site(*nodes: ObservedNode, **more) -> Site:
    shown = {"partitions": {"batch": True, "debug": False}, "nodes": nodes or (node("n1"), node("n2"))}
    return small_site(**{**shown, **more})


@pytest.fixture
def slurm_conf(tmp_path: Path) -> Path:
    path = tmp_path / "slurm.conf"
    path.write_text(SITE)
    return path


@pytest.fixture
def config(tmp_path: Path, slurm_conf: Path):
    """The configuration that `sns draft` makes of the site, its rendered files beside slurm.conf."""
    words = files.site_words(conf_text.read(slurm_conf), tmp_path / "sns")
    drafted = yaml.safe_load(draft(site(), words, (), llc_ways=20, bandwidth_gbps=118))
    path = tmp_path / "sns.yaml"
    path.write_text(yaml.safe_dump(drafted | {"paths": {"slurm_dir": str(tmp_path / "sns")}}))
    loaded = configuration.load(path)
    (tmp_path / "sns").mkdir()
    for name, text in texts(loaded, SOURCE).items():
        (tmp_path / "sns" / name).write_text(text)
    return loaded


def expected(config) -> dict[str, tuple[str, ...]]:
    return sns_yaml.expected_options(texts(config, SOURCE)["slurm.conf"])


def of_files(config, slurm_conf: Path):
    lines = conf_text.read(slurm_conf)
    return [
        *files.kept_words(config, lines),
        *files.slurm_conf(slurm_conf, lines, config, expected(config)),
    ]


def edit(finding) -> None:
    """As an admin does it by hand."""
    path = Path(finding.file)
    text = path.read_text()
    if finding.remove:
        assert text.count(finding.remove) == 1
        path.write_text(text.replace(finding.remove, finding.add))
    else:
        path.write_text(f"{text}{finding.add}\n")


def test_a_draft_of_the_site_is_right_about_the_site(config) -> None:
    assert [each for each in sns_yaml.description(config, site()) if not each.ok] == []
    (entry,) = config.nodes
    assert (entry.names, entry.cores, entry.threads_per_core, entry.llc_ways) == ("n[1-2]", 8, 2, 20)
    assert (config.mode, config.partitions, config.default_partition) == ("observe", ("batch",), "batch")


def test_a_draft_keeps_the_sites_own_words_for_the_options_that_are_rendered(config) -> None:
    assert config.slurm.scheduler_parameters == ("bf_continue", "bf_interval=30")
    assert config.slurm.priority_flags == ("CALCULATE_RUNNING",)


def test_a_draft_of_a_site_without_slurmdbd_has_no_gres_recorded() -> None:
    """slurmctld does not start with gres in AccountingStorageTRES then (seen, 26.05)."""
    drafted = yaml.safe_load(draft(site(keeps_accounts=False), {}, (), llc_ways=20))
    assert drafted["slurm"]["accounting_tres"] is None


def test_a_draft_of_a_partition_that_slurm_does_not_have_is_refused() -> None:
    with pytest.raises(BadInput, match="'long': Slurm has batch, debug"):
        draft(site(), {}, ["long"])
    with pytest.raises(BadInput, match="name one with --partition"):
        draft(site(partitions={"batch": False}), {}, [])


def test_the_edits_of_slurm_conf_leave_nothing_to_say(config, slurm_conf: Path) -> None:
    wrong = [each for each in of_files(config, slurm_conf) if not each.ok]
    assert [each.what.split()[0] for each in wrong] == [
        "PriorityFlags",
        "SchedulerParameters",
        "slurm.conf",
        str(slurm_conf),
    ]
    for finding in wrong:
        edit(finding)
    assert [each for each in of_files(config, slurm_conf) if not each.ok] == []
    after = [line.option for line in conf_text.read(slurm_conf) if line.option]
    names = [name for name, _ in after]
    assert (names.count("schedulerparameters"), names.count("priorityflags")) == (1, 1)
    (parameters,) = [value for name, value in after if name == "schedulerparameters"]
    assert parameters.startswith("bf_continue,bf_interval=30,disable_job_shrink,")
    (counted,) = [value for name, value in after if name == "nodename" and value.startswith("n[1-2]")]
    assert counted.split()[1:] == ["CPUs=8", "RealMemory=32000", "Gres=gpu:2,llc:20,membw:118"]


def test_the_edits_are_undone_by_rule(config, slurm_conf: Path, tmp_path: Path) -> None:
    for finding in of_files(config, slurm_conf):
        if not finding.ok:
            edit(finding)
    assert slurm_conf.read_text() != SITE
    lines = slurm_conf.read_text().splitlines(keepends=True)
    ours = (f"{tmp_path}/sns/", f"{files.OURS}\n")
    kept = [line for line in lines if ours[0] not in line and not line.endswith(ours[1])]
    assert "".join(line.removeprefix(files.UNUSED) for line in kept) == SITE


def test_words_that_sns_yaml_does_not_keep_are_named_with_the_setting(config, slurm_conf: Path) -> None:
    slurm_conf.write_text(SITE.replace("CALCULATE_RUNNING", "CALCULATE_RUNNING,MAX_TRES"))
    (finding,) = [each for each in of_files(config, slurm_conf) if each.advice and not each.ok]
    assert finding.advice == "sns.yaml, slurm: priority_flags: [CALCULATE_RUNNING, MAX_TRES]"


def test_nodes_of_one_line_with_different_amounts_are_not_guessed_at(config, slurm_conf: Path) -> None:
    slurm_conf.write_text(SITE.replace("NodeName=login", "NodeName=n[1-2],x"))
    (entry,) = config.nodes
    other = entry.model_copy(update={"names": "x", "llc_ways": 11})
    found = of_files(config.model_copy(update={"nodes": (entry, other)}), slurm_conf)
    assert [each.found for each in found if not each.ok and each.advice] == ["different amounts in sns.yaml"]


def test_what_slurmctld_does_not_run_with_yet_needs_a_reconfigure(config) -> None:
    wrong = [each for each in sns_yaml.running(config, site(), expected(config)) if not each.ok]
    assert {each.run for each in wrong} == {"scontrol reconfigure"}
    assert {each.what.split()[-1] for each in wrong} == {*expected(config), "n[1-2]"}
    runs = site(
        *(node(name, ways=20, bandwidth_gbps=118) for name in ("n1", "n2")),
        options={name: tuple(word.upper() for word in words) for name, words in expected(config).items()},
    )
    assert all(each.ok for each in sns_yaml.running(config, runs, expected(config)))


def gpu_findings(settings, *nodes: ObservedNode, **more) -> list:
    return [each for each in sns_yaml.description(settings, site(*nodes, **more)) if "GPU" in each.what]


def test_gpus_that_sns_yaml_does_not_name_are_a_warning_until_it_names_them(config) -> None:
    two = gpus_of({"a": 1, "b": 1})
    nodes = (node("n1", gpus=two), node("n2", gpus=two))
    assert gpu_findings(config) == [], "of a site without GPUs nothing is said"
    (warning,) = gpu_findings(config, *nodes)
    assert (warning.ok, warning.warning, warning.found) == (
        True,
        True,
        "n[1-2] have GPUs, which sns.yaml does not name",
    )
    entry = yaml.safe_load(draft(site(*nodes), {}, ()))["nodes"][0]
    assert entry["gpus"] == "gpu:a:1,gpu:b:1"
    named = config.model_copy(
        update={"nodes": tuple(each.model_copy(update={"gpus": entry["gpus"]}) for each in config.nodes)}
    )
    assert all(each.is_well for each in gpu_findings(named, *nodes))
    (wrong,) = (each for each in gpu_findings(named, node("n1", gpus=two), node("n2")) if not each.ok)
    assert (wrong.what, wrong.found, wrong.wanted) == ("GPUs of node n2 as sns.yaml says", "gpu:a:1,gpu:b:1", "none")
    (unread,) = (each for each in gpu_findings(named, *nodes, shows_gpus=False) if not each.ok)
    assert "plugins/libslurm/Makefile" in unread.advice


@pytest.mark.parametrize(
    ("different", "what"),
    [
        ({"user": "root"}, "SlurmUser"),
        ({"keeps_accounts": False}, "slurmdbd"),
        ({"memory_per_cpu_mb": None}, "DefMemPerCPU"),
        ({"partitions": {"other": True}}, "partition batch"),
        ({"partitions": {"batch": False}}, "default partition"),
        ({"nodes": (node("n1"),)}, "n2"),
        ({"nodes": (node("n1"), node("n2"), node("n3"))}, "n3"),
        ({"nodes": (node("n1"), ObservedNode("n2", frozenset({"batch"}), Resources(4, 32000), Resources(0, 0)))}, "n2"),
    ],
)
def test_a_site_that_sns_yaml_does_not_describe_is_found(config, different, what: str) -> None:
    wrong = [each for each in sns_yaml.description(config, site(**different)) if not each.ok]
    assert any(what in each.what for each in wrong)
    assert all(each.advice for each in wrong)


def test_a_partitions_own_default_of_memory_counts_before_the_clusters(config) -> None:
    def rule(name: str, memory_mb: int | None) -> SitePartition:
        return SitePartition(ObservedPartition(name), memory_per_cpu_mb=memory_mb)

    runs = site(memory_per_cpu_mb=None, rules=(rule("batch", 2000), rule("other", None)))
    assert all(each.ok for each in sns_yaml.description(config, runs) if "DefMemPerCPU" in each.what)
    assert runs.memory_of(["batch"]) == 2000
    assert runs.memory_of(["batch", "other"]) is None, "a job of the other one takes whole nodes' memory"
    by_node = SitePartition(ObservedPartition("batch"), has_memory_by_node=True)
    assert site(memory_per_cpu_mb=3000, rules=(by_node,)).memory_of(["batch"]) is None, "it goes before the cluster's"
    both = site(memory_per_cpu_mb=3000, rules=(rule("batch", 2000), rule("other", None)))
    assert (both.memory_of(["batch", "other"]), both.memory_of(["other"]), both.memory_of([])) == (2000, 3000, 3000)


def test_the_library_of_a_release_has_its_number() -> None:
    assert [library_of(each) for each in ("24.11.5", "25.11.2", "26.05.5")] == [42, 44, 45]
