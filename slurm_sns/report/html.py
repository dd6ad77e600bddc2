"""A report as one HTML file that loads nothing: no script, no font, no image. Equal pages are equal bytes.

Every text of the page is hostile: it is escaped, and control characters are replaced. A policy in the file's head
forbids a browser to run or load anything, should a text get through all the same.
"""

from pathlib import Path
from typing import Any

import jinja2

from slurm_sns.log import printable
from slurm_sns.report.document import ReportPage
from slurm_sns.report.svg import drawn

TEMPLATE = "page.html.j2"


def as_html(page: ReportPage) -> str:
    """The whole file. It is readable on a phone, printed, in light and in dark mode, and without colours."""
    language = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_harmless,
    )
    return language.get_template(TEMPLATE).render(page=page, drawn=drawn)


def _harmless(value: Any) -> Any:
    """A text without control characters; what a macro has made of texts is left as it is."""
    return printable(value) if isinstance(value, str) and not hasattr(value, "__html__") else value
