"""Makes docs/develop/modules.md from the first docstring line of each module: `make docs`."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (ROOT / "slurm_sns", ROOT / "docs" / "science" / "sns_reproductions")
PAGE = ROOT / "docs" / "develop" / "modules.md"

HEAD = """\
# Modules and the words they define

Made by `make docs` from the first docstring line of each module and package; a test compares. The last column has the
public classes of the module: each name stands in one module of the project only, so that one word means one thing.
"""


def first_line(tree: ast.Module) -> str:
    """The first line of the module's docstring, without its full stop."""
    return (ast.get_docstring(tree) or "").partition("\n")[0].rstrip(".").replace("|", "\\|")


def classes(tree: ast.Module) -> list[str]:
    """The names of the module's public classes."""
    return [node.name for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]


def lines() -> Iterator[str]:
    """The page, line by line: a table for each package, the outermost first."""
    yield HEAD
    for folder in [init.parent for package in PACKAGES for init in sorted(package.rglob("__init__.py"))]:
        tree = ast.parse((folder / "__init__.py").read_text())
        yield f"## {folder.relative_to(ROOT).as_posix()}/\n\n{first_line(tree)}.\n"
        modules = [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]
        if not modules:
            continue
        yield "| module | what is in it | classes |\n|---|---|---|"
        for path in modules:
            tree = ast.parse(path.read_text())
            yield f"| `{path.name}` | {first_line(tree)} | {' '.join(f'`{name}`' for name in classes(tree))} |"
        yield ""


def page() -> str:
    """The whole page."""
    return "\n".join(lines())


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"{PAGE.relative_to(ROOT)} is written\n")
