"""The commands of the pages for admins, run one by one at a site on which slurm_sns has never been installed.

The site is a container (containers/site): Debian's Slurm with its own slurm.conf, on one machine. systemd does not run
in it; a stand-in for systemctl starts the command lines of the rendered units.
"""

import io
import json
import re
import subprocess
import tarfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster import Cluster

CHECKOUT = Path(__file__).parents[2]
#: Parts of the checkout that an admin does not need; they are not copied to the site.
LEFT_OUT = {"tests", "containers", "build", "dist"}
#: Timeout of what takes seconds on an idle machine; the machine may be slow, or busy with other work.
PATIENCE_S = 300
#: Timeout of what takes half a minute on an idle machine: installing with pip, building an image.
SLOW_S = 1800


def steps() -> dict[str, str]:
    """The commands of the pages for admins, by step; no step stands on two pages."""
    pages = sorted((CHECKOUT / "docs" / "admins").glob("*.md"))
    texts = [page.read_text(encoding="utf-8") for page in pages]
    found = [
        each for text in texts for each in re.findall(r"^<!-- admin: (.*) -->\n\n((?:    .*\n)+)", text, re.MULTILINE)
    ]
    by_step = {step: textwrap.dedent(commands) for step, commands in found}
    assert len(found) == len(by_step) == sum(text.count("<!-- admin: ") for text in texts), [step for step, _ in found]
    return by_step


class Site(Cluster):
    """The site's only machine."""

    #: The end of its container's name.
    machine = "site"

    def __init__(self) -> None:
        super().__init__()
        self.steps = steps()

    def try_run(self, command: str, user: str = "root", node: str = "", timeout_s: float = 0):  # noqa: ARG002 -- one
        return super().try_run(command, user, self.machine, max(timeout_s, SLOW_S))

    def container(self, verb: str) -> None:
        subprocess.run([CHECKOUT / "containers" / "cluster.sh", verb], check=True, timeout=SLOW_S)

    def copy_checkout(self) -> None:
        """Copy the checkout to the site, without the files that building and testing left behind."""

        def kept(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
            return None if "__pycache__" in info.name or info.name.endswith((".so", ".o")) else info

        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for path in CHECKOUT.iterdir():
                if path.name not in LEFT_OUT and not path.name.startswith("."):
                    archive.add(path, path.name, filter=kept)
        self.run("mkdir -p /root/slurm_sns")
        unpack = ("tar", "-x", "--no-same-owner", "-C", "/root/slurm_sns")
        line = [*self._docker, "exec", "-i", f"{self.project}-{self.machine}", *unpack]
        subprocess.run(line, input=packed.getvalue(), check=True, timeout=300)

    def follow(self, step: str) -> str:
        """Run the commands of one step of the pages in the checkout; the first that fails ends the step."""
        return self.run(f"cd /root/slurm_sns; set -e\n{self.steps.pop(step)}")

    def findings(self) -> list[dict]:
        """What `sns check` finds wrong; its exit code is 1 if it finds anything, else 0."""
        answer = self.try_run("sns check --json")
        wrong = [each for each in json.loads(answer.stdout) if not each["ok"]]
        assert answer.returncode == (1 if wrong else 0), answer.stderr
        return wrong

    def mend(self, finding: dict) -> None:
        """Do what `sns check` says, as an admin does: change the lines of the file, or run the command."""
        if "add" in finding:
            text = self.try_run(f"cat {finding['file']}").stdout
            if "remove" in finding:
                assert text.count(finding["remove"]) == 1, finding
                self.write(finding["file"], text.replace(finding["remove"], finding["add"]))
            else:
                self.write(finding["file"], f"{text}{finding['add']}\n")
        elif "run" in finding:
            self.run(finding["run"])

    def is_all_well(self) -> bool:
        return self.try_run("sns check").returncode == 0

    def mode(self) -> str:
        answer = self.try_run("sns status --json")
        return json.loads(answer.stdout)["mode"] if answer.returncode == 0 else "no answer"

    def files(self) -> dict[str, str]:
        """Every file with its owner and mode, below /etc also with its checksum; without files of other programs."""
        others = (
            "/proc",
            "/sys",
            "/dev",
            "/root/slurm_sns",
            "/home",
            "/var/lib/stand-in",
            "/var/lib/slurm",
            "/var/lib/apt",
        )
        others += (
            "/var/cache/apt",
            "/var/log/apt",
            "/var/log/slurm",
            "/var/lib/munge",
            "/run/systemd",
            "*/__pycache__",
        )
        pruned = " -o ".join(f"-path '{each}'" for each in others)
        listed = self.run(rf"find / \( {pruned} \) -prune -o -printf '%p\t%u %#m\n'")
        found = dict(line.split("\t") for line in listed.splitlines())
        sums = self.run("find /etc -type f -exec sha256sum {} +").splitlines()
        return found | {line[66:]: found[line[66:]] + line[:64] for line in sums}

    def on_the_node(self) -> dict:
        """What the agent says of its node."""
        answer = self.try_run("sns agent --show --json")
        return json.loads(answer.stdout) if answer.returncode == 0 else {"is_connected": False, "mode": "", "jobs": []}

    def has_agent(self, mode: str) -> bool:
        """Whether the site's agent works in this mode and is connected with the scheduler."""
        shown = self.on_the_node()
        return shown["is_connected"] and shown["mode"] == mode

    def let_the_agent_see_a_job(self) -> None:
        """It knows a job while it runs, and forgets it after its end."""

        def sees(number: int) -> bool:
            return number in [job["job"] for job in self.on_the_node()["jobs"]]

        number = self.submit("-n1 --mem=100", "sleep 600")
        self.wait_for("the agent knows it", lambda: sees(number), PATIENCE_S)
        self.run(f"scancel {number}")
        self.wait_for("the agent forgets it", lambda: not sees(number), PATIENCE_S)

    def fill(self) -> int:
        """Fill the only node, so that the following jobs wait."""
        number = self.submit("-n8", "sleep 3600")
        self.wait_for("the node fills", lambda: self.job(number).state == "RUNNING", PATIENCE_S)
        return number

    def gate_three(self) -> list[int]:
        numbers = self.submit_all([("-n2 --sns-alpha=0.9", "sleep 1")] * 3)
        assert all(self.job(each).is_gated for each in numbers)
        return numbers


@pytest.fixture
def site() -> Iterator[Site]:
    """A running site without access to the internet. It is always removed at the end, and by `cluster.sh down`."""
    site = Site()
    try:
        site.container("site")
        site.run("boot")
        site.copy_checkout()
        site.wait_for("the node is idle", lambda: set(site.run("sinfo -h -o %T").split()) == {"idle"}, PATIENCE_S)
        yield site
    finally:
        site.close()
        site.container("site-down")


def test_the_commands_for_admins_install_upgrade_and_remove_slurm_sns_at_a_site(site: Site) -> None:
    before = site.files()
    slurm_conf = site.run("cat /etc/slurm/slurm.conf")
    assert site.try_run("sbatch --sns-alpha=0.9 --wrap true", "alice").returncode != 0

    # Installed: `sns check` names what is missing; with these changes nothing is missing any more.
    site.follow("install")
    site.follow("configure")
    # On a machine that does other work at the same time, a late heartbeat must not count as stale.
    site.run("echo 'scheduler: {heartbeat_timeout_s: 240}' >> /etc/slurm/sns.yaml; sns render /etc/slurm/sns")
    wrong = site.findings()
    printed = site.try_run("sns check").stdout
    for each in wrong:
        lines = "\n".join(each.get(name, "") for name in ("remove", "add", "run")).splitlines()
        assert all(f"          {line}\n" in printed for line in lines if line), each
    named = [each["file"] for each in wrong if "add" in each]
    assert set(named) == {f"/etc/slurm/{name}.conf" for name in ("slurm", "gres", "plugstack")}
    done: list[str] = []
    for each in wrong:
        if each.get("run") not in done:
            site.mend(each)
            done += [each["run"]] if "run" in each else []
    site.wait_for("sns check finds all well", site.is_all_well, PATIENCE_S, every_s=2)
    assert site.follow("check").rstrip().endswith(" 0 wrong")
    assert "more than once" not in site.run("cat /var/log/slurm/slurmctld.log")
    assert site.run("systemd-analyze verify /etc/systemd/system/sns-*.service 2>&1") == ""

    # First the scheduler only observes, then it places.
    assert site.mode() == "observe"
    assert not site.job(site.submit("-n2 --sns-alpha=0.9", "true")).is_gated
    site.follow("enforce")
    site.wait_for("it places", lambda: site.mode() == "enforce", PATIENCE_S)
    filler = site.fill()
    first = site.submit("-n2 --sns-alpha=0.9", "echo $SLURM_JOB_NODELIST > ran-on")
    assert site.job(first).is_gated
    site.run(f"scancel {filler}")
    assert site.wait_for_end([first], PATIENCE_S)[first].state == "COMPLETED"
    assert site.run("cat ran-on", "alice") == "site\n"
    assert site.starts([first])
    assert site.explain(first, "alice")["decisions"][-1]["action"] == "start"

    # What large sites add; all that follows goes on with it.
    site.follow("spare the table of jobs")
    assert "pcall(filter.without_jobs, slurm)\n" in site.run("grep -v -e -- /etc/slurm/job_submit.lua")

    # With an agent on the only node, which has no resctrl: it observes, then it may partition; jobs run all the same.
    site.follow("agents")
    for each in site.findings():
        site.mend(each)
    site.wait_for("sns check finds all well", site.is_all_well, PATIENCE_S, every_s=2)
    site.follow("agent observes")
    assert site.run("systemd-analyze verify /etc/systemd/system/sns-*.service 2>&1") == ""
    site.wait_for("the agent observes", lambda: site.has_agent("observe"), PATIENCE_S)
    assert site.run("stat -c '%a %U' /run/sns-agent/agent.sock") == "600 root\n"
    site.let_the_agent_see_a_job()
    site.follow("agent partitions")
    site.wait_for("the agent partitions", lambda: site.has_agent("partition"), PATIENCE_S)
    site.let_the_agent_see_a_job()

    # Upgraded while jobs are gated: they stay gated, the database is kept, the new scheduler places them.
    filler, gated = site.fill(), site.gate_three()
    site.run("sed -i 's/^version = .*/version = \"999.0\"/' /root/slurm_sns/pyproject.toml")
    site.run("sed -i 's/^__version__ = .*/__version__ = \"999.0\"/' /root/slurm_sns/slurm_sns/__init__.py")
    site.follow("upgrade")
    site.follow("agent upgrade")
    assert site.run("sns --version") == "sns 999.0\n"
    site.wait_for("sns check finds all well", site.is_all_well, PATIENCE_S, every_s=2)
    assert all(site.job(each).is_gated for each in gated)
    assert "left to Slurm" not in site.run("cat /var/lib/stand-in/sns-*.log")
    site.run(f"scancel {filler}")
    assert {each.state for each in site.wait_for_end(gated, PATIENCE_S).values()} == {"COMPLETED"}
    assert site.starts([first, *gated])

    # Copied while the scheduler runs, and put back: it knows what it decided, and places.
    site.follow("copy the database")
    site.follow("put a copy of the database back")
    site.wait_for("sns check finds all well", site.is_all_well, PATIENCE_S, every_s=2)
    assert site.starts([first, *gated])
    filler, gated = site.fill(), site.gate_three()
    site.run(f"scancel {filler}; rm -r /var/backups/sns")
    assert {each.state for each in site.wait_for_end(gated, PATIENCE_S).values()} == {"COMPLETED"}
    assert site.starts(gated)
    assert json.loads(site.run("sns status --json"))["trouble"] == ""

    # Removed while jobs are gated: they are left to Slurm, and the site is as it was before the installation.
    filler, gated = site.fill(), site.gate_three()
    site.follow("agent uninstall")
    site.follow("uninstall")
    assert not any(site.job(each).is_gated for each in gated)
    site.run(f"scancel {filler}")
    assert {each.state for each in site.wait_for_end(gated, PATIENCE_S).values()} == {"COMPLETED"}
    plain = site.submit("-n2", "true")
    assert site.wait_for_end([plain], PATIENCE_S)[plain].state == "COMPLETED"
    assert site.try_run("sbatch --sns-alpha=0.9 --wrap true", "alice").returncode != 0
    assert site.run("cat /etc/slurm/slurm.conf") == slurm_conf
    after = site.files()
    assert sorted(after.items() - before.items()) == []
    assert sorted(before.keys() - after.keys()) == []
    assert not site.steps, "docs/admins has steps that no test runs"
