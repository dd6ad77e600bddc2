"""The help of every command as plain values: man pages and the reference of the documentation are made from them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import typer

from slurm_sns.cli.app import app

PROGRAM = "sns"


@dataclass(frozen=True, slots=True)
class OptionHelp:
    """An option or an argument: how it is written, and what is told of it. An argument has no `names`."""

    names: tuple[str, ...]
    takes: str
    told: str

    @property
    def head(self) -> str:
        """How it is written: `--watch, -w`, `--limit, -n N`, `JOBID`."""
        return " ".join(filter(None, (", ".join(self.names), self.takes)))


@dataclass(frozen=True, slots=True)
class CommandHelp:
    """A command: its words (`sns`, `profile`, `list`), the paragraphs of its help, its options and subcommands."""

    words: tuple[str, ...]
    paragraphs: tuple[str, ...]
    synopsis: str
    options: tuple[OptionHelp, ...]
    subcommands: tuple["CommandHelp", ...]

    @property
    def summary(self) -> str:
        """The first paragraph."""
        return self.paragraphs[0] if self.paragraphs else ""

    def takes(self, option: str) -> bool:
        """Whether it has this option."""
        return any(option in each.names for each in self.options)

    def all(self) -> Iterator["CommandHelp"]:
        """The command and all below it."""
        yield self
        for each in self.subcommands:
            yield from each.all()


def program() -> CommandHelp:
    """`sns` itself."""
    return _command((PROGRAM,), typer.main.get_command(app()))


def _command(words: tuple[str, ...], command: Any) -> CommandHelp:
    inner = getattr(command, "commands", {})
    parts = (command.help or "").replace("\b", "").split("\n\n")
    return CommandHelp(
        words,
        tuple(_one_line(part) for part in parts if part.strip()),
        _synopsis(command, inner),
        tuple(_option(each) for each in command.params if not each.hidden),
        tuple(_command((*words, name), each) for name, each in inner.items()),
    )


def _synopsis(command: Any, inner: dict[str, Any]) -> str:
    arguments = [each for each in command.params if not _is_option(each)]
    places = [_metavar(each) if each.required else f"[{_metavar(each).strip('[]')}]" for each in arguments]
    return " ".join(["[OPTIONS]", *places, *(["COMMAND [ARGS]..."] if inner else [])])


def _option(parameter: Any) -> OptionHelp:
    names = (*parameter.opts, *parameter.secondary_opts) if _is_option(parameter) else ()
    takes = "" if getattr(parameter, "is_flag", False) else _metavar(parameter)
    told = [_one_line(parameter.help or "")]
    if parameter.required:
        told.append("Required.")
    shown = parameter.show_default if isinstance(parameter.show_default, str) else parameter.default
    if shown not in (None, False, ""):
        told.append(f"Default: {shown}.")
    if parameter.envvar:
        told.append(f"Environment: {parameter.envvar}.")
    return OptionHelp(names, takes, " ".join(filter(None, told)))


def _is_option(parameter: Any) -> bool:
    return bool(parameter.opts[0].startswith("-"))


def _metavar(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _one_line(text: str) -> str:
    return " ".join(text.split())
