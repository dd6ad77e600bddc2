"""Slurm's own commands, for the few things that pyslurm cannot do.

No shell; every argument is ours, never a user's text.
"""

import subprocess

from slurm_sns.errors import Refused, Unreachable

TIMEOUT_S = 30

#: What Slurm's commands say when they find nobody. `Unexpected message received` is scontrol's update (seen), `No
#: response` and `PersistInit` are sacctmgr's words for a slurmdbd that hangs; authentication fails without munge.
_SIGNS = (
    *("Unable to contact", "timed out", "Connection refused", "Problem talking", "Unexpected message received"),
    *("No response", "PersistInit", "authentication error", "Connection reset", "Broken pipe"),
)


def run(command: str, *arguments: str, timeout_s: float = TIMEOUT_S) -> str:
    """What the command prints.

    Raises:
        Unreachable: Slurm does not answer.
        Refused: the command failed otherwise; the text is its own.
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
    return any(sign in text for sign in _SIGNS)
