"""Which TRES Slurm limits for whom, read from the output of its commands. A line of an unknown form is an error.

Only names matter, not amounts. Slurm computes `billing` from other TRES with the partitions' TRESBillingWeights, so a
limit of `billing` counts as a limit of those.
"""

import re
from collections.abc import Callable, Iterator, Mapping

from slurm_sns.errors import SnsError
from slurm_sns.scheduler.observation import NO_LIMITS, TresLimits

#: Every limit on a TRES that an association or a QOS can have (sacctmgr(1)).
_ASSOCIATION_LIMITS = "grptres,grptresmins,grptresrunmins,maxtres,maxtrespernode,maxtresmins"
_QOS_LIMITS = f"{_ASSOCIATION_LIMITS},maxtrespu,maxtrespa,mintres,maxtresrunminspu,maxtresrunminspa"

_SHOW_CONFIG = ("scontrol", "show", "config")
_SHOW_PARTITIONS = ("scontrol", "-a", "show", "partition", "-o")
_SHOW_QOS = ("sacctmgr", "-nP", "show", "qos", f"format=name,{_QOS_LIMITS}")
_SHOW_ASSOCIATIONS = (
    *("sacctmgr", "-nP", "show", "associations"),
    f"format=cluster,account,parentname,user,{_ASSOCIATION_LIMITS}",
)

Names = frozenset[str]
_NAME = re.compile(r"[a-z]+(/[^\s,|=]+)?")


def ask(ask_slurm: Callable[..., str], timeout_s: float) -> TresLimits:
    """The TRES that are limited now. slurmdbd is asked only if slurmctld enforces limits.

    Raises:
        SnsError: Slurm does not answer, or its answer has an unknown form.
    """
    config = _settings(ask_slurm(*_SHOW_CONFIG, timeout_s=timeout_s))
    if not {"limits", "safe", "all"} & set(_value(config, "AccountingStorageEnforce").lower().split(",")):
        return NO_LIMITS
    partitions = [_settings_of_line(line) for line in ask_slurm(*_SHOW_PARTITIONS, timeout_s=timeout_s).splitlines()]
    billed = frozenset[str]().union(*map(_billed, partitions))
    of_qos = _of_qos(ask_slurm(*_SHOW_QOS, timeout_s=timeout_s), billed)
    associations = ask_slurm(*_SHOW_ASSOCIATIONS, timeout_s=timeout_s)
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


def _settings_of_line(line: str) -> Mapping[str, str]:
    """The words of `Name=value Name=value` as name -> value."""
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


def _value(settings: Mapping[str, str], name: str) -> str:
    if name not in settings:
        raise SnsError(f"scontrol shows no {name}")
    return settings[name]


def _billed(partition: Mapping[str, str]) -> Names:
    """The TRES that a partition computes `billing` from."""
    weights = partition.get("TRESBillingWeights", "")
    return frozenset(word.split("=")[0].lower() for word in weights.split(",") if "=" in word)


def _of_qos(text: str, billed: Names) -> dict[str, Names]:
    rows = _rows(text, 1 + len(_QOS_LIMITS.split(",")))
    return {name: _limited(limits, billed) for name, *limits in rows}


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
