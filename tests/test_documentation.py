"""docs/: what is made from the code is what the code says, and no class name has two meanings."""

import ast
import re
import runpy
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
MODULES = sorted([*(ROOT / "slurm_sns").rglob("*.py"), *(ROOT / "docs" / "science").rglob("*.py")])


def classes(path: Path) -> list[str]:
    return [node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)]


def test_the_page_of_modules_is_what_the_modules_say() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "develop" / "modules_page.py"))["page"]()
    assert (ROOT / "docs" / "develop" / "modules.md").read_text() == made, "run `make docs`"


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
        for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*/*.md"))
        for name in re.findall(r"`([\w/]+\.py)(?::\w+)?`", page.read_text())
        if "NAME" not in name  # of a new one, which the reader chooses
    }
    assert len(named) > 50
    assert [each for each in sorted(named) if not any(f"/{path}".endswith(f"/{each[1]}") for path in files)] == []
