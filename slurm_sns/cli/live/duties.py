"""Which of several controllers' daemons is on duty: the parts of that, for scheduler and watchdog."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from slurm_sns import conf_text
from slurm_sns.cli.live.process import StopSignal, log
from slurm_sns.scheduler.ports import Executor
from slurm_sns.scheduler.turn import FencedExecutor, PlannerTurn, WatchdogDuty
from slurm_sns.slurm.api import configuration_path
from slurm_sns.slurm.controllers import controllers
from slurm_sns.slurm.executor import SlurmExecutor
from slurm_sns.store.planner_lease import PlannerLease

if TYPE_CHECKING:
    from slurm_sns.config.configuration import Config

#: A lease is as long as an update may take, and this much longer: a planner that stands still for less keeps it.
SPARE_LEASE_S = 5.0


def turn(clock: StopSignal) -> PlannerTurn | None:
    """The turn of this host's scheduler; None on a site with one controller, whose scheduler always plans.

    Raises:
        BadInput: slurm.conf names several controllers, and this host is none of them.
    """
    found = controllers(conf_text.read(configuration_path()))
    if found is None:
        return None
    update_s = found.message_timeout_s
    lease = PlannerLease(found.state_dir, found.own_host, update_s + SPARE_LEASE_S, clock.steady)
    return PlannerTurn(found.own_host, found.acting, lease, update_s=update_s, clock=clock, log=log.info)


def with_turn(
    is_stopping: Callable[[], bool], stop: StopSignal, turn: PlannerTurn
) -> tuple[Callable[[], bool], Callable[[], bool]]:
    """For the loop of a scheduler with a turn: whether it ends, and whether it leaves the waiting jobs to the next one.

    Only one that is told to stop gives them to Slurm.
    """
    return (lambda: is_stopping() or not turn.lasts()), (lambda: stop.hands_over() or not stop.is_set())


def watchdog_duty(config: "Config", clock: StopSignal) -> tuple[Callable[[], bool], Executor]:
    """Whether this host's watchdog may free jobs (always on a site with one controller), and what it sends by.

    Raises:
        BadInput: as `turn`.
    """
    found = controllers(conf_text.read(configuration_path()))
    if found is None:
        return lambda: True, SlurmExecutor()
    # A lease that nobody gives up ends within this time, and a slurmctld that has taken over has settled by then
    # (SETTLED_S); the next planner then has as long as any scheduler.
    grace_s = config.scheduler.heartbeat_timeout_s + found.message_timeout_s + SPARE_LEASE_S
    duty = WatchdogDuty(found.own_host, found.acting, grace_s, clock.steady)
    return duty, FencedExecutor(SlurmExecutor(), duty.require)
