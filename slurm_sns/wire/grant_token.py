"""The form of a grant's token.

What it says, and whether it is genuine, wire/grants.py reads and verifies.
"""

import re

LONGEST = 199
_TOKEN = re.compile(r"[0-9]{1,3}:[A-Za-z0-9._:-]+\Z")


def is_token(text: str) -> bool:
    """Whether the text has the form of a grant's token, of any version, genuine or not."""
    return len(text) <= LONGEST and _TOKEN.match(text) is not None
