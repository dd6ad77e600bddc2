"""Runs Slurm's own commands, for the few things that pyslurm cannot do.

No shell is involved. Text that a user wrote is only ever a part of one argument, after a name of ours and `=`.
"""

import subprocess

from slurm_sns.errors import Refused, Unreachable

TIMEOUT_S = 30

#: What Slurm's commands print when no daemon answers. `Unexpected message received` comes from scontrol update (seen),
#: `No response` and `PersistInit` from sacctmgr when slurmdbd hangs; authentication fails without munge.
_UNREACHABLE_TEXTS = (
    *("Unable to contact", "timed out", "Connection refused", "Problem talking", "Unexpected message received"),
    *("No response", "PersistInit", "authentication error", "Connection reset", "Broken pipe"),
)


def run(command: str, *arguments: str, timeout_s: float = TIMEOUT_S) -> str:
    """Run the command and return what it prints.

    Raises:
        Unreachable: Slurm does not answer.
        Refused: the command failed otherwise; the text is what it printed.
    """
    try:
        done = subprocess.run(  # noqa: S603 -- a list, no shell
            [command, *arguments], capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        raise Unreachable(f"{command} did not answer within {timeout_s:g} s") from None
    except OSError as problem:
        raise Refused(f"{command} cannot be run: {problem.strerror}") from None
    if done.returncode != 0:
        # Slurm's commands name themselves in some messages and not in others.
        text = f"{command}: " + " ".join((done.stderr or done.stdout).split()).removeprefix(f"{command}: ")
        raise (Unreachable(text) if _is_unreachable(text) else Refused(text))
    return done.stdout


def _is_unreachable(text: str) -> bool:
    return any(known in text for known in _UNREACHABLE_TEXTS)
