"""pyslurm and our own C library side by side: the bulk read of 10,000 jobs, and the rate of updates.

    PYTHONPATH=containers python tests/benchmarks/bindings.py [--jobs 10000] [--repeat 7]

Brings up a new controller of a thousand nodes with so many jobs that wait. Prints JSON, medians in seconds:
`load_s` is the call alone, `read_s` with the translation of every record, `again_s` the same where equal records are
taken from the read before. `blocked_s` is the longest time for which another thread of the process got no turn during
the call. Updates renew the gates of all jobs: per second, and the processor seconds of the sending processes.
"""

import argparse
import json
import sys
from typing import Any

from thousand import thousand

#: Runs in the container, by the Python there.
INSIDE = """
import json, os, resource, statistics, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from slurm_sns.scheduler.gate.orders import GateOrder, OrderKind
from slurm_sns.slurm import api, libslurm, translate
from slurm_sns.slurm.executor import Senders
from slurm_sns.slurm.rpc import _fields, send
from slurm_sns.slurm.state import Translated, user_name

repeat = int(sys.argv[1])
pyslurm = api.pyslurm()
assert pyslurm is not libslurm
libslurm.slurm_init()

def took(do):
    began = time.perf_counter()
    do()
    return time.perf_counter() - began

def median(do):
    return round(statistics.median(took(do) for _ in range(repeat)), 4)

def blocked(do):
    gaps, ends = [0.0], threading.Event()
    def tick():
        last = time.perf_counter()
        while not ends.is_set():
            time.sleep(0.0002)
            now = time.perf_counter()
            gaps.append(now - last)
            last = now
    ticker = threading.Thread(target=tick)
    ticker.start()
    time.sleep(0.05)
    gaps.clear()
    do()
    ends.set()
    ticker.join()
    return max(gaps)

def reading(binding):
    def read():
        return [translate.job(record, user_name) for record in binding.Jobs.load().values()]
    kept = Translated()
    def again():
        return kept.of(binding.Jobs.load().values(), lambda record: translate.job(record, user_name))
    again()
    return {
        "load_s": median(binding.Jobs.load), "read_s": median(read), "again_s": median(again),
        "blocked_s": round(statistics.median(blocked(binding.Jobs.load) for _ in range(repeat)), 4),
        "nodes_s": median(lambda: [translate.node(each) for each in binding.Nodes.load().values()]),
        "configuration_s": median(lambda: binding.slurmctld.Config.load().version),
    }

found = {name: reading(binding) for name, binding in (("pyslurm", pyslurm), ("libslurm", libslurm))}
def values(binding):
    return {job.id: job for job in (translate.job(each, user_name) for each in binding.Jobs.load().values())}
one, other = values(pyslurm), values(libslurm)
found["jobs"] = len(one)
found["different"] = sum(one[number] != other.get(number) for number in one)

def orders(text):
    gate = int(time.time()) + 3600
    return [GateOrder(number, OrderKind.RENEW, admin_comment=f"sns:2 g={gate} {text}", begin_s=gate) for number in one]

def by_library(order):
    libslurm.Job(order.job_id).modify(libslurm.JobSubmitDescription(**_fields(order)))

def cpu_s():
    mine, of_children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return mine.ru_utime + mine.ru_stime + of_children.ru_utime + of_children.ru_stime

def updating(name, do):
    rates, used = [], []
    for turn in range(3):
        todo = orders(f"{name}{turn}")
        before = cpu_s()
        rates.append(len(todo) / took(lambda: do(todo)))
        used.append(cpu_s() - before)
    return {"per_s": round(statistics.median(rates)), "cpu_s": round(statistics.median(used), 2)}

def by_senders(todo):
    senders = Senders()
    senders._start()
    began = time.perf_counter()
    assert all(refusal is None for _, refusal in senders.send([(order,) for order in todo]))
    by_senders.took_s = time.perf_counter() - began
    for each in senders._senders:
        each.process.stdin.close()
        each.process.wait()

def threads(count):
    def do(todo):
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(by_library, todo))
    return do

found["updates"] = {
    "pyslurm, one process": updating("a", lambda todo: [send(each) for each in todo]),
    "pyslurm, 8 processes": updating("b", by_senders) | {"per_s": None},
    "libslurm, one thread": updating("c", lambda todo: [by_library(each) for each in todo]),
    "libslurm, 4 threads": updating("d", threads(4)),
    "libslurm, 8 threads": updating("e", threads(8)),
}
found["updates"]["pyslurm, 8 processes"]["per_s"] = round(len(one) / by_senders.took_s)
print(json.dumps(found))
"""


def measure(jobs: int, repeat: int) -> dict[str, Any]:
    """Fill the queue, and run the measurement where slurmctld runs."""
    with thousand(anew=True) as cluster:
        cluster.run("scontrol update partition=main state=DOWN")
        fillers = [cluster.background(f"sns-load fill {jobs // 2} large") for _ in range(2)]
        for each in fillers:
            each.wait()
        cluster.run(f"cat > /tmp/inside.py << 'END'\n{INSIDE}\nEND")
        found: dict[str, Any] = json.loads(cluster.run(f"/opt/sns/bin/python /tmp/inside.py {repeat}"))
        return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=7)
    given = parser.parse_args()
    sys.stdout.write(json.dumps(measure(given.jobs, given.repeat), indent=1) + "\n")


if __name__ == "__main__":
    main()
