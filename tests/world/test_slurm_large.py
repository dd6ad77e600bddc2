"""The slurmctld for thousands of nodes tells the same story as the model that it is made from."""

from random import Random
from types import SimpleNamespace

import pytest

from slurm_sns.model import NOTHING, Resources
from slurm_sns.submit.judge import Manage, PassThrough
from slurm_sns.submit.record import Record, segment
from world.kernel import World
from world.slurm import Slurm, SlurmSite
from world.slurm_large import LargeSlurm

NODES = tuple(f"n{at}" for at in range(6))
SITE = SlurmSite(dict.fromkeys(NODES, Resources(64, 128_000)), {"main": (NODES, 1)}, min_job_age_s=30.0)
BOOST, LEASE_S, END_S = 2_000_000_000, 60, 600.0


def begun(kind: type[Slurm], seed: int) -> Slurm:
    world = World()
    world.random = Random(f"slurm {seed}")
    slurm = world.slurm = kind(SITE, world)
    return slurm


def starts_of(kind: type[Slurm], seed: int) -> dict[tuple, list]:
    """The starts of jobs and tasks that are gated, perhaps renewed, and then placed, while a node drains for a time."""
    slurm, draw = begun(kind, seed), Random(seed)
    world = slurm.world

    def submit() -> None:
        asked = {"tasks": draw.choice((1, 2, 8)), "run_s": draw.uniform(5, 60)}
        if draw.random() < 0.2:
            asked["array"] = (1, 2, 3)
        gate_s = int(world.wall_s()) + LEASE_S
        job_id = slurm.submit(asked, "alice", Manage(segment(Record(gate_s=gate_s)), gate_s))
        world.at(world.true_s + draw.uniform(1, 20), lambda: change(job_id))

    def change(job_id: int) -> None:
        """Place the job or the next task of the array, or renew its gate and place it later."""
        job, is_last = slurm.jobs[job_id], False
        if draw.random() < 0.7:
            is_last = len(job.array_tasks) < 2
            address = str(job_id) if job.array_id is None else f"{job_id}_{(*job.array_tasks, job.array_task)[0]}"
            words = (f"ReqNodeList={draw.choice(NODES)}", f"SiteFactor={BOOST}", "StartTime=now")
            slurm.scontrol(("update", f"JobId={address}", *words), "scheduler")
        else:  # by the number, which leaves running tasks alone
            slurm.modify(job_id, SimpleNamespace(begin_time=int(world.wall_s()) + LEASE_S), "scheduler")
        if not is_last:
            world.at(world.true_s + draw.uniform(1, 10), lambda: change(job_id))

    for _ in range(60):
        world.at(draw.uniform(1, END_S / 2), submit)
    node = draw.choice(NODES)
    world.at(100.0, lambda: slurm.update_node(node, "drain"))
    world.at(150.0, lambda: slurm.update_node(node, "undrain"))
    world.run(END_S)
    found: dict[tuple, list] = {}
    for each in world.history.events:
        if each.kind in ("start", "end"):
            told = [each.kind, each.at_s, each.data["now"].nodes, each.data.get("cores"), each.data.get("how")]
            found.setdefault((each.job, each.data["now"].array), []).append(told)
    return found


@pytest.mark.parametrize("seed", range(8))
def test_placed_jobs_start_and_end_as_in_the_small_model(seed: int):
    """On the same nodes and cores, at most a pass later: there a pass that is under way knows gated jobs, too."""
    small, large = starts_of(Slurm, seed), starts_of(LargeSlurm, seed)
    assert len(small) >= 60
    assert small.keys() == large.keys()
    for job, events in small.items():
        assert [(kind, *rest) for kind, _, *rest in large[job]] == [(kind, *rest) for kind, _, *rest in events]
        assert [at_s for _, at_s, *_ in large[job]] == pytest.approx([at_s for _, at_s, *_ in events], abs=1.5)


def test_what_is_taken_is_what_the_running_jobs_take():
    slurm = begun(LargeSlurm, 1)
    for at in range(40):
        slurm.world.at(at, lambda: slurm.submit({"tasks": 3, "run_s": 20.0}, "alice", PassThrough("off")))
    for moment in range(5, 200, 5):
        slurm.world.at(moment, lambda: seen.append((dict(slurm.taken()), Slurm.taken(slurm), slurm.load_nodes())))
    seen: list = []
    slurm.world.run(200.0)

    assert all(counted == summed for counted, summed, _ in seen)
    assert all([each.allocated for each in shown] == list(counted.values()) for counted, _, shown in seen)
    assert max(sum(each.cores for each in counted.values()) for counted, _, _ in seen) > 30
    assert set(slurm.taken().values()) == {NOTHING}


def test_a_job_whose_gate_lapses_starts_and_nothing_of_it_stays():
    slurm = begun(LargeSlurm, 1)
    gate_s = int(slurm.world.wall_s()) + LEASE_S
    slurm.submit({"tasks": 1, "run_s": 5.0}, "alice", Manage(segment(Record(gate_s=gate_s)), gate_s))
    slurm.world.run(END_S)

    starts = [each.at_s for each in slurm.world.history.events if each.kind == "start"]
    assert len(starts) == 1
    assert starts[0] >= LEASE_S
    left = (slurm.jobs, slurm._open, slurm._held, slurm._begins, slurm._completing)
    assert not any(left)
