"""`sns check`: Slurm's settings that keep agents from knowing a job's processes and cores, or that drain nodes."""

from pathlib import Path

import pytest

from slurm_sns.conf_text import Line
from slurm_sns.config import configuration
from slurm_sns.render.texts import texts
from slurm_sns.slurm.check import Finding, files, site_settings, sns_yaml

PATH = Path("/etc/slurm/slurm.conf")
GOOD = ("ProctrackType=proctrack/cgroup", "TaskPlugin=task/cgroup,task/affinity")
PATIENT = "BatchStartTimeout=60"


def told(*slurm_conf: str, cgroup_conf: str = "ConstrainCores=yes", patience: str = PATIENT) -> list[Finding]:
    """What is not simply right."""
    lines = [Line(PATH, text) for text in (*slurm_conf, patience) if text]
    return [each for each in site_settings.for_agents(PATH, lines, [Line(PATH, cgroup_conf)]) if not each.is_well]


@pytest.mark.parametrize(
    "lines",
    [GOOD, GOOD[1:], ("tasKPlugin=cgroup",), (*GOOD, "PrologEpilogTimeout=60"), (*GOOD, "PrologTimeout=15")],
)
def test_nothing_is_said_of_a_site_that_binds_jobs_to_cores(lines: tuple[str, ...]) -> None:
    assert told(*lines) == []


@pytest.mark.parametrize("name", ["PrologTimeout", "EpilogTimeout", "PrologEpilogTimeout"])
def test_a_timeout_that_would_drain_a_node_with_a_hanging_agent_is_wrong(name: str) -> None:
    (wrong,) = told(*GOOD, f"{name}=14")
    assert (wrong.ok, wrong.found) == (False, f"{name}=14")
    assert wrong.advice == f"slurm.conf: {name}=14 without them, or 15 or more"


@pytest.mark.parametrize(
    ("patience", "found", "remove"),
    [("", "BatchStartTimeout=10", ""), ("BatchStartTimeout=59  # ours", "BatchStartTimeout=59", "same")],
)
def test_a_short_wait_for_batch_jobs_would_requeue_them(patience: str, found: str, remove: str) -> None:
    (wrong,) = told(*GOOD, patience=patience)
    assert (wrong.ok, wrong.found, wrong.file) == (False, found, str(PATH))
    assert wrong.remove == (patience if remove else "")
    *commented, added = wrong.add.splitlines()
    assert commented == ([f"#sns# {patience}"] if remove else [])
    assert added == "BatchStartTimeout=60 # sns", "the rule that undoes our edits finds it"


@pytest.mark.parametrize(
    ("plugins", "constrains", "found"),
    [
        ("task/affinity", "yes", "TaskPlugin=task/affinity, ConstrainCores=yes"),
        ("task/cgroup,task/affinity", "no", "TaskPlugin=task/cgroup,task/affinity, ConstrainCores=no"),
        ("task/none", "no", "TaskPlugin=task/none, ConstrainCores=no"),
    ],
)
def test_jobs_that_are_not_bound_to_cores_cost_ways_in_every_cache(plugins: str, constrains: str, found: str) -> None:
    (warning,) = told(GOOD[0], f"TaskPlugin={plugins}", cgroup_conf=f"ConstrainCores={constrains}")
    assert (warning.ok, warning.warning, warning.found) == (True, True, found)
    assert "its ways count in each cache" in warning.advice


def test_where_jobs_share_the_cores_of_all_nodes_none_is_to_stay_on_its_own() -> None:
    lines = [Line(PATH, text) for text in (GOOD[0], "TaskPlugin=task/cgroup", PATIENT)]
    unbound = [Line(PATH, "ConstrainCores=no")]
    assert [each for each in site_settings.for_agents(PATH, lines, unbound, all_share=True) if not each.is_well] == []


def test_processes_that_slurm_follows_by_their_parents_are_a_warning() -> None:
    (warning,) = told("ProctrackType=proctrack/linuxproc", GOOD[1])
    assert (warning.ok, warning.found) == (True, "ProctrackType=proctrack/linuxproc")


def configured(tmp_path: Path, more: str) -> configuration.Config:
    path = tmp_path / "sns.yaml"
    path.write_text(f"partitions: [m]\nnodes: [{{names: c1, partitions: [m], cores: 4, memory_mb: 4000}}]\n{more}")
    return configuration.load(path)


FLAGS = (Line(PATH, "PrologFlags=X11"),)


def test_the_sites_prolog_flags_stay(tmp_path: Path) -> None:
    config = configured(tmp_path, "agents: {controller: ctl}\n")
    expected = sns_yaml.expected_options(texts(config, tmp_path / "sns.yaml")["slurm.conf"])
    assert list(files.kept_words(config, FLAGS)) == []
    (include,) = [each for each in files.slurm_conf(PATH, FLAGS, config, expected) if not each.ok]
    assert include.add.startswith("Include ")
