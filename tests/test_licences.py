"""What a daemon loads has licences that go into a work under GPL-2.0-only; packages hold what pyproject.toml asks."""

import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import licences

CHECKOUT = Path(__file__).parents[1]
PACKAGING = CHECKOUT / "containers" / "packaging"


def closure(name: str, extra: str, seen: set[tuple[str, str]]) -> Iterator[Distribution]:
    """The installed package and all that it needs, with what this extra of it adds."""
    if (name, extra) not in seen:
        seen.add((name, extra))
        found = distribution(name)
        yield found
        for each in map(Requirement, found.requires or []):
            if each.marker is None or each.marker.evaluate({"extra": extra}):
                for wanted in each.extras or {""}:
                    yield from closure(canonicalize_name(each.name), wanted, seen)


def test_every_licence_of_the_daemons_goes_into_their_process() -> None:
    found = {each.metadata["Name"]: licences.licence(each) for each in closure("slurm-sns", "controller", set())}
    assert {"numba", "SQLAlchemy", "ClusterShell", "pydantic"} <= found.keys()
    assert {name: said for name, said in found.items() if not licences.is_compatible(said)} == {}


def test_every_licence_of_the_page_goes_into_its_process() -> None:
    found = {each.metadata["Name"]: licences.licence(each) for each in closure("slurm-sns", "web", set())}
    assert {"starlette", "uvicorn", "anyio", "h11"} <= found.keys()
    assert {name: said for name, said in found.items() if not licences.is_compatible(said)} == {}


@pytest.mark.parametrize(
    "expression",
    [
        "MIT",
        "BSD-2-Clause AND Apache-2.0 WITH LLVM-exception",
        "Apache-2.0 OR BSD-2-Clause",
        "MIT AND (Apache-2.0 OR (BSD-3-Clause))",
    ],
)
def test_licences_that_can_be_fulfilled(expression: str) -> None:
    assert licences.is_compatible(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "Apache-2.0",
        "LGPL-3.0-only",
        "GPL-3.0-or-later",
        "MIT AND Apache-2.0",
        "Apache-2.0 AND MIT OR LGPL-3.0-only",
        "(MIT OR Apache-2.0) AND LGPL-3.0-only",
        "Apache Software License",
        "MIT, see LICENSE",
        "MIT AND",
        "(MIT",
        "MIT)",
        "",
    ],
)
def test_licences_that_cannot_be_fulfilled_and_texts_that_are_none(expression: str) -> None:
    assert not licences.is_compatible(expression)


def test_a_package_with_another_licence_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, line in (
        ("good", "License-Expression: MIT"),
        ("bad", "Classifier: License :: OSI Approved :: Apache Software License"),
    ):
        folder = tmp_path / f"{name}-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: 1\n{line}\n")
    assert licences.main(str(tmp_path)) == 1
    assert capsys.readouterr().out == "wrong bad: Apache Software License\nok    good: MIT\n"
    assert licences.main(str(tmp_path / "empty")) == 1


@pytest.mark.parametrize(("lock", "extra"), [("node", ""), ("controller", "controller")])
def test_the_lock_files_fulfil_pyproject(lock: str, extra: str) -> None:
    """`make locks` renews them."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (PACKAGING / f"{lock}.lock").read_text(encoding="utf-8")
    locked = dict(re.findall(r"^([a-z0-9.-]+)==([^ ]+)", text, re.MULTILINE))
    for each in map(Requirement, project["dependencies"] + project["optional-dependencies"].get(extra, [])):
        assert locked[canonicalize_name(each.name)] in each.specifier
    entries = re.split(r"^(?=[a-z0-9.-]+==)", text, flags=re.MULTILINE)[1:]
    assert all("--hash=sha256:" in each for each in entries)
