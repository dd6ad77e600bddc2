"""`sns check`: the configuration against the running Slurm, and what to change."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from slurm_sns.cli.options import DEFAULT_CONFIG, AsJson, Config

if TYPE_CHECKING:
    from slurm_sns import config as configuration
    from slurm_sns.slurm.check import Finding


def check(config: Config = DEFAULT_CONFIG, as_json: AsJson = False) -> int:
    """Compare sns.yaml, the rendered files and the running Slurm; say what to change. Exit 1 if something is wrong."""
    from slurm_sns import config as configuration
    from slurm_sns.render.texts import texts
    from slurm_sns.slurm import check as comparison
    from slurm_sns.slurm.site import read_site

    settings = configuration.load(config)
    rendered = texts(settings, config.absolute())
    expected = comparison.expected_options(rendered["slurm.conf"])
    findings = [*_files(settings, rendered), *comparison.check(settings, read_site(), expected), *_daemons(settings)]
    if as_json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        _print(findings)
    return 0 if all(finding.ok for finding in findings) else 1


def _files(settings: "configuration.Config", rendered: dict[str, str]) -> "Iterator[Finding]":
    from slurm_sns.render.files import differing
    from slurm_sns.slurm.api import DEFAULT_CONFIGURATION
    from slurm_sns.slurm.check import Finding

    where = settings.paths.slurm_dir
    outdated = differing(where, rendered)
    what = f"rendered files in {where}" + (f": {', '.join(outdated)} missing or outdated" if outdated else "")
    yield Finding(not outdated, what, f"sns render {where}")
    for name, sign in (
        ("job_submit.lua", "sns_filter"),
        ("plugstack.conf", str(where / "plugstack.conf")),
        ("gres.conf", str(where / "gres.conf")),
    ):
        path = DEFAULT_CONFIGURATION.with_name(name)
        advice = "call the module sns_filter, as the example does" if name == "job_submit.lua" else f"Include {sign}"
        yield Finding(sign in _text(path), f"{path} names {sign}", f"{path}: {advice}")


def _daemons(settings: "configuration.Config") -> "Iterator[Finding]":
    import time

    from slurm_sns.scheduler.watchdog import is_stale
    from slurm_sns.slurm.check import Finding
    from slurm_sns.store.signs import HeartbeatFile, KillSwitchFile

    paths, timeout_s = settings.paths, settings.scheduler.heartbeat_timeout_s
    fresh = not is_stale(HeartbeatFile(paths.heartbeat).last(), time.time(), timeout_s)
    yield Finding(fresh, f"heartbeat {paths.heartbeat}", "start sns scheduler and sns watchdog")
    yield Finding(
        not KillSwitchFile(paths.kill_switch).is_on(), f"kill switch {paths.kill_switch} is off", "sns enable"
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _print(findings: "list[Finding]") -> None:
    from slurm_sns.cli.words import plain, show

    for finding in findings:
        show(f"{'[green]ok[/]   ' if finding.ok else '[red]wrong[/]'} {plain(finding.what)}")
        if not finding.ok:
            show(f"      {plain(finding.advice)}")
    wrong = sum(not finding.ok for finding in findings)
    show(f"{len(findings)} checked, {wrong} wrong")
