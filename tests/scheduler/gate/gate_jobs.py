"""Jobs of the gate's tests, a Slurm that applies an order to one, and strategies that draw any job."""

from dataclasses import replace

from hypothesis import strategies as st

from slurm_sns.scheduler.gate.orders import OPEN, GateOrder
from slurm_sns.scheduler.gate.status import GateJob
from slurm_sns.scheduler.observe.observed import JobState
from slurm_sns.submit import record as records
from slurm_sns.submit.hints import Hints
from slurm_sns.submit.record import Memory, Record

NOW = 1_764_060_000
TIMEOUT_S = 10.0
GATE = NOW + 3600
HINTS = Hints(program="mg")


def job_with(record=None, **fields):
    """A pending job whose AdminComment has this record."""
    comment = "" if record is None else records.written("", record)
    return GateJob(id=7, state=JobState.PENDING, **{"admin_comment": comment, **fields})


def gated(**fields):
    return job_with(Record(HINTS, gate_s=GATE), **{"begin_s": GATE, **fields})


def placed(noted=None, **fields):
    """A job that was placed three seconds ago on c1 and c2."""
    record = Record(HINTS, gate_s=GATE, nodes=("c1", "c2"), placed_s=NOW - 3)
    record = replace(record, **(noted or {}))
    return job_with(record, **{"begin_s": NOW - 3, "pinned_to": ("c2", "c1"), **fields})


def applied(job: GateJob, order: GateOrder, now_s: int = NOW) -> GateJob:
    """The job as slurmctld has it after this order (`_update_job` in job_mgr.c, as far as orders use it)."""
    changes = {}
    if order.admin_comment is not None:
        changes["admin_comment"] = order.admin_comment
    if order.begin_s is not None:
        changes["begin_s"] = max(order.begin_s, now_s)
        assert order.begin_s in (OPEN, changes["begin_s"])
    if order.nodes is not None:
        changes["pinned_to"] = order.nodes
    if order.tasks_per_node is not None:
        changes |= {"tasks_per_node": order.tasks_per_node or None, "tasks": order.tasks}
    if order.gres is not None:
        changes |= {"ways": order.gres[0], "bandwidth_gbps": order.gres[1], "has_other_gres": False}
    if order.memory is not None:
        mb = order.memory.mb
        by_cpu = order.memory.is_by_cpu
        changes |= {"memory_per_cpu_mb": mb if by_cpu else None, "memory_per_node_mb": None if by_cpu else mb}
    if order.site_factor is not None:
        changes["site_factor"] = order.site_factor
    return replace(job, **changes)


#: Moments about now, and those that the records below name.
TIMES = st.sampled_from([0, NOW - 7200, NOW - 60, NOW - 3, NOW, NOW + 1, NOW + 45, NOW + 121, GATE, NOW + 90_000])
_NODES = st.sampled_from([("c1", "c2"), ("c2", "c1"), ("c3",)])
_TIMES_NOTED = {"gate_s": st.none() | TIMES, "begin_s": st.none() | TIMES, "restarts": st.integers(0, 2)}
_PLACED = st.builds(
    Record,
    hints=st.just(HINTS),
    **_TIMES_NOTED,
    nodes=_NODES,
    placed_s=TIMES,
    tasks_per_node=st.just(2),
    given_tasks_per_node=st.just(4),
    own_memory=st.just(Memory(4000, is_by_cpu=True)) | st.just(Memory(0)),
    given_memory_mb=st.just(64_000),
    ways=st.sampled_from([0, 3]),
    bandwidth_gbps=st.sampled_from([0, 12]),
)
_NOTED = st.builds(Record, **_TIMES_NOTED) | _PLACED | st.just(Record(free_why="advise"))
_COMMENTS = (
    st.builds(records.written, st.sampled_from(["", "a site's note"]), _NOTED)
    | st.text()
    | st.just("sns:2 what is this")
)

_FIELDS = dict(  # noqa: C408 - the keywords of a builder
    id=st.integers(1, 9),
    is_special=st.sampled_from([False, False, False, True]),
    is_plain=st.sampled_from([True, True, True, False]),
    priority=st.sampled_from([0, 2526]),
    reason=st.sampled_from(["", "BeginTime", "BadConstraints", "JobHeldUser", "AssocMaxJobsLimit", "Dependency"]),
    restarts=st.integers(0, 3),
    begin_s=TIMES,
    waits_for_others=st.booleans(),
    pinned_to=st.just(()) | _NODES,
    tasks=st.just(8),
    tasks_per_node=st.sampled_from([None, 2, 4]),
    memory_per_cpu_mb=st.sampled_from([None, 4000]),
    memory_per_node_mb=st.sampled_from([None, 0, 64_000]),
    ways=st.sampled_from([0, 3]),
    bandwidth_gbps=st.sampled_from([0, 12]),
    has_other_gres=st.sampled_from([False, False, True]),
    site_factor=st.sampled_from([0, 5, 2_000_000_000]),
    deadline_s=st.none() | TIMES,
    walltime_s=st.sampled_from([None, 600, 86_400]),
    time_min_s=st.sampled_from([None, 60]),
)
JOBS = st.builds(
    GateJob,
    **_FIELDS,
    state=st.sampled_from([JobState.PENDING] * 5 + list(JobState)),
    admin_comment=_COMMENTS,
)


def _set(job, record, **fields):
    return replace(job, state=JobState.PENDING, admin_comment=records.written("a site's note", record), **fields)


@st.composite
def gated_jobs(draw):
    """A gated job with any other fields; some are held."""
    record = replace(draw(st.builds(Record, hints=st.just(HINTS), **_TIMES_NOTED)), gate_s=GATE, restarts=3)
    asked = {"is_special": False, "is_plain": True, "pinned_to": (), "ways": 0, "bandwidth_gbps": 0}
    return _set(draw(JOBS), record, begin_s=GATE, has_other_gres=False, **asked)


@st.composite
def placed_jobs(draw):
    """A pending job whose record names a placement, with any other fields; on about half of them it is whole."""
    job, record = draw(JOBS), replace(draw(_PLACED), gate_s=GATE)
    whole = {"pinned_to": record.nodes, "ways": record.ways, "bandwidth_gbps": record.bandwidth_gbps}
    whole |= {"has_other_gres": False, "is_plain": True}
    whole |= {
        "tasks_per_node": 4,
        "memory_per_cpu_mb": None,
        "memory_per_node_mb": 64_000,
        "site_factor": 2_000_000_000,
    }
    return _set(job, record, is_special=False, **(whole if draw(st.booleans()) else {}))
