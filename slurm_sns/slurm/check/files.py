"""Compares the site's configuration files with the rendered ones: what is missing, which lines to remove and add. Pure.

Every edit can be recognised and undone: a removed line stays as a comment that begins with `UNUSED`, the line that
replaces it ends with `OURS`, and an Include names our directory. docs/admins/uninstall.md has the command that
undoes them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from slurm_sns.conf_text import Line, last_options
from slurm_sns.config.configuration import Config
from slurm_sns.errors import SnsError
from slurm_sns.slurm.check import Finding
from slurm_sns.slurm.translate import BANDWIDTH, WAYS, node_names

UNUSED = "#sns# "
OURS = " # sns"

#: An option that the rendered slurm.conf fragment sets -> the setting of sns.yaml with the site's own words for it.
SETTINGS = {
    "JobSubmitPlugins": "job_submit_plugins",
    "GresTypes": "gres_types",
    "AccountingStorageTRES": "accounting_tres",
    "PriorityFlags": "priority_flags",
    "SchedulerParameters": "scheduler_parameters",
}


def site_words(lines: Sequence[Line], ours: Path) -> dict[str, tuple[str, ...]]:
    """The site's own words for the options of `SETTINGS`: name -> words, without `lua`, without files below `ours`."""
    found = last_options(_sites_own(lines, ours))
    said = {name: found[name.lower()] for name in SETTINGS if name.lower() in found}
    return {name: tuple(word for word in value.split(",") if word and word != "lua") for name, value in said.items()}


def kept_words(config: Config, lines: Sequence[Line]) -> Iterator[Finding]:
    """sns.yaml repeats the site's own words, so that the rendered fragment contains them."""
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
    """slurm.conf repeats no option of the rendered fragment, gives the nodes their gres, and includes the fragment."""
    own = _sites_own(lines, config.paths.slurm_dir)
    for name in expected:
        yield from _said_once(name, own)
    for line in own:
        if line.option and line.option[0] == "nodename":
            yield from _gres(line, config)
    yield includes(path, lines, config.paths.slurm_dir / "slurm.conf", "Include")


def includes(path: Path, lines: Sequence[Line], wanted: Path, word: str) -> Finding:
    """The file at `path`, which has these lines, includes the file `wanted`. `word` is the file's include keyword."""
    done = any(wanted in line.included(path.parent) for line in lines)
    return Finding(
        done, f"{path} includes {wanted}", "" if done else "no such line", file=str(path), add=f"{word} {wanted}"
    )


def _sites_own(lines: Sequence[Line], ours: Path) -> list[Line]:
    return [line for line in lines if not line.file.is_relative_to(ours)]


def _said_once(name: str, own: Sequence[Line]) -> Iterator[Finding]:
    """The site's own files do not repeat the option: Slurm takes the last one and logs an error for each repetition."""
    what = f"{name} is set in the rendered slurm.conf only"
    repeated = [line for line in own if line.option and line.option[0] == name.lower()]
    for line in repeated:
        yield Finding(
            ok=False, what=what, found=line.content, file=str(line.file), remove=line.text, add=unused(line.text)
        )
    if not repeated:
        yield Finding(ok=True, what=what)


def _gres(line: Line, config: Config) -> Iterator[Finding]:
    """A NodeName line has the gres of its nodes: cache ways and memory bandwidth."""
    nodes = {name: each.gres for each in config.nodes for name in each.node_names}
    named = line.content.split("=", 1)[1].split()[0]
    try:
        amounts = {tuple(nodes[name].items()) for name in node_names(named) if name in nodes}
    except SnsError:
        return  # NodeName=DEFAULT and the like
    if len(amounts) > 1:
        advice = "slurm.conf: one NodeName line for each entry of nodes in sns.yaml; the rendered file names their Gres"
        yield Finding(
            ok=False,
            what=f"nodes {named} have the same cache ways and bandwidth",
            found="different amounts in sns.yaml",
            advice=advice,
        )
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
            add=f"{unused(line.text)}\n{new}{OURS}",
        )


def _with_gres(content: str, wanted: str) -> str:
    """The node line with these gres added to its others; unchanged if it has them already."""
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


def unused(text: str) -> str:
    """The lines as comments. Slurm strips comments first, so a backslash at the end of one continues nothing."""
    return "\n".join(UNUSED + line for line in text.split("\n"))
