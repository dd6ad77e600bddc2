"""`sns check`: checks the configuration, this machine and the running Slurm, and says what to change, in order."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from slurm_sns.cli.options import DEFAULT_CONFIG, AsJson, Config
from slurm_sns.log import printable

if TYPE_CHECKING:
    from slurm_sns.cli.json_types import FindingValues
    from slurm_sns.config import configuration
    from slurm_sns.slurm.check import Finding
    from slurm_sns.slurm.check.sharing import Qos
    from slurm_sns.slurm.site import Site

#: Exists where systemd runs: sd_booted(3).
SYSTEMD = Path("/run/systemd/system")


NodeReportsOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--node-reports",
        metavar="DIR|FILE",
        help="What nodes printed with sns node show --json: a file of each node, or a directory of them (repeatable). "
        "They are compared with resctrl.yaml.",
        show_default=False,
    ),
]


def check(config: Config = DEFAULT_CONFIG, node_reports: NodeReportsOption = None, as_json: AsJson = False) -> int:
    """Say what is missing on this controller, in order, with the lines to add and the commands to run.

    Looks at sns.yaml, the rendered files, Slurm's files, the plugins, the running Slurm, directories, units and
    daemons. Changes nothing. Exit 1 if something is wrong. A warning names the disadvantage of one of the site's own
    settings; it does not count as wrong. To be run as root or SlurmUser.

    It asks no node. To compare the nodes' caches and memory bandwidth with the rendered resctrl.yaml, collect their
    reports first, for example by clush -w c[1-4] --outdir=DIR sns node show --json, and give --node-reports DIR.
    """
    from slurm_sns.config import configuration

    findings = list(_findings(configuration.load(config), config.absolute(), node_reports or []))
    if as_json:
        print(json.dumps([_fields(finding) for finding in findings], indent=2))
    else:
        _print(findings)
    return 0 if all(finding.ok for finding in findings) else 1


def _findings(settings: "configuration.Config", source: Path, reports: list[Path]) -> "Iterator[Finding]":
    from slurm_sns import conf_text
    from slurm_sns.cli.live import installation
    from slurm_sns.render.files import differing
    from slurm_sns.render.texts import texts
    from slurm_sns.slurm.api import configuration_path
    from slurm_sns.slurm.check import files, node_reports, resctrl, sharing, site_settings, sns_yaml

    rendered = texts(settings, source)
    expected = sns_yaml.expected_options(rendered["slurm.conf"])
    found = node_reports.read(reports)  # first: a wrong path is the admin's mistake
    main = configuration_path()
    lines = conf_text.read(main)
    site, answer = _ask()

    yield answer
    if site:
        yield site_settings.release(site.version)
        yield from sns_yaml.description(settings, site)
        yield from site_settings.rules(settings, site)
        yield from sharing.rules(settings, site)
        if settings.sharing.partitions:
            yield from sharing.of_files(settings, lines, _qos(site))
    yield from site_settings.controllers(lines, installation.shared_by_controllers(settings, lines))
    yield from files.kept_words(settings, lines)
    yield installation.rendered_files(settings, differing(settings.paths.slurm_dir, rendered))
    if site:
        yield installation.spank_plugin(settings, site.plugin_dirs)
    yield from installation.filter_modules(main.with_name("job_submit.lua"))
    includes = [((site and site.plugstack) or main.with_name("plugstack.conf"), "include")]
    if any(nodes.gres for nodes in settings.nodes):
        includes.append((main.with_name("gres.conf"), "Include"))
    for path, word in includes:
        yield files.includes(path, conf_text.read(path), settings.paths.slurm_dir / path.name, word)
    yield from files.slurm_conf(main, lines, settings, expected)
    if site:
        yield from sns_yaml.running(settings, site, expected)
    if settings.agents.controller is not None:
        cgroup_conf = conf_text.read(main.with_name("cgroup.conf"))
        all_share = set(settings.partitions) == set(settings.sharing.partitions)
        yield from site_settings.for_agents(main, lines, cgroup_conf, all_share=all_share)
    if reports:
        yield from resctrl.findings(rendered["resctrl.yaml"], found)
    if SYSTEMD.is_dir():
        yield installation.units(settings, rendered)
    yield from installation.directories(settings, source)
    yield from installation.daemons(settings)
    if settings.agents.controller is not None:
        yield from installation.agents(settings)
        if settings.sharing.partitions:
            yield from sharing.of_agents(settings, *_agents(settings))


def _ask() -> "tuple[Site | None, Finding]":
    """The running Slurm as pyslurm shows it, None if it cannot be read; and the finding about pyslurm itself.

    Where our own library takes the place of pyslurm, it is meant.
    """
    from slurm_sns.errors import SnsError
    from slurm_sns.slurm.check import Finding
    from slurm_sns.slurm.site import library_of, read_site

    what = "pyslurm, built for the Slurm that answers"
    build = 'pip of this environment: "$(sns sources)/plugins/pyslurm/build.sh" PIP'
    try:
        site = read_site()
    except SnsError as problem:
        return None, Finding(ok=False, what=what, found=str(problem), advice=build)
    release, library = site.version.rpartition(".")[0], library_of(site.version)
    ok = site.library == library and site.built_for.rpartition(".")[0] in ("", release)
    found = f"{site.binding} for Slurm {site.built_for or 'unknown'}, libslurm {site.library}"
    return site, Finding(ok, what, found, f"for Slurm {release}, libslurm {library}", advice=build)


def _qos(site: "Site") -> "tuple[Qos, ...]":
    """The QOS of the site; none where slurmdbd does not answer, or keeps no accounts."""
    from slurm_sns.errors import SnsError
    from slurm_sns.slurm.api import run
    from slurm_sns.slurm.check.sharing import QOS_FORMAT, qos

    try:
        return qos(run("sacctmgr", "-nP", "show", "qos", QOS_FORMAT)) if site.keeps_accounts else ()
    except SnsError:
        return ()


def _agents(settings: "configuration.Config") -> tuple[list[str], list[str]]:
    """The nodes without an agent, and those with confined jobs, as the scheduler says; none if it does not answer."""
    from slurm_sns.errors import SnsError
    from slurm_sns.sockets.unix_socket import ask

    try:
        told = ask(settings.paths.socket, {"command": "status"})["agents"]
    except (SnsError, KeyError):
        return [], []  # that the scheduler does not run is a finding of its own
    return told["away"], told["confined"]


def _fields(finding: "Finding") -> "FindingValues":
    """The fields of the finding for JSON: a remedy only if one is needed, `warning` only if it is True."""
    said = {name: value for name, value in asdict(finding).items() if value != "" and (value or name != "warning")}
    if finding.is_well:
        said = {name: said[name] for name in ("ok", "what", "found", "wanted") if name in said}
    return cast("FindingValues", said)


def _print(findings: "list[Finding]") -> None:
    from slurm_sns.cli.live.terminal import plain, show

    said: list[str] = []
    for finding in findings:
        show(f"{_verdict(finding)} {plain(_sentence(finding))}")
        remedy = [] if finding.is_well else list(_remedy(finding))
        if remedy != said:  # one command may repair several findings in a row
            print(*remedy, sep="\n", end="\n" if remedy else "")  # not by rich: people copy these lines unbroken
        said = remedy or said
    wrong, warnings = sum(not finding.ok for finding in findings), sum(finding.warning for finding in findings)
    warned = f"{warnings} warning{'s' * (warnings > 1)}, " if warnings else ""
    remedy_is = "; fix them in this order, then run sns check again" if wrong else ""
    show(f"{len(findings)} checked, {warned}{wrong} wrong{remedy_is}")


def _verdict(finding: "Finding") -> str:
    if not finding.ok:
        return "[red]wrong[/]"
    return "[yellow]warn[/] " if finding.warning else "[green]ok[/]   "


def _sentence(finding: "Finding") -> str:
    told = {} if finding.is_well else {"found": finding.found, "wanted": finding.wanted}
    values = ", ".join(f"{word} {value}" for word, value in told.items() if value)
    return f"{finding.what}: {values}" if values else finding.what


def _remedy(finding: "Finding") -> Iterator[str]:
    if finding.add:
        yield f"      {finding.file}: {'replace' if finding.remove else 'add'}"
        yield from _indented(finding.remove)
        if finding.remove:
            yield "      by"
        yield from _indented(finding.add)
    if finding.run:
        yield "      run"
        yield from _indented(finding.run)
    if finding.advice:
        yield f"      {finding.advice}"


def _indented(text: str) -> Iterable[str]:
    """The lines, indented, with `?` for characters that a terminal could interpret."""
    return ("          " + printable(line) for line in text.splitlines())
