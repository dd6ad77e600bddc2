"""The command line `sns`: joins the parts, and is the only place that prints and sets exit codes."""

import gc
import sys

import typer

from slurm_sns.cli.compiled_code import keep_by_state
from slurm_sns.errors import BadInput, SnsError

#: Python looks for circular garbage after so many new objects. Its own 700 are an eighth of the start of a command
#: that imports numba and pandas (2.2 s instead of 2.5 s of the processor), for nothing.
COLLECT_AFTER = 50_000


def main() -> None:
    """Run `sns`: exit 0 when all went well, 2 for bad use or bad input, 1 for failure at work; errors are one line."""
    gc.set_threshold(COLLECT_AFTER)
    keep_by_state()
    from slurm_sns.cli.app import app

    try:
        status = app(prog_name="sns", standalone_mode=False)
    except typer.TyperException as problem:
        sys.exit(_fail(problem.format_message(), problem.exit_code))
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(130)  # 128 + SIGINT, as the shell says it
    except BadInput as problem:
        sys.exit(_fail(str(problem), 2))
    except SnsError as problem:
        sys.exit(_fail(str(problem), 1))
    except BrokenPipeError:
        # The reader (head, less) has gone: no error of ours. Python's own flush at exit must not complain either.
        sys.stdout = None
        sys.exit(0)
    sys.exit(status if isinstance(status, int) else 0)


def _fail(message: str, status: int) -> int:
    """Print one line on stderr, whatever the message holds, and give the exit status."""
    if message:  # no command at all: the help is the answer
        print("sns: error: " + " ".join(message.split()), file=sys.stderr)
    return status
