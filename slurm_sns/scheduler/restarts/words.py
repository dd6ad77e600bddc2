"""What a decision on a suspended job says: in one sentence for its owner and the log, and term by term."""

from slurm_sns.durations import duration
from slurm_sns.node_lists import folded
from slurm_sns.policies.base import Considered, Explanation
from slurm_sns.restarts.decision import Basis, RestartDecision, SuspendedJob, Term

#: The outcome of the term that wins, and the headings of the sum and of what a restart loses, in core-seconds.
CHOSEN, COMPLETES, LOST = "chosen", "completes in s", "lost core-s"
#: Where a term's wait and its time in suspension come from.
_BASES = {
    Basis.PLACE: "there is a place now",
    Basis.PREEMPTORS: "when the jobs that hold its cores are expected to end",
    Basis.PARTITION: "means of the partition's jobs that have ended lately",
    Basis.SITE: "means of all partitions' jobs that have ended lately",
}


def told(suspended_s: float, job: SuspendedJob, decision: RestartDecision) -> str:
    """Since when the job is suspended, and when it is expected to complete here and elsewhere."""
    stays = decision.stays
    here = (
        f"suspended for {duration(suspended_s)}; expected to complete in {duration(float(stays.total_s))} here "
        f"({duration(float(stays.suspended_s))} suspended, {duration(float(stays.run_s))} to run)"
    )
    best = decision.best
    if best is None:
        return f"{here}; there is no other place"
    begins = "from the beginning" if job.checkpoint_s is None else "from its last checkpoint"
    return f"{here}, in {duration(float(best.total_s))} {_where(best)} {begins}"


def explained(decision: RestartDecision, lost_core_s: float) -> Explanation:
    """The terms of a restart, as a table; with it at most so much work is lost."""
    restart = decision.restart
    stays = _row(decision.stays, f"{decision.stays.partition}, where it is", lost_core_s=0.0)
    others = (_row(term, _where(term), lost_core_s=lost_core_s, is_chosen=term is restart) for term in decision.others)
    return Explanation(heading="where it may complete", considered=(stays, *others))


def _row(term: Term, name: str, *, lost_core_s: float, is_chosen: bool = False) -> Considered:
    seconds = {
        "wait s": term.wait_s,
        "suspended s": term.suspended_s,
        "run s": term.run_s,
        COMPLETES: term.total_s,
        LOST: lost_core_s,
    }
    figures = {heading: round(float(value), 1) for heading, value in seconds.items()}
    return Considered(name, CHOSEN if is_chosen else "", _BASES[term.basis], figures)


def _where(term: Term) -> str:
    if term.basis is Basis.PLACE:
        return f"on {folded(term.nodes)}"
    return f"in partition {term.partition} after a wait of {duration(float(term.wait_s))}"
