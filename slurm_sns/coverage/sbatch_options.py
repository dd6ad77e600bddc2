"""The options of an sbatch command line as the submit filter sees the job. Pure.

The line is read as sbatch reads it, by getopt: options may be abbreviated, short ones may be joined with their values
(`-N2`), and the first word that is no option is the script. What stands in the script (`#SBATCH`) or in the environment
is not on a command line.
"""

import re
from collections.abc import Sequence
from getopt import GetoptError, getopt
from typing import Any

from slurm_sns.errors import BadInput
from slurm_sns.submit.submission import Submission

_MEMORY = re.compile(r"([0-9]+(?:\.[0-9]*)?)([KMGT]?)B?[nc]?", re.IGNORECASE)
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
    "distribution": "distribution",
    "reservation": "reservation",
    "gres": "tres_per_node",
    "gpus-per-node": "tres_per_node",
    "gpus": "tres_per_job",
    "gpus-per-socket": "tres_per_socket",
    "gpus-per-task": "tres_per_task",
    "tres-per-task": "tres_per_task",
    "cpus-per-gpu": "cpus_per_tres",
    "mem-per-gpu": "mem_per_tres",
    "licenses": "licenses",
    "network": "network",
    "bb": "burst_buffer",
    "bbf": "burst_buffer",
}
#: Options whose value is a number.
_NUMBERS = {
    "ntasks": "num_tasks",
    "cpus-per-task": "cpus_per_task",
    "ntasks-per-node": "ntasks_per_node",
    "ntasks-per-gpu": "ntasks_per_tres",
    "ntasks-per-socket": "ntasks_per_socket",
    "ntasks-per-core": "ntasks_per_core",
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
}
#: What --exclusive=... says, as Slurm numbers it.
_EXCLUSIVE = {"user": 2, "mcs": 3, "topo": 4}
_MEMORIES = {"mem": "min_mem_per_node", "mem-per-cpu": "min_mem_per_cpu"}

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
_WITH_VALUE = {"exclusive", "nice", "get-user-env", "kill-on-invalid-dep", "no-kill", "requeue", "parsable"}
_OTHER_NAMES = (
    "acctg-freq cpu-freq container container-id deadline delay-boot export export-file extra gid gpu-bind gpu-freq "
    "gres-flags hint mail-type mail-user mcs-label mem-bind open-mode power profile propagate resv-ports signal "
    "thread-spec time-min tres-bind uid wckey wrap consolidate-segments oom-kill-step ntasks-per-board tmp switches "
    "priority"
)
_SHORTS = "".join(f"{letter}:" for letter in _SHORT) + "".join(_SHORT_FLAGS)
_LONGS = [
    *_LONG_FLAG_NAMES.split(),
    *(f"{name}=" for name in {*_TEXTS, *_NUMBERS, *_MEMORIES, *_SHORT.values(), *_OTHER_NAMES.split()}),
    *(f"{name}-of=" for name in _WITH_VALUE),
]


def submission(words: Sequence[str]) -> Submission:
    """The job of these words of an sbatch command, without the command itself.

    Raises:
        BadInput: sbatch has no such option, or a value cannot be read.
    """
    try:
        found, _ = getopt([_renamed(word) for word in words], _SHORTS, _LONGS)
    except GetoptError as problem:
        raise BadInput(str(problem)) from None
    fields: dict[str, Any] = {}
    for option, value in found:
        letter = option.removeprefix("-")
        name = option[2:] if option.startswith("--") else _SHORT.get(letter) or _SHORT_FLAGS[letter]
        fields |= _fields(name, value)
    return Submission(**fields)


def _renamed(word: str) -> str:
    name, has_value, value = word.removeprefix("--").partition("=")
    is_one = word.startswith("--") and has_value and name in _WITH_VALUE
    return f"--{name}-of={value}" if is_one else word


def _fields(name: str, value: str) -> dict[str, Any]:
    """What the option sets."""
    if name in _TEXTS:
        return {_TEXTS[name]: value}
    if name in _NUMBERS:
        return {_NUMBERS[name]: _number(value)}
    if name in _MEMORIES:
        return {_MEMORIES[name]: memory_mb(value)}
    if name == "exclusive-of":
        return {"shared": _EXCLUSIVE.get(value, 0)}
    return _nodes(value) if name == "nodes" else _SETTING.get(name, {})


def _number(text: str) -> int:
    """A count as sbatch takes it: `4`, `4k`, or a range of which the first counts."""
    found = re.fullmatch(r"([0-9]+)([kKmM]?).*", text)
    if not found:
        raise BadInput(f"{text[:40]!r} is no number")
    return int(found[1]) * {"": 1, "k": 1024, "m": 1024 * 1024}[found[2].lower()]


def _nodes(text: str) -> dict[str, int]:
    """`-N 2` fixes the number of nodes, `-N 2-4` is a range."""
    found = re.fullmatch(r"([0-9]+)(?:-([0-9]+))?(?:[:,].*)?", text)
    if not found:
        return {}
    least = int(found[1])
    return {"min_nodes": least, "max_nodes": int(found[2] or least)}


def memory_mb(text: str) -> int:
    """`62G`, `4000`, `4000Mc` in MiB.

    Raises:
        BadInput: it is none of these.
    """
    found = _MEMORY.fullmatch(text.strip())
    if not found:
        raise BadInput(f"memory {text[:40]!r}: valid are numbers with K, M, G or T, as 62G")
    return round(float(found[1]) * _MIB[found[2].upper()])
