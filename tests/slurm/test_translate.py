"""pyslurm's answers, as recorded on a real Slurm, become our values."""

from dataclasses import replace

import pytest
import recorded

from slurm_sns.errors import SnsError
from slurm_sns.model import Resources, gpus_of
from slurm_sns.scheduler.observation import JobState, ObservedPartition, PartitionAccess
from slurm_sns.slurm import translate
from slurm_sns.submit.hints import Hints
from slurm_sns.submit.record import UNREADABLE, MemoryRequest

#: The records of a gated job, of a placed one, and of one that is Slurm's.
GATED = f"sns:2 g={recorded.GATE_S}"
PLACED = f"sns:2 g={recorded.GATE_S} n=c1,c2 at=1795194000 t=0 tg=8 mo=4500c mg=36000 w=4 bw=10"
FREE = "sns:2 free=advise"


def test_a_gated_job_of_16_tasks() -> None:
    job = translate.job(recorded.job(admin_comment=GATED, extra="mine"), {2001: "alice"}.__getitem__)
    assert (job.id, job.user_id, job.user, job.submit_s) == (1, 2001, "alice", 1795193945)
    assert (job.state, job.priority, job.reason) == (JobState.PENDING, 1000, "BeginTime")
    assert (job.admin_comment, job.extra) == (GATED, "mine")
    assert (job.account, job.partitions, job.qos, job.name) == ("physics", ("plain",), "normal", "wrap")
    assert (job.tasks, job.cpus, job.memory_per_cpu_mb, job.memory_per_node_mb) == (16, 16, 4500, None)
    assert (job.walltime_s, job.begin_s, job.pinned_to, job.allocated) == (60, recorded.GATE_S, (), ())
    assert (job.time_min_s, job.deadline_s, job.is_special) == (None, None, False)
    assert (job.is_batch, job.is_plain, job.array_id, job.waits_for_others) == (True, True, None, False)
    assert job.occupies == Resources(0, 0)


@pytest.mark.parametrize(
    ("fields", "to"),
    [
        ({"mail_types": ["BEGIN", "END", "FAIL", "REQUEUE", "STAGE_OUT"]}, "alice"),
        ({"mail_types": ["FAIL"], "mail_user": ["a@x.org", "b@y.org"]}, "a@x.org,b@y.org"),
        ({"mail_types": ["BEGIN"]}, ""),
        ({}, ""),
        ({"mail_types": ["FAIL"], "mail_user": None}, ""),
        ({"mail_types": ["FAIL"], "admin_comment": FREE}, ""),
        ({"mail_types": ["FAIL"], "state": "RUNNING"}, ""),
    ],
)
def test_a_waiting_job_of_ours_says_whom_slurm_mails_when_it_fails(fields, to: str) -> None:
    assert translate.job(recorded.job(**{"admin_comment": GATED, **fields})).mail_to == to


def test_a_placed_job_is_plain_with_all_that_the_placement_gave_it() -> None:
    given = {"ntasks_per_node": 8, "min_cpus_per_node": 8, "num_nodes": 2, "max_nodes": 2, "required_nodes": "c1,c2"}
    given |= {"memory_per_cpu": None, "memory_per_node": 36_000, "gres_per_node": {"gres/llc": 4, "gres/membw": 10}}
    job = translate.job(recorded.job(admin_comment=PLACED, priority=2_000_001_000, **given))
    assert (job.is_plain, job.pinned_to, job.tasks_per_node, job.memory_per_node_mb) == (True, ("c1", "c2"), 8, 36_000)
    assert (job.ways, job.bandwidth_gbps, job.has_other_gres, job.priority) == (4, 10, False, 2_000_001_000)
    assert job.record is not None
    assert (job.record.own_memory, job.record.given_tasks_per_node) == (MemoryRequest(4500, is_by_cpu=True), 8)
    left = translate.job(recorded.job(admin_comment=FREE, **given))
    assert left.asks_for == ("gres",), "of a job that is left to Slurm they are its owner's"


def test_a_deadline_and_the_shortest_time_limit_are_seen() -> None:
    job = translate.job(recorded.job(admin_comment=GATED, deadline=1795197546, time_limit=10, time_limit_min=2))
    assert (job.deadline_s, job.walltime_s, job.time_min_s, job.is_plain) == (1795197546, 600, 120, True)
    for comment in (None, FREE):
        assert translate.job(recorded.job(admin_comment=comment, deadline=1795197546)).asks_for == ("deadline",)


@pytest.mark.parametrize("field", [{"is_cronjob": True}, {"heterogeneous_id": 7}, {"federation_origin": "other"}])
def test_cron_heterogeneous_and_federated_jobs_are_special(field) -> None:
    assert translate.job(recorded.job(admin_comment=GATED, **field)).is_special
    assert translate.job(
        Raising(recorded.job(**field), dependencies=ValueError("no"), gres=ValueError("no"))
    ).is_special


def test_a_running_job_says_where_and_with_what() -> None:
    job = translate.job(recorded.running(required_nodes="c1", allocated_nodes="c[3-4],s1", num_nodes=3, cpus=3))
    assert job.state is JobState.RUNNING
    assert (job.pinned_to, job.allocated) == (("c1",), ("c3", "c4", "s1"))
    assert job.occupies == Resources(3, 13_500)
    assert job.walltime_s is None, "no time limit"
    assert job.reason == "", "Slurm's reason None is no reason"


def test_what_a_placed_job_was_given_of_a_node_is_seen_as_its_gres() -> None:
    job = translate.job(recorded.job(gres_per_node={"gres/llc": 6, "gres/membw": 40}))
    assert (job.ways, job.bandwidth_gbps) == (6, 40)


def test_memory_for_each_node_counts_for_each_node() -> None:
    job = translate.job(recorded.running(memory_per_cpu=None, memory_per_node=1000, num_nodes=3))
    assert job.occupies == Resources(2, 3000)


@pytest.mark.parametrize(
    ("ntasks", "num_nodes", "max_nodes", "shown"),
    [
        (16, 1, 16, (1, None)),
        (16, 2, 2, (2, 2)),
        (2, 2, 2, (2, 2)),
        (40, 2, 40, (2, None)),
        (1, 1, 1, (1, 1)),
        (1, 1, 3, (1, 3)),
        (4, 4, 4, (4, 4)),
        (4, 2, 4, (2, None)),
        (16, 1, 500_000, (1, None)),
    ],
    ids=[
        "-n16",
        "-N2 -n16",
        "-N2",
        "-n40",
        "-n1",
        "-N1-3",
        "-N4 -n4",
        "-N2-4 -n4 looks like -n4",
        "-n16, by our filter",
    ],
)
def test_slurm_shows_as_many_nodes_as_tasks_where_the_job_says_only_its_tasks(
    ntasks, num_nodes, max_nodes, shown
) -> None:
    job = translate.job(recorded.job(ntasks=ntasks, num_nodes=num_nodes, max_nodes=max_nodes))
    assert (job.nodes_min, job.nodes_max) == shown
    assert job.has_open_nodes == (max_nodes == 500_000)


@pytest.mark.parametrize("state", ["PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"])
def test_a_job_that_waits_is_pending(state: str) -> None:
    assert translate.job(recorded.job(state=state)).state is JobState.PENDING


@pytest.mark.parametrize(
    "state",
    [
        "RUNNING",
        "SUSPENDED",
        "COMPLETING",
        "CONFIGURING",
        "RESIZING",
        "STOPPED",
        "SIGNALING",
        "STAGE_OUT",
        "EXPEDITING",
        "A_STATE_OF_NEXT_YEAR",
    ],
)
def test_a_job_that_may_hold_nodes_occupies_them(state: str) -> None:
    job = translate.job(recorded.running(state=state))
    assert job.state.occupies_nodes
    assert job.is_completing is (state == "COMPLETING")


@pytest.mark.parametrize(
    "state",
    [
        "COMPLETED",
        "CANCELLED",
        "FAILED",
        "TIMEOUT",
        "NODE_FAIL",
        "PREEMPTED",
        "BOOT_FAIL",
        "DEADLINE",
        "OUT_OF_MEMORY",
        "REVOKED",
    ],
)
def test_a_job_that_is_over_has_ended(state: str) -> None:
    assert translate.job(recorded.running(state=state)).state is JobState.ENDED


@pytest.mark.parametrize(
    ("dependencies", "waits"),
    [
        (None, False),
        ({**recorded.NO_DEPENDENCIES, "afterok": ["1(unfulfilled)"]}, True),
        ({**recorded.NO_DEPENDENCIES, "afterany": [1], "satisfy": "any"}, True),
        (recorded.NO_DEPENDENCIES, True),
    ],
    ids=["none, or all fulfilled", "afterok", "one of several", "singleton"],
)
def test_a_job_waits_for_others_as_long_as_slurm_shows_a_dependency(dependencies, waits: bool) -> None:
    assert translate.job(recorded.job(dependencies=dependencies)).waits_for_others is waits


def test_what_others_wait_for_is_an_end_without_error() -> None:
    ends = {state: translate.job(recorded.running(state=state)).has_succeeded for state in ("COMPLETED", "FAILED")}
    assert ends == {"COMPLETED": True, "FAILED": False}


# --- arrays, as sbatch --array=... showed them


@pytest.mark.parametrize(
    ("shown", "task", "waiting", "label"),
    [
        ({"id": 41, "array_tasks_waiting": "0-199", "array_tasks_parallel": 5}, None, "0-199", "41_[0-199%5]"),
        ({"id": 41, "array_tasks_waiting": "0-900:3"}, None, "0-900:3", "41_[0-900:3]"),
        ({"id": 41, "array_tasks_waiting": "1-2,5,190,..."}, None, "1-2,5,190,...", "41_[1-2,5,190,...]"),
        ({"id": 50, "array_task_id": 7}, 7, "", "41_7"),
        ({"id": 50}, 0, "", "41_0"),  # pyslurm shows no task 0
        ({"id": 41, "array_tasks_waiting": "9"}, 9, "", "41_9"),  # the last one that waits
        ({"id": 41, "array_tasks_waiting": "0"}, 0, "", "41_0"),
    ],
)
def test_a_record_is_that_of_one_task_or_of_several(shown, task: int | None, waiting: str, label: str) -> None:
    seen = translate.job(recorded.job(array_id=41, **shown))
    assert (seen.array_id, seen.array_task, seen.array_tasks, seen.label) == (41, task, waiting, label)
    assert seen.is_array_record is bool(waiting)
    assert seen.is_plain


# --- what pyslurm cannot read costs that record only


class Raising:
    """A record of which pyslurm cannot convert some fields."""

    def __init__(self, record, **problems: Exception) -> None:
        self._record, self._problems = record, problems

    def __getattr__(self, name: str):
        if name in self._problems:
            raise self._problems[name]
        return getattr(self._record, name)


def test_a_gres_that_pyslurm_cannot_count_is_a_gres() -> None:
    """As `--gres=a:b:0k` and the honest `--gres=gpu:a100:2,nvme`."""
    seen = translate.job(Raising(recorded.job(), gres_per_node=ValueError("invalid literal for int(): '0k'")))
    assert (seen.asks_for, seen.is_plain, seen.is_countable, seen.unreadable) == (("gres",), False, False, "")


def test_a_record_that_cannot_be_read_counts_as_what_slurm_says_it_occupies() -> None:
    whole = recorded.running(allocated_nodes="c[3-4]", cpus=6, memory_per_cpu=1000, account="physics")
    seen = translate.job(Raising(whole, dependencies=AttributeError("'str' has no append"), gres=KeyError("x" * 9999)))
    assert (seen.state, seen.allocated, seen.occupies) == (JobState.RUNNING, ("c3", "c4"), Resources(6, 6000))
    assert (seen.account, seen.is_plain) == ("physics", False)
    assert "cannot be read" in seen.unreadable
    assert len(seen.unreadable) < 1000


#: No list of nodes: then `translate` reads field by field what freeing the job and counting its use need.
BROKEN = {"excluded_nodes": "c[1"}


def test_what_freeing_a_job_needs_is_read_whatever_else_cannot_be() -> None:
    problem = ValueError("no")
    names = ("dependencies", "gres", "licenses", "name", "partition", "memory_per_cpu", "ntasks", "num_nodes")
    whole = recorded.job(admin_comment=GATED, extra="mine", nice=5, required_nodes="c[1-2]", deadline=9, **BROKEN)
    seen = translate.job(Raising(whole, **dict.fromkeys(names, problem)))
    assert (seen.id, seen.priority, seen.nice, seen.pinned_to) == (1, 1000, 5, ("c1", "c2"))
    assert (seen.admin_comment, seen.extra, seen.begin_s) == (GATED, "mine", recorded.GATE_S)
    assert (seen.is_plain, "name cannot be read: ValueError: no" in seen.unreadable) == (False, True)
    assert translate.job(recorded.job(admin_comment=GATED, **BROKEN)).unreadable.startswith("SnsError: Slurm answered")
    unknown = translate.job(Raising(recorded.job(**BROKEN), priority=problem))
    assert unknown.priority > 0, "in doubt it is not held"
    assert translate.job(recorded.job(required_nodes="c[1")).pinned_to == ("?",)


@pytest.mark.parametrize("broken", [{}, BROKEN])
def test_the_largest_priority_is_a_word_to_pyslurm_and_a_number_to_us(broken) -> None:
    """Slurm limits the priority of a placed job to it where the site's weights are large."""

    def priority(shown) -> int:
        return translate.job(recorded.job(priority=shown, **broken)).priority

    assert priority("UNLIMITED") == 2**32 - 1
    assert priority(2**32 - 3) == 2**32 - 3
    assert priority(0) == 0
    assert priority(None) > 0, "2^32 - 2: what Slurm has for no number"


def test_so_are_the_other_largest_numbers_that_an_owner_may_write() -> None:
    job = translate.job(recorded.job(admin_comment=GATED, ntasks_per_node="UNLIMITED", min_cpus_per_node="UNLIMITED"))
    assert (job.tasks_per_node, job.min_cpus_per_node) == (65535, 2**32 - 1)
    job = translate.job(recorded.running(cpus="UNLIMITED", cpus_per_task="UNLIMITED", num_nodes="UNLIMITED"))
    assert (job.cpus, job.cpus_per_task, job.nodes_min) == (2**32 - 1, 65535, 2**32 - 1)
    assert job.occupies == Resources(2**32 - 1, translate.MOST_JOB_MEMORY_MB)


@pytest.mark.parametrize(
    ("asked", "seen"),
    [
        ({"gres/llc": 6, "gres/membw": 40}, (6, 40, ())),
        ({"gres/llc": 6, "gres/gpu": 1}, (6, 0, ("gres",))),
        (None, (0, 0, ())),
    ],
)
@pytest.mark.parametrize("broken", [{}, BROKEN])
def test_the_gres_of_a_job_is_seen_as_ours_only_beside_our_record(asked, seen, broken) -> None:
    ours = translate.job(recorded.job(admin_comment=GATED, gres_per_node=asked, **broken))
    assert (ours.ways, ours.bandwidth_gbps, ours.asks_for[:1]) == seen
    owners = translate.job(recorded.job(gres_per_node=asked, **broken))
    assert ("gres" in owners.asks_for) is bool(asked)
    assert owners.has_other_gres == ours.has_other_gres == ("gres" in ours.asks_for)
    whole = recorded.job(admin_comment=GATED, **broken)
    unreadable = translate.job(Raising(whole, gres_per_node=ValueError("invalid literal for int(): '0k'")))
    assert ("gres" in unreadable.asks_for, unreadable.has_other_gres) == (True, True)


@pytest.mark.parametrize("comment", [GATED, ""])
def test_gres_other_than_ways_and_bandwidth_is_seen_with_and_without_our_record(comment: str) -> None:
    def has_other(**fields) -> bool:
        return translate.job(recorded.job(admin_comment=comment, **fields)).has_other_gres

    ours = {"gres/llc": 6, "gres/membw": 40}
    assert not has_other()
    assert not has_other(gres_per_node=ours, gres=ours)
    assert has_other(gres_per_node={**ours, "gres/gpu": 1})
    assert has_other(gres_per_node=ours, gres={"gpu": 1})
    unreadable = Raising(
        recorded.job(admin_comment=comment), gres_per_node=ValueError("invalid literal for int(): '0k'")
    )
    assert translate.job(unreadable).has_other_gres


def test_pyslurm_shows_the_gpus_of_a_node_that_are_in_use_as_far_as_slurmdbd_counts_them() -> None:
    shown = translate.node(
        recorded.node(configured_gres={"gpu:a": 2, "gpu:b": 2}, allocated_gres={"gpu": 3, "gpu:a": 2, "llc": 4})
    )
    assert shown.capacity.gpus == gpus_of({"a": 2, "b": 2})
    assert shown.allocated.gpus == (("gpu", 3), ("gpu:a", 2))


def test_a_node_whose_gres_cannot_be_read_has_no_ways_to_give_away() -> None:
    """As `Gres=gpu:2,nvme`."""
    node = translate.node(Raising(recorded.node(), configured_gres=ValueError("invalid literal for int(): '2,nvme'")))
    assert (node.capacity, node.unavailable) == (Resources(28, 128_000), "")
    assert "configured_gres cannot be read" in node.unreadable


def test_a_node_that_cannot_be_read_takes_no_job() -> None:
    node = translate.node(Raising(recorded.node(), real_memory=ValueError("no")))
    assert node.unavailable.startswith("its record cannot be read: real_memory")


def test_reservations_and_partitions_that_cannot_be_read_stop_nothing() -> None:
    bad = recorded.SimpleNamespace(name="r", nodes="c[1", start_time=1, end_time=2)
    assert translate.reservation(bad).unreadable.startswith("SnsError: Slurm answered with the node list 'c[1'")
    assert translate.partition(Raising(recorded.partition(), max_time=ValueError("no"))) is None


def test_numbers_that_no_machine_can_have_are_clamped() -> None:
    seen = translate.job(recorded.job(memory_per_cpu=4611686018427387903, gres_per_node={"gres/llc": 10**30}))
    assert (seen.memory_per_cpu_mb, seen.ways) == (2**32, 2**24)
    pinned = translate.job(recorded.job(memory_per_cpu=4611686018427387903, cpus=2**32 - 3, required_nodes="c1"))
    assert pinned.occupies == Resources(2**32 - 3, 2**40)


@pytest.mark.parametrize("text", ["?", "x", "1-", "0x3f", "1,,2", "3-9:0", "\u0663"])
def test_tasks_of_an_array_in_no_form_of_slurms_make_the_record_unreadable(text: str) -> None:
    assert "cannot be read" in translate.job(recorded.job(id=41, array_id=41, array_tasks_waiting=text)).unreadable


# --- Slurm before 26.05 shows its own estimate of the nodes as if the owner had chosen it


@pytest.mark.parametrize(
    ("shown", "comment", "nodes"),
    [
        ({"ntasks": 16, "num_nodes": 1, "max_nodes": 1}, "sns:2 g=9", (1, None)),
        ({"ntasks": 40, "num_nodes": 2, "max_nodes": 2}, "sns:2 g=9", (2, None)),
        ({"ntasks": 16, "num_nodes": 1, "max_nodes": 1}, "sns:2 fixed g=9", (1, 1)),
        ({"ntasks": 40, "num_nodes": 2, "max_nodes": 4}, "sns:2 fixed g=9", (2, 4)),
        ({"ntasks": 16, "num_nodes": 1, "max_nodes": 1}, "", (1, 1)),
        ({"ntasks": 16, "num_nodes": 1, "max_nodes": 1}, FREE, (1, None)),
        ({"ntasks": 16, "num_nodes": 1, "max_nodes": None}, "sns:2 g=9", (1, None)),
        ({"ntasks": 16, "num_nodes": 2, "max_nodes": 2, "ntasks_per_node": 8}, "sns:2 g=9", (2, None)),
    ],
    ids=[
        "-n16",
        "-n40",
        "-N1 -n16",
        "-N2-4 -n40",
        "without a record",
        "left to Slurm",
        "-n16 -c2",
        "-n16, once placed as 2 x 8",
    ],
)
def test_on_24_11_the_record_says_whether_the_number_of_nodes_is_the_owners(shown, comment: str, nodes) -> None:
    job = translate.job(recorded.job(admin_comment=comment, **shown), shows_estimates=True)
    assert (job.nodes_min, job.nodes_max) == nodes


def test_on_26_05_the_owners_later_choice_of_nodes_is_seen_beside_the_record() -> None:
    job = translate.job(recorded.job(admin_comment="sns:2 g=9", ntasks=16, num_nodes=2, max_nodes=2))
    assert (job.nodes_min, job.nodes_max) == (2, 2)


# --- texts that are no UTF-8


class Undecodable:
    """A record of which pyslurm cannot read some texts, as for `sbatch -J $'\\xff'`."""

    def __init__(self, record, *names: str) -> None:
        self._record, self._names = record, names

    def __getattr__(self, name: str):
        if name in self._names:
            raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
        return getattr(self._record, name)


def test_what_our_record_says_is_read_and_a_comment_of_somebody_elses_is_none() -> None:
    for broken in ({}, BROKEN):
        assert translate.job(recorded.job(admin_comment="sns:2 alpha=0.9 g=9", **broken)).hints == Hints(alpha=0.9)
        assert translate.job(recorded.job(admin_comment="ticket 4711", **broken)).hints is None
        assert translate.job(recorded.job(extra="sns:2 g=9", **broken)).record is None, "an owner's text"
    damaged = translate.job(recorded.job(admin_comment="sns:2 g=what", gres_per_node={"gres/llc": 1}))
    assert damaged.record is not None
    assert (damaged.record.free_why, damaged.asks_for) == (UNREADABLE, ("gres",))


def test_a_suspended_job_is_told_from_one_that_runs() -> None:
    job = translate.job(recorded.running(state="SUSPENDED", allocated_nodes="c3"))
    assert (job.state, job.state.occupies_nodes, job.occupies) == (JobState.SUSPENDED, True, Resources(2, 9000))
    assert translate.job(recorded.running(state="SUSPENDED", **BROKEN)).state is JobState.SUSPENDED


def test_a_users_texts_of_any_bytes_stop_nothing() -> None:
    seen = translate.job(Undecodable(recorded.job(admin_comment=GATED), "name", "comment", "extra"))
    assert (seen.id, seen.name, seen.comment, seen.extra, seen.admin_comment) == (1, "?", "?", "?", GATED)
    assert seen == replace(translate.job(recorded.job(admin_comment=GATED)), name="?", comment="?", extra="?")


def test_an_admin_comment_of_any_bytes_has_no_record() -> None:
    assert translate.job(Undecodable(recorded.job(), "admin_comment")).record is None


def test_an_admins_reason_of_any_bytes_stops_nothing() -> None:
    assert translate.node(Undecodable(recorded.node(state="IDLE+DRAIN"), "reason")).unavailable == "drain: ?"


def test_a_job_may_name_several_partitions() -> None:
    assert translate.job(recorded.job(partition="main,small")).partitions == ("main", "small")


def test_a_begin_time_is_when_the_job_may_start() -> None:
    assert translate.job(recorded.job(eligible_time=1795197546)).begin_s == 1795197546


@pytest.mark.parametrize(
    "uses",
    [
        {"heterogeneous_id": 7},
        {"reservation": "maintenance"},
        {"constraints": ["avx*2"]},
        {"constraints": ["[avx|sse]"]},
        {"constraints": ["avx|"]},
        {"preferred_features": ["avx"]},
        {"resource_sharing": "YES"},
        {"resource_sharing": "USER"},
        {"requires_contiguous_nodes": True},
        {"required_switches": 1},
        {"licenses": ["matlab"]},
        {"burst_buffer": "#BB"},
        {"sockets_per_node": 1},
        {"cores_per_socket": 2},
        {"threads_per_core": 1},
        {"temporary_disk_per_node": 10},
        {"min_cpus_per_node": 4},
        {"cpus": 1},
        {"gres": {"gpu": 1}},
        {"deadline": 1795197546},
        {"federation_origin": "other"},
    ],
    ids=lambda uses: next(iter(uses)),
)
def test_a_job_that_uses_what_we_do_not_place_is_not_plain(uses) -> None:
    assert not translate.job(recorded.job(**uses)).is_plain


@pytest.mark.parametrize(
    ("shown", "partition", "is_plain"),
    [
        ("YES", "shared", True),  # what a partition with OverSubscribe=FORCE shows of every job
        ("YES", "main,shared", True),
        ("YES", "main", False),
        ("USER", "shared", False),
        ("MCS", "shared", False),
        ("NO", "shared", True),
    ],
)
def test_what_the_partition_forces_is_no_wish_of_the_jobs_owner(shown: str, partition: str, is_plain: bool) -> None:
    record = recorded.job(resource_sharing=shown, partition=partition)
    assert translate.job(record, forced=frozenset({"shared"})).is_plain is is_plain
    unreadable = Raising(record, gres_per_node=ValueError("invalid literal for int(): '0k'"))
    assert translate.job(unreadable, forced=frozenset({"shared"})).asks_for == (
        ("gres",) if is_plain else ("exclusive or oversubscribe", "gres")
    )


@pytest.mark.parametrize(("shown", "forces"), [("FORCE:2", True), ("YES:4", False), ("NO", False), (None, False)])
def test_which_partitions_force_their_jobs_to_share(shown: str | None, forces: bool) -> None:
    assert translate.partition(recorded.partition(oversubscribe=shown)).forces_sharing is forces


def test_the_cpus_that_the_tasks_of_a_node_need_are_no_minimum_of_the_owners() -> None:
    assert translate.job(recorded.job(cpus_per_task=2, ntasks_per_node=2, min_cpus_per_node=4)).is_plain


def test_the_cpus_of_a_running_job_are_no_demand() -> None:
    assert translate.job(recorded.job(state="RUNNING", cpus=1)).is_plain


def test_values_that_slurm_does_not_know_are_ours_for_none() -> None:
    unknown = dict.fromkeys(recorded.JOB)
    job = translate.job(
        recorded.job(**{**unknown, "id": 5, "user_id": 0, "state": "PENDING", "resource_sharing": "OK"})
    )
    assert (job.tasks, job.cpus, job.cpus_per_task, job.nodes_min, job.nodes_max) == (1, 1, 1, None, None)
    assert (job.name, job.account, job.qos, job.reason, job.submit_s) == ("", "", "", "", 0)


# --- nodes


def test_an_idle_node() -> None:
    node = translate.node(recorded.node())
    assert (node.name, node.partitions, node.threads_per_core) == ("c1", {"main", "plain"}, 1)
    assert (node.capacity, node.allocated) == (Resources(28, 128_000, 20, 118), Resources(0, 0))
    assert node.unavailable == ""


def test_what_slurm_has_allocated_on_a_node() -> None:
    used = {"allocated_cpus": 2, "allocated_memory": 9000, "allocated_gres": {"llc": 4, "membw": 10}}
    node = translate.node(recorded.node(state="MIXED", **used))
    assert node.allocated == Resources(2, 9000, 4, 10)


def test_cpus_become_whole_cores() -> None:
    node = translate.node(recorded.node(threads_per_core=2, effective_cpus=56, allocated_cpus=3))
    assert (node.capacity.cores, node.allocated.cores) == (28, 2)


def test_what_the_system_keeps_is_no_capacity() -> None:
    node = translate.node(recorded.node(effective_cpus=26, memory_reserved_for_system=2000))
    assert node.capacity[:2] == (26, 126_000)


@pytest.mark.parametrize(
    "state",
    [
        "IDLE",
        "ALLOCATED",
        "MIXED",
        "IDLE+COMPLETING",
        "IDLE+POWERED_DOWN",
        "IDLE+POWERING_UP",
        "IDLE+CLOUD",
        "IDLE+DYNAMIC_NORM",
    ],
)
def test_a_node_that_takes_jobs_is_capacity(state: str) -> None:
    assert translate.node(recorded.node(state=state)).unavailable == ""


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ("IDLE+DRAIN", "drain"),
        ("ALLOCATED+DRAIN", "drain"),
        ("IDLE+NOT_RESPONDING", "not_responding"),
        ("DOWN+NOT_RESPONDING", "down+not_responding"),
        ("IDLE+RESERVED", "reserved"),
        ("IDLE+MAINTENANCE", "maintenance"),
        ("IDLE+FAIL", "fail"),
        ("IDLE+REBOOT_REQUESTED", "reboot_requested"),
        ("DOWN+REBOOT_ISSUED", "down+reboot_issued"),
        ("IDLE+POWERING_DOWN", "powering_down"),
        ("IDLE+INVALID_REG", "invalid_reg"),
        ("IDLE+BLOCKED", "blocked"),
        ("FUTURE", "future"),
        ("UNKNOWN", "unknown"),
        ("ERROR", "error"),
        (None, "unknown"),
    ],
)
def test_a_node_that_takes_no_job_is_none_and_says_why(state, why: str) -> None:
    assert translate.node(recorded.node(state=state)).unavailable == why
    assert translate.node(recorded.node(state=state, reason="disk")).unavailable == f"{why}: disk"


# --- the rest


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (None, ()),
        ("", ()),
        ("c1", ("c1",)),
        ("c[1-3],s1", ("c1", "c2", "c3", "s1")),
        ("n[08-10]", ("n08", "n09", "n10")),
    ],
)
def test_node_lists_are_unfolded(text, names) -> None:
    assert translate.node_names(text) == names


def test_a_node_list_that_cannot_be_read_is_an_error_of_one_line() -> None:
    with pytest.raises(SnsError, match=r"node list 'c\[1', which cannot be read"):
        translate.node_names("c[1")


def test_a_reservation() -> None:
    fields = {"name": "look", "nodes": "s[1-2]", "start_time": 1795194071, "end_time": 1795194131}
    seen = translate.reservation(recorded.SimpleNamespace(**fields))
    assert (seen.name, seen.nodes) == ("look", {"s1", "s2"})
    assert (seen.start_s, seen.end_s) == (1795194071, 1795194131)


def test_a_reservation_of_licences_takes_no_node() -> None:
    fields = {"name": "licences", "nodes": None, "start_time": 1, "end_time": 2}
    assert translate.reservation(recorded.SimpleNamespace(**fields)).nodes == frozenset()


def test_a_node_that_slurm_keeps_for_a_job_is_no_less_a_node() -> None:
    kept = translate.node(recorded.node(state="MIXED+PLANNED"))
    assert (kept.unavailable, kept.is_planned) == ("", True)
    assert not translate.node(recorded.node()).is_planned


def test_a_waiting_job_shows_where_slurm_has_planned_it() -> None:
    waits = translate.job(recorded.job(scheduled_nodes="c[1-2]", start_time=9, excluded_nodes="c3"))
    assert (waits.planned_on, waits.start_s, waits.excluded) == (("c1", "c2"), 9, ("c3",))
    assert translate.job(recorded.running(scheduled_nodes="c1")).planned_on == ()


@pytest.mark.parametrize(
    ("asked", "is_countable", "is_alone"),
    [
        ({}, True, False),
        ({"resource_sharing": "NO"}, True, True),
        ({"resource_sharing": "USER"}, False, False),
        ({"excluded_nodes": "c1"}, True, False),
        ({"gres_per_node": {"gres/fpga": 1}}, False, False),
        ({"licenses": ["matlab"]}, False, False),
        ({"constraints": ["ssd"]}, False, False),
    ],
)
def test_what_we_can_count_of_a_job_that_is_not_ours(asked, is_countable: bool, is_alone: bool) -> None:
    job = translate.job(recorded.job(**asked))
    assert (job.is_countable, job.is_alone) == (is_countable, is_alone)


def test_a_partition_without_limits_and_one_with_all_of_them() -> None:
    free = recorded.partition()
    assert translate.partition(free) == ObservedPartition("main", "UP", tier=1, nodes_min=0, preempt_mode="OFF")
    tight = recorded.partition(
        state="DRAIN", min_nodes=2, max_nodes=4, max_time=60, priority_tier=3, preempt_mode="REQUEUE"
    )
    assert translate.partition(tight) == ObservedPartition("main", "DRAIN", 3, 2, 4, 3600, "REQUEUE")


def test_who_may_use_a_partition() -> None:
    closed = recorded.partition(
        allowed_groups=["staff"], allowed_accounts=["physics", "maths"], denied_qos=["low"], denied_accounts=None
    )
    shown = translate.partition(closed)
    assert shown is not None
    assert shown.access == PartitionAccess(
        groups=frozenset({"staff"}), accounts=frozenset({"physics", "maths"}), qos_denied=frozenset({"low"})
    )
    assert shown.access.admits("physics", "normal")
    assert not shown.access.admits("chemistry", "normal")
    assert not shown.access.admits("physics", "low")
