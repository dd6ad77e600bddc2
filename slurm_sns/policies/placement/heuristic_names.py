"""The names of heuristics and rules, for what must not import these themselves: they need numpy."""

#: The heuristic that chooses nodes as Spread-n-Share does.
IDLEST = "idlest"
#: The matching paper's own.
MIX_FIT = "mix-fit"
#: Ranks nodes by their free GPUs, for jobs with GPUs and without.
BEST_FIT_GPUS = "best-fit-gpus"
#: The heuristics for jobs whose demand in ways and bandwidth is known from a profile.
FOR_PROFILED_JOBS = ("best-fit-ways", "worse-fit-ways", "best-fit-bandwidth", "worse-fit-bandwidth", IDLEST)
#: How much more an occupied share of the cache counts than one of cores or bandwidth (the prototype's value).
PAPER_BETA = 2.0

#: All of them, in the order in which they are listed.
NAMES = (
    "first-fit",
    "best-fit-cores",
    "best-fit-memory",
    "worse-fit-cores",
    "worse-fit-memory",
    MIX_FIT,
    BEST_FIT_GPUS,
    "memory-first-best",
    "memory-first-worse",
    *FOR_PROFILED_JOBS,
)

#: Whose schedule wins among equally good ones (module `ties`).
LIST, OWN, RECORD, RANDOM = "list", "own", "record", "random"
#: The order in which a job's alternatives are tried: best first; or so only if the whole queue starts then, else by use
#: of the cluster, least first (module `use`).
PAPER, ADAPTIVE = "paper", "adaptive"


def heuristics() -> tuple[str, ...]:
    """The names of all heuristics."""
    return NAMES


def tie_rules() -> tuple[str, ...]:
    """The names of all rules for ties."""
    return LIST, OWN, RECORD, RANDOM


def fixed_tie_rules() -> tuple[str, ...]:
    """Those by which a plan does not depend on the plans before it."""
    return LIST, OWN


def alternative_orders() -> tuple[str, ...]:
    """The names of the orders of alternatives."""
    return PAPER, ADAPTIVE
