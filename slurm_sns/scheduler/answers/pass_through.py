"""Why a job is a pass-through job: what in its record and in our settings keeps slurm_sns from placing it.

A pure function for jobs that slurm_sns neither gates nor has placed. It looks at what the submit filter decides by
(submit.judge), as far as Slurm's record of the job shows it. The filter's own reason is not stored anywhere, because a
pass-through job is left exactly as it was submitted. The reason never repeats text that a user wrote.
"""

from collections.abc import Iterator

from slurm_sns.scheduler.observation import SLURMS_HOLD, JobState, ObservedJob
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.geometry import names_no_memory
from slurm_sns.scheduler.snapshot.plannable import SHARES_IN_PART
from slurm_sns.submit.judge import shares_in_part

#: What the job asks for that we do not place, as a clause after the word "it". The keys are the names in
#: `submission.UNPLACED` and in `ObservedJob.asks_for`.
ASKS = {
    "not a batch job": "is not a batch job (srun or salloc)",
    "cron job": "is a cron job (scrontab)",
    "heterogeneous job": "is part of a heterogeneous job",
    "range of nodes": "asks for a range of nodes (-N 2-4)",
    "reservation": "asks for a reservation (--reservation)",
    "gres": "asks for gres (--gres, --gpus)",
    "gres per task": "asks for gres of each task (--tres-per-task)",
    "tasks per gpu": "asks for a number of tasks per GPU (--ntasks-per-gpu)",
    "constraint": "asks for a constraint with counts or brackets (--constraint), or for --batch",
    "prefer": "prefers nodes with a feature (--prefer)",
    "node list": "names its nodes (--nodelist)",
    "exclusive or oversubscribe": "says with whom it shares its nodes (--exclusive=user and the like, --oversubscribe)",
    "contiguous": "asks for contiguous nodes (--contiguous)",
    "spread job": "asks to be spread over nodes (--spread-job)",
    "switches": "asks for a number of switches (--switches)",
    "network": "asks for a network (--network)",
    "licences": "asks for licences (--licenses)",
    "burst buffer": "asks for a burst buffer (--bb)",
    "boards, sockets, cores, threads": "asks for sockets, cores or threads (--cores-per-socket and the like)",
    "tasks per board, socket, core": "limits its tasks per socket or core (--ntasks-per-core and the like)",
    "specialised cores": "asks for specialised cores (--core-spec, --thread-spec)",
    "minimum CPUs": "asks for a minimum of CPUs on a node (--mincpus)",
    "temporary disk": "asks for temporary disk space (--tmp)",
    "clusters": "was submitted to several clusters (--clusters, or a federation)",
    "large SPANK environment": "has more options of SPANK plugins than the submit filter reads",
    "large script": "has a script of more than 256 KiB",
    "deadline": "has a deadline (--deadline)",
    "distant begin time": "may begin only in a distant future (--begin)",
    "reboot": "asks for a reboot of its nodes (--reboot)",
    "overcommit": "asks for fewer CPUs than tasks (--overcommit)",
    "own priority": "has a priority of its own (--priority)",
    "own admin comment": "was submitted with an AdminComment that begins like a record of slurm_sns",
}

NOT_SHOWN = (
    "its record does not show why: when it was submitted, slurm_sns was switched off, showed no sign of life or only "
    "observed, or it had something that Slurm may not show later (a priority, a range of nodes, a partition, a script "
    "of more than 256 KiB)"
)
WHOLE_MEMORY = (
    "it gets all the memory of its nodes (--mem=0, or no --mem and no DefMemPerCPU), and the nodes of its partitions "
    "may differ in memory: Slurm must choose them"
)
#: Why we gave a job to Slurm, by the word `free=` in its record (record.reason); others are shown as they are.
FREED = {
    "opened-by-its-owner": "its owner opened its gate (scontrol update StartTime=now, or sns release)",
    "changed-by-its-owner": "its owner changed it so that slurm_sns does not place it",
    "node-list": "its owner gave it a node list",
    "deadline": "its deadline is near",
    "disabled": "slurm_sns was switched off (sns disable)",
    "clean-stop": "slurm_sns was stopped",
    "mode-not-enforce": "slurm_sns no longer places jobs (mode)",
    "unreadable": "slurm_sns could not read its record in AdminComment",
}


def reason(job: ObservedJob, settings: Settings) -> str:
    """Why slurm_sns leaves this job to Slurm, as a clause: `it asks for a constraint (--constraint)`."""
    record = job.record
    if job.unreadable:
        return f"its record cannot be read: {job.unreadable}"
    found = [*_unmanaged(job, settings), *([] if record is not None else _asked(job, settings))]
    if found:
        return "; ".join(found)
    if job.state is JobState.PENDING and job.priority == 0:
        if job.reason == SLURMS_HOLD:
            return f"Slurm holds it, because it can never start as it is ({SLURMS_HOLD})"
        return f"it is held ({job.reason or 'with priority 0'})"
    if settings.mode != "enforce":
        return f"the mode is {settings.mode}, in which slurm_sns places no jobs"
    if record is not None and record.is_slurms:
        return f"slurm_sns left it to Slurm: {FREED.get(record.free_why, record.free_why.replace('-', ' '))}"
    return WHOLE_MEMORY if names_no_memory(job) else NOT_SHOWN


def _unmanaged(job: ObservedJob, settings: Settings) -> Iterator[str]:
    others = [name for name in job.partitions if name not in settings.partitions]
    if len(others) == 1:
        yield f"partition {others[0]} is not managed"
    elif others:
        yield f"partitions {', '.join(others)} are not managed"
    if not others and settings.sharing is not None and shares_in_part(job.partitions, settings.sharing.partitions):
        yield SHARES_IN_PART


def _asked(job: ObservedJob, settings: Settings) -> Iterator[str]:
    """What the job's owner asked for. Not for marked jobs: their nodes and gres may come from a placement of ours."""
    if job.comment == "sns:off":
        yield "its comment is sns:off"
    names = dict.fromkeys((*_shown_elsewhere(job, settings), *job.asks_for))
    if names:
        yield "it " + " and ".join(ASKS.get(name, f"asks for {name}") for name in names)


def _shown_elsewhere(job: ObservedJob, settings: Settings) -> Iterator[str]:
    """What the job asks for as fields other than `asks_for` show it, by the keys of `ASKS`."""
    shown = {
        "not a batch job": not job.is_batch,
        # Once a job runs, Slurm shows the number of nodes that it got.
        "range of nodes": job.state is JobState.PENDING and (job.nodes_max or 0) > max(job.nodes_min or 1, 1),
        "gres": job.ways > 0 or job.bandwidth_gbps > 0 or (job.gpus is not None and not settings.places_gpus),
        "node list": bool(job.pinned_to),
    }
    yield from (name for name, is_so in shown.items() if is_so)
