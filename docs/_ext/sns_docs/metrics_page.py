"""The reference of metrics: the running scheduler's, and a simulation's (summary.json, jobs.csv, cycles.csv)."""

from collections.abc import Iterator, Mapping

from slurm_sns.metric_table import METRICS
from slurm_sns.policies.registry import REGISTRY, specification
from slurm_sns.policies.specification import settings_of
from slurm_sns.sim.results import columns
from slurm_sns.sim.results.summary_types import PARTS
from sns_docs.json_page import fields
from sns_docs.markdown import code, escaped, table

COLUMNS = (
    ("jobs.csv", columns.JOBS),
    ("Further columns of jobs.csv for dfrs", columns.FLUID_JOBS),
    ("Further columns of jobs.csv for rescheduling", columns.POOL_JOBS),
    ("cycles.csv", columns.CYCLES),
)


def text() -> str:
    """The scheduler's metrics; the summary, part by part, the parameters of policies, and the columns of the files."""
    columns_of_files = (line for name, each in COLUMNS for line in _columns(name, each))
    return "\n".join([*_running(), *_summary(), *_parameters(), *columns_of_files])


def _running() -> Iterator[str]:
    yield "## Of the running scheduler\n"
    rows = (
        (code(each.name), str(each.type), ", ".join(map(code, each.labels)), escaped(each.help)) for each in METRICS
    )
    yield table(("metric", "type", "labels", "meaning"), rows)


def _summary() -> Iterator[str]:
    yield "## summary.json\n"
    yield from map(fields, PARTS)


def parameters() -> dict[str, str]:
    """What each policy parameter is for, by its name in the summary."""
    return {
        name: setting.help
        for policy in REGISTRY
        for kind in specification(policy).parameters
        for name, setting in settings_of(kind).items()
    }


def _parameters() -> Iterator[str]:
    yield "The policy's own parameters stand in the summary, too, as far as they concern the run:\n"
    yield table(("field", "meaning"), ((code(name), escaped(told)) for name, told in sorted(parameters().items())))


def _columns(name: str, of: Mapping[str, str]) -> Iterator[str]:
    yield f"## {name}\n"
    yield table(("column", "meaning"), ((code(column), escaped(told)) for column, told in of.items()))
