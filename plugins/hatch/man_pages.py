"""The wheel's man pages and shell completions, made when it is built, and the site that `make docs` has made."""

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: Where `make docs` puts the site, and where the wheel has it, below the installation's prefix.
SITE, INSTALLED_SITE = Path("docs/_build/html"), "share/doc/slurm-sns/html"


class Manual(BuildHookInterface):  # type: ignore[type-arg,misc] # hatchling is installed only where a wheel is built
    """Adds the pages, completions and the site to the wheel, at their places below the installation's prefix."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the files and add them to the build; an editable installation gets none."""
        if version == "editable":
            return
        root = Path(self.root)
        # `sns reproduce` lists its pages.
        sys.path[:0] = [self.root, str(root / "docs" / "science")]
        from slurm_sns.cli.manual import files  # noqa: PLC0415 - the path of the source is known only here

        self._folder = tempfile.TemporaryDirectory()
        for name, text in files((root / "conf" / "sns.yaml").read_text(encoding="utf-8")).items():
            path = Path(self._folder.name) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            build_data["shared_data"][str(path)] = name
        self._add_site(root, build_data)

    def finalize(self, _version: str, _build_data: dict[str, Any], _artifact_path: str) -> None:
        """Remove the written files."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()

    def _add_site(self, root: Path, build_data: dict[str, Any]) -> None:
        """Add the site if it was made; Sphinx is not there where pip builds a wheel, so it is not made here."""
        home = root / SITE / "index.html"
        if not home.exists():
            self.app.display_info(f"without HTML documentation: there is no {SITE}; `make docs` makes it")
            return
        build_data["shared_data"][str(home.parent)] = INSTALLED_SITE
        made_s = home.stat().st_mtime
        newer = [page for page in (root / "docs").rglob("*.md") if page.stat().st_mtime > made_s]
        if newer:
            self.app.display_warning(f"{SITE} is older than {newer[0].relative_to(root)}; `make docs` makes it again")
