"""The simulated world itself: time and processes, ports with faults, determinism, shrinking; ten thousand schedules."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from slurm_sns.errors import Refused, SnsError, Unreachable
from slurm_sns.scheduler.gate.failed_placements import Try
from slurm_sns.scheduler.gate.orders import OPEN, GateOrder, OrderKind
from slurm_sns.slurm import rpc
from slurm_sns.slurm.executor import SlurmExecutor
from slurm_sns.submit.judge import Manage
from world.daemons import Daemon
from world.kernel import Broken, World
from world.ports import Caller, Controller, HeartbeatOf, HistoryOf, StateOf, Trap, stand_ins
from world.run import are_all_settled, digest, many, run, violations
from world.schedule import ENDINGS, OWNER, RPCS, Schedule, Step, doubled, drawn, from_json, load
from world.schedule_agents import concerns_agents
from world.schedule_dense import dense
from world.schedule_preempting import preempting
from world.shrink import shrunk
from world.slurm import Slurm

#: Schedules that have shown something.
FOUND = sorted((Path(__file__).parent / "found").glob("*.json"))
#: How many schedules of each kind; `make faults` runs any number.
DRAWN, DENSE, DOUBLED, PREEMPTING = 2_500, 1_000, 500, 250
MANAGED = Manage("sns:2 g=1700000060", 1_700_000_060)
FREE = GateOrder(1, OrderKind.FREE, "sns:2 free=test", OPEN)

# --- time and processes


class Idle:
    """A slurmctld in which nothing is ever due."""

    def next_s(self) -> float:
        return float("inf")

    def step(self) -> None:
        raise AssertionError


def told(*bodies, until_s: float = 100.0) -> list[tuple[float, str]]:
    """What processes told, which run these bodies at the same time."""
    world, lines = World(), []
    world.slurm = Idle()
    for at, body in enumerate(bodies):
        world.start(f"process {at}", lambda body=body: body(world, lambda line: lines.append((world.true_s, line))))
    world.run(until_s)
    return lines


def test_processes_take_turns_in_the_order_of_time():
    def body(name, pause_s):
        def run_body(world, tell):
            for _ in range(3):
                world.wait(pause_s)
                tell(name)

        return run_body

    lines = told(body("slow", 2.0), body("quick", 1.5))
    assert lines == [(1.5, "quick"), (2.0, "slow"), (3.0, "quick"), (4.0, "slow"), (4.5, "quick"), (6.0, "slow")]


def test_a_process_that_waits_alone_is_not_switched():
    world = World()
    world.slurm = Idle()
    world.start("alone", lambda: [world.wait(0.1) for _ in range(50)])
    world.run(100.0)
    assert world.switches == 1


def test_plain_events_run_while_a_process_waits():
    world, lines = World(), []
    world.slurm = Idle()
    world.at(3.0, lambda: lines.append(("event", world.true_s)))
    world.start("process", lambda: (world.wait(5.0), lines.append(("process", world.true_s))))
    world.run(10.0)
    assert lines == [("event", 3.0), ("process", 5.0)]
    assert world.true_s == 10.0


def test_a_killed_process_ends_where_it_waits():
    world, ends = World(), []
    world.slurm = Idle()
    process = world.start("victim", lambda: [world.wait(1.0) for _ in range(9)], ends.append)
    world.at(2.5, lambda: world.kill(process))
    world.run(20.0)
    assert ends == [True]
    assert process.is_over


def test_a_frozen_process_goes_on_later():
    def body(world, tell):
        world.wait(1.0)
        tell("before")
        world.wait(1.0)
        tell("after")

    world, lines = World(), []
    world.slurm = Idle()
    process = world.start("frozen", lambda: body(world, lambda line: lines.append((world.true_s, line))))
    world.at(1.5, lambda: world.freeze(process, 7.0))
    world.run(20.0)
    assert lines == [(1.0, "before"), (8.5, "after")]


@pytest.mark.parametrize("is_alone", [False, True])
def test_a_frozen_process_that_is_thawed_goes_on_at_once(is_alone):
    world, lines = World(), []
    world.slurm = Idle()
    process = world.start("frozen", lambda: (world.wait(1.0), lines.append(world.true_s)))
    other = None if is_alone else world.start("other", lambda: [world.wait(0.5) for _ in range(30)])
    world.at(0.5, lambda: world.freeze(process, 50.0))
    world.at(3.25, lambda: world.thaw(process))
    world.run(20.0)
    assert lines == [3.25]
    assert other is None or other.is_over


def test_a_signal_ends_a_sleep_and_no_other_wait():
    world, lines = World(), []
    world.slurm = Idle()

    def body():
        world.wait(2.0)
        lines.append(world.true_s)
        world.sleep(50.0)
        lines.append(world.true_s)

    process = world.start("sleeper", body)
    world.start("other", lambda: [world.wait(0.5) for _ in range(30)])
    world.at(1.0, lambda: world.interrupt(process))
    world.run(20.0)
    assert lines == [2.0, 2.0]


def test_a_defect_of_the_simulation_is_not_taken_for_one_of_ours():
    world = World()
    world.slurm = Idle()
    world.at(1.0, lambda: {}[0])

    def survives_everything():
        try:
            world.wait(5.0)
        except Exception:  # noqa: BLE001 - as the outermost loops of the daemons do
            pytest.fail("the daemon must not see it")

    world.start("daemon", survives_everything)
    with pytest.raises(Broken, match="KeyError"):
        world.run(10.0)


# --- a slurmctld that is killed


def test_a_killed_slurmctld_knows_again_what_it_has_forgotten_since_it_saved():
    """Otherwise a job that waits for one that has failed would find its dependency fulfilled."""
    controller = controller_of()
    world, slurm = controller.world, controller.slurm
    job_id = slurm.submit({"tasks": 1, "run_s": 2.0, "fails": True}, "alice", MANAGED)
    waiting_id = slurm.submit({"tasks": 1, "run_s": 2.0, "dependency": ("afterok", (job_id,))}, "alice", MANAGED)
    slurm.cancel(job_id, "alice")
    slurm.save()
    world.run(60.0)
    assert job_id not in slurm.jobs
    slurm.go_back()
    assert slurm.jobs[job_id].state == "CANCELLED"
    slurm.check_dependency(slurm.jobs[waiting_id])
    assert slurm.jobs[waiting_id].dependency_state == "failed"


# --- ports


class Tried(Daemon):
    """A daemon whose whole life is one function; what it raised is kept."""

    def __init__(self, controller: Controller, body) -> None:
        super().__init__(controller, "scheduler", frozenset({"main"}))
        self.body, self.raised = body, None

    def _main(self) -> None:
        try:
            self.body(self)
        except SnsError as problem:
            self.raised = problem


def controller_of(schedule: Schedule | None = None) -> Controller:
    world = World()
    world.random = Random(1)
    site = (schedule or drawn(1)).site()
    world.slurm = Slurm(site, world)
    return Controller(world, world.slurm, site, Random(2))


def daemon(controller: Controller, body, *traps: Trap) -> Tried:
    """Run a daemon with this body until it has ended."""
    tried = Tried(controller, body)
    tried.traps.extend(traps)
    tried.start()
    with stand_ins(controller):
        controller.world.run(9.0)
    return tried


def kinds(controller: Controller) -> list[str]:
    return [event.kind for event in controller.world.history.events if event.by == "scheduler"]


def test_the_real_executor_asks_the_simulated_slurm_inside_the_block_only():
    real = rpc.pyslurm
    controller = controller_of()
    controller.slurm.submit({"tasks": 1, "run_s": 50.0}, "alice", MANAGED)
    tried = daemon(controller, lambda _: list(SlurmExecutor().execute([FREE])))
    assert tried.raised is None
    assert kinds(controller) == ["free"]
    assert rpc.pyslurm is real


@pytest.mark.parametrize(("when", "has_effect"), [("before", False), ("in", True), ("after", True)])
def test_a_crash_at_a_call_comes_before_or_after_its_effect(when, has_effect):
    controller = controller_of()
    controller.slurm.submit({"tasks": 1, "run_s": 50.0}, "alice", MANAGED)
    lines = []

    def body(_):
        list(SlurmExecutor().execute([FREE]))
        lines.append("survived")

    tried = Tried(controller, body)
    tried.traps.append(Trap(when, 1, lambda: tried.crash(stays_dead=True), frozenset({"free"})))
    tried.start()
    with stand_ins(controller):
        controller.world.run(9.0)
    assert ("free" in kinds(controller)) is has_effect
    assert not lines
    assert not tried.is_running


def test_a_lost_reply_leaves_the_effect_and_an_error():
    controller = controller_of()
    job_id = controller.slurm.submit({"tasks": 1, "run_s": 50.0}, "alice", MANAGED)
    answers = []
    lost = Trap("lost", 1, lambda: None, frozenset({"free"}))
    daemon(controller, lambda _: answers.extend(SlurmExecutor().execute([FREE])), lost)
    assert isinstance(answers[0].unreachable, Unreachable)
    assert controller.slurm.jobs[job_id].admin_comment == "sns:2 free=test"


@pytest.mark.parametrize("service", ["slurmctld", "munge"])
def test_nothing_answers_without_slurmctld_or_munge(service):
    controller = controller_of()
    if service == "munge":
        controller.munge_is_up = False
    else:
        controller.slurmctld = "down"
    tried = daemon(controller, lambda own: StateOf(own).observe())
    assert isinstance(tried.raised, Unreachable)


def test_what_slurm_refuses_reaches_the_daemon():
    controller = controller_of()
    answers = []
    daemon(controller, lambda _: answers.extend(SlurmExecutor().execute([replace(FREE, job_id=99)])))
    assert isinstance(answers[0].refused, Refused)


@pytest.mark.parametrize(("state", "is_saved"), [("up", True), ("full", False), ("locked", False)])
def test_a_store_in_trouble_saves_nothing(state, is_saved):
    controller = controller_of()
    controller.store.state = state
    tried_before = Try(1, 100)
    tried = daemon(controller, lambda own: HistoryOf(own).save([tried_before], []))
    assert (controller.store.tries == {1: tried_before}) is is_saved
    assert (tried.raised is None) is is_saved


def test_a_store_that_was_moved_away_is_new_for_the_next_process_only():
    controller = controller_of()
    tried_before = Try(1, 100)

    def body(own):
        opened = HistoryOf(own)
        controller.store.move_away()
        opened.save([tried_before], [])

    assert isinstance(daemon(controller, body).raised, Unreachable)
    again = controller_of()
    again.store.move_away()
    assert daemon(again, lambda own: HistoryOf(own).save([tried_before], [])).raised is None


def test_a_store_that_was_moved_away_while_we_waited_for_its_lock_is_not_written():
    controller = controller_of()
    controller.store.state = "locked"
    tried_before = Try(1, 100)

    def unlocked():
        controller.store.move_away()
        controller.store.state = "up"

    def body(own):
        opened = HistoryOf(own)
        controller.world.at(controller.world.true_s + 1.0, unlocked)
        opened.save([tried_before], [])

    assert isinstance(daemon(controller, body).raised, Unreachable)
    assert controller.store.tries == {}


def test_a_full_disk_keeps_the_heartbeat_as_it_was():
    controller = controller_of()
    controller.files.heartbeat = "5\n"
    controller.files.disk_is_full = True
    tried = daemon(controller, lambda own: HeartbeatOf(own).beat(7.0))
    assert isinstance(tried.raised, SnsError)
    assert controller.files.beat_s() == 5.0


@pytest.mark.parametrize(
    ("text", "for_us", "in_lua"),
    [(None, None, None), ("12\n", 12.0, 12), ("x\n", None, None), ("inf\n", float("inf"), None), ("", None, None)],
)
def test_watchdog_and_filter_read_the_heartbeat_as_their_real_ones_do(text, for_us, in_lua):
    files = controller_of().files
    files.heartbeat = text
    assert files.beat_s() == for_us
    assert files.beat_in_lua_s() == in_lua


# --- schedules


def test_a_schedule_is_the_same_after_json():
    for schedule in map(preempting, range(10)):
        assert from_json(schedule.to_json()) == schedule
    for seed in range(40):
        schedule = drawn(seed)
        again = from_json(schedule.to_json())
        assert again == schedule
    assert digest(run(again).history) == digest(run(schedule).history)


def test_schedules_have_all_kinds_of_steps_traps_and_endings():
    schedules = [drawn(seed) for seed in range(600)]
    steps = [step for schedule in schedules for step in schedule.steps if not concerns_agents(step)]
    assert {schedule.ending for schedule in schedules} == set(ENDINGS)
    assert {step.what for step in steps} == {
        *("submit", "edit", "command", "cancel", "node", "partition", "limit", "reserve", "unreserve"),
        *("crash", "freeze", "stop", "restart", "start", "slurmctld", "munge", "slurmdbd", "store", "disk"),
        *("beat", "clock", "drift", "switch", "mode", "lost", "refuse"),
    }
    assert {step.data["trap"]["when"] for step in steps if "trap" in step.data} == {"before", "in", "after", "lost"}


def test_the_same_seed_gives_the_same_history():
    for seed in range(20):
        assert digest(run(drawn(seed)).history) == digest(run(drawn(seed)).history)


def test_the_same_seed_gives_the_same_history_in_another_process():
    program = (
        "from slurm_sns.cli.compiled_code import keep_by_state; keep_by_state()\n"
        "from world.run import digest, run\nfrom world.schedule import drawn\n"
        "print(*(digest(run(drawn(seed)).history) for seed in range(12)))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.split() == [digest(run(drawn(seed)).history) for seed in range(12)]


def test_a_world_without_faults_runs_all_jobs():
    result = run(planned(*(submission(number, 2.5 + number / 4) for number in range(6))))
    assert [job.state for job in result.slurm.jobs.values()] == ["COMPLETED"] * 6
    assert [event.data["pinned"] for event in result.history.events if event.kind == "start"] == [True] * 6
    assert violations(result) == []


def planned(*steps: Step, quiet_from_s: float = 10.0) -> Schedule:
    """A small site without faults on which these steps happen."""
    return Schedule(
        seed=1,
        nodes={"c1": (4, 8000), "c2": (4, 8000)},
        partitions={"main": (("c1", "c2"), 1)},
        managed=("main",),
        slurm={"min_job_age_s": 100.0},
        policy="max-jobs",
        many=64,
        ending="healthy",
        quiet_from_s=quiet_from_s,
        steps=list(steps),
    )


def submission(label: int, at_s: float, **asked) -> Step:
    return Step(at_s, "submit", {"label": label, "by": "alice", "asked": {"tasks": 2, "run_s": 2.0, **asked}})


def with_preemption(restarts: dict | None, **asked) -> Schedule:
    """A job runs on c1; an urgent one that needs this node comes and has it for three seconds. c2 is free."""
    urgent = {"label": 1, "by": "bob", "asked": {"tasks": 4, "run_s": 3.0, "partition": "urgent", "required": ["c1"]}}
    urgent["asked"] |= {"nodes_max": 1, "memory_per_cpu_mb": 100}
    after = {"event": "start", "job": 0, "in_s": 2.2}
    first = submission(0, 3.0, run_s=8.0, memory_per_cpu_mb=100, **asked)
    second = Step(0.0, "submit", {**urgent, "after": after})
    site = planned(first, second, quiet_from_s=15.0)
    partitions = {**site.partitions, "urgent": (("c1", "c2"), 10)}
    return replace(site, partitions=partitions, slurm={**site.slurm, "suspends_by_tier": True}, restarts=restarts)


def life_of(result, job: int) -> list[tuple[str, str]]:
    kinds_of_interest = ("start", "suspend", "resume", "requeue", "waits", "end")
    events = [event for event in result.history.events if event.job == job and event.kind in kinds_of_interest]
    return [(event.kind, "slurm" if event.by == "slurm" else event.by) for event in events]


@pytest.mark.parametrize(
    ("restarts", "comment"), [(None, "sns:restartable"), ({}, ""), ({"max_moves": 0}, "sns:restartable")]
)
def test_a_job_that_preemption_suspends_goes_on_where_it_was_unless_it_may_be_restarted(restarts, comment):
    result = run(with_preemption(restarts, comment=comment))
    assert life_of(result, 1) == [(kind, "slurm") for kind in ("start", "suspend", "resume", "end")]
    assert violations(result) == []


def test_a_job_that_may_be_restarted_runs_again_elsewhere():
    result = run(with_preemption({}, comment="sns:restartable"))
    again = [("requeue", "scheduler"), ("end", "slurm"), ("waits", "slurm"), ("start", "slurm"), ("end", "slurm")]
    assert life_of(result, 1) == [("start", "slurm"), ("suspend", "slurm"), *again]
    started = [event.data["nodes"] for event in result.history.events if event.kind == "start" and event.job == 1]
    assert started == [("c1",), ("c2",)]
    assert violations(result) == []


def test_a_restart_whose_answer_is_lost_is_made_once():
    trap = {"daemon": "scheduler", "kinds": ["requeue"], "nth": 1, "when": "lost"}
    schedule = with_preemption({}, comment="sns:restartable")
    result = run(replace(schedule, steps=[*schedule.steps, Step(1.0, "lost", {"trap": trap})]))
    assert [each for each in life_of(result, 1) if each[0] == "requeue"] == [("requeue", "scheduler")]
    assert violations(result) == []


def test_what_a_person_suspends_in_the_moment_before_a_restart_is_neither_resumed_nor_restarted():
    trap = {"daemon": "scheduler", "kinds": ["load"], "nth": 1, "when": "before"}
    suspends = Step(1.0, "command", {"by": "admin", "job": 0, "do": "suspend", "trap": trap})
    schedule = with_preemption({}, comment="sns:restartable")
    result = run(replace(schedule, steps=[*schedule.steps, suspends]))
    assert ("suspend", "admin") in life_of(result, 1)
    assert not {("requeue", "scheduler"), ("resume", "scheduler")} & set(life_of(result, 1))
    assert violations(result) == []


def test_a_step_may_follow_an_event_of_its_job():
    after = {"event": "start", "job": 0, "in_s": 0.5}
    step = Step(0.0, "command", {"by": "admin", "job": 0, "do": "suspend", "after": after})
    history = run(planned(step, submission(0, 3.0))).history.events
    (started,) = [event for event in history if event.kind == "start"]
    (suspended,) = [event for event in history if event.kind == "suspend"]
    assert suspended.job == started.job
    assert suspended.at_s == pytest.approx(started.at_s + 0.5)


def test_a_step_may_follow_an_event_of_any_job_as_its_owner():
    after = {"event": "place", "job": None, "in_s": 0.0}
    step = Step(0.0, "command", {"by": OWNER, "job": 5, "do": "hold", "after": after})
    history = run(planned(step, submission(0, 3.0))).history.events
    assert [event.by for event in history if event.kind == "hold"] == ["alice"]


def test_a_fault_may_follow_an_event_of_a_job():
    after = {"event": "place", "job": None, "in_s": 0.5}
    history = run(planned(Step(0.0, "clock", {"step_s": 7.0, "after": after}), submission(0, 3.0))).history.events
    (placed,) = [event for event in history if event.kind == "place"]
    assert [event.at_s for event in history if event.kind == "clock"] == [pytest.approx(placed.at_s + 0.5)]


def test_a_trap_may_meet_the_job_that_the_call_is_about():
    trap = {"daemon": "scheduler", "kinds": ["place"], "nth": 2, "when": "after", "meets": True}
    step = Step(0.0, "command", {"by": OWNER, "job": 0, "do": "hold", "trap": trap})
    history = run(planned(step, submission(0, 3.0), submission(1, 3.0))).history.events
    placed = [event.job for event in history if event.kind == "place"]
    assert [(event.by, event.job) for event in history if event.kind == "hold"] == [("alice", placed[1])]


def test_a_frozen_scheduler_may_go_on_at_a_call_of_the_watchdogs():
    trap = {"daemon": "scheduler", "kinds": ["jobs"], "nth": 4, "when": "after"}
    until = {"daemon": "watchdog", "kinds": ["free"], "nth": 1, "when": "in"}
    step = Step(0.0, "freeze", {"daemon": "scheduler", "seconds": 19.0, "trap": trap, "until": until})
    history = run(planned(step, submission(0, 2.5, begin_in_s=40.0), quiet_from_s=25.0)).history.events
    (freed,) = [event for event in history if event.kind == "free"]
    told = {event.data["what"]: event.at_s for event in history if event.kind == "daemon"}
    assert freed.by == "watchdog"
    assert told["freeze"] < freed.at_s == told["thaw"]


def test_nobody_does_anything_once_all_is_repaired():
    after = {"event": "start", "job": 0, "in_s": 0.0}
    late = Step(0.0, "command", {"by": "admin", "job": 0, "do": "suspend", "after": after})
    trap = {"daemon": "scheduler", "kinds": ["place"], "nth": 1, "when": "in"}
    crash = Step(1.0, "crash", {"daemon": "scheduler", "trap": trap})
    result = run(planned(submission(0, 2.9, begin_in_s=4.0), late, crash, quiet_from_s=3.0))
    kinds_after = {event.kind for event in result.history.events if event.at_s > 3.5}
    assert "start" in kinds_after
    assert not kinds_after & {"suspend", "daemon"}


def test_schedules_reach_every_kind_of_call(monkeypatch):
    seen = set()
    real = Caller.call

    def call(self, kind, *values, **named):
        seen.add(kind)
        return real(self, kind, *values, **named)

    monkeypatch.setattr(Caller, "call", call)
    for seed in range(120):
        run(drawn(seed))
    assert seen >= {*RPCS, "reservations", "partitions", "records", "open", "profiles", "decisions"} - {"update"}
    assert seen >= {"beat", "stop", "last-beat", "switch"}


def test_a_job_that_its_owner_holds_counts_as_settled():
    controller = controller_of()
    job_id = controller.slurm.submit({"tasks": 1, "walltime_s": 60, "held": True}, "alice", MANAGED)
    assert are_all_settled(controller.slurm)
    controller.slurm.scontrol(("release", str(job_id)), "alice")
    assert not are_all_settled(controller.slurm)


# --- shrinking


def test_shrinking_finds_the_two_steps_that_a_violation_needs():
    """The planted violation: a job ran although a node had once been drained."""

    def check(schedule):
        history = run(schedule).history.events
        is_drained = any(event.kind == "node" and event.data["state"] == "drain" for event in history)
        is_started = any(event.kind == "start" for event in history)
        return ["planted: a node was drained and a job ran"] if is_drained and is_started else []

    seed = next(seed for seed in range(200) if len(drawn(seed).steps) > 15 and check(drawn(seed)))
    smallest = shrunk(drawn(seed), check)
    assert sorted(step.what for step in smallest.steps) == ["node", "submit"]
    assert check(smallest)


def test_shrinking_makes_jobs_plainer():
    schedule = next(each for each in map(drawn, range(200)) if sum("nice" in _asked(step) for step in each.steps) > 1)
    smallest = shrunk(
        schedule, lambda each: ["planted: a nice job"] if any("nice" in _asked(s) for s in each.steps) else []
    )
    (left,) = smallest.steps
    assert set(left.data["asked"]) <= {"tasks", "run_s", "walltime_s", "partition", "account", "nice"}


def _asked(step: Step) -> dict:
    return step.data.get("asked", {})


def test_there_is_nothing_to_shrink_where_all_promises_hold():
    assert shrunk(drawn(1), lambda _: []) is None


# --- the promises


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_what_was_found_once_stays_mended(path):
    assert violations(run(load(path))) == []


@pytest.mark.parametrize(
    ("draw", "number", "option"),
    [
        (drawn, DRAWN, ""),
        (dense, DENSE, " --dense"),
        (doubled, DOUBLED, " --double"),
        (preempting, PREEMPTING, " --preempting"),
    ],
    ids=["drawn", "dense", "doubled", "preempting"],
)
def test_thousands_of_schedules_keep_the_promises(draw, number, option):
    found = many(range(number), processes=2, most_found=number, draw=draw)
    assert [f"python -m world replay {each.seed}{option}: {each.broken or each.violations}" for each in found] == []


def test_a_schedule_of_the_fault_model_has_one_fault_at_most_or_a_pair_that_shares_a_cause():
    """People's commands and administrators' orders to the daemons are none."""
    faults = {
        *("crash", "freeze", "slurmctld", "munge", "slurmdbd", "store", "disk", "beat", "clock", "drift", "lost"),
        "refuse",
    }
    pairs = ({"slurmctld", "lost"}, {"store", "crash"}, {"clock", "crash"})
    for schedule in (drawn(seed) for seed in range(300)):
        found = {step.what for step in schedule.steps if step.what in faults}
        is_dead = schedule.ending in ("dead", "gone")
        is_one = len(found) + is_dead <= 1 or (found in pairs and not is_dead)
        assert is_one or schedule.agents is not None
        assert not schedule.is_double
    assert doubled(3).is_double


def test_dense_schedules_have_fewer_jobs_and_more_that_happens_to_each():
    def happens_to_a_job(draw):
        steps = [each.what == "submit" for seed in range(200) for each in draw(seed).steps]
        return (len(steps) - sum(steps)) / sum(steps)

    assert happens_to_a_job(dense) > 2 * happens_to_a_job(drawn)
    assert dense(7) == dense(7) != dense(8)
