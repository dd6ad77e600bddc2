"""The command line `sns`: connects the parts, and is the only package that prints and sets exit codes."""

import gc
import os
import sys
from contextlib import suppress

import typer

from slurm_sns.cli.compiled_code import keep_by_state
from slurm_sns.errors import BadInput, SnsError

#: Python's garbage collector runs after this many new objects. With its default of 700, an eighth of the start of a
#: command that imports numba and pandas is spent on collections that find nothing (2.5 s of CPU time instead of 2.2 s).
COLLECT_AFTER = 50_000


def run() -> None:
    """`main` as a process of its own: it ends as soon as all is printed.

    Python would take down all modules and objects before, which nobody needs: 0.15 s with numba, 0.02 s without.
    """
    try:
        main()
    except SystemExit as end:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            with suppress(BrokenPipeError):
                stream.flush()
        os._exit(end.code if isinstance(end.code, int) else 1)


def main() -> None:
    """Run `sns`: exit 0 on success, 2 for wrong usage or input, 1 for any other failure; errors are one line."""
    gc.set_threshold(COLLECT_AFTER)
    keep_by_state()
    from slurm_sns.cli.app import app_for

    try:
        status = app_for(sys.argv[1:])(prog_name="sns", standalone_mode=False)
    except typer.TyperException as problem:
        sys.exit(_fail(problem.format_message(), problem.exit_code))
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(130)  # 128 + SIGINT, as in the shell
    except BadInput as problem:
        sys.exit(_fail(str(problem), 2))
    except SnsError as problem:
        sys.exit(_fail(str(problem), 1))
    except BrokenPipeError:
        # The reader (head, less) has ended: no error of ours. Python's own flush at exit must not report one either.
        sys.stdout = None
        sys.exit(0)
    sys.exit(status if isinstance(status, int) else 0)


def _fail(message: str, status: int) -> int:
    """Print the message as one line on stderr and return the exit status."""
    from slurm_sns.log import printable

    if message:  # empty without a command: the help has been printed instead
        print("sns: error: " + printable(" ".join(message.split())), file=sys.stderr)
    return status
