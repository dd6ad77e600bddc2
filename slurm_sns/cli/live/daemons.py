"""`sns scheduler` and `sns watchdog`: the two processes that run as SlurmUser on the controller."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from slurm_sns.cli.installations import CONTROLLER, needs
from slurm_sns.cli.options import DEFAULT_CONFIG, Config

if TYPE_CHECKING:
    from slurm_sns.cli.live.process import StopSignal
    from slurm_sns.config import configuration
    from slurm_sns.policies.base import Policy
    from slurm_sns.scheduler.turn import PlannerTurn

#: The watchdog's interval: far below the shortest heartbeat_timeout_s, and each time it reads only one small file.
WATCHDOG_SECONDS = 1.0
#: How often a scheduler that stands by looks whether it is its turn: two small files each time.
STANDBY_SECONDS = 0.5


def scheduler(
    config: Config = DEFAULT_CONFIG,
    cycles: Annotated[int, typer.Option(min=0, help="Stop after so many cycles; 0: run until told to stop.")] = 0,
    only_compile: Annotated[
        bool, typer.Option("--compile", help="Only compile what a scheduler runs: before a restart with a new version.")
    ] = False,
) -> None:
    """Plan and place waiting jobs until stopped (SIGTERM, Ctrl-C). Runs as SlurmUser.

    A clean stop gives the jobs that still wait for it to Slurm. With --cycles, for tests and to see what one cycle
    does, nothing is given away at the end, nor by SIGUSR1: the next scheduler goes on with the waiting jobs.
    """
    needs("sns scheduler", CONTROLLER)
    from slurm_sns.cli.live import duties, parts, process
    from slurm_sns.config import configuration

    settings = configuration.load(config)
    process.require_slurm_user(settings)
    process.make_directories(settings)
    policy = settings.the_policy()
    if only_compile:
        print(f"compiled in {parts.warm_up(policy, estimates=settings.scheduler.estimates):.1f} s")
        return
    unlock = process.only_one(settings.paths.run_dir / "scheduler.lock")
    process.require_commands()
    process.start_logging(settings.log_level)
    stop = process.StopSignal()
    turn = duties.turn(stop)
    if turn is None:
        _plan(settings, policy, stop, cycles)
    else:
        while _stand_by(settings, policy, stop, turn):
            _plan(settings, policy, stop, cycles, turn)
            turn.ends()
            if cycles:
                break
    process.log.info("scheduler: stopped")
    unlock()


def _stand_by(settings: "configuration.Config", policy: "Policy", stop: "StopSignal", turn: "PlannerTurn") -> bool:
    """Wait until this host's scheduler plans, and tell everybody who asks where to ask; False: told to stop."""
    if stop.is_set() or turn.comes():
        return not stop.is_set()
    from slurm_sns.cli.live import parts, process
    from slurm_sns.errors import SnsError
    from slurm_sns.sockets.service_manager import SignOfLife, notify
    from slurm_sns.sockets.unix_socket import ControlSocket

    def refuse(_request: dict[str, Any], _user_id: int) -> Any:
        raise SnsError(turn.told)

    is_stopping = process.until(stop, SignOfLife(lambda: turn.told))
    process.log.info("scheduler: %s", turn.told)
    parts.warm_up(policy, estimates=settings.scheduler.estimates)  # now, so that a takeover does not wait for it
    with ControlSocket(settings.paths.socket, refuse, process.admins(settings)):
        notify(READY="1")
        while not is_stopping():
            if turn.comes():
                process.log.info("scheduler: slurmctld acts on this host, and the lease is ours: planning from now on")
                return True
            stop.sleep(STANDBY_SECONDS)
    return False


def _plan(
    settings: "configuration.Config",
    policy: "Policy",
    stop: "StopSignal",
    cycles: int,
    turn: "PlannerTurn | None" = None,
) -> None:
    """Plan until told to stop, or until the turn is lost: then everything stays as it is for the next planner."""
    from contextlib import ExitStack, nullcontext
    from dataclasses import replace

    from slurm_sns.cli.live import duties, parts, process, submissions
    from slurm_sns.policies.registry import specification
    from slurm_sns.scheduler.answers.requests import Answers
    from slurm_sns.scheduler.answers.view import RecentCycles
    from slurm_sns.scheduler.counters import Counters, TimedPolicy, counted
    from slurm_sns.scheduler.loop import Scheduler
    from slurm_sns.scheduler.snapshot.spreading import KnownAlternatives
    from slurm_sns.scheduler.start_estimates.board import EstimateBoard
    from slurm_sns.sockets.service_manager import SignOfLife, notify
    from slurm_sns.sockets.unix_socket import ControlSocket

    told = parts.settings(settings)
    recent, asked, board, counters = RecentCycles(), set[int](), EstimateBoard(), Counters(stop.now(), told.partitions)
    lives = SignOfLife(lambda: parts.status_line(settings.mode, loop.trouble, recent.view))
    ports = counted(parts.ports(settings, stop, lives, turn), counters)
    learner, sign, channel = None, None, ExitStack()
    watched = submissions.watched(settings.paths.submissions, stop, ports.log)
    ports = replace(ports, submissions=channel.enter_context(watched))
    if found := parts.hub_and_sign(settings, ports.log):
        hub, sign = found
        ports = replace(ports, agents=channel.enter_context(hub))
        learner = parts.learner(settings, hub, told, ports.log)
    estimating = parts.estimating(settings, policy, told, ports, board)
    metrics = parts.metrics(settings, recent, counters, lambda: {**loop.troubles, "estimates": board.trouble}, stop)
    day = parts.last_day(ports, counters)
    loop = Scheduler(
        ports,
        TimedPolicy(policy, counters, stop.steady),
        told,
        parts.spread_rules(settings, policy, KnownAlternatives()),
        parts.publisher(recent, metrics, day, estimating),
        specification=specification(settings.policy),
        sign=sign,
        learner=learner,
        asked=asked,
        by_limits=parts.by_limits(estimating, board),
        restarter=parts.restarter(settings, policy, told, ports),
        sharer=parts.sharer(settings, ports),
    )
    admins = process.admins(settings)
    answers = Answers(
        recent,
        ports.decisions,
        policy,
        admins,
        lambda: loop.trouble,
        settings=told,
        asked=asked,
        board=board,
        rules=parts.submission_rules(settings, policy),
        measurements=ports.measurements,
        metrics=metrics.answer,
        overview=parts.overview(settings, told, board, day),
    )
    process.log.info(
        "scheduler: mode %s, policy %s, partitions %s", settings.mode, settings.policy, ",".join(settings.partitions)
    )
    ready_s = parts.warm_up(policy, estimates=estimating is not None)
    process.log.info("scheduler: ready to plan after %.1f s", ready_s)
    with channel, estimating or nullcontext(), ControlSocket(settings.paths.socket, answers.answer, admins):
        notify(READY="1")
        if cycles:
            loop.repeat(cycles, settings.scheduler.interval_s)
        else:
            is_stopping, hands_over = process.until(stop, lives), stop.hands_over
            if turn is not None:
                is_stopping, hands_over = duties.with_turn(is_stopping, stop, turn)
            loop.run(settings.scheduler.interval_s, is_stopping, hands_over)


def watchdog(config: Config = DEFAULT_CONFIG) -> None:
    """Give waiting jobs to Slurm whenever the scheduler's heartbeat is stale. Runs as SlurmUser."""
    from slurm_sns.cli.live import duties, process
    from slurm_sns.config import configuration
    from slurm_sns.scheduler.watchdog import Watchdog
    from slurm_sns.slurm.state import JobsAlone
    from slurm_sns.sockets.service_manager import SignOfLife, notify
    from slurm_sns.store.heartbeat import HeartbeatFile

    settings = configuration.load(config)
    process.require_slurm_user(settings)
    process.make_directories(settings)
    unlock = process.only_one(settings.paths.run_dir / "watchdog.lock")
    process.require_commands()
    process.start_logging(settings.log_level)
    stop = process.StopSignal()
    beat = HeartbeatFile(settings.paths.heartbeat)
    lives = SignOfLife(lambda: dog.status)

    def last_beat() -> float | None:
        lives()  # also after each job that is freed: freeing many takes long
        return beat.last()

    is_on_duty, executor = duties.watchdog_duty(settings, stop)
    dog = Watchdog(
        JobsAlone(with_reservations=settings.sharing_rules is not None),
        executor,
        last_beat,
        clock=stop,
        log=process.log.info,
        timeout_s=settings.scheduler.heartbeat_timeout_s,
        sharing=settings.sharing_rules,
        is_on_duty=is_on_duty,
    )
    process.log.info("watchdog: a heartbeat older than %s s is stale", settings.scheduler.heartbeat_timeout_s)
    notify(READY="1")
    dog.run(WATCHDOG_SECONDS, process.until(stop, lives))
    process.log.info("watchdog: stopped")
    unlock()
