"""The terms of a waiting job's priority, as Slurm's own `sprio` shows them."""

from slurm_sns.errors import SnsError
from slurm_sns.slurm.api import run

#: What sprio calls each term, and what we call it: the words of its manual.
TERMS = {
    "%A": "age",
    "%B": "association",
    "%F": "fair-share",
    "%J": "job size",
    "%P": "partition",
    "%Q": "QOS",
    "%T": "TRES",
    "%S": "site",
    "%N": "nice",
}
_SEPARATOR = "|"


def terms(job_id: int) -> str:
    """The priority and its terms in one line, without those that are 0; why they are not known, if sprio fails."""
    try:
        shown = run("sprio", "--noheader", f"--jobs={job_id}", f"--format={_SEPARATOR.join(('%Y', *TERMS))}")
    except SnsError as problem:
        return f"its priority is not known: {problem}"
    lines = shown.splitlines()
    if not lines:
        return "its priority is not known: sprio does not list the job"
    priority, *values = (each.strip() for each in lines[0].split(_SEPARATOR))
    parts = [f"{name} {value}" for name, value in zip(TERMS.values(), values, strict=False) if value.strip("0.,")]
    return f"priority {priority}" + (f": {', '.join(parts)}" if parts else "")
