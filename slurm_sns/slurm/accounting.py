"""What slurmdbd knows: QOS priorities, flags and preemption, shares of accounts, and which TRES are limited for whom.

slurmdbd may be down, or hang for nearly a minute, so a cycle never waits for it. A thread of its own asks it through
sacctmgr, with a timeout. Until the next answer arrives, the last one stays in force. Nobody can change a limit while
slurmdbd is down; a changed limit is known here after a minute. Before the first answer, every limit counts as set.
"""

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from slurm_sns.errors import SnsError
from slurm_sns.log import Log, Outage
from slurm_sns.scheduler.observation import NO_LIMITS, UNKNOWN, Names, TresLimits
from slurm_sns.slurm.api import run

#: The numbers change only when an admin changes them, so once a minute is enough. After no answer we ask again sooner.
ASKED_EVERY_S = 60.0
ASKED_AGAIN_S = 15.0
#: The first observation waits this long, so that it already has the priorities. An answer takes a fraction of a second.
FIRST_ANSWER_S = 3.0
#: A sacctmgr that has not answered after this time is killed.
TIMEOUT_S = 10.0

_SHOW_QOS = ("sacctmgr", "-nP", "show", "qos", "format=name,priority,flags,preempt,preemptmode")
_SHOW_SHARES = ("sacctmgr", "-nP", "show", "associations", "format=account,user,share")

#: Every limit on a TRES that an association or a QOS can have (sacctmgr(1)).
_ASSOCIATION_LIMITS = "grptres,grptresmins,grptresrunmins,maxtres,maxtrespernode,maxtresmins"
_QOS_LIMITS = f"{_ASSOCIATION_LIMITS},maxtrespu,maxtrespa,mintres,maxtresrunminspu,maxtresrunminspa"

_SHOW_CONFIG = ("scontrol", "show", "config")
_SHOW_PARTITIONS = ("scontrol", "-a", "show", "partition", "-o")
_SHOW_QOS_LIMITS = ("sacctmgr", "-nP", "show", "qos", f"format=name,{_QOS_LIMITS}")
_SHOW_LIMITS = (
    *("sacctmgr", "-nP", "show", "associations"),
    f"format=cluster,account,parentname,user,{_ASSOCIATION_LIMITS}",
)

_NAME = re.compile(r"[a-z]+(/[^\s,|=]+)?")


@dataclass(frozen=True, slots=True)
class AccountingValues:
    """By QOS and by account, sorted by name, without those that have none.

    `qos_preempts` is the QOS that each QOS may preempt, None before slurmdbd has answered.
    """

    qos_priorities: tuple[tuple[str, int], ...] = ()
    qos_freedoms: tuple[tuple[str, frozenset[str]], ...] = ()
    shares: tuple[tuple[str, float], ...] = ()
    tres_limits: TresLimits = UNKNOWN
    qos_preempts: tuple[tuple[str, frozenset[str]], ...] | None = None


class AccountingDatabase:
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
            self._known = replace(self._known, tres_limits=tres_limits(self._ask, TIMEOUT_S))
            qos = self._ask(*_SHOW_QOS, timeout_s=TIMEOUT_S)
            shares = account_shares(self._ask(*_SHOW_SHARES, timeout_s=TIMEOUT_S)) if self._with_shares else ()
        except SnsError as problem:
            self._silence.met(f"slurmdbd does not answer: {problem}", time.monotonic())
            self._ask_after_s = time.monotonic() + ASKED_AGAIN_S
            return
        self._known = with_qos(replace(self._known, shares=shares), qos)
        self._silence.over(time.monotonic())
        self._ask_after_s = time.monotonic() + ASKED_EVERY_S


def account_shares(text: str) -> tuple[tuple[str, float], ...]:
    """The shares of accounts, sorted by account, from `account|user|share` lines. Lines with a user are ignored.

    An account whose share is the word `parent` gets the share 1, the default.
    """
    rows = [line.split("|") for line in text.splitlines() if line.count("|") == 2]
    own = [(account, share) for account, user, share in rows if not user]
    return tuple(sorted((account, float(share) if share.isdigit() else 1.0) for account, share in own))


def with_qos(known: AccountingValues, text: str) -> AccountingValues:
    """These values with those of each QOS in sacctmgr's `name|priority|flags|preempt|preemptmode` lines.

    pyslurm shows no priority of a QOS. With the mode WITHIN a QOS may also preempt its own jobs.
    """
    rows = sorted(line.rsplit("|", 4) for line in text.splitlines() if line.count("|") >= 4)
    preempts = {
        name: frozenset(filter(None, (*names.split(","), name if "within" in mode.lower().split(",") else "")))
        for name, _, _, names, mode in rows
    }
    return replace(
        known,
        qos_priorities=tuple((name, int(priority)) for name, priority, *_ in rows if priority.isdigit()),
        qos_freedoms=tuple((name, frozenset(flags.split(","))) for name, _, flags, *_ in rows if flags),
        qos_preempts=tuple((name, preempted) for name, preempted in preempts.items() if preempted),
    )


def tres_limits(ask_slurm: Callable[..., str], timeout_s: float) -> TresLimits:
    """Which TRES are limited now, and for whom. slurmdbd is asked only if slurmctld enforces limits.

    Only names matter, not amounts. Slurm computes `billing` from other TRES with the partitions' TRESBillingWeights, so
    a limit of `billing` counts as a limit of those.

    Raises:
        SnsError: Slurm does not answer, or its answer has a line of an unknown form.
    """
    config = _settings(ask_slurm(*_SHOW_CONFIG, timeout_s=timeout_s))
    if not {"limits", "safe", "all"} & set(_value(config, "AccountingStorageEnforce").lower().split(",")):
        return NO_LIMITS
    partitions = [
        dict(word.split("=", 1) for word in line.split() if "=" in word)
        for line in ask_slurm(*_SHOW_PARTITIONS, timeout_s=timeout_s).splitlines()
    ]
    billed = frozenset[str]().union(*map(_billed, partitions))
    rows = _rows(ask_slurm(*_SHOW_QOS_LIMITS, timeout_s=timeout_s), 1 + len(_QOS_LIMITS.split(",")))
    of_qos = {name: _limited(limits, billed) for name, *limits in rows}
    associations = ask_slurm(*_SHOW_LIMITS, timeout_s=timeout_s)
    return TresLimits(
        of_users=_of_users(associations, _value(config, "ClusterName").lower(), billed),
        of_qos=of_qos,
        of_partitions={
            _value(each, "PartitionName"): of_qos.get(each.get("QoS", ""), frozenset()) for each in partitions if each
        },
    )


def _settings(text: str) -> Mapping[str, str]:
    """The `Name = value` lines of a text as name -> value."""
    found = (line.split("=", 1) for line in text.splitlines() if "=" in line)
    return {name.strip(): value.strip() for name, value in found}


def _value(settings: Mapping[str, str], name: str) -> str:
    if name not in settings:
        raise SnsError(f"scontrol shows no {name}")
    return settings[name]


def _billed(partition: Mapping[str, str]) -> Names:
    """The TRES that a partition computes `billing` from."""
    weights = partition.get("TRESBillingWeights", "")
    return frozenset(word.split("=")[0].lower() for word in weights.split(",") if "=" in word)


def _of_users(text: str, cluster: str, billed: Names) -> dict[str, Names]:
    """The TRES that are limited for each user in any of their accounts.

    A user is left out if one of these accounts, or one above it, is not shown.
    """
    rows = [row[1:] for row in _rows(text, 4 + len(_ASSOCIATION_LIMITS.split(","))) if row[0] == cluster]
    accounts = {account: (parent, _limited(own, billed)) for account, parent, user, *own in rows if not user}
    found: dict[str, Names] = {}
    unclear = set()
    for account, _, user, *own in rows:
        if not user:
            continue
        try:
            inherited = frozenset[str]().union(*_chain(account, accounts))
        except KeyError:
            unclear.add(user)
            continue
        found[user] = found.get(user, frozenset()) | inherited | _limited(own, billed)
    return {user: names for user, names in found.items() if user not in unclear}


def _chain(account: str, accounts: Mapping[str, tuple[str, Names]]) -> Iterator[Names]:
    """The limits of the account, its parent and so on up to the root.

    Raises:
        KeyError: one of them is not shown.
    """
    for _ in accounts:
        parent, names = accounts[account]
        yield names
        if not parent or account == "root":
            return
        account = parent
    raise KeyError(account)


def _rows(text: str, columns: int) -> list[list[str]]:
    rows = [line.split("|") for line in text.splitlines()]
    if any(len(row) != columns for row in rows):
        raise SnsError(f"sacctmgr shows limits in a form that is not known: {columns} columns were asked for")
    return rows


def _limited(limits: list[str], billed: Names) -> Names:
    """The names of TRES in texts such as `cpu=4,gres/llc=20`."""
    names = frozenset(word.split("=")[0] for limit in limits for word in limit.split(",") if word)
    wrong = sorted(name for name in names if not _NAME.fullmatch(name))
    if wrong:
        raise SnsError(f"sacctmgr shows a limit of {wrong[0]!r}, which is no TRES")
    return names | billed if "billing" in names else names
