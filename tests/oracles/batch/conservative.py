"""Conservative backfilling in plain Python, for jobs that have their equal nodes alone: each waiting job has a booking.

At each event all jobs are planned anew, in the order of submission, each for the earliest moment from which on enough
nodes are free for as long as its limit (Mu'alem and Feitelson, IEEE TPDS 12(6), 2001). Nodes are only counted: whatever
nodes a job takes when it starts, such a plan can be kept. `AsSlurm` are the rules in which Slurm's backfill differs.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from oracles.batch.slurm import grouped_ends, runs_of
from slurm_sns.sim.trace import TraceJob


class AsSlurm(NamedTuple):
    """Which rules are Slurm's."""

    #: A job may not end in the second in which a booking begins.
    keeps_apart: bool = False
    #: Expected ends of running jobs are looked at in groups, anew in the second after a start.
    groups_ends: bool = False
    #: A booking is of certain nodes, from the tightest run of neighbours.
    names_nodes: bool = False


class Held(NamedTuple):
    """Nodes that are held, from a moment to another one."""

    nodes: tuple[int, ...]
    begin_s: int
    end_s: int


def conservative(count: int, jobs: Sequence[TraceJob], limits_s: Sequence[int], rules: AsSlurm) -> list[int]:
    """The second in which each job starts on so many nodes; it is planned for its limit."""
    starts: dict[int, Held] = {}
    now_s = 0
    while len(starts) < len(jobs):
        booked: list[Held] = []
        before = len(starts)
        for at, each in enumerate(jobs):
            if at in starts or each.job.submit_s > now_s:
                continue
            running = {one: held for one, held in starts.items() if held.end_s > now_s}
            ends_s = {one: max(held.begin_s + limits_s[one], now_s + 1) for one, held in running.items()}
            expected = [Held(held.nodes, now_s, ends_s[one]) for one, held in running.items()]
            if rules.groups_ends:
                later_s = grouped_ends(ends_s)
                grouped = [Held(held.nodes, now_s, later_s[one]) for one, held in running.items()]
            else:
                grouped = expected
            job = Asked(each.job.alternatives[0].nodes, limits_s[at], now_s)
            plan = _plan(count, job, (expected, grouped, booked), rules)
            if plan.begin_s == now_s:
                starts[at] = Held(plan.nodes, now_s, now_s + int(each.run_s))
            else:
                booked.append(plan)
        events = [held.end_s for held in starts.values()] + [each.job.submit_s for each in jobs]
        if rules.groups_ends and len(starts) > before:
            events.append(now_s + 1)  # Slurm plans again after a start, and groups begin at the moment of a pass
        now_s = min((moment_s for moment_s in events if moment_s > now_s), default=now_s)
    return [starts[at].begin_s for at in range(len(jobs))]


class Asked(NamedTuple):
    """So many nodes for so long, not before a moment."""

    nodes: int
    length_s: int
    now_s: int


def _plan(count: int, job: Asked, held: tuple[list[Held], list[Held], list[Held]], rules: AsSlurm) -> Held:
    """The earliest place; nodes are held by running jobs now, by them later, and by bookings."""
    running, later, booked = held
    wanted, length_s, now_s = job
    for begin_s in sorted({now_s, *(each.end_s for each in [*later, *booked])}):
        end_s = begin_s + length_s
        taken = [*(running if begin_s == now_s else later), *booked]
        until_s = end_s + 1 if rules.keeps_apart else end_s
        if rules.names_nodes:
            names = {node for each in taken if each.begin_s < until_s and begin_s < each.end_s for node in each.nodes}
            free = [node for node in range(count) if node not in names]
            if len(free) >= wanted:
                return Held(_tightest(free, wanted), begin_s, end_s)
        elif all(
            count - _number(taken, moment_s) >= wanted
            for moment_s in {begin_s, *(each.begin_s for each in taken if begin_s < each.begin_s < until_s)}
        ):
            return Held(tuple(range(wanted)), begin_s, end_s)
    raise AssertionError("at the end of everything all nodes are free")


def _number(held: Iterable[Held], moment_s: int) -> int:
    return sum(len(each.nodes) for each in held if each.begin_s <= moment_s < each.end_s)


def _tightest(free: Sequence[int], wanted: int) -> tuple[int, ...]:
    one = dict.fromkeys(free, 1)
    return tuple(runs_of(free, wanted, one, dict.fromkeys(free, 0)))
