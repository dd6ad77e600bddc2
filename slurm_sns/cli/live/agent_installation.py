"""What `sns check` checks on the controller for the agents on the nodes: the key, the port, the plugin's version."""

import pwd
import socket
from collections.abc import Iterator
from pathlib import Path

from slurm_sns.cli.live.installation import runs
from slurm_sns.config import Config
from slurm_sns.errors import SnsError
from slurm_sns.slurm.check import Finding
from slurm_sns.sockets.key_file import read_keys

#: The state LISTEN, and where the kernel lists sockets (proc_net_tcp.rst).
_LISTEN, _SOCKETS = "0A", (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


def findings(config: Config) -> Iterator[Finding]:
    """What a scheduler needs here so that agents can connect and their grants count."""
    yield _key(config)
    yield _name(config.agents.controller or "")
    if runs("scheduler", config.paths.run_dir):
        yield _port(config.agents.port)


def _key(config: Config) -> Finding:
    """SlurmUser, who runs the scheduler, can read the keys, and nobody else can."""
    path, user = config.agents.key_file, config.slurm.user
    what = f"the agents' key file {path}"
    if not path.exists():
        return Finding(ok=False, what=what, found="missing", run="sns key new")
    remedy = f"chown {user}: {path} && chmod 0600 {path}"
    try:
        owner = pwd.getpwnam(user).pw_uid
        read_keys(path, owner)
    except KeyError:
        return Finding(ok=False, what=what, found=f"no user {user}", advice="sns.yaml, slurm: user")
    except SnsError as problem:
        return Finding(ok=False, what=what, found=str(problem), run=remedy)
    found = path.stat().st_uid
    return Finding(found == owner, what, f"of user id {found}", f"of {user}", run=remedy)


def _name(controller: str) -> Finding:
    """The name by which the nodes look for the scheduler is this machine's."""
    what, advice = f"agents.controller {controller} is this machine", "sns.yaml, agents: controller"
    try:
        found = socket.getaddrinfo(controller, 0, type=socket.SOCK_DGRAM)
    except OSError as problem:
        return Finding(ok=False, what=what, found=problem.strerror or "unknown", advice=advice)
    addresses = sorted({str(address[0]) for *_, address in found})
    is_here = any(_is_local(family, address) for family, _, _, _, address in found)
    return Finding(is_here, what, ", ".join(addresses), "an address of this machine", advice=advice)


def _is_local(family: int, address: tuple[object, ...]) -> bool:
    """A socket can only be bound to an address of this machine; nothing is sent."""
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as bound:
            bound.bind(address)
    except OSError:
        return False
    return True


def _port(port: int) -> Finding:
    """Somebody listens on the port; a connection would be a line in the scheduler's log."""
    return Finding(
        any(_listens(path, port) for path in _SOCKETS),
        f"the scheduler listens on port {port} for agents",
        advice="systemctl restart sns-scheduler: it reads agents.controller and agents.port when it starts; its log "
        "says why it does not listen: journalctl -u sns-scheduler",
    )


def _listens(path: Path, port: int) -> bool:
    try:
        rows = [line.split() for line in path.read_text(encoding="ascii").splitlines()[1:]]
    except OSError:
        return False
    return any(row[3] == _LISTEN and int(row[1].rpartition(":")[2], 16) == port for row in rows)
