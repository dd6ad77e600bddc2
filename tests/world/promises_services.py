"""What surrounds the jobs, as the history tells it: daemons, heartbeat, kill switch, clock and services."""

from math import inf, isfinite

from world.history import Event

#: Services whose state is a word; all begin as "up".
SERVICES = ("slurmctld", "munge", "slurmdbd", "store", "disk")
#: A jump of the clock at least this large makes the watchdog wait for a new heartbeat; jitter and drift are smaller.
LEAST_STEP_S = 1.5
#: A call that began while slurmctld was away may hang for so long (MessageTimeout).
HANGS_S = 10.0
#: A daemon that is started needs so long before its first look.
STARTS_IN_S = 2.0


class Services:
    """The state of everything but the jobs. `timeout_s` is how old a heartbeat may be."""

    def __init__(self, timeout_s: float, mode: str = "enforce") -> None:
        self.timeout_s = timeout_s
        self.mode = mode
        #: The mode that each daemon has read at its start; empty where it was changed at that very time.
        self.mode_of: dict[str, str] = {}
        self.state = dict.fromkeys(SERVICES, "up")
        self.since_s = dict.fromkeys(SERVICES, -inf)
        self.beat: float | None = None
        self.kill_switch_since_s: float | None = None
        self.kill_switch_until_s = -inf  # when it was switched off last
        self.started_s: dict[str, float] = {}
        #: When each daemon last went on after it had stood still.
        self.thawed_s: dict[str, float] = {}
        self.frozen: set[str] = set()
        #: The daemons that have made the heartbeat stale for their stop.
        self.stopped: set[str] = set()
        self.stepped_s = -inf
        #: Whether two schedulers ever ran at once, which a lock file prevents.
        self.had_two = False
        self._stale_s = 0.0
        self._seen_s = 0.0
        self._hindered_s = 0.0

    def schedulers(self) -> list[str]:
        """The schedulers that run."""
        return [name for name in self.started_s if name.startswith("scheduler")]

    def take(self, event: Event) -> None:
        """Go on by one event."""
        data = event.data
        if event.kind == "lost" and event.by == "watchdog":
            self._hindered_s = event.at_s  # its look ends there, and the next one begins anew
        match event.kind:
            case "beat":
                self._beats(data["value"])
                if data["value"] == 0:
                    self.stopped.add(event.by)
            case "daemon":
                self._daemon(event, data["name"], data["what"])
            case "kill-switch":
                self.kill_switch_since_s = event.at_s if data["on"] else None
                self.kill_switch_until_s = self.kill_switch_until_s if data["on"] else event.at_s
            case "clock":
                if abs(data["step_s"]) >= LEAST_STEP_S:
                    self.stepped_s = event.at_s
            case "mode":
                self.mode = data["mode"]
                starting = [name for name, at_s in self.started_s.items() if event.at_s - at_s < STARTS_IN_S]
                self.mode_of.update(dict.fromkeys(starting, ""))
            case kind if kind in self.state:
                if data["state"] not in (self.state[kind], "gone"):  # a store that is gone is a new one at once
                    self.state[kind], self.since_s[kind] = data["state"], event.at_s

    def _beats(self, value: float | str | None) -> None:
        """The text of the file, as a number if it is one."""
        try:
            self.beat = None if value is None else float(value)
        except ValueError:
            self.beat = None

    def _daemon(self, event: Event, name: str, what: str) -> None:
        if what == "start":
            self.started_s[name] = event.at_s
            self.had_two |= len(self.schedulers()) > 1
            self.mode_of[name] = self.mode
            self.stopped.discard(name)
        elif what == "freeze":
            self.frozen.add(name)
        elif what == "thaw":
            self.frozen.discard(name)
            self.thawed_s[name] = event.at_s
        else:  # crash, stop, handover, failed
            self.started_s.pop(name, None)
            self.frozen.discard(name)
        if name == "watchdog":
            self._hindered_s = event.at_s

    # --- what follows from it

    def places(self, by: str, began_s: float) -> bool:
        """Whether a cycle of this scheduler that began then holds and places jobs, as far as it could know."""
        was_off = self.kill_switch_since_s is not None or self.kill_switch_until_s > began_s
        return not was_off and self.mode_of.get(by) == "enforce"

    def is_stale(self, wall_s: float) -> bool:
        """Whether the heartbeat says at that time that the scheduler is dead."""
        return self.beat is None or not isfinite(self.beat) or abs(wall_s - self.beat) > self.timeout_s

    def watch(self, event: Event) -> float:
        """Since when the watchdog has had everything to release what is held; infinity while it has not.

        To be asked at every event, in order: it notes when the heartbeat began to be stale.
        """
        beat, state = self.beat, self.state
        if not self.is_stale(event.wall_s):
            self._stale_s = inf
        elif self._stale_s == inf:
            over_s = event.wall_s - (beat or 0.0) - self.timeout_s
            is_old = beat is not None and isfinite(beat) and over_s > 0
            self._stale_s = max(self._seen_s, event.at_s - over_s) if is_old else event.at_s
        self._seen_s = event.at_s
        works = (
            state["slurmctld"] == "up"
            and state["munge"] == "up"
            and "watchdog" in self.started_s
            and "watchdog" not in self.frozen
        )
        if not works:
            self._hindered_s = event.at_s
            return inf
        return max(self._stale_s, self._hindered_s, self.stepped_s, self.since_s["slurmctld"] + HANGS_S)
