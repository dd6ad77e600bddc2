"""The pages on Max-Jobs share this: the finished runs of sweeps, quantities, and what varying does to claims.

`comparisons` names what is compared of waits, slowdowns and queues, `points` what is compared of shares of wins.
Policies are compared in pairs, by seed. The best rival of a policy is the one with the least mean over the seeds.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO, MatchingParameters
from slurm_sns.sim.pages.judge import (
    FAILS,
    HOLDS,
    IDENTICAL,
    UNDECIDED,
    Claim,
    Interval,
    Quantity,
    interval,
    percent_more,
    worst,
)
from slurm_sns.sim.pages.running import DataTable, Options
from slurm_sns.sim.workloads.netbatch_pools import CALIBRATED_BETAS, POOLS, WAITS_S
from sns_reproductions.netbatch_sweeps import HIGHEST_LOAD, INTERVAL_S, MAX_JOBS, Run, Sweep

#: One value for each seed.
Samples = NDArray[np.float64]
#: What sweeps are known by.
Key = TypeVar("Key")

WAIT = "mean_wait_s"
METRICS = (WAIT, "mean_slowdown", "mean_queue_length")
MIX, BEST_MEMORY = "mix-fit", "best-fit-memory"
#: The levels of load of a sweep with betas of equal queueing, in words.
LEVELS = dict(zip(WAITS_S, ("the highest load", "mid load"), strict=True))
#: Rivals that are the mean of several policies.
MEANS = {
    "the mean of the five": PAPER_PORTFOLIO,
    "the mean of the others": tuple(policy for policy in PAPER_PORTFOLIO if policy != MIX),
}
#: What the texts say of the experiments.
ABOUT: Mapping[str, Any] = {
    "interval_s": INTERVAL_S,
    "cycle": MatchingParameters(),
    "highest_load": HIGHEST_LOAD,
    "calibrated_betas": [beta for of_pool in CALIBRATED_BETAS.values() for beta in of_pool.values()],
    "waits_s": WAITS_S,
}

# --- sweeps


@dataclass(frozen=True)
class Results:
    """The finished runs of a sweep: (pool, beta) -> policy -> runs by seed. `group` is its name on the page."""

    sweep: Sweep
    runs: Mapping[tuple[str, float], Mapping[str, Sequence[Run]]]
    group: str = ""

    @property
    def pools(self) -> tuple[str, ...]:
        """Those that have finished runs."""
        return tuple(dict.fromkeys(pool for pool, _ in self.runs))

    @property
    def betas(self) -> tuple[float, ...]:
        """Those at which every pool has finished runs, the lowest load first."""
        return tuple(dict.fromkeys(beta for _, beta in self.runs))

    @property
    def highest(self) -> float:
        """The beta of the highest load."""
        return min(self.betas)

    @property
    def middle(self) -> float:
        """The beta next to it."""
        return min((beta for beta in self.betas if beta != self.highest), default=self.highest)

    def count(self, pool: str, beta: float | None = None) -> int:
        """The number of seeds of a pool, at the highest load unless `beta` is given."""
        return len(next(iter(self.runs[pool, beta or self.highest].values())))

    def counts(self, beta: float) -> dict[str, int]:
        """The number of seeds by pool."""
        return {pool: self.count(pool, beta) for pool in self.pools}

    def of(self, pool: str, policy: str, metric: str = WAIT, beta: float | None = None) -> Samples:
        """One metric by seed, at the highest load unless `beta` is given."""
        return np.array([run[metric] for run in self.runs[pool, beta or self.highest][policy]], dtype=np.float64)

    def mean(self, pool: str, policy: str, metric: str = WAIT, beta: float | None = None) -> float:
        """The mean over the seeds."""
        return float(self.of(pool, policy, metric, beta).mean())

    def load(self, pool: str, beta: float) -> float:
        """The load in percent of capacity, of the scarcer of cores and memory: that of the jobs, for every policy."""
        some = next(iter(self.runs[pool, beta]))
        return max(self.mean(pool, some, metric, beta) for metric in ("load_cores", "load_memory"))

    def loads(self) -> list[float]:
        """The loads of all pools and betas."""
        return [self.load(pool, beta) for pool, beta in self.runs]

    def waits(self, policy: str) -> list[float]:
        """The mean waits under a policy, of all pools and betas."""
        return [self.mean(pool, policy, beta=beta) for pool, beta in self.runs]

    def told(self, beta: float) -> str:
        """One of the sweep's betas in words: of a calibrated sweep it only names a level of load."""
        return LEVELS[beta] if self.sweep.calibrated else f"beta {beta:g}"

    def ranked(
        self, pool: str, without: Sequence[str] = (), metric: str = WAIT, beta: float | None = None
    ) -> list[str]:
        """The paper's heuristics but for some by their mean over the seeds, the smallest first."""
        heuristics = (policy for policy in PAPER_PORTFOLIO if policy not in without)
        return sorted(heuristics, key=lambda policy: self.mean(pool, policy, metric, beta))

    def percents(self, pool: str, metric: str = WAIT, beta: float | None = None) -> dict[str, Samples]:
        """By how many percent one policy is above another, or above some of MEANS."""
        known = {policy: self.of(pool, policy, metric, beta) for policy in self.runs[pool, beta or self.highest]}
        rivals = known | {name: np.mean([known[each] for each in members], axis=0) for name, members in MEANS.items()}
        return {
            f"{one} above {other}": percent_more(known[one], rivals[other])
            for one in known
            for other in rivals
            if one != other
        }

    def above(self, pool: str, one: str, other: str, beta: float | None = None) -> Interval:
        """By how many percent the wait under policy `one` is above that under the other."""
        return interval(percent_more(self.of(pool, one, beta=beta), self.of(pool, other, beta=beta)))

    def largest_reduction(self, mean: str = "") -> tuple[str, float, str]:
        """Where Max-Jobs' wait is least in percent of a rival's: pool, beta, rival; without `mean` the best of five."""
        found = [(pool, beta, mean or self.ranked(pool, beta=beta)[0]) for pool in self.pools for beta in self.betas]

        def percent(at: tuple[str, float, str]) -> float:
            pool, beta, rival = at
            return float(self.percents(pool, beta=beta)[f"{MAX_JOBS} above {rival}"].mean())

        return min(found, key=percent)

    def lines(self, pool: str, metric: str) -> dict[str, list[tuple[float, Interval]]]:
        """The lines of one pool's panel: policy -> (load in percent, metric) at each load."""
        return {
            policy: [(self.load(pool, beta), interval(self.of(pool, policy, metric, beta))) for beta in self.betas]
            for policy in self.sweep.policies
        }


def finished(sweeps: Mapping[Key, Sweep], needed: float = HIGHEST_LOAD) -> dict[Key, Results]:
    """The runs of the pools that have at least two complete seeds at the needed load.

    Sweeps without such pools are left out; so are loads at which not every such pool has two.
    """
    found = {}
    for key, sweep in sweeps.items():
        pools = [pool for pool in sweep.pools if sweep.complete(needed, pool) > 1]
        betas = sorted((b for b in sweep.betas if all(sweep.complete(b, pool) > 1 for pool in pools)), reverse=True)
        runs = {
            (pool, beta): {policy: sweep.read(pool, beta, policy) for policy in sweep.policies}
            for pool in pools
            for beta in betas
        }
        if pools:
            found[key] = Results(sweep, runs, str(key))
    return found


def fewest(results: Iterable[Results]) -> int:
    """The number of seeds that every pool has at the highest load; 0 if nothing is finished."""
    return min((each.count(pool) for each in results for pool in each.pools), default=0)


def comparisons(results: Iterable[Results]) -> dict[str, Quantity]:
    """By how many percent policies are above others. The names are: GROUP POOL METRIC at BETA: ONE above OTHER.

    A difference of two percentages in points has both metrics, or the middle and the highest load, in its name.
    """
    found: dict[str, Quantity] = {}
    for each in results:
        high, middle = each.highest, each.middle
        for pool in each.pools:
            of = {(metric, beta): each.percents(pool, metric, beta) for metric in METRICS for beta in each.betas}
            for metric in METRICS[1:]:
                of[f"{metric} - {WAIT}", high] = _differences(of[metric, high], of[WAIT, high])
            of[WAIT, f"{middle} - {high}"] = _differences(of[WAIT, middle], of[WAIT, high])  # type: ignore[index]
            found |= {
                f"{each.group} {pool} {metric} at {beta}: {name}": values
                for (metric, beta), percents in of.items()
                for name, values in percents.items()
            }
    return found


def _differences(one: Mapping[str, Samples], other: Mapping[str, Samples]) -> dict[str, Samples]:
    """By name and seed, over the seeds that both have."""
    found = {}
    for name in one:
        seeds = min(len(one[name]), len(other[name]))
        found[name] = one[name][:seeds] - other[name][:seeds]
    return found


# --- mean waits alone

#: (pool, what is varied) -> policy -> mean wait in seconds, by seed.
Waits = Mapping[tuple[str, Any], Mapping[str, Samples]]


def waits_of(
    options: Options, folder: str, compare: Callable[..., Any], varied: Sequence[Any], size: tuple[float, float]
) -> dict[tuple[str, Any], dict[str, Samples]]:
    """Of every pool the waits by what is varied; pieces are (pool, varied, seed, scale, days)."""
    keys, seeds = list(product(varied, POOLS)), range(1, options.seeds + 1)
    found = options.results(folder, compare, ((pool, of, seed, *size) for seed in seeds for of, pool in keys))
    waits = {}
    for of, pool in keys:
        by_seed = [found[pool, of, seed, *size] for seed in seeds]
        waits[pool, of] = {policy: np.array([each[policy] for each in by_seed]) for policy in by_seed[0]}
    return waits


def above(waits: Waits) -> dict[str, Quantity]:
    """By how many percent policies are above others. The names are: POOL VARIED: ONE above OTHER."""
    return {
        f"{pool} {varied}: {one} above {other}": percent_more(of[one], of[other])
        for (pool, varied), of in waits.items()
        for one in of
        for other in of
        if one != other
    }


def beside(stem: str, varied: str, waits: Waits, policies: Iterable[str], *, shown_only: bool = False) -> DataTable:
    """The mean wait under Max-Jobs, and by how many percent the wait under others is above it."""
    others = [policy for policy in policies if policy != MAX_JOBS]
    rows = [
        (
            *key,
            float(of[MAX_JOBS].mean()),
            *(interval(percent_more(of[each], of[MAX_JOBS])) if each in of else "" for each in others),
        )
        for key, of in waits.items()
    ]
    return DataTable(stem, ("pool", varied, "max-jobs (s)", *(f"{each} (%)" for each in others)), rows, shown_only)


# --- wins

#: Of a heuristic the one of the others that wins the most.
NEXT_BEST = "the best other"


@dataclass(frozen=True)
class Shares:
    """Pool -> heuristic -> percent of what it wins (buckets, or cycles), by seed. `group` is its name on the page."""

    won: Mapping[str, Mapping[str, Samples]]
    group: str = ""

    @property
    def pools(self) -> tuple[str, ...]:
        """The pools that are there."""
        return tuple(self.won)

    def best(self, pool: str, without: str = "", among: Sequence[str] = ()) -> str:
        """The heuristic that wins the most, of all but one or among some."""
        members = [each for each in among or self.won[pool] if each != without]
        return max(members, key=lambda member: float(self.won[pool][member].mean()))

    def ranked(self, pool: str, among: Sequence[str] = ()) -> list[str]:
        """The heuristics by what they win, the least first."""
        return sorted(among or self.won[pool], key=lambda member: float(self.won[pool][member].mean()))

    def pools_by(self, member: str) -> list[str]:
        """The pools by what a heuristic wins there, the least first."""
        return sorted(self.won, key=lambda pool: float(self.won[pool][member].mean()))

    def points(self, pool: str) -> dict[str, Samples]:
        """What each wins, and by how many points one is ahead of another, or of the best of the others."""
        won = self.won[pool]
        found = {f"{one} - {other}": won[one] - won[other] for one in won for other in won if one != other}
        ahead = {f"{one} - {NEXT_BEST}": won[one] - won[self.best(pool, one)] for one in won}
        return {**won, **found, **ahead}


def by_member(members: Iterable[str], of_seeds: Sequence[Sequence[float]]) -> dict[str, Samples]:
    """Samples by heuristic, from the numbers of all heuristics by seed."""
    return dict(zip(members, np.array(of_seeds).T, strict=True))


def points(shares: Iterable[Shares], buckets: Mapping[str, Mapping[str, Samples]] | None = None) -> dict[str, Quantity]:
    """Shares and their differences by name: GROUP POOL: ONE - OTHER; of two pools, GROUP POOL - POOL: ONE - OTHER.

    With `buckets` also what is won of cycles less what is won of buckets, which have the name of a pool.
    """
    found: dict[str, Quantity] = {}
    for each in shares:
        of = {pool: each.points(pool) for pool in each.pools}
        between = {f"{one} - {other}": _differences(of[one], of[other]) for one in of for other in of if one != other}
        over = (
            {f"{pool} - buckets": _differences(won, buckets[pool]) for pool, won in each.won.items()} if buckets else {}
        )
        found |= {
            f"{each.group} {at}: {name}": values
            for at, named in {**of, **between, **over}.items()
            for name, values in named.items()
        }
    return found


def wins_of(results: Results) -> Shares:
    """Percent of the cycles with a waiting job in which each heuristic reaches the maximum of Max-Jobs' portfolio."""
    won = {}
    for pool in results.pools:
        runs = results.runs[pool, results.highest][MAX_JOBS]
        won[pool] = {
            member: np.array([100 * run["wins"][member] / run["cycles_with_waiting"] for run in runs])
            for member in PAPER_PORTFOLIO
        }
    return Shares(won, results.group)


# --- what a claim hangs on

EVERYWHERE, NOWHERE, HANGS = "holds everywhere", "fails everywhere", "hangs on it"
#: The seeds do not suffice to tell for some variants; for the others the verdict is the same.
HOLDS_TOLD, FAILS_TOLD = "holds where it can be told", "fails where it can be told"


def verdicts(claims: Iterable[Claim], text: str) -> dict[str, str]:
    """The verdict on a claim by the variant in which it stands (`where`): the worst of its rows there."""
    found: dict[str, list[str]] = {}
    for claim in claims:
        if claim.text == text:
            found.setdefault(claim.where, []).append(claim.verdict)
    return {where: worst(each) for where, each in found.items()}


def called(claims: Sequence[Claim]) -> DataTable:
    """What becomes of each claim, as `call` says."""
    texts = dict.fromkeys(claim.text for claim in claims)
    return DataTable("called", ("claim", "called"), [(text, call(claims, text)) for text in texts])


def call(claims: Sequence[Claim], text: str) -> str:
    """What becomes of a claim under all variants.

    Only a verdict counts as a difference: where one cannot tell, or where policies gave identical results, the claim is
    not called by that variant.
    """
    found = verdicts(claims, text)
    unknown, holding, failing, identical = (
        ", ".join(where for where, verdict in found.items() if verdict == each)
        for each in (UNDECIDED, HOLDS, FAILS, IDENTICAL)
    )
    if identical and not (unknown or holding or failing):
        return IDENTICAL
    open_ones = f"; {UNDECIDED}: {unknown}" if unknown else ""
    if holding and failing:
        return f"{HANGS}: holds with {holding}; fails with {failing}{open_ones}"
    if unknown and (holding or failing):
        return f"{HOLDS_TOLD if holding else FAILS_TOLD}: with {holding or failing}{open_ones}"
    if unknown:
        return f"{UNDECIDED}: {unknown}"
    but_for = f"; identical with {identical}" if identical else ""
    return f"{EVERYWHERE if holding else NOWHERE}{but_for}"
