"""The list of modules, made from the first docstring line of each module."""

import ast
from collections.abc import Iterator

from sns_docs.places import ROOT

PACKAGES = (
    ROOT / "slurm_sns",
    ROOT / "docs" / "science" / "sns_reproductions",
    ROOT / "docs" / "_ext" / "sns_docs",
)


def first_line(tree: ast.Module) -> str:
    """The first line of the module's docstring, without its full stop."""
    return (ast.get_docstring(tree) or "").partition("\n")[0].rstrip(".").replace("|", "\\|")


def classes(tree: ast.Module) -> list[str]:
    """The names of the module's public classes."""
    return [node.name for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]


def text() -> str:
    """A table for each package, the outermost first."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    for folder in [init.parent for package in PACKAGES for init in sorted(package.rglob("__init__.py"))]:
        tree = ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))
        yield f"## {folder.relative_to(ROOT).as_posix()}/\n\n{first_line(tree)}.\n"
        modules = [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]
        if not modules:
            continue
        yield "| module | what is in it | classes |\n|---|---|---|"
        for path in modules:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            yield f"| `{path.name}` | {first_line(tree)} | {' '.join(f'`{name}`' for name in classes(tree))} |"
        yield ""
