"""The types of the fields of messages, with their bounds (docs/wire.md). Pydantic reads them strictly.

Our own code makes these values without a check; the bounds hold for what a peer sends.
"""

from typing import Annotated

from pydantic import AfterValidator, Field

#: A longer text is cut.
LONGEST_TEXT = 512
LONGEST_NAME = 64  # of a node, and of a host (HOST_NAME_MAX of Linux)
MOST_JOBS = 4096  # on one node
MOST_POINTS = 256  # the ways of one run
MOST_DOMAINS = 1024  # of the last-level cache, on one node
MOST_KEYS = 1024  # acknowledged in one message


def printable(text: str) -> str:
    """The beginning of a text, with ? for what cannot be printed: fit for one line of a log, and for JSON."""
    text = text[:LONGEST_TEXT]
    return text if text.isprintable() else "".join(each if each.isprintable() else "?" for each in text)


Text = Annotated[str, AfterValidator(printable)]
NodeName = Annotated[str, Field(pattern=rf"^[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_NAME - 1}}}$")]
KeyName = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,16}$")]
#: 32 bytes: a nonce, or a proof.
Hex32 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
# Slurm's ids and counts are 32 bits wide.
JobId = Annotated[int, Field(ge=1, le=2**32 - 1)]
Restarts = Annotated[int, Field(ge=0, le=2**32 - 1)]
TaskNumber = Annotated[int, Field(ge=0, le=2**32 - 2)]
Revision = Annotated[int, Field(ge=0, le=2**63 - 1)]
# As in sns.yaml; a node has few ways, and no memory is that fast.
Ways = Annotated[int, Field(ge=0, le=1024)]
Gbps = Annotated[int, Field(ge=0, le=1_000_000)]
JobCount = Annotated[int, Field(ge=0, le=1_000_000)]
CoreCounts = Annotated[
    tuple[Annotated[int, Field(ge=0, le=65_536)], ...], Field(max_length=MOST_DOMAINS)
]  # by cache domain
Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Moment = Annotated[float, Field(ge=0, le=1e11, allow_inf_nan=False)]
Ipc = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]
MeasuredGbps = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]
