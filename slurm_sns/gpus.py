"""The GPUs that a job asks for, in Slurm's words, and how many of them that are on each of its nodes. Pure.

Slurm has a text for each way to ask: by node (--gres=gpu:a100:2, --gpus-per-node), by task (--gpus-per-task) and for
the whole job (--gpus); two more say how many CPUs and how much memory go with each GPU. A text is a list of entries,
`gres/gpu:a100:2`, `gpu=4`, `gpu`. What is read here is what we place: a job that asks in one of the three ways, for any
GPUs or for some of each of a few types, and for nothing else. A type is a name, also that of a part of a GPU that Slurm
counts as one (`a100_1g.5gb`). All else is Slurm's: gres/shard, gres/mps, other gres, counts with a unit (`1k`), a type
that is named twice, --gpus-per-socket, --gres-flags.

The submit filter decides by the same rules, in sns_judge.lua. Texts are as long as their writers like: what is longer
than `MOST_BYTES` is not read.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from slurm_sns.errors import BadInput, Infeasible
from slurm_sns.model import GPU, Gpus, gpus_of

#: Slurm itself refuses longer texts, but only after the submit filter has seen them.
MOST_BYTES = 1024
#: Entries of one text: no node has GPUs of more types.
MOST_ENTRIES = 8

#: More than any job asks for; sums over many jobs stay within 64 bits.
MOST_GPUS = 1 << 24
#: More than any node has of a type. What a slurm.conf says beyond is a mistake, and does not count.
MOST_OF_A_NODE = 4096

#: `gres:` and `gres/` stand before the name in some releases and texts.
_PREFIX = re.compile(r"\Agres[:/]")
#: No node has as many GPUs, and sums of products stay small.
_COUNT = r"([1-9][0-9]{0,8})"
_OF_ANY_TYPE = re.compile(rf"gpu(?:[:=]{_COUNT})?", re.ASCII)
#: What begins with a digit is a count, unless a count follows: `gpu:1g.5gb:2`.
_ONE_OF_A_TYPE = re.compile(r"gpu:([A-Za-z][A-Za-z0-9_.-]{0,63})")
_OF_A_TYPE = re.compile(rf"gpu:([A-Za-z0-9_.-]{{1,64}})[:=]{_COUNT}")
_LETTER = re.compile(r"[A-Za-z]")
#: --cpus-per-task, which Slurm notes among what is asked by task.
_CPUS = ("cpu:", "cpu=")

NODE, TASK, JOB = "node", "task", "job"


class GresTexts(NamedTuple):
    """What a job asks of gres: TresPerNode, TresPerTask, TresPerJob, TresPerSocket, CpusPerTres, MemPerTres.

    `has_flags`: --gres-flags says how gres and cores belong together.
    """

    per_node: str = ""
    per_task: str = ""
    per_job: str = ""
    per_socket: str = ""
    cpus: str = ""
    memory: str = ""
    has_flags: bool = False


class GpuRequest(NamedTuple):
    """The GPUs that a job asks for: so many of each type (any: "") by `NODE`, by `TASK` or for the whole `JOB`.

    `cpus` and `memory_mb` (MiB) go with each of its GPUs; 0 if it does not say.
    """

    by: str
    by_type: tuple[tuple[str, int], ...]
    cpus: int = 0
    memory_mb: int = 0

    def in_all(self, tasks: int, nodes: int) -> int:
        """How many GPUs it asks for with so many tasks on so many nodes."""
        return sum(count for _, count in self.by_type) * {NODE: nodes, TASK: tasks, JOB: 1}[self.by]

    def on_a_node(self, tasks: int, nodes: int) -> Gpus:
        """The GPUs on one of `nodes` nodes on which `tasks` of the job's tasks run.

        Raises:
            Infeasible: it asks for a number for the whole job that its nodes do not share evenly.
        """
        if self.by == TASK:
            return gpus_of({kind: count * tasks for kind, count in self.by_type})
        if self.by == NODE or nodes == 1:
            return gpus_of(dict(self.by_type))
        # Seen: of two nodes Slurm may give three GPUs of one and one of the other.
        raise Infeasible(f"asks for GPUs of the whole job (--gpus) on {nodes} nodes: how they lie is Slurm's choice")


def asked(texts: GresTexts) -> GpuRequest | None:
    """The GPUs that the texts ask for; None if they ask for no gres at all.

    Raises:
        BadInput: they ask for anything else, or in a way that is Slurm's to read.
    """
    per_task = ",".join(entry for entry in _entries(texts.per_task) if not entry.startswith(_CPUS))
    ways = {NODE: texts.per_node, TASK: per_task, JOB: texts.per_job}
    told = [by for by, text in ways.items() if text]
    if not (told or texts.per_socket or texts.cpus or texts.memory):
        return None
    if texts.has_flags or texts.per_socket:
        raise BadInput("it asks for gres by socket, or with --gres-flags")
    if len(told) != 1:
        raise BadInput("it asks for gres in several ways, or for what goes with each GPU and for no GPU")
    return GpuRequest(told[0], tuple(sorted(_by_type(ways[told[0]]).items())), _each(texts.cpus), _each(texts.memory))


def listed(text: str) -> Gpus:
    """The GPUs of a node by a list such as `gpu:a100:2,gpu:h100:2`; none if it is empty.

    Raises:
        BadInput: it is none, or has more of a type than any node.
    """
    found = _by_type(text) if text else {}
    if any(count > MOST_OF_A_NODE for count in found.values()):
        raise BadInput(f"more than {MOST_OF_A_NODE} GPUs of a type on a node")
    return gpus_of(found)


def without(text: str, names: frozenset[str]) -> str:
    """The text without the entries of these gres."""
    return ",".join(entry for entry in text.split(",") if name_of(entry) not in names)


def name_of(entry: str) -> str:
    """The gres of an entry, without its type and its count."""
    return re.split("[:=]", _PREFIX.sub("", entry), maxsplit=1)[0]


def of_node(amounts: Mapping[str, int]) -> Gpus:
    """The GPUs among a node's gres, by name and type: `gpu` counts those without a type, `gpu:a100` those of one."""
    counts = {name[len(GPU) + 1 :]: amount for name, amount in amounts.items() if _is_gpu(name)}
    return gpus_of({kind: min(count, MOST_OF_A_NODE) for kind, count in counts.items()})


def of_tres(amounts: Mapping[str, int]) -> Gpus:
    """The GPUs among trackable resources, where `gpu` counts all."""
    return tuple(sorted((name, amount) for name, amount in amounts.items() if _is_gpu(name) and amount))


def total(gpus: Gpus) -> int:
    """How many GPUs that are, of all types."""
    return dict(gpus).get(GPU, 0)


def by_type(gpus: Gpus) -> dict[str, int]:
    """Their numbers by type; under "" those that have no type, or of which it does not matter. Without zeros."""
    if not gpus:
        return {}
    counts = {name[len(GPU) + 1 :]: count for name, count in gpus if name != GPU}
    counts[""] = total(gpus) - sum(counts.values())
    return {kind: count for kind, count in counts.items() if count > 0}


def written(gpus: Gpus) -> str:
    """The list that `listed` reads."""
    return ",".join(f"{GPU}:{kind}:{count}" if kind else f"{GPU}:{count}" for kind, count in by_type(gpus).items())


def _is_gpu(name: str) -> bool:
    return name == GPU or name.startswith(f"{GPU}:")


def _entries(text: str) -> Iterator[str]:
    if len(text) > MOST_BYTES:
        raise BadInput("it asks for gres in a text that is too long")
    return filter(None, text.split(","))


def _by_type(text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for entry in _entries(text):
        kind, count = _entry(entry)
        if kind in found or len(found) >= MOST_ENTRIES or "" in found or (found and not kind):
            raise BadInput("it names a type of GPU twice, too many, or types and any type together")
        found[kind] = count
    if not found:
        raise BadInput("it asks for no GPU")
    return found


def _entry(entry: str) -> tuple[str, int]:
    bare = _PREFIX.sub("", entry)
    if found := _OF_ANY_TYPE.fullmatch(bare):
        return "", int(found[1] or 1)
    if found := _ONE_OF_A_TYPE.fullmatch(bare):
        return found[1], 1
    if (found := _OF_A_TYPE.fullmatch(bare)) and _LETTER.search(found[1]):
        return found[1], int(found[2])
    raise BadInput(f"it asks for gres other than GPUs: {entry[:40]!r}")


def _each(text: str) -> int:
    """What goes with each GPU; 0 if the text is empty."""
    if not text:
        return 0
    found = _by_type(text)
    if found.keys() != {""}:
        raise BadInput("what goes with each GPU depends on its type")
    return found[""]
