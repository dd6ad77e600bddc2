"""Run schedules by the thousand, replay one with a readable log, or shrink one that violates a promise.

python -m world 1000000 --seed 7        (with tests/ on PYTHONPATH)
python -m world 1000000 --dense         (short schedules to which much happens: they find rare orders sooner)
python -m world 1000000 --preempting    (jobs of a higher tier suspend ours; with restarts of these and without)
python -m world 100000 --double         (unrelated faults at once: only safety is checked)
python -m world replay 4711             (or a file, such as tests/world/found/4711.json)
python -m world shrink 4711 --out tests/world/found/4711.json
python -m world mutants 10000           (does any schedule show each deliberate defect?)
python -m world bursts docs/science/results/proposed-restarts   (a day of bursts: what restarts are proposed)
python -m world day docs/science/results/simulated-day     (a day with 100,000 jobs: memory, tries, time of a cycle)
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from slurm_sns.cli.compiled_code import keep_by_state

keep_by_state()

from rich.console import Console  # noqa: E402 - numba is imported below, after its cache has been set
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn  # noqa: E402

from world import burst_day, day, mutants  # noqa: E402
from world.kernel import Broken  # noqa: E402
from world.run import Draw, Found, digest, many, run, violations  # noqa: E402
from world.schedule import Schedule, described, doubled, drawn, load  # noqa: E402
from world.schedule_dense import dense  # noqa: E402
from world.schedule_preempting import preempting  # noqa: E402
from world.shrink import shrunk  # noqa: E402
from world.story import story  # noqa: E402

#: Of one seed, so many violations are shown.
MOST_LINES = 4
DENSE = "the seeds draw short schedules with few jobs, to which much happens"
PREEMPTING = "the seeds draw schedules in which jobs of a higher tier suspend ours, with restarts and without"
DOUBLE = "the seeds draw schedules with unrelated faults at once, in which only safety is checked"
#: A run with fewer schedules shows no progress bar.
LONG = 2000


def main() -> int:
    """Run the command; 0 when all promises hold."""
    if len(sys.argv) > 1 and sys.argv[1] in ("replay", "shrink"):
        return _one()
    if sys.argv[1:2] == ["bursts"]:
        burst_day.main(Path(sys.argv[2]))
        return 0
    if sys.argv[1:2] == ["mutants"]:
        return _mutants(sys.argv[2:])
    if sys.argv[1:2] == ["day"]:
        return _day(sys.argv[2:])
    parser = argparse.ArgumentParser(prog="python -m world", description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int, help="how many schedules")
    parser.add_argument("--seed", type=int, default=0, help="the first seed; the others follow (default: 0)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="default: one for each core")
    parser.add_argument("--most", type=int, default=5, help="stop after so many failures (default: 5)")
    _add_kinds(parser)
    return _many(parser.parse_args())


def _add_kinds(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--dense", action="store_true", help=DENSE)
    kinds.add_argument("--double", action="store_true", help=DOUBLE)
    kinds.add_argument("--preempting", action="store_true", help=PREEMPTING)


def _draw(options: argparse.Namespace) -> Draw:
    if options.preempting:
        return preempting
    return doubled if options.double else dense if options.dense else drawn


def _mutants(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m world mutants")
    parser.add_argument("count", type=int, nargs="?", default=10_000, help="schedules for each (default: 10000)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="default: one for each core")
    options = parser.parse_args(words)
    return mutants.main(options.count, options.processes)


def _day(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m world day")
    parser.add_argument("folder", type=Path, help="where to write README.md, day.csv and day.png")
    parser.add_argument("--jobs", type=int, default=day.JOBS, help=f"default: {day.JOBS}")
    parser.add_argument("--hours", type=float, default=day.HOURS, help=f"default: {day.HOURS}")
    options = parser.parse_args(words)
    day.main(options.folder, options.jobs, options.hours)
    return 0


def _many(options: argparse.Namespace) -> int:
    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("schedules"), TimeElapsedColumn(), TimeRemainingColumn())
    began_s = monotonic()
    done = 0
    with Progress(*columns, console=console, disable=options.count < LONG or not console.is_terminal) as progress:
        bar = progress.add_task("", total=options.count)

        def advance(number: int, found: Sequence[Found]) -> None:
            nonlocal done
            done += number
            progress.advance(bar, number)
            for each in found:
                _tell(each, console)

        seeds = range(options.seed, options.seed + options.count)
        draw = _draw(options)
        found = many(seeds, options.processes, advance, options.most, draw)
    rate = done / max(monotonic() - began_s, 0.001)
    told = f"{len(found) or 'none'} violated a promise"
    Console(highlight=False).print(f"{done} schedules from seed {options.seed}, {rate:.0f} a second: {told}")
    if not found:
        return 0
    first = found[0]
    if first.broken:
        return 1
    console.print(f"shrinking seed {first.seed} ...")
    _tell_shrunk(draw(first.seed), None)
    return 1


def _tell(found: Found, console: Console) -> None:
    console.print(f"seed {found.seed}", style="bold red", highlight=False)
    for line in found.violations[:MOST_LINES] or [f"the simulation failed: {found.broken}"]:
        console.print(f"  {line}", highlight=False, markup=False)


def _one() -> int:
    parser = argparse.ArgumentParser(prog="python -m world")
    parser.add_argument("what", choices=("replay", "shrink"))
    parser.add_argument("schedule", help="a seed, or a file with a schedule")
    parser.add_argument("--out", type=Path, help="where to write the (shrunk) schedule as JSON")
    parser.add_argument("--quiet", action="store_true", help="without our daemons' log and without reads")
    _add_kinds(parser)
    options = parser.parse_args()
    is_seed = options.schedule.isdigit()
    schedule = _draw(options)(int(options.schedule)) if is_seed else load(Path(options.schedule))
    if options.what == "shrink":
        return _tell_shrunk(schedule, options.out)
    if options.out:
        options.out.write_text(schedule.to_json(), encoding="utf-8")
    return _replay(schedule, is_quiet=options.quiet)


def _tell_shrunk(schedule: Schedule, out: Path | None) -> int:
    smallest = shrunk(schedule)
    if smallest is None:
        Console().print("all promises hold: nothing to shrink")
        return 0
    if out:
        out.write_text(smallest.to_json(), encoding="utf-8")
    return _replay(smallest, is_quiet=True)


def _replay(schedule: Schedule, *, is_quiet: bool) -> int:
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"seed {schedule.seed}, policy {schedule.policy}, ending {schedule.ending}", style="bold")
    console.print(f"nodes {described(schedule.nodes)}", markup=False)
    console.print(f"partitions {described(schedule.partitions)}, managed {','.join(schedule.managed)}", markup=False)
    for step in schedule.steps:
        console.print(f"  {step.at_s:8.3f}  {step.what:10} {described(step.data)}", style="dim", markup=False)
    try:
        result = run(schedule, keeps_log=not is_quiet)
    except Broken as problem:
        console.print(f"the simulation failed: {problem}", style="bold red", markup=False)
        return 1
    for told in story(result, is_quiet=is_quiet):
        console.print(told)
    console.print(f"digest {digest(result.history)[:16]}", style="dim")
    found = violations(result)
    for line in found:
        console.print(line, style="bold red", markup=False)
    if not found:
        console.print("all promises hold", style="bold green")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
