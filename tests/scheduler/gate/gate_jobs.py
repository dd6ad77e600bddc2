"""Jobs of the gate's tests, and strategies that draw any job."""

from dataclasses import replace

from hypothesis import strategies as st

from slurm_sns.scheduler.gate.orders import BOOST
from slurm_sns.scheduler.observation import JobState, ObservedJob
from slurm_sns.submit import record as records
from slurm_sns.submit.hints import Hints
from slurm_sns.submit.record import MemoryRequest, Record

NOW = 1_764_060_000
TIMEOUT_S = 10.0
GATE = NOW + 3600
HINTS = Hints(program="mg")


def job_with(record=None, **fields):
    """A pending job whose AdminComment has this record."""
    comment = "" if record is None else records.written("", record)
    shown = {"admin_comment": comment, "priority": 2526, **fields}
    return ObservedJob(id=7, user_id=1, submit_s=0, state=JobState.PENDING, **shown)


def gated(**fields):
    return job_with(Record(HINTS, gate_s=GATE), **{"begin_s": GATE, **fields})


def placed(noted=None, **fields):
    """A job that was placed three seconds ago on c1 and c2."""
    record = Record(HINTS, gate_s=GATE, nodes=("c1", "c2"), placed_s=NOW - 3)
    record = replace(record, **(noted or {}))
    return job_with(record, **{"begin_s": NOW - 3, "pinned_to": ("c2", "c1"), **fields})


#: Moments about now, and those that the records below name.
TIMES = st.sampled_from([0, NOW - 7200, NOW - 60, NOW - 3, NOW, NOW + 1, NOW + 45, NOW + 121, GATE, NOW + 90_000])
_NODES = st.sampled_from([("c1", "c2"), ("c2", "c1"), ("c3",)])
_NOTED_ANYWHERE = {"gate_s": st.none() | TIMES, "begin_s": st.none() | TIMES, "restarts": st.integers(0, 2)}
_NOTED_ANYWHERE["own_partitions"] = st.sampled_from([(), ("main",)])
_PLACED = st.builds(
    Record,
    hints=st.just(HINTS),
    **_NOTED_ANYWHERE,
    nodes=_NODES,
    placed_s=TIMES,
    tasks_per_node=st.just(2),
    given_tasks_per_node=st.just(4),
    own_memory=st.just(MemoryRequest(4000, is_by_cpu=True)) | st.just(MemoryRequest(0)),
    given_memory_mb=st.just(64_000),
    ways=st.sampled_from([0, 3]),
    bandwidth_gbps=st.sampled_from([0, 12]),
)
_NOTED = st.builds(Record, **_NOTED_ANYWHERE) | _PLACED | st.just(Record(free_why="advise"))
_COMMENTS = (
    st.builds(records.written, st.sampled_from(["", "a site's note"]), _NOTED)
    | st.text()
    | st.just("sns:2 what is this")
)

_FIELDS = dict(  # noqa: C408 - the keywords of a builder
    id=st.integers(1, 9),
    is_special=st.sampled_from([False, False, False, True]),
    asks_for=st.sampled_from([(), (), (), ("constraint",)]),
    priority=st.sampled_from([0, 2526, 2526 + BOOST]),
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
    deadline_s=st.none() | TIMES,
    walltime_s=st.sampled_from([None, 600, 86_400]),
    time_min_s=st.sampled_from([None, 60]),
)
JOBS = st.builds(
    ObservedJob,
    **_FIELDS,
    user_id=st.just(1),
    submit_s=st.just(NOW - 9000),
    state=st.sampled_from([JobState.PENDING] * 5 + list(JobState)),
    admin_comment=_COMMENTS,
)


def _set(job, record, **fields):
    return replace(job, state=JobState.PENDING, admin_comment=records.written("a site's note", record), **fields)


@st.composite
def gated_jobs(draw):
    """A gated job with any other fields; some are held."""
    record = replace(draw(st.builds(Record, hints=st.just(HINTS), **_NOTED_ANYWHERE)), gate_s=GATE, restarts=3)
    asked = {"is_special": False, "asks_for": (), "pinned_to": (), "ways": 0, "bandwidth_gbps": 0}
    return _set(draw(JOBS), record, begin_s=GATE, has_other_gres=False, **asked)


@st.composite
def placed_jobs(draw):
    """A pending job whose record names a placement, with any other fields; on about half of them it is whole."""
    job, record = draw(JOBS), replace(draw(_PLACED), gate_s=GATE)
    whole = {"pinned_to": record.nodes, "ways": record.ways, "bandwidth_gbps": record.bandwidth_gbps}
    whole |= {"has_other_gres": False, "asks_for": ()}
    whole |= {
        "tasks_per_node": 4,
        "memory_per_cpu_mb": None,
        "memory_per_node_mb": 64_000,
        "priority": 2526 + BOOST,
    }
    return _set(job, record, is_special=False, **(whole if draw(st.booleans()) else {}))
