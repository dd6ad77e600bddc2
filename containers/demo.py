"""The demo: two users' jobs on the mini cluster, placed by slurm_sns and, for comparison, by Slurm alone; and agents.

Everything that is shown is read back from the running cluster: where and when Slurm started each job, and the reason
that the scheduler recorded. `make demo` runs it; it brings the cluster up before and takes it down afterwards. With
--next it only says what to do next.
"""

import sys
import time
from dataclasses import dataclass

from rich.console import Console, Group
from rich.markup import escape
from rich.table import Table

from cluster import Cluster, Seen, fold
from demo_agents import show_agents
from waits import TellingCluster, durations

console = Console(width=None if sys.stdout.isatty() else 170, highlight=False)


@dataclass(frozen=True)
class Request:
    """One job of the demo; the options are what the user types."""

    user: str
    options: str
    script: str


#: The first eight are the queue of the Max-Jobs paper's figure 3, on nodes of its size (4 cores, 32 GB): two jobs of
#: one core and 16 GB, six of one core and 4 GB. Packed as tightly as possible, the first two fill one node's memory
#: and two wait.
FIGURE_3 = [Request("alice", "-p small -n1 --mem=16G", "sleep 4")] * 2 + [
    Request("alice", "-p small -n1 --mem=4G", "sleep 6")
] * 6

#: Then the 28-core nodes: narrow and wide, light and heavy in memory, some with hints.
MIX = [
    Request("bob", "-n16", "sleep 5"),
    Request("bob", "-n16 --sns-program=mg --sns-alpha=0.9", "sleep 5"),
    Request("alice", "-n8 -c2", "sleep 4"),
    Request("bob", "-n4 --mem=60G", "sleep 4"),
    Request("alice", "-n40", "sleep 5"),
    Request("bob", "-N2 --ntasks-per-node=6", "sleep 4"),
    Request("alice", "-n1 --mem=90G", "sleep 6"),
    Request("bob", "-n12 --sns-heuristic=worse-fit-cores", "sleep 4"),
    Request("alice", "-n6 --comment sns:program=ep", "sleep 3"),
    Request("bob", "-n2 --mem=24G", "sleep 4"),
    Request("alice", "-n20", "sleep 4"),
    Request("bob", "-n28", "sleep 3"),
    Request("alice", "-n4", "sleep 3"),
    Request("bob", "-n4 --mem-per-cpu=2G", "sleep 3"),
    Request("alice", "-N3 -n3", "sleep 3"),
    Request("bob", "-n10", "sleep 4"),
    Request("alice", "-n2 --mem=40G --sns-heuristic=mix-fit", "sleep 4"),
    Request("bob", "-n1", "sleep 2"),
    Request("alice", "-n14 --sns-alpha=0.8", "sleep 3"),
    Request("bob", "-n24 --mem-per-cpu=1G", "sleep 3"),
]
MATCHED = FIGURE_3 + MIX
#: The name under which it is noted how long the whole demo took.
WHOLE = "demo"

#: The twelve programs of the Spread-n-Share paper, as stand-ins that take as long as their profiles say.
PROGRAMS = ("lu", "cg", "hc", "ts", "bw", "bfs", "gan", "rnn", "ep", "wc", "nw", "mg")
SPEED = 150  # two and a half minutes of a program are a second of its stand-in
SPREAD = [
    Request(("alice", "bob")[turn % 2], f"-n16 --mem-per-cpu=1G --sns-program={name}", f"sns-stand-in {name} {SPEED}")
    for turn, name in enumerate(PROGRAMS)
]


#: What to do after the demo, as commands that work in the checkout, and what each is good for.
NEXT = (
    ("make cluster-up cluster-shell", "a shell as alice on this cluster; make cluster-down ends it"),
    (".venv/bin/sns workload netbatch-a --days 4 --out /tmp/a.swf.gz --nodes-out /tmp/a.csv", "a trace"),
    (".venv/bin/sns simulate /tmp/a.swf.gz --nodes /tmp/a.csv --policy max-jobs --load-factor 0.55", "replay it"),
)


def main() -> None:
    """Run the demo, or say what to do next."""
    if sys.argv[1:] == ["--next"]:
        console.print("Next, here (docs/try.md says more):")
        for command, what in NEXT:
            console.print(f"  {escape(command)}    [dim]# {escape(what)}[/]", soft_wrap=True)
        return
    demo(TellingCluster(console, durations()))


def demo(cluster: TellingCluster) -> None:
    """Compare matching with Slurm alone, spreading and sharing with exclusive nodes (CE), partitions with none."""
    known, began = durations(), time.monotonic()
    last_s = known.last_s(WHOLE)
    console.print(f"The demo takes {'about three minutes' if last_s is None else f'{last_s:.0f} s, as the last time'}.")
    console.rule(f"{len(MATCHED)} jobs of alice and bob, placed by slurm_sns")
    ours = with_slurm_sns(cluster, MATCHED)
    console.print(placements(cluster, ours))
    console.print("\nthe record in the first job, which Slurm's accounting keeps:")
    show(cluster, f"sacct -XP -j {ours[0].id} -o JobID,State,NodeList,AdminComment")
    console.rule("the same jobs again, with slurm_sns switched off (sns disable): Slurm alone")
    console.print(summary(ours, slurm_alone(cluster)))

    console.rule("stand-ins of twelve profiled programs, 16 processes each: spread and shared")
    cluster.run("sns profile import /usr/src/slurm_sns/conf/profiles/spread-n-share.yaml", "slurm")
    cluster.daemon("restart")  # the scheduler reads new profiles every few seconds; a restart reads them at once
    cluster.wait_for_scheduler()
    spread = with_slurm_sns(cluster, SPREAD)
    console.print("where and why, as the owner of the first job sees it:")
    show(cluster, f"sns explain {spread[0].id}", SPREAD[0].user)
    console.rule("the same programs under CE (compact and exclusive), as most clusters run them")
    console.print(spreading(cluster, spread, under_ce(cluster)))
    show_agents(cluster, console)
    known.note(WHOLE, time.monotonic() - began)


def with_slurm_sns(cluster: TellingCluster, requests: list[Request]) -> list[Seen]:
    """Run the jobs with slurm_sns and return them after their end, in submission order.

    The scheduler is paused while the jobs are submitted, so that one cycle sees them all: then the order of matching
    matters.
    """
    pid = cluster.run("cat /run/sns/scheduler.pid").strip()
    cluster.run(f"kill -STOP {pid}")
    try:
        numbers = submit(cluster, requests)
        gated = sum(job.is_gated for job in cluster.jobs().values())
        console.print(f"{gated} of {len(numbers)} jobs are gated: each has a begin time until a cycle places it")
        show(cluster, f"squeue -j {numbers[0]} -o '%.6i %.8u %.9T %.10r %.20S'")
    finally:
        cluster.run(f"kill -CONT {pid}")
    return finished(cluster, numbers)


def show(cluster: Cluster, command: str, user: str = "alice") -> None:
    """Show a command and what it prints."""
    console.print(escape(f"$ {command}"), style="bold")
    console.print(escape(cluster.run(command, user)))


def slurm_alone(cluster: TellingCluster) -> list[Seen]:
    """Run the same requests with the kill switch on."""
    cluster.run("sns disable", "slurm")
    try:
        return finished(cluster, submit(cluster, MATCHED))
    finally:
        cluster.run("sns enable", "slurm")


def under_ce(cluster: TellingCluster) -> list[Seen]:
    """Run the programs again with the same scheduler, under the policy ce."""
    cluster.run("sed 's/^policy: .*/policy: ce/' /etc/slurm/sns.yaml > /tmp/sns-ce.yaml")
    cluster.daemon("restart", config="/tmp/sns-ce.yaml")
    cluster.wait_for_scheduler()
    return with_slurm_sns(cluster, SPREAD)


def submit(cluster: Cluster, requests: list[Request]) -> list[int]:
    """Submit all requests in order, each as its user, and return the job ids in that order."""
    lines = [
        f"setpriv --reuid={request.user} --regid={request.user} --init-groups "
        f"sbatch --parsable -D /tmp -o /dev/null -t 5 {request.options} --wrap '{request.script}' || exit"
        for request in requests
    ]
    return [int(line) for line in cluster.run("\n".join(lines)).split()]


def finished(cluster: TellingCluster, numbers: list[int]) -> list[Seen]:
    """Wait until all jobs have ended, printing the progress, and return them."""
    wanted, seen = set(numbers), {}

    def progress() -> None:
        ended = -1
        while ended < len(wanted):
            seen.update((job_id, job) for job_id, job in cluster.jobs().items() if job_id in wanted)
            ended = sum(job.has_ended for job in seen.values())
            running = sum(job.state == "RUNNING" for job in seen.values())
            console.print(f"  {running:3} running, {ended:3} of {len(wanted)} done", style="dim")
            if ended < len(wanted):
                time.sleep(2)

    cluster.watched(f"{len(wanted)} jobs end", progress)
    return [seen[number] for number in numbers]


def placements(cluster: Cluster, jobs: list[Seen]) -> Table:
    """One row for each job: what it asked for, where it ran, and why there."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("JOB", "USER", "ASKED FOR", "WON THE CYCLE", "NODES", "WAIT", "WHY THERE"):
        table.add_column(name, justify="right" if name in ("JOB", "WAIT") else "left")
    starts = cluster.starts(job.id for job in jobs)
    for request, job in zip(MATCHED, jobs, strict=True):
        start = starts[job.id]
        as_planned = "" if tuple(start["nodes"]) == job.nodes else f" (planned: {fold(start['nodes'])})"
        won = ", ".join(name for name, count in start["matched"].items() if count == max(start["matched"].values()))
        table.add_row(
            str(job.id),
            job.user,
            request.options,
            start["chosen"] + (" *" if "," in won else ""),
            fold(job.nodes) + as_planned,
            f"{job.start_s - job.submit_s:.0f} s",
            escape(start["reason"]),
        )
    table.caption = "* other heuristics matched as many jobs; the first of the portfolio is taken"
    return table


def summary(ours: list[Seen], plain: list[Seen]) -> Table:
    """A table with both runs side by side."""
    table = Table(box=None, pad_edge=False, header_style="bold", title="the same jobs, in the same order")
    for name in ("", "slurm_sns", "Slurm alone"):
        table.add_column(name, justify="left" if not name else "right")
    figure_3 = slice(0, len(FIGURE_3))
    for name, value in (
        ("jobs completed", lambda jobs: f"{sum(job.state == 'COMPLETED' for job in jobs)}"),
        ("figure 3: started together", lambda jobs: f"{started_together(jobs[figure_3])} of {len(FIGURE_3)}"),
        ("all: started in the first 3 s", lambda jobs: f"{started_together(jobs)} of {len(jobs)}"),
        ("mean wait", lambda jobs: f"{sum(job.start_s - job.submit_s for job in jobs) / len(jobs):.1f} s"),
        ("from first submission to last start", lambda jobs: f"{span(jobs):.0f} s"),
    ):
        table.add_row(name, value(ours), value(plain))
    table.add_section()
    table.add_row("[bold]nodes, job by job")
    for request, here, there in zip(MATCHED, ours, plain, strict=True):
        table.add_row(
            f"{here.user} {request.options}",
            f"{fold(here.nodes)} after {here.start_s - here.submit_s:.0f} s",
            f"{fold(there.nodes)} after {there.start_s - there.submit_s:.0f} s",
        )
    return table


def spreading(cluster: Cluster, ours: list[Seen], under_ce: list[Seen]) -> Group:
    """One row for each program: what slurm_sns gave it and why, and what CE gave it; then what the profiles say."""
    table = Table(box=None, pad_edge=False, header_style="bold", caption="per node: cores, cache ways, GB/s")
    shown = ("PROGRAM", "SCALE", "NODES", "PER NODE", "WAIT", "RUN", "UNDER CE", "WAIT", "RUN", "WHY")
    for name in shown:
        table.add_column(name, justify="right" if name in ("SCALE", "WAIT", "RUN") else "left")
    starts = cluster.starts(job.id for job in ours)
    profiles = []
    for name, here, there in zip(PROGRAMS, ours, under_ce, strict=True):
        start = starts[here.id]
        demand = start["demand"]
        profiles.append(escape(" ".join(start["considered"]["summary"])))
        given = f"({demand['cores']}, {demand['ways']}, {demand['bandwidth_gbps']})"
        table.add_row(
            name,
            str(start["scale"]),
            fold(here.nodes) + (" alone" if start["exclusive"] else ""),
            given,
            f"{here.start_s - here.submit_s:.0f} s",
            f"{here.end_s - here.start_s:.0f} s",
            f"{fold(there.nodes)} alone",
            f"{there.start_s - there.submit_s:.0f} s",
            f"{there.end_s - there.start_s:.0f} s",
            escape(start["reason"]),
        )
    return Group(table, "", *profiles, "", in_sum("spread and shared", ours), in_sum("under CE", under_ce))


def in_sum(name: str, jobs: list[Seen]) -> str:
    """One line on a run of all programs."""
    wait_s = sum(job.start_s - job.submit_s for job in jobs) / len(jobs)
    turnaround_s = sum(job.end_s - job.submit_s for job in jobs) / len(jobs)
    last_s = max(job.end_s for job in jobs) - min(job.submit_s for job in jobs)
    return (
        f"{name}: mean wait {wait_s:.1f} s, mean turnaround {turnaround_s:.1f} s, "
        f"the last one ended after {last_s:.0f} s"
    )


def started_together(jobs: list[Seen]) -> int:
    """How many started within 3 s of the first of them."""
    first = min(job.start_s for job in jobs)
    return sum(job.start_s - first <= 3 for job in jobs)


def span(jobs: list[Seen]) -> float:
    """Seconds from the first submission to the last start."""
    return max(job.start_s for job in jobs) - min(job.submit_s for job in jobs)


if __name__ == "__main__":
    main()
