"""Which settings of Slurm keep the agents on the nodes from knowing a job's processes and cores. Pure.

Short timeouts are wrong: they cost jobs and nodes. The others have a price, which the warning names: the agents work,
and know less.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from slurm_sns.conf_text import Line
from slurm_sns.slurm.check import RECONFIGURE, Finding
from slurm_sns.slurm.check.files import OURS, unused

#: plugins/spank/sns.c waits 12 s for a prolog at most (HOOK_MS); slurmd drains a node whose prolog takes longer than
#: its timeout.
LEAST_PROLOG_TIMEOUT_S = 15
#: PrologTimeout and EpilogTimeout count before it (slurm.conf(5)).
TIMEOUTS = ("PrologTimeout", "EpilogTimeout", "PrologEpilogTimeout")


#: Seconds until slurmctld requeues a batch job as missing whose prolog still runs. Slurm's default of 10 was too short
#: for 28 jobs that began on a node at once (seen on 26.05.5).
BATCH_START, DEFAULT_BATCH_START_S, LEAST_BATCH_START_S = "BatchStartTimeout", 10, 60


def findings(path: Path, slurm_conf: Sequence[Line], cgroup_conf: Sequence[Line]) -> Iterator[Finding]:
    """Check the lines of slurm.conf, which is at `path`, and of cgroup.conf."""
    yield _timeouts(slurm_conf)
    yield _batch_start(path, slurm_conf)
    yield _tracking(slurm_conf)
    yield _binding(slurm_conf, cgroup_conf)


def _timeouts(slurm_conf: Sequence[Line]) -> Finding:
    given = {name: _value(slurm_conf, name) for name in TIMEOUTS}
    short = [
        f"{name}={value}" for name, value in given.items() if value.isdecimal() and int(value) < LEAST_PROLOG_TIMEOUT_S
    ]
    return Finding(
        not short,
        "slurmd waits for an agent that does not answer, and drains no node",
        ", ".join(short),
        f"no timeout of prologs below {LEAST_PROLOG_TIMEOUT_S} s",
        advice=f"slurm.conf: {', '.join(short)} without them, or {LEAST_PROLOG_TIMEOUT_S} or more",
    )


def _batch_start(path: Path, slurm_conf: Sequence[Line]) -> Finding:
    given = [line for line in slurm_conf if line.option and line.option[0] == BATCH_START.lower()]
    value = given[-1].option[1] if given and given[-1].option else str(DEFAULT_BATCH_START_S)
    return Finding(
        value.isdecimal() and int(value) >= LEAST_BATCH_START_S,
        "slurmctld requeues no batch job because its prolog still runs",
        f"{BATCH_START}={value}",
        f"{LEAST_BATCH_START_S} or more",
        file=str(given[-1].file if given else path),
        remove=given[-1].text if given else "",
        add="".join(f"{unused(line.text)}\n" for line in given[-1:]) + f"{BATCH_START}={LEAST_BATCH_START_S}{OURS}",
        run=RECONFIGURE,
    )


def _tracking(slurm_conf: Sequence[Line]) -> Finding:
    found = _value(slurm_conf, "ProctrackType") or "proctrack/cgroup"  # Slurm's default
    return Finding(
        ok=True,
        warning=found.lower() not in ("proctrack/cgroup", "cgroup"),
        what="the agents find the processes of a job by its cgroup",
        found=f"ProctrackType={found}",
        wanted="ProctrackType=proctrack/cgroup",
        advice="they look for the children of slurmstepd: what a job starts is measured with it and is in its group, "
        "but processes that are no children of it any more are not moved when its group is made later",
    )


def _binding(slurm_conf: Sequence[Line], cgroup_conf: Sequence[Line]) -> Finding:
    plugins = [word.lower().removeprefix("task/") for word in _value(slurm_conf, "TaskPlugin").split(",")]
    constrains = _value(cgroup_conf, "ConstrainCores").lower() in ("yes", "true", "1")
    found = f"TaskPlugin={_value(slurm_conf, 'TaskPlugin') or 'unset'}, ConstrainCores={'yes' if constrains else 'no'}"
    return Finding(
        ok=True,
        warning="cgroup" not in plugins or not constrains,
        what="a job stays on its cores, so the agents know in which caches it needs ways",
        found=found,
        wanted="TaskPlugin=task/cgroup,task/affinity, and ConstrainCores=yes in cgroup.conf",
        advice="its ways count in each cache of its nodes, also where none of its cores is: fewer jobs find ways",
    )


def _value(lines: Sequence[Line], name: str) -> str:
    """The last value of the option; empty if it is not set."""
    values = [line.option[1] for line in lines if line.option and line.option[0] == name.lower()]
    return values[-1] if values else ""
