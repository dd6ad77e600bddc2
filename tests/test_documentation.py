"""docs/: the site is built without a warning, its links lead somewhere, pages are short, the reference is whole."""

import ast
import re
import subprocess
import sys
from collections import Counter
from dataclasses import fields as dataclass_fields
from pathlib import Path

import pytest
from json_output import read
from prose import sentences, words
from site_pages import Site

from slurm_sns.cli.command_help import program
from slurm_sns.metric_table import METRICS
from slurm_sns.sim.results.columns import CYCLES, JOBS
from slurm_sns.sim.results.metrics import Metrics
from slurm_sns.sim.results.summary_types import SimulationSummary
from sns_docs import MAKERS, MARKER, filled
from sns_docs.configuration_page import key, settings
from sns_docs.json_page import PRINTED, schema

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MODULES = sorted(
    path for folder in ("slurm_sns", "docs/science", "docs/_ext") for path in (ROOT / folder).rglob("*.py")
)
#: The pages that people write: not those of results, which `sns reproduce` makes.
WRITTEN = sorted(path for path in DOCS.rglob("*.md") if not {"_build", "results"} & set(path.relative_to(DOCS).parts))
#: Those that are read from top to bottom: not the reference, in which people look things up.
READ = [path for path in WRITTEN if path.parent.name != "reference" and path.stem not in ("modules", "changelog")]
MOST_WORDS, MOST_WORDS_OF_SENTENCE, MOST_BYTES_OF_README = 2000, 35, 6144


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Site, str]:
    """The site and what Sphinx complained about."""
    folder = tmp_path_factory.mktemp("site")
    options = ["-q", "-W", "--keep-going", "-n", "-j", "2", "-d", str(folder / "doctrees")]
    command = [sys.executable, "-m", "sphinx", *options, str(DOCS), str(folder / "html")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return Site(folder / "html"), done.stdout + done.stderr + f"exit {done.returncode}\n" * (done.returncode != 0)


@pytest.mark.long
class TestSite:
    """What `make docs` makes."""

    def test_it_is_built_without_a_warning(self, built: tuple[Site, str]) -> None:
        assert not built[1], built[1]

    def test_every_page_is_there(self, built: tuple[Site, str]) -> None:
        pages = [path.relative_to(DOCS) for path in (*WRITTEN, *DOCS.glob("science/results/*/*.md"))]
        assert [page for page in pages if not (built[0].root / page.with_suffix(".html")).exists()] == []

    def test_every_link_leads_somewhere(self, built: tuple[Site, str]) -> None:
        assert sum(len(page.links) for page in built[0].pages.values()) > 1000
        broken = built[0].broken()
        assert not broken, "links that lead nowhere:\n" + "\n".join(broken)

    def test_it_needs_no_network(self, built: tuple[Site, str]) -> None:
        assert (built[0].root / "searchindex.js").exists()
        loaded = built[0].loaded_from_elsewhere()
        assert not loaded, "loaded from other hosts:\n" + "\n".join(loaded)

    def test_it_has_what_is_made_from_the_code(self, built: tuple[Site, str]) -> None:
        ids = {path.relative_to(built[0].root).as_posix(): page.ids for path, page in built[0].pages.items()}
        assert {"sns", "sns-status", "sns-profile-list"} <= ids["reference/cli.html"]
        assert {"matching", "scheduler", "scheduler-interval-s"} <= ids["reference/configuration.html"]
        assert "slurm-sns-scheduler" in ids["develop/modules.html"]


def test_a_broken_link_and_a_font_from_elsewhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<p id="x"><a href="#x">1</a><a href="b.html#y">2</a><a href="b.html#z">3</a><a href="c.html">4</a>'
        '<img src="d%20e.png"><a href="https://other.org/">5</a><script src="https://other.org/a.js"></script>'
    )
    (tmp_path / "b.html").write_text('<p id="y"><a href="../outside.html">6</a>')
    (tmp_path / "d e.png").touch()
    (tmp_path / "s.css").write_text("@font-face { src: url('//fonts.org/a.woff') } p { background: url(d.png) }")
    site = Site(tmp_path)
    assert site.broken() == ["a.html: b.html#z", "a.html: c.html", "b.html: ../outside.html"]
    assert site.loaded_from_elsewhere() == ["a.html: https://other.org/a.js", "s.css: //fonts.org/a.woff"]


class TestReference:
    """What is made from the code says all of it."""

    def test_every_command_and_option_is_there(self) -> None:
        page = MAKERS["cli"]()
        for command in program().all():
            assert f"\n## {' '.join(command.words)}\n" in page
            assert all(name in page for option in command.options for name in option.names)

    def test_every_setting_is_there_and_is_explained(self) -> None:
        parts = re.split(r"^### `(.+)`$", MAKERS["configuration"](), flags=re.MULTILINE)[1:]
        told = dict(zip(parts[::2], parts[1::2], strict=True))
        assert list(told) == [key(where) for where, _ in settings()]
        assert len(told) > 60
        assert [name for name, text in told.items() if len(text.strip().split("\n\n")) < 2] == []

    def test_every_module_is_there(self) -> None:
        page = MAKERS["modules"]()
        assert [path for path in MODULES if path.stem != "__init__" and f"| `{path.name}` |" not in page] == []

    def test_every_page_of_results_is_there(self) -> None:
        page = MAKERS["results"]()
        names = [path.parent.name for path in DOCS.glob("science/results/*/README.md")]
        assert len(names) > 40
        assert [each for each in names if f"[{each}]({each}/README.md)" not in page] == []

    def test_every_command_with_json_is_there(self) -> None:
        page = MAKERS["json"]()
        commands = [" ".join(each.words) for each in program().all() if each.takes("--json")]
        assert sorted(commands) == sorted({each.partition(" --")[0] for each in PRINTED})
        assert [each for each in commands if f"\n## {each}\n" not in f"\n{page}"] == []

    @pytest.mark.parametrize("command", PRINTED)
    def test_every_field_of_json_is_explained(self, command: str) -> None:
        whole = schema(PRINTED[command])
        for found in whole["$defs"].values():
            assert all("description" in each for each in found["properties"].values()), found["title"]

    def test_json_that_its_type_does_not_allow_is_found(self) -> None:
        read("sns policies", '{"policies": [], "problems": []}')
        for wrong in (
            '{"policies": []}',
            '{"policies": [], "problems": 1}',
            '{"policies": [], "problems": [], "x": 1}',
        ):
            with pytest.raises(AssertionError, match="sns policies --json is not as its type says"):
                read("sns policies", wrong)

    def test_every_metric_of_a_simulation_is_there(self) -> None:
        page = MAKERS["metrics"]()
        names = [*SimulationSummary.__annotations__, *JOBS, *CYCLES, *(each.name for each in dataclass_fields(Metrics))]
        assert [name for name in names if f"| `{name}` |" not in page] == []

    def test_every_metric_of_the_exporter_is_there(self) -> None:
        page = MAKERS["metrics"]()
        assert [each.name for each in METRICS if f"| `{each.name}` | {each.type} |" not in page] == []

    def test_each_maker_fills_one_page(self) -> None:
        pages = "\n".join(page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md"))
        assert sorted(MARKER.findall(pages)) == sorted(MAKERS)

    def test_a_marker_without_a_maker_is_an_error(self) -> None:
        with pytest.raises(KeyError, match="nothing"):
            filled("# A page\n\n<!-- made from the code: nothing -->\n")


@pytest.mark.parametrize("page", READ, ids=name)
def test_a_page_has_at_most_2000_words(page: Path) -> None:
    visible = re.sub(r"<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    count = sum(bool(re.search(r"\w", word)) for word in visible.split())
    assert count <= MOST_WORDS, f"{name(page)} has {count} words; split it, or move what is looked up into a reference"


@pytest.mark.parametrize("page", [ROOT / "README.md", *WRITTEN], ids=name)
def test_a_sentence_has_at_most_35_words(page: Path) -> None:
    found = [(words(each), each) for each in sentences(page.read_text(encoding="utf-8"))]
    too_long = [f"{count} words: {each}" for count, each in found if count > MOST_WORDS_OF_SENTENCE]
    assert not too_long, f"{name(page)} has sentences of more than {MOST_WORDS_OF_SENTENCE} words:\n" + "\n".join(
        too_long
    )


def test_the_readme_is_one_page() -> None:
    size = len((ROOT / "README.md").read_bytes())
    assert size <= MOST_BYTES_OF_README, (
        f"README.md has {size} bytes, at most {MOST_BYTES_OF_README}: the rest is in docs/"
    )


def classes(path: Path) -> list[str]:
    return [node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)]


def test_every_module_says_in_its_first_line_what_is_in_it() -> None:
    lines = {path: (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0] for path in MODULES}
    assert [path for path, line in lines.items() if not 20 <= len(line) <= 120] == []


def test_no_public_class_name_stands_in_two_modules() -> None:
    names = Counter(name for path in MODULES for name in classes(path) if not name.startswith("_"))
    assert [name for name, count in names.items() if count > 1] == []


def test_every_module_that_the_documents_name_is_there() -> None:
    files = [path.relative_to(ROOT).as_posix() for path in ROOT.glob("*/**/*.py") if ".venv" not in path.parts]
    named = {
        (page.name, name)
        for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *WRITTEN)
        for name in re.findall(r"`([\w/]+\.py)(?::\w+)?`", page.read_text())
        if "NAME" not in name  # of a new one, which the reader chooses
    }
    assert len(named) > 50
    assert [each for each in sorted(named) if not any(f"/{path}".endswith(f"/{each[1]}") for path in files)] == []
