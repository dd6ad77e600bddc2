"""The daemons of the world: scheduler, watchdog and submit filter, started and restarted as systemd does."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any
from unittest.mock import patch

import yaml
from default_settings import SETTINGS

from slurm_sns.errors import SnsError
from slurm_sns.model import Plan, Snapshot
from slurm_sns.package_files import shared_path
from slurm_sns.policies.base import Policy
from slurm_sns.policies.combined.combined import combined
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.heuristic_names import heuristics
from slurm_sns.policies.profile import Program
from slurm_sns.policies.spread_n_share.profile_reading import programs_of
from slurm_sns.scheduler.answers.view import View
from slurm_sns.scheduler.gate import leases
from slurm_sns.scheduler.loop import Scheduler
from slurm_sns.scheduler.ports import Ports
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.spreading import KnownAlternatives, SpreadRules
from slurm_sns.scheduler.watchdog import Watchdog
from slurm_sns.slurm.executor import SlurmExecutor
from slurm_sns.submit import table
from slurm_sns.submit.judge import Verdict, judge
from slurm_sns.submit.submission import Submission
from slurm_sns.submit.table import FilterTable, NodeShape
from world.kernel import Process
from world.ports import (
    Caller,
    ClockOf,
    Controller,
    DecisionsOf,
    HeartbeatOf,
    HistoryOf,
    JobsOf,
    KillSwitchOf,
    ProfilesOf,
    StateOf,
)
from world.restarts import restarter

#: RestartSec of both units (conf/templates).
RESTART_S = 2.0
#: A daemon needs so long to start: Python, our code, and for the scheduler the compiled policy.
START_S, START_MORE_S = 0.5, 1.0
INTERVAL_S, WATCHDOG_S = 1.0, 1.0
#: The heartbeat's timeout (sns.yaml: heartbeat_timeout_s).
TIMEOUT_S = 10
#: A placement has so long to start, and the longest pause after failed ones: short, so that schedules can be.
PLACE_TIMEOUT_S, BACKOFF_MAX_S = 5.0, 20.0
#: Leases in seconds instead of minutes and hours: the first one, a later one, and the longest.
FIRST_LEASE_S, LEASE_S, MOST_LEASE_S = 20, 40, 60
#: The constants of the gate to go with that.
LEASES = {"MOST_LEASE_S": MOST_LEASE_S, "LEASE_STEP_S": 10, "LAPSES_SOON_S": 10}


def times() -> dict[str, float]:
    """How long things may take here, for the checker."""
    return {
        "timeout_s": TIMEOUT_S,
        "first_lease_s": FIRST_LEASE_S,
        "lease_s": LEASE_S,
        "deadline_margin_s": leases.DEADLINE_MARGIN_S,
    }


@contextmanager
def short_leases() -> Iterator[None]:
    """Inside the block leases are short, so that schedules can be."""
    with patch.multiple(leases, **LEASES), patch.object(table, "LEAST_FIRST_LEASE_S", FIRST_LEASE_S):
        yield


def settings(mode: str, partitions: frozenset[str], queued_check_s: float = 0.0) -> Settings:
    """The settings of scheduler and watchdog. All managed partitions are alike."""
    return replace(
        SETTINGS,
        mode=mode,
        partitions=partitions,
        place_timeout_s=PLACE_TIMEOUT_S,
        backoff_s=5.0,
        backoff_max_s=BACKOFF_MAX_S,
        heartbeat_timeout_s=TIMEOUT_S,
        gate_lease_s=LEASE_S,
        shares={},
        pools=(tuple(sorted(partitions)),) if len(partitions) > 1 else (),
        queued_check_s=queued_check_s,
    )


@cache
def programs() -> Mapping[str, Program]:
    """The programs of conf/profiles, for the policy that spreads."""
    text = shared_path("conf/profiles/spread-n-share.yaml").read_text(encoding="utf-8")
    return {program.name: program for program in programs_of(yaml.safe_load(text))}


@cache
def policy(name: str) -> Policy:
    """The policy of that name: it remembers nothing, so all schedulers may share it."""
    return Asked(combined() if name == "combined" else max_jobs(MatchingParameters()))


class Asked:
    """A policy that is asked only where a job waits: the plan of three cycles in four is empty, and takes as long."""

    def __init__(self, asked: Policy) -> None:
        self._asked = asked
        self.alternatives, self.explain = asked.alternatives, asked.explain

    def plan(self, snapshot: Snapshot) -> Plan:
        """The policy's plan."""
        return self._asked.plan(snapshot) if snapshot.waiting else Plan()


class Daemon(Caller):
    """A daemon under systemd. After a crash or an error it starts again, as long as it `is_wanted`."""

    def __init__(self, controller: Controller, name: str, managed: frozenset[str]) -> None:
        super().__init__(controller, name)
        self.is_wanted = False
        self.is_stopping = False
        self.hands_over = False
        self.is_frozen = False
        self._managed = managed
        self._runs_with: tuple[str, int] | None = None

    @property
    def is_running(self) -> bool:
        """Whether its process exists."""
        return self.process is not None and not self.process.is_over

    def start(self) -> None:
        """systemctl start; does nothing if it runs."""
        self.is_wanted = True
        if not self.is_running:
            self.is_stopping = self.hands_over = self.is_frozen = False
            self._runs_with = None
            self._tell("start")
            self.process = self.controller.world.start(self.name, self._body, self._ended, self)

    def crash(self, *, stays_dead: bool = False) -> None:
        """SIGKILL. With `stays_dead` systemd does not start it again."""
        self.is_wanted = self.is_wanted and not stays_dead
        if self.process is not None and not self.process.is_over and not self.process.is_doomed:
            self._tell("crash")
            self.controller.world.kill(self.process)

    def freeze(self, seconds: float) -> None:
        """SIGSTOP, and SIGCONT so much later."""
        if self.process is not None and not self.process.is_over:
            world, process = self.controller.world, self.process
            self.is_frozen = True
            self._tell("freeze")
            world.freeze(process, seconds)
            world.at(process.frozen_until_s, lambda: self.thaw(process))

    def thaw(self, process: Process | None = None) -> None:
        """SIGCONT; does nothing if it is not this process, or not frozen, or not any more."""
        world = self.controller.world
        if self.is_frozen and process in (None, self.process) and self.process is not None:
            if process is None:
                world.thaw(self.process)
            elif process.frozen_until_s > world.true_s:  # frozen anew, for longer
                return
            self.is_frozen = False
            self._tell("thaw")

    def stop(self) -> None:
        """systemctl stop."""
        self.is_wanted = self.hands_over = False
        self._signal()

    def renew(self) -> None:
        """Let it run with the present configuration and database: start or restart it if needed."""
        if self.is_running and self._runs_with in (None, self._configured()):
            self.is_wanted = True
        elif self.is_running:
            self.restart()
        else:
            self.start()

    def restart(self) -> None:
        """systemctl restart: the scheduler hands over to the next one."""
        self.is_wanted = self.hands_over = True
        self._signal()
        self.start()

    def _signal(self) -> None:
        if self.process is not None and not self.process.is_over:
            self.is_stopping = True
            self.controller.world.interrupt(self.process)

    def _body(self) -> None:
        world = self.controller.world
        world.wait(START_S + self.controller.random.random() * START_MORE_S)
        self._runs_with = self._configured()
        try:
            self._main()
        except SnsError as problem:  # the command line says what is wrong, and exits with 1
            self.log(str(problem))
            self._tell("failed")
            world.at(world.true_s + RESTART_S, self._restarted)
            return
        self._tell("handover" if self.hands_over else "stop")

    def _ended(self, was_killed: bool) -> None:
        world = self.controller.world
        if was_killed:
            world.at(world.true_s + RESTART_S, self._restarted)
        elif self.is_stopping and self.is_wanted:  # a restart
            world.at(world.true_s, self._restarted)

    def _configured(self) -> tuple[str, int]:
        return self.controller.mode, self.controller.store.generation

    def _restarted(self) -> None:
        if self.is_wanted:
            self.start()

    def _main(self) -> None:
        raise NotImplementedError

    def _tell(self, what: str) -> None:
        self.controller.world.history.add("daemon", name=self.name, what=what)


class _Told(Scheduler):
    """The scheduler, whose cycles are written to the history."""

    tell: Callable[[bool], None]

    def cycle(self) -> View:
        try:
            view = super().cycle()
        except Exception:
            self.tell(False)
            raise
        self.tell(True)
        return view


class SchedulerDaemon(Daemon):
    """`sns scheduler` (cli/live/daemons.py)."""

    def __init__(self, controller: Controller, name: str, managed: frozenset[str], policy_name: str) -> None:
        super().__init__(controller, name, managed)
        self._policy_name = policy_name

    def _main(self) -> None:
        controller = self.controller
        history = HistoryOf(self)
        history.check_writable()
        plans = policy(self._policy_name)
        ports = Ports(
            state=StateOf(self),
            executor=SlurmExecutor(),
            history=history,
            decisions=DecisionsOf(self, history),
            profiles=ProfilesOf(self, history, self._programs()),
            heartbeat=HeartbeatOf(self),
            kill_switch=KillSwitchOf(self),
            clock=ClockOf(self),
            log=self.log,
        )
        spreading = SpreadRules(plans.alternatives, known=KnownAlternatives())
        rules, more = settings(controller.mode, self._managed, controller.queued_check_s), dict[str, Any]()
        if controller.agents is not None:
            agents = controller.agents.port(self)
            ports = replace(ports, agents=agents)
            learner = controller.agents.learner(self, history, agents, rules)
            more = {"sign": controller.agents.sign, "learner": learner}
        restarting = restarter(controller.restarts, ports, rules, plans.plan)
        loop = _Told(ports, plans, rules, spreading, restarter=restarting, **more)
        loop.tell = lambda ok: controller.world.history.add("cycle", by=self.name, ok=ok)
        loop.run(INTERVAL_S, lambda: self.is_stopping, lambda: self.hands_over)

    def _programs(self) -> Mapping[str, Program]:
        if self.controller.agents is not None:
            known: Mapping[str, Program] = self.controller.agents.programs
            return known
        return programs() if self._policy_name == "combined" else {}


class WatchdogDaemon(Daemon):
    """`sns watchdog`."""

    def _main(self) -> None:
        dog = Watchdog(
            JobsOf(self),
            SlurmExecutor(),
            HeartbeatOf(self).last,
            clock=ClockOf(self),
            log=self.log,
            timeout_s=TIMEOUT_S,
        )
        dog.run(WATCHDOG_S, lambda: self.is_stopping)


class Filter:
    """The submit filter inside slurmctld, with the table that `sns render` wrote for this site."""

    def __init__(self, controller: Controller, managed: frozenset[str]) -> None:
        self._controller = controller
        self._tables = {
            mode: FilterTable(
                mode=mode,
                partitions={name: _shapes(controller, name) for name in sorted(managed)},
                default_partition="main",
                heuristics=_heuristics(),
                default_memory_per_cpu_mb=controller.site.memory_per_cpu_mb,
                heartbeat_path="/run/sns/heartbeat",
                heartbeat_timeout_s=TIMEOUT_S,
                kill_switch_path="/run/sns/disabled",
            )
            for mode in ("observe", "advise", "enforce")
        }

    def verdict(self, asked: Mapping[str, Any]) -> Verdict:
        """What happens to this submission."""
        files, now_s = self._controller.files, int(self._controller.world.wall_s())
        return judge(
            submission(asked), self._tables[self._controller.mode], now_s, files.beat_in_lua_s(), files.kill_switch
        )


@lru_cache(maxsize=1)
def _heuristics() -> tuple[str, ...]:
    return tuple(heuristics())


def _shapes(controller: Controller, partition: str) -> tuple[NodeShape, ...]:
    nodes = (controller.site.nodes[name] for name in controller.site.partitions[partition][0])
    return tuple(NodeShape(node.cores, node.cores, node.memory_mb, 1) for node in nodes)


def submission(asked: Mapping[str, Any]) -> Submission:
    """A job as the submit filter sees it."""
    nodes_min, nodes_max = asked.get("nodes_min", 1), asked.get("nodes_max")
    gres = ",".join(asked.get("gres", ()))
    if asked.get("ways"):
        gres = f"gres/llc:{asked['ways']}"
    return Submission(
        partition=asked.get("partition", ""),
        comment=asked.get("comment", ""),
        priority=0 if asked.get("held") else None,
        begin_time=asked.get("begin_s"),
        admin_comment=asked.get("admin_comment", ""),
        num_tasks=asked.get("tasks", 1),
        ntasks_per_node=asked.get("tasks_per_node"),
        cpus_per_task=asked.get("cpus_per_task"),
        min_nodes=nodes_min if nodes_min > 1 else None,
        max_nodes=nodes_max,
        min_mem_per_node=asked.get("memory_per_node_mb"),
        min_mem_per_cpu=asked.get("memory_per_cpu_mb"),
        req_nodes=",".join(asked.get("required", ())),
        tres_per_node=gres,
        shared=0 if asked.get("is_alone") else None,
        script_bytes=100,
    )
