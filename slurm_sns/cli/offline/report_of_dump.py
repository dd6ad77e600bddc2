"""The report from a dump of accounting: what slurm_sns would gain at a site, before anything is installed."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from slurm_sns.cli.installations import SIMULATE, needs
from slurm_sns.cli.offline.simulate import file_of_nodes
from slurm_sns.cli.progress_bar import progress_bar
from slurm_sns.cli.termination import terminated_as_interrupted

if TYPE_CHECKING:
    from slurm_sns.cli.json_types import ReportJson
    from slurm_sns.report.document import ReportPage


class DumpOptions(TypedDict, total=False):
    """The options of `sns report` that only a dump has, as far as they were given."""

    slurm_conf: Path
    nodes: Path
    policy: str
    partition: Sequence[str]
    weeks: int
    seed: int
    jobs: int


def report_of_dump(dump: str, options: DumpOptions) -> "tuple[ReportPage, ReportJson]":
    """The report on the dump of this name, `-` for standard input.

    Raises:
        BadInput: it cannot be read, or is no dump of sacct; the message says what is valid.
        SnsError: the part `simulate` is not installed.
    """
    needs("sns report of a dump", SIMULATE)
    from slurm_sns.sim.pages.running import WorkerProcesses
    from slurm_sns.sim.site_report.page import page_of
    from slurm_sns.sim.site_report.replays import MAX_JOBS
    from slurm_sns.sim.site_report.report_values import values_of
    from slurm_sns.sim.site_report.site_report import ReportRequest, read_record, site_report
    from slurm_sns.sim.traces.files import STANDARD_INPUT, TraceFile

    if not Path(dump).exists() and dump != STANDARD_INPUT:
        TraceFile.of(dump)  # a name that no file has is told first
    nodes = file_of_nodes("sns report", options.get("nodes"), options.get("slurm_conf"))
    asked = ReportRequest(
        dump,
        nodes,
        options.get("policy", MAX_JOBS),
        tuple(dict.fromkeys(options.get("partition", ()))),
        options.get("weeks"),
        options.get("seed", 0),
    )
    with terminated_as_interrupted():
        with progress_bar("reading") as report:
            record = read_record(asked, report)
        with progress_bar("replaying") as report:
            found = site_report(asked, record, WorkerProcesses(options.get("jobs", 2)), report)
    page = page_of(found)
    values: ReportJson = {
        "about": "accounting",
        "title": page.title,
        "summary": list(page.summary),
        "accounting": values_of(found),
    }
    return page, values
