"""The wheel: installed elsewhere, without a checkout around it, `sns` finds its templates and the plugins' sources."""

import os
import sqlite3
import subprocess
import sys
import sysconfig
import zipfile
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest

from slurm_sns.cli.manual import files
from slurm_sns.config import load
from slurm_sns.render.texts import texts
from slurm_sns.store.schema import VERSION

CHECKOUT = Path(__file__).parents[1]


def run(*command: object, **more: object) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("wheel")
    # pip fetches the build backend, unless it is here already.
    offline = ["--no-build-isolation"] if find_spec("hatchling") else []
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", *offline, "--wheel-dir", target, CHECKOUT)
    [built] = target.glob("slurm_sns-*.whl")
    return built


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


def test_it_installs_the_manual_where_man_and_the_shells_look(installed: Path) -> None:
    for name, text in files((CHECKOUT / "conf" / "sns.yaml").read_text(encoding="utf-8")).items():
        if name.endswith((".1", ".5")):
            assert (installed.parent / name).read_text(encoding="utf-8") == text
        else:  # typer writes it: another version of it may have built the wheel
            assert "_SNS_COMPLETE" in (installed.parent / name).read_text(encoding="utf-8")


def test_it_says_its_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        [metadata] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        assert "License-Expression: GPL-2.0-or-later" in archive.read(metadata).decode()
        assert any(name.endswith(".dist-info/licenses/LICENSE") for name in archive.namelist())
