"""Records as plugins/libslurm/sns_slurm.c writes them become what pyslurm shows; a cluster test compares both."""

import ctypes
import struct
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from slurm_sns import gpus
from slurm_sns.errors import SnsError
from slurm_sns.gpus import GpuRequest
from slurm_sns.scheduler.observation import JobState, ObservedJob
from slurm_sns.slurm import api, libslurm, translate
from slurm_sns.slurm.state import Translated

NONE, UNLIMITED = -(1 << 63), (1 << 63) - 1
#: Loads the library, which most tests have a mock of.
LIBRARY = libslurm._library.__wrapped__
NUMBERS = (
    *("id", "user_id", "submit_time", "priority", "nice", "requeue_count", "base_state", "ntasks", "cpus"),
    *("cpus_per_task", "min_cpus_per_node", "num_nodes", "max_nodes", "ntasks_per_node", "memory_per_cpu"),
    *("memory_per_node", "time_limit", "time_limit_min", "eligible_time", "start_time", "end_time", "suspend_time"),
    *("pre_suspension_time", "deadline", "is_requeueable", "is_batch_job", "is_cronjob", "array_id", "array_task_id"),
    *("array_tasks_parallel", "heterogeneous_id", "requires_contiguous_nodes", "required_switches"),
    *(
        "sockets_per_node",
        "cores_per_socket",
        "threads_per_core",
        "temporary_disk_per_node",
        "mails_failure",
        "has_gres_flags",
    ),
)
TEXTS = (
    *("state", "state_reason", "resource_sharing", "name", "account", "partition", "qos", "admin_comment", "comment"),
    *("extra", "required_nodes", "excluded_nodes", "allocated_nodes", "scheduled_nodes", "features", "prefer"),
    *("tres_per_node", "tres_per_task", "tres_per_job", "tres_per_socket", "cpus_per_tres", "mem_per_tres"),
    *("requested_tres", "allocated_tres", "reservation", "dependency", "federation_origin"),
    *("license_names", "burst_buffer", "array_tasks", "mail_addresses"),
)
DESCRIBED = " ".join([*(f"n:{name}" for name in NUMBERS), *(f"t:{name}" for name in TEXTS)]).encode()
WAITS = {
    **dict.fromkeys(("pre_suspension_time", "is_cronjob", "requires_contiguous_nodes", "mails_failure"), 0),
    "has_gres_flags": 0,
    "id": 7,
    "user_id": 2001,
    "submit_time": 100,
    "priority": 1000,
    "nice": 0,
    "requeue_count": 0,
    "base_state": 0,
    "ntasks": 16,
    "cpus": 16,
    "num_nodes": 1,
    "max_nodes": 16,
    "time_limit": 1,
    "memory_per_cpu": 4500,
    "is_requeueable": 1,
    "is_batch_job": 1,
    "state": "PENDING",
    "state_reason": "Priority",
    "name": "wrap",
    "resource_sharing": "OK",
    "partition": "main",
    "account": "physics",
    "requested_tres": "cpu=16,mem=72000M",
}


def raw(**fields: object) -> bytes:
    """A record with these fields; the others are Slurm's none."""
    shown = {**WAITS, **fields}
    texts = [shown.get(name) for name in TEXTS]
    told = [None if text is None else text if isinstance(text, bytes) else str(text).encode() for text in texts]
    return b"".join(
        [
            struct.pack(f"={len(NUMBERS)}q", *(shown.get(name, NONE) for name in NUMBERS)),
            struct.pack(f"={len(TEXTS)}i", *(-1 if text is None else len(text) for text in told)),
            *(text for text in told if text is not None),
        ]
    )


@pytest.fixture(autouse=True)
def library(mocker) -> Iterator[object]:
    """A library that describes its jobs, and answers nothing."""
    libslurm._layout.cache_clear()
    library = mocker.patch.object(libslurm, "_library").return_value
    library.sns_job_fields.return_value = DESCRIBED
    yield library
    libslurm._layout.cache_clear()


def record(shown: bytes) -> libslurm.RawRecord:
    return libslurm.RawRecord(shown, "sns_job_fields", libslurm._OF_JOB)


def job(**fields: object) -> ObservedJob:
    return translate.job(record(raw(**fields)))


def test_a_waiting_job() -> None:
    seen = job()
    assert not seen.unreadable
    assert (seen.id, seen.state, seen.tasks, seen.nodes_max, seen.memory_per_cpu_mb) == (
        7,
        JobState.PENDING,
        16,
        None,
        4500,
    )
    assert (seen.walltime_s, seen.asks_for, seen.is_batch, seen.may_restart) == (60, (), True, True)
    assert (seen.array_id, seen.deadline_s, seen.pinned_to, seen.extra) == (None, None, (), "")


def test_what_its_owner_asks_for() -> None:
    seen = job(tres_per_node="gres/llc:3,gres/membw:10", features="ib&avx2", dependency="afterok:3(unfulfilled)")
    assert (seen.ways, seen.bandwidth_gbps, seen.constraint, seen.waits_for_others) == (3, 10, "ib&avx2", True)
    assert job(license_names="matlab:1", heterogeneous_id=7).asks_for == ("heterogeneous job", "licences")
    assert job(array_id=6, array_tasks="18-20%2", array_tasks_parallel=2).array_tasks == "18-20"
    assert job(ntasks_per_node=UNLIMITED).tasks_per_node == (1 << 16) - 1


def test_the_gpus_that_it_asks_for_in_its_owners_words() -> None:
    placed = job(tres_per_node="gres/gpu:a:2,gres:llc:3,gres/membw:10", requested_tres="cpu=1,gres/gpu=2,gres/llc=3")
    assert placed.gpus == GpuRequest(gpus.NODE, (("a", 2),))
    assert (placed.own_gres, placed.ways, placed.bandwidth_gbps) == ("gres/gpu:a:2", 3, 10)
    assert (placed.has_other_gres, placed.is_countable) == (False, False)
    assert job(tres_per_node="gres/gpu").asks_for == ()
    whole = job(
        tres_per_job="gres/gpu:4", mem_per_tres="gres/gpu:4096", cpus_per_tres="gres/gpu:2", memory_per_cpu=NONE
    )
    assert (whole.gpus, whole.asks_for) == (GpuRequest(gpus.JOB, (("", 4),), 2, 4096), ())
    assert job(tres_per_task="cpu=2,gres/gpu=1").gpus == GpuRequest(gpus.TASK, (("", 1),))
    assert job(tres_per_task="gres/gpu:a=2", ntasks=2, max_nodes=4).nodes_max is None, "no more nodes than GPUs"
    assert job(tres_per_job="gres/gpu:4", ntasks=2, max_nodes=3).nodes_max == 3


@pytest.mark.parametrize(
    "asked",
    [
        {"tres_per_node": "gres/gpu:1", "has_gres_flags": 1},
        {"tres_per_node": "gres/gpu:1", "tres_per_job": "gres/gpu:1"},
        {"tres_per_socket": "gres/gpu:1"},
        {"tres_per_node": "gres/gpu:1,gres/shard:1"},
        {"tres_per_task": "license/matlab=1"},
    ],
    ids=str,
)
def test_gpus_that_we_do_not_place_leave_the_job_to_slurm(asked: dict[str, object]) -> None:
    seen = job(**asked)
    assert (seen.gpus, seen.has_other_gres, seen.asks_for) == (None, True, ("gres",))


@pytest.mark.parametrize("gres", ["a:b:0k", "gpu:a100:2,nvme", "gres/gpu:0", ":", "llc:x:2", "llc:4K", "é(", ",,"])
def test_any_other_gres_leaves_the_job_to_slurm(gres: str) -> None:
    seen = job(tres_per_node=gres)
    assert (seen.ways, seen.bandwidth_gbps) == (0, 0)
    assert not seen.is_countable
    assert "gres" in seen.asks_for or gres == ",,"


def test_no_text_takes_long() -> None:
    for text in (",llc:1" * 50_000, "(" * 200_000, "llc:" + "9" * 4000):
        assert job(tres_per_node=text).id == 7
    assert "cannot be read" in job(tres_per_node="cpu", requested_tres="gres/llc=x").unreadable
    odd = job(tres_per_node="llc:" + "9" * 5000)
    assert (odd.id, odd.has_other_gres, odd.is_countable) == (7, True, False), "Python reads no such number"


def test_the_gres_of_a_node() -> None:
    assert libslurm._amounts("gpu:a100:2(IDX:0,2),llc:4,membw") == {"gpu:a100": 2, "llc": 4, "membw": 1}
    assert libslurm._gres_of_tres("cpu=8,mem=2G,gres/llc=4,gres/gpu:a100=1") == {"llc": 4, "gpu:a100": 1}


def test_text_that_is_not_utf_8_costs_that_text_only() -> None:
    seen = job(name=b"a\xff", comment="x" * 100_000)
    assert (seen.name, len(seen.comment), seen.unreadable) == ("?", 100_000, "")


def test_how_long_a_job_has_run() -> None:
    running = {"base_state": 1, "state": "RUNNING", "start_time": 1000}
    assert job(**running, end_time=5000).ran_at(4000) == 3000
    resumed = job(**running, end_time=5000, suspend_time=2000, pre_suspension_time=500)
    assert resumed.ran_at(3000) == pytest.approx(1500, abs=1), "two looks at the clock"
    assert (
        job(base_state=2, state="SUSPENDED", start_time=1000, suspend_time=1500, pre_suspension_time=500).ran_s == 500
    )
    assert job(base_state=3, state="COMPLETED", start_time=1000, end_time=5000).ran_s == 4000
    after = {"suspend_time": 2000, "pre_suspension_time": 500}
    assert job(base_state=3, state="COMPLETED", start_time=1000, end_time=5000, **after).ran_s == 3500


def test_a_job_is_translated_again_only_when_its_record_changes(mocker) -> None:
    spy = mocker.spy(translate, "job")
    jobs = Translated[ObservedJob]()

    def read(*records: bytes, forced: frozenset[str] = frozenset()) -> list[int]:
        shown = [record(each) for each in records]
        return [seen.priority for seen in jobs.of(shown, lambda each: translate.job(each, forced=forced), forced)]

    running = raw(id=8, base_state=1, state="RUNNING", start_time=1000)
    assert read(raw(), running) == [1000, 1000]
    assert read(raw(), running) == [1000, 1000]
    assert spy.call_count == 2
    assert read(raw(priority=5)) == [5]
    assert read(raw()) == [1000]
    assert spy.call_count == 4, "what was not there the last time is forgotten"
    assert read(raw(), forced=frozenset({"main"})) == read(raw(), forced=frozenset({"main"})) == [1000]
    assert spy.call_count == 5, "what a partition forces shows in its jobs"


def answering(library, function: str, records: list[bytes], number: int = 0) -> None:
    """Let this function of the library answer with these records, or with an error number."""

    def answer(given, *_: object) -> int:
        data, ends = b"".join(records), [sum(map(len, records[: at + 1])) for at in range(len(records))]
        shown = given._obj
        shown.kept = (ctypes.create_string_buffer(data), (ctypes.c_uint64 * len(ends))(*ends))
        shown.data, shown.ends = (ctypes.addressof(each) for each in shown.kept)
        shown.size, shown.count = len(data), len(ends)
        return number

    getattr(library, function).side_effect = answer


def test_states_tell_which_jobs_have_changed_and_a_forgotten_job_has_no_record(library) -> None:
    answering(library, "sns_job_states", [struct.pack("=6q", 7, 0, 3, 8, 1, 0)])
    assert libslurm.Jobs.states() == {7: (0, 3), 8: (1, 0)}
    answering(library, "sns_job", [raw(), raw(id=9)])
    assert {job_id: each.id for job_id, each in libslurm.Jobs.of(7).items()} == {7: 7, 9: 9}
    library.sns_error.return_value = b"Invalid job id specified"
    answering(library, "sns_job", [], 2017)
    assert libslurm.Jobs.of(7) == {}
    answering(library, "sns_job", [], 1800)
    with pytest.raises(libslurm.RPCError):
        libslurm.Jobs.of(7)


def test_the_jobs_of_a_user_are_read_together_and_whose_jobs_there_are_is_known(library) -> None:
    answering(library, "sns_jobs_of_user", [raw(), raw(id=9)])
    found = libslurm.Jobs.of_user(2001)
    assert [number.value for number in library.sns_jobs_of_user.call_args.args[1:]] == [2001]
    assert list(found) == [7, 9]
    assert libslurm.Jobs.users([*found.values(), record(raw(user_id=4))]) == {2001, 4}


def test_two_reads_of_a_job_can_be_compared_but_for_some_fields() -> None:
    before, after = record(raw(priority=1)), record(raw(priority=2, name="b"))
    assert before.but({"priority", "name"}) == after.but({"priority", "name"})
    assert before.but({"priority"}) != after.but({"priority"})


def test_a_change_sends_what_is_given_and_a_zero_as_text_only_as_a_number(library) -> None:
    change = libslurm.JobSubmitDescription(
        admin_comment="sns:2 ü", begin_time=1, required_nodes=["c1", "c2"], ntasks=None, ntasks_per_node="0",
        gres_per_node={"llc": 2, "membw": 3}, site_factor="0", partitions=None, extra=None,
    )  # fmt: skip
    assert (change.begin_time, change.ntasks, change.ntasks_per_node, change.site_factor) == (1, NONE, 0, 0)
    assert (change.required_nodes, change.gres_per_node) == (b"c1,c2", b"gres:llc:2,gres:membw:3")
    beside = libslurm.JobSubmitDescription(gres_per_node={"llc": 2}, own_gres="gres/gpu:a:1")
    assert beside.gres_per_node == b"gres/gpu:a:1,gres:llc:2"
    assert libslurm.JobSubmitDescription(own_gres="gres/gpu:a:1").gres_per_node is None
    assert (change.admin_comment, change.partitions, change.extra) == ("sns:2 ü".encode(), None, None)
    library.sns_change.return_value = 2077
    library.sns_error.return_value = b"Job/step already completing or completed"
    with pytest.raises(libslurm.RPCError, match="already completing") as refusal:
        libslurm.Job(7).modify(change)
    assert refusal.value.errno == 2077


EARLIER = {
    **{
        f"sns_{name}": SimpleNamespace()
        for name in ("error", "job_fields", "node_fields", "built_for", "free", "start")
    },
    "sns_change_size": lambda: libslurm.ctypes.sizeof(libslurm._Change),
}


@pytest.mark.parametrize("made", [{}, {"sns_change_size": lambda: 64}, EARLIER], ids=["none", "other", "earlier"])
def test_a_library_of_another_version_is_not_used(mocker, made) -> None:
    mocker.patch.object(libslurm.ctypes, "CDLL", return_value=SimpleNamespace(**made))
    with pytest.raises(ImportError, match="another version of slurm_sns; make it again"):
        LIBRARY()


def test_it_takes_the_place_of_pyslurm_where_that_is_not_installed(mocker, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    (tmp_path / "slurm.conf").touch()
    mocker.patch.object(api, "import_module", side_effect=ModuleNotFoundError("pyslurm"))
    mocker.patch.object(api, "quiet")
    api.pyslurm.cache_clear()
    try:
        assert api.pyslurm() is libslurm
        api.pyslurm.cache_clear()
        mocker.patch.object(
            libslurm, "_library", side_effect=ImportError("sns_slurm.so: cannot open shared object file")
        )
        with pytest.raises(SnsError, match=r"neither pyslurm nor .* is installed \(sns_slurm.so: cannot open"):
            api.pyslurm()
    finally:
        api.pyslurm.cache_clear()


@pytest.mark.parametrize(("name", "read"), [(b"c1", "c1"), (None, ""), (b"\xff", "?")])
def test_the_first_text_of_a_record_is_read_alone(name: bytes | None, read: str) -> None:
    layout = libslurm._Layout(b"n:weight t:name t:state ")
    raw = struct.pack("=qii", 1, -1 if name is None else len(name), 4) + (name or b"") + b"IDLE"
    assert layout.first_text(raw) == read
    assert layout.read(raw)["state"] == "IDLE"
