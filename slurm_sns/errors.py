"""Every error that slurm_sns raises on purpose.

Two of them are regular answers about a job: `Infeasible` means *never* (the job is refused or left to Slurm), `Closed`
means *later, whatever is free*. Too little free capacity is no error: the plan gives it as the reason. A message is one
line: the object, its value, the limit, what would be valid.
"""


class SnsError(Exception):
    """Base of all errors of slurm_sns; its text is one line for the user. The command line exits with 1."""


class BadInput(SnsError):
    """What a person wrote (configuration, trace, hint, option) cannot be used. The command line exits with 2."""


class Infeasible(SnsError):
    """No node could ever hold the job."""


class NeverStarts(Infeasible):
    """Nobody could ever start the job as it is, Slurm no more than we: its owner or an admin must change something."""


class Closed(SnsError):
    """The job cannot start now, whatever is free: for example, its partitions do not allow it."""


class ClosedForGood(Closed):
    """None of the job's partitions gives what it asks for: it waits until somebody changes the job or a partition."""


class Unreachable(SnsError):
    """A service that we need does not answer now (slurmctld, slurmdbd, the store); trying again later may help."""


class Refused(SnsError):
    """Slurm refused a change of one job; the text is Slurm's own reason."""


class Outdated(Refused):
    """The job has changed since it was looked at, so the order to it was not sent."""
