"""One thing that `sns check` looks at, and what to do when it is wrong."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether `what` is right; if not, what was found, what is wanted, and the remedy.

    A `warning` is no fault (`ok` is True) but has a disadvantage, which `advice` names.

    The remedy is an edit of `file`, a command to `run`, or only `advice`. An edit replaces the lines `remove`, given
    exactly as the file has them, by the lines `add`. With nothing to remove, `add` goes to the end of the file.
    """

    ok: bool
    what: str
    found: str = ""
    wanted: str = ""
    file: str = ""
    remove: str = ""
    add: str = ""
    run: str = ""
    advice: str = ""
    warning: bool = False

    @property
    def is_well(self) -> bool:
        """Whether it is right and has no warning."""
        return self.ok and not self.warning
