"""What `sns check` checks on this machine: files, directories with their modes, units, daemons."""

import pwd
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from slurm_sns.config import Config
from slurm_sns.package_files import shared_path
from slurm_sns.scheduler.watchdog import is_stale
from slurm_sns.slurm.check import Finding
from slurm_sns.store.heartbeat import HeartbeatFile, KillSwitchFile

#: Where Debian's Lua 5.1 and a Lua built from source look for modules (LUA_PATH_DEFAULT of Lua's luaconf.h).
LUA_DIRECTORIES = (Path("/usr/local/share/lua/5.1"), Path("/usr/share/lua/5.1"))
UNIT_DIRECTORY = Path("/etc/systemd/system")
DAEMONS = ("scheduler", "watchdog")


def rendered_files(config: Config, differing: list[str]) -> Finding:
    """The rendered files are up to date with sns.yaml."""
    where = config.paths.slurm_dir
    found = f"missing or outdated: {', '.join(differing)}" if differing else ""
    return Finding(not differing, f"rendered files in {where}", found, run=f"sns render {where}")


def filter_modules(script: Path, directories: tuple[Path, ...] = LUA_DIRECTORIES) -> Iterator[Finding]:
    """The Lua modules of this version are where slurmctld finds them, and the site's job_submit.lua calls them."""
    shipped = sorted(shared_path("plugins/job_submit").glob("sns_*.lua"))
    there = next((each for each in directories if (each / shipped[0].name).exists()), directories[0])
    differing = [path.name for path in shipped if _text(there / path.name) != _text(path)]
    yield Finding(
        not differing,
        f"the submit filter's modules in {there}",
        f"missing or outdated: {', '.join(differing)}" if differing else "",
        # slurmctld reads the modules again when its script changes.
        run=f'install -D -m 644 -t {there} "$(sns sources)"/plugins/job_submit/sns_*.lua'
        + (f" && touch {script}" if script.exists() else ""),
    )
    copy = f'cp "$(sns sources)"/plugins/job_submit/job_submit.lua {script}'
    yield Finding(
        "sns_filter" in _text(script),
        f"{script} calls the submit filter",
        "" if script.exists() else "no such file",
        run="" if script.exists() else copy,
        advice="call the module sns_filter in it, as plugins/job_submit/job_submit.lua does" if script.exists() else "",
    )


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
    trusted = {0, _user_id(config.slurm.user)}
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


def _mode(path: Path, forbidden: int, trusted: set[int], user: str) -> Finding:
    wanted = f"of root or {user}, {'not writable' if forbidden == 0o022 else 'closed'} for others"
    try:
        state = path.stat()
    except FileNotFoundError:
        return Finding(
            ok=False, what=f"{path}", found="missing", wanted=wanted, advice="it is made with the step above"
        )
    except OSError as problem:
        return Finding(ok=False, what=f"{path}", found=problem.strerror or "", wanted=wanted, advice="ask as root")
    mode, is_theirs = stat.S_IMODE(state.st_mode), state.st_uid in trusted
    found = f"{mode:04o} of {_user_name(state.st_uid)}"
    remedy = ("" if is_theirs else f"chown {user}: {path} && ") + f"chmod {mode & ~forbidden:04o} {path}"
    return Finding(is_theirs and not mode & forbidden, f"{path}", found, wanted, run=remedy)


def units(config: Config, rendered: Mapping[str, str], directory: Path = UNIT_DIRECTORY) -> Finding:
    """The units in systemd's directory are the rendered ones."""
    names = [f"sns-{name}.service" for name in DAEMONS]
    differing = [name for name in names if _text(directory / name) != rendered[name]]
    return Finding(
        not differing,
        f"systemd units in {directory}",
        f"missing or outdated: {', '.join(differing)}" if differing else "",
        run="systemctl enable --now " + " ".join(str(config.paths.slurm_dir / name) for name in names),
    )


def daemons(config: Config) -> Iterator[Finding]:
    """Scheduler and watchdog run, the heartbeat is fresh, the kill switch is off."""
    paths, timeout_s = config.paths, config.scheduler.heartbeat_timeout_s
    for name in DAEMONS:
        yield Finding(runs(name, paths.run_dir), f"sns {name} runs", run=f"systemctl start sns-{name}")
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
    number = _text(run_dir / f"{name}.lock").strip()
    words = _text(Path("/proc", number, "cmdline")).split("\0") if number.isdigit() else []
    return name in words


def _user_id(name: str) -> int:
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return 0


def _user_name(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
