"""The answer to status: the scheduler's state in numbers, as far as a user may see it."""

from collections.abc import Iterable, Mapping

from slurm_sns.model import Resources, total
from slurm_sns.scheduler.answers.answer_types import (
    AgentsAndLearning,
    AlikeNodes,
    GateCounts,
    JobCounts,
    StatusAnswer,
    amounts,
)
from slurm_sns.scheduler.answers.queue_rows import redaction_of
from slurm_sns.scheduler.answers.redaction import Redaction
from slurm_sns.scheduler.answers.restart_answers import restarts_by_user
from slurm_sns.scheduler.answers.sharing_answers import sharing_status
from slurm_sns.scheduler.answers.view import (
    RecentCycles,
    View,
    agents_data,
)
from slurm_sns.scheduler.gate.job_status import Status, is_held
from slurm_sns.scheduler.observation import JobState, ObservedNode
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.start_estimates.board import NO_ESTIMATES, Estimates


def status(
    view: View,
    recent: RecentCycles,
    trouble: str,
    only_user: int | None,
    settings: Settings,
    *,
    estimates: Estimates = NO_ESTIMATES,
) -> StatusAnswer:
    """The scheduler's state in numbers.

    With `only_user`, projects, differences and unreadable records are shown only as far as they are those of the
    user's jobs; None shows all.
    """
    situation, plan = view.situation, view.plan
    redaction = redaction_of(view, only_user)
    capacity, free = view.once(_totals)
    accounts = set() if only_user is None else view.once(_accounts_by_user).get(only_user, set())
    return {
        "mode": view.mode,
        "disabled": view.disabled,
        "at_s": view.at_s,
        "cycle_s": view.took_s,
        "cycle_p50_s": recent.took_s(0.5),
        "cycle_p99_s": recent.took_s(0.99),
        "began_s": recent.began_s,
        "trouble": trouble,
        "cycles": view.cycles,
        "placed": view.placed,
        **view.once(job_counts),
        "gates": view.once(_gates),
        "nodes": len(situation.snapshot.nodes),
        "nodes_unavailable": redaction.texts(situation.snapshot.unavailable),
        "unreadable": _visible(view, situation.observation.unreadable, only_user),
        "differences": _visible(view, view.once(_differences), only_user),
        "node_groups": view.once(_node_groups),
        "capacity": amounts(capacity),
        "free": amounts(free),
        "chosen": plan.report.chosen,
        "matched": dict(plan.report.matched),
        "projects": {
            name: {"share": project.share, "used": amounts(project.used)}
            for name, project in situation.snapshot.projects.items()
            if only_user is None or name in accounts
        },
        "restarts": restarts_by_user(view, only_user),
        "estimates": {"starts": estimates.starts, "inside": estimates.inside} if estimates.starts else None,
        "sharing": sharing_status(view.sharing),
        **_agents(view, settings, redaction),
    }


def _totals(view: View) -> tuple[Resources, Resources]:
    """What the usable nodes have together, and what is free on them."""
    nodes = view.situation.snapshot.nodes
    return total(node.capacity for node in nodes), total(node.free for node in nodes)


def _node_groups(view: View) -> list[AlikeNodes]:
    """The usable nodes, those that have the same and are equally full together."""
    found: dict[tuple[Resources, Resources], list[str]] = {}
    for node in view.situation.snapshot.nodes:
        found.setdefault((node.capacity, node.free), []).append(node.name)
    return [
        {"names": names, "capacity": amounts(capacity), "free": amounts(free)}
        for (capacity, free), names in found.items()
    ]


def _gates(view: View) -> GateCounts:
    situation = view.situation
    gated = [
        job.begin_s
        for job in situation.jobs.values()
        if job.state is JobState.PENDING and situation.statuses[job.id] is Status.GATED
    ]
    return {
        "gated": len(gated),
        "renewed_per_minute": view.renewed_per_minute,
        "nearest_s": min(gated, default=None),
        "lease_s": situation.surveyed.lease.length_s,
    }


def _differences(view: View) -> dict[str, str]:
    return {f"job {number}": how for number, how in view.situation.differences.items()}


def _accounts_by_user(view: View) -> dict[int, set[str]]:
    """The accounts that each user's jobs run under."""
    found: dict[int, set[str]] = {}
    for job in view.situation.jobs.values():
        found.setdefault(job.user_id, set()).add(job.account)
    return found


def job_counts(view: View) -> JobCounts:
    """Our jobs by state, as they are after the cycle."""
    situation = view.situation
    counts = {each.name.lower(): 0 for each in Status}
    for job_id in situation.jobs:
        counts[situation.statuses[job_id].name.lower()] += 1
    completing = sum(
        job.is_completing and situation.statuses[job_id] is Status.RUNNING for job_id, job in situation.jobs.items()
    )
    placing = sum(start.job_id in situation.jobs for start in view.plan.starts) if view.mode == "enforce" else 0
    suspended = sum(job.state is JobState.SUSPENDED for job in situation.jobs.values())
    waiting = [job for job in situation.jobs.values() if job.state is JobState.PENDING]
    return {
        "waiting": len(waiting) - counts["placed"] - counts["overdue"] - placing,
        "placing": counts["placed"] + counts["overdue"] + placing,
        "running": counts["running"] - completing - suspended,
        "completing": completing,
        "suspended": suspended,
        "held": sum(is_held(job) for job in waiting),
    }


def _agents(view: View, settings: Settings, redaction: Redaction) -> AgentsAndLearning:
    """What status says of agents and of learning; nothing where there are no agents."""
    if view.agents is None:
        return {}
    # The nodes of which the scheduler gives away what only an agent can enforce.
    nodes = [each for each in view.situation.nodes.values() if not settings.partitions.isdisjoint(each.partitions)]
    needed = {each.name for each in nodes if each.capacity.ways or each.capacity.bandwidth_gbps}
    told = agents_data(view.agents, needed, _sharing(nodes, settings))
    exploring = [run for run in view.learning.runs.values() if run.explores_now]
    return {
        "agents": {
            **told,
            "troubles": redaction.texts(told["troubles"]),
            "unpartitioned": redaction.texts(told["unpartitioned"]),
        },
        "learning": {
            "programs": len(view.learning.learnt),
            "exploring_runs": len(exploring),
            "exploring_nodes": sum(len(run.nodes) for run in exploring),
        },
    }


def _sharing(nodes: Iterable[ObservedNode], settings: Settings) -> frozenset[str]:
    """Those of the nodes whose cores jobs share."""
    return frozenset(each.name for each in nodes if not settings.sharing_partitions.isdisjoint(each.partitions))


def _visible(view: View, told: Mapping[str, str], only_user: int | None) -> dict[str, str]:
    """The texts about `job 7`, `node c1` and the like; an ordinary user gets only those about their own jobs."""
    if only_user is None or not told:
        return dict(told)
    own = {f"job {job.id}" for job in view.situation.observed if job.user_id == only_user}
    return {name: text for name, text in told.items() if name in own}
