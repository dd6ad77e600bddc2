"""What scontrol prints becomes the same values as what pyslurm shows, whatever users have written into their jobs."""

from dataclasses import replace

import pytest
import recorded
import scontrol_samples as samples
from hypothesis import given
from hypothesis import strategies as st

from slurm_sns import gpus
from slurm_sns.gpus import GpuRequest
from slurm_sns.model import gpus_of
from slurm_sns.scheduler.observation import JobState, ObservedJob
from slurm_sns.slurm import scontrol_text, translate
from slurm_sns.slurm.translate import MOST_MEMORY_MB


def seen(text: str) -> ObservedJob:
    (record,) = scontrol_text.jobs(text).records
    return translate.job(record, lambda _: record.user)


def of_pyslurm(**fields) -> ObservedJob:
    return translate.job(recorded.job(**fields), {2001: "alice"}.__getitem__)


WAITS = {"state_reason": "Resources", "eligible_time": 1795193945, "start_time": None}


@pytest.mark.parametrize("release", samples.RELEASES)
def test_a_waiting_job_is_the_same_as_pyslurm_shows_it(release: str) -> None:
    shown = of_pyslurm(**WAITS, max_nodes=16 if release.startswith("26") else 1)
    assert seen(samples.job(release)) == shown
    assert shown.is_plain


def test_the_addresses_of_mail_are_the_same() -> None:
    noted = {"admin_comment": f"sns:2 g={recorded.GATE_S}", "eligible_time": recorded.GATE_S}
    text = samples.job(AdminComment=noted["admin_comment"], EligibleTime="2026-11-21T00:00:00")
    text = text.rstrip("\n") + " MailUser=a@x.org,b MailType=INVALID_DEPEND,BEGIN,END,FAIL,REQUEUE,STAGE_OUT\n"
    assert seen(text).mail_to == "a@x.org,b"
    assert seen(text).mail_to == of_pyslurm(**noted, mail_types=["BEGIN", "FAIL"], mail_user=["a@x.org", "b"]).mail_to


def test_a_running_job_is_the_same() -> None:
    shown = of_pyslurm(
        state="RUNNING",
        state_reason="None",
        eligible_time=1795193945,
        start_time=1795194262,
        end_time=1795194322,
        allocated_nodes="c1",
        max_nodes=None,
    )
    assert seen(samples.job(**samples.RUNNING)) == shown


def test_nodes_and_partitions_are_the_same() -> None:
    (node,) = scontrol_text.nodes(samples.node()).records
    assert translate.node(node) == translate.node(recorded.node())
    (partition,) = scontrol_text.partitions(samples.partition()).records
    assert translate.partition(partition) == translate.partition(recorded.partition())


def test_the_gpus_of_a_job_are_read() -> None:
    typed = seen(samples.job(TresPerNode="gres/gpu:a100:2", ReqTRES="cpu=1,mem=1G,node=1,gres/gpu=2"))
    assert (typed.gpus, typed.own_gres, typed.asks_for) == (
        GpuRequest(gpus.NODE, (("a100", 2),)),
        "gres/gpu:a100:2",
        (),
    )
    by_task = {"TresPerTask": "cpu=4,gres/gpu=1", "MemPerTres": "gres/gpu:4096"}
    assert seen(samples.job(**by_task)).gpus == GpuRequest(gpus.TASK, (("", 1),), memory_mb=4096)
    assert seen(samples.job()).gpus is None


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        ({"TresPerNode": "gres/gpu:a100:2,gres/shard:1"}, "gres"),
        ({"TresPerNode": "gres:gpu:1", "GresEnforceBind": "Yes"}, "gres"),
        ({"TresPerNode": "gres:gpu:1", "GresEnforceBind": "No"}, "gres"),
        ({"TresPerTask": "cpu=4,gres/shard=1"}, "gres"),
        ({"ReqTRES": "cpu=1,mem=1G,node=1,gres/gpu=1"}, "gres"),
        ({"Switches": "1@00:05:00"}, "switches"),
        ({"Reservation": "maintenance"}, "reservation"),
        ({"Licenses": "matlab:2"}, "licences"),
        ({"Contiguous": "1"}, "contiguous"),
        ({"Exclusive": "USER"}, "exclusive or oversubscribe"),
        ({"OverSubscribe": "USER", "Exclusive": None}, "exclusive or oversubscribe"),
        ({"ReqB:S:C:T": "0:0:4:*"}, "boards, sockets, cores, threads"),
        ({"Socks/Node": "2"}, "boards, sockets, cores, threads"),
        ({"MinTmpDiskNode": "10G"}, "temporary disk"),
        ({"Features": "[a*2&b]"}, "constraint"),
        ({"Deadline": "1795197546"}, "deadline"),
        ({"HetJobId": "1"}, "heterogeneous job"),
    ],
)
def test_what_we_do_not_place_is_seen(fields: dict[str, str], asked: str) -> None:
    assert seen(samples.job(**fields)).asks_for == (asked,)


@pytest.mark.parametrize(
    ("release", "fields", "is_alone"),
    [
        ("26.05.5", {"Exclusive": "NODE"}, True),
        ("26.05.5", {}, False),
        ("25.11.2", {"OverSubscribe": "NO"}, True),
        ("25.11.2", {}, False),
    ],
)
def test_a_job_alone_on_its_nodes_is_seen(release: str, fields: dict[str, str], is_alone: bool) -> None:
    assert seen(samples.job(release, **fields)).is_alone is is_alone


def test_cpus_of_each_task_are_no_gres() -> None:
    assert seen(samples.job(TresPerTask="cpu=1")).asks_for == ()


@pytest.mark.parametrize(
    ("fields", "label"),
    [
        ({"ArrayJobId": "1", "ArrayTaskId": "0-3,9%2", "ArrayTaskThrottle": "2"}, "1_[0-3,9%2]"),
        ({"ArrayJobId": "1", "ArrayTaskId": "7"}, "1_7"),
        ({"ArrayJobId": "1", "ArrayTaskId": "0"}, "1_0"),
    ],
)
def test_arrays_are_seen(fields: dict[str, str], label: str) -> None:
    assert seen(samples.job(**fields)).label == label


@pytest.mark.parametrize(("text", "seconds"), [("UNLIMITED", None), ("2-00:00:00", 172_800), ("01:30:00", 5400)])
def test_time_limits_are_seen(text: str, seconds: int | None) -> None:
    assert seen(samples.job(TimeLimit=text)).walltime_s == seconds


def test_numbers_may_have_units() -> None:
    job = seen(samples.job(NumCPUs="16K", NumTasks="16K", NumNodes="1K-2K", MinMemoryCPU="4G"))
    assert (job.cpus, job.nodes_min, job.nodes_max, job.memory_per_cpu_mb) == (16384, 1024, 2048, 4096)


def test_local_times_are_read_too() -> None:
    text = samples.job(SubmitTime="2026-11-20T10:00:00")
    assert seen(text).submit_s == pytest.approx(1795168800, abs=86_400)


@pytest.mark.parametrize("text", ["9" * 5000, "-1", "4611686018427387903M", "1e9", "٣", "nan"])
def test_an_odd_number_costs_at_most_that_job(text: str) -> None:
    job = seen(samples.job(MinMemoryCPU=text, NumCPUs=text, SubmitTime=text))
    assert job.unreadable or 0 <= (job.memory_per_cpu_mb or 0) <= MOST_MEMORY_MB


@pytest.mark.parametrize("left", ["SuspendTime", "NumTasks", "OverSubscribe", "Priority", "ReqB:S:C:T", "Requeue"])
def test_a_field_that_is_not_there_is_none(left: str) -> None:
    assert seen(samples.job(**{left: None})).id == 1


@pytest.mark.parametrize("key", ["Comment", "WorkDir", "Command", "SubmitLine"])
def test_a_text_behind_slurms_fields_changes_none_of_them(key: str) -> None:
    hostile = "x JobState=RUNNING NodeList=c9 Priority=0 UserId=root(0) Partition=other"
    plain = replace(seen(samples.job(**{key: "x"})), comment="")
    assert replace(seen(samples.job(**{key: hostile})), comment="") == plain


def test_a_name_changes_none_either() -> None:
    for name in (
        "a b",
        "x JobState=RUNNING",
        "Command=/bin/sh JobId=9",
        "x UserId=root(0) y",
        "JobName=JobName=",
        "=",
        "",
    ):
        assert replace(seen(samples.job(JobName=name)), name="") == replace(seen(samples.job()), name="")
        assert seen(samples.job(JobName=name)).name == name


def test_a_job_whose_text_looks_like_slurms_own_is_left_out_and_no_other() -> None:
    forged = samples.job(JobId="9", JobState="RUNNING").removesuffix("\n")
    for key in ("JobName", "Comment", "Network", "WCKey"):
        answer = scontrol_text.jobs(samples.job(**{key: forged}) + samples.job(JobId="2"))
        assert [record.id for record in answer.records] == [2], key
        assert answer.left_out == {"a text of a job looks like Slurm's own fields": 1}


def test_a_key_of_slurms_own_that_comes_twice_costs_that_job() -> None:
    answer = scontrol_text.jobs(samples.job(WCKey="x JobState=RUNNING") + samples.job(JobId="2", WCKey="x y"))
    assert [record.id for record in answer.records] == [2]


def test_what_an_admin_writes_about_a_node_changes_none_of_its_fields() -> None:
    (record,) = scontrol_text.nodes(samples.node(Reason="broken State=IDLE [root@1795190000]", State="DOWN")).records
    assert translate.node(record).unavailable == "down: broken State=IDLE"


def test_a_line_break_in_a_text_ends_no_record() -> None:
    for name in ("a\nb", "a\n\nJobId=", "\n", "a\n JobId=5 JobName=x", "a\nJobId=x\n", "a\nNo jobs in the system\n"):
        answer = scontrol_text.jobs(samples.job(JobName=name) + samples.job(JobId="2"))
        assert [(record.id, record.name) for record in answer.records] == [(1, name), (2, "wrap")], name
        assert not answer.left_out
    wrapped = samples.job(SubmitLine="sbatch --wrap=a\nb\n", Comment="sns:off") + samples.job(JobId="2")
    assert [record.comment for record in scontrol_text.jobs(wrapped).records] == ["sns:off", None]


def test_a_name_with_a_line_that_begins_like_a_record_costs_that_job() -> None:
    answer = scontrol_text.jobs(samples.job(JobName="a\nJobId=2 JobName=x") + samples.job(JobId="3"))
    assert [record.id for record in answer.records] == [2, 3]
    assert answer.left_out == {"a job's line is cut off": 1}


def test_a_carriage_return_or_a_nul_ends_no_line() -> None:
    for name in ("a\rJobId=5 JobName=x", "a\0b", "a\x1b[2Jb", "a\x85b", "a\u2028b"):
        assert seen(samples.job(JobName=name)).name == name


def test_a_record_that_comes_twice_counts_once() -> None:
    answer = scontrol_text.jobs(samples.job() + samples.job(JobState="RUNNING"))
    assert [record.state for record in answer.records] == ["PENDING"]
    assert answer.left_out == {"two records have the same JobId": 1}


def test_an_answer_that_is_cut_off_loses_its_last_record_and_says_so() -> None:
    whole = samples.job() + samples.job(JobId="2")
    answer = scontrol_text.jobs(whole[:-100])
    assert ([record.id for record in answer.records], answer.left_out.total()) == ([1], 1)


@pytest.mark.parametrize("text", ["", "No jobs in the system\n", "\n"])
def test_no_jobs_are_no_jobs(text: str) -> None:
    assert scontrol_text.jobs(text) == ((), {})


@pytest.mark.parametrize(
    ("state", "unavailable"),
    [("IDLE", ""), ("MIXED+PLANNED", ""), ("DOWN*", "down+not_responding"), ("IDLE+DRAIN", "drain"), ("IDLE~", "")],
)
def test_the_state_of_a_node(state: str, unavailable: str) -> None:
    (record,) = scontrol_text.nodes(samples.node(State=state)).records
    assert translate.node(record).unavailable == unavailable


def test_what_a_node_has_given_away() -> None:
    text = samples.node(CPUAlloc="4", AllocMem="1000", GresUsed="llc:6(IDX:N/A),gpu:a100:1(IDX:0-1,3),membw:40")
    (record,) = scontrol_text.nodes(text).records
    taken = translate.node(record).allocated
    assert (taken.cores, taken.memory_mb, taken.ways, taken.bandwidth_gbps) == (4, 1000, 6, 40)
    without = "".join(text.partition(" GresUsed=")[::2]).replace("AllocTRES=", "AllocTRES=cpu=4,gres/llc=6")
    (record,) = scontrol_text.nodes(without).records
    assert translate.node(record).allocated.ways == 6


def test_the_gpus_of_a_node_and_which_of_them_are_in_use() -> None:
    used = "gpu:a100:1(IDX:0),gpu:b:0(IDX:N/A),llc:6"
    (record,) = scontrol_text.nodes(samples.node(Gres="gpu:a100:4(S:0-1),gpu:b:2,llc:20", GresUsed=used)).records
    shown = translate.node(record)
    assert (shown.capacity.gpus, shown.allocated.gpus) == (gpus_of({"a100": 4, "b": 2}), gpus_of({"a100": 1}))


def test_a_reservation() -> None:
    text = "ReservationName=root_1 StartTime=1795194000 EndTime=1795197600 Duration=01:00:00 Nodes=c[1-2] NodeCnt=2\n"
    (record,) = scontrol_text.reservations(text).records
    found = translate.reservation(record)
    assert (found.name, found.nodes, found.start_s) == ("root_1", {"c1", "c2"}, 1795194000)


@given(st.text(), st.text(), st.sampled_from(["JobName", "Comment", "Network", "Features", "WCKey", "Dependency"]))
def test_no_text_of_a_user_raises_or_touches_another_job(text: str, more: str, key: str) -> None:
    answer = scontrol_text.jobs(samples.job(**{key: f"{text} {more}"}) + samples.job(JobId="2"))
    jobs = [translate.job(record) for record in answer.records]
    assert jobs[-1].id == 2
    assert jobs[-1].state is JobState.PENDING


@given(st.text())
def test_any_answer_is_read(text: str) -> None:
    for read in (scontrol_text.jobs, scontrol_text.nodes, scontrol_text.partitions, scontrol_text.reservations):
        read(text)
    assert scontrol_text.configuration(text).priority_weight_age == 0
