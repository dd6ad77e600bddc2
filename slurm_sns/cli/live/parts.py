"""The parts of a daemon, built from a configuration: the one place that knows every implementation of the ports."""

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from slurm_sns.cli.live.process import StopSignal, log
from slurm_sns.config.configuration import Config
from slurm_sns.config.settings import ReschedulingSection
from slurm_sns.json_text import JsonText
from slurm_sns.log import Log, Outage
from slurm_sns.model import Alternative, Job, Node, Resources, Snapshot
from slurm_sns.policies.base import Policy
from slurm_sns.policies.profile import Program
from slurm_sns.policies.registry import specification
from slurm_sns.policies.specification import GeometryChoice
from slurm_sns.policies.spread_n_share.drift import DriftParameters
from slurm_sns.policies.spread_n_share.exploration import Exploration
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters
from slurm_sns.restarts.rules import RestartRules
from slurm_sns.scheduler.answers.last_day import LastDay
from slurm_sns.scheduler.answers.metrics import MetricsAnswers
from slurm_sns.scheduler.answers.overview import SharedOverview
from slurm_sns.scheduler.answers.trying import SubmissionRules
from slurm_sns.scheduler.answers.view import RecentCycles, View
from slurm_sns.scheduler.counters import Counters
from slurm_sns.scheduler.dispatch.dispatcher import Sign
from slurm_sns.scheduler.gate.leases import ByLimits, no_estimates
from slurm_sns.scheduler.learning.learner import Learner
from slurm_sns.scheduler.learning.values import LearningRules
from slurm_sns.scheduler.observation import ObservedNode
from slurm_sns.scheduler.ports import Agents, Ports
from slurm_sns.scheduler.restarts.restarter import Restarter
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.sharing.sharer import Sharer
from slurm_sns.scheduler.snapshot.spreading import KnownAlternatives, SpreadRules
from slurm_sns.scheduler.start_estimates.board import EstimateBoard
from slurm_sns.scheduler.turn import FencedExecutor, PlannerTurn
from slurm_sns.slurm.accounting import AccountingDatabase
from slurm_sns.slurm.executor import SlurmExecutor
from slurm_sns.slurm.mail_program import MailProgram
from slurm_sns.slurm.state import SlurmState, user_name
from slurm_sns.sockets.agent_hub import AgentHub
from slurm_sns.sockets.key_file import KeyFile
from slurm_sns.store.database import open_store
from slurm_sns.store.decisions import StoredDecisions
from slurm_sns.store.estimates import StoredEstimates
from slurm_sns.store.heartbeat import HeartbeatFile, KillSwitchFile
from slurm_sns.store.history import StoredHistory
from slurm_sns.store.learning import StoredEvidence
from slurm_sns.store.measured_runs import StoredMeasurements
from slurm_sns.store.profiles import StoredProfiles
from slurm_sns.wire.grants import token

if TYPE_CHECKING:
    from slurm_sns.scheduler.start_estimates.estimate_thread import EstimateThread

#: An imported profile is in use after this time at the latest.
PROFILE_SECONDS = 5.0


def settings(config: Config) -> Settings:
    """The settings of the loop, taken from the configuration."""
    scheduler, shares = config.scheduler, config.matching.shares
    return Settings(
        mode=config.mode,
        partitions=frozenset(config.partitions),
        queue_depth=config.matching.queue_depth,
        age_limit_s=config.matching.age_limit_s,
        withhold_limit_s=config.matching.withhold_limit_s,
        place_timeout_s=scheduler.place_timeout_s,
        heartbeat_timeout_s=scheduler.heartbeat_timeout_s,
        gate_lease_s=scheduler.gate_lease_s,
        backoff_s=scheduler.backoff_s,
        backoff_max_s=scheduler.backoff_max_s,
        unmanaged_gbps_per_core=config.spread_n_share.unmanaged_gbps_per_core,
        frequency_factors=config.spread_n_share.frequency_factors,
        queue_order=config.matching.queue_order,
        heeds_weight=config.scheduler.node_weights,
        never_across=frozenset(config.scheduler.never_across),
        pools=config.rescheduling.pools,
        queued_check_s=config.rescheduling.queued_check_s,
        restarts=config.rescheduling.restart == "on",
        sharing=config.sharing_rules,
        places_gpus=config.places_gpus,
        shares=None if shares == "slurm" else shares,
        closids={name: nodes.closids for nodes in config.nodes if nodes.closids for name in nodes.node_names},
    )


class RecentProfiles:
    """The Profiles port: the stored programs, read again at most every `PROFILE_SECONDS`."""

    def __init__(self, stored: StoredProfiles) -> None:
        self._stored = stored
        self._read_s = -PROFILE_SECONDS
        self._programs: Mapping[str, Program] = {}

    def load(self) -> Mapping[str, Program]:
        """The programs by name."""
        now_s = time.monotonic()
        if now_s - self._read_s >= PROFILE_SECONDS:
            self._programs = self._stored.load()
            self._read_s = now_s
        return self._programs


class LivingHeartbeat(HeartbeatFile):
    """The Heartbeat port, each beat of which is also the sign of life for systemd: a cycle may be long."""

    def __init__(self, path: Path, lives: Callable[[], None]) -> None:
        super().__init__(path)
        self._lives = lives

    def beat(self, now_s: float) -> None:
        """Tell both, systemd first: a full disk is no reason to be killed."""
        self._lives()
        super().beat(now_s)


def status_line(mode: str, trouble: str, view: View | None) -> str:
    """What `systemctl status` shows of a scheduler, such as `enforce; 12 waiting; cycle 12 ms`."""
    if trouble:
        return f"{mode}; {trouble}"
    if view is None:
        return f"{mode}; first cycle"
    doing = "disabled" if view.disabled else f"{len(view.situation.snapshot.waiting)} waiting"
    return f"{mode}; {doing}; cycle {1000 * view.took_s:.0f} ms"


def ports(config: Config, clock: StopSignal, lives: Callable[[], None], turn: PlannerTurn | None = None) -> Ports:
    """Everything outside itself that the loop uses. With a `turn`, nothing is sent once it is lost.

    Raises:
        Unreachable: the store cannot be opened or not be written.
    """
    engine = open_store(config.database_url)
    history = StoredHistory(engine)
    history.check_writable()
    accounting = AccountingDatabase(log.info, with_shares=config.matching.shares == "slurm")
    state = SlurmState(accounting, frozenset(config.sharing.partitions))
    executor = SlurmExecutor(state.seen)
    return Ports(
        state=state,
        executor=executor if turn is None else FencedExecutor(executor, turn.require),
        history=history,
        decisions=StoredDecisions(
            engine,
            config.store.keep_days,
            config.store.keep_snapshots,
            specification(config.policy).history,
            clock.steady,
        ),
        measurements=StoredMeasurements(engine, config.store.keep_days),
        profiles=RecentProfiles(StoredProfiles(engine)),
        heartbeat=LivingHeartbeat(config.paths.heartbeat, lives),
        kill_switch=KillSwitchFile(config.paths.kill_switch),
        clock=clock,
        log=log.info,
        mailer=MailProgram(log.info),
    )


def hub_and_sign(config: Config, log: Log) -> tuple[AgentHub, Sign] | None:
    """The scheduler's end of the agents' channel, and what signs grants; None where no agents are configured."""
    if config.agents.controller is None:
        return None
    keys = KeyFile(config.agents.key_file, os.geteuid(), log)
    return AgentHub(None, config.agents.port, keys, log), lambda grant: token(grant, keys())


def learner(config: Config, agents: Agents, settings: Settings, log: Log) -> Learner | None:
    """What learns the profiles of programs; None for a policy without profiles, and in the modes that place nothing.

    Raises:
        Unreachable: the store cannot be read.
    """
    if config.mode != "enforce" or specification(config.policy).geometry is not GeometryChoice.BY_PROFILE:
        return None
    return Learner(StoredEvidence(open_store(config.database_url)), agents, rules(config), settings, log)


def rules(config: Config) -> LearningRules:
    """The rules of learning, taken from the configuration."""
    told = config.learning
    return LearningRules(
        Exploration(config.parameters(SpreadingParameters), told.min_cores_per_node, told.saturation),
        DriftParameters(told.drift, told.drift_runs),
        told.explore,
        told.most_nodes,
    )


def estimating(
    config: Config, policy: Policy, settings: Settings, ports: Ports, board: EstimateBoard
) -> "EstimateThread | None":
    """What estimates the starts of waiting jobs; None where that is off, nothing is placed, or the policy has no rules.

    Raises:
        Unreachable: the store cannot be read.
    """
    from slurm_sns.scheduler.start_estimates.estimate_thread import EstimateThread
    from slurm_sns.scheduler.start_estimates.estimator import Estimator, rules_of

    found = rules_of(policy)
    if not config.scheduler.estimates or config.mode != "enforce" or found is None:
        return None
    stored, outage = StoredEstimates(open_store(config.database_url)), Outage(ports.log)
    runs, starts = stored.load()
    estimator = Estimator(found, settings, ports.clock.steady, runs, starts)
    return EstimateThread(estimator, board, stored, ports.clock, outage)


def by_limits(estimating: "EstimateThread | None", board: EstimateBoard) -> ByLimits:
    """What estimates a job's start for its gate."""
    return no_estimates if estimating is None else board.by_limits


def restarter(config: Config, policy: Policy, settings: Settings, ports: Ports) -> Restarter | None:
    """What restarts suspended jobs; None where that is off, or where nothing is placed.

    Raises:
        Unreachable: the store cannot be read.
    """
    told = config.rescheduling
    if told.restart == "off" or config.mode != "enforce":
        return None
    return Restarter(restart_rules(told), ports, settings, policy.plan)


def restart_rules(told: ReschedulingSection) -> RestartRules:
    """The rules of restarts, taken from that section of the configuration."""
    return RestartRules(
        sends=told.restart == "on",
        needs_hint=told.opt_in == "restartable",
        window_s=told.window_s,
        only_suspended=told.averages == "suspended",
        least_suspended_s=told.least_suspended_s,
        gain_s=told.gain_s,
        max_moves=told.max_moves,
        lost_core_hours_per_user_day=told.lost_core_hours_per_user_day,
        pools=told.pools,
    )


def publisher(
    recent: RecentCycles, metrics: MetricsAnswers, day: LastDay, estimating: "EstimateThread | None"
) -> Callable[[View], None]:
    """What takes the view of each cycle: the answers, the metrics, the curves, and what makes estimates."""

    def publish(view: View) -> None:
        metrics.publish(view)
        recent.publish(view)
        day.publish(view)
        if estimating is not None:
            estimating.show(view.situation, {start.job_id for start in view.plan.starts})

    return publish


def last_day(ports: Ports, counters: Counters) -> LastDay:
    """What keeps the curves of the last day."""
    return LastDay(ports.history, counters.take_waits_s, Outage(ports.log))


def overview(
    config: Config, told: Settings, board: EstimateBoard, day: LastDay
) -> Callable[[View, str, str | None], JsonText]:
    """What answers with the overview."""
    return SharedOverview(told, board, lambda: day.points, interval_s=config.scheduler.interval_s).answer


def metrics(
    config: Config,
    recent: RecentCycles,
    counters: Counters,
    troubles: Callable[[], Mapping[str, str]],
    clock: StopSignal,
) -> MetricsAnswers:
    """What gives the metrics' values."""
    told, interval_s = settings(config), config.scheduler.interval_s
    return MetricsAnswers(recent, counters, told, troubles, clock.now, policy=config.policy, interval_s=interval_s)


def spread_rules(config: Config, policy: Policy, known: KnownAlternatives | None = None) -> SpreadRules:
    """How jobs are spread; without the programs, which come from the store in every cycle."""
    never_in = settings(config).sharing_partitions
    return SpreadRules(policy.alternatives, config.spread_n_share.program, known=known, never_in=never_in)


def sharer(config: Config, ports: Ports) -> Sharer | None:
    """What cares for jobs that share cores; None where none do, or where nothing is placed.

    Raises:
        Unreachable: the store cannot be read.
    """
    rules = config.sharing_rules
    return None if rules is None or config.mode != "enforce" else Sharer(rules, ports)


def submission_rules(config: Config, policy: Policy) -> SubmissionRules:
    """How a job that is only tried is judged and spread."""
    return SubmissionRules(config.filter_table(), spread_rules(config, policy), user_name)


def warm_up(policy: Policy, *, estimates: bool = True) -> float:
    """Plan a small snapshot, so that all code that is compiled at its first use is compiled; return the seconds taken.

    The first time on a machine this takes a while (the result is kept in NUMBA_CACHE_DIR). It must be complete before
    the first heartbeat: a scheduler that compiles while jobs wait looks dead.
    """
    from slurm_sns.scheduler.snapshot.ready_nodes import ReadyNodes
    from slurm_sns.scheduler.start_estimates.estimator import look_once, rules_of

    began_s = time.monotonic()
    room = Resources(8, 8192, 8, 8)
    jobs = [Job(number, 0, (Alternative(number, Resources(1, 1024)),)) for number in (1, 2)]
    snapshot = Snapshot((Node("a", room, room), Node("b", room, room)), tuple(jobs))
    policy.plan(snapshot)
    if estimates and (found := rules_of(policy)) is not None:
        look_once(found, snapshot)
    ready = ReadyNodes([ObservedNode("a", frozenset(), room, room)], {}, ((), ("a",)), 0.0)
    ready.soonest([0], jobs[0].alternatives[0], takes_all=False)
    return time.monotonic() - began_s
