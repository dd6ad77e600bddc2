"""One thing that `sns check` looks at, and what to do where it is not right."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether `what` is right; where it is not: what was found, what is wanted, and the remedy.

    A `warning` is no fault (`ok`), but has a price, which `advice` names.

    The remedy is an edit of `file` (`remove`: the lines as they stand there, `add`: what belongs in their place, or at
    the file's end where nothing is to be removed), or a command to `run`, or something that is only `advice`.
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
        """Whether there is nothing to say of it but that it is right."""
        return self.ok and not self.warning
