"""The keys that scheduler and agents share, as the text of a key file: one key a line, `ID HEX`; # begins a comment.

The first key signs, all verify. So a key is replaced without a pause: the new one is appended everywhere, then moved to
the first line everywhere, then the old one is removed. No message and no `repr` shows a secret.
"""

import hmac
import re
from dataclasses import dataclass, field

from slurm_sns.errors import BadInput

#: As many bytes as SHA-256 gives: a longer key adds nothing to HMAC-SHA256, a shorter one takes away (RFC 2104, 3).
SECRET_BYTES = 32
LONGEST_SECRET_BYTES = 256
#: A rotation needs two; more than a few are forgotten ones.
MOST_KEYS = 16

_NAME = re.compile(r"[a-z0-9-]{1,16}\Z")
_SECRET = re.compile(rf"(?:[0-9a-fA-F]{{2}}){{{SECRET_BYTES},{LONGEST_SECRET_BYTES}}}\Z")
_VALID = (
    f"valid: an ID of 1 to 16 of a-z 0-9 -, a space, {2 * SECRET_BYTES} to {2 * LONGEST_SECRET_BYTES} "
    "hexadecimal digits (an even number)"
)


@dataclass(frozen=True, slots=True)
class Key:
    """A shared secret and its name; the name is no secret."""

    name: str
    secret: bytes = field(repr=False)

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits by which two files can be compared; the secret cannot be found from them."""
        return hmac.digest(self.secret, b"slurm_sns fingerprint", "sha256").hex()[:16]


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a key file, in its order; at least one."""

    keys: tuple[Key, ...]

    @property
    def signing(self) -> Key:
        """The key that signs."""
        return self.keys[0]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the keys, that of the signing one first."""
        return tuple(key.name for key in self.keys)

    def named(self, name: str) -> Key | None:
        """The key of that name; None if there is none."""
        return next((key for key in self.keys if key.name == name), None)

    @classmethod
    def parse(cls, text: str) -> "Keys":
        """The keys of a key file with this text.

        Raises:
            BadInput: a line is no key, a name comes twice, or there is no key, or there are more than `MOST_KEYS`.
        """
        found: dict[str, Key] = {}
        for number, line in enumerate(text.splitlines(), 1):
            if not (words := _words(line)):
                continue
            key = _key(words)
            if key is None:
                raise BadInput(f"line {number} is no key; {_VALID}")
            if key.name in found:
                raise BadInput(f"line {number}: the ID {key.name} is there already; valid: an ID of its own")
            found[key.name] = key
        if not 1 <= len(found) <= MOST_KEYS:
            raise BadInput(f"{len(found)} keys; valid: 1 to {MOST_KEYS}, one a line (sns key new makes one)")
        return cls(tuple(found.values()))


def _words(line: str) -> list[str]:
    """The words of a line without its comment; none: the line has no key."""
    return line.partition("#")[0].split()


def _key(words: list[str]) -> Key | None:
    if len(words) != 2 or not _NAME.match(words[0]) or not _SECRET.match(words[1]):  # ID and HEX
        return None
    return Key(words[0], bytes.fromhex(words[1]))


def key_line(name: str, secret: bytes) -> str:
    """The line of a key file for a key of this name, with its newline.

    Raises:
        BadInput: the name is not valid, or the secret is too short or too long.
    """
    words = [name, secret.hex()]
    if _key(words) is None:
        raise BadInput(f"the key {name[:40]!r}; {_VALID}")
    return " ".join(words) + "\n"


def added(text: str, line: str) -> str:
    """The text of a key file with this line at its end: the key verifies and does not sign.

    Raises:
        BadInput: its ID is there already, or there are too many keys.
    """
    joined = text + ("" if text.endswith("\n") or not text else "\n") + line
    Keys.parse(joined)
    return joined


def promoted(text: str) -> str:
    """The text of a key file with its last key before the others: it signs from now on. Comments stay in place."""
    lines = text.splitlines()
    with_keys = [at for at, line in enumerate(lines) if _words(line)]
    if with_keys:
        lines.insert(with_keys[0], lines.pop(with_keys[-1]))
    return "".join(f"{line}\n" for line in lines)
