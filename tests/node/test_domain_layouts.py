"""A node's cache domains are laid out together: a job owns ways in all domains of its cores, or in none."""

from slurm_sns.node.domain_layouts import DomainNeed, domain_layouts
from slurm_sns.policies.sns.way_layout import Need, Shape

BOTH = (0, 1)


def shapes(groups: int = 14) -> dict[int, Shape]:
    return dict.fromkeys(BOTH, Shape(0xFFF, 1, 0, False, groups))


def need(job_id: int, ways: int, *domains: int) -> DomainNeed:
    return DomainNeed(Need(job_id, ways, job_id), domains or BOTH)


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


def test_a_job_without_ways_needs_no_reason() -> None:
    assert domain_layouts({}, [need(1, 0)], 2, shapes()).without == {}


def test_the_next_layouts_start_from_these() -> None:
    first = domain_layouts({}, [need(1, 4), need(2, 3)], 2, shapes())
    second = domain_layouts(first.guaranteed(), [need(2, 3), need(1, 4)], 2, shapes())
    assert second == first


def test_a_cache_that_cannot_be_partitioned_is_a_reason() -> None:
    made = domain_layouts({}, [need(1, 4)], 2, {})
    assert made.without == {1: "the cache cannot be partitioned"}
    assert made.layouts == {}
