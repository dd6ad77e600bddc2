"""Layouts and bandwidth come into force: the exact lines, the order, kills in between, others."""

import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from node_agent import MIXES, PEAK_GBPS, SHARED_WAYS, Agent, Running, assert_is_accepted, unguarded
from resctrl_trees import INTEL_L3, INTEL_MB, Killed, Tree, amd, build, contents, intel

from slurm_sns.node.apply import Applied, apply, shapes, standing
from slurm_sns.node.group_writes import SHARED, BandwidthNeeds, Draw, group_of, job_of
from slurm_sns.node.resctrl.groups import CannotMake, GroupGone, Groups, ResctrlError
from slurm_sns.node.resctrl.machine import Bandwidth, discover
from slurm_sns.node.ways.layout import Need, layout


class Node(Agent):
    """A node whose tree is a plain directory."""

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree.root, tree)
        self.tree = tree

    def run(self, *jobs: Running) -> Applied:
        self.tree.end_all_but({1, 2, *(thread for job in jobs for thread in self.threads(job))})
        self.lay_out(*jobs)
        return self.apply(*jobs)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(Tree(intel(tmp_path / "tree")))


MACHINES = (
    "resctrl.full",
    "resctrl.l2",
    "resctrl.l2cdp",
    "resctrl.l2l3mb",
    "resctrl.nol3",
    "resctrl.nol3.mbps",
    "resctrl.nomb",
    "resctrl.nomb.cdp",
)


def story(node: Node) -> str:
    """All mixes one after the other: what was done to the tree, and what the jobs were told."""
    text = []
    for title, jobs in MIXES.items():
        before = len(node.tree.changes)
        applied = node.run(*jobs)
        text.append(f"# {title}")
        text += [change.replace("\n", "\n    ") for change in node.tree.changes[before:]]
        text += [f"# without ways: job {job}" for job in node.planned.without]
        text += [f"# without a group: job {job}" for job in applied.without]
        text.append("")
    return "\n".join(text)


class TestGoldenWrites:
    @pytest.mark.parametrize("name", MACHINES)
    def test_on_a_captured_machine(self, name: str, captured: Path, tmp_path: Path) -> None:
        shutil.copytree(captured / name, tmp_path / name)
        closids = discover(tmp_path / name).closids
        assert_is_accepted(name, story(Node(Tree(tmp_path / name, closids))), tmp_path)

    def test_on_an_intel_machine(self, tmp_path: Path) -> None:
        assert_is_accepted("intel", story(Node(Tree(intel(tmp_path / "tree"), 8))), tmp_path)

    def test_on_an_amd_machine(self, tmp_path: Path) -> None:
        assert_is_accepted("amd", story(Node(Tree(amd(tmp_path / "tree")))), tmp_path)


class TestJobs:
    def test_each_job_has_a_group_and_all_others_share_one(self, node: Node) -> None:
        assert node.run(Running(7, 4), Running(8, 4)).made == (7, 8)
        assert node.groups.names() == ("job7", "job8", SHARED)

    def test_the_root_group_keeps_what_it_has(self, node: Node) -> None:
        before = (node.tree.root / "schemata").read_text()
        node.run(Running(7, 4))
        node.run()
        assert (node.tree.root / "schemata").read_text() == before

    def test_what_is_in_force_is_not_written_again(self, node: Node) -> None:
        node.run(Running(7, 4, 10), Running(8, 4))
        changes = len(node.tree.changes)
        assert node.run(Running(7, 4, 10), Running(8, 4)) == Applied()
        assert len(node.tree.changes) == changes

    def test_a_new_jobs_masks_are_written_before_its_threads_are_moved(self, node: Node) -> None:
        node.run(Running(7, 4))
        [made, written, moved] = [change for change in node.tree.changes if "sns_job7" in change]
        assert made == "make sns_job7"
        assert written.startswith("sns_job7 < L3:")
        assert moved == "sns_job7 < 1007"

    def test_all_domains_and_the_bandwidth_of_a_group_are_one_write(self, node: Node) -> None:
        node.run(Running(7, 4, 10))
        assert sum(" < L3" in change for change in node.tree.changes) == 2
        assert "sns_job7 < L3:0=3ffff;1=3ffff\nMB:0=10;1=10" in node.tree.changes

    def test_the_group_of_a_job_that_has_ended_is_removed_first(self, node: Node) -> None:
        node.run(Running(7, 4))
        before = len(node.tree.changes)
        node.run(Running(8, 4))
        assert [change for change in node.tree.changes[before:] if "make" in change or "remove" in change] == [
            "remove sns_job7",
            "make sns_job8",
        ]

    def test_a_job_with_bandwidth_alone_takes_more_shared_ways_when_they_are_free(self, tmp_path: Path) -> None:
        node = Node(
            Tree(build(tmp_path / "tree", "L3:0=fff\nMB:0=100\n", L3={**INTEL_L3, "cbm_mask": "fff"}, MB=INTEL_MB))
        )
        staying = (Running(1, 6), Running(2, 2), Running(5, 0, 5))
        node.run(Running(1, 6), Running(0, 2), *staying[1:])
        assert node.layouts[0].guaranteed[2] == 0x300
        node.shared_ways = 4
        before = len(node.tree.changes)
        seen: list[tuple[int, int]] = []
        node.tree.before = lambda _: seen.extend(unguarded(node, {1: 6, 2: 2}, inhabited(node)))
        assert node.run(*staying).overlapped == ()
        assert seen == []
        written = [change for change in node.tree.changes[before:] if "L3" in change]
        assert written.index("sns_job2 < L3:0=c0") < written.index("sns_job5 < L3:0=f00")

    def test_threads_of_a_job_that_loses_its_ways_go_to_the_shared_group(self, node: Node) -> None:
        node.run(Running(7, 4))
        node.run(Running(7, 0))
        assert node.groups.tasks(SHARED) == (1007,)
        assert node.groups.names() == (SHARED,)

    def test_on_domains_without_its_cores_a_job_has_the_shared_ways(self, node: Node) -> None:
        node.run(Running(7, 4, cores={0: 4}), Running(8, 4))
        assert node.masks()["job7"][1] == node.layouts[1].shared
        assert node.masks()["job7"][0] == node.layouts[0].granted[7]

    def test_the_system_shares_the_ways_of_jobs_without_profile(self, node: Node) -> None:
        node.run(Running(7, 4))
        assert node.groups.move_all(SHARED, node.groups.root_tasks) == 2
        assert node.groups.root_tasks() == ()
        assert node.groups.tasks(SHARED) == (1, 2)

    def test_one_layout_serves_for_all_domains(self, node: Node) -> None:
        shape = shapes(node.machine, node.groups)[0]
        layouts = dict.fromkeys((0, 1), layout({}, [Need(7, 4, 0)], 2, shape))
        apply(node.groups, node.machine, layouts)
        assert node.groups.read("job7")["L3"] == dict.fromkeys((0, 1), layouts[0].granted[7])

    def test_no_cache_can_be_partitioned_and_nothing_is_done(self, tmp_path: Path) -> None:
        node = Node(Tree(build(tmp_path / "tree", "")))
        assert node.run(Running(7, 4, 10)) == Applied()

    def test_code_and_data_have_the_same_masks_even_if_somebody_has_changed_one(
        self, captured: Path, tmp_path: Path
    ) -> None:
        shutil.copytree(captured / "resctrl.nomb.cdp", tmp_path / "tree")
        node = Node(Tree(tmp_path / "tree"))
        node.run(Running(7, 4))
        node.groups.write("job7", "L3CODE:1=1\n")
        node.run(Running(7, 4))
        shown = node.groups.read("job7")
        assert shown["L3CODE"] == shown["L3DATA"] == {0: 0x3FFFF, 1: 0x3FFFF, 2: 0x3FFFF, 3: 0x3FFFF}

    @pytest.mark.parametrize(("name", "job"), [("job7", 7), ("job", None), ("shared", None), ("job7x", None)])
    def test_a_groups_name_says_whose_it_is(self, name: str, job: int | None) -> None:
        assert job_of(name) == job


INTEL = Bandwidth("percent", 10, 10, 100, (0, 1), 8)
AMD = Bandwidth("eighth_gbps", 1, 1, 2048, (0, 8), 16)


class TestBandwidth:
    def test_it_is_divided_over_the_domains_as_the_cores_are(self) -> None:
        needs = BandwidthNeeds({7: Draw(40, {0: 3, 1: 1})}, 100)
        assert needs.values(INTEL, 7) == {0: 30, 1: 10}

    def test_percent_is_a_part_of_what_the_domain_has_and_domains_without_cores_are_not_limited(self) -> None:
        needs = BandwidthNeeds({7: Draw(9, {0: 1}), 8: Draw(9, {0: 16})}, PEAK_GBPS)
        assert needs.values(INTEL, 7) == needs.values(INTEL, 8) == {0: 20, 1: 100}

    def test_amd_counts_in_eighths(self) -> None:
        assert BandwidthNeeds({7: Draw(9.1, {0: 4, 8: 4})}, PEAK_GBPS).values(AMD, 7) == {0: 37, 8: 37}

    def test_jobs_without_a_need_and_the_shared_group_are_not_limited(self) -> None:
        assert BandwidthNeeds({}, PEAK_GBPS).values(INTEL, 7) == {0: 100, 1: 100}
        assert BandwidthNeeds({7: Draw(0, {0: 4})}, PEAK_GBPS).values(INTEL, 7) == {0: 100, 1: 100}
        assert BandwidthNeeds({}, PEAK_GBPS).values(INTEL, None) == {0: 100, 1: 100}

    def test_a_changed_need_alone_is_one_line(self, node: Node) -> None:
        node.run(Running(7, 4, 10))
        node.run(Running(7, 4, 60))
        assert node.tree.changes[-1] == "sns_job7 < MB:0=60;1=60"

    def test_jobs_with_bandwidth_alone_get_the_closids_that_are_left(self, tmp_path: Path) -> None:
        node = Node(Tree(intel(tmp_path / "tree"), closids=8))
        few = [Running(job, 0, 5) for job in range(8)]
        applied = node.run(*few)
        assert applied.without == dict.fromkeys((6, 7), "all 6 CLOSIDs for jobs are taken")
        applied = node.run(*few, Running(9, 4))
        assert applied.made == (9,)
        assert set(applied.without) == {5, 6, 7}
        assert node.masks()["job0"] == {domain: each.shared for domain, each in node.layouts.items()}


class TestOthers:
    def test_their_groups_take_closids(self, node: Node) -> None:
        assert shapes(node.machine, node.groups)[0].groups == 6
        for name in "abc":
            (node.tree.root / name).mkdir()
        assert shapes(node.machine, node.groups)[0].groups == 3

    def test_ways_that_they_have_exclusively_are_left_to_them(self, node: Node) -> None:
        node.groups = Groups(node.tree.root, files=node.tree)
        own(node.tree, "L3:0=ff000;1=0ff00\n")
        found = shapes(node.machine, node.groups)
        assert (found[0].mask, found[1].mask) == (0xFFF, 0xFF)
        node.run(Running(7, 4))
        assert node.masks()["job7"] == {0: 0x3FF, 1: 0x3F}

    def test_a_domain_that_they_have_alone_is_left_out(self, node: Node) -> None:
        own(node.tree, "L3:0=fffff;1=7ffff\n")
        assert shapes(node.machine, node.groups) == {}

    def test_a_foreign_group_stays_as_it_is(self, node: Node) -> None:
        own(node.tree, "L3:0=ff000;1=0ff00\n")
        before = contents(node.tree.root / "someone")
        node.run(Running(7, 4))
        node.run()
        node.groups.remove_all()
        assert contents(node.tree.root / "someone") == before

    def test_17_jobs_on_16_closids_run_and_the_rest_share(self, tmp_path: Path) -> None:
        tree = build(tmp_path / "tree", "L3:0=fffff\n", L3={**INTEL_L3, "min_cbm_bits": 1})
        node = Node(Tree(tree))
        jobs = [Running(job, 1) for job in range(17)]
        node.run(*jobs)
        assert len(node.groups.names()) == 15
        assert set(node.planned.without) == {14, 15, 16}
        assert node.groups.tasks(SHARED) == (1014, 1015, 1016)

    def test_closids_that_others_took_meanwhile_cost_the_last_jobs_their_group_only(self, tmp_path: Path) -> None:
        node = Node(Tree(intel(tmp_path / "tree"), closids=3))
        applied = node.run(Running(7, 4), Running(8, 4))
        assert applied.made == (7,)
        assert list(applied.without) == [8]
        assert "Out of CLOSIDs" in applied.without[8]
        assert node.groups.tasks(SHARED) == (1008,)

    def test_without_a_closid_for_the_shared_group_nothing_can_be_guaranteed(self, tmp_path: Path) -> None:
        node = Node(Tree(intel(tmp_path / "tree"), closids=1))
        assert node.run() == Applied()
        with pytest.raises(CannotMake):
            node.run(Running(7, 4))

    def test_a_group_that_vanishes_meanwhile_is_made_again(self, node: Node) -> None:
        node.run(Running(7, 4), Running(8, 4))
        vanishing = iter([True])

        def vanish(_: int) -> None:
            if next(vanishing, False):
                shutil.rmtree(node.tree.root / "sns_job8")

        node.tree.before = vanish
        applied = node.run(Running(7, 2), Running(8, 12))
        assert applied.made == (8,)
        assert node.masks()["job8"] == {domain: each.granted[8] for domain, each in node.layouts.items()}
        assert node.groups.tasks("job8") == (1008,)

    def test_a_tree_that_is_gone_is_an_error(self, node: Node) -> None:
        node.lay_out(Running(7, 4))
        shutil.rmtree(node.tree.root)
        with pytest.raises(GroupGone):
            node.apply(Running(7, 4))

    def test_a_refused_write_stops_there_and_the_next_call_finishes(self, node: Node) -> None:
        node.run(Running(7, 4))
        refused = iter([True])

        class Refusing(Tree):
            def write(self, path: Path, text: str) -> None:
                if text.startswith("L3") and next(refused, False):
                    self._says("Overlaps with exclusive group")
                    raise OSError(22, "invalid")
                super().write(path, text)

        node.groups = Groups(node.tree.root, files=Refusing(node.tree.root))
        with pytest.raises(ResctrlError, match="Overlaps with exclusive group"):
            node.run(Running(7, 4), Running(8, 4))
        node.apply(Running(7, 4), Running(8, 4))
        assert node.masks()["job8"] == {domain: each.granted[8] for domain, each in node.layouts.items()}


class TestAfterARestart:
    def test_the_tree_says_what_each_job_has(self, node: Node) -> None:
        jobs = [Running(7, 4), Running(8, 6, cores={0: 4})]
        node.run(*jobs)
        in_force = node.masks()
        again = Node(node.tree)
        found = standing(again.machine, again.groups, {7: 4, 8: 6, 9: 3})
        for domain, by_job in found.items():
            for job, mask in by_job.items():
                assert mask & ~in_force[group_of(job)][domain] == 0
        assert set(found[0]) == {7, 8}

    def test_no_job_moves_out_of_what_it_has(self, node: Node) -> None:
        node.run(Running(7, 4), Running(8, 6), Running(9, 3))
        node.run(Running(7, 4), Running(9, 3))
        ways = {7: 4, 9: 3}
        in_force = node.masks()
        for domain, shape in shapes(node.machine, node.groups).items():
            before = standing(node.machine, node.groups, ways)[domain]
            again = layout(before, [Need(job, each, job) for job, each in ways.items()], SHARED_WAYS, shape)
            assert again.moved == ()
            for job, mask in again.guaranteed.items():
                assert mask & ~in_force[group_of(job)][domain] == 0

    def test_shareable_ways_are_not_taken_for_a_guarantee_if_others_are_there(self, node: Node) -> None:
        node.groups.make("job7")
        node.groups.write("job7", "L3:0=ff000\n")
        assert standing(node.machine, node.groups, {7: 4})[0] == {7: 0xF000}

    def test_a_job_that_owns_more_now_than_it_has_holds_nothing(self, node: Node) -> None:
        node.groups.make("job7")
        node.groups.write("job7", "L3:0=3;1=ff\n")
        assert standing(node.machine, node.groups, {7: 4, 8: 0}) == {0: {}, 1: {7: 0xF}}


def own(tree: Tree, schemata: str) -> None:
    """Somebody else's exclusive group."""
    (tree.root / "someone").mkdir()
    for name, text in {"mode": "exclusive\n", "schemata": schemata, "tasks": ""}.items():
        (tree.root / "someone" / name).write_text(text)


def inhabited(node: Node) -> list[str]:
    """The groups with threads."""
    return [name for name in node.groups.names() if node.groups.tasks(name)]


def random_jobs(rng: random.Random, before: Sequence[Running], domains: Sequence[int], number: int) -> list[Running]:
    """Some of the jobs end, one or two arrive."""
    left = [job for job in before if rng.random() < 0.75]
    for job_id in range(number, number + rng.randint(1, 2)):
        where = [domain for domain in domains if rng.random() < 0.7] or [domains[0]]
        left.append(Running(job_id, rng.randint(0, 6), rng.choice([0, 5, 20]), dict.fromkeys(where, 4)))
    return left


@pytest.mark.long
@pytest.mark.parametrize("make", [intel, amd])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("has_settings", [False, True], ids=["", "while the number of shared ways changes"])
def test_every_job_has_its_guarantee_for_itself_after_every_write(
    seed: int, make: Callable[[Path], Path], tmp_path: Path, *, has_settings: bool
) -> None:
    rng, node, jobs = random.Random(seed), Node(Tree(make(tmp_path / "tree"))), list[Running]()
    seen: list[tuple[int, int]] = []
    for number in range(0, 40, 2):
        had = node.owners()
        jobs = random_jobs(rng, jobs, node.machine.caches[0].domains, number)
        node.tree.end_all_but({1000 + job.job_id for job in jobs})
        if has_settings:
            node.shared_ways = rng.randint(2, 8)
        node.lay_out(*jobs)
        staying = {job.job_id: job.ways for job in jobs if job.job_id in had & node.owners()}
        node.tree.before = lambda _, staying=staying: seen.extend(unguarded(node, staying, inhabited(node)))
        applied = node.apply(*jobs)
        assert bool(seen) <= bool(applied.overlapped), "only what no order avoids, and then it is said"
        seen.clear()
        assert node.is_in_force()


@pytest.mark.parametrize("make", [intel, amd])
class TestKilled:
    """kill -9 before any change of the tree; then the agent starts again, or the node is cleaned up."""

    FIRST = (Running(1, 4, 20), Running(2, 3, 5, {0: 4}), Running(3, 6))
    THEN = (Running(1, 4, 30), Running(3, 6), Running(4, 5, 10), Running(5, 0, 10), Running(6, 2))

    def killed(self, tmp_path: Path, make: Callable[[Path], Path], number: int) -> Node | None:
        """A node whose agent was killed before this change; None if there are not so many."""
        node = Node(Tree(make(tmp_path / str(number))))
        own(node.tree, "")
        node.run(*self.FIRST)
        node.groups.move_all(SHARED, node.groups.root_tasks)
        first = len(node.tree.changes)

        def kill(change: int) -> None:
            if change == first + number:
                raise Killed

        node.tree.before = kill
        try:
            node.run(*self.THEN)
        except Killed:
            node.tree.before = lambda _: None
            return node
        return None

    def all_killed(self, tmp_path: Path, make: Callable[[Path], Path]) -> Iterator[Node]:
        for number in range(100):
            node = self.killed(tmp_path, make, number)
            if node is None:
                assert number > 10
                return
            yield node

    @pytest.mark.long
    def test_the_next_start_finishes_with_every_guarantee_kept(
        self, make: Callable[[Path], Path], tmp_path: Path
    ) -> None:
        for node in self.all_killed(tmp_path, make):
            again = Node(node.tree)
            again.lay_out_after_a_restart(*self.THEN)
            seen: list[tuple[int, int]] = []
            node.tree.before = lambda _, again=again, seen=seen: seen.extend(
                unguarded(again, {1: 4, 3: 6}, inhabited(again))
            )
            again.apply(*self.THEN)
            assert seen == []
            assert set(again.groups.names()) == {SHARED, "job1", "job3", "job4", "job5", "job6"}
            for job in self.THEN:
                assert 1000 + job.job_id in again.groups.tasks(group_of(job.job_id))
            assert again.is_in_force()

    def test_a_clean_up_leaves_nothing_of_ours_and_everything_of_others(
        self, make: Callable[[Path], Path], tmp_path: Path
    ) -> None:
        for node in self.all_killed(tmp_path, make):
            node.groups.remove_all()
            assert node.groups.names() == ()
            assert node.groups.foreign() == ("someone",)
            found = contents(node.tree.root)
            threads = set(map(int, found.pop("tasks").split()))
            assert {1, 2, 1001, 1003} <= threads
            fresh = Tree(make(tmp_path / f"fresh{node.tree.root.name}"))
            own(fresh, "")
            expected = contents(fresh.root)
            del expected["tasks"]
            assert found == expected
