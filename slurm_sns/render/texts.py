"""The texts of the rendered files. Pure: equal configurations give equal bytes, without a date.

Each text begins with a line that names its configuration; `MARK` in that line tells our files from the site's own. The
configuration has checked all its strings by a grammar, so none of them can end a line or a quoted string.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jinja2

from slurm_sns.closids import KEPT, closids_for_jobs
from slurm_sns.config import grammar
from slurm_sns.config.configuration import Config, NodeEntry
from slurm_sns.config.policy_names import HEURISTICS
from slurm_sns.errors import BadInput
from slurm_sns.package_files import package_text, shared_path
from slurm_sns.policies.profile import FEWEST_WAYS
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters
from slurm_sns.submit.table import lua_text

MARK = "by `sns render`; do not edit"

_TEMPLATES = (
    "slurm.conf",
    "gres.conf",
    "plugstack.conf",
    "resctrl.yaml",
    "sns-scheduler.service",
    "sns-watchdog.service",
    "sns-exporter.service",
    "sns-web.service",
)
#: The names of our groups in resctrl, as node/resctrl/groups.py and node/group_writes.py make them.
_GROUP_NAMES = {"shared": "sns_shared", "job": "sns_job"}
#: What Slurm runs on a node when a job begins and when it has ended there; both are made from one template.
HOOKS = ("prolog", "epilog")


def texts(config: Config, source: Path) -> dict[str, str]:
    """File name -> text, for the configuration that is (or will be) at `source`, an absolute path.

    Raises:
        BadInput: `source` has characters that unit files and Lua comments must not hold.
    """
    try:
        grammar.absolute_path(str(source))
    except ValueError as problem:
        raise BadInput(f"configuration {str(source)!r}: its path goes into the files; valid: {problem}") from None
    header = f"Generated from {source} {MARK}."
    values = _values(config, source) | {"header": f"# {header}"}
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(shared_path("conf/templates")),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 - plain text files; the configuration's grammar is what protects them
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    rendered = {name: environment.get_template(f"{name}.j2").render(values) for name in _TEMPLATES}
    rendered["filter.lua"] = f"-- {header}\n" + lua_text(config.filter_table(str(source)))
    if config.agents.controller is not None:
        rendered["sns-agent.service"] = environment.get_template("sns-agent.service.j2").render(values)
        rendered |= {name: environment.get_template("hook.j2").render(values | {"event": name}) for name in HOOKS}
        rendered["hook.py"] = f"# {header}\n" + package_text("node/hook.py")
    return rendered


#: A try of Slurm's looks at so many jobs at most. Placed jobs come first in its queue, so that more is not needed, and
#: each try would go through more jobs of other partitions.
MOST_TRIED = 1000


def scheduler_parameters(config: Config) -> tuple[tuple[str, str], ...]:
    """The options with which Slurm starts a placed job within seconds and never undoes a placement, with reasons."""
    depth = min(max(config.matching.queue_depth, 100), MOST_TRIED)
    return (
        ("disable_job_shrink", "a node list that reaches a job just after it started must never take nodes from it"),
        ("batch_sched_delay=1", "after an update Slurm tries its queue within 1 s (default 3)"),
        ("sched_interval=3", "a placed job that this try missed is tried again within 3 s (default 60)"),
        ("sched_min_interval=100000", "at most ten tries per second: our updates come in between (default 2 us)"),
        (f"default_queue_depth={depth}", "a try reaches what a cycle has placed (default 100)"),
    )


def _values(config: Config, source: Path) -> dict[str, Any]:
    slurm, paths, agents = config.slurm, config.paths, config.agents
    shared_ways = config.parameters(SpreadingParameters).shared_ways
    with_gres = [nodes for nodes in config.nodes if nodes.gres]
    gres = list(dict.fromkeys(name for nodes in with_gres for name in nodes.gres))
    set_by_site = {_option_name(option) for option in slurm.scheduler_parameters}
    ours = [each for each in scheduler_parameters(config) if _option_name(each[0]) not in set_by_site]
    return {
        "source": source,
        "paths": paths,
        # Without a path systemd looks in /usr/local/bin, then in /usr/bin: where pip's link is, and a package's.
        "command": paths.sns_command or "sns",
        "slurm": slurm,
        "with_gres": with_gres,
        "sharing": config.sharing,
        "sharing_nodes": [nodes for nodes in config.nodes if nodes.partitions[0] in config.sharing.partitions],
        "node_types": [_node_type(nodes, shared_ways) for nodes in config.nodes],
        "group_names": _GROUP_NAMES,
        "fewest_ways": FEWEST_WAYS,
        "heuristics": HEURISTICS,
        "job_submit_plugins": _merged(slurm.job_submit_plugins, ["lua"]),
        "gres_types": _merged(slurm.gres_types, gres),
        # What slurmdbd records; nothing if the site has none.
        "accounting_tres": _merged(slurm.accounting_tres, [f"gres/{name}" for name in gres])
        if slurm.accounting_tres is not None
        else [],
        "priority_flags": _merged(slurm.priority_flags, ["ACCRUE_ALWAYS"]),
        "agents": agents,
        "our_scheduler_parameters": ours,
        "scheduler_parameters": _merged(slurm.scheduler_parameters, [option for option, _ in ours]),
        "directories": _directories((paths.run_dir, "0755"), (paths.state_dir, "0700"), keeps=True),
        "agent_directories": _directories((agents.run_dir, "0700"), (agents.state_dir, "0700"), keeps=False),
    }


def _node_type(nodes: NodeEntry, shared_ways: int) -> dict[str, Any]:
    """What the nodes of an entry are to have in resctrl; None where sns.yaml gives their jobs no such resource.

    `shared_ways` and `job_ways` are those of each cache domain, `bandwidth_gbps` is that of the node. `most_jobs` is
    how many jobs with profile could have a group of their own at once: with the CLOSIDs that sns.yaml gives, otherwise
    with any number of them. Pass-through jobs with one way or with bandwidth alone do not count in it: there could be
    one on each core, and no machine has so many CLOSIDs. What only the machine knows is not in it: where the masks are,
    how many CLOSIDs there are in all, what MB values mean. `sns check` compares the two (slurm/check/resctrl.py).
    """
    shared = min(shared_ways, nodes.llc_ways)
    left = nodes.llc_ways - shared
    # A job with profile has a core at least, and FEWEST_WAYS where there are ways. A node without either has no groups.
    most = min(nodes.cores, left // FEWEST_WAYS) if nodes.llc_ways else nodes.cores
    if nodes.closids:
        most = min(most, closids_for_jobs(nodes.closids))
    return {
        "nodes": nodes,
        "is_partitioned": bool(nodes.gres),
        "shared_ways": shared if nodes.llc_ways else None,
        "job_ways": left if nodes.llc_ways else None,
        "bandwidth_gbps": nodes.bandwidth_gbps or None,
        "most_jobs": most,
        "closids": KEPT + most if nodes.gres else 0,
    }


def _merged(site: Iterable[str], ours: Iterable[str]) -> list[str]:
    """The site's words, then ours that are not among them."""
    return list(dict.fromkeys([*site, *ours]))


def _option_name(option: str) -> str:
    return option.partition("=")[0]


def _directories(running: tuple[Path, str], lasting: tuple[Path, str], *, keeps: bool) -> list[tuple[str, str]]:
    """A unit's lines for its two directories, given with their modes: one while it runs, one that outlives restarts.

    systemd makes those under /run and /var/lib; others must exist. `keeps`: another unit uses the first one, too, so a
    stop of this one must not remove it.
    """
    lines: list[tuple[str, str]] = []
    for (path, mode), base, kind in (
        (running, Path("/run"), "RuntimeDirectory"),
        (lasting, Path("/var/lib"), "StateDirectory"),
    ):
        if path.is_relative_to(base) and path != base:
            lines += [(kind, str(path.relative_to(base))), (f"{kind}Mode", mode)]
        else:
            lines += [("ReadWritePaths", str(path))]
    if keeps and any(name == "RuntimeDirectory" for name, _ in lines):
        lines.append(("RuntimeDirectoryPreserve", "yes"))
    return lines
