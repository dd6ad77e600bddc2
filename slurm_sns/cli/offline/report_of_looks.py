"""The report on what `sns observe` wrote: finds its file, and makes page and JSON of it. Every installation can."""

from pathlib import Path

from slurm_sns.cli.json_types import ReportJson
from slurm_sns.cli.looks_file import LOOKS
from slurm_sns.errors import BadInput
from slurm_sns.report.document import ReportPage

#: How a file of looks begins; no dump of accounting does.
FIRST_BYTE = b"{"


def looks_file(what: Path) -> Path | None:
    """The file of looks that is meant, told by content: one in this directory, or this one. None: it is none.

    Raises:
        BadInput: it is a directory without looks.
    """
    try:
        if what.is_dir():
            if (what / LOOKS).is_file():
                return what / LOOKS
            raise BadInput(f"{what}: there is no {LOOKS} in this directory; valid: one that `sns observe` has written")
        if what.is_file():  # the bytes of a pipe come once only
            with what.open("rb") as file:
                return what if file.read(1) == FIRST_BYTE or what.name == LOOKS else None
    except OSError as problem:
        raise BadInput(f"{what}: cannot be read ({problem.strerror})") from None
    return None


def report_of_looks(path: Path) -> tuple[ReportPage, ReportJson]:
    """The page and the JSON of this file of looks.

    Raises:
        BadInput: it cannot be read, or there is no look in it.
    """
    from slurm_sns.cli.offline.looks.figures import read
    from slurm_sns.cli.offline.looks.page import page_of

    followed, values = read(path)
    page = page_of(values, followed)
    return page, {"about": "looks", "title": page.title, "summary": list(page.summary), "looks": values}
