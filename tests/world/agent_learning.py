"""What is stored of learning in the simulated world, as the LearningStore port of a scheduler."""

from typing import Any

from slurm_sns import typed_json
from slurm_sns.scheduler.learning.values import LearningChanges, LearningState, Learnt, RunToLearn
from slurm_sns.store.learning import report_of
from slurm_sns.wire.messages import encode
from slurm_sns.wire.values import RunId, RunReport
from world.kernel import World
from world.ports import STORE_S, Caller, HistoryOf


class StoredLearning:
    """The tables of learning, of one database: an administrator may move it away."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.generation = 0
        self.state = LearningState()

    def of(self, generation: int) -> LearningState:
        """The state in this database."""
        if generation != self.generation:
            self.generation, self.state = generation, LearningState()
        return self.state

    def save(self, changes: LearningChanges, generation: int) -> None:
        """Carry out the changes."""
        state = self.of(generation)
        learnt = {key: each for key, each in state.learnt.items() if key not in changes.forgotten}
        gone = set(changes.gone)
        runs = {key: each for key, each in state.runs.items() if key not in gone}
        runs |= {each.run: each for each in changes.runs}
        reports = {key: dict(each) for key, each in state.reports.items() if key not in gone}
        for report in changes.reports:
            reports.setdefault(report.run, {})[report.node] = report
        self.state = LearningState({**learnt, **changes.learnt}, runs, reports)


class LearningStoreOf:
    """The port; what is read goes through the form in which the real store keeps it."""

    def __init__(self, caller: Caller, history: HistoryOf, stored: StoredLearning) -> None:
        self._caller, self._history, self._stored = caller, history, stored
        self._generation = caller.controller.store.generation

    def load(self) -> tuple[LearningState, tuple[str, ...]]:
        """See `LearningStore.load`."""
        found: LearningState = self._caller.call("learnt", self._load, STORE_S)
        return found, ()

    def _load(self) -> LearningState:
        self._history.check("what is learnt of programs cannot be read", reads=True)
        state = self._stored.of(self._generation)
        learnt: dict[Any, Learnt] = {
            key: typed_json.read(Learnt, typed_json.written(Learnt, each)) for key, each in state.learnt.items()
        }
        runs: dict[RunId, RunToLearn] = {
            key: typed_json.read(RunToLearn, typed_json.written(RunToLearn, each)) for key, each in state.runs.items()
        }
        reports: dict[RunId, dict[str, RunReport]] = {
            run: {node: report_of(encode(each).decode()) for node, each in by_node.items()}
            for run, by_node in state.reports.items()
        }
        return LearningState(learnt, runs, reports)

    def save(self, changes: LearningChanges) -> None:
        """See `LearningStore.save`."""
        self._caller.call("learn", lambda: self._save(changes), STORE_S)

    def _save(self, changes: LearningChanges) -> None:
        self._history.check("what is learnt of programs cannot be written")
        self._stored.save(changes, self._generation)
        self._stored.world.history.add(
            "learnt",
            by=self._caller.name,
            generation=self._generation,
            runs=tuple(
                (each.run, each.key, each.scale, each.nodes, each.step, str(each.outcome)) for each in changes.runs
            ),
            gone=tuple(changes.gone),
            reports=tuple((each.run, each.node) for each in changes.reports),
            counts={key: _counts(each) for key, each in changes.learnt.items()},
        )


def _counts(learnt: Learnt) -> dict[str, Any]:
    """How often each scale was timed and sampled, in the present evidence and in a re-measurement."""
    known = learnt.known
    return {
        name: None
        if scales is None
        else {
            scale: (each.time_s.count, max((one.count for one in each.ipc.values()), default=0))
            for scale, each in scales.items()
        }
        for name, scales in (("current", known.current), ("renewal", known.renewal))
    }
