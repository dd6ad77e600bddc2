"""The reason why a job passes through, as far as the observed job shows it."""

from dataclasses import replace

import pytest
from live import ENFORCE, FOREIGN, HELD, SHARING, SLURMS, comment, job, running

from slurm_sns.gpus import NODE, GpuRequest
from slurm_sns.scheduler.answers.pass_through import ASKS, FREED, NOT_SHOWN, WHOLE_MEMORY, reason
from slurm_sns.scheduler.observation import JobState
from slurm_sns.submit import record as records
from slurm_sns.submit.submission import UNPLACED


def plain(**fields):
    """A pass-through job that waits in Slurm's own queue and shows no reason why it passes through."""
    return job(12, **{**FOREIGN, **fields})


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"partitions": ("plain",)}, "partition plain is not managed"),
        ({"partitions": ("main", "plain", "debug")}, "partitions plain, debug are not managed"),
        ({"comment": "sns:off"}, "its comment is sns:off"),
        ({"is_batch": False}, "it is not a batch job (srun or salloc)"),
        ({"asks_for": ("prefer",)}, "it prefers nodes with a feature (--prefer)"),
        ({"pinned_to": ("c1",)}, "it names its nodes (--nodelist)"),
        ({"ways": 4}, "it asks for gres (--gres, --gpus)"),
        ({"nodes_min": 2, "nodes_max": 4}, "it asks for a range of nodes (-N 2-4)"),
        ({"asks_for": ("deadline",)}, "it has a deadline (--deadline)"),
        ({"unreadable": "gres: x"}, "its record cannot be read: gres: x"),
        ({"priority": 0, "reason": "JobHeldUser"}, "it is held (JobHeldUser)"),
        ({"priority": 0, "reason": "JobHeldAdmin"}, "it is held (JobHeldAdmin)"),
        (
            {"priority": 0, "reason": "BadConstraints"},
            "Slurm holds it, because it can never start as it is (BadConstraints)",
        ),
    ],
)
def test_what_the_record_shows_is_the_reason(fields, why: str) -> None:
    assert reason(plain(**fields), ENFORCE) == why


def test_gpus_are_the_reason_only_where_they_are_not_placed() -> None:
    shown = plain(gpus=GpuRequest(NODE, (("", 2),)))
    assert reason(shown, ENFORCE) == "it asks for gres (--gres, --gpus)"
    assert reason(shown, replace(ENFORCE, places_gpus=True)) == NOT_SHOWN


def test_partitions_that_share_cores_and_others_are_named_only_where_the_job_names_both() -> None:
    sharing = replace(ENFORCE, sharing=SHARING)
    why = "it names a partition whose jobs share cores, and another one; valid is one of them alone"
    assert reason(plain(partitions=("small", "main")), sharing) == why
    assert reason(plain(partitions=("small",), is_batch=False), sharing) == "it is not a batch job (srun or salloc)"


def test_everything_that_the_record_shows_is_named_once() -> None:
    shown = plain(partitions=("plain",), asks_for=("node list", "licences"), pinned_to=("c1",), priority=0)
    assert reason(shown, ENFORCE) == (
        "partition plain is not managed; it names its nodes (--nodelist) and asks for licences (--licenses)"
    )


def test_every_name_of_what_is_not_placed_has_its_words() -> None:
    assert {name for name, _ in UNPLACED} <= ASKS.keys()


def test_a_name_without_words_is_shown_as_it_is() -> None:
    assert reason(plain(asks_for=("a new thing",)), ENFORCE) == "it asks for a new thing"


@pytest.mark.parametrize("state", JobState)
def test_where_the_record_shows_no_reason_all_are_named_that_it_cannot_show(state: JobState) -> None:
    assert reason(plain(state=state), ENFORCE) == NOT_SHOWN


@pytest.mark.parametrize("mode", ["observe", "advise"])
def test_a_mode_that_gates_nothing_is_the_reason_where_there_is_no_other(mode: str) -> None:
    settings = replace(ENFORCE, mode=mode)
    assert reason(plain(), settings) == f"the mode is {mode}, in which slurm_sns places no jobs"
    assert reason(plain(is_batch=False), settings) == "it is not a batch job (srun or salloc)"


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("clean-stop", "slurm_sns was stopped"),
        ("disabled", "slurm_sns was switched off (sns disable)"),
        ("node-list", "its owner gave it a node list"),
        ("no-node-has-99-cores", "no node has 99 cores"),
    ],
)
@pytest.mark.parametrize("state", JobState)
def test_a_job_that_we_left_to_slurm_says_why(word: str, why: str, state: JobState) -> None:
    freed = job(12, admin_comment=comment(gate_s=None, free_why=word), begin_s=0, state=state)
    assert reason(freed, ENFORCE) == f"slurm_sns left it to Slurm: {why}"


def test_every_word_that_the_scheduler_writes_reads_as_a_clause() -> None:
    assert all(records.reason(word) == word for word in FREED)


def test_a_job_with_our_record_whose_partition_is_managed_no_more_names_the_partition() -> None:
    assert reason(job(12, partitions=("plain",), **SLURMS), ENFORCE) == "partition plain is not managed"


def test_a_job_that_we_left_to_slurm_and_that_somebody_holds_is_held() -> None:
    assert reason(job(12, **SLURMS, **HELD), ENFORCE) == "it is held (JobHeldUser)"


def test_the_nodes_and_gres_of_a_job_with_our_record_may_be_those_that_we_gave_it() -> None:
    assert "--nodelist" not in reason(running(12, "c1", ways=4, bandwidth_gbps=10), ENFORCE)


def test_how_many_nodes_a_job_has_that_runs_says_nothing_about_a_range() -> None:
    assert reason(plain(state=JobState.RUNNING, nodes_min=1, nodes_max=4), ENFORCE) == NOT_SHOWN


def test_a_job_that_names_no_memory_is_told_that_its_nodes_may_differ_in_it() -> None:
    assert reason(plain(memory_per_cpu_mb=None), ENFORCE) == WHOLE_MEMORY
    asking = plain(memory_per_cpu_mb=None, asks_for=("prefer",))
    assert reason(asking, ENFORCE) == "it prefers nodes with a feature (--prefer)"
