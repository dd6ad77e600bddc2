"""Read a trace of either format: SWF or CSV, told apart by the header."""

from slurm_sns.errors import BadInput
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.jobs_csv import read_jobs
from slurm_sns.sim.traces.swf import read_swf
from slurm_sns.sim.traces.trace_arrays import TraceArrays


def read_records(
    name: str,
    node_arrays: NodeArrays,
    *,
    load_factor: float = 1.0,
    limit: int | None = None,
    user_estimates: bool = False,
) -> TraceArrays:
    """The trace in the file `name` (`-`: SWF on standard input) for these nodes, as arrays.

    With `user_estimates` the time limits that the owners asked for are read, too.

    Raises:
        BadInput: naming file, line and what would be valid.
    """
    source = TraceFile.of(name)
    if not source.is_csv:
        return read_swf(source, node_arrays, load_factor=load_factor, limit=limit, user_estimates=user_estimates)
    if user_estimates:
        raise BadInput(f"{name}: a CSV has no time limits; valid with user estimates: SWF")
    return read_jobs(source, node_arrays, load_factor=load_factor, limit=limit)
