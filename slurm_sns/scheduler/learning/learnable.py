"""Which jobs can be learnt from, and what for: spreadable jobs whose program has a name."""

from dataclasses import replace

from slurm_sns.policies.profile import Program
from slurm_sns.policies.sns.learning import Key, LearnableJob
from slurm_sns.scheduler.observation.observed import ObservedJob
from slurm_sns.scheduler.snapshot.node_kinds import NodeKinds
from slurm_sns.scheduler.snapshot.spreading import Spreading, keeps_geometry, program_of, request, types_of
from slurm_sns.submit.hints import is_program


def key_of(job: ObservedJob, spreading: Spreading) -> Key | None:
    """The program and the number of processes; None for a job that cannot be learnt from."""
    record = job.record
    if record is None or record.is_slurms or keeps_geometry(job):
        return None
    program = program_of(job, record.hints, spreading.program)
    return (program, job.tasks * job.cpus_per_task) if is_program(program) else None


def learnable(job: ObservedJob, key: Key, kinds: NodeKinds, profile: Program | None) -> LearnableJob:
    """The job as learning knows it; `kinds` are those of the nodes that it may ever use.

    An imported or measured profile (`profile`) may limit the scales of its program.
    """
    assert job.hints is not None  # noqa: S101  it has a key
    asked = request(job, job.hints, kinds)
    limits = [each for each in (asked.max_scale, None if profile is None else profile.max_scale) if each is not None]
    return LearnableJob(job.id, key, replace(asked, max_scale=min(limits, default=None)), types_of(kinds))
