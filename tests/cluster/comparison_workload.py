"""Random submissions for the comparison with Slurm alone: the same seed makes the same list.

A mix gives the frequency of each kind of submission. Sizes, memory, time limits and run times are drawn for the mini
cluster (containers/etc/slurm.conf): c1-4 of 28 cores, s1-2 of 4 cores. A job runs for a few seconds; a queue builds up.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from random import Random

USERS = ("alice", "bob")
#: The account with a limit of cores; alice is its only user.
LIMITED_ACCOUNT, LIMITED_CORES = "limited", 12
#: Memory per core in MiB: little, about a core's equal part of a c node, and twice that, which makes packing hard.
MEMORY_MB = (500, 500, 1500, 1500, 4500, 9000)
#: Time limits in minutes: jobs with short ones can be backfilled. No scheduler knows that all jobs end within seconds.
LIMITS_MIN = (1, 1, 2, 5, 15, 60)
#: Seconds of work; two hundred jobs of all kinds take almost a minute.
RUN_TIMES_S = (1, 1, 2, 2, 3, 4, 6, 8)
#: Cores of one c node, for parts that must fit on it.
C_CORES = 28


@dataclass(frozen=True)
class Shape:
    """A job's demand: tasks of one core each, on `nodes_min` to `nodes_max` nodes (None: the job does not say)."""

    tasks: int
    memory_per_core_mb: int
    partition: str = "main"
    nodes_min: int | None = None
    nodes_max: int | None = None
    tasks_per_node: int | None = None
    exclusive: bool = False

    def options(self) -> str:
        """The shape as options of sbatch."""
        words = [f"-p {self.partition}", f"--mem-per-cpu={self.memory_per_core_mb}M"]
        if self.nodes_min is not None:
            exact = self.nodes_max == self.nodes_min
            words.append(f"-N{self.nodes_min}" if exact else f"-N{self.nodes_min}-{self.nodes_max}")
        words.append(f"-n{self.tasks}" if self.tasks_per_node is None else f"--ntasks-per-node={self.tasks_per_node}")
        return " ".join([*words, *(["--exclusive"] if self.exclusive else [])])

    def in_equal_parts(self) -> "Shape":
        """The shape that slurm_sns gives a job that only says its tasks: equal parts on the fewest nodes."""
        if self.nodes_min is not None or self.exclusive:
            return self
        parts = ceil(self.tasks / C_CORES)
        tasks = ceil(self.tasks / parts)
        return replace(self, nodes_min=parts, nodes_max=parts, tasks_per_node=tasks)


@dataclass(frozen=True)
class Submission:
    """One job to submit, `at_s` seconds after the beginning of the run.

    `after` is the index of the submission on which it depends, `dependency` the kind of dependency (afterok ...). A
    held job is released `release_s` seconds after its submission, or never (None). `further`: more options of sbatch.
    """

    at_s: float
    kind: str
    user: str
    shape: Shape
    limit_min: int
    sleep_s: int
    dependency: str | None = None
    after: int | None = None
    is_held: bool = False
    release_s: float | None = None
    further: str = ""

    @property
    def is_limited(self) -> bool:
        """Whether a limit of its association may keep it from starting."""
        return self.kind == "limited"

    @property
    def never_runs(self) -> bool:
        """Whether its owner never releases it."""
        return self.is_held and self.release_s is None

    def options(self) -> str:
        """All options of sbatch but the dependency: the other job gets its number only when it is submitted."""
        hold = "-H" if self.is_held else ""
        return " ".join(each for each in (f"-t {self.limit_min}", self.shape.options(), hold, self.further) if each)


#: Weights of all kinds of submissions.
EVERYTHING: Mapping[str, int] = {
    "narrow": 52,
    "small": 10,
    "wide": 6,
    "exclusive": 2,
    "range": 4,
    "plain": 6,
    "off": 5,
    "limited": 5,
    "held": 4,
    "dependent": 6,
}
#: Managed jobs of many shapes only, more than the nodes hold at a time: matching has a choice.
MATCHING: Mapping[str, int] = {"narrow": 60, "broad": 30, "wide": 10}


def generate(seed: int, count: int, duration_s: float, mix: Mapping[str, int] = EVERYTHING) -> list[Submission]:
    """`count` submissions at random times within `duration_s` seconds, in the order of these times."""
    random = Random(seed)
    moments = sorted(round(random.uniform(0, duration_s), 2) for _ in range(count))
    kinds = random.choices(list(mix), list(mix.values()), k=count)
    made: list[Submission] = []
    for at_s, kind in zip(moments, kinds, strict=True):
        each = _submission(random, at_s, kind)
        made.append(_dependent(random, each, made) if kind == "dependent" else each)
    return made


def _submission(random: Random, at_s: float, kind: str) -> Submission:
    shape = _SHAPES.get(kind, _narrow)(random)
    # Jobs over several nodes are short: a few of them must not be most of the work.
    sleep_s = random.choice((1, 1, 2, 3) if kind in ("wide", "exclusive") else RUN_TIMES_S)
    made = Submission(at_s, kind, random.choice(USERS), shape, random.choice(LIMITS_MIN), sleep_s)
    if kind == "limited":
        shape = replace(shape, tasks=min(shape.tasks, LIMITED_CORES))
        return replace(made, user=USERS[0], further=f"-A {LIMITED_ACCOUNT}", shape=shape)
    if kind == "off":
        return replace(made, further="--comment sns:off")
    if kind == "held":
        return replace(made, is_held=True, release_s=random.choice((None, round(random.uniform(2, 8), 2))))
    return made


def _dependent(random: Random, made: Submission, before: Sequence[Submission]) -> Submission:
    """The submission with a dependency on one of the last ten that will run; unchanged if there is none."""
    candidates = [number for number, each in enumerate(before) if not each.never_runs][-10:]
    if not candidates:
        return made
    return replace(made, dependency=random.choice(("afterok", "afterany")), after=random.choice(candidates))


def _narrow(random: Random) -> Shape:
    """A job that fits on one node; a third of them say -N1, the others only their number of tasks."""
    tasks, memory_mb = random.choice((1, 1, 2, 3, 4, 6, 8)), random.choice(MEMORY_MB)
    if random.random() < 1 / 3:
        return Shape(tasks, memory_mb, nodes_min=1, nodes_max=1)
    return Shape(tasks, memory_mb)


def _broad(random: Random) -> Shape:
    """A job on one node, from a small part of it to all of it, in cores and in memory."""
    return Shape(random.choice((1, 2, 4, 8, 14, 20, 28)), random.choice((500, 1500, 4500)), nodes_min=1, nodes_max=1)


def _small(random: Random) -> Shape:
    return Shape(random.choice((1, 1, 2, 3, 4)), random.choice((500, 2000, 4000, 8000)), "small", 1, 1)


def _wide(random: Random) -> Shape:
    """A job over several nodes: on all four, on two of them, or with more tasks than a node has cores."""
    kind = random.randrange(3)
    if kind == 0:
        per_node = random.choice((1, 4, 10))
        return Shape(4 * per_node, 1500, nodes_min=4, nodes_max=4, tasks_per_node=per_node)
    if kind == 1:
        per_node = random.choice((4, 8, 14))
        return Shape(2 * per_node, 1500, nodes_min=2, nodes_max=2, tasks_per_node=per_node)
    return Shape(random.choice((32, 40, 48)), 1500)


def _exclusive(random: Random) -> Shape:
    nodes = random.choice((1, 1, 2))
    return Shape(nodes, 500, nodes_min=nodes, nodes_max=nodes, exclusive=True)


def _range(random: Random) -> Shape:
    return Shape(random.choice((6, 12, 24)), 1500, nodes_min=random.choice((1, 2)), nodes_max=3)


def _plain(random: Random) -> Shape:
    return replace(_narrow(random), partition="plain")


_SHAPES: Mapping[str, Callable[[Random], Shape]] = {
    "broad": _broad,
    "small": _small,
    "wide": _wide,
    "exclusive": _exclusive,
    "range": _range,
    "plain": _plain,
}
