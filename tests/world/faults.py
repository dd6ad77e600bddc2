"""What fails in the world: daemons, services, files, the clock; and how all of it is repaired."""

from collections.abc import Callable, Mapping
from typing import Any

from world.daemons import Daemon, SchedulerDaemon
from world.ports import Controller, Trap
from world.schedule import Schedule, Step

#: A slurmctld that was killed runs again after so long at the earliest: ids of jobs come again, not in the same second.
RESTARTS_S = 1.0
#: Drift changes the clock once in so many seconds.
DRIFT_S = 0.5


class Faults:
    """Puts the steps that are no person's into effect."""

    def __init__(self, controller: Controller, daemons: Mapping[str, Daemon]) -> None:
        self._controller, self._daemons = controller, daemons
        self._is_drifting = True
        self._restarts_s = 0.0
        self.actions: dict[str, Callable[..., None]] = {
            "crash": lambda daemon, stays_dead=False: daemons[daemon].crash(stays_dead=stays_dead),
            "freeze": self.freeze,
            "stop": lambda daemon: daemons[daemon].stop(),
            "restart": lambda daemon: daemons[daemon].restart(),
            "start": lambda daemon: daemons[daemon].start(),
            "slurmctld": self.slurmctld,
            "munge": self.munge,
            "slurmdbd": self.slurmdbd,
            "store": self.store,
            "disk": self.disk,
            "beat": self.beat,
            "clock": self.clock,
            "drift": self.drift,
            "switch": self.switch,
            "mode": self.mode,
            "lost": lambda: None,
            "refuse": self.refuse,
        }

    def do(self, step: Step) -> None:
        """Do what the step says."""
        if not self._controller.is_repaired:
            data = {name: value for name, value in step.data.items() if name not in ("trap", "after")}
            self.actions[step.what](**data)

    def arm(self, trap: Mapping[str, Any], action: Callable[[int], object]) -> None:
        """Let something happen at a call of a daemon's ports; the action is told the job that the call is about."""
        kinds, daemon = frozenset(filter(None, trap["kinds"])), self._daemons[trap["daemon"]]
        daemon.traps.append(Trap(trap["when"], trap["nth"], lambda: action(daemon.concerns), kinds))

    def freeze(self, daemon: str, seconds: float, until: Mapping[str, Any] | None = None) -> None:
        """SIGSTOP, for so long, or until a call of the other daemon; the heartbeat is then lost at the same time."""
        self._daemons[daemon].freeze(seconds)
        if until is not None:
            self.beat(None)
            self.arm(until, lambda _: self._daemons[daemon].thaw())

    def slurmctld(self, state: str, *, hangs: bool = False, is_killed: bool = False) -> None:
        """It stops (it may hang, so that callers wait, or lose its last seconds), is slow, or works again."""
        controller = self._controller
        if is_killed and controller.slurmctld != "down":
            controller.slurm.go_back()
            self._restarts_s = controller.world.true_s + RESTARTS_S
        if state != "down" and controller.world.true_s < self._restarts_s:
            controller.world.at(self._restarts_s, lambda: self.slurmctld(state))
            return
        controller.slurmctld, controller.slurmctld_hangs = state, hangs
        controller.world.slurmctld_is_up = state != "down"
        controller.say("slurmctld", state=state)

    def munge(self, state: str) -> None:
        self._controller.munge_is_up = state == "up"
        self._controller.say("munge", state=state)

    def slurmdbd(self, state: str) -> None:
        self._controller.slurmdbd_is_up = self._controller.slurm.database_is_up = state == "up"
        self._controller.say("slurmdbd", state=state)

    def refuse(self, at: str) -> None:
        """Slurm refuses the next update of ours in the middle: what comes before that place stays."""
        self._controller.slurm.refuses_at = at

    def store(self, state: str) -> None:
        """It is locked or full; `gone`: an administrator moves the database away."""
        if state == "gone":
            self._controller.store.move_away()
        else:
            self._controller.store.state = state
        self._controller.say("store", state=state)

    def disk(self, state: str) -> None:
        self._controller.files.disk_is_full = state == "full"
        self._controller.say("disk", state=state)

    def beat(self, text: str | None) -> None:
        """Somebody removes the heartbeat file, or writes something else into it."""
        self._controller.files.heartbeat = text
        self._controller.say("beat", value=text)

    def clock(self, step_s: float) -> None:
        self._controller.world.offset_s += step_s
        self._controller.say("clock", step_s=step_s)

    def drift(self, per_s: float, seconds: float) -> None:
        """The wall clock runs too fast or too slowly for so long."""
        if seconds > 0 and self._is_drifting:
            self.clock(per_s * DRIFT_S)
            world = self._controller.world
            world.at(world.true_s + DRIFT_S, lambda: self.drift(per_s, seconds - DRIFT_S))

    def switch(self, *, on: bool) -> None:
        """Sns disable, sns enable."""
        self._controller.files.kill_switch = on
        self._controller.say("kill-switch", on=on)

    def mode(self, mode: str, *, restart: bool) -> None:
        """Another mode in sns.yaml, sns render, and the restart of both daemons (which may be forgotten)."""
        self._controller.mode = mode
        self._controller.say("mode", mode=mode)
        if restart:
            for name in ("scheduler", "watchdog"):
                if self._daemons[name].is_wanted:
                    self._daemons[name].restart()

    # --- the end

    def repair(self, schedule: Schedule) -> None:
        """Repair everything, and bring the daemons into the state in which the schedule ends."""
        controller = self._controller
        controller.is_repaired = True
        self._is_drifting = False
        for daemon in self._daemons.values():
            daemon.traps.clear()
            if daemon.is_running:
                daemon.thaw()
        if controller.slurmctld != "up":
            self.slurmctld("up")
        if not controller.munge_is_up:
            self.munge("up")
        if not controller.slurmdbd_is_up:
            self.slurmdbd("up")
        controller.slurm.refuses_at = ""
        if controller.store.state != "up":
            self.store("up")
        if controller.files.disk_is_full:
            self.disk("up")
        self._repair_slurm()
        self._settle(schedule.ending)

    def _repair_slurm(self) -> None:
        slurm = self._controller.slurm
        for name, node in slurm.nodes.items():
            if node.state != "up":
                slurm.update_node(name, "undrain" if node.state == "drain" else "up")
        for name, partition in slurm.partitions.items():
            was = {"state": partition.state, "max_time_s": partition.max_time_s, "max_nodes": partition.max_nodes}
            if was != _AS_NEW:
                slurm.update_partition(name, **_AS_NEW)
        for account in sorted(slurm.limits.cores):
            slurm.set_limit(account, None)
        for qos in sorted(slurm.limits.cores_of_qos):
            slurm.set_qos_limit(qos, None)
        for user in sorted(slurm.limits.jobs):
            slurm.set_user_limit(user, None)
        for name in sorted(slurm.reservations):
            slurm.unreserve(name)
        for job in list(slurm.jobs.values()):
            if job.state == "SUSPENDED" and (job.is_paused or not slurm.site.suspends_by_tier):
                slurm.unsuspend(job.id, "admin")

    def _settle(self, ending: str) -> None:
        controller, daemons = self._controller, self._daemons
        if controller.files.kill_switch != (ending == "off"):
            self.switch(on=ending == "off")
        mode = ending if ending in ("observe", "advise") else "enforce"
        if controller.mode != mode:
            controller.mode = mode
            controller.say("mode", mode=mode)
        daemons["scheduler-2"].crash(stays_dead=True)
        if ending == "gone":
            daemons["watchdog"].crash(stays_dead=True)
        else:
            daemons["watchdog"].renew()
        scheduler = daemons["scheduler"]
        assert isinstance(scheduler, SchedulerDaemon)
        if ending in ("dead", "gone"):
            scheduler.crash(stays_dead=True)
        elif ending == "stopped":
            scheduler.renew()
            scheduler.stop()
        else:
            scheduler.renew()


_AS_NEW: dict[str, Any] = {"state": "UP", "max_time_s": None, "max_nodes": None}
