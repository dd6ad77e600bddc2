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
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_admins_day import CHECKOUT, PATIENCE_S, SLOW_S, Site

PAGE = CHECKOUT / "docs" / "admins" / "packages.md"
#: What changes on a machine that runs, and what packages of any kind leave behind.
OF_THE_MACHINE = ("/proc", "/sys", "/dev", "/run", "/tmp", "/home", "/root", "/usr/src", "*/__pycache__")
OF_THE_MACHINE += tuple(
    f"/var/{name}" for name in ("cache", "log", "tmp", "lib/apt", "lib/dpkg", "lib/munge", "lib/slurm")
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

    def __init__(self) -> None:
        super().__init__()
        text = PAGE.read_text(encoding="utf-8")
        found = re.findall(r"^<!-- packages: (.*) -->\n\n((?:    .*\n)+)", text, re.MULTILINE)
        self.steps = {step: textwrap.dedent(commands) for step, commands in found}

    def try_run(self, command: str, user: str = "root", node: str = "packaged", timeout_s: float = 0):  # noqa: ARG002 -- one
        return super(Site, self).try_run(command, user, "packaged", max(timeout_s, SLOW_S))

    def take(self, folder: Path) -> None:
        """Have these packages there instead of others."""
        self.run("rm -rf /root/packages")
        line = [*self._docker, "cp", f"{folder}/.", f"{self.project}-packaged:/root/packages"]
        subprocess.run(line, check=True, timeout=300)

    def follow(self, step: str) -> str:
        return self.run(f"cd /root/packages; set -e; exec 2>&1\n{self.steps.pop(step)}")

    def unit(self, name: str, unit: str = "sns-scheduler") -> str:
        return self.run(f"systemctl show -P {name} {unit}").strip()

    def explain(self, number: int) -> dict:
        return json.loads(self.run(f"sns explain {number} --json"))

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
    site.run("sns draft > /etc/slurm/sns.yaml; sns render /etc/slurm/sns")
    done: list[str] = []
    for each in site.findings():
        if each.get("run") not in done and not each.get("run", "").startswith("systemctl"):
            site.mend(each)
            done += [each["run"]] if "run" in each else []
    site.follow("start")
    assert site.unit("ActiveState") == site.unit("ActiveState", "sns-watchdog") == "active", "systemctl waited for them"
    site.wait_for("sns check finds all well", site.is_all_well, PATIENCE_S, every_s=2)
    assert site.run("systemd-analyze verify /usr/lib/systemd/system/sns-*.service 2>&1") == ""
    site.wait_for("it has planned", lambda: "first" not in site.unit("StatusText"), PATIENCE_S)
    assert re.fullmatch(r"observe; 0 waiting; cycle \d+ ms", site.unit("StatusText"))
    site.wait_for("the watchdog knows", lambda: "lives" in site.unit("StatusText", "sns-watchdog"), PATIENCE_S)

    site.run("sed -i 's/^mode: observe/mode: enforce/' /etc/slurm/sns.yaml; sns render /etc/slurm/sns")
    site.run("systemctl daemon-reload; systemctl restart sns-scheduler sns-watchdog")
    first = site.submit("-n2 --sns-alpha=0.9", "true")
    assert site.wait_for_end([first], PATIENCE_S)[first].state == "COMPLETED"
    assert site.explain(first)["decisions"][-1]["action"] == "start"
    took_s = time.monotonic() - began_s
    print(f"from a plain site to the end of the first placed job: {took_s:.0f} s")  # noqa: T201 - measured, not asserted

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
    assert {site.explain(each)["decisions"][-1]["action"] for each in [first, *gated]} == {"start"}

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


PLAY = """
- hosts: localhost
  connection: local
  roles:
    - role: slurm_sns
      slurm_sns_packages: {packages}
"""
#: What the site's Python takes.
WHEELS = "--only-binary=:all: --python-version 3.14 --platform manylinux2014_x86_64 --platform manylinux_2_28_x86_64"


def test_the_role_installs_and_a_second_run_changes_nothing(
    site: Packaged, packages: tuple[Path, Path], tmp_path: Path
) -> None:
    pip = [sys.executable, "-m", "pip", "download", "-q", *WHEELS.split(), "-d", tmp_path, "ansible-core"]
    subprocess.run(pip, check=True, timeout=SLOW_S)
    site.take(packages[0])
    for source, at in ((tmp_path, "wheels"), (CHECKOUT / "conf" / "ansible", "roles")):
        line = [*site._docker, "cp", f"{source}/.", f"{site.project}-packaged:/root/{at}"]
        subprocess.run(line, check=True, timeout=300)
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
