"""Deliberate defects of the agents, of the channel and of learning, for `world.mutants`."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from slurm_sns.errors import SnsError
from slurm_sns.node.agent import in_force, presence, runs_here, spool, tree
from slurm_sns.scheduler import agent_link as active_runs
from slurm_sns.scheduler.learning import conclusions as concluding
from slurm_sns.scheduler.learning import exploration as exploring_jobs
from slurm_sns.scheduler.learning import learner
from slurm_sns.scheduler.learning.values import LearningRules, LearningState
from slurm_sns.sockets import agent_hub
from slurm_sns.wire import grants

#: Each mutant: its name, its sentence, and what has it in effect.
AGENT_MUTANTS: list[tuple[str, str, Callable[[], AbstractContextManager[object]]]] = []


def mutant(make: Callable[[], Iterator[None]]) -> Callable[[], Iterator[None]]:
    """Add the function as a mutant: its name, and its docstring as the sentence."""
    AGENT_MUTANTS.append((make.__name__.replace("_", " "), (make.__doc__ or "").strip(), contextmanager(make)))
    return make


# --- grants


@mutant
def grant_of_an_older_restart_accepted() -> Iterator[None]:
    """A grant of an earlier run of the job counts."""

    def check(granted: Any, run: Any) -> None:
        if granted.job_id != run.job_id or granted.restarts > run.restarts:
            raise grants.BadGrant("the grant is of another run")

    with patch.object(grants, "_check_run", check):
        yield


@mutant
def grant_of_another_job_accepted() -> Iterator[None]:
    """A grant counts for whoever has it."""
    with patch.object(grants, "_check_run", lambda _granted, _run: None):
        yield


@mutant
def grant_not_verified() -> Iterator[None]:
    """A grant's signature is not checked."""
    always = SimpleNamespace(compare_digest=lambda _one, _other: True, digest=grants.hmac.digest)
    with patch.object(grants, "hmac", always):
        yield


# --- the agent


@mutant
def group_of_a_vanished_job_kept() -> Iterator[None]:
    """A job without an epilog is never given up."""
    with patch.object(presence.LastSeen, "vanished", lambda *_: frozenset()):
        yield


@mutant
def older_change_applied() -> Iterator[None]:
    """The last change that arrives counts, whatever its revision."""

    def with_change(self: Any, change: Any) -> Any:
        here = self.of(change.run.job_id)
        if here is not None and here.run == change.run:
            return self._replaced(runs_here._changed(here, change))
        return self

    with patch.object(runs_here.RunsHere, "with_change", with_change):
        yield


@mutant
def change_of_another_run_applied() -> Iterator[None]:
    """A change counts for any run of its job."""
    with_change = runs_here.RunsHere.with_change

    def careless(self: Any, change: Any) -> Any:
        here = self.of(change.run.job_id)
        return with_change(self, change if here is None else replace(change, run=here.run))

    with patch.object(runs_here.RunsHere, "with_change", careless):
        yield


@mutant
def groups_not_given_back() -> Iterator[None]:
    """What is in force is not changed when a run ends."""
    end = presence.Presence.end

    def lazy(self: Any, run: Any, at_s: float) -> bool:
        end(self, run, at_s)
        return False

    with patch.object(presence.Presence, "end", lazy), patch.object(tree.NodeTree, "is_in_order", lambda _: True):
        yield


@mutant
def ways_shared_out_twice() -> Iterator[None]:
    """The first job of a node keeps all ways when others come."""
    needs = in_force.needs

    def greedy(here: Any, cores: Any, ways_for_jobs: int, sampled_ways: int) -> Any:
        first, *others = needs(here, cores, ways_for_jobs, sampled_ways) or [None]
        return [] if first is None else [first._replace(ways=ways_for_jobs if first.ways else 0), *others]

    with patch.object(in_force, "needs", greedy):
        yield


@mutant
def report_dropped_when_the_disk_is_full() -> Iterator[None]:
    """A report that cannot be written is forgotten."""
    write = spool.Spool.write

    def careless(self: Any) -> None:
        write(self)
        for key in list(self._unwritten):
            del self._unwritten[key], self._reports[key]

    with patch.object(spool.Spool, "write", careless):
        yield


@mutant
def spool_forgets_all() -> Iterator[None]:
    """An acknowledgement of one report clears the spool."""
    forget = spool.Spool.forget
    with patch.object(spool.Spool, "forget", lambda self, _keys: forget(self, tuple(self._reports))):
        yield


@mutant
def vanished_job_without_a_report() -> Iterator[None]:
    """A job that has vanished is not reported."""
    finish = presence.Presence._finish

    def silent(self: Any, ended: Any, at_s: float | None = None) -> None:
        finish(self, ended if at_s is not None else (), at_s)

    with patch.object(presence.Presence, "_finish", silent):
        yield


# --- the scheduler


@mutant
def report_acknowledged_before_it_is_stored() -> Iterator[None]:
    """A report is acknowledged as soon as it is heard."""
    conclude = learner.Learner.conclude

    def early(self: Any, *given: Any) -> None:
        self._agents.acknowledge([report.key for report in self._agents.reports()])
        conclude(self, *given)

    with patch.object(learner.Learner, "conclude", early):
        yield


@mutant
def report_acknowledged_though_not_stored() -> Iterator[None]:
    """A report is acknowledged although the store did not take it."""
    save = learner.Learner._save

    def careless(self: Any, changes: Any, now_s: float) -> bool:
        try:
            return save(self, changes, now_s) or True
        except SnsError:
            return True

    with patch.object(learner.Learner, "_save", careless):
        yield


@mutant
def report_key_ignored() -> Iterator[None]:
    """A report that came again is stored once more."""

    def take(self: Any, reports: Any) -> None:
        for report in reports:
            run = self._state.runs.get(report.run)
            if run is not None and report.node in run.nodes:
                self._reports.setdefault(report.run, {})[report.node] = report

    hears = agent_hub.AgentHub.acknowledge

    def again(self: Any, keys: Any) -> None:
        known = dict(self._reports)
        hears(self, keys)
        self._reports.update(known)

    with patch.object(concluding.Conclusion, "take", take), patch.object(agent_hub.AgentHub, "acknowledge", again):
        yield


@mutant
def run_not_forgotten() -> Iterator[None]:
    """The store keeps a run that was learnt from."""
    after = LearningState.after

    def keeping(self: Any, changes: Any) -> Any:
        state = after(self, changes)
        return replace(state, runs={**self.runs, **state.runs}, reports=self.reports)

    with patch.object(LearningState, "after", keeping):
        yield


@mutant
def failures_forgotten() -> Iterator[None]:
    """A scale is explored however often that gave nothing."""
    always = lambda *_: True  # noqa: E731 - patched in two places
    with patch.object(concluding, "may_explore", always), patch.object(exploring_jobs, "may_explore", always):
        yield


@mutant
def nodes_of_explorers_not_limited() -> Iterator[None]:
    """ExploringRun runs take as many nodes as there are."""
    with patch.object(LearningRules, "limit", lambda _self, nodes: nodes):
        yield


@mutant
def ended_runs_still_named() -> Iterator[None]:
    """The agents are told of a run for ever."""
    tell = active_runs.runs_by_node
    known: dict[str, frozenset[Any]] = {}

    def growing(active: Any) -> Any:
        for name, runs in tell(active).items():
            known[name] = known.get(name, frozenset()) | runs
        return dict(known)

    with patch.object(active_runs, "runs_by_node", growing):
        yield


@mutant
def reports_not_heard_again() -> Iterator[None]:
    """A report that was acknowledged once is ignored when its agent sends it again."""
    note = agent_hub.AgentHub._note_report

    def deaf(self: Any, agent_there: Any, report: Any) -> None:
        if report.key not in self._acknowledged:
            note(self, agent_there, report)

    with patch.object(agent_hub.AgentHub, "_note_report", deaf):
        yield
