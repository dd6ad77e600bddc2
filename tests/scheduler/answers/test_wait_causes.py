"""What waiting jobs wait for, as the scheduler's answers say it in fields; and how far a job is, for `sns wait`."""

import json
from dataclasses import replace

import pytest
from live import (
    ADVISED,
    ALICE,
    BOB,
    ENFORCE,
    FOREIGN,
    HELD,
    NOW,
    SLURMS,
    job,
    look,
    node,
    pinned,
    running,
    tasks,
    tried,
)
from live import situation as situation_of

from slurm_sns.errors import BadInput
from slurm_sns.json_text import encoded
from slurm_sns.model import Reason, WaitKind
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.scheduler.answers.answer_types import WaitCause
from slurm_sns.scheduler.answers.requests import Answers
from slurm_sns.scheduler.answers.view import RecentCycles, View
from slurm_sns.scheduler.observation import JobState, ObservedPartition

ADMIN = 64030
FULL = (node("c1", taken=(28, 128_000)),)


class NothingRecorded:
    """A decision record without decisions."""

    def of_job(self, _: int) -> list:
        return []

    def job_of_task(self, _: int, __: int) -> None:
        return None


def ask(command: str, *jobs, user: int = ADMIN, nodes=None, tries=(), named=None, depth=20_000, withheld=0, **observed):
    policy = max_jobs(MatchingParameters(queue_depth=depth, reservations=withheld))
    mode = observed.pop("mode", "enforce")
    settings = replace(ENFORCE, mode=mode)
    seen = situation_of(look(*jobs, nodes=nodes, **observed), *tries, settings=settings)
    recent = RecentCycles()
    recent.publish(View(NOW, 0.01, mode, False, 1, 0, 0, seen, policy.plan(seen.snapshot)))
    made = Answers(recent, NothingRecorded(), policy, frozenset({0, ADMIN}), settings=settings, asked=set())
    return json.loads(encoded(made.answer({"command": command, **(named or {})}, user)))


def causes(*jobs, **more) -> dict[str, tuple[str, str] | None]:
    """The kind and what it is about, by label."""
    rows = ask("queue", *jobs, **more)
    return {row["label"]: row["waits"] and (row["waits"]["kind"], row["waits"]["about"]) for row in rows}


@pytest.mark.parametrize(
    ("waiting", "more", "cause"),
    [
        (tasks(1, 8), {"nodes": (node("c1", taken=(24, 1000)),)}, ("resources", "cores")),
        (tasks(1, 8), {"nodes": (node("c1", taken=(1, 127_000)),)}, ("resources", "memory")),
        (tasks(1, 8), {"nodes": FULL}, ("resources", "cores and memory")),
        (job(1, is_alone=True), {"nodes": (node("c1", taken=(1, 9)),)}, ("resources", "an empty node")),
        (job(1, nodes_min=2, nodes_max=2, tasks=2, cpus=2), {"nodes": (*FULL, node("c2"))}, ("nodes", "")),
        (tasks(1, 28), {"nodes": (node("c1", unavailable="down"), node("c2", 4))}, ("too large", "")),
        (job(1, **HELD), {}, ("held", "JobHeldUser")),
        (job(1, waits_for_others=True), {}, ("dependency", "")),
        (job(1, waits_for_others=True, reason="DependencyNeverSatisfied"), {}, ("never", "dependency")),
        (job(1, begin_s=int(NOW) + 600), {}, ("begin time", "")),
        (tasks(1, 2), {"tries": [tried(1, retry_s=NOW + 9, note="placed on c1")]}, ("retry", "")),
        (
            tasks(1, 2),
            {"tries": [tried(1, retry_s=NOW + 9, note="placed", limited_by="AssocGrpCpuLimit")]},
            ("limit", "AssocGrpCpuLimit"),
        ),
        (tasks(1, 2), {"partitions": (ObservedPartition("main", "DOWN"),)}, ("partition", "main")),
        (job(1, **ADVISED, reason="AssocMaxJobsLimit"), {"mode": "advise"}, ("limit", "AssocMaxJobsLimit")),
        (tasks(1, 2, partitions=("plain",)), {}, ("never", "")),
        (pinned(1, "c1"), {}, None),
        (running(1, "c1"), {}, None),
        (tasks(1, 2), {}, None),
    ],
)
def test_each_waiting_job_says_what_kind_of_thing_it_waits_for(waiting, more, cause) -> None:
    assert causes(waiting, **more) == {"1": cause}


def test_withheld_capacity_names_the_job_and_the_nodes_to_admins_and_the_nodes_to_users() -> None:
    bobs = tasks(1, 4, user_id=BOB, user="bob")
    crowd = (running(9, "c1", user_id=BOB), bobs, tasks(2, 2))
    more = {"nodes": (node("c1", 4, taken=(1, 1000)),), "withheld": 1}
    assert causes(*crowd, **more) == {"1": ("next", "c1"), "2": ("withheld", "job 1 on c1"), "9": None}
    assert causes(*crowd, **more, user=ALICE) == {"2": ("withheld", "another user's job on c1")}


def test_jobs_behind_the_queue_depth_and_those_of_limited_arrays_say_so() -> None:
    found = causes(tasks(1, 2), tasks(2, 2), tasks(3, 2), nodes=(node("c1", 3),), depth=2)
    assert found["3"] == ("queue depth", "")
    array = job(41, array_id=41, array_tasks="8-99", array_limit=1)
    found = causes(array, running(50, "c1", array_id=41, array_task=7))
    assert found == {"41_[8-99%1]": ("array limit", ""), "41_7": None}


def test_a_job_that_waits_for_nodes_with_features_says_which() -> None:
    nodes = (node("c1", taken=(28, 1), features=frozenset({"ib"})), node("c2"))
    (row,) = ask("queue", tasks(1, 4, constraint="ib"), nodes=nodes)
    assert row["waits"] == {"kind": "resources", "about": "cores", "features": "ib"}
    (row,) = ask("queue", tasks(1, 4, constraint="ib", **HELD), nodes=nodes)
    assert row["waits"]["features"] == ""


def test_a_reason_is_a_text_and_one_without_a_kind_is_of_the_kind_other() -> None:
    reason = Reason("no room", WaitKind.NODES, "c1")
    assert (reason, json.dumps(reason)) == ("no room", '"no room"')
    more = reason.with_more("; wait")
    assert (more, more.kind, more.about) == ("no room; wait", WaitKind.NODES, "c1")
    assert Reason.of(reason) is reason
    assert Reason.of("no room").kind is WaitKind.OTHER


def test_the_reference_names_every_kind() -> None:
    from sns_docs.json_page import docstrings

    assert all(f"`{kind}`" in docstrings()[WaitCause.__name__]["kind"] for kind in WaitKind)


# --- sns wait


def far(*jobs, user: int = ALICE, job_id: int = 1, **task) -> tuple[str, str, list[str]]:
    found = ask("job", *jobs, user=user, named={"job_id": job_id, **task})
    return found["label"], found["state"], found["nodes"]


ENDED = {"state": JobState.ENDED}


@pytest.mark.parametrize(
    ("seen", "state", "nodes"),
    [
        (tasks(1, 2), "waiting", []),
        (pinned(1, "c1"), "waiting", []),
        (job(1, **SLURMS), "waiting", []),
        (running(1, "c1"), "started", ["c1"]),
        (running(1, "c1", **FOREIGN), "started", ["c1"]),
        (running(1, "c1", state=JobState.SUSPENDED), "started", ["c1"]),
        (running(1, "c1", **ENDED), "started", ["c1"]),
        (job(1, **ENDED), "ended", []),
        (pinned(1, "c1", **ENDED), "ended", []),
    ],
)
def test_a_job_waits_until_slurm_has_given_it_nodes(seen, state: str, nodes: list[str]) -> None:
    assert far(seen) == ("1", state, nodes)


def test_an_array_has_started_when_one_of_its_tasks_has_and_a_task_when_it_has() -> None:
    record = job(41, array_id=41, array_tasks="8-99")
    begun = running(50, "c1", array_id=41, array_task=7)
    assert far(record, job_id=41)[1] == "waiting"
    assert far(record, begun, job_id=41) == ("41_7", "started", ["c1"])
    assert far(record, begun, job_id=41, task=8) == ("41_8", "waiting", [])
    assert far(record, begun, job_id=41, task=7) == ("41_7", "started", ["c1"])
    assert far(begun, job_id=41) == ("41_7", "started", ["c1"]), "Slurm has forgotten the task with the array's own id"


def test_a_waiting_job_says_why_and_only_to_those_who_may_know() -> None:
    asked = {"named": {"job_id": 1}, "nodes": FULL}
    assert "lacks" in ask("job", tasks(1, 4), user=ALICE, **asked)["reason"]
    assert "lacks" in ask("job", tasks(1, 4), user=ADMIN, **asked)["reason"]
    for jobs in ([tasks(1, 4)], []):
        with pytest.raises(BadInput, match=r"^job 1: no job of yours that Slurm or slurm_sns knows$"):
            ask("job", *jobs, user=BOB, **asked)
