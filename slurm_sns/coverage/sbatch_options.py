"""The options of an sbatch command line as the submit filter sees the job. Pure.

The line is read as sbatch reads it, by getopt: options may be abbreviated, short ones may be joined with their values
(`-N2`), and the first word that is no option is the script. What stands in the script (`#SBATCH`, `directives`) or in
the environment is not on a command line.
"""

import re
import shlex
from collections.abc import Iterable, Sequence
from getopt import GetoptError, getopt
from typing import Any

from slurm_sns.errors import BadInput
from slurm_sns.submit import hints
from slurm_sns.submit.submission import Submission

_MEMORY = re.compile(r"([0-9]{1,15}(?:\.[0-9]*)?)([KMGT]?)B?[nc]?", re.IGNORECASE)
#: `90`, `90:00`, `1:30:00`, `1-12`, `1-12:30`, `1-12:30:00`, as sbatch takes --time.
_TIME = re.compile(
    r"(?P<days>[0-9]{1,5})-(?P<hours>[0-9]{1,9})(?::(?P<minutes>[0-9]{1,9})(?::(?P<seconds>[0-9]{1,9}))?)?"
    r"|(?:(?P<h>[0-9]{1,9}):(?=[0-9]+:))?(?P<m>[0-9]{1,9})(?::(?P<s>[0-9]{1,9}))?"
)
_UNLIMITED = frozenset({"infinite", "unlimited", "-1", "0"})
_MIB = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024 * 1024}

#: Options whose value is the text of a field of `Submission`.
_TEXTS = {
    "partition": "partition",
    "clusters": "clusters",
    "comment": "comment",
    "constraint": "features",
    "batch": "batch_features",
    "prefer": "prefer",
    "nodelist": "req_nodes",
    "nodefile": "req_nodes",
    "distribution": "distribution",
    "reservation": "reservation",
    "gres": "tres_per_node",
    "tres-per-task": "tres_per_task",
    "licenses": "licenses",
    "network": "network",
    "bb": "burst_buffer",
    "bbf": "burst_buffer",
}
#: Options whose value are numbers of GPUs, with types or without, or what goes with each GPU.
_GPUS = {
    "gpus-per-node": "tres_per_node",
    "gpus": "tres_per_job",
    "gpus-per-socket": "tres_per_socket",
    "gpus-per-task": "tres_per_task",
    "cpus-per-gpu": "cpus_per_tres",
    "mem-per-gpu": "mem_per_tres",
}
#: Options whose value is a number.
_NUMBERS = {
    "ntasks": "num_tasks",
    "cpus-per-task": "cpus_per_task",
    "ntasks-per-node": "ntasks_per_node",
    "ntasks-per-gpu": "ntasks_per_tres",
    "ntasks-per-socket": "ntasks_per_socket",
    "ntasks-per-core": "ntasks_per_core",
    "ntasks-per-board": "ntasks_per_board",
    "sockets-per-node": "sockets_per_node",
    "cores-per-socket": "cores_per_socket",
    "threads-per-core": "threads_per_core",
    "core-spec": "core_spec",
    "thread-spec": "thread_spec",
    "mincpus": "pn_min_cpus",
    "segment": "segment_size",
}
#: Options of which it matters that they are there, and what they set.
_SETTING: dict[str, dict[str, Any]] = {
    "contiguous": {"contiguous": 1},
    "spread-job": {"spread": True},
    "oversubscribe": {"shared": 1},
    "share": {"shared": 1},
    "overcommit": {"min_cpus": 1},
    "reboot": {"reboot": 1},
    "switches": {"req_switch": 1},
    "tmp": {"pn_min_tmp_disk": 1},
    "priority": {"priority": 1},
    "extra-node-info": {"sockets_per_node": 1},
    "exclusive": {"shared": 0},
    "gres-flags": {"has_gres_flags": True},
}
#: What --exclusive=... says, as Slurm numbers it.
_EXCLUSIVE = {"user": 2, "mcs": 3, "topo": 4}
_MEMORIES = {"mem": "min_mem_per_node", "mem-per-cpu": "min_mem_per_cpu"}
#: How a line of a script begins that has options.
_DIRECTIVE = "#SBATCH"
#: Hints come as options of our SPANK plugin.
_HINT = "sns-"

_SHORT_NAMES = (
    "A=account a=array B=extra-node-info b=begin C=constraint c=cpus-per-task D=chdir d=dependency e=error F=nodefile "
    "G=gpus i=input J=job-name L=licenses M=clusters m=distribution N=nodes n=ntasks o=output p=partition q=qos "
    "S=core-spec t=time w=nodelist x=exclude"
)
_SHORT_FLAG_NAMES = "H=hold h=help k=no-kill O=overcommit Q=quiet s=oversubscribe V=version v=verbose W=wait"
#: The long name of each short option, with a value and without.
_SHORT, _SHORT_FLAGS = ({pair[0]: pair[2:] for pair in names.split()} for names in (_SHORT_NAMES, _SHORT_FLAG_NAMES))
_LONG_FLAG_NAMES = (
    "contiguous exclusive get-user-env hold ignore-pbs kill-on-invalid-dep no-requeue overcommit oversubscribe "
    "parsable quiet reboot requeue share spread-job stepmgr test-only use-min-nodes verbose wait help version usage "
    "no-kill nice"
)
#: `--name=value` of an option whose value may be left out, under a name of its own, since getopt knows no such option.
_WITH_VALUE = {
    *("exclusive", "nice", "get-user-env", "kill-on-invalid-dep", "no-kill", "requeue", "parsable"),
    f"{_HINT}{hints.RESTARTABLE}",
}
_OTHER_NAMES = (
    "acctg-freq cpu-freq container container-id deadline delay-boot export export-file extra gid gpu-bind gpu-freq "
    "gres-flags hint mail-type mail-user mcs-label mem-bind open-mode power profile propagate resv-ports signal "
    "thread-spec time-min tres-bind uid wckey wrap consolidate-segments oom-kill-step tmp switches priority "
    "wait-all-nodes"
)
#: Other names that sbatch takes for an option.
_ALIASES = {"tasks-per-node": "ntasks-per-node"}
#: Options that a job is judged and placed by.
PLACING = frozenset(
    {
        *_TEXTS,
        *_GPUS,
        *_NUMBERS,
        *_MEMORIES,
        *_SETTING,
        "exclusive-of",
        "nodes",
        "account",
        "qos",
        "job-name",
        "time",
        "exclude",
    }
    | {"begin", "dependency", "hold", "array", "deadline", "hint", "time-min"}
    | {f"{_HINT}{key}" for key in (*hints.KEYS, f"{hints.RESTARTABLE}-of")}
)
_SHORTS = "".join(f"{letter}:" for letter in _SHORT) + "".join(_SHORT_FLAGS)
_VALUED = {*_TEXTS, *_GPUS, *_NUMBERS, *_MEMORIES, *_ALIASES, *_SHORT.values(), *_OTHER_NAMES.split()}
#: The long names that sbatch knows; those that need a value end in `=`.
_REAL_LONGS = [
    *_LONG_FLAG_NAMES.split(),
    *(f"{name}=" for name in _VALUED),
    *(f"{_HINT}{key}=" for key in hints.VALUED),
    *(f"{_HINT}{key}" for key in hints.FLAGS),
]
_LONGS = [*_REAL_LONGS, *(f"{name}-of=" for name in _WITH_VALUE)]


def submission(words: Sequence[str]) -> Submission:
    """The job of these words of an sbatch command, without the command itself.

    Raises:
        BadInput: sbatch has no such option, or a value cannot be read.
    """
    return submission_of(options(words)[0])


def options(words: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """The options of these words by their long names, each with its value, and the words that follow them.

    The name of an option whose value may be left out ends in `-of` where it has one (`exclusive-of`).

    Raises:
        BadInput: sbatch has no such option, or one lacks its value.
    """
    try:
        found, rest = getopt([_renamed(word) for word in words], _SHORTS, _LONGS)
    except GetoptError as problem:
        raise BadInput(str(problem)) from None
    return [(_long_name(option), value) for option, value in found], rest


def _long_name(option: str) -> str:
    letter = option.removeprefix("-")
    name = option[2:] if option.startswith("--") else _SHORT.get(letter) or _SHORT_FLAGS[letter]
    return _ALIASES.get(name, name)


def submission_of(found: Iterable[tuple[str, str]]) -> Submission:
    """The job of these options by their long names; of the same option, the last one counts.

    Raises:
        BadInput: a value cannot be read.
    """
    fields: dict[str, Any] = {}
    told: dict[str, str] = {}
    for name, value in found:
        fields |= _fields(name, value)
        if name.startswith(_HINT):
            told[name.removeprefix(_HINT).removesuffix("-of")] = value
    return Submission(**fields, options=tuple(told.items()))


def time_limit_s(text: str) -> int | None:
    """The value of --time in seconds, rounded up to minutes as Slurm does; None for no limit.

    Raises:
        BadInput: it is no time.
    """
    if text.lower() in _UNLIMITED:
        return None
    found = _TIME.fullmatch(text)
    if not found:
        raise BadInput(f"--time {text[:40]!r}: valid are minutes, and times as 90:00, 2:00:00, 1-12, 1-12:30:00")
    days, hours, minutes, seconds = (
        int(found[long] or (found[short] if short else None) or 0)
        for long, short in (("days", ""), ("hours", "h"), ("minutes", "m"), ("seconds", "s"))
    )
    return -(-(((days * 24 + hours) * 60 + minutes) * 60 + seconds) // 60) * 60


def directives(script: str) -> list[str]:
    """The words of a script's `#SBATCH` lines, up to its first command, as sbatch reads them.

    Raises:
        BadInput: a quote is not closed.
    """
    words: list[str] = []
    for line in script.splitlines():
        if line.startswith(_DIRECTIVE):
            try:
                words += shlex.split(line.removeprefix(_DIRECTIVE), comments=True)
            except ValueError as problem:
                raise BadInput(f"the script's line {line[:60]!r} cannot be read: {problem}") from None
        elif line.strip() and not line.lstrip().startswith("#"):
            break
    return words


def _renamed(word: str) -> str:
    """The word with its long name in full, and with `-of` where its value may be left out and is there."""
    if not word.startswith("--"):
        return word
    name, has_value, value = word[2:].partition("=")
    begun = {each.rstrip("=") for each in _REAL_LONGS if each.startswith(name)}
    if name not in begun and len(begun) == 1:
        (name,) = begun
    elif name not in begun:
        return word  # unknown or no unique prefix: getopt says which
    return f"--{name}{'-of' if has_value and name in _WITH_VALUE else ''}{has_value}{value}"


def _fields(name: str, value: str) -> dict[str, Any]:
    """What the option sets."""
    if name in _TEXTS:
        return {_TEXTS[name]: value}
    if name in _GPUS:
        return {_GPUS[name]: _gpus(name, value)}
    if name in _NUMBERS:
        return {_NUMBERS[name]: _number(name, value)}
    if name in _MEMORIES:
        return dict.fromkeys(_MEMORIES.values()) | {_MEMORIES[name]: memory_mb(value)}  # one replaces the other
    if name == "exclusive-of":
        return {"shared": _EXCLUSIVE.get(value, 0)}
    if name == "hint":
        return _hinted(value)
    return _nodes(value) if name == "nodes" else _SETTING.get(name, {})


def _gpus(name: str, text: str) -> str:
    """Numbers of GPUs as sbatch writes them: `a100:2,b:1` becomes `gres/gpu:a100:2,gres/gpu:b:1`."""
    told = str(memory_mb(text)) if name == "mem-per-gpu" else text
    return ",".join(f"gres/gpu:{entry}" for entry in told.split(",") if entry)


def _hinted(text: str) -> dict[str, int]:
    """All values of --hint but multithread let a job use one thread of each core, as --threads-per-core=1."""
    return {"threads_per_core": 1} if {*text.lower().split(",")} - {"", "multithread"} else {}


def _number(name: str, text: str) -> int:
    """A count as sbatch takes it: `4`, `4k`, or a range of which the first counts."""
    found = re.fullmatch(r"([0-9]{1,12})([kKmM]?)(?:[-:,].*)?", text.strip())
    if not found:
        raise BadInput(f"--{name} {text[:40]!r}: valid are whole numbers, as 4 or 4k")
    return int(found[1]) * {"": 1, "k": 1024, "m": 1024 * 1024}[found[2].lower()]


def _nodes(text: str) -> dict[str, int]:
    """`-N 2` fixes the number of nodes, `-N 2-4` is a range."""
    found = re.fullmatch(r"([0-9]{1,12}[kKmM]?)(?:-([0-9]{1,12}[kKmM]?))?(?:[:,].*)?", text)
    if not found:
        raise BadInput(f"-N {text[:40]!r}: valid are a number of nodes and a range, as 2 and 2-4")
    least = _number("nodes", found[1])
    return {"min_nodes": least, "max_nodes": _number("nodes", found[2]) if found[2] else least}


def memory_mb(text: str) -> int:
    """`62G`, `4000`, `4000Mc` in MiB.

    Raises:
        BadInput: it is none of these.
    """
    found = _MEMORY.fullmatch(text.strip())
    if not found:
        raise BadInput(f"memory {text[:40]!r}: valid are numbers with K, M, G or T, as 62G")
    return round(float(found[1]) * _MIB[found[2].upper()])
