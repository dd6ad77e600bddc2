"""The wheel: installed elsewhere, without a checkout around it, `sns` finds its templates and the plugins' sources.

And its three installations, each in a fresh environment with what pip brings: a node's, a controller's, a simulator's.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Callable
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest

from slurm_sns.cli.installations import CONTROLLER, EXPORTER, PARTS, SIMULATE, TOP, WEB
from slurm_sns.cli.manual import files
from slurm_sns.config.configuration import load
from slurm_sns.render.texts import texts
from slurm_sns.store.schema import VERSION

CHECKOUT = Path(__file__).parents[1]

pytestmark = pytest.mark.long


def run(*command: object, **more: object) -> str:
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    done = subprocess.run([str(word) for word in command], text=True, check=False, **streams)
    assert done.returncode == 0, done.stdout + (done.stderr or "")
    return done.stdout


def build(checkout: Path, target: Path) -> tuple[Path, str]:
    """The wheel, and what was said while it was built."""
    # pip fetches the build backend, unless it is here already.
    offline = ["--no-build-isolation"] if find_spec("hatchling") else []
    command = [sys.executable, "-m", "pip", "wheel", "-v", "--no-deps", *offline, "--wheel-dir", target, checkout]
    # stderr has what the hook says.
    said = run(*command, stderr=subprocess.STDOUT)
    [built] = target.glob("slurm_sns-*.whl")
    return built, said


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(CHECKOUT, tmp_path_factory.mktemp("wheel"))[0]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin directory of an environment that has the wheel; what it depends on comes from ours."""
    home = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", "--without-pip", home)
    python = home / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel)
    return home / "bin"


@pytest.fixture
def environment() -> dict[str, str]:
    # Paths given this way are searched without their .pth files: a checkout installed for editing is not found.
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SNS_"))}
    return kept | {"PYTHONPATH": sysconfig.get_path("purelib")}


def test_the_installed_command_renders_what_the_checkout_renders(
    installed: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    config = tmp_path / "sns.yaml"
    config.write_bytes((CHECKOUT / "conf" / "sns.yaml").read_bytes())
    run(installed / "sns", "render", tmp_path / "out", "--config", config, cwd=tmp_path, env=environment)
    written = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "out").iterdir()}
    assert written == texts(load(config), config)


def test_it_runs_from_the_wheel_alone(installed: Path, environment: dict[str, str], tmp_path: Path) -> None:
    program = (
        "import slurm_sns, slurm_sns.package_files as p; print(slurm_sns.__file__, p.shared_path('conf/sns.yaml'))"
    )
    for line in run(installed / "python", "-c", program, cwd=tmp_path, env=environment).split():
        assert Path(line).is_relative_to(installed.parent)


def test_a_database_is_made_from_the_wheel_alone(installed: Path, environment: dict[str, str], tmp_path: Path) -> None:
    program = "from slurm_sns.store.database import open_store; open_store('sqlite:///sns.db')"
    run(installed / "python", "-c", program, cwd=tmp_path, env=environment)
    with closing(sqlite3.connect(tmp_path / "sns.db")) as database:
        assert database.execute("SELECT version FROM schema_version").fetchall() == [(VERSION,)]


@pytest.mark.parametrize("folder", ["conf", "plugins"])
def test_it_carries_every_shipped_file(wheel: Path, folder: str) -> None:
    # Not the names that begin with a dot, and not what a build in the checkout leaves behind.
    ignored = {".o", ".so", ".pyc"}
    paths = [path for path in (CHECKOUT / folder).rglob("[!.]*") if path.is_file() and path.suffix not in ignored]
    with zipfile.ZipFile(wheel) as archive:
        carried = set(archive.namelist())
    assert paths
    assert {f"slurm_sns/share/{path.relative_to(CHECKOUT)}" for path in paths} <= carried


def test_it_carries_the_claims_and_templates_of_every_page(wheel: Path) -> None:
    homes = {CHECKOUT: "slurm_sns/sim/pages", CHECKOUT / "docs" / "science": "sns_reproductions"}
    names = {
        str(path.relative_to(home))
        for home, folder in homes.items()
        for path in (home / folder).rglob("*")
        if path.suffix in {".py", ".yaml", ".j2"}
    } | {"slurm_sns/report/page.html.j2"}
    page = CHECKOUT / "slurm_sns" / "web" / "static"
    names |= {f"slurm_sns/web/static/{path.name}" for path in page.iterdir()}
    with zipfile.ZipFile(wheel) as archive:
        carried = set(archive.namelist())
    assert "slurm_sns/web/static/uPlot.LICENSE" in names
    assert {"slurm_sns/sim/pages/macros.md.j2", "sns_reproductions/idcp_tables/claims.yaml"} <= names
    assert names <= carried


def test_it_installs_the_manual_where_man_and_the_shells_look(installed: Path) -> None:
    for name, text in files((CHECKOUT / "conf" / "sns.yaml").read_text(encoding="utf-8")).items():
        if name.endswith((".1", ".5")):
            assert (installed.parent / name).read_text(encoding="utf-8") == text
        else:  # typer writes it: another version of it may have built the wheel
            assert "_SNS_COMPLETE" in (installed.parent / name).read_text(encoding="utf-8")


def test_it_carries_the_site_that_make_docs_has_made(tmp_path: Path) -> None:
    checkout, pages = tmp_path / "checkout", {"index.html": "<p>site", "_static/furo.css": "p {}"}
    for folder in ("slurm_sns", "conf", "plugins", "docs/science/sns_reproductions"):
        shutil.copytree(CHECKOUT / folder, checkout / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(CHECKOUT / name, checkout / name)
    _, said = build(checkout, tmp_path / "without")
    assert "without HTML documentation: there is no docs/_build/html; `make docs` makes it" in said

    for name, text in pages.items():
        path = checkout / "docs/_build/html" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (checkout / "docs/new.md").touch()
    os.utime(checkout / "docs/_build/html/index.html", (0, 0))
    built, said = build(checkout, tmp_path / "with")
    assert "docs/_build/html is older than docs/new.md" in said
    with zipfile.ZipFile(built) as archive:
        place = "slurm_sns-0.1.0.data/data/share/doc/slurm-sns/html"
        carried = {name.removeprefix(f"{place}/"): name for name in archive.namelist() if name.startswith(place)}
        assert {name: archive.read(full).decode() for name, full in carried.items()} == pages


def test_it_says_its_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        [metadata] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        assert "License-Expression: GPL-2.0-or-later" in archive.read(metadata).decode()
        assert any(name.endswith(".dist-info/licenses/LICENSE") for name in archive.namelist())


ALONE = ""
#: What each installation depends on itself, beside pyslurm.
DEPENDENCIES = {
    ALONE: {"clustershell", "jinja2", "pydantic", "pyyaml", "rich", "typer", "typing_extensions"},
    CONTROLLER: {"numba", "numpy", "sqlalchemy"},
    EXPORTER: {"prometheus_client"},
    SIMULATE: {"matplotlib", "numba", "numpy", "pandas", "scipy"},
    TOP: {"textual"},
    WEB: {"starlette", "uvicorn"},
}
#: No installation but those whose part they are has these.
BIG = set().union(*PARTS.values())


class Installation:
    """A fresh environment with the wheel, one part of it or none, and what these depend on."""

    def __init__(self, wheel: Path, part: str, home: Path) -> None:
        self.home = home
        self.config = home / "sns.yaml"
        run(sys.executable, "-m", "venv", "--without-pip", home)
        # Not compiled: most of it is never imported.
        options = ["install", "--quiet", "--no-compile", "--disable-pip-version-check"]
        run(
            sys.executable,
            "-m",
            "pip",
            "--python",
            home / "bin/python",
            *options,
            f"{wheel}[{part}]" if part else wheel,
        )
        self.config.write_text(
            "partitions: [main]\n"
            "nodes: [{names: c1, partitions: [main], cores: 28, memory_mb: 1000, llc_ways: 20}]\n"
            f"agents: {{run_dir: {home}/run, state_dir: {home}/state, resctrl: {home}/resctrl}}\n"
        )

    def try_run(self, command: str, *words: object) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SNS_"))}
        line = [str(self.home / "bin" / command), *map(str, words)]
        # Nothing is compiled: that takes half a minute for each kernel, and is tested elsewhere.
        kept["NUMBA_DISABLE_JIT"] = "1"
        return subprocess.run(line, env=kept, cwd=self.home, capture_output=True, text=True, check=False)

    def run(self, command: str, *words: object) -> str:
        done = self.try_run(command, *words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def packages(self) -> set[str]:
        program = "from importlib.metadata import distributions as d; print(*(each.name.lower() for each in d()))"
        return set(self.run("python", "-c", program).split())


@pytest.fixture(scope="module")
def installation(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Installation]:
    """The installation with that part, made once."""
    made: dict[str, Installation] = {}

    def of(part: str) -> Installation:
        if part not in made:
            made[part] = Installation(wheel, part, tmp_path_factory.mktemp(part or "alone"))
        return made[part]

    return of


def test_the_parts_are_those_of_pyproject() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = {ALONE: project["dependencies"], **project["optional-dependencies"]}
    names = {part: {line.partition(">=")[0].lower() for line in listed[part]} for part in DEPENDENCIES}
    assert names == DEPENDENCIES
    assert {part: set(modules) for part, modules in PARTS.items()} == {part: names[part] for part in PARTS}
    assert "slurm" not in listed  # pyslurm cannot be built where pip would build it


@pytest.mark.parametrize("part", DEPENDENCIES)
def test_an_installation_has_its_packages_and_no_others(installation: Callable[[str], Installation], part: str) -> None:
    packages = installation(part).packages()
    assert DEPENDENCIES[ALONE] | DEPENDENCIES[part] <= packages
    assert BIG & packages == set(PARTS.get(part, ()))


def test_the_exporter_runs_with_its_part_alone(installation: Callable[[str], Installation], tmp_path: Path) -> None:
    shown = installation(EXPORTER).run("sns", "exporter", "--once", "--socket", tmp_path / "none")
    assert shown.splitlines()[-1] == "slurm_sns_up 0.0"


def test_the_screen_of_sns_top_is_there_with_its_part_alone(installation: Callable[[str], Installation]) -> None:
    program = "from slurm_sns.cli.live.top.app import ClusterTop; print(ClusterTop.CSS_PATH.is_file())"
    assert installation(TOP).run("python", "-c", program).strip() == "True"


def test_the_page_starts_with_its_part_alone(installation: Callable[[str], Installation]) -> None:
    program = (
        "from slurm_sns.config.settings import WebSection\n"
        "from slurm_sns.web.application import application\n"
        "from slurm_sns.web.bounded_server import server\n"
        "server(application(print, WebSection(), user_id_of=print, admin_ids=(), log=print))\n"
    )
    installation(WEB).run("python", "-c", program)


def test_docs_say_how_many_packages_a_node_needs(installation: Callable[[str], Installation]) -> None:
    page = (CHECKOUT / "docs" / "admins" / "installations.md").read_text(encoding="utf-8")
    [row] = [line for line in page.splitlines() if line.startswith("| `slurm_sns` |")]
    # A new version of one of them may bring another small package.
    assert abs(int(row.split(" | ")[3]) - len(installation(ALONE).packages())) <= 2


class TestNode:
    """`slurm_sns` alone."""

    @pytest.fixture
    def node(self, installation: Callable[[str], Installation]) -> Installation:
        return installation(ALONE)

    def test_the_agent_tells_its_options(self, node: Installation) -> None:
        assert "--observe" in node.run("sns", "agent", "--help")

    @pytest.mark.skipif(os.geteuid() != 0, reason="an agent is root")
    def test_the_agent_starts_and_says_what_is_on_the_node(self, node: Installation) -> None:
        done = node.run("sns", "agent", "--config", node.config, "--node", "c1", "--observe", "--once", "--json")
        assert json.loads(done)["node"] == "c1"

    def test_the_configuration_is_checked_and_rendered(self, node: Installation, tmp_path: Path) -> None:
        done = node.try_run("sns", "check", "--config", node.config)
        assert (done.returncode, done.stderr) == (1, "")  # no Slurm here
        assert "rendered files in /etc/slurm/sns" in done.stdout
        node.run("sns", "render", tmp_path, "--config", node.config)
        assert (tmp_path / "slurm.conf").exists()

    def test_help_and_completion_list_all_commands(self, node: Installation) -> None:
        help_text = node.run("sns", "--help")
        assert all(command in help_text for command in ("agent", "scheduler", "simulate"))
        completed = {"_SNS_COMPLETE": "complete_bash", "COMP_WORDS": "sns st", "COMP_CWORD": "1"}
        words = [f"{name}={value}" for name, value in completed.items()]
        assert run("env", *words, node.home / "bin" / "sns").split() == ["status"]

    @pytest.mark.parametrize("command", ["status", "queue", "explain 1"])
    def test_what_asks_the_scheduler_runs(self, node: Installation, command: str) -> None:
        done = node.try_run("sns", *command.split(), "--config", node.config)
        assert done.stderr.startswith("sns: error: no scheduler answers")

    def test_profiles_of_a_file_are_listed(self, node: Installation) -> None:
        profiles = CHECKOUT / "conf" / "profiles" / "spread-n-share.yaml"
        assert "scaling" in node.run("sns", "profile", "list", "--file", profiles)

    def test_looks_of_sns_observe_are_reported(self, node: Installation, tmp_path: Path) -> None:
        (tmp_path / "looks.jsonl").write_text("no look\n")
        assert "there is no look in it" in node.try_run("sns", "report", tmp_path).stderr

    @pytest.mark.parametrize(
        ("name", "options", "part"),
        [
            ("scheduler", "", CONTROLLER),
            ("exporter", "--once", EXPORTER),
            ("top", "", TOP),
            ("web", "", WEB),
            ("simulate", "t.swf --nodes n.csv --policy max-jobs", SIMULATE),
            ("reproduce", "spread-n-share-example --out o", SIMULATE),
            ("workload", "lublin", SIMULATE),
            ("profile plot", "mg --out mg.png", SIMULATE),
        ],
    )
    def test_a_command_without_its_part_says_what_to_install(
        self, node: Installation, name: str, options: str, part: str
    ) -> None:
        done = node.try_run("sns", *name.split(), *options.split())
        [line] = done.stderr.splitlines()
        assert line.startswith(f"sns: error: sns {name} needs {', '.join(PARTS[part])}: {node.home}/bin/python")
        assert line.endswith(f" -m pip install 'slurm_sns[{part}]'")
        assert done.returncode == 1

    def test_the_watchdog_lacks_nothing(self, node: Installation) -> None:
        done = node.try_run("sns", "watchdog", "--config", node.config)
        assert "slurm" in done.stderr  # no such user, or one who is not us: the first thing that it looks at
        node.run("python", "-c", "import slurm_sns.scheduler.watchdog, slurm_sns.slurm.executor, slurm_sns.slurm.state")


def test_a_controller_plans(installation: Callable[[str], Installation]) -> None:
    program = (
        "from slurm_sns.cli.live import parts\n"
        "from slurm_sns.policies.registry import specification\n"
        "from slurm_sns.store.database import open_store\n"
        "open_store('sqlite:///sns.db')\n"
        "parts.warm_up(specification('combined').policy())\n"
    )
    installation(CONTROLLER).run("python", "-c", program)


def test_a_simulator_makes_a_page(installation: Callable[[str], Installation]) -> None:
    home = installation(SIMULATE)
    home.run("sns", "reproduce", "spread-n-share-example", "--out", "page")
    assert "Spread-n-Share" in (home.home / "page" / "README.md").read_text(encoding="utf-8")


def test_a_simulator_replays(installation: Callable[[str], Installation], tmp_path: Path) -> None:
    trace, nodes = tmp_path / "trace.swf", tmp_path / "nodes.csv"
    trace.write_text("1 0 -1 10 1 -1 1024 1 20 1024 1 1 1 1 1 1 -1 -1\n")
    nodes.write_text("name,cores,mem_gb\na,4,16\n")
    line = ["simulate", trace, "--nodes", nodes, "--policy", "fcfs", "--json"]
    assert json.loads(installation(SIMULATE).run("sns", *line))["jobs"] == 1
