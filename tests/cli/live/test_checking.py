"""`sns check` on a machine: what is wrong with its files, directories and daemons, and what mends it."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from slurm_sns.cli.live import installation, process
from slurm_sns.config import configuration


@pytest.fixture
def checked(sns, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The findings by what they are about; Slurm's files are the test's."""
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    (tmp_path / "slurm.conf").write_text("ClusterName=site\nPriorityFlags=MAX_TRES\n")
    (tmp_path / "slurm").mkdir()

    def checked() -> dict[str, dict]:
        code, output, _ = sns("check", "--json", "--config", config)
        findings = json.loads(output)
        assert code == (0 if all(each["ok"] for each in findings) else 1)
        return {each["what"]: each for each in findings}

    return checked


def the_one(findings: dict[str, dict], words: str) -> dict:
    (found,) = [each for what, each in findings.items() if what.startswith(words)]
    return found


def test_without_pyslurm_it_says_all_that_it_can_see(checked) -> None:
    findings = checked()
    assert the_one(findings, "pyslurm")["found"].startswith("neither pyslurm nor a library of slurm_sns' own")
    assert the_one(findings, "rendered files")["run"].startswith("sns render ")
    assert the_one(findings, "PriorityFlags is set")["add"] == "#sns# PriorityFlags=MAX_TRES"
    assert the_one(findings, "sns.yaml keeps the site's PriorityFlags")["advice"].endswith("[MAX_TRES]")


def test_a_remedy_is_printed_as_it_is_to_be_copied(checked, sns, config: Path) -> None:
    checked()
    code, output, _ = sns("check", "--config", config)
    assert code == 1
    edit = "          PriorityFlags=MAX_TRES\n      by\n          #sns# PriorityFlags=MAX_TRES\n"
    assert edit in output


def test_a_warning_fails_nothing_and_says_what_it_costs(checked, sns, config: Path, tmp_path: Path) -> None:
    what = "the database is one for all controllers"
    assert what not in checked(), "with one controller there is nothing to share"
    with (tmp_path / "slurm.conf").open("a") as file:
        file.write(f"SlurmctldHost={socket.gethostname()}\nSlurmctldHost=b\nStateSaveLocation=/proc\n")
    warning = the_one(checked(), what)
    assert (warning["ok"], warning["warning"], warning["found"]) == (True, True, "SQLite on this machine")
    _, output, _ = sns("check", "--config", config)
    assert f"\nwarn  {what}: found SQLite on this machine, wanted" in output
    assert f"      {warning['advice']}\n" in output
    assert " checked, 1 warning, " in output


def test_what_was_rendered_is_no_longer_asked_for(checked, sns, config: Path, tmp_path: Path) -> None:
    sns("render", tmp_path / "slurm", "--config", config)
    assert the_one(checked(), "rendered files") == {"ok": True, "what": f"rendered files in {tmp_path / 'slurm'}"}


def test_what_others_may_write_is_wrong(checked, tmp_path: Path) -> None:
    (tmp_path / "slurm").chmod(0o777)
    (tmp_path / "state").chmod(0o755)
    findings = checked()
    assert findings[str(tmp_path / "slurm")]["run"].endswith(f"chmod 0755 {tmp_path / 'slurm'}")
    assert findings[str(tmp_path / "state")]["run"].endswith(f"chmod 0700 {tmp_path / 'state'}")


def test_a_configuration_with_a_password_is_not_for_everybody(write_config) -> None:
    path = write_config(store={"url": "mysql+pymysql://sns:secret@db/sns"})
    path.chmod(0o644)
    first = next(installation.directories(configuration.load(path), path))
    assert (first.ok, first.what) == (False, str(path))
    path.chmod(0o640)
    assert next(installation.directories(configuration.load(path), path)).ok


def test_a_daemon_runs_while_the_process_that_took_its_lock_does(tmp_path: Path) -> None:
    assert not installation.runs("scheduler", tmp_path)
    unlock = process.only_one(tmp_path / "scheduler.lock")
    assert int((tmp_path / "scheduler.lock").read_text()) == os.getpid()
    assert not installation.runs("scheduler", tmp_path)  # a process of another name has the number by now: this one
    command = [sys.executable, "-c", "print(flush=True); input()", "scheduler"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()  # Popen returns when exec begins; the kernel shows the new words a little later
        (tmp_path / "scheduler.lock").write_text(f"{child.pid}\n")
        assert installation.runs("scheduler", tmp_path)
        assert not installation.runs("watchdog", tmp_path)
        child.kill()
    assert not installation.runs("scheduler", tmp_path)
    unlock()


def test_a_heartbeat_that_is_fresh_is_well(checked, tmp_path: Path) -> None:
    assert the_one(checked(), "heartbeat")["found"] == "none"
    (tmp_path / "heartbeat").write_text(f"{time.time():.0f}\n")
    assert the_one(checked(), "heartbeat")["ok"]
    (tmp_path / "heartbeat").write_text("1000\n")
    assert the_one(checked(), "heartbeat")["found"].endswith(" s old")


def test_the_filters_modules_must_be_those_of_this_version(tmp_path: Path) -> None:
    script = tmp_path / "job_submit.lua"
    modules, calls = installation.filter_modules(script, (tmp_path / "lua",))
    assert (modules.ok, calls.ok) == (False, False)
    assert calls.run.startswith("cp ")
    (tmp_path / "lua").mkdir()
    for path in installation.shared_path("plugins/job_submit").glob("*.lua"):
        (tmp_path / "lua" / path.name).write_bytes(path.read_bytes())
    (tmp_path / "lua" / "job_submit.lua").rename(script)
    assert all(each.ok for each in installation.filter_modules(script, (tmp_path / "lua",)))
    (tmp_path / "lua" / "sns_judge.lua").write_text("-- an older one\n")
    modules, _ = installation.filter_modules(script, (tmp_path / "lua",))
    assert modules.found == "missing or outdated: sns_judge.lua"
    assert modules.run.endswith(f"touch {script}")  # slurmctld reads them again then


def test_a_script_of_the_sites_own_that_does_not_call_the_filter_is_told_how(tmp_path: Path) -> None:
    script = tmp_path / "job_submit.lua"
    script.write_text("function slurm_job_submit() return slurm.SUCCESS end\n")
    *_, calls = installation.filter_modules(script, (tmp_path,))
    assert (calls.ok, calls.run) == (False, "")
    assert "sns_filter" in calls.advice
    assert script.read_text().startswith("function")


def test_the_spank_plugin_is_looked_for_where_slurm_looks(config: Path, tmp_path: Path) -> None:
    settings = configuration.load(config)
    missing = installation.spank_plugin(settings, (tmp_path / "a", tmp_path / "b"))
    assert not missing.ok
    assert missing.run.endswith(f"PLUGINDIR={tmp_path / 'a'}")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "sns.so").write_bytes(b"")
    assert installation.spank_plugin(settings, (tmp_path / "a", tmp_path / "b")).ok


def test_a_plugin_that_does_not_know_agents_is_built_again(write_config, tmp_path: Path) -> None:
    settings = configuration.load(write_config(agents={"controller": "ctl"}))
    (tmp_path / "sns.so").write_bytes(b"heuristics=")
    old = installation.spank_plugin(settings, (tmp_path,))
    assert (old.ok, old.found) == (False, "of an older version, without agents")
    assert "spank" in old.run
    (tmp_path / "sns.so").write_bytes(b"heuristics=\0hooks=")
    assert installation.spank_plugin(settings, (tmp_path,)).ok


def test_units_that_were_not_rendered_so_are_outdated(config: Path, tmp_path: Path) -> None:
    rendered = {"sns-scheduler.service": "a\n", "sns-watchdog.service": "b\n"}
    for name, text in rendered.items():
        (tmp_path / name).write_text(text)
    settings = configuration.load(config)
    assert installation.units(settings, rendered, (tmp_path,)).ok
    (tmp_path / "sns-watchdog.service").write_text("old\n")
    found = installation.units(settings, rendered, (tmp_path,))
    assert found.found == "missing or outdated: sns-watchdog.service"


def test_units_of_a_package_count_unless_others_come_before_them(config: Path, tmp_path: Path) -> None:
    rendered = {"sns-scheduler.service": "a\n", "sns-watchdog.service": "b\n"}
    etc, usr = tmp_path / "etc", tmp_path / "usr"
    for folder in (etc, usr):
        folder.mkdir()
    for name, text in rendered.items():
        (usr / name).write_text(text)
    settings = configuration.load(config)
    assert installation.units(settings, rendered, (etc, usr)).ok
    (etc / "sns-scheduler.service").write_text("old\n")
    found = installation.units(settings, rendered, (etc, usr))
    assert (found.what, found.found) == (
        f"systemd units in {etc} and {usr}",
        "missing or outdated: sns-scheduler.service",
    )


def test_sources_names_the_directory_of_what_is_built_by_hand(sns) -> None:
    code, output, _ = sns("sources")
    assert code == 0
    assert (Path(output.strip()) / "plugins" / "pyslurm" / "build.sh").stat().st_mode & 0o111
