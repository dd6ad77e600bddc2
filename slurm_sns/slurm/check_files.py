"""The site's configuration files against the rendered ones: what is missing, the lines to take out and to add. Pure.

Every edit can be undone by rule: a line that is taken out stays as a comment that begins with `UNUSED`, a line that
stands in its place ends with `OURS`, and an Include names our directory. README gives the command that undoes them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from slurm_sns.config import Config
from slurm_sns.errors import SnsError
from slurm_sns.slurm.check_finding import Finding
from slurm_sns.slurm.conf_text import Line
from slurm_sns.slurm.translate import BANDWIDTH, WAYS, node_names

UNUSED = "#sns# "
OURS = " # sns"

#: slurm.conf's options that the rendered fragment sets -> the list of the site's own words in sns.yaml.
SETTINGS = {
    "JobSubmitPlugins": "job_submit_plugins",
    "GresTypes": "gres_types",
    "AccountingStorageTRES": "accounting_tres",
    "PriorityFlags": "priority_flags",
    "SchedulerParameters": "scheduler_parameters",
}


def site_words(lines: Sequence[Line], ours: Path) -> dict[str, tuple[str, ...]]:
    """What the site's own files say of those options: name -> words, without files below `ours` and without lua."""
    found = {line.option[0]: line.option[1] for line in _sites_own(lines, ours) if line.option}
    said = {name: found[name.lower()] for name in SETTINGS if name.lower() in found}
    return {name: tuple(word for word in value.split(",") if word and word != "lua") for name, value in said.items()}


def kept_words(config: Config, lines: Sequence[Line]) -> Iterator[Finding]:
    """The site's own words stand in sns.yaml too, from where they come back in the rendered fragment."""
    for name, words in site_words(lines, config.paths.slurm_dir).items():
        kept = getattr(config.slurm, SETTINGS[name]) or ()
        yield Finding(
            set(words) <= set(kept),
            f"sns.yaml keeps the site's {name}",
            ",".join(kept),
            ",".join(words),
            advice=f"sns.yaml, slurm: {SETTINGS[name]}: [{', '.join(dict.fromkeys([*kept, *words]))}]",
        )


def slurm_conf(
    path: Path, lines: Sequence[Line], config: Config, expected: Mapping[str, tuple[str, ...]]
) -> Iterator[Finding]:
    """slurm.conf: no option twice, the nodes' gres, the Include of the rendered fragment."""
    own = _sites_own(lines, config.paths.slurm_dir)
    for name in expected:
        yield from _said_once(name, own)
    for line in own:
        if line.option and line.option[0] == "nodename":
            yield from _gres(line, config)
    yield includes(path, lines, config.paths.slurm_dir / "slurm.conf", "Include")


def includes(path: Path, lines: Sequence[Line], wanted: Path, word: str) -> Finding:
    """The file at `path`, whose lines these are, includes the file `wanted`."""
    done = any(wanted in line.included(path.parent) for line in lines)
    return Finding(
        done, f"{path} includes {wanted}", "" if done else "no such line", file=str(path), add=f"{word} {wanted}"
    )


def _sites_own(lines: Sequence[Line], ours: Path) -> list[Line]:
    return [line for line in lines if not line.file.is_relative_to(ours)]


def _said_once(name: str, own: Sequence[Line]) -> Iterator[Finding]:
    """Slurm takes the last of repeated options, and logs an error for each."""
    what = f"{name} stands in the rendered slurm.conf alone"
    repeated = [line for line in own if line.option and line.option[0] == name.lower()]
    for line in repeated:
        yield Finding(
            ok=False, what=what, found=line.content, file=str(line.file), remove=line.text, add=_unused(line.text)
        )
    if not repeated:
        yield Finding(ok=True, what=what)


def _gres(line: Line, config: Config) -> Iterator[Finding]:
    """A NodeName line counts the cache ways and the bandwidth of its nodes."""
    nodes = {name: each.gres for each in config.nodes for name in each.node_names}
    named = line.content.split("=", 1)[1].split()[0]
    try:
        amounts = {tuple(nodes[name].items()) for name in node_names(named) if name in nodes}
    except SnsError:
        return  # NodeName=DEFAULT and the like
    if len(amounts) > 1:
        advice = "slurm.conf: one NodeName line for each entry of nodes in sns.yaml; the rendered file names their Gres"
        yield Finding(ok=False, what=f"nodes {named} are alike", found="different amounts in sns.yaml", advice=advice)
    elif amounts:
        wanted = ",".join(f"{name}:{amount}" for name, amount in amounts.pop())
        new = _with_gres(line.content, wanted)
        ok = new == line.content
        yield Finding(
            ok,
            f"slurm.conf counts the cache ways and bandwidth of {named}",
            wanted="" if ok else f"Gres={wanted}",
            file=str(line.file),
            remove=line.text,
            add=f"{_unused(line.text)}\n{new}{OURS}",
        )


def _with_gres(content: str, wanted: str) -> str:
    """The node line with these amounts beside what else it has; itself where they are there already."""
    found = re.search(r"\sgres=(\S+)", content, re.IGNORECASE)
    words = found[1].split(",") if found else []
    others = [word for word in words if word.split(":")[0] not in (WAYS, BANDWIDTH)]
    gres = ",".join(filter(None, [*others, wanted]))
    if found:
        return (
            content
            if set(gres.split(",")) == set(words)
            else content.replace(found[0], f" Gres={gres}" if gres else "")
        )
    return f"{content} Gres={gres}" if gres else content


def _unused(text: str) -> str:
    """The lines as comments. Slurm takes comments off first, so a backslash at their end continues nothing."""
    return "\n".join(UNUSED + line for line in text.split("\n"))
