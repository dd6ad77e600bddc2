"""Sphinx configuration of the documentation: Markdown pages (MyST), the theme Furo, nothing loaded from elsewhere."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The package that the reference is made from, the pages that `sns reproduce` knows, and our extension.
sys.path[:0] = [str(HERE.parent), str(HERE / "science"), str(HERE / "_ext")]

from slurm_sns import __version__  # noqa: E402 - the path of the checkout is known only here

project = "slurm_sns"
author = "The slurm_sns authors"
release = __version__
html_title = f"{project} {release}"

extensions = ["myst_parser", "sphinx_copybutton", "sns_docs"]
source_suffix = {".md": "markdown"}
root_doc = "index"
exclude_patterns = ["_build", "_ext", "science/sns_reproductions"]

myst_enable_extensions = ["colon_fence"]
# `page.md#a-heading` works for headings down to the fourth level.
myst_heading_anchors = 4
# Options keep their two hyphens, and what is copied from a page keeps its quotes.
smartquotes = False

html_theme = "furo"
html_static_path = ["_static"]
html_show_sphinx = False
html_show_copyright = False
# The pages themselves are in the repository.
html_copy_source = False

# A prompt in front of a command is not copied.
copybutton_prompt_text = r"\$ |# "
copybutton_prompt_is_regexp = True
