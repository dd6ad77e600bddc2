"""Emulated programs: they follow their curves, disturb each other by the simulator's law, and are counted."""

from dataclasses import replace
from errno import EBUSY
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from resctrl_emulator.emulator import EmulatedClock, Emulator
from resctrl_emulator.machines import AMD, L2_ONLY, MACHINES, XEON
from resctrl_emulator.programs import Program
from resctrl_emulator.refusal import Refusal
from resctrl_emulator.worlds import EmulatedTasks
from slurm_sns.config.profiles_yaml import read_profiles
from slurm_sns.model import Alternative, Job, Resources
from slurm_sns.package_files import shared_path
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts
from slurm_sns.policies.profile import Provenance, Provenances, Run
from slurm_sns.policies.spread_n_share.parameters import PAPER_BANDWIDTH_GBPS, REPRODUCTION
from slurm_sns.sim.progress.authors_model import AuthorsModel
from slurm_sns.sim.progress.contended import Contended
from slurm_sns.sim.progress.contention import Occupant, SharedNode, held_ways, speeds
from slurm_sns.sim.progress.progress import PlacedRun

#: The promise of the emulated programs.
WITHIN = 0.01
WAYS = (2, 3, 5, 8, 10, 14, 20)
NODE = SharedNode.of(20, PAPER_BANDWIDTH_GBPS, is_partitioned=True, gives_spare=False)


@cache
def paper_programs():
    return {each.name: each for each in read_profiles(shared_path("conf/profiles/spread-n-share.yaml"))}


def paper_run(name, scale=1):
    return paper_programs()[name].at(16)[scale]


def run(ipc=(1.0, 1.0), bandwidth=(10.0, 10.0), ways=(2, 20)):
    return Run(16, 1, 100.0, ways, ipc, bandwidth, Provenances(*[Provenance.ASSUMED] * 3))


class Bench:
    """An emulated machine on which a test starts programs in groups of their own."""

    def __init__(self, machine=XEON):
        self.world = EmulatedTasks()
        self.emulator = Emulator(machine, self.world, EmulatedClock())
        self.tree = self.emulator.tree
        self._task = 100

    def group(self, name, text=""):
        group = self.tree.make_group(name)
        if text:
            self.tree.write_schemata(group, f"{text}\n".encode())
        return group

    def start(self, program_run, group=None, cores=None, work_s=float("inf")):
        self._task += 1
        self.world.start(self._task)
        domains = self.tree.machine.llc_domains
        cores = cores or dict.fromkeys(domains, 16 // program_run.scale // len(domains))
        program = Program("p", program_run, (self._task,), cores, work_s)
        if group is not None:
            self.move(program, group)
        return self.emulator.programs.start(program)

    def move(self, program, group):
        self.tree.write_tasks(group, f"{program.tasks[0]}\n".encode())

    def speed(self, program):
        return self.emulator.programs.rates()[program].speed

    def advance(self, seconds):
        self.emulator.advance(seconds)

    def total_bytes(self, group, feature="mbm_total_bytes"):
        return sum(int(self.tree.counter_text(group, domain, feature)) for domain in self.tree.machine.llc_domains)


def lowest(ways):
    return f"{(1 << ways) - 1:x}"


@pytest.mark.parametrize("ways", WAYS)
@pytest.mark.parametrize("name", sorted(paper_programs()))
def test_a_program_that_is_alone_follows_its_curves(name, ways):
    for scale, program_run in paper_programs()[name].at(16).items():
        bench = Bench()
        group = bench.group("job", f"L3:0={lowest(ways)};1={lowest(ways)}")
        program = bench.start(program_run, group, work_s=1e6)
        bench.advance(10)

        assert program.instructions / program.cycles == pytest.approx(program_run.ipc_at(ways), rel=WITHIN)
        assert bench.total_bytes(group) / 1e10 == pytest.approx(program_run.bandwidth_at(ways), rel=WITHIN)
        assert program.done_s / 10 == pytest.approx(program_run.kept_at(ways), rel=WITHIN)
        assert program.cycles == pytest.approx(10 * 16 // scale * 2.4e9)
        assert bench.total_bytes(group, "llc_occupancy") == pytest.approx(2 * ways * XEON.llc_way_bytes, rel=WITHIN)


@pytest.mark.parametrize(("one", "other"), list(combinations(sorted(paper_programs()), 2)))
def test_neighbours_with_ways_of_their_own_run_as_in_the_simulator(one, other):
    runs = paper_run(one), paper_run(other)
    bench = Bench()
    first = bench.start(runs[0], bench.group("a", "L3:0=3f;1=3f"), {0: 7, 1: 7})
    second = bench.start(runs[1], bench.group("b", "L3:0=fffc0;1=fffc0"), {0: 7, 1: 7})

    law = speeds((Occupant(runs[0], 14, 6), Occupant(runs[1], 14, 14)), NODE)
    assert (bench.speed(first), bench.speed(second)) == pytest.approx(law, rel=1e-6)


@pytest.mark.parametrize("names", [("cg", "mg"), ("cg", "mg", "ep"), ("mg", "mg"), ("ep",)])
def test_neighbours_with_the_same_ways_divide_them_as_in_the_simulator(names):
    bench = Bench()
    programs = [bench.start(paper_run(name), None, {0: 4, 1: 4}) for name in names]

    node = replace(NODE, is_partitioned=False)
    jobs = tuple(Occupant(paper_run(name), 8) for name in names)
    rates = bench.emulator.programs.rates()
    assert [rates[program].ways[0] for program in programs] == pytest.approx(held_ways(jobs, node), abs=1e-4)
    assert [rates[program].speed for program in programs] == pytest.approx(speeds(jobs, node), rel=1e-6)


def test_a_program_has_its_own_ways_and_a_part_of_those_that_it_shares():
    bench = Bench()
    first = bench.start(run(bandwidth=(30.0, 30.0)), bench.group("a", "L3:0=00fff;1=00fff"))
    second = bench.start(run(bandwidth=(10.0, 10.0)), bench.group("b", "L3:0=fff00;1=fff00"))

    rates = bench.emulator.programs.rates()
    assert rates[first].ways[0] == pytest.approx(8 + 3, abs=0.1), "three quarters of the traffic, of four ways"
    assert rates[second].ways[0] == pytest.approx(8 + 1, abs=0.1)


def placed_ends(runs, starts, ways, work_s):
    """When the simulator's jobs end: each has its ways from its start on."""
    model = AuthorsModel(
        dict.fromkeys(range(len(runs)), work_s), {at: {1: each} for at, each in enumerate(runs)}, REPRODUCTION
    )
    arrays = NodeArrays(("n",), amounts([Resources(28, 1024, 20, 118)]))
    progress = Contended(arrays, model, is_partitioned=True, gives_spare=False)
    ends, waiting = {}, dict(enumerate(starts))
    while waiting or ends.keys() - {at for at, each in ends.items() if each is None}:
        running = {at: each.end_s for at, each in ends.items() if each is not None}
        at = min(waiting, key=waiting.__getitem__, default=None)
        if at is not None and (not running or waiting[at] < min(running.values())):
            way = Alternative(1, Resources(14, 1024, ways[at], 0))
            start_s = waiting.pop(at)
            timed = progress.start(PlacedRun(Job(at, 0, (way,)), way, np.array([0]), start_s, start_s))
        else:
            at = min(running, key=running.__getitem__)
            timed = progress.finish(ends[at])
            yield at, ends[at].end_s
            ends[at] = None
        ends |= {each.job.id: each for each in timed}


def test_programs_end_when_the_simulators_jobs_do():
    runs = [paper_run("cg"), paper_run("mg")]
    arrays_peak_gbps = 118.0
    bench = Bench(replace(XEON, peak_gbps=arrays_peak_gbps / 2))
    ends = dict(placed_ends(runs, [0, 40], [6, 14], 100.0))

    first = bench.start(runs[0], bench.group("a", "L3:0=3f;1=3f"), {0: 7, 1: 7}, work_s=100.0)
    bench.advance(40)
    second = bench.start(runs[1], bench.group("b", "L3:0=fffc0;1=fffc0"), {0: 7, 1: 7}, work_s=100.0)
    ended = {}
    for second_s in range(41, 400):
        bench.advance(1)
        for at, program in enumerate((first, second)):
            if not program.left_s:
                ended.setdefault(at, second_s)
    assert ended == pytest.approx(ends, abs=1)
    assert ends[0] > 100


def test_mb_caps_what_a_group_moves_and_its_neighbour_gains():
    bench = Bench()
    hungry, calm = run(bandwidth=(100.0, 100.0)), run(bandwidth=(40.0, 40.0))
    group = bench.group("a", "L3:0=3ff;1=3ff")
    first = bench.start(hungry, group)
    second = bench.start(calm, bench.group("b", "L3:0=ffc00;1=ffc00"), {0: 6, 1: 6})
    before = bench.speed(second)
    bench.tree.write_schemata(group, b"MB:0=50;1=50\n")
    bench.advance(10)

    assert bench.total_bytes(group) / 1e10 == pytest.approx(PAPER_BANDWIDTH_GBPS / 2, rel=WITHIN)
    assert bench.speed(first) == pytest.approx(PAPER_BANDWIDTH_GBPS / 2 / 100, rel=WITHIN)
    assert bench.speed(second) > before + 0.05


def test_a_cap_above_what_a_group_moves_changes_nothing():
    bench = Bench()
    group = bench.group("a")
    program = bench.start(run(bandwidth=(20.0, 20.0)), group)
    bench.tree.write_schemata(group, b"MB:0=50;1=50\n")

    assert bench.speed(program) == pytest.approx(1.0)


def test_programs_of_one_group_share_its_cap():
    bench = Bench()
    group = bench.group("a", "MB:0=10;1=10")
    programs = [bench.start(run(bandwidth=(20.0, 20.0)), group, {0: 4, 1: 4}) for _ in range(2)]
    bench.advance(10)

    assert bench.total_bytes(group) / 1e10 == pytest.approx(PAPER_BANDWIDTH_GBPS / 10, rel=WITHIN)
    assert bench.speed(programs[0]) == bench.speed(programs[1])


@pytest.mark.parametrize(
    ("machine", "value", "gbps"),
    [
        (AMD, "MB:0=64;1=64;8=64;9=64", 32.0),
        (MACHINES["xeon-mib"], "MB:0=10000;1=10000", 2 * 10000 * 2**20 / 1e9),
    ],
    ids=["amd: eighths of GB/s", "mba_MBps: MiB/s"],
)
def test_a_cap_is_in_the_machines_unit(machine, value, gbps):
    bench = Bench(machine)
    group = bench.group("a", value)
    bench.start(run(bandwidth=(100.0, 100.0)), group)
    bench.advance(10)

    assert bench.total_bytes(group) / 1e10 == pytest.approx(gbps, rel=WITHIN)


def test_a_program_on_two_caches_runs_at_the_speed_of_the_slower():
    bench = Bench()
    half = run(ipc=(0.5, 1.0), ways=(10, 20))
    program = bench.start(half, bench.group("a", "L3:0=3ff;1=fffff"))

    rate = bench.emulator.programs.rates()[program]
    assert rate.speed == pytest.approx(0.5)
    assert rate.gbps[1] == pytest.approx(2.5), "the faster part waits for the slower"


def test_with_cdp_the_ways_are_those_of_the_data():
    bench = Bench(MACHINES["xeon-cdp"])
    program = bench.start(run(ipc=(0.5, 1.0), ways=(10, 20)), bench.group("a", "L3CODE:0=1;1=1\nL3DATA:0=3ff;1=3ff"))

    assert bench.speed(program) == pytest.approx(0.5)


def test_where_the_last_cache_has_no_partitions_programs_divide_it():
    bench = Bench(L2_ONLY)
    group = bench.group("a", "L2:0=1;1=1")
    program = bench.start(run(ipc=(0.5, 1.0), bandwidth=(2.0, 2.0), ways=(4, 8)), group, {0: 2})
    assert bench.speed(program) == pytest.approx(1.0)

    bench.start(run(bandwidth=(2.0, 2.0)), None, {0: 2})
    assert bench.speed(program) == pytest.approx(0.5, rel=0.05)


def test_an_empty_mask_leaves_a_program_what_its_curve_has_at_the_fewest_ways():
    bench = Bench(AMD)
    program = bench.start(run(ipc=(0.5, 1.0), ways=(2, 16)), bench.group("a", "L3:0=0;1=0;8=0;9=0"))

    assert bench.speed(program) == pytest.approx(0.5)


def test_what_a_task_moved_before_it_moved_stays_with_its_first_group():
    bench = Bench()
    first, second = bench.group("a"), bench.group("b")
    program = bench.start(run(), first)
    bench.advance(10)
    bench.move(program, second)
    bench.advance(5)

    assert bench.total_bytes(first) == pytest.approx(100e9, rel=WITHIN)
    assert bench.total_bytes(second) == pytest.approx(50e9, rel=WITHIN)
    assert bench.total_bytes(first, "llc_occupancy") == 0


def test_a_control_group_counts_its_monitoring_groups_too_until_they_are_removed():
    bench = Bench()
    group = bench.group("a")
    part = bench.tree.make_monitor(group, "part")
    inside, outside = bench.start(run(), group), bench.start(run(), group)
    bench.move(inside, part)
    bench.advance(10)
    assert bench.total_bytes(part) == pytest.approx(100e9, rel=WITHIN)
    assert bench.total_bytes(group) == pytest.approx(200e9, rel=WITHIN)

    bench.tree.remove(part)
    assert bench.total_bytes(group) == pytest.approx(100e9, rel=WITHIN)
    assert bench.speed(inside) == bench.speed(outside)


def test_a_program_ends_with_its_task_or_its_work():
    bench = Bench()
    group = bench.group("a")
    short, long = bench.start(run(), group, work_s=4.0), bench.start(run(), group)
    bench.advance(10)
    assert short.done_s == 4.0
    assert short not in bench.emulator.programs.rates()
    assert bench.total_bytes(group) == pytest.approx(140e9, rel=0.05)

    bench.world.end(long.tasks[0])
    before = bench.total_bytes(group)
    bench.advance(10)
    assert bench.total_bytes(group) == before


def test_counters_are_multiples_of_the_hardwares_unit_and_can_fail_and_start_again():
    bench = Bench()
    group = bench.group("a")
    bench.start(run(), group)
    bench.advance(0.001)
    counters = bench.tree.counters

    assert int(bench.tree.counter_text(group, 0, "mbm_total_bytes")) % 65536 == 0
    counters.fail(group.rmid, 0, "mbm_total_bytes", "Unavailable")
    assert bench.tree.counter_text(group, 0, "mbm_total_bytes") == "Unavailable\n"
    assert bench.tree.counter_text(group, 1, "mbm_total_bytes") != "Unavailable\n"
    counters.fail(group.rmid, 0, "mbm_total_bytes", None)
    counters.reset()
    assert bench.total_bytes(group) == 0


def test_a_new_group_counts_from_0_with_an_rmid_that_was_used_before():
    bench = Bench(replace(XEON, monitoring=replace(XEON.monitoring, rmids=2)))
    group = bench.group("a")
    program = bench.start(run(), group)
    bench.advance(1)
    bench.tree.remove(group)
    again = bench.group("a")

    assert bench.total_bytes(again) == 0
    assert bench.emulator.programs.rates()[program].speed == pytest.approx(1.0)


def test_an_rmid_rests_until_the_cache_has_lost_its_lines():
    bench = Bench(replace(XEON, monitoring=replace(XEON.monitoring, rmids=2, limbo_s=1.0)))
    bench.tree.remove(bench.group("a"))

    with pytest.raises(Refusal) as refused:
        bench.group("b")
    assert (refused.value.errno, bench.tree.status) == (EBUSY, "Out of RMIDs\n")
    bench.advance(1)
    bench.group("b")


def test_with_a_real_clock_time_passes_before_every_look():
    now = [100.0]
    world = EmulatedTasks()
    emulator = Emulator(XEON, world, lambda: now[0])
    emulator.programs.start(Program("p", run(), (world.start(7),), {0: 8, 1: 8}))
    now[0] += 2
    emulator.catch_up()

    assert int(emulator.tree.counter_text(emulator.tree.root, 0, "mbm_total_bytes")) == pytest.approx(10e9, rel=WITHIN)
    with pytest.raises(TypeError, match="the clock is real; valid: --clock emulated"):
        emulator.advance(1)
