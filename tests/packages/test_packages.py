"""The packages at a plain Debian site with systemd, by the commands of docs/admins/packages.md: installed to purged.

`make test-packages` runs it; it is no part of `make test`. SNS_PACKAGES=DIR:DIR names packages that were built before.
"""

import json
import os
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from test_admins_day import CHECKOUT, PATIENCE_S, SLOW_S, Site

PAGE = CHECKOUT / "docs" / "admins" / "packages.md"
#: What changes on a machine that runs, and what packages of any kind leave behind.
OF_THE_MACHINE = ("/proc", "/sys", "/dev", "/run", "/tmp", "/home", "/root", "/usr/src", "*/__pycache__")
OF_THE_MACHINE += tuple(
    f"/var/{name}" for name in ("cache", "log", "tmp", "lib/apt", "lib/dpkg", "lib/rpm", "lib/munge", "lib/slurm")
)
OF_THE_MACHINE += ("/var/lib/systemd", "/etc/machine-id", "/etc/.updated", "/var/.updated", "/etc/ld.so.cache")


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The packages of this version, and those of a later one."""
    if built := os.environ.get("SNS_PACKAGES"):
        now, later = map(Path, built.split(":"))
        return now, later
    made = []
    for version in ("", "999.0"):
        made.append(tmp_path_factory.mktemp("packages"))
        line = [CHECKOUT / "containers" / "cluster.sh", "packages", made[-1]]
        subprocess.run(line, env=os.environ | {"SNS_VERSION": version}, check=True, timeout=SLOW_S)
    return made[0], made[1]


class Packaged(Site):
    """The site under systemd, with packages in /root/packages."""

    machine = "packaged"

    def __init__(self) -> None:
        super().__init__()
        text = PAGE.read_text(encoding="utf-8")
        found = re.findall(r"^<!-- packages: (.*) -->\n\n((?:    .*\n)+)", text, re.MULTILINE)
        self.steps = {step: textwrap.dedent(commands) for step, commands in found}

    def take(self, folder: Path) -> None:
        """Have these packages there instead of others."""
        self.run("rm -rf /root/packages")
        self.copy(folder, "packages")

    def copy(self, folder: Path, name: str) -> None:
        """Copy what is in the folder to /root/`name`."""
        line = [*self._docker, "cp", f"{folder}/.", f"{self.project}-{self.machine}:/root/{name}"]
        subprocess.run(line, check=True, timeout=300)

    def follow(self, step: str, folder: str = "packages") -> str:
        return self.run(f"cd /root/{folder}; set -e; exec 2>&1\n{self.steps.pop(step)}")

    def configure(self) -> None:
        """Draft a configuration, render, and do what `sns check` says; start nothing."""
        self.run("sns draft > /etc/slurm/sns.yaml; sns render /etc/slurm/sns")
        done: list[str] = []
        for each in self.findings():
            if each.get("run") not in done and not each.get("run", "").startswith("systemctl"):
                self.mend(each)
                done += [each["run"]] if "run" in each else []

    def enforce(self) -> None:
        self.run("sed -i 's/^mode: observe/mode: enforce/' /etc/slurm/sns.yaml; sns render /etc/slurm/sns")
        self.run("systemctl daemon-reload; systemctl restart sns-scheduler sns-watchdog")

    def unit(self, name: str, unit: str = "sns-scheduler") -> str:
        return self.run(f"systemctl show -P {name} {unit}").strip()

    def metrics(self) -> list[str]:
        """What Prometheus reads at this moment, without its comments."""
        lines = self.run("curl -s http://127.0.0.1:9831/metrics").splitlines()
        return [line for line in lines if not line.startswith("#")]

    def decisions(self, job_ids: Iterable[int]) -> dict[int, list[dict]]:
        """By the command: the packages' environment is not where that of the mini cluster is."""
        return {each: json.loads(self.run(f"sns explain {each} --json"))["decisions"] for each in job_ids}

    def is_booted(self) -> bool:
        return self.try_run("systemctl is-active slurmctld slurmd munge").returncode == 0

    def files(self) -> dict[str, str]:
        """Every file that does not belong to the running machine, with owner and mode, below /etc also its checksum."""
        pruned = " -o ".join(f"-path '{each}'" for each in OF_THE_MACHINE)
        listed = self.run(rf"find / /run/sns* \( {pruned} \) -prune -o -printf '%p\t%u %#m\n' 2> /dev/null || true")
        found = dict(line.split("\t") for line in listed.splitlines())
        sums = self.run("find /etc -type f -exec sha256sum {} +").splitlines()
        return found | {line[66:]: found[line[66:]] + line[:64] for line in sums if line[66:] in found}


@pytest.fixture
def site() -> Iterator[Packaged]:
    site = Packaged()
    try:
        site.container("packaged")
        site.wait_for("systemd has booted", site.is_booted, PATIENCE_S)
        site.wait_for("the node is idle", lambda: set(site.run("sinfo -h -o %T").split()) == {"idle"}, PATIENCE_S)
        yield site
    finally:
        site.close()
        site.container("packaged-down")


def test_the_packages_are_installed_upgraded_and_purged(site: Packaged, packages: tuple[Path, Path]) -> None:
    before = site.files()
    began_s = time.monotonic()
    site.take(packages[0])
    site.follow("install")
    assert site.unit("ActiveState") == "inactive", "nothing starts by itself"
    site.configure()
    site.follow("start")
    assert site.unit("ActiveState") == site.unit("ActiveState", "sns-watchdog") == "active", "systemctl waited for them"
    site.wait_for("sns check finds all well", site.is_all_well, PATIENCE_S, every_s=2)
    assert site.run("systemd-analyze verify /usr/lib/systemd/system/sns-*.service 2>&1") == ""
    site.wait_for("it has planned", lambda: "first" not in site.unit("StatusText"), PATIENCE_S)
    assert re.fullmatch(r"observe; 0 waiting; cycle \d+ ms", site.unit("StatusText"))
    site.wait_for("the watchdog knows", lambda: "lives" in site.unit("StatusText", "sns-watchdog"), PATIENCE_S)

    site.enforce()
    first = site.submit("-n2 --sns-alpha=0.9", "true")
    assert site.wait_for_end([first], PATIENCE_S)[first].state == "COMPLETED"
    assert site.starts([first])
    took_s = time.monotonic() - began_s
    print(f"from a plain site to the end of the first placed job: {took_s:.0f} s")  # noqa: T201 - measured, not asserted

    # The exporter, in an environment of its own and as a user who exists while it runs.
    site.copy_checkout()
    assert site.follow("exporter", "slurm_sns").endswith("\nslurm_sns_up 1.0\n")
    assert site.run("ps -o user= -p $(systemctl show -P MainPID sns-exporter)").strip() not in ("root", "slurm")
    assert site.run("systemd-analyze verify /etc/slurm/sns/sns-exporter.service 2>&1") == ""
    site.run("systemctl stop sns-scheduler")
    assert site.metrics() == ["slurm_sns_up 0.0"], "none is old"
    site.run("systemctl start sns-scheduler")
    site.wait_for("it serves again", lambda: "slurm_sns_up 1.0" in site.metrics(), PATIENCE_S)
    site.follow("exporter removal")

    # A scheduler that hangs is aborted, says where it was, and is started again; what waits stays gated.
    filler, gated = site.fill(), site.gate_three()
    site.run("mkdir -p /run/systemd/system/sns-scheduler.service.d")
    site.write("/run/systemd/system/sns-scheduler.service.d/quick.conf", "[Service]\nWatchdogSec=5\n")
    site.run("systemctl daemon-reload; systemctl restart sns-scheduler")
    process = site.unit("MainPID")
    time.sleep(8)
    assert (site.unit("MainPID"), site.unit("NRestarts")) == (process, "0"), "one that lives is left alone"
    site.run(f"kill -STOP {process}")
    site.wait_for("another one lives", lambda: site.unit("MainPID") not in (process, "0"), PATIENCE_S)
    site.wait_for("it plans", lambda: "3 waiting" in site.unit("StatusText"), PATIENCE_S)
    log = site.run("journalctl -u sns-scheduler -o cat")
    assert "Fatal Python error: Aborted" in log
    assert "loop.py" in log.partition("Fatal Python error")[2], "where it was"
    assert site.unit("NRestarts") == "1"
    assert all(site.job(each).is_gated for each in gated)
    site.run("rm -r /run/systemd/system/sns-scheduler.service.d; systemctl daemon-reload")

    # Upgraded while jobs are gated: they stay gated, and the new scheduler places them.
    site.take(packages[1])
    site.follow("upgrade")
    assert site.run("sns --version") == "sns 999.0\n"
    assert site.unit("MainPID") != process
    assert all(site.job(each).is_gated for each in gated)
    assert "left to Slurm" not in site.run("journalctl -u sns-scheduler -u sns-watchdog -o cat")
    site.run(f"scancel {filler}")
    assert {each.state for each in site.wait_for_end(gated, PATIENCE_S).values()} == {"COMPLETED"}
    assert site.starts([first, *gated])

    # Purged while jobs are gated: they are left to Slurm, and the site is as it was.
    filler, gated = site.fill(), site.gate_three()
    site.follow("remove")
    assert not any(site.job(each).is_gated for each in gated)
    site.run(f"scancel {filler}")
    assert {each.state for each in site.wait_for_end(gated, PATIENCE_S).values()} == {"COMPLETED"}
    after = site.files()
    assert sorted(after.items() - before.items()) == []
    assert sorted(before.keys() - after.keys()) == []
    assert not site.steps, "the page has steps that no test runs"


def test_a_nodes_package_has_an_agent_and_no_scheduler(site: Packaged, packages: tuple[Path, Path]) -> None:
    site.take(packages[0])
    site.run("cd /root/packages && apt-get install -y ./slurm-sns-node_*.deb ./slurm-sns-slurm*.deb")
    site.run("sns draft > /etc/slurm/sns.yaml; echo 'agents: {controller: site}' >> /etc/slurm/sns.yaml; sns key new")
    assert json.loads(site.run("sns agent --observe --once --json"))["node"] == "site"
    site.run("systemctl start sns-agent")
    site.wait_for("its status", lambda: site.unit("StatusText", "sns-agent"), PATIENCE_S)
    assert site.unit("StatusText", "sns-agent") == "unpartitioned; 0 jobs; not connected"
    assert "needs numba" in site.try_run("sns scheduler").stderr
    assert site.try_run("ls /usr/lib/systemd/system/sns-scheduler.service").returncode != 0
    # slurmd starts after it, and does not wait for an agent that cannot start.
    site.run("systemctl stop slurmd sns-agent; echo nonsense >> /etc/slurm/sns.yaml; systemctl enable sns-agent")
    site.run("systemctl start sns-agent slurmd", timeout_s=60)
    assert site.unit("ActiveState", "slurmd") == "active"


#: rpm knows nothing of what dpkg has installed.
RPM = "cd /root/packages && rpm --nodeps"


def test_the_rpm_are_installed_upgraded_and_erased_by_rpm(site: Packaged, packages: tuple[Path, Path]) -> None:
    """On Debian: their files and scripts are what is tried, not what they depend on."""
    plugin = "$(scontrol show config | sed -n 's/^PluginDir *= //p')/sns.so"
    # Of Slurm and Lua on an RPM distribution.
    site.run("mkdir -p /usr/lib64/slurm /usr/lib64/lua/5.1 /usr/share/lua/5.1")
    before = site.files()
    site.take(packages[0])
    assert "arning" not in site.run(f"exec 2>&1; {RPM} -i slurm-sns-[0-9]*.rpm slurm-sns-slurm*.rpm")
    site.run("rpm -V --nodeps $(rpm -qa 'slurm-sns*')")
    site.run(f"ln -s /usr/lib64/slurm/sns.so {plugin}")
    site.run('cp -n "$(sns sources)/plugins/job_submit/job_submit.lua" /etc/slurm/')
    assert site.unit("ActiveState") == "inactive", "nothing starts by itself"
    site.configure()
    site.run("systemctl enable --now sns-scheduler sns-watchdog")
    site.enforce()
    filler, gated = site.fill(), site.gate_three()
    process = site.unit("MainPID")

    site.take(packages[1])
    site.run(f"{RPM} -U slurm-sns-[0-9]*.rpm slurm-sns-slurm*.rpm")
    site.run("rpm -V --nodeps $(rpm -qa 'slurm-sns*')")
    assert site.run("sns --version") == "sns 999.0\n"
    assert site.unit("MainPID") != process
    assert all(site.job(each).is_gated for each in gated)
    site.run(f"scancel {filler}")
    assert {each.state for each in site.wait_for_end(gated, PATIENCE_S).values()} == {"COMPLETED"}
    assert site.starts(gated)

    # Erased while jobs are gated: they are left to Slurm. rpm has no purge.
    filler, gated = site.fill(), site.gate_three()
    site.run(f"rpm --nodeps -e $(rpm -qa 'slurm-sns*'); rm {plugin}")
    assert not any(site.job(each).is_gated for each in gated)
    mended = [line for line in site.steps["remove"].splitlines() if not line.startswith(("systemctl", "apt-get"))]
    site.run("set -e\n" + "\n".join(mended))
    site.run("rm -r /etc/slurm/sns /etc/slurm/sns.yaml /var/lib/sns /run/sns")
    site.run(f"scancel {filler}")
    assert {each.state for each in site.wait_for_end(gated, PATIENCE_S).values()} == {"COMPLETED"}
    after = site.files()
    assert sorted(after.items() - before.items()) == []
    assert sorted(before.keys() - after.keys()) == []


PLAY = """
- hosts: localhost
  connection: local
  roles:
    - role: slurm_sns
      slurm_sns_packages: {packages}
"""
#: What the site's Python takes, with its version.
WHEELS = "--only-binary=:all: --platform manylinux2014_x86_64 --platform manylinux_2_28_x86_64 --python-version"


def test_the_role_installs_and_a_second_run_changes_nothing(
    site: Packaged, packages: tuple[Path, Path], tmp_path: Path
) -> None:
    version = site.run("python3 -c 'import platform; print(platform.python_version())'").strip()
    pip = [sys.executable, "-m", "pip", "download", "-q", *WHEELS.split(), version, "-d", tmp_path, "ansible-core"]
    subprocess.run(pip, check=True, timeout=SLOW_S)
    site.take(packages[0])
    site.copy(tmp_path, "wheels")
    site.copy(CHECKOUT / "conf" / "ansible", "roles")
    site.run("python3 -m venv /root/ansible; PIP_FIND_LINKS=/root/wheels /root/ansible/bin/pip install -q ansible-core")
    files = site.run("ls /root/packages/slurm-sns_*.deb /root/packages/slurm-sns-slurm*.deb").split()
    site.write("/root/site.yml", PLAY.format(packages=files))
    play = "cd /root; ANSIBLE_NOCOLOR=1 /root/ansible/bin/ansible-playbook -i localhost, site.yml"
    first = site.run(play)
    assert "failed=0" in first
    assert "changed=0" not in first
    assert site.is_all_well()
    assert site.unit("StatusText").startswith("observe; ")
    assert "changed=0 " in site.run(play)
