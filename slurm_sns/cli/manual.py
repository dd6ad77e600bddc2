"""Man pages and shell completions, made from the command line itself, so that no option is described twice.

`files()` returns them by their path under the installation's prefix. plugins/hatch/man_pages.py puts them into the
wheel.
"""

from collections.abc import Iterator
from typing import Any

import typer

from slurm_sns import __version__
from slurm_sns.cli.app import app

PROGRAM = "sns"
#: Where each shell looks for completions.
COMPLETIONS = {
    "bash": f"share/bash-completion/completions/{PROGRAM}",
    "zsh": f"share/zsh/site-functions/_{PROGRAM}",
    "fish": f"share/fish/vendor_completions.d/{PROGRAM}.fish",
}
#: zsh runs the file at the first completion; typer's script only prepares the following ones. This completes the first.
ZSH_FIRST_TIME = f'\n[ "$funcstack[1]" = "_{PROGRAM}" ] && _{PROGRAM}_completion "$@"\n'

_FILES = """\
.SH FILES
.TP
.I /etc/slurm/sns.yaml
The configuration, see
.BR sns.yaml (5).
.SH EXIT STATUS
0 on success, 2 for wrong usage or input, 1 for any other failure. Errors are one line on standard error.
"""


def files(settings: str) -> dict[str, str]:
    """The text of every file by its path under the prefix; `settings` is the text of conf/sns.yaml."""
    pages = dict(_pages((PROGRAM,), typer.main.get_command(app)))
    found = {f"share/man/man1/{name}.1": text for name, text in pages.items()}
    return found | {"share/man/man5/sns.yaml.5": settings_page(settings)} | completions()


def completions() -> dict[str, str]:
    """The scripts with which each shell asks `sns` itself for completions."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined] # as typer's stubs leave it

    texts = {
        shell: get_completion_script(prog_name=PROGRAM, complete_var=f"_{PROGRAM.upper()}_COMPLETE", shell=shell)
        for shell in COMPLETIONS
    }
    texts["zsh"] += ZSH_FIRST_TIME
    return {COMPLETIONS[shell]: text.rstrip("\n") + "\n" for shell, text in texts.items()}


def settings_page(settings: str) -> str:
    """sns.yaml(5): the text of conf/sns.yaml, whose comments explain the settings."""
    lines = "\n".join(_escaped(line) for line in settings.splitlines())
    return (
        _heading("sns.yaml", "5")
        + ".SH NAME\nsns.yaml \\- the configuration of slurm_sns\n"
        + ".SH DESCRIPTION\nEvery setting, with its default, its unit and the reason for it.\n"
        + f".PP\n.nf\n{lines}\n.fi\n.SH SEE ALSO\n.BR sns (1)\n"
    )


def _pages(words: tuple[str, ...], command: Any) -> Iterator[tuple[str, str]]:
    """The page of a command and those of its subcommands, as (name, text)."""
    inner = getattr(command, "commands", {})
    yield "-".join(words), _page(words, command, inner)
    for name, each in inner.items():
        yield from _pages((*words, name), each)


def _page(words: tuple[str, ...], command: Any, inner: dict[str, Any]) -> str:
    name = "-".join(words)
    first, *others = [part for part in (command.help or "").replace("\b", "").split("\n\n") if part.strip()] or [""]
    text = _heading(name, "1") + f".SH NAME\n{_escaped(name)} \\- {_escaped(_one_line(first).rstrip('.'))}\n"
    text += f".SH SYNOPSIS\n.B {_escaped(' '.join(words))}\n{_synopsis(command, inner)}\n"
    text += ".SH DESCRIPTION\n" + ".PP\n".join(_escaped(_one_line(each)) + "\n" for each in (first, *others))
    options = [each for each in command.params if not each.hidden]
    if options:
        text += ".SH OPTIONS\n" + "".join(map(_option, options))
    if inner:
        text += ".SH COMMANDS\n" + "".join(_entry(f"{name}-{key}", each) for key, each in inner.items())
    see = [f".BR {PROGRAM} (1),\n"] if len(words) > 1 else []
    return text + _FILES + ".SH SEE ALSO\n" + "".join(see) + ".BR sns.yaml (5)\n"


def _heading(name: str, section: str) -> str:
    return f'.TH {_escaped(name.upper())} {section} "" "slurm_sns {__version__}" "slurm_sns"\n'


def _synopsis(command: Any, inner: dict[str, Any]) -> str:
    arguments = [each for each in command.params if not _is_option(each)]
    places = [_metavar(each) if each.required else f"[{_metavar(each).strip('[]')}]" for each in arguments]
    return _escaped(" ".join(["[OPTIONS]", *places, *(["COMMAND [ARGS]..."] if inner else [])]))


def _option(parameter: Any) -> str:
    names = ", ".join((*parameter.opts, *parameter.secondary_opts)) if _is_option(parameter) else ""
    takes = "" if getattr(parameter, "is_flag", False) else _metavar(parameter)
    told = [_one_line(parameter.help or "")]
    if parameter.required:
        told.append("Required.")
    shown = parameter.show_default if isinstance(parameter.show_default, str) else parameter.default
    if shown not in (None, False, ""):
        told.append(f"Default: {shown}.")
    if parameter.envvar:
        told.append(f"Environment: {parameter.envvar}.")
    head = _escaped(" ".join(filter(None, (names, takes))))
    return f".TP\n.B {head}\n{_escaped(' '.join(filter(None, told)))}\n"


def _entry(name: str, command: Any) -> str:
    first = _one_line((command.help or "").split("\n\n")[0])
    return f".TP\n.BR {_escaped(name)} (1)\n{_escaped(first)}\n"


def _is_option(parameter: Any) -> bool:
    return bool(parameter.opts[0].startswith("-"))


def _metavar(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _escaped(text: str) -> str:
    r"""The text so that roff prints it literally: `\` starts no command, no line is a request, `-` stays ASCII."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
