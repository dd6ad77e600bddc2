"""What the study compares: rules of the portfolio, objectives of the competition, and queues without one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from slurm_sns.policies.combined.batch import placing
from slurm_sns.policies.placement.heuristic_names import ADAPTIVE, IDLEST, OWN, RANDOM, RECORD
from slurm_sns.policies.placement.kernel_arrays import JobKinds
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.policies.placement.node_state_kernel import PER_UNIT
from slurm_sns.policies.placement.rules import Rules
from slurm_sns.policies.placement.use import use
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters
from slurm_sns.sim.engine.spreading_policies import CE, COMBINED, CS, SNS, policy_of
from slurm_sns.sim.replay.backfilling_loop import EASY
from slurm_sns.sim.replay.compiled_loop import advance
from slurm_sns.sim.replay.trace_replay import cluster_of, replay_in_order, to_the_end
from slurm_sns.sim.run import TraceRun
from slurm_sns.sim.trace import TraceArrays

#: Capacity is withheld for jobs that have waited so long at most, where that is limited.
LIMIT_S = 600
#: Over-aged jobs go first.
AGE_LIMIT_S = 6 * 3600
O1, O2, O3, O4, O5 = "O1", "O2", "O3", "O4", "O5"


@dataclass(frozen=True)
class Variant:
    """A policy, what differs from its rules, its objective, and beside which other variant it stands."""

    policy: str = COMBINED
    rules: Mapping[str, Any] = field(default_factory=dict)
    objective: str = O1
    is_easy: bool = False
    beside: str = "sns, one withheld"

    @property
    def is_plain(self) -> bool:
        """Whether a portfolio decides by the objective that the product has."""
        return self.objective == O1 and not self.is_easy

    @property
    def is_candidate(self) -> bool:
        """Whether it could be the default of `combined`: all of its members compete."""
        return self.policy == COMBINED


def alone(member: str) -> Variant:
    """One member with SNS's demands."""
    return Variant(rules={"portfolio": (member,)})


WITHHOLDING: Mapping[str, Mapping[str, Any]] = {
    "none withheld": {"reservations": 0},
    "one withheld": {"reservations": 1},
    "one withheld for ten minutes": {"reservations": 1, "withhold_up_to_s": LIMIT_S},
}
#: As `combined` and SNS were when the study was designed; SNS withholds nothing.
BEFORE: Mapping[str, Any] = {"ties": "list", "order": "paper", "reservations": 1}
MEMBERS = (
    "best-fit-memory",
    "worse-fit-memory",
    "best-fit-cores",
    "worse-fit-cores",
    "mix-fit",
    "best-fit-ways",
    "worse-fit-ways",
    "best-fit-bandwidth",
    "worse-fit-bandwidth",
)
SNS_WITHHOLDING = {f"sns, {name}": Variant(SNS, rules) for name, rules in WITHHOLDING.items()}
#: Each part by itself.
PARTS: Mapping[str, Variant] = {
    **SNS_WITHHOLDING,
    "combined": Variant(),
    "order adaptive": Variant(rules={"order": ADAPTIVE}),
    "ties by record": Variant(rules={"ties": RECORD}),
    "ties to idlest": Variant(rules={"ties": OWN}),
    "ties by chance": Variant(rules={"ties": RANDOM}),
    "none withheld": Variant(rules=WITHHOLDING["none withheld"], beside="sns, none withheld"),
    "one withheld for ten minutes": Variant(
        rules=WITHHOLDING["one withheld for ten minutes"], beside="sns, one withheld for ten minutes"
    ),
    **{f"{member} alone": alone(member) for member in MEMBERS},
    **{f"objective {each}": Variant(objective=each) for each in (O2, O3, O4, O5)},
    "sns, order adaptive": Variant(SNS, {"reservations": 0, "order": ADAPTIVE}, beside="sns, none withheld"),
    "ce": Variant(CE, beside="sns, none withheld"),
    "cs": Variant(CS, beside="sns, none withheld"),
    "easy over ce": Variant(CE, is_easy=True, beside="sns, none withheld"),
    "easy over sns": Variant(SNS, is_easy=True, beside="sns, none withheld"),
}


def rules_of(variant: Variant, parameters: SpreadingParameters) -> Rules:
    """The rules by which the variant matches."""
    if variant.is_easy:
        return replace(placing(variant.policy, parameters).rules, queue_depth=parameters.queue_depth)
    rules = policy_of(variant.policy, parameters).rules
    before = {name: value for name, value in BEFORE.items() if variant.policy in (COMBINED, SNS)}
    return replace(rules, **{**before, **variant.rules})


def replayed(
    node_arrays: NodeArrays, records: TraceArrays, variant: Variant, rules: Rules, *, interval_s: int
) -> TraceRun:
    """The run of the records under the variant."""
    if variant.is_easy:
        return replay_in_order(node_arrays, records, rules, EASY, interval_s=interval_s)
    if variant.objective == O4:
        # A project for each run time; all of them have the same use of their shares, so the shortest goes first.
        times, project = np.unique(records.run_s, return_inverse=True)
        records = replace(records, project=project.astype(np.int32), projects=[str(each) for each in times.tolist()])
    cluster = cluster_of(node_arrays, records, rules, dict.fromkeys(records.projects, 0.0), age_limit_s=AGE_LIMIT_S)
    if variant.objective == O4:
        cluster = cluster._replace(queue=cluster.queue._replace(order=np.zeros(len(records), np.int64)))
    _weigh(cluster.bench.node_state.problem.kinds, records, variant.objective, node_arrays)
    return to_the_end(records, cluster, rules.portfolio, lambda cycles: advance(cluster, cycles, interval_s))


def _weigh(kinds: JobKinds, records: TraceArrays, objective: str, node_arrays: NodeArrays) -> None:
    """Put what the objective makes of each choice into the kernel's tables."""
    run_s = dict(zip(records.kind.tolist(), records.run_s.tolist(), strict=True))
    for kind, alternatives in enumerate(records.choices):
        rows = slice(kinds.first[kind], kinds.first[kind + 1])
        slowdown = np.array([each.slowdown for each in alternatives])
        node_seconds = slowdown * [each.nodes for each in alternatives] * run_s[kind]
        match objective:
            case "O2":
                kinds.gain[rows], kinds.cost[rows] = np.rint(PER_UNIT / slowdown), 0
            case "O3":
                kinds.cost[rows] = np.rint([PER_UNIT * use(each, node_arrays) for each in alternatives])
            case "O5":
                # Among schedules that give back equally much the one with more jobs.
                kinds.gain[rows], kinds.cost[rows] = np.rint(1000 * (node_seconds[0] - node_seconds)), -1


# --- the final comparison

#: By part: the values that compete, and the variants of PARTS that stand for them.
CHOICES: Mapping[str, Mapping[str, str]] = {
    "order": {"paper": "combined", "adaptive": "order adaptive"},
    "ties": {"list": "combined", "record": "ties by record", "own": "ties to idlest"},
    "withholding": {name: "combined" if name == "one withheld" else name for name in WITHHOLDING},
    "portfolio": {"all": "combined", IDLEST: "sns, one withheld", **{each: f"{each} alone" for each in MEMBERS}},
    "objective": {O1: "combined", **{each: f"objective {each}" for each in (O2, O3, O5)}},
}
NOW, TOGETHER = "combined, as before", "all together"


def final_variants(chosen: Mapping[str, str], safe: Iterable[str] = ()) -> dict[str, Variant]:
    """The variants of the final comparison: the chosen value of each part, all of them together, and the safe ones."""
    rules: dict[str, Any] = {}
    found = {NOW: Variant(), **{name: PARTS[name] for name in safe}}
    for part, value in chosen.items():
        name = CHOICES[part][value]
        if name == "combined":
            continue
        of = alone(IDLEST) if value == IDLEST else PARTS[name]
        found[name] = of
        rules |= of.rules
    objective = chosen["objective"]
    found[TOGETHER] = Variant(rules=rules, objective=objective, beside=f"sns, {chosen['withholding']}")
    return found | SNS_WITHHOLDING | {name: PARTS[name] for name in ("sns, order adaptive", "ce", "cs")}
