"""How far a job is spread: its alternatives, best first, from its request, its program's profile and the nodes.

Scaling programs: the scales by increasing run time. Neutral programs: by increasing scale, to fill idle cores. Compact
programs: scale 1 on empty nodes, then scale 1 on shared nodes. On shared nodes a job demands its cores, its memory, the
fewest ways that keep alpha of its performance, and the bandwidth that it uses with these ways. On empty nodes it
demands all ways and all bandwidth. A scale is not eligible if the job would run there at less than alpha of its speed
at scale 1. T-IPC is alpha * F-IPC at every scale, as in section 4.3: at an eligible scale that is slower than scale 1
the prediction as a whole may be below alpha. If no scale is eligible, the job runs on empty nodes at scale 1, as it
would without this scheduler.

The explanation, as `sns explain` shows it, has the program's class and the figures of each scale. Every figure can be
recomputed by hand from the profile file.

Source: Spread-n-Share (SC'19), sections 4.3 and 4.4, figure 10.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from slurm_sns.closids import are_counted, with_closid
from slurm_sns.model import Alternative, Resources
from slurm_sns.policies.base import Choice, Considered, Explanation, JobRequest, NodeType, Request
from slurm_sns.policies.placement.request import compact, fewest_nodes, holding, spread
from slurm_sns.policies.profile import SAME, Program, Run
from slurm_sns.policies.spread_n_share.classify import Classification, ProgramClass, classify, corrected_time_s
from slurm_sns.policies.spread_n_share.parameters import PAPER_BANDWIDTH_GBPS, SpreadingParameters, factors_in_words

NO_PROFILE = "no profile: runs at scale 1 on shared nodes, and asks for no ways and no bandwidth"
NONE_ELIGIBLE = "no scale is eligible on these nodes: runs on empty nodes at scale 1"


@dataclass(frozen=True, slots=True)
class ScaleFigures:
    """One scale on shared or on empty nodes: an alternative, or dropped with the reason.

    `time_s` is the profile's run time, multiplied by the frequency factor. `full_ipc` is F-IPC, `target_ipc` is T-IPC =
    alpha * F-IPC, `ipc` the IPC with `ways`. `bandwidth_gbps` is what the curve gives, in whole GB/s. `slowdown` =
    (T_k / T_1) * (F-IPC / IPC(ways)). A value that was not computed is None. `dropped` is empty for an alternative.
    """

    scale: int
    exclusive: bool
    nodes: int
    tasks_per_node: int | None
    cores: int
    memory_mb: int
    ways: int | None = None
    bandwidth_gbps: int | None = None
    time_s: float | None = None
    full_ipc: float | None = None
    target_ipc: float | None = None
    ipc: float | None = None
    slowdown: float | None = None
    dropped: str = ""

    def considered(self) -> Considered:
        """The scale as a row of the explanation."""
        on = "on empty nodes" if self.exclusive else "on shared nodes"
        return Considered(
            str(self.scale),
            "dropped" if self.dropped else on,
            self.dropped,
            {
                "nodes": self.nodes,
                "tasks": self.tasks_per_node,
                "cores": self.cores,
                "MiB": self.memory_mb,
                "ways": self.ways,
                "GB/s": self.bandwidth_gbps,
                "time s": self.time_s,
                "F-IPC": self.full_ipc,
                "T-IPC": self.target_ipc,
                "IPC": self.ipc,
                "slowdown": self.slowdown,
            },
        )


def alternatives(parameters: SpreadingParameters, asked: JobRequest, nodes: Sequence[NodeType]) -> Choice:
    """The alternatives by the program's profile if the job's geometry may be chosen, otherwise its own geometry.

    Raises:
        Infeasible: the nodes could not hold the job even when they are all empty.
    """
    if asked.request is None:
        return Choice((asked.own,))
    return choose(asked.request, asked.program, nodes, parameters, asked.program_name)


def choose(
    request: Request,
    profile: Program | None,
    nodes: Sequence[NodeType],
    parameters: SpreadingParameters,
    program_name: str = "",
) -> Choice:
    """The alternatives of the job, with the reasons.

    `nodes` are all nodes that the job may ever use, with their whole capacity. `program_name` is the program's name in
    the reasons when the program has no profile.

    Raises:
        Infeasible: the nodes could not hold it even when they are all empty.
    """
    types = without_shared_ways(nodes, parameters.shared_ways)
    fewest = fewest_nodes(request, types)
    alpha = parameters.alpha if request.alpha is None else request.alpha
    runs = profile.at(request.processes, nearest=parameters.one_profile_for_all_sizes) if profile else {}
    if profile is None or not runs:
        alternative = compact(request, types)
        note = NO_PROFILE if profile is None else f"{NO_PROFILE} ({_profiled_counts(profile)})"
        name = program_name or (profile.name if profile else "")
        row = _figures(alternative, exclusive=alternative.exclusive).considered()
        return Choice((alternative,), Explanation((f"Program {name}: {note}.",), "scale", (row,)))
    return _Profiled(request, profile, runs, types, parameters, alpha, fewest, program_name or profile.name).choice()


def without_shared_ways(nodes: Sequence[NodeType], shared_ways: int) -> tuple[NodeType, ...]:
    """The node types without the ways that are kept for jobs without profile: with 0 where there are no more ways."""
    return tuple(
        NodeType(each.capacity._replace(ways=max(0, each.capacity.ways - shared_ways)), each.number) for each in nodes
    )


def run_at(runs: Mapping[int, Run], scale: int) -> Run:
    """The run at a scale, by a program's runs at one process count; without one that of the next smaller scale."""
    return runs[max(each for each in runs if each <= scale)]


def predicted_slowdown(runs: Mapping[int, Run], scale: int, ways: int | None, parameters: SpreadingParameters) -> float:
    """The predicted slowdown at a scale: (T_k / T_1) * (F-IPC / IPC(ways)), with corrected times.

    `ways` is None for all ways.
    """
    run = run_at(runs, scale)
    spreading = run.time_s * parameters.frequency_factor(scale) / corrected_time_s(runs[1], parameters)
    return spreading if ways is None else spreading / run.kept_at(ways)


def _figures(layout: Alternative, *, exclusive: bool) -> ScaleFigures:
    """A scale of which nothing but its layout is known."""
    demand = layout.demand
    return ScaleFigures(layout.scale, exclusive, layout.nodes, layout.tasks_per_node, demand.cores, demand.memory_mb)


def _profiled_counts(profile: Program) -> str:
    return f"{profile.name} is profiled with {', '.join(map(str, profile.process_counts))} processes"


@dataclass(frozen=True, slots=True)
class _Profiled:
    """One job whose program has a profile at its process count."""

    request: Request
    profile: Program
    runs: Mapping[int, Run]
    types: tuple[NodeType, ...]
    parameters: SpreadingParameters
    alpha: float
    fewest_nodes: int
    program_name: str

    def choice(self) -> Choice:
        bandwidth = max(each.capacity.bandwidth_gbps for each in self.types) or PAPER_BANDWIDTH_GBPS
        classification = classify(
            self.runs, self.parameters, max_scale=self.profile.max_scale, node_bandwidth_gbps=bandwidth
        )
        considered = self._considered(classification)
        eligible = [each for each in considered if not each.dropped]
        note = ""
        if not eligible:
            eligible, note = [self._on_empty_nodes(1)], NONE_ELIGIBLE
        dropped = [each for each in considered if each.dropped]
        explained = self._explanation(classification, [*eligible, *dropped], note)
        return Choice(tuple(map(self._alternative, eligible)), explained)

    def _explanation(self, of: Classification, scales: Sequence[ScaleFigures], note: str) -> Explanation:
        """The explanation of a job whose program is of this class; `note` says what is special about the job."""
        kind = f"{of.kind} (bound by {of.bottleneck})" if of.bottleneck else str(of.kind)
        profile = f"profile of {self.runs[1].processes} processes"
        summary = [
            f"Program {self.program_name} is {kind}, fastest at scale {of.ideal_scale} ({profile}).",
            f"It must keep {self.alpha:g} of its best performance (alpha).",
        ]
        factors = factors_in_words(self.parameters)
        if factors:
            summary.append(f"Run times are multiplied by {factors} (frequency_factors).")
        if note:
            summary.append(f"{note[0].upper()}{note[1:]}.")
        return Explanation(tuple(summary), "scale", tuple(each.considered() for each in scales))

    def _considered(self, classification: Classification) -> list[ScaleFigures]:
        """Each scale, best predicted first: so it is tried, unless the pass goes by use (module placement.use)."""
        if classification.kind is ProgramClass.COMPACT:
            wider = [self._scale(scale) for scale in sorted(self.parameters.scales) if scale > 1]
            not_tried = [
                each if each.dropped else replace(each, dropped="the program is compact: it runs at scale 1 only")
                for each in wider
            ]
            at_scale_1 = [self._on_empty_nodes(1)]
            if not self.request.exclusive:
                at_scale_1.append(self._on_shared_nodes(1))
            return at_scale_1 + not_tried
        by_scale = [self._scale(scale) for scale in sorted(self.parameters.scales)]
        if classification.kind is ProgramClass.NEUTRAL and not self.parameters.neutral_by_run_time:
            return by_scale
        return sorted(by_scale, key=lambda each: each.time_s or 0.0)

    def _scale(self, scale: int) -> ScaleFigures:
        return self._on_empty_nodes(scale) if self.request.exclusive else self._on_shared_nodes(scale)

    def _laid_out(self, scale: int, *, exclusive: bool) -> ScaleFigures:
        """The scale with its layout and run time; dropped if no number of ways makes it eligible."""
        layout = spread(self.request, self.fewest_nodes, scale)
        considered = _figures(layout, exclusive=exclusive)
        run = self.runs.get(scale)
        if run is not None:
            considered = replace(considered, time_s=corrected_time_s(run, self.parameters))
        return replace(considered, dropped=self._why_not(layout, considered))

    def _why_not(self, layout: Alternative, considered: ScaleFigures) -> str:
        scale, fewest = layout.scale, self.fewest_nodes
        if scale == 1:
            return ""
        limits = ((self.profile.max_scale, "the program's max_scale"), (self.request.max_scale, "the job's max-scale"))
        for limit, name in limits:
            if limit is not None and scale > limit:
                return f"{name} is {limit}"
        if scale * fewest > self.request.tasks:
            return f"{scale * fewest} nodes are more than its {self.request.tasks} tasks"
        if self.parameters.even_scales_only and self.request.tasks % (scale * fewest):
            return f"{self.request.tasks} tasks do not divide evenly between {scale * fewest} nodes"
        if any(
            spread(self.request, fewest, less).nodes == layout.nodes for less in self.parameters.scales if less < scale
        ):
            return f"it would fill the same {layout.nodes} nodes as a smaller scale"
        if considered.time_s is None:
            return "the program is not profiled at this scale"
        kept = corrected_time_s(self.runs[1], self.parameters) / considered.time_s
        if kept < self.alpha - SAME:
            return f"it keeps {kept:.4f} of its speed at scale 1; alpha is {self.alpha:g}"
        large = holding(layout.demand, self.types)
        return f"it needs {layout.nodes} nodes; {large} are large enough" if large < layout.nodes else ""

    def _on_shared_nodes(self, scale: int) -> ScaleFigures:
        considered = self._laid_out(scale, exclusive=False)
        if considered.dropped:
            return considered
        run, kept = self.runs[scale], self.alpha
        most_ways = max(self._candidate_amounts(considered, "ways"))
        ways = run.fewest_ways(kept, most_ways) if self._any_node_has("ways") else 0
        considered = replace(considered, full_ipc=run.full_ipc, target_ipc=kept * run.full_ipc)
        if ways is None:
            return replace(considered, dropped=f"{most_ways} ways do not reach T-IPC {kept * run.full_ipc:g}")
        bandwidth = run.bandwidth_at(ways or run.ways[-1])
        considered = replace(
            considered,
            ways=ways,
            ipc=run.ipc_at(ways) if ways else run.full_ipc,
            bandwidth_gbps=math.ceil(bandwidth) if self._any_node_has("bandwidth_gbps") else 0,
            slowdown=predicted_slowdown(self.runs, scale, ways or None, self.parameters),
        )
        large = holding(self._demand(considered), self.types)
        if large < considered.nodes:
            return replace(
                considered,
                dropped=f"it needs {considered.nodes} nodes with {considered.ways} ways and "
                f"{considered.bandwidth_gbps} GB/s; {large} have as much",
            )
        return considered

    def _on_empty_nodes(self, scale: int) -> ScaleFigures:
        """The scale on empty nodes; its demand is the fewest ways and the least bandwidth among the candidate nodes."""
        considered = self._laid_out(scale, exclusive=True)
        if considered.dropped:
            return considered
        run = self.runs[scale]
        bandwidth = min(self._candidate_amounts(considered, "bandwidth_gbps"))
        return replace(
            considered,
            ways=min(self._candidate_amounts(considered, "ways")),
            bandwidth_gbps=bandwidth,
            full_ipc=run.full_ipc,
            target_ipc=self.alpha * run.full_ipc,
            ipc=run.full_ipc,
            slowdown=predicted_slowdown(self.runs, scale, None, self.parameters),
        )

    def _candidate_amounts(self, considered: ScaleFigures, resource: str) -> list[int]:
        """The amounts of a resource on the node types that hold the job's cores and memory."""
        demand = Resources(considered.cores, considered.memory_mb)
        return [getattr(each.capacity, resource) for each in self.types if demand.within(each.capacity)]

    def _any_node_has(self, resource: str) -> bool:
        """Whether any node has this resource; if none has, the job demands none of it."""
        return any(getattr(each.capacity, resource) for each in self.types)

    def _demand(self, of: ScaleFigures) -> Resources:
        demand = Resources(of.cores, of.memory_mb, of.ways or 0, of.bandwidth_gbps or 0)
        return with_closid(demand, is_counted=are_counted(each.capacity for each in self.types))

    def _alternative(self, of: ScaleFigures) -> Alternative:
        assert of.slowdown is not None  # noqa: S101  an eligible scale has one
        return Alternative(of.nodes, self._demand(of), of.tasks_per_node, of.scale, of.slowdown, of.exclusive)
