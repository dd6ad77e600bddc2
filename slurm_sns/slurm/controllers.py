"""The hosts of slurm.conf that may run slurmctld, and which of them is the acting one.

Slurm's own record of that is the file `heartbeat` in StateSaveLocation, which all controllers share. The acting
slurmctld writes it every quarter of SlurmctldTimeout: the time, and its place among the SlurmctldHost lines, 8 bytes
each, in network order (src/slurmctld/heartbeat.c; seen on 26.05: it changes at the moment of a takeover). A backup
takes over only when that time is old. `scontrol ping` does not help: it shows a backup that stands by as UP (seen).
"""

import re
import socket
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from slurm_sns.conf_text import Line
from slurm_sns.errors import BadInput, SnsError

#: Time and place.
_HEARTBEAT = struct.Struct("!QQ")
#: `ctl`, `ctl(10.0.0.2)`.
_HOST = re.compile(r"([^()\s]+)(?:\([^()]*\))?")
#: Slurm's own value of StateSaveLocation, and of MessageTimeout in seconds.
DEFAULT_STATE_DIR, DEFAULT_MESSAGE_TIMEOUT_S = "/var/spool", 10


@dataclass(frozen=True, slots=True)
class Controllers:
    """The names of the SlurmctldHost lines, the place of this host among them, and what the controllers share."""

    hosts: tuple[str, ...]
    own: int
    state_dir: Path
    message_timeout_s: float

    @property
    def own_host(self) -> str:
        """The name of this host in slurm.conf."""
        return self.hosts[self.own]

    def acting(self) -> str:
        """The host whose slurmctld acts, or acted last.

        Raises:
            SnsError: Slurm's record of that cannot be read.
        """
        path = self.state_dir / "heartbeat"
        try:
            with path.open("rb") as file:
                content = file.read(_HEARTBEAT.size + 1)
        except OSError as problem:
            raise SnsError(f"slurmctld's {path} cannot be read: {problem.strerror}") from None
        if len(content) != _HEARTBEAT.size:
            raise SnsError(f"slurmctld's {path} has another length than {_HEARTBEAT.size} bytes")
        place: int = _HEARTBEAT.unpack(content)[1]
        if place >= len(self.hosts):
            raise SnsError(f"slurmctld's {path} names controller {place}; slurm.conf has {len(self.hosts)}")
        return self.hosts[place]


def hosts(lines: Iterable[Line]) -> tuple[str, ...]:
    """The names of the SlurmctldHost lines, in order."""
    named = (line.option[1] for line in lines if line.option and line.option[0] == "slurmctldhost")
    return tuple(found[1] for name in named if (found := _HOST.match(name)))


def _without_domain(name: str) -> str:
    return name.partition(".")[0]


def controllers(lines: Iterable[Line], host_name: Callable[[], str] = socket.gethostname) -> Controllers | None:
    """What slurm.conf says of several controllers; None where it names one only.

    Raises:
        BadInput: this host is none of them.
    """
    lines = tuple(lines)
    names = hosts(lines)
    if len(names) < 2:
        return None
    own = host_name()
    places = [place for place, name in enumerate(names) if name == own]
    # slurm.conf may have a domain where the host's own name has none, or the other way round.
    places += [place for place, name in enumerate(names) if _without_domain(name) == _without_domain(own)]
    if not places:
        raise BadInput(f"this host is called {own}; valid: a SlurmctldHost of slurm.conf: {', '.join(names)}")
    options = dict(line.option for line in lines if line.option)
    timeout = options.get("messagetimeout", "")
    return Controllers(
        names,
        places[0],
        Path(options.get("statesavelocation", DEFAULT_STATE_DIR)),
        float(timeout) if timeout.isdecimal() and int(timeout) else DEFAULT_MESSAGE_TIMEOUT_S,
    )
