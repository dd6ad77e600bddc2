"""Sphinx configuration of the documentation: Markdown pages (MyST), the theme Furo, nothing loaded from elsewhere."""

project = "slurm_sns"
author = "The slurm_sns authors"
html_title = project

extensions = ["myst_parser", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
root_doc = "index"
exclude_patterns = ["_build", "_ext", "science/sns_reproductions"]

myst_enable_extensions = ["colon_fence"]
# `page.md#a-heading` works for headings down to the fourth level.
myst_heading_anchors = 4

html_theme = "furo"
html_static_path = ["_static"]
html_show_sphinx = False
html_show_copyright = False
# The pages themselves are in the repository.
html_copy_source = False

# A prompt in front of a command is not copied.
copybutton_prompt_text = r"\$ |# "
copybutton_prompt_is_regexp = True
