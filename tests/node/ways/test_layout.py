"""Which cache ways each job of a node owns: by example, for any jobs, and against brute force."""

from itertools import combinations, pairwise, product

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from slurm_sns.errors import BadInput
from slurm_sns.node.ways import positions
from slurm_sns.node.ways.layout import Layout, Need, Shape, layout
from slurm_sns.node.ways.masks import spans, union, window

#: Caches of real machines, as the captured resctrl trees show them.
XEON = Shape(0xFFFFF, 1, 0xC0000, False, 14)
XEON_OF_TWO_BITS = Shape(0xFFFFF, 2, 0xC0000, False, 14)
BOTH_ENDS_SHAREABLE = Shape(0xFFFFF, 1, 0xC0001, False, 13)
ONE_SHAREABLE = Shape(0xFFF, 1, 0x400, False, 2)
L2 = Shape(0xFF, 1, 0, False, 2)
AMD = Shape(0xFFFF, 1, 0, True, 14)
MACHINES = (XEON, XEON_OF_TWO_BITS, BOTH_ENDS_SHAREABLE, ONE_SHAREABLE, L2, AMD)


def plain(ways: int, groups: int = 14) -> Shape:
    return Shape(window(0, ways), 1, 0, False, groups)


def needs(*ways: int) -> list[Need]:
    """Jobs 1, 2, ... in order of arrival, with these ways."""
    return [Need(number, each, 100 + number) for number, each in enumerate(ways, 1)]


def picture(masks: dict[int, int], ways: int) -> str:
    """The lowest way first, a digit for the job that has it."""
    owners = {at: str(job) for job, mask in masks.items() for at in range(ways) if mask >> at & 1}
    return "".join(owners.get(at, ".") for at in range(ways))


def masks(text: str) -> dict[int, int]:
    """The reverse of `picture`."""
    return {int(job): sum(1 << at for at, each in enumerate(text) if each == job) for job in set(text) - {"."}}


# Spare ways


def test_a_job_alone_may_use_all_ways_but_the_shared_ones():
    one = layout({}, needs(4), 2, plain(12))

    assert picture(one.guaranteed, 12) == "1111........"
    assert picture(one.granted, 12) == "1111111111.."
    assert one.shared == 0b1100_0000_0000


def test_an_arriving_job_takes_spare_ways_back_and_moves_nobody():
    one = layout({}, needs(4), 2, plain(12))
    two = layout(one.guaranteed, needs(4, 3), 2, plain(12))

    assert picture(two.guaranteed, 12) == "1111...222.."
    assert picture(two.granted, 12) == "1111112222.."  # the oldest gets the odd way
    assert two.moved == ()


def test_a_job_that_arrives_between_two_others_leaves_each_of_them_an_equal_share():
    three = layout(masks("1111............2222"), needs(4, 4, 2), 0, plain(20))

    assert picture(three.granted, 20) == "11111111333332222222"
    assert [three.granted[job].bit_count() - own for job, own in ((1, 4), (2, 4), (3, 2))] == [4, 3, 3]


def test_ways_that_a_departed_job_owned_go_to_its_neighbours():
    after = layout(masks("11122233344455"), [Need(1, 3, 1), Need(3, 3, 3), Need(4, 3, 4), Need(5, 2, 5)], 0, plain(14))

    assert picture(after.guaranteed, 14) == "111...33344455"
    assert picture(after.granted, 14) == "11111333344455"  # 4 and 5 are at no spare way


def test_a_neighbour_takes_ways_on_its_other_side_so_that_shares_become_equal():
    before = masks("1..2...")

    both = layout(before, needs(1, 1), 0, plain(7))

    assert picture(both.guaranteed, 7) == "1..2..."
    assert picture(both.granted, 7) == "1112222"


# The shared part


@pytest.mark.parametrize(
    ("shape", "shared_ways", "shared"),
    [
        (XEON, 2, 0xC0000),
        (XEON, 1, 0x80000),
        (BOTH_ENDS_SHAREABLE, 2, 0xC0000),
        (ONE_SHAREABLE, 2, 0xC00),
        (Shape(0xFFF, 1, 0b11, False, 2), 3, 0b111),
        (XEON_OF_TWO_BITS, 1, 0xC0000),
        (L2, 3, 0xE0),
    ],
)
def test_the_shared_part_is_where_devices_use_the_cache_and_has_at_least_the_bits_of_a_mask(shape, shared_ways, shared):
    assert layout({}, needs(2), shared_ways, shape).shared == shared


def test_without_jobs_that_own_ways_the_whole_cache_is_shared():
    assert layout(masks("11"), [], 2, XEON).shared == 0xFFFFF
    assert layout({}, needs(19), 2, XEON).shared == 0xFFFFF


def test_without_shared_ways_the_longest_run_that_nobody_owns_is_shared():
    full = layout(masks("11...22.."), needs(2, 2), 0, plain(9))

    assert full.shared == 0b11100
    assert picture(full.granted, 9) == "111112222"


def test_without_shared_ways_a_sparse_machine_shares_all_ways_that_nobody_owns():
    assert layout(masks("11...22.."), needs(2, 2), 0, plain(9)._replace(is_sparse=True)).shared == 0b1_1001_1100


@pytest.mark.parametrize(
    ("shareable", "least_bits", "owned", "shared"),
    [
        (0, 1, "11122222", 0b0000_1000),  # the job with the most ways loses the least
        (0b100, 1, "11122222", 0b0000_0100),  # devices use this way anyway
        (0, 2, "1112222.", 0b1100_0000),  # one of the two ways is nobody's
    ],
)
def test_when_the_jobs_own_all_ways_the_shared_part_takes_as_few_of_them_as_the_kernel_allows(
    shareable, least_bits, owned, shared
):
    held = masks(owned)
    shape = Shape(0xFF, least_bits, shareable, False, 14)

    assert layout(held, needs(*(held[job].bit_count() for job in sorted(held))), 0, shape).shared == shared


# Jobs that get no ways of their own


def test_of_17_jobs_on_16_closids_the_last_three_run_in_the_shared_part():
    many = layout({}, needs(*[1] * 17), 1, XEON)

    assert sorted(many.guaranteed) == list(range(1, 15))
    assert list(many.without) == [15, 16, 17]
    assert many.without[15] == "all 14 CLOSIDs for jobs are taken"


def test_a_job_that_is_too_large_is_told_so_although_the_closids_are_taken_in_the_end():
    made = layout({}, needs(2, 100, 1, 1), 2, Shape(0xFFF, 1, 0, False, 2))

    assert sorted(made.guaranteed) == [1, 3]
    assert made.without[2] == "it needs 100 cache ways; 7 of the 10 for jobs are free"
    assert made.without[4] == "all 2 CLOSIDs for jobs are taken"


def test_a_job_that_is_too_large_does_not_stop_a_smaller_one():
    some = layout({}, needs(6, 8, 3), 2, plain(12))

    assert sorted(some.guaranteed) == [1, 3]
    assert list(some.without) == [2]
    assert some.without[2] == "it needs 8 cache ways; 1 of the 10 for jobs is free"


def test_a_job_keeps_its_ways_when_an_older_one_waits_for_some_and_that_one_gets_the_next_that_are_free():
    crowded = layout({}, needs(6, 8, 3), 2, plain(12))
    still = layout(crowded.guaranteed, needs(6, 8, 3), 2, plain(12))
    freed = layout(still.guaranteed, [Need(2, 8, 102)], 2, plain(12))

    assert still == crowded
    assert freed.without == {}
    assert picture(freed.guaranteed, 12) == "22222222...."


def test_a_job_that_asks_for_no_ways_shares():
    assert layout({}, needs(0, 2), 2, L2).without == {1: "it asks for no cache ways"}


def test_a_need_below_the_least_bits_of_a_mask_is_raised_to_them():
    assert layout({}, needs(1), 2, XEON_OF_TWO_BITS).guaranteed == {1: 0b11}


# Moves


def test_a_job_moves_only_when_the_gaps_are_too_small():
    assert picture(layout(masks("111...22...."), needs(3, 2, 4), 0, plain(12)).guaranteed, 12) == "111...223333"

    crowded = layout(masks("111...22...."), needs(3, 2, 5), 0, plain(12))

    assert crowded.moved == (2,)


def test_of_two_jobs_that_could_move_the_one_with_fewer_ways_does():
    one = layout(masks("...111..22..."), needs(3, 2, 5), 0, plain(13))

    assert one.moved == (2,)


def test_a_job_moves_when_its_need_changes_and_the_others_stay():
    grown = layout(masks("11..22..."), needs(3, 2), 0, plain(9))

    assert grown.moved == (1,)
    assert grown.guaranteed[2] == 0b110000


def test_masks_that_are_not_valid_any_more_are_laid_out_anew():
    before = {1: 0b1100_0000, 2: 0b0110, 3: 0b0011, 4: 0b1_0001_0000}

    anew = layout(before, [*needs(2, 2, 1), Need(4, 1, 104)], 2, L2._replace(groups=4))

    assert anew.moved == (1, 3, 4)  # in the shared part; overlaps an older job's; not in this cache
    assert anew.guaranteed[2] == 0b0110


def test_the_shared_part_grows_and_only_the_jobs_in_its_way_move():
    assert layout(masks("11....22.."), needs(2, 2), 3, plain(10)).moved == (2,)


def test_shareable_ways_are_owned_only_when_nothing_else_is_left():
    ends = Shape(0xFF, 1, 0b1000_0001, False, 14)
    some = layout({}, needs(2, 2), 0, ends)
    most = layout(some.guaranteed, needs(2, 2, 2), 0, ends)
    all_of_them = layout(most.guaranteed, needs(2, 2, 2, 1, 1), 0, ends)

    assert not union(most.guaranteed.values()) & ends.shareable
    assert union(most.granted.values()) == 0xFF
    assert all_of_them.moved == ()
    assert union(all_of_them.guaranteed.values()) == 0xFF


def test_nobody_moves_to_leave_shareable_ways():
    held = layout(masks("22....11"), needs(2, 2), 0, Shape(0xFF, 1, 0b1000_0000, False, 14))

    assert held.moved == ()


def test_a_sparse_machine_uses_holes_instead_of_a_move_and_only_then():
    assert picture(layout(masks("11..22..."), needs(2, 2, 3), 0, AMD._replace(mask=0x1FF)).guaranteed, 9) == "11..22333"

    holes = layout(masks("11..22..33"), needs(2, 2, 2, 3), 0, AMD._replace(mask=0x3FF))

    assert holes.moved == ()
    assert picture(holes.guaranteed, 10) == "1144224.33"
    assert union(holes.granted.values()) == 0x3FF


def test_a_job_moves_on_a_sparse_machine_when_the_kernel_would_not_take_a_mask_with_holes():
    before, shape = masks("1.2.3.4.."), Shape(0x1FF, 1, 0, True, 14)
    assert layout(before, needs(1, 1, 1, 1, 5), 0, shape).moved == ()

    pairs = layout(masks("11.22.33."), needs(2, 2, 2, 3), 0, shape._replace(least_bits=2))

    assert len(pairs.moved) == 2
    assert all(len(spans(mask)) == 1 for mask in pairs.guaranteed.values())


@pytest.mark.parametrize("shape", [plain(0), Shape(0b1011, 1, 0, False, 4), Shape(0b11, 3, 0, False, 4)])
def test_a_mask_that_no_cache_has_is_refused(shape):
    with pytest.raises(BadInput, match=f"cache mask is {shape.mask:x}, .* valid: one run"):
        layout({}, needs(1), 0, shape)


# For any jobs


def check(now: Layout, jobs: list[Need], shared_ways: int, shape: Shape) -> None:
    """What holds for every layout."""
    assert sorted([*now.guaranteed, *now.without]) == sorted(need.job_id for need in jobs)
    assert set(now.moved) <= set(now.guaranteed) == set(now.granted)
    assert len(now.guaranteed) <= shape.groups
    for need in jobs:
        if need.job_id in now.guaranteed:
            assert now.guaranteed[need.job_id].bit_count() == max(need.ways, shape.least_bits)
    for each in (now.guaranteed, now.granted):
        assert sum(mask.bit_count() for mask in each.values()) == union(each.values()).bit_count()  # disjoint
        for mask in (*each.values(), now.shared):
            assert mask & ~shape.mask == 0
            assert spans(mask)[0].ways >= shape.least_bits
            assert shape.is_sparse or len(spans(mask)) == 1
    for job, mask in now.guaranteed.items():
        assert mask & ~now.granted[job] == 0
        assert len(spans(now.granted[job])) <= len(spans(mask))  # only widened
    if not now.guaranteed:
        assert now.shared == shape.mask
    elif shared_ways:
        assert now.shared.bit_count() == min(max(shared_ways, shape.least_bits), shape.mask.bit_count())
        assert now.shared & union(now.granted.values()) == 0
        assert now.shared | union(now.granted.values()) == shape.mask
    else:
        assert union(now.granted.values()) == shape.mask


@st.composite
def shapes(draw, most_ways=12):
    ways, least_bits = draw(st.integers(2, most_ways)), draw(st.sampled_from([1, 1, 2]))
    shareable = draw(st.sampled_from([0, 0, 1, 3 << ways - 2, 1 << ways // 2, 1 | 1 << ways - 1]))
    return Shape(window(0, ways), least_bits, shareable, draw(st.booleans()), draw(st.sampled_from([2, 4, 14])))


arrivals = st.tuples(st.just("arrival"), st.integers(1, 7))
departures = st.tuples(st.just("departure"), st.integers(0, 20))


@settings(max_examples=100)
@given(st.sampled_from(MACHINES) | shapes(), st.integers(0, 3), st.lists(arrivals | arrivals | departures, max_size=20))
def test_whoever_comes_and_goes_masks_are_disjoint_valid_and_all_ways_are_used(shape, shared_ways, events):
    jobs: list[Need] = []
    now = layout({}, jobs, shared_ways, shape)
    for at, (kind, number) in enumerate(events):
        had = now
        if kind == "arrival":
            jobs = [*jobs, Need(at, number, at)]
        elif jobs:
            jobs = [need for need in jobs if need != jobs[number % len(jobs)]]
        now = layout(had.guaranteed, jobs, shared_ways, shape)
        check(now, jobs, shared_ways, shape)
        there = {need.job_id for need in jobs}
        assert had.guaranteed.keys() & there <= now.guaranteed.keys()  # nobody loses what was guaranteed
        assert now.moved == tuple(
            sorted(job for job in had.guaranteed.keys() & there if had.guaranteed[job] != now.guaranteed[job])
        )
        if kind == "departure" and not had.without:
            assert now.moved == ()
        again = layout(now.guaranteed, jobs, shared_ways, shape)
        assert (again.guaranteed, again.granted, again.shared, again.moved) == (
            now.guaranteed,
            now.granted,
            now.shared,
            (),
        )


@st.composite
def situations(draw, most_ways=9, most_jobs=4):
    """A cache, masks that some jobs hold, and the needs of these jobs and of others; all jobs fit."""
    shape = draw(shapes(most_ways))._replace(groups=14)
    left, held, widths = shape.mask, {}, {}
    for job in range(draw(st.integers(0, most_jobs - 1))):
        ways = draw(st.integers(shape.least_bits, 4))
        free = [window(at, ways) for at in range(most_ways) if window(at, ways) & ~left == 0]
        if free:
            held[job], widths[job] = draw(st.sampled_from(free)), ways
            left &= ~held[job]
    first_new = max(held, default=-1) + 1
    for job in range(first_new, draw(st.integers(max(1, first_new), most_jobs))):
        room = shape.mask.bit_count() - sum(widths.values())
        if room >= shape.least_bits:
            widths[job] = draw(st.integers(shape.least_bits, min(5, room)))
    ages = draw(st.permutations(range(len(widths))))
    return shape, held, [Need(job, ways, age) for (job, ways), age in zip(widths.items(), ages, strict=True)]


def cost(masks_by_job: dict[int, int], held: dict[int, int], shape: Shape) -> tuple[int, int, int]:
    """Moves, ways of the jobs that move, shareable ways that are owned."""
    moved = [job for job, mask in held.items() if masks_by_job[job] != mask]
    owned = union(masks_by_job.values())
    return len(moved), sum(held[job].bit_count() for job in moved), (owned & shape.shareable).bit_count()


def contiguous_layouts(shape: Shape, jobs: list[Need]):
    """All layouts without holes."""
    ways = shape.mask.bit_count()
    places = [[window(at, need.ways) for at in range(ways - need.ways + 1)] for need in jobs]
    for chosen in product(*places):
        if sum(mask.bit_count() for mask in chosen) == union(chosen).bit_count():
            yield {need.job_id: mask for need, mask in zip(jobs, chosen, strict=True)}


@settings(max_examples=100)
@given(situations())
def test_no_other_layout_has_fewer_moves_nor_then_fewer_ways_moved_nor_then_fewer_shareable_ways(situation):
    shape, held, jobs = situation
    least = min(cost(each, held, shape) for each in contiguous_layouts(shape, jobs))

    now = layout(held, jobs, 0, shape)

    check(now, jobs, 0, shape)
    assert set(now.guaranteed) == {need.job_id for need in jobs}
    if not shape.is_sparse:
        assert cost(now.guaranteed, held, shape) == least
    elif any(len(spans(mask)) > 1 for mask in now.guaranteed.values()):
        assert now.moved == ()
        assert least[0] > 0  # holes avoid a move
    else:
        assert len(now.moved) == least[0]


@settings(max_examples=100)
@given(situations())
def test_no_other_division_of_the_gaps_gives_the_jobs_with_the_fewest_spare_ways_more(situation):
    shape, held, jobs = situation
    now = layout(held, jobs, 0, shape._replace(is_sparse=False))
    by_place = sorted(now.guaranteed, key=now.guaranteed.__getitem__)
    bounds = [spans(now.guaranteed[job])[0] for job in by_place]
    between = [right.start - left.end for left, right in pairwise(bounds)]
    divisions = []
    for to_lower in product(*(range(gap + 1) for gap in between)):
        spare = [bounds[0].start, *(gap - part for gap, part in zip(between, to_lower, strict=True))]
        above = [*to_lower, shape.mask.bit_count() - bounds[-1].end]
        divisions.append({job: low + high for job, low, high in zip(by_place, spare, above, strict=True)})
    by_age = [need.job_id for need in sorted(jobs, key=lambda need: need.since)]

    given_ways = {job: now.granted[job].bit_count() - mask.bit_count() for job, mask in now.guaranteed.items()}

    # Sorted from the fewest: the best division; of equal ones that which favours the oldest.
    best = max(divisions, key=lambda each: (sorted(each.values()), [each[job] for job in by_age]))
    assert given_ways == best


@settings(max_examples=50)
@given(situations(most_ways=20, most_jobs=10))
def test_jobs_that_arrive_together_on_a_cache_without_shareable_ways_get_equal_shares(situation):
    shape, _, jobs = situation

    now = layout({}, jobs, 0, shape._replace(shareable=0))

    by_age = [need.job_id for need in sorted(jobs, key=lambda need: need.since)]
    spare = shape.mask.bit_count() - sum(need.ways for need in jobs)
    each, odd = divmod(spare, len(jobs))
    assert [now.granted[job].bit_count() - now.guaranteed[job].bit_count() for job in by_age] == [
        each + (place < odd) for place in range(len(jobs))
    ]


@settings(max_examples=50)
@given(situations(most_ways=20, most_jobs=10), st.randoms(use_true_random=False))
def test_the_layout_does_not_depend_on_the_order_of_its_input(situation, random):
    shape, held, jobs = situation
    shuffled, turned = random.sample(jobs, len(jobs)), dict(reversed(held.items()))

    assert layout(held, jobs, 1, shape) == layout(turned, shuffled, 1, shape)


@settings(max_examples=100)
@given(situations(most_ways=20, most_jobs=10), st.integers(1, 6), st.integers(0, 2))
@example((plain(10), masks("11....22.."), [Need(1, 2, 1), Need(2, 2, 2)]), 3, 0)
def test_after_an_arrival_that_moves_nobody_and_the_departure_of_that_job_all_is_as_before(situation, ways, shared):
    shape, held, jobs = situation
    first = layout(held, jobs, shared, shape)
    first = layout(first.guaranteed, jobs, shared, shape)
    joined = layout(first.guaranteed, [*jobs, Need(99, ways, 99)], shared, shape)
    assume(not joined.moved)

    left = layout(joined.guaranteed, jobs, shared, shape)

    assert left == first


# The limits of the search


@pytest.mark.parametrize("taken", list(combinations(range(8), 3)))
def test_where_the_search_is_given_up_a_row_of_neighbours_is_laid_out_anew(monkeypatch, taken):
    monkeypatch.setattr(positions, "MOST_STEPS", 0)
    held = {job: window(2 * at, 1) for job, at in enumerate(taken)}
    jobs = [*(Need(job, 1, job) for job in held), Need(9, 12, 9)]

    now = layout(held, jobs, 0, plain(16))

    check(now, jobs, 0, plain(16))
    assert 9 in now.guaranteed


def test_sixteen_jobs_on_32_ways_are_within_the_limit_of_the_search():
    held = {job: window(2 * job, 1) for job in range(15)}
    jobs = [*(Need(job, 1, job) for job in held), Need(15, 17, 15)]

    now = layout(held, jobs, 0, plain(32, groups=16))

    check(now, jobs, 0, plain(32, groups=16))
    assert len(now.moved) == 7  # the fewest that own ways in any row of 17
