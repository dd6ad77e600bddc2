from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_sns.submit import record
from slurm_sns.submit.judge import ADVISE, Manage, PassThrough, Refuse, judge
from slurm_sns.submit.submission import Submission
from slurm_sns.submit.table import FilterTable, NodeShape

TABLE = FilterTable(
    mode="enforce",
    partitions={"main": (NodeShape(28, 28, 128000, 4),), "small": (NodeShape(4, 4, 32768, 2),)},
    default_partition="main",
    heuristics=("first-fit", "mix-fit"),
    default_memory_per_cpu_mb=4500,
    heartbeat_path="/run/sns/heartbeat",
    heartbeat_timeout_s=10,
    kill_switch_path="/etc/slurm/sns/disabled",
)
JOB = Submission(num_tasks=16, min_cpus=16)
WRONG = replace(JOB, comment="sns:alpha=2")
#: The gate of a job that is submitted at 100.
GATE_S = 160
GATED = Manage("sns:2 g=160", GATE_S)


def verdict(job, now_s=100, heartbeat_s=100, killed=False, **changes):
    return judge(job, replace(TABLE, **changes), now_s, heartbeat_s, killed)


def test_a_batch_job_of_a_managed_partition_gets_a_record_and_a_gate():
    assert verdict(JOB) == GATED
    assert verdict(replace(JOB, options=(("alpha", "0.9"),))) == Manage("sns:2 alpha=0.9 g=160", GATE_S)


def test_the_first_gate_stands_two_heartbeat_timeouts_away_and_at_least_a_minute():
    assert verdict(JOB, heartbeat_timeout_s=300) == Manage("sns:2 g=700", 700)


def test_advise_writes_a_record_that_the_job_is_slurms_and_no_gate():
    assert verdict(JOB, mode="advise") == Manage("sns:2 free=advise", None)
    job = replace(JOB, options=(("exclusive", ""),), max_nodes=1, begin_time=500)
    assert verdict(job, mode="advise") == Manage("sns:2 exclusive fixed free=advise", None)


@pytest.mark.parametrize(
    ("begin_s", "gate_s", "noted"),
    [
        (99, 160, ""),
        (100, 160, ""),
        (101, 160, " b=101"),
        (159, 160, " b=159"),
        (160, 160, " b=160"),
        (5000, 5000, " b=5000"),
        (10**11 - 1, 10**11 - 1, " b=99999999999"),
    ],
)
def test_a_begin_time_of_the_owners_is_noted_and_is_the_gate_where_it_is_far_enough_away(begin_s, gate_s, noted):
    assert verdict(replace(JOB, begin_time=begin_s)) == Manage(f"sns:2 g={gate_s}{noted}", gate_s)


def test_a_job_that_is_submitted_held_is_gated_like_any_other():
    assert verdict(replace(JOB, priority=0)) == GATED


@pytest.mark.parametrize("text", ["JS1:H4sI", "note; ", "a\nb", "é", "SNS:2", "\udcff"])
def test_the_text_of_an_administrator_stays_before_our_record(text):
    assert verdict(replace(JOB, admin_comment=text)) == Manage(f"{text};sns:2 g=160", GATE_S)


@pytest.mark.parametrize("text", ["sns:2 g=5", "sns:", "a;sns:2 free=x", "xsns:1"])
def test_a_job_whose_admin_comment_may_have_a_record_already_passes(text):
    assert verdict(replace(JOB, admin_comment=text)) == PassThrough("own admin comment")


@given(st.text(), st.sampled_from(["advise", "enforce"]), st.none() | st.integers(0, 10**12))
def test_whatever_stands_in_admin_comment_the_record_can_be_read(text, mode, begin_s):
    said = verdict(replace(JOB, admin_comment=text, begin_time=begin_s), mode=mode)
    if isinstance(said, Manage):
        noted = record.read(said.admin_comment)
        assert noted.free_why == (ADVISE if mode == "advise" else "")
        assert noted.gate_s == said.begin_s
        assert said.admin_comment.startswith(text)


@pytest.mark.parametrize("hint", ["fixed", "g=5", "free=x", "grant=a"])
def test_what_the_filter_and_the_scheduler_write_in_a_record_is_no_hint_of_a_users(hint):
    key, _, value = hint.partition("=")
    for mode in ("advise", "enforce"):
        assert "unknown hint" in verdict(replace(JOB, comment=f"sns:{hint}"), mode=mode).message
        assert "unknown hint" in verdict(replace(JOB, options=((key, value),)), mode=mode).message


@pytest.mark.parametrize("job", [JOB, WRONG, replace(JOB, num_tasks=1000)])
def test_observe_leaves_every_job_as_if_we_were_not_there(job):
    assert verdict(job, mode="observe") == PassThrough("mode observe")


@pytest.mark.parametrize("job", [JOB, WRONG, replace(JOB, num_tasks=1000)])
def test_kill_switch_and_stale_heartbeat_let_everything_pass(job):
    assert verdict(job, killed=True) == PassThrough("kill switch")
    assert verdict(job, heartbeat_s=None) == PassThrough("no heartbeat")
    assert verdict(job, heartbeat_s=89) == PassThrough("stale heartbeat")
    assert verdict(job, heartbeat_s=111) == PassThrough("stale heartbeat")


@pytest.mark.parametrize("age_s", [-10, 0, 10])
def test_a_heartbeat_within_its_timeout_counts(age_s):
    assert isinstance(verdict(JOB, heartbeat_s=100 - age_s), Manage)


@pytest.mark.parametrize(
    ("partition", "managed"),
    [("", True), ("small", True), ("main,small", True), ("main,gpu", False), ("gpu", False)],
)
def test_all_partitions_of_a_job_must_be_managed(partition, managed):
    job = replace(JOB, partition=partition, num_tasks=1)
    assert verdict(job) == (GATED if managed else PassThrough("partition not managed"))


def test_without_a_default_partition_a_job_that_names_none_passes():
    assert verdict(JOB, default_partition="") == PassThrough("partition not managed")


@pytest.mark.parametrize("mode", ["advise", "enforce"])
def test_a_wrong_hint_is_refused_in_managed_partitions_only(mode):
    assert "alpha must be" in verdict(WRONG, mode=mode).message
    assert "alpha must be" in verdict(replace(WRONG, batch=False), mode=mode).message
    assert verdict(replace(WRONG, partition="gpu"), mode=mode) == PassThrough("partition not managed")


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"batch": False}, "not a batch job"),
        ({"het_job_offset": 0}, "heterogeneous job"),
        ({"min_nodes": 1, "max_nodes": 3}, "range of nodes"),
        ({"reservation": "maint"}, "reservation"),
        ({"clusters": "mini"}, "clusters"),
        ({"clusters": "mini,other"}, "clusters"),
        ({"spank_job_env_size": 65}, "large SPANK environment"),
        ({"script_bytes": 262145}, "large script"),
        ({"comment": "é" * 513}, "long comment"),  # Slurm refuses it later
        ({"tres_per_task": "cpu:1," * 200}, "gres per task"),  # Slurm refuses it later
        ({"tres_per_node": "gres/gpu:1"}, "gres"),
        ({"tres_per_task": "cpu=4,gres/gpu=1"}, "gres per task"),
        ({"features": "intel*2"}, "constraint"),
        ({"features": "[intel|amd]"}, "constraint"),
        ({"features": "intel]"}, "constraint"),
        ({"features": "i" * 1025}, "constraint"),
        ({"features": "intel", "batch_features": "intel"}, "constraint"),
        ({"prefer": "intel"}, "prefer"),
        ({"req_nodes": "c1"}, "node list"),
        ({"shared": 1}, "exclusive or oversubscribe"),
        ({"shared": 2}, "exclusive or oversubscribe"),
        ({"contiguous": 1}, "contiguous"),
        ({"spread": True}, "spread job"),
        ({"req_switch": 1}, "switches"),
        ({"licenses": "matlab"}, "licences"),
        ({"burst_buffer": "#BB"}, "burst buffer"),
        ({"threads_per_core": 1}, "boards, sockets, cores, threads"),
        ({"ntasks_per_socket": 1}, "tasks per board, socket, core"),
        ({"priority": 1}, "own priority"),
        ({"begin_time": 10**11}, "distant begin time"),
        ({"has_deadline": True}, "deadline"),
        ({"comment": "sns:off"}, "off"),
        ({"min_cpus": 1}, "overcommit"),
        ({"pn_min_cpus": 4}, "minimum CPUs"),
    ],
)
def test_what_we_do_not_place_passes_through_and_says_why(asked, reason):
    assert verdict(replace(JOB, **asked)) == PassThrough(reason)


@pytest.mark.parametrize(
    "asked",
    [
        {"tres_per_node": "gres/gpu:a100:2"},
        {"tres_per_task": "cpu=4,gres/gpu=1", "cpus_per_task": 4},
        {"tres_per_job": "gres/gpu:2", "cpus_per_tres": "gres/gpu:4", "mem_per_tres": "gres/gpu:4096"},
    ],
)
def test_jobs_with_gpus_are_gated_where_the_nodes_have_some(asked):
    assert verdict(replace(JOB, **asked), places_gpus=True) == GATED
    assert isinstance(verdict(replace(JOB, **asked)), PassThrough)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"tres_per_node": "gres/gpu:1,gres/shard:2"}, "gres"),
        ({"tres_per_node": "gres/gpu:1", "has_gres_flags": True}, "gres"),
        ({"tres_per_task": "cpu=4,license/matlab=1"}, "gres per task"),
        ({"tres_per_node": "gres/gpu:1", "ntasks_per_tres": 2}, "tasks per gpu"),
    ],
)
def test_other_gres_beside_gpus_pass_through(asked, reason):
    assert verdict(replace(JOB, **asked), places_gpus=True) == PassThrough(reason)


def test_memory_that_goes_with_gpus_is_not_the_default_of_each_cpu():
    asked = {
        "tres_per_node": "gres/gpu:1",
        "mem_per_tres": "gres/gpu:100",
        "num_tasks": 28,
        "min_cpus": 28,
        "max_nodes": 1,
    }
    table = {"places_gpus": True, "default_memory_per_cpu_mb": 10_000}
    assert isinstance(verdict(replace(JOB, **asked), **table), Manage)
    assert isinstance(verdict(replace(JOB, **{**asked, "mem_per_tres": ""}), **table), Refuse)


@pytest.mark.parametrize(
    "asked",
    [
        {"contiguous": 0, "boards_per_node": 0, "segment_size": 0},  # as Slurm 26.05 sends them when not asked for
        {"num_tasks": 3, "cpus_per_task": 4, "min_cpus": 12, "pn_min_cpus": 4, "tres_per_task": "cpu=4"},  # -n3 -c4
        {"comment": "a run", "min_mem_per_node": 0},
        {"min_nodes": 1},  # as pyslurm sends it
    ],
)
def test_what_slurm_fills_in_by_itself_does_not_count_as_asked_for(asked):
    assert verdict(replace(JOB, **asked)) == GATED


@pytest.mark.parametrize(
    "asked", [{"min_nodes": 2}, {"max_nodes": 1}, {"ntasks_per_node": 8}, {"distribution": "block"}]
)
def test_a_record_says_that_a_job_fixes_its_geometry(asked):
    assert verdict(replace(JOB, **asked)) == Manage("sns:2 fixed g=160", GATE_S)


@pytest.mark.parametrize(
    ("asked", "default_mb", "passes"),
    [
        ({"min_mem_per_node": 0}, 4500, True),
        ({"min_mem_per_cpu": 0}, 4500, True),  # Slurm makes --mem=0 of it
        ({}, 0, True),
        ({}, 4500, False),
        ({"min_mem_per_node": 1000}, 0, False),
        ({"min_mem_per_cpu": 1000}, 0, False),
    ],
)
@pytest.mark.parametrize("mode", ["advise", "enforce"])
def test_a_job_that_gets_the_whole_memory_of_unlike_nodes_is_slurms(asked, default_mb, passes, mode):
    changes = {"mode": mode, "default_memory_per_cpu_mb": default_mb}
    job = replace(JOB, partition="small,main", num_tasks=4, min_cpus=4, **asked)
    said = verdict(job, **changes)
    assert (said == PassThrough("whole memory of unlike nodes")) is passes
    for partition in ("main", "small"):  # each has nodes of one memory size
        assert isinstance(verdict(replace(job, partition=partition), **changes), Manage)


@pytest.mark.parametrize("mode", ["advise", "enforce"])
@pytest.mark.parametrize(
    ("partition", "passes"),
    [("main", False), ("small", False), ("", False), ("small,small", False), ("main,small", True)],
)
def test_a_job_that_names_a_partition_whose_jobs_share_cores_names_no_other(partition, passes, mode):
    job = replace(JOB, partition=partition, num_tasks=1, min_cpus=1)
    said = verdict(job, sharing=("small",), mode=mode)
    assert (said == PassThrough("partitions that share cores and others")) is passes
    assert isinstance(verdict(job, mode=mode), Manage)


def test_unlike_nodes_of_one_partition_count_and_nodes_that_differ_in_cores_alone_do_not():
    mixed = {"main": (NodeShape(28, 28, 128000, 4), NodeShape(28, 28, 256000, 1))}
    alike = {"main": (NodeShape(28, 28, 128000, 4), NodeShape(14, 28, 128000, 1))}
    job = replace(JOB, min_mem_per_node=0)
    assert verdict(job, partitions=mixed) == PassThrough("whole memory of unlike nodes")
    assert verdict(job, partitions=alike) == GATED
    assert verdict(job, partitions={"main": ()}) == GATED


def test_a_list_of_partitions_that_slurm_would_not_take_is_not_split():
    names = "main," * 205
    assert verdict(replace(JOB, partition=names)) == PassThrough("partition not managed")
    assert verdict(replace(JOB, partition=names[:1024])) == GATED


def test_of_very_many_kinds_of_nodes_no_refusal_is_worked_out():
    huge = replace(JOB, num_tasks=10**6, min_cpus=10**6)
    shapes = tuple(NodeShape(28, 28, 128000 + number, 1) for number in range(501))
    assert isinstance(verdict(huge, partitions={"main": shapes[:500]}), Refuse)
    assert isinstance(verdict(huge, partitions={"main": shapes}), Manage)


def test_128g_on_a_node_of_128000_mib_is_refused_with_the_largest_node():
    message = verdict(replace(JOB, min_mem_per_node=128 * 1024)).message
    assert "no node has 131072 MiB" in message
    assert "the largest node of partition main has 28 cores, 28 CPUs and 128000 MiB" in message
    assert isinstance(verdict(replace(JOB, min_mem_per_node=128000)), Manage)


@pytest.mark.parametrize(
    ("asked", "fits"),
    [
        ({"num_tasks": 112}, True),
        ({"num_tasks": 113}, False),
        ({"num_tasks": 28, "max_nodes": 1}, True),
        ({"num_tasks": 29, "max_nodes": 1}, False),
        ({"num_tasks": 1, "cpus_per_task": 29}, False),
        ({"num_tasks": 1, "cpus_per_task": 28, "min_mem_per_cpu": 4572}, False),  # 128016 MiB
        ({"num_tasks": 1, "cpus_per_task": 28, "min_mem_per_cpu": 4571}, True),
        ({"num_tasks": 28, "max_nodes": 1, "min_mem_per_cpu": 4572}, False),
        ({"num_tasks": None, "min_nodes": 5, "min_cpus": 5}, False),
        ({"num_tasks": None, "min_nodes": 4, "min_cpus": 4}, True),
        ({"num_tasks": None, "ntasks_per_node": 29, "min_cpus": 29}, True),  # no -N: two nodes would do
        ({"num_tasks": None, "ntasks_per_node": 29, "min_nodes": 2, "max_nodes": 2, "min_cpus": 58}, False),
        ({"num_tasks": 40, "ntasks_per_node": 8}, False),
        ({"num_tasks": 32, "ntasks_per_node": 8}, True),
        ({"partition": "small"}, False),
        ({"partition": "small,main"}, True),
        ({"partition": "small", "num_tasks": 8}, True),
        ({"partition": "small", "num_tasks": 8, "min_mem_per_node": 32769}, False),
    ],
)
def test_a_job_is_refused_exactly_when_no_partition_could_ever_hold_it(asked, fits):
    job = replace(JOB, **{"min_cpus": None, **asked})
    assert isinstance(verdict(job), Manage if fits else Refuse)


def test_advise_leaves_a_job_that_is_too_large_to_slurm():
    assert isinstance(verdict(replace(JOB, num_tasks=1000, min_cpus=1000), mode="advise"), Manage)


def test_a_partition_of_unknown_nodes_refuses_nothing():
    assert isinstance(verdict(replace(JOB, num_tasks=1000, min_cpus=1000), partitions={"main": ()}), Manage)


def test_without_a_default_memory_a_job_that_names_none_is_judged_by_its_cpus():
    job = replace(JOB, num_tasks=28, min_cpus=28, max_nodes=1)
    assert isinstance(verdict(job, default_memory_per_cpu_mb=0), Manage)
    assert isinstance(verdict(job, default_memory_per_cpu_mb=5000), Refuse)
