"""The reference of all commands, made from the help of `sns`."""

from collections.abc import Iterator

from slurm_sns.cli.command_help import CommandHelp, program
from sns_docs.markdown import code, escaped, table


def text() -> str:
    """The commands in the order of `sns --help`, each with its options."""
    whole = program()
    listed = [(_link(each), escaped(each.summary)) for each in _runnable(whole)]
    overview = table(("command", "what it does"), listed)
    return "\n".join([overview, *(line for each in whole.all() for line in _lines(each))])


def _runnable(whole: CommandHelp) -> Iterator[CommandHelp]:
    """The commands that do something themselves: `sns profile list`, not `sns profile`."""
    return (each for each in whole.all() if not each.subcommands)


def _link(command: CommandHelp) -> str:
    return f"[{code(' '.join(command.words))}](#{'-'.join(command.words)})"


def _lines(command: CommandHelp) -> Iterator[str]:
    words = " ".join(command.words)
    yield f"## {words}\n"
    yield f"```text\n{words} {command.synopsis}\n```\n"
    for paragraph in command.paragraphs:
        yield f"{escaped(paragraph)}\n"
    if command.options:
        rows = ((code(each.head), escaped(each.told)) for each in command.options)
        yield table(("option or argument", "meaning"), rows)
    if command.subcommands:
        yield table(("command", "what it does"), ((_link(each), escaped(each.summary)) for each in command.subcommands))
