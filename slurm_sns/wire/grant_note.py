"""The grant in a job's `Extra` field: one segment `sns:grant=TOKEN`, where prolog and epilog can read it.

The text of an owner's own stays as it is: the segment is appended to it, after a semicolon. A segment stands at the
start of the text or after a semicolon, and ends at the next semicolon. If the text has several, the last one counts.
Whoever edits the field can take only his own job's grant away: what a token says is signed (wire.grants).
"""

import re

#: Slurm refuses a longer text (_test_strlen in its job_mgr.c).
MOST_BYTES = 1024

_BEGIN = "sns:grant="
_SEPARATOR = ";"
_SEGMENT = re.compile(rf"(?:\A|;){_BEGIN}([^;]*)(?=;|\Z)")

#: The longest token.
LONGEST = 199
_TOKEN = re.compile(r"[0-9]{1,3}:[A-Za-z0-9._:-]+\Z")


def is_token(text: str) -> bool:
    """Whether the text has the form of a grant's token, of any version, genuine or not."""
    return len(text) <= LONGEST and _TOKEN.match(text) is not None


def grant_in(extra: str) -> str | None:
    """The token of the grant in a job's `Extra`; None if there is none. Raises nothing, whatever the text."""
    tokens = [token for token in _SEGMENT.findall(extra) if is_token(token)] if _BEGIN in extra else []
    return tokens[-1] if tokens else None


def with_grant(extra: str, token: str) -> str | None:
    """The text of `Extra` with this grant instead of any other; None if it is longer than Slurm takes."""
    owners = _owners_text(extra)
    text = f"{owners}{_SEPARATOR}{_BEGIN}{token}" if owners else f"{_BEGIN}{token}"
    length = len(text.encode(errors="replace"))  # half of a surrogate pair stands for one byte
    return text if length <= MOST_BYTES else None


def without_grant(extra: str) -> str | None:
    """The text of `Extra` without a grant; None if there is none in it."""
    owners = _owners_text(extra)
    return None if owners == extra else owners


def _owners_text(extra: str) -> str:
    return _SEGMENT.sub("", extra) if _BEGIN in extra else extra
