"""The wheel's man pages and shell completions, made from the command line when the wheel is built."""

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Manual(BuildHookInterface):  # type: ignore[type-arg,misc] # hatchling is installed only where a wheel is built
    """Adds the pages and completions to the wheel, at their places below the installation's prefix."""

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

    def finalize(self, _version: str, _build_data: dict[str, Any], _artifact_path: str) -> None:
        """Remove the written files."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()
