"""Promises about the heartbeat: only a living scheduler writes it, whose cycles get answers, and never the future."""

from collections.abc import Iterator

from world.history import Event
from world.promises_life import is_ours
from world.promises_tale import Tale

#: A cycle that has its answers may still write one heartbeat so long after slurmctld or munge stopped: it may have
#: waited for the store's lock meanwhile, for five seconds.
HONEST_S = 8.0
#: A clock that was just set, and a disk that was just full, are not held against us.
JUST_NOW_S = 3.0
#: Profiles are read every five seconds (cli/live/parts.py), and SQLite waits as long for a lock.
STORE_S = 13.0


def not_honest(event: Event, tale: Tale) -> Iterator[str]:
    """What is wrong with a heartbeat that was just written."""
    if not is_ours(event.by):
        return
    services, value = tale.services, event.data["value"]
    told = f"heartbeat not honest: {event.by} wrote {value} at {event.at_s:.3f} s"
    if event.by not in services.started_s:
        yield f"{told}, when it did not run"
        return
    if value == 0:
        return
    began_s = tale.began_s.get(event.by, 0.0)  # a daemon that was frozen may write what it read before
    if value > event.wall_s + 1 and event.at_s - services.stepped_s > JUST_NOW_S and began_s > services.stepped_s:
        yield f"{told}, which is {value - event.wall_s:.0f} s in the future"
    if event.by in services.stopped:
        yield f"{told}, after it had made it stale for its stop"
    if tale.lives.looked_s.get(event.by, -1.0) < services.started_s[event.by]:
        yield f"{told}, before it had seen any job"
    for service, allowed_s in (("slurmctld", HONEST_S), ("munge", HONEST_S), ("store", STORE_S)):
        # A daemon that stood still ends its cycle first.
        for_s = event.at_s - max(services.since_s[service], services.thawed_s.get(event.by, 0.0))
        if services.state[service] in ("down", "locked") and for_s > allowed_s:
            yield f"{told}, with {service} {services.state[service]} for {for_s:.1f} s"


def not_stopped(event: Event, tale: Tale) -> Iterator[str]:
    """After a clean stop the heartbeat is stale at once, unless the disk is full or another scheduler lives."""
    name, services = event.data["name"], tale.services
    if event.data["what"] != "stop" or not name.startswith("scheduler") or tale.had_two:
        return
    others = [each for each in services.schedulers() if each != name]
    disk_s = event.at_s - services.since_s["disk"]
    if not others and services.state["disk"] == "up" and disk_s > JUST_NOW_S and not services.is_stale(event.wall_s):
        yield f"heartbeat not honest: it is fresh at {event.at_s:.3f} s, after the clean stop of {name}"
