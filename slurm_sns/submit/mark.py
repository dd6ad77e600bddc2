"""The mark: our note in the `Extra` field of a Slurm job that we manage: `sns:1 alpha=0.9 program=mg exclusive`.

It is written at submission, in one canonical form. A text in any other form is not our mark, so a text that a user
wrote by hand is never partly understood. The number after `sns:` is the version of the form.

Besides the hints it says what Slurm does not keep: `fixed` (the owner chose the geometry), `advised` (we do not hold
the job: the filter only marked it, or we have given it to Slurm since), the job's own nice value, `nice=100`, which the
scheduler adds while a placement replaces it, and the grant of its placement, `grant=TOKEN`, which the agents on its
nodes check (scheduler.agents). A grant is in the mark from the placement until the placement is taken back; whoever
changes it, or copies it to another job, has none: a token says by itself which run of which job it is for.
"""

import re
from dataclasses import replace
from functools import lru_cache

from slurm_sns.submit.hints import FLAGS, PREFIX, Hints, is_alpha, is_max_scale, is_program

BEGIN = PREFIX + "1"
WORDS = (*FLAGS, "fixed", "advised")  # in this order, after the values

#: The largest nice value of a job that Slurm 26.05 accepts (NICE_OFFSET - 3 in its slurm.h).
MOST_NICE = 2**31 - 3

# A name that the configuration knew when the job was submitted; it may no longer know the name when the mark is read.
_HEURISTIC = re.compile(r"[a-z0-9-]{1,64}\Z")
_NICE = re.compile(r"[1-9][0-9]{0,9}\Z")
# The characters of a token; whether it is a valid one is for the agents to say, who have the key.
_GRANT = re.compile(r"[A-Za-z0-9._:-]{1,199}\Z")
_KNOWN = {"alpha", "program", "max-scale", "heuristic", "nice", "grant"}

#: `read` remembers so many marks: a queue has few different ones, and all are read in every cycle.
MOST_KNOWN = 1 << 14


def write(hints: Hints) -> str:
    """The mark of a managed job with these hints, whose values are valid: nice, where given, from 1 to `MOST_NICE`."""
    parts = [BEGIN]
    if hints.alpha is not None:
        parts.append("alpha=" + f"{hints.alpha:.9f}".rstrip("0").rstrip("."))
    if hints.program is not None:
        parts.append(f"program={hints.program}")
    if hints.max_scale is not None:
        parts.append(f"max-scale={hints.max_scale}")
    if hints.heuristic is not None:
        parts.append(f"heuristic={hints.heuristic}")
    if hints.nice is not None:
        parts.append(f"nice={hints.nice}")
    if hints.grant is not None:
        parts.append(f"grant={hints.grant}")
    parts.extend(word for word in WORDS if getattr(hints, word))
    return " ".join(parts)


@lru_cache(maxsize=MOST_KNOWN)
def read(extra: str) -> Hints | None:
    """The hints in a job's `Extra`; None when it is not our mark, or not in the form that `write` gives it."""
    words = extra.split(" ")
    if words[0] != BEGIN:
        return None
    values = dict(word.split("=", 1) for word in words[1:] if "=" in word)
    if not _valid(values):
        return None
    hints = Hints(
        alpha=float(values["alpha"]) if "alpha" in values else None,
        program=values.get("program"),
        max_scale=int(values["max-scale"]) if "max-scale" in values else None,
        heuristic=values.get("heuristic"),
        exclusive="exclusive" in words,
        reprofile="reprofile" in words,
        restartable="restartable" in words,
        fixed="fixed" in words,
        advised="advised" in words,
        nice=int(values["nice"]) if "nice" in values else None,
        grant=values.get("grant"),
    )
    return hints if write(hints) == extra else None  # order, duplicates, unknown words: all decided here


def grant_in(extra: str) -> str | None:
    """The token of the grant in a job's `Extra`; None when it is not our mark, or has no grant."""
    hints = read(extra)
    return None if hints is None else hints.grant


def of_placement(hints: Hints | None, nice: int, grant: str | None = None) -> str | None:
    """The mark of a placed job: with its own nice value noted in it, and with its grant (None: it has none).

    None where there is no mark or it stays as it is.
    """
    noted = nice if 0 < nice <= MOST_NICE else None
    if hints is None or (hints.nice == noted and hints.grant == grant):
        return None
    return write(replace(hints, nice=noted, grant=grant))


def without_grant(hints: Hints | None) -> str | None:
    """The mark of a job whose placement is taken back; None where there is no mark or it stays as it is."""
    return None if hints is None or hints.grant is None else write(replace(hints, grant=None))


def given_to_slurm(hints: Hints | None) -> str | None:
    """The mark of a job that we no longer hold; None where there is no mark or it stays as it is.

    Whoever holds the job from now on is not us, whatever becomes of our records. Nothing is granted to it either.
    """
    if hints is None or (hints.advised and hints.grant is None):
        return None
    return write(replace(hints, advised=True, grant=None))


def is_marked(extra: str | None) -> bool:
    """Whether `extra` is one of our marks."""
    return extra is not None and read(extra) is not None


def _valid(values: dict[str, str]) -> bool:
    return (
        values.keys() <= _KNOWN
        and ("alpha" not in values or is_alpha(values["alpha"]))
        and ("program" not in values or is_program(values["program"]))
        and ("max-scale" not in values or is_max_scale(values["max-scale"]))
        and ("heuristic" not in values or _HEURISTIC.match(values["heuristic"]) is not None)
        and ("nice" not in values or _is_nice(values["nice"]))
        and ("grant" not in values or _GRANT.match(values["grant"]) is not None)
    )


def _is_nice(text: str) -> bool:
    return _NICE.match(text) is not None and int(text) <= MOST_NICE
