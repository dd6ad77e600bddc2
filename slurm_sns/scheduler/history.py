"""What a restart finds again: the tries of jobs and the policy's history, here and in the store.

Only what has changed is written. Both may be lost, so the scheduler goes on while the store does not answer. A policy's
history is stored as text: JSON with the fields of the policy's own type. It is read strictly: a value of another type,
an unknown field or a number that is not finite makes it unreadable. Then only the history is lost, and the policy
starts anew.
"""

from slurm_sns import typed_json
from slurm_sns.errors import SnsError
from slurm_sns.log import Log, Outage
from slurm_sns.policies.base import HistoryFormat
from slurm_sns.policies.specification import Specification
from slurm_sns.scheduler.gate.failed_placements import Try
from slurm_sns.scheduler.ports import Clock, History, PolicyHistory

#: What changes all the time is stored so often.
STORE_S = 60.0


def remember(policy: str, form: HistoryFormat, history: object, log: Log) -> PolicyHistory:
    """What the store keeps of the history that the policy's plan contains.

    The text is empty if there is no history (None), or if it cannot be stored. The latter is a defect of the policy: it
    is logged in one line, and only the history is lost.
    """
    try:
        text = "" if history is None else text_of(form, history)
    except ValueError as problem:
        log(f"error: the history of policy {policy} cannot be stored: {problem}")
        text = ""
    return PolicyHistory(policy, form.version, text)


def recall(memory: PolicyHistory | None, form: HistoryFormat, log: Log) -> object | None:
    """The history that was kept; None if there is none, or it cannot be read.

    A history that cannot be read is logged in one line.
    """
    if memory is None:
        return None
    if memory.version != form.version:
        log(
            f"the history of policy {memory.policy} is of version {memory.version}, but the policy reads version "
            f"{form.version}: it starts without history"
        )
        return None
    if not memory.text:  # the policy's last plan had no history
        return None
    try:
        return history_of(form, memory.text)
    except ValueError as problem:
        log(f"the history of policy {memory.policy} cannot be read ({problem}): it starts without history")
        return None


class KeptValue:
    """One value that the store keeps under a name, beside the policies' histories.

    Raises:
        SnsError: the store does not answer at the start.
    """

    def __init__(self, name: str, form: HistoryFormat, history: History, log: Log, meanwhile: str) -> None:
        """`meanwhile` is what the log says of the time in which the store does not answer."""
        self._name, self._form, self._history, self._log = name, form, history, log
        self._outage = Outage(log, f"; {meanwhile}")
        self.found = recall(history.load_memory(name), form, log)
        self._stored_s = float("-inf")

    @property
    def trouble(self) -> str:
        """What keeps it from being stored now; empty when nothing does."""
        return self._outage.now

    def is_due(self, now_s: float) -> bool:
        """Whether it was stored long ago."""
        return not 0 <= now_s - self._stored_s < STORE_S

    def store(self, value: object, now_s: float) -> bool:
        """Replace what is stored; False, and it is logged once, if that is not possible."""
        kept = remember(self._name, self._form, value, self._log)
        problem = "" if kept.text else "what is known of them cannot be written as JSON"
        if not problem:
            try:
                self._history.save((), (), kept)
            except SnsError as refusal:
                problem = str(refusal)
        if problem:
            self._outage.met(f"{self._name}: {problem}", now_s)
            return False
        self._outage.over(now_s)
        self._stored_s = now_s
        return True


def text_of(form: HistoryFormat, history: object) -> str:
    """The history as JSON.

    Raises:
        ValueError: the history is not of the form's type, or reading the text would give a different one.
    """
    if not isinstance(history, form.type):  # pydantic lets None pass
        raise ValueError(f"a history of {form.type.__name__} is expected, not {history!r:.80}")  # noqa: TRY004 - as below
    text = typed_json.written(form.type, history, is_finite=True)
    if history_of(form, text) != history:
        raise ValueError(f"a history of {form.type.__name__} would be read back as a different one")
    return text


def history_of(form: HistoryFormat, text: str) -> object:
    """The history that `text_of` wrote as this text.

    Raises:
        ValueError: the text is not such a history; the message is one line.
    """
    return typed_json.read(form.type, text, is_finite=True)


class StoredTries:
    """The tries `now`, by job id, beside those that the store has; it begins with what an earlier scheduler stored.

    `policy` is the policy whose history is kept, too, if its specification has a form for that.

    Raises:
        SnsError: the store does not answer at the start.
    """

    def __init__(self, history: History, clock: Clock, log: Log, policy: Specification | None = None) -> None:
        self._history, self._clock, self._log = history, clock, log
        self._policy, self._form = ("", None) if policy is None else (policy.name, policy.history)
        self._outage = Outage(log)
        self._stored = dict(history.load())
        self.now: dict[int, Try] = dict(self._stored)
        #: Jobs whose tries were sent to the store without an answer: it may have them.
        self._unsure: set[int] = set()
        #: The policy's history as an earlier scheduler stored it; None if there is none.
        self.recalled = None if self._form is None else recall(history.load_memory(self._policy), self._form, log)
        self._memory: PolicyHistory | None = None
        if self.recalled is not None:
            self.remember(self.recalled)
        self._stored_memory: PolicyHistory | None = self._memory

    @property
    def trouble(self) -> str:
        """What keeps them from being stored now; empty when nothing does."""
        return self._outage.now

    def remember(self, history: object) -> None:
        """Let the next `store` write this history of the policy."""
        if self._form is not None:
            self._memory = remember(self._policy, self._form, history, self._log)

    def store(self) -> None:
        """Save the tries and the policy's memory; what cannot be written now is written by the next call."""
        changed = [
            each for job_id, each in self.now.items() if self._stored.get(job_id) != each or job_id in self._unsure
        ]
        gone = [job_id for job_id in {**self._stored, **dict.fromkeys(self._unsure)} if job_id not in self.now]
        memory = None if self._memory == self._stored_memory else self._memory
        if memory is None and not (changed or gone):
            return
        self._unsure.update(each.job_id for each in changed)
        try:
            self._history.save(changed, gone, memory)
        except SnsError as problem:
            self._outage.met(str(problem), self._clock.now())
            return
        self._outage.over(self._clock.now())
        self._unsure.clear()
        self._stored, self._stored_memory = dict(self.now), self._memory
