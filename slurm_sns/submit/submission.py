"""What a job asks for at submission, as far as the submit filter can see it.

The names are those of Slurm's job description in Lua; what is not asked for is "" for texts and None for numbers (the
reader in Lua turns nil, NO_VAL and INFINITE into None). Two options can be recognised only by their effects:
--overcommit by fewer CPUs than the tasks need, --distribution by the variable SLURM_DISTRIBUTION in the job's
environment. sbatch sets that variable, and so does slurmrestd (24.11: source; 26.05: seen). Other callers of Slurm's
library may not; srun still distributes the tasks of such a job as the job says, over the nodes that it was given.

A deadline can be seen only where the script says it: the job description in Lua has neither the deadline nor the
command line, and sbatch reads it from no variable (26.05: seen). Such a job passes, because Slurm refuses a job whose
begin time leaves it too little time until its deadline. So it refuses a job whose command line says a deadline that is
too near for the first lease.
"""

from collections.abc import Callable
from dataclasses import dataclass

from slurm_sns import gpus
from slurm_sns.constraints import is_left_to_slurm
from slurm_sns.errors import BadInput
from slurm_sns.submit.hints import PREFIX
from slurm_sns.submit.messages import as_bytes
from slurm_sns.submit.record import MOST_DIGITS

MOST_SPANK_ENTRIES = 64  # each plugin option that a job uses is one entry
MOST_SCRIPT_BYTES = 262144  # Slurm copies a script when it is read; a larger one carries data
MOST_TRES_BYTES = gpus.MOST_BYTES  # of --tres-per-task
MOST_BEGIN_S = 10**MOST_DIGITS - 1  # of --begin; a record has no larger number


@dataclass(frozen=True, slots=True)
class Submission:
    """One job as it is submitted. Memory in MiB; `options` are the SPANK options as pairs of hint name and value.

    `begin_time` is in Unix seconds. `has_deadline`: the script says --deadline, or is too long to be sure.
    `has_gres_flags`: --gres-flags says how gres and cores belong together.

    `spank_job_env_size` is the number of entries of all SPANK plugins; if there are more than `MOST_SPANK_ENTRIES`, no
    options are read.
    """

    batch: bool = True
    cron: bool = False
    het_job_offset: int | None = None
    partition: str = ""
    clusters: str = ""
    comment: str = ""
    admin_comment: str = ""
    options: tuple[tuple[str, str], ...] = ()
    spank_job_env_size: int | None = None
    priority: int | None = None
    begin_time: int | None = None
    # the job's geometry
    num_tasks: int | None = None
    ntasks_per_node: int | None = None
    cpus_per_task: int | None = None
    min_cpus: int | None = None
    min_nodes: int | None = None
    max_nodes: int | None = None
    min_mem_per_node: int | None = None
    min_mem_per_cpu: int | None = None
    distribution: str = ""
    # what we do not place
    reservation: str = ""
    tres_per_job: str = ""
    tres_per_node: str = ""
    tres_per_socket: str = ""
    tres_per_task: str = ""
    cpus_per_tres: str = ""
    mem_per_tres: str = ""
    ntasks_per_tres: int | None = None
    has_gres_flags: bool = False
    features: str = ""
    batch_features: str = ""
    prefer: str = ""
    req_nodes: str = ""
    shared: int | None = None
    contiguous: int | None = None
    spread: bool = False
    req_switch: int | None = None
    segment_size: int | None = None
    network: str = ""
    licenses: str = ""
    script_bytes: int | None = None
    has_deadline: bool = False
    burst_buffer: str = ""
    boards_per_node: int | None = None
    sockets_per_board: int | None = None
    sockets_per_node: int | None = None
    cores_per_socket: int | None = None
    threads_per_core: int | None = None
    ntasks_per_board: int | None = None
    ntasks_per_socket: int | None = None
    ntasks_per_core: int | None = None
    core_spec: int | None = None
    thread_spec: int | None = None
    pn_min_cpus: int | None = None
    pn_min_tmp_disk: int | None = None
    reboot: int | None = None


def _any_text(*names: str) -> Callable[[Submission], bool]:
    return lambda job: any(getattr(job, name) != "" for name in names)


def _any_number(*names: str) -> Callable[[Submission], bool]:
    return lambda job: any((getattr(job, name) or 0) > 0 for name in names)


def _other_tres_per_task(job: Submission) -> bool:
    """Slurm notes --cpus-per-task here as well (cpu:2 or cpu=2); everything else is a gres or a licence."""
    if len(as_bytes(job.tres_per_task)) > MOST_TRES_BYTES:
        return True
    entries = (entry for entry in job.tres_per_task.split(",") if entry)
    return any(not entry.startswith(("cpu:", "cpu=")) for entry in entries)


def _own_minimum_cpus(job: Submission) -> bool:
    """--mincpus; Slurm itself raises the value to what the tasks of a node need."""
    return (job.pn_min_cpus or 0) > (job.cpus_per_task or 1) * max(job.ntasks_per_node or 1, 1)


def _fewer_cpus_than_tasks_want(job: Submission) -> bool:
    """--overcommit: the CPUs that the job asks for do not suffice for its tasks."""
    return job.min_cpus is not None and job.num_tasks is not None and 0 < job.min_cpus < job.num_tasks


def _range_of_nodes(job: Submission) -> bool:
    """-N with a minimum and a maximum: Slurm takes more nodes than a node list names if it can."""
    return (job.max_nodes or 0) > max(job.min_nodes or 1, 1)


# The first condition that holds is the reason why a job is left to Slurm. Slurm copies a text each time it is read:
# conditions that need no text come first, those that need the script last.
UNPLACED: tuple[tuple[str, Callable[[Submission], bool]], ...] = (
    ("cron job", lambda job: job.cron),
    ("heterogeneous job", lambda job: job.het_job_offset is not None),
    ("range of nodes", _range_of_nodes),
    ("tasks per gpu", _any_number("ntasks_per_tres")),
    ("exclusive or oversubscribe", lambda job: (job.shared or 0) > 0),
    ("contiguous", _any_number("contiguous")),
    ("spread job", lambda job: job.spread),
    ("switches", _any_number("req_switch", "segment_size")),
    ("boards, sockets, cores, threads", _any_number("boards_per_node", "sockets_per_board", "sockets_per_node")),
    ("boards, sockets, cores, threads", _any_number("cores_per_socket", "threads_per_core")),
    ("tasks per board, socket, core", _any_number("ntasks_per_board", "ntasks_per_socket", "ntasks_per_core")),
    ("specialised cores", lambda job: job.core_spec is not None or job.thread_spec is not None),
    ("minimum CPUs", _own_minimum_cpus),
    ("temporary disk", _any_number("pn_min_tmp_disk")),
    ("reboot", _any_number("reboot")),
    ("overcommit", _fewer_cpus_than_tasks_want),
    ("own priority", lambda job: (job.priority or 0) > 0),
    ("distant begin time", lambda job: (job.begin_time or 0) > MOST_BEGIN_S),
    ("large SPANK environment", lambda job: (job.spank_job_env_size or 0) > MOST_SPANK_ENTRIES),
    ("own admin comment", lambda job: PREFIX in job.admin_comment),
    ("clusters", _any_text("clusters")),
    ("reservation", _any_text("reservation")),
    ("gres", _any_text("tres_per_job", "tres_per_node", "tres_per_socket", "cpus_per_tres", "mem_per_tres")),
    ("gres per task", _other_tres_per_task),
    ("constraint", lambda job: job.batch_features != "" or is_left_to_slurm(job.features)),
    ("prefer", _any_text("prefer")),
    ("node list", _any_text("req_nodes")),
    ("network", _any_text("network")),
    ("licences", _any_text("licenses")),
    ("not a batch job", lambda job: not job.batch),
    ("large script", lambda job: (job.script_bytes or 0) > MOST_SCRIPT_BYTES),
    ("burst buffer", _any_text("burst_buffer")),
    ("deadline", lambda job: job.has_deadline),
)


#: The reasons that do not hold for a job that asks for GPUs and for no other gres, where GPUs are placed.
_OF_GRES = frozenset({"gres", "gres per task"})


def unplaced(job: Submission, *, places_gpus: bool = False) -> str | None:
    """Why the job uses something that we do not place, by a name of `UNPLACED`; None when it does not."""
    for reason, uses in UNPLACED:
        if uses(job) and not (places_gpus and reason in _OF_GRES and gpus_of_job(job)):
            return reason
    return None


def gpus_of_job(job: Submission) -> gpus.GpuRequest | None:
    """The GPUs that it asks for; None if it asks for none, for other gres too, or in a way that we do not place."""
    texts = gpus.GresTexts(
        job.tres_per_node,
        job.tres_per_task,
        job.tres_per_job,
        job.tres_per_socket,
        job.cpus_per_tres,
        job.mem_per_tres,
        job.has_gres_flags,
    )
    try:
        return gpus.asked(texts)
    except BadInput:
        return None


def fixes_geometry(job: Submission) -> bool:
    """Whether the job says more of its geometry than its number of tasks ("at least one node" is no more)."""
    return (job.min_nodes or 0) > 1 or bool(job.max_nodes or job.ntasks_per_node) or job.distribution != ""
