"""One job, as the checker knows it: what its owner and administrators want, and what we did to it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from slurm_sns.submit import mark
from world.slurm_jobs import USER_IDS

PEOPLE = frozenset({*USER_IDS, "admin"})
#: The states of a job that has nodes.
RUNNING = ("running", "suspended")
#: The nice values of placed jobs (README): an administrator's equal value is taken for ours.
OUR_NICE = (-2_000_000_000, -60_000)
#: A requeued job is completing for so long, and cannot be changed meanwhile.
COMPLETES_IN_S = 1.0
#: What a submission asks for where it says nothing (ModelJob).
UNSAID: Mapping[str, Any] = {
    "tasks": 1,
    "cpus_per_task": 1,
    "nodes_min": 1,
    "nodes_max": None,
    "tasks_per_node": None,
    "memory_per_cpu_mb": None,
    "memory_per_node_mb": None,
    "walltime_s": 3600,
    "partition": "main",
    "account": "physics",
    "qos": "normal",
    "name": "job",
    "comment": "",
    "nice": 0,
    "extra": "",
    "begin_s": 0,
    "required": (),
    "excluded": (),
    "ways": 0,
    "gres": (),
    "is_alone": False,
    "dependency": None,
    "array_limit": None,
}


def is_ours(by: str) -> bool:
    """Whether a daemon of ours did it."""
    return by not in PEOPLE and by not in ("slurm", "world", "filter")


def is_mark(extra: str) -> bool:
    """Whether the text is our mark on a job that the filter has held, whoever wrote it."""
    hints = mark.read(extra)
    return hints is not None and not hints.advised


#: The records, among those who know that a job was given to Slurm.
RECORDS = "records"


def is_note(extra: str) -> bool:
    """Whether the text is a mark that says that we do not hold the job."""
    hints = mark.read(extra)
    return hints is not None and hints.advised


def without_notes(extra: str) -> str:
    """The mark without what we add to it: the job's own nice value, its grant, and that we have given it to Slurm."""
    return " ".join(word for word in extra.split(" ") if not word.startswith(("nice=", "grant=")) and word != "advised")


def node_names(text: str) -> tuple[str, ...]:
    """The nodes of a list like `c1,c2`."""
    return tuple(filter(None, text.split(",")))


#: The priority that releases a job.
RELEASES = "4294967295"
#: What the words of `scontrol update` say, as names and values of a submission.
WORDS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "Nice": ("nice", int),
    "ReqNodeList": ("required", node_names),
    "ExcNodeList": ("excluded", node_names),
    "TresPerNode": ("tres", str),
    "MinMemoryCPU": ("memory_per_cpu_mb", int),
    "MinMemoryNode": ("memory_per_node_mb", lambda text: int(text) or None),
    "Extra": ("extra", str),
    "Comment": ("comment", str),
    "JobName": ("name", str),
    "Partition": ("partition", str),
    "QOS": ("qos", str),
    "TimeLimit": ("walltime_s", lambda minutes: int(minutes) * 60),
    "NumTasks": ("tasks", int),
    "ArrayTaskThrottle": ("array_limit", lambda text: int(text) or None),
}


@dataclass(eq=False, slots=True)
class Life:
    """One job. `wishes` is what was asked for at its submission and changed by people since.

    Attributes:
        state: waiting, running, suspended, ended or purged.
        hold: who holds it: ours, owner, admin or slurm (BadConstraints); empty if nobody does.
        owner_held_s, admin_held_s: since when its owner or an administrator holds it so that Slurm's record shows it.
            An owner's hold of a job that we hold already leaves no trace.
        is_requeued_held: whoever holds it has requeued it in the same command, and Slurm says so.
        is_forgotten_bad: its owner has held it while Slurm itself held it, and Slurm has forgotten why it did.
        placed: the nodes of our placement, as long as they are on the job; `boosted`: our nice value is.
        placed_s, placed_wall_s: when they were written into it last.
        last_nodes: those of our last placement, or what its first record takes for them, also after that was taken
            back; nodes_before: those of the one before.
        placed_by: who has placed it last. is_met_by_another: a scheduler that has not placed it has taken this
            placement back, or given the job to Slurm with it.
        whole_mb: the memory of a whole node, if our placement has given it that.
        is_memory_lost: slurmctld has gone back to an earlier placement, which gave it that; our record has a later one.
        ours_s: since when we hold it, or our placement is on it.
        held_by: the daemon of ours that has held it last, and when.
        requeued_s: when it was requeued after it ran by our placement, until somebody does something to it.
        given_s: since when it is Slurm's for good: we gave it, or have seen that its owner did. None: it is not.
        given_known: who knows that it was given to Slurm, besides its mark: the scheduler that gave it, the records.
        freed_s: when we have released it last.
        unverified: the schedulers that have taken its placement back and have not looked since.
        lifted: the daemon of ours whose update has lifted Slurm's own hold of the job, and when, until it goes on to
            release or hold the job.
        was_unheld: since its last placement a scheduler has seen that its hold of it was not in force.
        unseen: people have released it from our hold, or undone our placement, and no scheduler has looked since.
        is_cleared: people have cleared the node list of its last placement.
        unclear: its owner held it in a moment that left open whose hold it is; it may be placed, and may stay held.
        saved: when each daemon has last saved a record of it. known: a record of it was ever saved.
        claimed_by: the schedulers that have seen it with a mark that people wrote, in a cycle that has not ended well:
            they have a record of it that may not be saved.
        extra_s: when people last wrote its Extra; word_s: when they last wrote `advised` where it was not; `unnoted_s`:
            when that, or slurmctld's end, took `advised` out of the mark of a free job.
        recorded_s: since when the records have one of it, if they have.
        intended_s: when a placement of it was last recorded, whether it was sent or not.
        answered_s: when the scheduler had the answer to its last placement.
        marked: our mark is in its Extra; `marked_by_owner`: people have written it there.
        noted: the mark says `advised`: the filter never held the job, or we, or people, have given it to Slurm.
        is_told: a scheduler has written or seen that word, and has it on record.
        forgotten: the store was lost while it waited.
        overtaken: people changed it between our last look at it and our placement, which may have replaced the change.
        has_ended, has_succeeded: once, at least. A requeued job may run again after that.
        has_ended_held: it was held while it ran or completed, until it ended.
        started: how many times it has started; `allowed`: how many times it might.
        requeues: how many times it was requeued; `is_behind`: slurmctld has lost one, so our record is of a later run,
            or it has lost that it forgot the job, so we have none.
        forgotten_by: the schedulers that have seen it gone, which slurmctld has lost: each has dropped its record.
        was_unknown: it was requeued before any record of it was saved.
        is_start_lost: it ran, which a scheduler has seen, and slurmctld has lost that; no whole cycle has seen it wait.
        nices: the nice values that people have given it; lost_nice: those of them that slurmctld has lost.
        reverted_s: when slurmctld has lost something of it last.
        split_s: when it was split off its array, if it was.
        touched_s, people_s: when anything last happened to it; when a person last did something to it.
        takes: what it takes on each node while it has nodes.
    """

    id: int
    user: str
    wishes: dict[str, Any]
    submitted_s: float
    array: int | None = None
    state: str = "waiting"
    hold: str = ""
    owner_held_s: float | None = None
    admin_held_s: float | None = None
    is_requeued_held: bool = False
    is_forgotten_bad: bool = False
    placed: tuple[str, ...] = ()
    last_nodes: tuple[str, ...] = ()
    nodes_before: tuple[str, ...] = ()
    placed_s: float = 0.0
    placed_wall_s: float = 0.0
    placed_by: str = ""
    is_met_by_another: bool = False
    boosted: bool = False
    whole_mb: int | None = None
    is_memory_lost: bool = False
    ours_s: float = 0.0
    held_by: tuple[str, float] = ("", 0.0)
    requeued_s: float | None = None
    given_s: float | None = None
    given_known: set[str] = field(default_factory=set)
    freed_s: float = -1.0
    unverified: set[str] = field(default_factory=set)
    lifted: tuple[str, float] | None = None
    was_unheld: bool = False
    unseen: bool = False
    is_cleared: bool = False
    unclear: bool = False
    saved: dict[str, float] = field(default_factory=dict)
    known: bool = False
    claimed_by: set[str] = field(default_factory=set)
    extra_s: float = -1.0
    word_s: float = -1.0
    unnoted_s: float = -inf
    recorded_s: float = 0.0
    intended_s: float = -1.0
    answered_s: float = 0.0
    marked: bool = False
    marked_by_owner: bool = False
    noted: bool = False
    is_told: bool = False
    forgotten: bool = False
    overtaken: bool = False
    has_ended: bool = False
    has_succeeded: bool = False
    has_ended_held: bool = False
    started: int = 0
    allowed: int = 1
    requeues: int = 0
    is_behind: bool = False
    forgotten_by: set[str] = field(default_factory=set)
    was_unknown: bool = False
    is_start_lost: bool = False
    nices: set[int] = field(default_factory=set)
    lost_nice: set[int] = field(default_factory=set)
    started_s: list[float] = field(default_factory=list)
    reverted_s: float = -1.0
    split_s: float = -1.0
    touched_s: float = 0.0
    people_s: float = 0.0
    takes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_mark(self) -> bool:
        """Whether a mark is in its Extra that people or the submit filter wrote, with `advised` or without."""
        return mark.read(self.wishes["extra"]) is not None

    @property
    def is_claimed(self) -> bool:
        """Whether people have written our mark on a job that we did not know: it is planned like any other."""
        return self.marked_by_owner and not self.known and self.given_s is None

    @property
    def is_plain(self) -> bool:
        """Whether a job without a record is known as one that the filter held: by its mark, without a node list."""
        return self.marked and not self.wishes["required"]

    @property
    def is_marked_held(self) -> bool:
        """Whether we hold the job, or would if an administrator did not: a user's hold of it looks like ours."""
        is_known = self.marked or (self.known and not self.forgotten)
        return self.hold == "ours" or (self.hold == "admin" and is_known and self.given_s is None and not self.placed)

    @property
    def is_ours(self) -> bool:
        """Whether the job waits and carries our hold or our placement.

        A job without our nodes that Slurm or an administrator holds is left as it is, with our nice value, until it is
        released (CONTRIBUTING, "The state table").
        """
        if self.is_left and self.hold != "ours":
            return False
        is_left = self.hold in ("slurm", "admin")
        is_placed = bool(self.placed) and not self.is_unknown
        is_ours = (self.hold == "ours" and not self.unclear) or is_placed or (self.boosted and not is_left)
        return self.state == "waiting" and is_ours

    @property
    def is_unknown(self) -> bool:
        """Whether nobody can tell our nodes from its owner's: the record and our nice value are gone."""
        return self.forgotten and not self.boosted and not self.started

    @property
    def is_left(self) -> bool:
        """Whether it is Slurm's: while it is held, what is left of ours stays in it."""
        return bool(self.hold) and (self.noted or self.given_s is not None)

    @property
    def is_loose(self) -> bool:
        """Whether the job waits in Slurm's queue without anything of ours; our last nodes in its list count as ours."""
        has_our_nodes = bool(self.last_nodes) and set(self.wishes["required"]) == set(self.last_nodes)
        is_ours = self.placed or self.boosted or has_our_nodes
        return self.state == "waiting" and not self.hold and not is_ours

    @property
    def is_unheld(self) -> bool:
        """Whether a job whose placement was taken back shows that nobody holds it."""
        is_plain = not self.wishes["required"] and self.wishes["nice"] not in OUR_NICE
        return self.is_loose and is_plain and self.marked and self.given_s is None

    @property
    def is_nice_lost(self) -> bool:
        """Whether neither a record nor a mark of ours tells the job's own nice value any more.

        People wrote a nice value into the mark, or a mark of their own over that of a placed job.
        """
        is_note_lost = 0.0 < self.placed_s <= self.extra_s
        is_told = self.has_mark and "nice=" not in self.wishes["extra"] and not is_note_lost
        return self.forgotten and not is_told

    @property
    def runs(self) -> bool:
        """Whether the job has nodes."""
        return self.state in RUNNING

    def is_recorded_since(self, was: "Life") -> bool:
        """Whether the job was requeued in that past, and is on record as placed again or running again since."""
        if was.requeued_s is None:
            return False
        has_started = self.started > was.started and max(self.saved.values(), default=-1.0) > self.started_s[-1]
        return has_started or self.intended_s > was.requeued_s
