"""What slurmdbd knows: QOS priorities, flags and preemption, shares of accounts, and which TRES are limited for whom.

slurmdbd may be down, or hang for nearly a minute, so a cycle never waits for it. A thread of its own asks it through
sacctmgr, with a timeout. Until the next answer arrives, the last one stays in force. Nobody can change a limit while
slurmdbd is down; a changed limit is known here after a minute. Before the first answer, every limit counts as set.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from slurm_sns.errors import SnsError
from slurm_sns.log import Log, Outage
from slurm_sns.scheduler.observation import UNKNOWN, TresLimits
from slurm_sns.slurm import translate, tres_limits
from slurm_sns.slurm.commands import run

#: The numbers change only when an admin changes them, so once a minute is enough. After no answer we ask again sooner.
ASKED_EVERY_S = 60.0
ASKED_AGAIN_S = 15.0
#: The first observation waits this long, so that it already has the priorities. An answer takes a fraction of a second.
FIRST_ANSWER_S = 3.0
#: A sacctmgr that has not answered after this time is killed.
TIMEOUT_S = 10.0

_SHOW_QOS = ("sacctmgr", "-nP", "show", "qos", "format=name,priority,flags,preempt,preemptmode")
_SHOW_SHARES = ("sacctmgr", "-nP", "show", "associations", "format=account,user,share")


@dataclass(frozen=True, slots=True)
class AccountingValues:
    """By QOS and by account, sorted by name; `qos_preempts` is None before slurmdbd has answered."""

    qos_priorities: tuple[tuple[str, int], ...] = ()
    qos_freedoms: tuple[tuple[str, frozenset[str]], ...] = ()
    shares: tuple[tuple[str, float], ...] = ()
    tres_limits: TresLimits = UNKNOWN
    qos_preempts: tuple[tuple[str, frozenset[str]], ...] | None = None


class Accounting:
    """The last known numbers. Shares of accounts are only asked for with `with_shares`. For one caller's thread."""

    def __init__(self, log: Log, *, with_shares: bool, ask: Callable[..., str] = run) -> None:
        self._with_shares = with_shares
        self._ask = ask
        self._known = AccountingValues()
        self._asking: threading.Thread | None = None
        self._ask_after_s = 0.0
        self._silence = Outage(log, "; the last known priorities, shares and limits stay in force")

    def numbers(self) -> AccountingValues:
        """The last answer of slurmdbd; the empty default values before its first answer."""
        if self._asking is None:
            self._begin().join(FIRST_ANSWER_S)
        elif not self._asking.is_alive() and time.monotonic() >= self._ask_after_s:
            self._begin()
        return self._known

    def _begin(self) -> threading.Thread:
        self._asking = threading.Thread(target=self._learn, name="accounting", daemon=True)
        self._asking.start()
        return self._asking

    def _learn(self) -> None:
        try:
            # The limits first: at a site without slurmdbd none are enforced, and slurmctld alone tells us that.
            self._known = replace(self._known, tres_limits=tres_limits.ask(self._ask, TIMEOUT_S))
            qos = self._ask(*_SHOW_QOS, timeout_s=TIMEOUT_S)
            shares = account_shares(self._ask(*_SHOW_SHARES, timeout_s=TIMEOUT_S)) if self._with_shares else ()
        except SnsError as problem:
            self._silence.met(f"slurmdbd does not answer: {problem}", time.monotonic())
            self._ask_after_s = time.monotonic() + ASKED_AGAIN_S
            return
        self._known = AccountingValues(
            translate.qos_priorities(qos),
            translate.qos_freedoms(qos),
            shares,
            self._known.tres_limits,
            translate.qos_preempts(qos),
        )
        self._silence.over(time.monotonic())
        self._ask_after_s = time.monotonic() + ASKED_EVERY_S


def account_shares(text: str) -> tuple[tuple[str, float], ...]:
    """The shares of accounts, sorted by account, from `account|user|share` lines. Lines with a user are ignored.

    An account whose share is the word `parent` gets the share 1, the default.
    """
    rows = [line.split("|") for line in text.splitlines() if line.count("|") == 2]
    own = [(account, share) for account, user, share in rows if not user]
    return tuple(sorted((account, float(share) if share.isdigit() else 1.0) for account, share in own))
