"""Read a trace of either format: SWF or CSV, told apart by the header."""

from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.sim.traces.files import STANDARD_INPUT, TraceFile
from slurm_sns.sim.traces.jobs_csv import read_jobs
from slurm_sns.sim.traces.swf import read_swf
from slurm_sns.sim.traces.trace import Trace
from slurm_sns.sim.traces.trace_arrays import TraceArrays


def read_records(
    name: str, node_arrays: NodeArrays, *, load_factor: float = 1.0, limit: int | None = None
) -> TraceArrays:
    """The trace in the file `name` (`-`: SWF on standard input) for these nodes, as arrays.

    Raises:
        BadInput: naming file, line and what would be valid.
    """
    source = TraceFile.of(name)
    named_csv = name != STANDARD_INPUT and name.removesuffix(".gz").endswith(".csv")
    reader = read_jobs if named_csv or source.first_line().startswith("job_id,") else read_swf
    return reader(source, node_arrays, load_factor=load_factor, limit=limit)


def read_trace(name: str, node_arrays: NodeArrays, *, load_factor: float = 1.0, limit: int | None = None) -> Trace:
    """The trace in the file `name` (`-`: SWF on standard input) for these nodes, as values.

    Raises:
        BadInput: naming file, line and what would be valid.
    """
    return read_records(name, node_arrays, load_factor=load_factor, limit=limit).trace()
