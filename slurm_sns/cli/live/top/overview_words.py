"""The words of `sns top` above and below its views: the state of the scheduler, and what is selected."""

from collections.abc import Mapping, Sequence
from typing import Any

from slurm_sns.cli.live.queue_view import size
from slurm_sns.cli.live.status_view import scheduler_warnings
from slurm_sns.cli.live.top.node_boxes import Glyphs, letters, note
from slurm_sns.cli.live.top.queue_lines import place_of
from slurm_sns.durations import duration

Answer = Mapping[str, Any]

#: These are named even if there are none; the others only if there are some.
ALWAYS = ("waiting", "running")
COUNTS = ("waiting", "placing", "running", "completing", "suspended", "held", "never")


def facts(answer: Answer, now_s: float) -> str:
    """Mode, age, length of the cycle, its heuristic, and the jobs by state, as one line."""
    counts = answer["counts"]
    told = ", ".join(f"{counts[name]} {name}" for name in COUNTS if counts[name] or name in ALWAYS)
    chosen = f" by {answer['chosen']}" if answer["chosen"] else ""
    cycle_ms = answer["cycle_s"] * 1000
    return f"{answer['mode']}  {told}  cycle {cycle_ms:.0f} ms{chosen}, {duration(now_s - answer['at_s'])} ago"


def troubles(answer: Answer | None, problem: str, since_s: float, now_s: float) -> list[str]:
    """What is wrong: why there is no newer answer and since when, and what the last one says."""
    found = [f"no answer for {duration(now_s - since_s)}, asking again: {problem}"] if problem else []
    if answer is None:
        return found
    # No newer overview comes before next_s, so that its age alone is no sign that the scheduler is silent.
    at_s = max(answer["at_s"], answer.get("next_s", 0)) if not problem else now_s
    return [*found, *scheduler_warnings({**answer, "at_s": at_s}, now_s)]


def of_job(row: Answer) -> str:
    """The selected job: its label and whole reason."""
    return f"{row['label']} {row['name']}: {row['reason'] or row['state']}"


def of_lost(row: Answer, rows: Sequence[Answer]) -> str:
    """The job that was selected and is no longer among those shown."""
    what = "has left the queue" if place_of(rows, row) is None else "is no longer among the chosen jobs"
    return f"{row['label']} {what}: move the cursor to select another job"


def listed_position(at: int, shown: int, all_rows: int) -> str:
    """`12/400`, and how many jobs there are where folded arrays or a filter make the lines fewer."""
    return f"{at + 1 if shown else 0}/{shown}" + (f" ({all_rows} jobs)" if all_rows != shown else "")


def of_node(node: Answer) -> str:
    """The selected node in one line: what is free and stranded, for whom it is kept, and the letters of its jobs."""
    named = ", ".join(
        f"{letter} {job['label']}" for letter, job in zip(letters(node), node["jobs"], strict=True) if letter
    )
    return "; ".join(filter(None, (f"{node['name']}: {_free(node)}", *_free_gpus(node), note(node), named)))


def _free(node: Answer) -> str:
    free, capacity, stranded = node["free"], node["capacity"], node["stranded"]
    told = f"free {free['cores']} of {capacity['cores']} cores, {_gib(free)} of {_gib(capacity)} GiB"
    return told + (f" (stranded: {stranded['cores']} cores)" if stranded["cores"] else "")


def _free_gpus(node: Answer) -> list[str]:
    free, stranded = node["free"]["gpus"], node["stranded"]["gpus"]
    told = []
    for kind, count in node["capacity"]["gpus"].items():
        lost = f" (stranded: {stranded[kind]})" if stranded.get(kind) else ""
        told.append(f"{free.get(kind, 0)} of {count} GPUs {kind} free{lost}".replace("  ", " "))
    return told


def _gib(amounts: Answer) -> str:
    return f"{amounts['memory_mb'] / 1024:.3g}"


def node_told(node: Answer) -> list[str]:
    """The lines above the jobs of a node."""
    free, capacity = node["free"], node["capacity"]
    told = [f"{node['name']} in {', '.join(node['partitions'])}", _free(node)]
    told += [f"{free['ways']} of {capacity['ways']} cache ways free"] if capacity["ways"] else []
    return [*told, *_free_gpus(node), *filter(None, [note(node)])]


def job_lines(node: Answer) -> list[str]:
    """A line for each job of a node: its letter, its label and what it holds there."""
    return [
        f"{letter or ' '} {job['label'] or 'a job of somebody else'}  "
        f"{size({'demand': {'nodes': 1, **job['holds']}})}{'' if job['managed'] else '  (of Slurm alone)'}"
        for letter, job in zip(letters(node), node["jobs"], strict=True)
    ]


def legend(glyphs: Glyphs) -> str:
    """What the characters of a node's box mean."""
    return f"cores across, memory up  {glyphs.others} others' jobs  {glyphs.stranded} stranded  ?:help"


def help_text(glyphs: Glyphs) -> str:
    """The keys and the signs."""
    return f"""sns top: the cluster as slurm_sns plans it.
Nothing is changed before you have said yes.

Keys
  arrows, j k, PgUp PgDn, Home End   move
  Enter         explain the job; list the jobs of the node
  n, Tab        queue or nodes (a wide terminal shows both)
  /             filter by words; Esc clears
  a             fold arrays, or show each task
  c             nodes: boxes, or one line each
  r             release the job to Slurm
  t             try with less: what would start it now
  d             disable or enable slurm_sns (root and SlurmUser)
  ? q           this help; quit

Queue: the columns of sns queue
  !             capacity is withheld for this job
  +             a text that was cut

Nodes: a box with cores across and memory up; jobs are rectangles
  a-z           jobs that slurm_sns manages
  A-Z           jobs of Slurm alone
  *             the jobs after the 26th
  {glyphs.others}             jobs of others, which you may not see
  {glyphs.beside}             taken by one job in cores, by another in memory
  {glyphs.stranded}             stranded: free, but of no use to any waiting job
  {glyphs.closed}             free on a node that cannot be used now
  blank         free
  ways, gpu     used {glyphs.taken}, free {glyphs.left}, GPUs stranded {glyphs.stranded}
"""
