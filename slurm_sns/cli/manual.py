"""Man pages and shell completions, made from the command line itself, so that no option is described twice.

`files()` returns them by their path under the installation's prefix. plugins/hatch/man_pages.py puts them into the
wheel.
"""

from slurm_sns import __version__
from slurm_sns.cli.command_help import PROGRAM, CommandHelp, program

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
    found = {f"share/man/man1/{'-'.join(each.words)}.1": _page(each) for each in program().all()}
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


def _page(command: CommandHelp) -> str:
    name = "-".join(command.words)
    told = command.paragraphs or ("",)
    text = _heading(name, "1") + f".SH NAME\n{_escaped(name)} \\- {_escaped(told[0].rstrip('.'))}\n"
    text += f".SH SYNOPSIS\n.B {_escaped(' '.join(command.words))}\n{_escaped(command.synopsis)}\n"
    text += ".SH DESCRIPTION\n" + ".PP\n".join(_escaped(each) + "\n" for each in told)
    if command.options:
        text += ".SH OPTIONS\n" + "".join(
            f".TP\n.B {_escaped(each.head)}\n{_escaped(each.told)}\n" for each in command.options
        )
    if command.subcommands:
        text += ".SH COMMANDS\n" + "".join(map(_entry, command.subcommands))
    see = [f".BR {PROGRAM} (1),\n"] if len(command.words) > 1 else []
    return text + _FILES + ".SH SEE ALSO\n" + "".join(see) + ".BR sns.yaml (5)\n"


def _heading(name: str, section: str) -> str:
    return f'.TH {_escaped(name.upper())} {section} "" "slurm_sns {__version__}" "slurm_sns"\n'


def _entry(command: CommandHelp) -> str:
    return f".TP\n.BR {_escaped('-'.join(command.words))} (1)\n{_escaped(command.summary)}\n"


def _escaped(text: str) -> str:
    r"""The text so that roff prints it literally: `\` starts no command, no line is a request, `-` stays ASCII."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
