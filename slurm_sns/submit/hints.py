"""Hints: what a user tells us about a job, by the SPANK options --sns-... or by `--comment sns:alpha=0.9,program=mg`.

A comment holds hints exactly when it begins with `sns:`. Its entries are separated by commas. Each is `key=value`, or
the key alone for a flag (`exclusive`, `reprofile`, `restartable`: the key alone or `=yes` means yes, `=no` means no;
`restartable=600` means yes, with a checkpoint every 600 s). `sns:off` stands alone. Nothing is trimmed, and a key may
appear only once. For the same hint the option wins over the comment, but `off` in the comment (no management at all)
always holds.

A comment with hints that is longer than `MOST_BYTES` is refused before anything in it is read: the submit filter runs
with slurmctld's locks held, and before Slurm checks its own limit on the length of a comment.

Numbers have a plain decimal grammar that C and Lua check in the same way, digit by digit. Alpha is a point with one to
nine digits, a 0 may stand before it; or it is 1, or 1 with a point and zeros. There is no sign, exponent, hexadecimal,
nan or infinity.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from slurm_sns.errors import BadInput
from slurm_sns.submit.messages import as_bytes, quote, say

PREFIX = "sns:"
VALUED = {"alpha": "0.9", "program": "mg", "max-scale": "4", "heuristic": "mix-fit"}  # with an example of each
RESTARTABLE = "restartable"  # the flag that may have a number as its value
FLAGS = ("exclusive", "reprofile", RESTARTABLE)
KEYS = (*VALUED, *FLAGS)
MOST_BYTES = 512  # of a comment of hints; all of them, each as long as it can be, take less than 300

# \Z, not $: a trailing newline is no part of any grammar. ASCII digits only, unlike \d and isdigit().
_ALPHA = re.compile(r"(?:0?(?:\.[0-9]{1,9})|1(?:\.0{1,9})?)\Z")
_PROGRAM = re.compile(r"[A-Za-z0-9._+-]{1,64}\Z")
_MAX_SCALE = re.compile(r"(?:[1-9]|[1-5][0-9]|6[0-4])\Z")
_CHECKPOINT = re.compile(r"[1-9][0-9]{0,5}\Z")
_MOST_CHECKPOINT_S = 604_800  # a week
_SAID = {"": True, "yes": True, "no": False}


@dataclass(frozen=True, slots=True)
class Hints:
    """What the user told us about a job; the defaults are those of a job without hints.

    Attributes:
        alpha: the slowdown that the user accepts, as a fraction of the best performance, in (0, 1].
        program: the key of the program's profile.
        max_scale: the widest spreading allowed, 1 to 64.
        heuristic: the placement heuristic that replaces the portfolio's choice for this job.
        exclusive: the job wants nodes of its own under Spread-n-Share.
        reprofile: measure the program again.
        restartable: the job may be moved to other nodes by a restart.
        checkpoint_s: how often a restartable job writes checkpoints, 1 to 604,800 seconds; None if its owner says
            nothing. A restart loses at most that much work.
        off: the job is left to Slurm.
        fixed: not a hint: the job's own options fix its geometry (nodes, tasks per node or a distribution), so that we
            may not choose it. Set at submission, because Slurm does not show a job's --distribution.
    """

    alpha: float | None = None
    program: str | None = None
    max_scale: int | None = None
    heuristic: str | None = None
    exclusive: bool = False
    reprofile: bool = False
    restartable: bool = False
    checkpoint_s: int | None = None
    off: bool = False
    fixed: bool = False


NO_HINTS = Hints()


def parse(comment: str, options: Iterable[tuple[str, str]], heuristics: Sequence[str]) -> Hints:
    """The hints of a job from its comment and its SPANK options (pairs of hint name and value, a flag's value empty).

    Raises:
        BadInput: a hint is wrong; one line says what the user must change.
    """
    hints = from_comment(comment, heuristics)
    for key, value in options:
        if key not in KEYS:
            valid = ", ".join(f"--sns-{known}" for known in KEYS)
            raise BadInput(say("unknown", {"key": "option", "value": quote(f"--sns-{key}"), "valid": valid}))
        hints = _with(hints, key, value, f"--sns-{key}", heuristics)
    return replace(NO_HINTS, off=True) if hints.off else hints


def from_comment(comment: str, heuristics: Sequence[str]) -> Hints:
    """The hints in the text of --comment; any comment that does not begin with `sns:` holds none."""
    if not comment.startswith(PREFIX):
        return NO_HINTS
    if len(as_bytes(comment)) > MOST_BYTES:
        valid = ", ".join((*KEYS, "off"))
        raise BadInput(say("long", {"value": quote(comment), "most": MOST_BYTES, "valid": valid}))
    entries = comment[len(PREFIX) :].split(",")
    if entries == ["off"]:
        return replace(NO_HINTS, off=True)
    hints, seen = NO_HINTS, set[str]()
    for entry in entries:
        key, has_value, value = entry.partition("=")
        shown = f"--comment {PREFIX}{key}"
        if key == "off":
            raise BadInput(say("off", {}))
        if key not in KEYS:
            valid = ", ".join((*KEYS, "off"))
            raise BadInput(say("unknown", {"key": "--comment", "value": quote(PREFIX + key), "valid": valid}))
        if key in seen:
            raise BadInput(say("duplicate", {"key": shown}))
        seen.add(key)
        if has_value and not value:
            raise BadInput(say("missing", {"key": shown, "example": VALUED.get(key, "yes")}))
        hints = _with(hints, key, value, shown, heuristics)
    return hints


def _with(hints: Hints, key: str, value: str, shown: str, heuristics: Sequence[str]) -> Hints:
    """`hints` with one more hint, whose value is checked; `shown` is the key as the user wrote it."""
    if key == RESTARTABLE:
        if value not in _SAID and not is_checkpoint(value):
            raise BadInput(say(key, {"key": shown, "value": quote(value)}))
        return replace(hints, restartable=_SAID.get(value, True), checkpoint_s=None if value in _SAID else int(value))
    if key in FLAGS:
        if value not in _SAID:
            raise BadInput(say("flag", {"key": shown, "value": quote(value)}))
        said: dict[str, Any] = {key: _SAID[value]}
        return replace(hints, **said)
    if not value:
        raise BadInput(say("missing", {"key": shown, "example": VALUED[key]}))
    if key == "alpha" and is_alpha(value):
        return replace(hints, alpha=float(value))
    if key == "program" and is_program(value):
        return replace(hints, program=value)
    if key == "max-scale" and is_max_scale(value):
        return replace(hints, max_scale=int(value))
    if key == "heuristic" and value in heuristics:
        return replace(hints, heuristic=value)
    raise BadInput(say(key, {"key": shown, "value": quote(value), "valid": ", ".join(heuristics)}))


def asks_for_spreading(hints: Hints) -> bool:
    """Whether the owner asked for Spread-n-Share."""
    return hints.alpha is not None or hints.program is not None or (hints.max_scale or 1) > 1


def is_alpha(text: str) -> bool:
    """Whether `text` is a plain decimal number above 0 and at most 1, with at most nine digits after the point."""
    return _ALPHA.match(text) is not None and not set(text) <= {"0", "."}


def is_program(text: str) -> bool:
    """Whether `text` can name a program."""
    return _PROGRAM.match(text) is not None


def is_max_scale(text: str) -> bool:
    """Whether `text` is a whole number from 1 to 64, without leading zeros."""
    return _MAX_SCALE.match(text) is not None


def is_checkpoint(text: str) -> bool:
    """Whether `text` is a whole number of seconds from 1 to 604,800, without leading zeros."""
    return _CHECKPOINT.match(text) is not None and int(text) <= _MOST_CHECKPOINT_S
