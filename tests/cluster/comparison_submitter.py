"""Submit jobs at given times, release the held ones, and wait until all have ended. Runs on the controller, as root.

    python comparison_submitter.py PLAN.json

PLAN.json: {"wait_s": ..., "jobs": [{"at_s", "user", "options", "sleep_s", "dependency", "after", "release_s",
"never_runs"}, ...]}. Prints JSON: the jobs' numbers in that order, when each was released (Unix seconds), which had not
ended `wait_s` seconds after the last submission, and when the wait was over. Jobs that have not ended are cancelled.
One process submits all jobs of a run: a docker exec for each job would take longer than the job.
"""

import heapq
import json
import os
import pwd
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def as_user(user: str, *command: str) -> str:
    """Run a command as the user and return what it prints."""
    who = pwd.getpwnam(user)
    return subprocess.run(
        command,
        user=who.pw_uid,
        group=who.pw_gid,
        extra_groups=[who.pw_gid],
        cwd="/tmp",
        env={"HOME": who.pw_dir, "PATH": os.environ["PATH"], "USER": user},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    ).stdout


def submit(job: dict[str, Any], numbers: list[int]) -> int:
    """Submit a job and return its number; `numbers` are those of the jobs before it."""
    options = shlex.split(job["options"])
    if job["after"] is not None:
        options.append(f"--dependency={job['dependency']}:{numbers[job['after']]}")
    words = ("sbatch", "--parsable", "-o", "/dev/null", *options, "--wrap", f"sleep {job['sleep_s']}")
    return int(as_user(job["user"], *words))


def submit_all(jobs: list[dict[str, Any]]) -> tuple[list[int], dict[int, float]]:
    """Submit and release each job at its time.

    Returns the jobs' numbers, and when each was released (Unix seconds, by number).
    """
    began_s = time.time()
    todo = [(job["at_s"], 0, number) for number, job in enumerate(jobs)]
    heapq.heapify(todo)
    numbers: list[int] = []
    released_s: dict[int, float] = {}
    while todo:
        at_s, is_release, index = heapq.heappop(todo)
        time.sleep(max(0.0, began_s + at_s - time.time()))
        if is_release:
            as_user(jobs[index]["user"], "scontrol", "release", str(numbers[index]))
            released_s[numbers[index]] = time.time()
            continue
        numbers.append(submit(jobs[index], numbers))
        if jobs[index]["release_s"] is not None:
            heapq.heappush(todo, (at_s + jobs[index]["release_s"], 1, index))
    return numbers, released_s


def left_of(numbers: set[int]) -> set[int]:
    """The jobs that have not ended."""
    seen = subprocess.run(["squeue", "-a", "-h", "-o", "%i"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return numbers & {int(word) for word in seen.split()}


def main(path: str) -> None:
    """Submit all jobs, wait for them, cancel those that have not ended, and print the result."""
    plan = json.loads(Path(path).read_text(encoding="utf-8"))
    numbers, released_s = submit_all(plan["jobs"])
    held = {number for number, job in zip(numbers, plan["jobs"], strict=True) if job["never_runs"]}
    deadline_s = time.monotonic() + plan["wait_s"]
    while (left := left_of(set(numbers) - held)) and time.monotonic() < deadline_s:
        time.sleep(0.5)
    ended_s = time.time()
    if held | left:
        subprocess.run(["scancel", *map(str, held | left)], check=True)
    said = {"numbers": numbers, "released_s": released_s, "left": sorted(left), "ended_s": ended_s}
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
