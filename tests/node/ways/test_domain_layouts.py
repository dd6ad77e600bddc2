"""A node's cache domains are laid out together: a job owns ways in all domains of its cores, or in none."""

import random

import pytest

from slurm_sns.node.ways.layout import Need, Shape, domain_layouts

BOTH = (0, 1)


def shapes(groups: int = 14) -> dict[int, Shape]:
    return dict.fromkeys(BOTH, Shape(0xFFF, 1, 0, False, groups))


def need(job_id: int, ways: int, *domains: int) -> Need:
    return Need(job_id, ways, job_id, domains or BOTH)


def test_a_job_has_ways_where_its_cores_are() -> None:
    made = domain_layouts({}, [need(1, 4, 0), need(2, 3)], 2, shapes())
    assert [set(made.layouts[domain].guaranteed) for domain in BOTH] == [{1, 2}, {2}]
    assert made.without == {}


def test_a_job_that_finds_no_ways_in_one_domain_owns_none_in_the_other() -> None:
    made = domain_layouts({}, [need(1, 8, 0), need(2, 4)], 2, shapes())
    assert [set(made.layouts[domain].guaranteed) for domain in BOTH] == [{1}, set()]
    assert "needs 4 cache ways" in made.without[2]


def test_ways_that_a_refused_job_had_elsewhere_go_to_the_next_one() -> None:
    made = domain_layouts({}, [need(1, 8, 0), need(2, 4), need(3, 8, 1)], 2, shapes())
    assert set(made.without) == {2}
    assert [set(made.layouts[domain].guaranteed) for domain in BOTH] == [{1}, {3}]


def test_a_closid_counts_for_the_whole_node() -> None:
    made = domain_layouts({}, [need(1, 1, 0), need(2, 1, 0), need(3, 1, 1)], 2, shapes(groups=2))
    assert made.without == {3: "all 2 CLOSIDs for jobs are taken"}
    assert made.layouts[1].guaranteed == {}


def test_jobs_that_hold_masks_keep_their_closids() -> None:
    made = domain_layouts({0: {3: 1}, 1: {}}, [need(1, 1), need(2, 1), need(3, 1, 0)], 2, shapes(groups=2))
    assert set(made.without) == {2}


def test_a_job_without_ways_for_it_takes_no_closid() -> None:
    made = domain_layouts({}, [need(1, 2), need(2, 100), need(3, 1)], 2, shapes(groups=2))
    assert set(made.layouts[0].guaranteed) == {1, 3}
    assert made.without == {2: "it needs 100 cache ways; 8 of the 10 for jobs are free"}


def test_a_job_without_ways_needs_no_reason() -> None:
    assert domain_layouts({}, [need(1, 0)], 2, shapes()).without == {}


def test_the_next_layouts_start_from_these() -> None:
    first = domain_layouts({}, [need(1, 4), need(2, 3)], 2, shapes())
    second = domain_layouts(first.guaranteed(), [need(2, 3), need(1, 4)], 2, shapes())
    assert second == first


def test_a_job_on_a_domain_that_cannot_be_partitioned_takes_no_closid() -> None:
    made = domain_layouts({}, [need(1, 4, 1), need(2, 4, 0)], 2, {0: Shape(0xFFF, 1, 0, False, 1)})
    assert made.without == {1: "the cache cannot be partitioned"}
    assert set(made.layouts[0].guaranteed) == {2}


def test_a_cache_that_cannot_be_partitioned_is_a_reason() -> None:
    made = domain_layouts({}, [need(1, 4)], 2, {})
    assert made.without == {1: "the cache cannot be partitioned"}
    assert made.layouts == {}


@pytest.mark.parametrize("seed", range(4))
def test_closids_are_never_exceeded_and_no_job_is_refused_for_them_while_one_is_left(seed: int) -> None:
    rng, before, refused = random.Random(seed), dict[int, dict[int, int]](), 0
    for first in range(60):
        groups = rng.randint(0, 5)
        each_domain = {domain: Shape(0xFFF, 1, 0, False, groups) for domain in range(3)}
        needs = [
            need(job_id, rng.choice([0, 1, 1, 2, 3, 6, 100]), *rng.sample(range(3), rng.randint(1, 3)))
            for job_id in range(first, first + rng.randint(0, 9))
        ]
        made = domain_layouts(before, needs, 2, each_domain)
        before = made.guaranteed()
        owners = {job_id for masks in before.values() for job_id in masks}
        wanting = {each.job_id for each in needs if each.ways}
        assert (owners | set(made.without), owners & set(made.without)) == (wanting, set())
        assert len(owners) <= groups
        for_closids = [why for why in made.without.values() if "CLOSIDs" in why]
        assert not for_closids or len(owners) == groups
        refused += len(for_closids)
    assert refused > 20
