"""`sns observe` as alice, who has nothing but Slurm's commands: in a partition that slurm_sns does not manage."""

import json
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from cluster import PYTHON, Cluster, unfold

OUT = "observed"
#: alice's first look compiles, as her cache is in her directory.
FIRST_LOOK_S = 400
#: What a user could write to, beside the directory; sockets and what Slurm's own commands keep are not there.
ELSEWHERE = (
    f"find ~ /tmp /var/tmp /dev/shm -user alice -newer ~/began -not -path ~/{OUT} -not -path '*/{OUT}/*' -not -path ~ "
    "2> /dev/null || true"
)


@pytest.fixture
def waiting(cluster: Cluster) -> Iterator[tuple[int, list[int]]]:
    """A job of four whole nodes that waits for one of them, and jobs behind it that fit beside and must not start.

    Slurm keeps the free nodes for the first; its backfill starts none of the others, whose limits are too long.
    """
    cluster.run(f"rm -rf {OUT} began", "alice")
    filler = cluster.submit("-p plain -w c1 -N1 -n28 --mem=1G -t10", "sleep 600")
    cluster.wait_for("the filler runs", lambda: cluster.job(filler).state == "RUNNING")
    large = cluster.submit("-p plain -N4 -n112 --mem=1G -t10", "true")
    cluster.wait_for("it waits", lambda: cluster.job(large).reason == "Resources")
    yield large, cluster.submit_all([("-p plain -N1 -n6 --mem=1G -t60", "sleep 60")] * 3)
    cluster.run("scancel -u alice")


def look(cluster: Cluster, options: str) -> dict[str, Any]:
    """What one look prints as JSON."""
    done = cluster.run(f"sns observe --once --json --out {OUT} {options}", "alice", timeout_s=FIRST_LOOK_S)
    found: dict[str, Any] = json.loads(done)
    return found


def test_it_names_jobs_that_then_really_start_and_writes_nowhere_else(
    cluster: Cluster, waiting: tuple[int, list[int]]
) -> None:
    large, small = waiting
    cluster.run("touch began", "alice")
    first = look(cluster, "--partition plain")
    assert (first["pending"], first["managed"]) == (4, 4)
    assert first["advices"] == [], "the first of the queue has the free nodes"

    # With the draft that it has made, in which no capacity is kept for the first job.
    cluster.run(f"sed 's/^matching: {{/matching: {{reservations: 0, /' {OUT}/sns.yaml > {OUT}/own.yaml", "alice")
    second = look(cluster, f"--config {OUT}/own.yaml")
    assert sorted(int(each["job"]) for each in second["advices"]) == sorted(small)
    assert all(each["user"] == "alice" for each in second["advices"])
    assert all(set(unfold(each["nodes"])) <= {"c2", "c3", "c4"} for each in second["advices"])
    assert cluster.run(ELSEWHERE, "alice").split() == []
    assert {cluster.job(each).state for each in (large, *small)} == {"PENDING"}, "nothing was sent"

    cluster.run(f"scancel {large}")
    cluster.wait_for("they start", lambda: {cluster.job(each).state for each in small} == {"RUNNING"})


#: Prints what two other readers read differently than SlurmState: itself with our own library in the place of pyslurm,
#: in all of the cluster, and scontrol, in some jobs. Slurm changes the fields `CHANGING` by itself in between.
READERS = """
import json
import sys
import time
from dataclasses import fields
from slurm_sns.slurm import libslurm, seen_jobs, state
from slurm_sns.slurm.scontrol_state import NO_ACCOUNTS, ScontrolState

class Known:
    def numbers(self):
        return NO_ACCOUNTS

MINE = set(json.loads(sys.argv[1]))
CHANGING = {"priority", "start_s", "end_s", "planned_on", "reason", "ran_s"}
ALL = ("jobs", "nodes", "partitions", "reservations")

def differing(one, other, kinds, numbers=None):
    for kind in kinds:
        ours, shown = (
            {getattr(each, "id", None) or each.name: each for each in getattr(side, kind)} for side in (one, other)
        )
        if kind == "jobs" and numbers is not None:
            ours, shown = ({name: side[name] for name in side if name in numbers} for side in (ours, shown))
        yield from ([kind, str(name)] for name in ours.keys() ^ shown.keys())
        for name in ours.keys() & shown.keys():
            if getattr(shown[name], "gpus", None) is not None:  # of which pyslurm does not show all
                continue
            for field in {each.name for each in fields(ours[name])} - CHANGING:
                values = [str(getattr(side[name], field)) for side in (ours, shown)]
                if values[0] != values[1]:
                    yield [kind, str(name), field, *values]

libslurm.slurm_init()

# What pyslurm and our own library read, and what they and scontrol read differently.
def read():
    state.library = state.pyslurm
    ours, shown = state.SlurmState(Known()).observe(), ScontrolState(print).observe()
    state.library = lambda: libslurm
    own = state.SlurmState(Known()).observe()
    different = [*differing(ours, shown, ALL[:3], MINE), *differing(ours, own, ALL)]
    return ours, own, {tuple(each[:3]): each for each in different}

# Jobs start and end between two reads, and Slurm notes since when one may start: a second later that is read alike.
ours, own, different = read()
for _ in range(3):
    if different:
        time.sleep(1)
        ours, own, again = read()
        different = {key: again[key] for key in different.keys() & again.keys()}
found = list(different.values())
rest = {each.name for each in fields(ours)} - {*ALL, "shown_in_s"}
pairs = [(name, getattr(ours, name), getattr(own, name)) for name in rest]
found += [[name, str(one), str(other)] for name, one, other in pairs if one != other]
# A look that reads the jobs of each user shows what one shows that reads all, and knows which are gone.
seen_jobs.LONG_S, clock = 0, [0.0]
looks = seen_jobs.SeenJobs(lambda: libslurm, lambda: clock[0], least_jobs=0)
looks.look(), looks.look()
found += [[str(name), "has changed"] for name in looks.outdated(MINE)]
found += [[name, "is no field"] for name in seen_jobs.MOVING - {*libslurm._layout("sns_job_fields").names}]
clock[0] += seen_jobs.ALL_S  # each user has his turn
again, whole = looks.look(), libslurm.Jobs.load()
found += [] if again.keys() <= looks._read_by_look else [["the jobs of some user were not read"]]
read, looked = ({name: side[name].but(seen_jobs.MOVING) for name in side} for side in (whole, again))
found += [[str(name), str(looked.get(name)), str(read.get(name))] for name in read if looked.get(name) != read[name]]
found += [[str(name), "is left"] for name in looked.keys() - read.keys()]
found += [] if looks.outdated([4_000_000]) == {4_000_000} else [["a job that never was is there"]]
print(json.dumps({"jobs": len(own.jobs), "states": sorted({job.state for job in own.jobs}), "differing": found}))
"""


def test_it_reads_the_same_as_pyslurm_and_as_our_own_library(cluster: Cluster, waiting: tuple[int, list[int]]) -> None:
    kinds = ["-c2 -n3", "-N2 --ntasks-per-node=2", "--array=1-5%2 -n2", "--gres=llc:2", "-C 'ib&avx2'", "-x c2"]
    kinds += ["--exclusive", f"-d afterok:{waiting[0]} -n2", "-J 'a JobState=RUNNING UserId=root(0)' --begin=now+1hour"]
    numbers = cluster.submit_all([(f"-p plain -t 1-02:03 --mem-per-cpu=100M {options}", "true") for options in kinds])
    odd = ["-p main -n2 --comment=$'\\377\\n'", "-p main --gres=membw:3,llc:1 --mail-type=FAIL", "-p main -n40"]
    odd += ["-p plain -L matlab:1 --deadline=now+1hour", "-p plain --switches=1 --tmp=5 --contiguous --prefer=ib"]
    cluster.submit_all([(f"-H -t 5 {options}", "true") for options in odd])
    told = json.loads(cluster.run(f"{PYTHON} -c {shlex.quote(READERS)} '{json.dumps(numbers)}'", "slurm"))
    assert told["differing"] == []
    assert told["jobs"] >= len(kinds) + len(odd)
    assert {"pending", "running"} <= {*told["states"]}
