"""What `sns check` checks on this machine: files, modes of directories, units, daemons, and what agents need."""

import socket
import stat
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path

from slurm_sns.cli.live.node_missing import text_of
from slurm_sns.cli.live.process import admins, user_id
from slurm_sns.conf_text import Line
from slurm_sns.config.configuration import Config
from slurm_sns.errors import BadInput, SnsError
from slurm_sns.package_files import shared_path
from slurm_sns.scheduler.watchdog import is_stale
from slurm_sns.slurm.check import Finding
from slurm_sns.slurm.check.site_settings import SharedByControllers
from slurm_sns.slurm.controllers import controllers
from slurm_sns.slurm.state import user_name
from slurm_sns.sockets.key_file import read_keys
from slurm_sns.store.heartbeat import HeartbeatFile, KillSwitchFile

#: Where Debian's Lua 5.1 and a Lua built from source look for modules (LUA_PATH_DEFAULT of Lua's luaconf.h).
LUA_DIRECTORIES = (Path("/usr/local/share/lua/5.1"), Path("/usr/share/lua/5.1"))
#: Where systemd looks for units, in its order (systemd.unit(5)): links to the rendered ones, then those of a package.
UNIT_DIRECTORIES = tuple(map(Path, ("/etc/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system")))
#: The file systems that are mounted (proc(5)).
MOUNTS = Path("/proc/self/mounts")
DAEMONS = ("scheduler", "watchdog")
#: The state LISTEN, and where the kernel lists sockets (proc_net_tcp.rst).
_LISTEN, _SOCKETS = "0A", (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


def rendered_files(config: Config, differing: list[str]) -> Finding:
    """The rendered files are up to date with sns.yaml."""
    where = config.paths.slurm_dir
    return _up_to_date(f"rendered files in {where}", differing, f"sns render {where}")


def _up_to_date(what: str, differing: list[str], run: str) -> Finding:
    found = f"missing or outdated: {', '.join(differing)}" if differing else ""
    return Finding(not differing, what, found, run=run)


def filter_modules(script: Path, directories: tuple[Path, ...] = LUA_DIRECTORIES) -> Iterator[Finding]:
    """The Lua modules of this version are where slurmctld finds them, and the site's job_submit.lua calls them."""
    shipped = sorted(shared_path("plugins/job_submit").glob("sns_*.lua"))
    there = next((each for each in directories if (each / shipped[0].name).exists()), directories[0])
    differing = [path.name for path in shipped if text_of(there / path.name) != text_of(path)]
    install = f'install -D -m 644 -t {there} "$(sns sources)"/plugins/job_submit/sns_*.lua'
    if script.exists():
        install += f" && touch {script}"  # slurmctld reads the modules again when its script changes
    yield _up_to_date(f"the submit filter's modules in {there}", differing, install)
    what = f"{script} calls the submit filter"
    if script.exists():
        advice = "call the module sns_filter in it, as plugins/job_submit/job_submit.lua does"
        yield Finding("sns_filter" in text_of(script), what, advice=advice)
    else:
        copy = f'cp "$(sns sources)"/plugins/job_submit/job_submit.lua {script}'
        yield Finding(ok=False, what=what, found="no such file", run=copy)


def spank_plugin(config: Config, plugin_dirs: tuple[Path, ...]) -> Finding:
    """The SPANK plugin exists where the rendered plugstack.conf names it, or in Slurm's PluginDir."""
    name = config.slurm.spank_plugin
    paths = [Path(each, name) for each in plugin_dirs or ("",)]  # an absolute name stays as it is
    there = next((path for path in paths if path.is_file()), None)
    # Its argument `hooks=` has been there since it runs prologs; an older one refuses the rendered line.
    is_old = there is not None and config.agents.controller is not None and b"hooks=" not in there.read_bytes()
    problem = "not found" if there is None else "of an older version, without agents" if is_old else ""
    build = f'make -C "$(sns sources)/plugins/spank" install PLUGINDIR={plugin_dirs[0] if plugin_dirs else ""}'
    return Finding(not problem, f"the SPANK plugin {name}", problem, str(there or paths[0]), run=build)


def directories(config: Config, source: Path) -> Iterator[Finding]:
    """Only root and SlurmUser can write what the submit filter reads, and read decisions and passwords."""
    trusted = admins(config)
    paths = config.paths
    private = 0o027 if config.store.url else 0o022  # the URL may hold a password, which the file's group may read
    for path, forbidden in (
        (source, private),
        (paths.slurm_dir, 0o022),
        (paths.slurm_dir / "filter.lua", 0o022),
        (paths.run_dir, 0o022),
        (paths.state_dir, 0o077),
    ):
        yield _mode(path, forbidden, trusted, config.slurm.user)


def _mode(path: Path, forbidden: int, trusted: Set[int], user: str) -> Finding:
    wanted = f"of root or {user}, {'not writable' if forbidden == 0o022 else 'closed'} for others"
    try:
        state = path.stat()
    except FileNotFoundError:
        return Finding(False, f"{path}", "missing", wanted, advice="it is made with the step above")
    except OSError as problem:
        return Finding(False, f"{path}", problem.strerror or "", wanted, advice="ask as root")
    mode, is_theirs = stat.S_IMODE(state.st_mode), state.st_uid in trusted
    found = f"{mode:04o} of {user_name(state.st_uid)}"
    remedy = ("" if is_theirs else f"chown {user}: {path} && ") + f"chmod {mode & ~forbidden:04o} {path}"
    return Finding(is_theirs and not mode & forbidden, f"{path}", found, wanted, run=remedy)


def units(config: Config, rendered: Mapping[str, str], directories: tuple[Path, ...] = UNIT_DIRECTORIES) -> Finding:
    """The units that systemd takes are the rendered ones; a package has them as they are for the default paths."""
    names = [f"sns-{name}.service" for name in DAEMONS]
    in_force = {name: next((each for each in directories if (each / name).exists()), directories[0]) for name in names}
    differing = [name for name in names if text_of(in_force[name] / name) != rendered[name]]
    paths = " ".join(str(config.paths.slurm_dir / name) for name in names)
    where = " and ".join(dict.fromkeys(map(str, in_force.values())))
    return _up_to_date(f"systemd units in {where}", differing, f"systemctl enable --now {paths}")


def daemons(config: Config) -> Iterator[Finding]:
    """Scheduler and watchdog run, the heartbeat is fresh, the kill switch is off."""
    paths, timeout_s = config.paths, config.scheduler.heartbeat_timeout_s
    for name in DAEMONS:
        yield Finding(runs(name, paths.run_dir), f"sns {name} runs", run=f"systemctl enable --now sns-{name}")
    last_s, now_s = HeartbeatFile(paths.heartbeat).last(), time.time()
    yield Finding(
        not is_stale(last_s, now_s, timeout_s),
        f"heartbeat {paths.heartbeat}",
        f"{now_s - last_s:.0f} s old" if last_s else "none",  # 0 is what a clean stop leaves
        f"at most {timeout_s} s old",
        advice="the scheduler's log says why: journalctl -u sns-scheduler",
    )
    on = KillSwitchFile(paths.kill_switch).is_on()
    yield Finding(not on, f"kill switch {paths.kill_switch} is off", "on" if on else "", run="sns enable")


def runs(name: str, run_dir: Path) -> bool:
    """Whether the daemon whose process id is in its lock file is alive."""
    number = text_of(run_dir / f"{name}.lock").strip()
    words = text_of(Path("/proc", number, "cmdline")).split("\0") if number.isdigit() else []
    return name in words


def agents(config: Config) -> Iterator[Finding]:
    """What a scheduler needs here so that agents can connect and their grants count."""
    yield _key_file(config)
    yield _controller(config.agents.controller or "")
    if runs("scheduler", config.paths.run_dir):
        yield _port(config.agents.port)


def _key_file(config: Config) -> Finding:
    """SlurmUser, who runs the scheduler, can read the keys, and nobody else can."""
    path, user = config.agents.key_file, config.slurm.user
    what = f"the agents' key file {path}"
    if not path.exists():
        return Finding(ok=False, what=what, found="missing", run="sns key new")
    owner = user_id(user)
    if owner is None:
        return Finding(ok=False, what=what, found=f"no user {user}", advice="sns.yaml, slurm: user")
    remedy = f"chown {user}: {path} && chmod 0600 {path}"
    try:
        read_keys(path, owner)
    except SnsError as problem:
        return Finding(ok=False, what=what, found=str(problem), run=remedy)
    found = path.stat().st_uid
    return Finding(found == owner, what, f"of user id {found}", f"of {user}", run=remedy)


def shared_by_controllers(config: Config, lines: Sequence[Line]) -> SharedByControllers:
    """What this machine has of what several controllers share."""
    host_name, is_one_of_them, kind = socket.gethostname(), True, ""
    try:
        if (found := controllers(lines)) is not None:
            kind = file_system(found.state_dir, MOUNTS.read_text(encoding="utf-8", errors="replace"))
    except BadInput:
        is_one_of_them = False
    return SharedByControllers(host_name, is_one_of_them, kind, config.database_url.startswith("sqlite"))


def file_system(path: Path, mounts: str) -> str:
    """The type of the file system that the path is on, by the kernel's list of mounts; the last one counts."""
    kinds: dict[Path, str] = {}
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) >= 3:
            kinds[Path(fields[1].replace("\\040", " "))] = fields[2]
    here = path.resolve()
    return next((kinds[each] for each in (here, *here.parents) if each in kinds), "")


def _controller(controller: str) -> Finding:
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
