"""What a cycle remembers of unchanged jobs saves time and changes nothing."""

from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live import ALICE, BOB, ENFORCE, GATE, HELD, NOW, SUBMIT, comment, job, look, node, pinned, running, tasks, tried

from slurm_sns.errors import Closed, Infeasible
from slurm_sns.scheduler.observation import ObservedJob, ObservedPartition, ObservedReservation
from slurm_sns.scheduler.snapshot.backlog_claims import NodeClaim
from slurm_sns.scheduler.snapshot.eligibility import Eligibility, kind_of
from slurm_sns.scheduler.snapshot.plannable import NOTHING_KNOWN
from slurm_sns.scheduler.snapshot.situation import NOTHING_WITHHELD, Carried, WithholdingClock, read_situation
from slurm_sns.scheduler.snapshot.spreading import NEVER_SPREAD, SpreadRules

NODES = (node("c1"), node("c2", taken=(20, 3000)), node("s1", cores=16), node("u1", partitions=frozenset({"urgent"})))
#: What a job may be, or become from one look to the next.
CHANGES: list[dict[str, Any]] = [
    {},
    HELD,
    {"priority": 1600},
    {"partitions": ("small",)},
    {"partitions": ("main", "urgent")},
    {"partitions": ("elsewhere",)},
    {"qos": "high"},
    {"account": "chemistry"},
    {"user_id": BOB, "user": "bob"},
    {"walltime_s": 100_000},
    {"submit_s": SUBMIT + 500},
    {"begin_s": GATE + 3600},
    {"begin_s": int(NOW) + 3},
    {"admin_comment": comment(begin_s=int(NOW) - 1000)},
    {"waits_for_others": True},
    {"nodes_min": 2, "nodes_max": 2, "tasks": 2},
    {"excluded": ("c1",)},
    {"is_alone": True},
    {"has_open_nodes": True},
    {"memory_per_cpu_mb": 64_000},
    {"array_id": 7, "array_task": 3, "array_limit": 1},
    {"array_id": 7, "array_tasks": "4-9"},
]
PARTITIONS = [
    (),
    (ObservedPartition("main", walltime_s=7200), ObservedPartition("urgent", tier=2)),
    (ObservedPartition("main", state="DOWN"),),
    (ObservedPartition("main", nodes_max=1),),
]


def drawn(number: int, draw: Random) -> ObservedJob:
    words = draw.choice(["", "exclusive", "alpha=0.9", "heuristic=best-fit-cores"])
    made = [job(number, words), tasks(number, 3, words), running(number, "c2"), pinned(number, "c1")]
    return replace(draw.choice(made), **draw.choice(CHANGES))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from(["enforce", "advise"]), st.sampled_from(["slurm", "fair-now"]))
def test_each_look_means_the_same_with_and_without_what_the_look_before_left(seed: int, mode: str, order: str) -> None:
    draw = Random(seed)
    rules = replace(ENFORCE, mode=mode, queue_order=order, age_limit_s=draw.choice([None, 1200]), withhold_limit_s=40)
    jobs = {number: drawn(number, draw) for number in range(1, 13)}
    carried, now_s = Carried(), NOW
    paused = WithholdingClock({ALICE: NOW - 50})
    for _ in range(5):
        reserved = ObservedReservation("r", frozenset({"c1"}), int(now_s), int(now_s) + 900)
        seen = look(
            *jobs.values(),
            nodes=draw.sample(NODES, len(NODES)),
            partitions=draw.choice(PARTITIONS),
            qos_priorities=draw.choice([(), (("high", 5),)]),
            reservations=draw.choice([(), (reserved,)]),
            has_priorities=True,
        )
        limited = [
            tried(number, limited_by="AssocGrpCpuLimit", retry_s=now_s + 9) for number in draw.sample([*jobs], 2)
        ]
        tries = {each.job_id: each for each in draw.choice([[], limited])}
        ids = {"asked": draw.sample([*jobs], draw.choice([0, 1])), "refused": draw.sample([*jobs], draw.choice([0, 1]))}
        carried = replace(carried, withholding=draw.choice([NOTHING_WITHHELD, paused]))
        bare = replace(carried, settled={}, known=NOTHING_KNOWN)
        found = read_situation(seen, tries, rules, now_s, carried=carried, **ids)
        assert found == read_situation(seen, tries, rules, now_s, carried=bare, **ids)
        carried = found.carried(carried)
        for number in draw.sample([*jobs], 3):
            jobs[number] = draw.choice([drawn(number, draw), replace(jobs[number], **draw.choice(CHANGES))])
        now_s += draw.choice([-2000, 1, 5, 9000])


def test_a_job_that_has_not_changed_is_made_for_the_policy_once() -> None:
    waiting = [job(number) for number in (1, 2, 3)]
    first = read_situation(look(*waiting), {}, ENFORCE, NOW)
    changed = replace(waiting[1], priority=1700)
    then = read_situation(look(waiting[0], changed, waiting[2]), {}, ENFORCE, NOW + 1, carried=first.carried(Carried()))
    before, after = ({each.id: each for each in seen.snapshot.waiting} for seen in (first, then))
    assert [after[number] is before[number] for number in (1, 2, 3)] == [True, False, True]


class Watched:
    """A job that notes which of its attributes are looked at."""

    def __init__(self, of: ObservedJob, seen: set[str]) -> None:
        self._of, self._seen = of, seen

    def __getattr__(self, name: str) -> Any:
        own = getattr(type(self._of), name)
        if isinstance(own, property):
            return own.fget(self)
        self._seen.add(name)
        return getattr(self._of, name)


#: What tells two jobs of one kind apart: the claims ahead of a job, which `sort_out` asks for, go by its submission.
APART = {"submit_s"}


@pytest.mark.parametrize("words", ["", "alpha=0.9", "fixed", "exclusive"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_kind_has_all_that_decides_what_a_job_may_use(change: dict[str, Any], words: str) -> None:
    seen: set[str] = set()
    partitions = (ObservedPartition("main", nodes_max=2, walltime_s=7200), ObservedPartition("urgent"))
    observed = look(nodes=NODES, partitions=partitions)
    claims = (NodeClaim(SUBMIT - 9, frozenset({"c1"}), NOW, NOW + 9),) if "priority" in change else ()
    of_program = SpreadRules(NEVER_SPREAD.alternatives, program="{user}-{name}-{processes}")
    with suppress(Infeasible, Closed):
        Eligibility(observed, NOW, of_program, claims).of(Watched(replace(job(1, words), **change), seen))  # type: ignore[arg-type]
    for name in seen - APART:
        assert kind_of(job(1, "alpha=0.9")) is not kind_of(other(job(1, "alpha=0.9"), name)), name


def other(of: ObservedJob, name: str) -> ObservedJob:
    """The same job but for this attribute."""
    if name in ("record", "admin_comment"):
        return replace(of, admin_comment="sns:2 free=advise")
    now = getattr(of, name)
    values: dict[type, Any] = {bool: not now, int: 77, str: "other", tuple: ("other",), type(None): 77}
    return replace(of, **{name: values[type(now)]})


def test_jobs_of_one_kind_are_alike_whatever_they_are_called() -> None:
    assert kind_of(job(1, user_id=ALICE)) is kind_of(job(2, name="b", submit_s=7, priority=3))
    assert kind_of(job(1)) is not kind_of(job(1, tasks=2))
