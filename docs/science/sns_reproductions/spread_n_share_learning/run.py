"""Profiles that are learnt from the jobs that run (sections 4.1, 4.2 and 5.1): the rules line by line, and the cost.

Batches of random jobs arrive on 8 nodes. Nothing is known of the programs at first; the first jobs of each (program,
processes) explore (module learning_cluster), with errors. Over all exploring runs we count how often each rule of the
paper's text was broken. The same jobs also run under CE, under CS, and under SNS with known profiles.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from slurm_sns.policies.spread_n_share.classify import classify
from slurm_sns.policies.spread_n_share.exploration import Exploration, ExplorationStep
from slurm_sns.policies.spread_n_share.learning import Key
from slurm_sns.policies.spread_n_share.parameters import REPRODUCTION
from slurm_sns.sim.engine.matching import Simulation
from slurm_sns.sim.engine.spreading_policies import CE, CS, SNS, policy_of, progress_of
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import Quantity, in_pairs
from slurm_sns.sim.pages.running import Options, PageResults, Piece
from slurm_sns.sim.profiling.learning_cluster import SAMPLED_WAYS, Laboratory, LearningCluster, laboratory_of
from slurm_sns.sim.progress.progress import PlacedRun
from slurm_sns.sim.request import CONTENTION
from slurm_sns.sim.traces.program_trace import ProgramJob, TraceReader
from slurm_sns.sim.workloads.sequences import PAPER_JOBS, sequence
from sns_reproductions import spread_n_share as sns

BATCHES, EVERY_S = 96, 1800
EXPLORATION = Exploration(REPRODUCTION)
#: Section 5.1: at most two profiling runs for each of four scales.
MOST_RUNS, MOST_AT_A_SCALE = 8, 2
#: The jobs of the last quarter of the batches, when most is known.
LATE = slice(BATCHES * 3 // 4 * PAPER_JOBS, None)


def stream(seed: int) -> tuple[ProgramJob, ...]:
    """The jobs of all batches, by submit."""
    return tuple(
        ProgramJob(batch * 1000 + at, float(batch * EVERY_S), member.run_s, member.program, member.processes, None)
        for batch in range(BATCHES)
        for at, member in enumerate(sequence(sns.members(), BATCHES * seed + batch))
    )


class Explored(NamedTuple):
    """An exploring run: its program, what it was for, and what is known of the run time of its scale afterwards."""

    key: Key
    step: ExplorationStep
    time_s: float = 0.0


class RecordedCluster(LearningCluster):
    """Learning whose exploring runs are noted by job."""

    def __init__(self, laboratory: Laboratory, *rest: Any) -> None:
        super().__init__(laboratory, *rest)
        self._watched = laboratory
        self.explored: dict[int, Explored] = {}

    def finish(self, placed: PlacedRun) -> Iterable[PlacedRun]:
        """As in LearningCluster."""
        exploring = self._watched.steps.get(placed.job.id)
        changed = super().finish(placed)
        if exploring is not None:
            key, step = exploring
            known = self._watched.of(key).gathering[step.scale]
            self.explored[placed.job.id] = Explored(key, step, known.time_s.mean)
        return changed


def learn(
    jobs: Sequence[ProgramJob], error: float, seed: int
) -> tuple[tuple[PlacedRun, ...], dict[int, Explored], Laboratory]:
    """The jobs' placements while profiles are learnt, which jobs explored, and what is known in the end."""
    nodes, programs = sns.cluster(), sns.shipped_programs()
    read = TraceReader(nodes, SNS, programs, REPRODUCTION).of_programs("the stream", jobs)
    laboratory = laboratory_of(nodes, programs, EXPLORATION, spread=error, seed=seed)
    exploring = RecordedCluster(
        laboratory, policy_of(SNS, REPRODUCTION), progress_of(CONTENTION, SNS, nodes, read.model), read.profiled
    )
    depth = REPRODUCTION.queue_depth
    simulation = Simulation(
        nodes, read.trace, exploring, queue_depth=depth, interval_s=sns.INTERVAL_S, progress=exploring
    )
    return simulation.run().placements, exploring.explored, laboratory


def run_stream(known: str, learnt: Mapping[str, float], piece: Piece) -> dict[str, Any]:
    """One stream under CE, CS, SNS with known profiles, and learning at each size of error."""
    seed = int(piece[1])
    jobs = stream(seed)
    found: dict[str, Any] = {
        name: sns.kept(sns.place(policy, CONTENTION, jobs)) for name, policy in ((CE, CE), (CS, CS), (known, SNS))
    }
    for name, error in learnt.items():
        placements, explored, laboratory = learn(jobs, error, seed)
        found[name] = {
            **sns.kept(placements),
            "cost": {**cost(placements, explored), "right_classes": right_classes(laboratory)},
            "broken": rules_broken(placements, explored, laboratory),
        }
    return found


#: Exploring runs of one program in the order of their starts, from a first timing at scale 1 on.
Round = list[tuple[PlacedRun, Explored]]


def rounds_of(placements: Sequence[PlacedRun], explored: Mapping[int, Explored]) -> dict[Key, list[Round]]:
    """The exploring runs by program; a new round begins where a profile is measured again from scale 1 on."""
    rounds: dict[Key, list[Round]] = {}
    for placed in sorted(placements, key=lambda each: each.start_s):
        mine = explored.get(placed.job.id)
        if mine is not None:
            of_key = rounds.setdefault(mine.key, [])
            if mine.step == ExplorationStep(1, samples=False) or not of_key:
                of_key.append([])
            of_key[-1].append((placed, mine))
    return rounds


def cost(placements: Sequence[PlacedRun], explored: Mapping[int, Explored]) -> dict[str, float]:
    """What exploring took: its runs, the jobs submitted until all was known, and the share of the node-seconds."""
    rounds = rounds_of(placements, explored)
    last_end_s = max(float(placed.end_s) for first, *_ in rounds.values() for placed, _ in first)
    held = sum(
        each.alternative.nodes * float(each.end_s - each.start_s) for each in placements if each.job.id in explored
    )
    return {
        "exploring_runs": float(sum(each.job.id in explored for each in placements)),
        "renewals": float(sum(len(of_key) - 1 for of_key in rounds.values())),
        "jobs_until_known": float(sum(each.job.submit_s <= last_end_s for each in placements)),
        "hours_until_known": last_end_s / 3600,
        "exploring_share": 100 * held / (sns.PAPER_NODES * max(float(each.end_s) for each in placements)),
    }


def rules_broken(
    placements: Sequence[PlacedRun], explored: Mapping[int, Explored], laboratory: Laboratory
) -> Counter[str]:
    """How often each rule was broken, over all exploring runs."""
    by_id = {each.job.id: each for each in placements}
    broken = Counter(extra_jobs=len(explored.keys() - by_id.keys()))
    for mine in (by_id[job_id] for job_id in explored):
        broken["not_alone"] += any(_share_nodes(mine, other) for other in placements if other is not mine)
        broken["too_thin"] += mine.alternative.demand.cores < EXPLORATION.min_cores_per_node
    for key, rounds in rounds_of(placements, explored).items():
        runs = [run for group in rounds for run in group]
        broken["parallel"] += sum(later.start_s < earlier.end_s for (earlier, _), (later, _) in pairwise(runs))
        for group in rounds:
            broken.update(broken_in_a_round([mine for _, mine in group]))
        broken["other_points"] += sum(
            not evidence.ipc.keys() == evidence.bandwidth_gbps.keys() == set(SAMPLED_WAYS)
            for evidence in laboratory.of(key).current.values()
            if evidence.is_sampled
        )
    return broken


def broken_in_a_round(group: Sequence[Explored]) -> dict[str, bool]:
    """The rules about the order of scales, and whether these exploring runs of one program break them."""
    steps = [each.step for each in group]
    scales = [step.scale for step in steps]
    tried = sorted(set(scales))
    return {
        "order": scales != sorted(scales) or tried != list(REPRODUCTION.scales[: len(tried)]),
        "too_many": len(group) > MOST_RUNS or any(scales.count(each) > MOST_AT_A_SCALE for each in scales),
        "untimed": any(
            step.samples and ExplorationStep(step.scale, samples=False) not in steps[:at]
            for at, step in enumerate(steps)
        ),
        "after_saturation": _goes_on_after_saturation(group),
    }


def _goes_on_after_saturation(group: Sequence[Explored]) -> bool:
    """Whether a run follows the timing of a scale that is over 5 % slower than the best before it."""
    best_s = np.inf
    for at, each in enumerate(group):
        if not each.step.samples:
            time_s = each.time_s * REPRODUCTION.frequency_factor(each.step.scale)
            if time_s > (1 + EXPLORATION.saturation) * best_s:
                return at < len(group) - 1
            best_s = min(best_s, time_s)
    return False


def _share_nodes(one: PlacedRun, other: PlacedRun) -> bool:
    overlap = one.start_s < other.end_s and other.start_s < one.end_s
    return bool(overlap and set(one.nodes.tolist()) & set(other.nodes.tolist()))


def right_classes(laboratory: Laboratory) -> float:
    """The percentage of the learnt (program, processes) whose class is that of the true profile."""
    true, right = sns.shipped_programs(), []
    for (name, processes), known in laboratory.learning.known.items():
        if (profile := known.profile()) is not None:
            found, wanted = (
                classify(of.at(processes), REPRODUCTION, max_scale=true[name].max_scale).kind
                for of in (profile, true[name])
            )
            right.append(found is wanted)
    return 100 * float(np.mean(right))


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Run the streams and draw the figure."""
    pieces = [("learning", seed) for seed in range(1, options.seeds + 1)]
    found = options.results("learning", partial(run_stream, data["known"], data["learnt"]), pieces)
    results = list(found.values())
    of = sns.Sequences.of(results)
    late = of.take(slice(None), LATE)
    columns = {}
    for name, first in results[0].items():
        all_of, late_of = of.columns(name), late.columns(name)
        columns[name] = {
            "gain": all_of["throughput"],
            "late_gain": late_of["throughput"],
            "broken": all_of["broken"],
            "late_broken": late_of["broken"],
            **{what: np.array([each[name]["cost"][what] for each in results]) for what in first.get("cost", ())},
        }
    bars = {
        told: {name.replace(", ", "\n"): columns[name][measure] for name in columns if name != CE}
        for measure, told in data["drawn"].items()
    }
    figures.bars(options.out, "learning", bars, ("", "throughput over CE, %"))
    learnt_of = [each[name] for each in results for name in data["learnt"]]
    broken: dict[str, Quantity] = {
        f"{rule} broken": sum(each["broken"][rule] for each in learnt_of) for rule in data["rules"]
    }
    return PageResults(
        in_pairs(columns) | broken,
        [sns.table("learning", "", columns, data["measures"])],
        {"batches": BATCHES, "runs": int(sum(each["cost"]["exploring_runs"] for each in learnt_of))},
        options.seeds,
    )
