"""The policy of docs/develop/policy.md, taken from that page, installed beside us, and used as its page says."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from slurm_sns.policies import registry

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "develop" / "policy.md").read_text()
ROOMY = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
ENTRY = re.search(r'^(roomy) = "(roomy:ROOMY)"$', PAGE, re.MULTILINE)

SNS = (sys.executable, "-c", "from slurm_sns.cli import main; main()")
NODES_YAML = "partitions: [main]\nnodes: [{names: c1, partitions: [main], cores: 8, memory_mb: 1000}]\n"
NODES = "name,cores,mem_gb\nn0,8,64\nn1,16,64\n"
JOBS = "job_id,submit_s,run_s,cores,mem_gb\n1,0,10,8,1\n2,0,10,6,1\n3,0,10,8,1\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of packages, as pip leaves it: the module of the page and the entry point of the page."""
    assert ROOMY is not None
    assert ENTRY is not None
    (tmp_path / "roomy.py").write_text(ROOMY[1])
    info = tmp_path / "slurm_sns_roomy-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: slurm-sns-roomy\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{ENTRY[1]} = {ENTRY[2]}\n")
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "jobs.csv").write_text(JOBS)
    return tmp_path


def sns(site: Path, *words: object) -> subprocess.CompletedProcess[str]:
    env = {"PYTHONPATH": f"{site}:{ROOT}", "PATH": "/usr/bin:/bin", "HOME": str(site)}
    return subprocess.run([*SNS, *map(str, words)], env=env, cwd=site, capture_output=True, text=True, check=False)


def test_sns_policies_lists_it_with_its_package(site: Path) -> None:
    done = sns(site, "policies", "--json")
    assert done.returncode == 0, done.stderr
    listed = {each["name"]: each for each in json.loads(done.stdout)["policies"]}
    assert listed["roomy"]["package"] == "slurm-sns-roomy"
    assert listed["roomy"]["runs"] == "cluster, simulator"
    assert listed["sns"]["package"] == "slurm_sns"
    assert "roomy" in sns(site, "policies").stdout


@pytest.mark.long
def test_it_simulates_with_its_parameter(site: Path) -> None:
    line = ("simulate", "jobs.csv", "--nodes", "nodes.csv", "--policy", "roomy", "--spare-cores", 0, "--out", "out")
    done = sns(site, *line)
    assert done.returncode == 0, done.stderr
    rows = (site / "out" / "jobs.csv").read_text().splitlines()[1:]
    placed = {row.split(",")[0]: row.split(",")[4] for row in rows}
    assert placed == {"1": "n1", "2": "n0", "3": "n1"}  # the most free cores first; 2 finds 8 on both
    refused = sns(site, *line[:-4], "--spare-cores", 2000)
    assert refused.returncode == 2
    assert "1024" in refused.stderr


def test_sns_yaml_has_its_section(site: Path) -> None:
    program = (
        "import sys, roomy; from pathlib import Path; from slurm_sns.config import configuration;"
        "from slurm_sns.config.settings import parameters_from;"
        "read = configuration.load(Path(sys.argv[1]));"
        "print(read.policy, parameters_from(roomy.RoomyParameters, read).spare_cores)"
    )
    (site / "sns.yaml").write_text(f"{NODES_YAML}policy: roomy\nroomy: {{spare_cores: 4}}\n")
    env = {"PYTHONPATH": f"{site}:{ROOT}", "PATH": "/usr/bin:/bin"}
    line = [sys.executable, "-c", program, str(site / "sns.yaml")]
    done = subprocess.run(line, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "roomy 4"), done.stderr


#: Specifications that no policy can be made of.
ODD = """\
from dataclasses import dataclass
from slurm_sns.policies.specification import Setting, Specification, parameter

@dataclass(frozen=True)
class Parameters:
    spare_cores: int = parameter(-1, Setting("Cores.", "odd", least=0))

ODD_NAME = Specification("Odd name", "", (), "odd_policies:Odd")
ODD_NUMBER = Specification("odd-number", "", (int,), "odd_policies:Odd")
ODD_DEFAULT = Specification("odd-default", "", (Parameters,), "odd_policies:Odd")
"""


@pytest.fixture
def untouched(mocker, tmp_path, monkeypatch) -> Iterator[None]:
    (tmp_path / "odd_policies.py").write_text(ODD)
    monkeypatch.syspath_prepend(tmp_path)
    mocker.patch.dict(registry.REGISTRY)
    mocker.patch.dict(registry.PACKAGES)
    mocker.patch.object(registry, "PROBLEMS", [])
    registry.specification.cache_clear()
    yield
    registry.specification.cache_clear()


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("max-jobs", "slurm_sns.policies.matching.parameters:MAX_JOBS", "the name is taken by slurm_sns"),
        ("absent", "no_such_package:POLICY", "cannot be loaded: No module named 'no_such_package'"),
        ("path", "pathlib:Path", "is a type; valid: a Specification"),
        ("other", "slurm_sns.policies.matching.parameters:MAX_JOBS", "its specification is named 'max-jobs'"),
        ("Odd name", "odd_policies:ODD_NAME", "its name is not valid"),
        ("odd-number", "odd_policies:ODD_NUMBER", "its parameters are not valid: "),
        (
            "odd-default",
            "odd_policies:ODD_DEFAULT",
            "not valid: spare_cores is -1; valid: 0 or more",
        ),
    ],
)
def test_an_entry_point_that_leads_to_no_policy_costs_that_policy_only(name: str, value: str, why: str) -> None:
    before = dict(registry.REGISTRY)
    registry.add_installed([EntryPoint(name, value, registry.GROUP)])
    assert before == registry.REGISTRY
    assert len(registry.PROBLEMS) == 1
    assert why in registry.PROBLEMS[0]
