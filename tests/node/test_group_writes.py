"""The order of the writes: between any two of them nobody has less than its guarantee or takes what others have."""

import random
from collections import deque
from collections.abc import Iterator, Mapping

import pytest

from slurm_sns.node.group_writes import Part, Step, transition
from slurm_sns.node.ways.layout import Shape
from slurm_sns.node.ways.masks import union, window


def cache(ways: int, *, is_sparse: bool = False) -> Shape:
    return Shape(window(0, ways), 1, 0, is_sparse, 14)


def names(steps: list[Step]) -> list[str]:
    return [step.name for step in steps]


def follow(parts: Mapping[str, Part], steps: list[Step]) -> None:
    """Check each promise after each step."""
    now = {name: part.now for name, part in parts.items()}
    for step in steps:
        others = union(mask for name, mask in now.items() if name != step.name)
        assert step.overlaps == (step.mask & ~now[step.name] & others != 0)
        assert step.mask.bit_count() >= min(parts[step.name].ways, parts[step.name].now.bit_count())
        now[step.name] = step.mask
    assert now == {name: part.then for name, part in parts.items()}


class TestByHand:
    def test_nothing_changes_nothing_is_written(self) -> None:
        assert transition({"a": Part(0xF, 0xF, 4)}, cache(8)) == []

    def test_a_job_that_arrives_gets_its_ways_after_the_others_have_given_them_back(self) -> None:
        steps = transition({"new": Part(0, 0b1100, 2), "old": Part(0b1111, 0b0011, 2)}, cache(4))
        assert steps == [Step("old", 0b0011), Step("new", 0b1100)]

    def test_a_row_moves_from_its_free_end_on(self) -> None:
        parts = {"a": Part(0b000011, 0b000110, 2), "b": Part(0b001100, 0b011000, 2), "c": Part(0b010000, 0b100000, 1)}
        assert names(transition(parts, cache(6))) == ["c", "b", "a"]

    def test_a_mask_may_slide_over_its_own_ways(self) -> None:
        assert transition({"a": Part(0b011, 0b110, 2)}, cache(3)) == [Step("a", 0b110)]

    def test_two_jobs_that_change_places_do_so_over_free_ways(self) -> None:
        parts = {"a": Part(0b00011, 0b11000, 2), "b": Part(0b01100, 0b00011, 2)}
        steps = transition(parts, cache(6))
        assert not any(step.overlaps for step in steps)
        follow(parts, steps)

    def test_without_free_ways_they_overlap_for_one_write(self) -> None:
        parts = {"a": Part(0b0011, 0b1100, 2), "b": Part(0b1100, 0b0011, 2)}
        assert transition(parts, cache(4)) == [Step("a", 0b1100, overlaps=True), Step("b", 0b0011)]

    def test_spare_ways_are_given_back_to_make_room_for_a_change_of_places(self) -> None:
        parts = {"a": Part(0b000111, 0b110000, 2), "b": Part(0b111000, 0b001111, 2)}
        steps = transition(parts, cache(6))
        assert not any(step.overlaps for step in steps)
        follow(parts, steps)

    def test_a_job_that_needs_more_takes_it_when_it_is_free(self) -> None:
        parts = {"a": Part(0b0011, 0b0111, 3), "b": Part(0b1100, 0b1000, 1)}
        assert names(transition(parts, cache(4))) == ["b", "a"]

    def test_a_group_that_still_has_the_whole_cache_gives_it_back_first(self) -> None:
        parts = {"a": Part(0b0011, 0b0111, 2), "fresh": Part(0b1111, 0b1000, 1)}
        assert names(transition(parts, cache(4))) == ["fresh", "a"]

    def test_ways_that_the_layout_gives_to_two_groups_are_no_overlap(self) -> None:
        steps = transition({"a": Part(0b1111, 0b1110, 2), "shared": Part(0, 0b0011, 1)}, cache(4))
        assert steps == [Step("a", 0b1110), Step("shared", 0b0011)]

    def test_sparse_masks_give_back_what_they_can_spare(self) -> None:
        parts = {"a": Part(0b010101, 0b001101, 2), "b": Part(0b101010, 0b110010, 2)}
        steps = transition(parts, cache(6, is_sparse=True))
        assert not any(step.overlaps for step in steps)
        follow(parts, steps)


def random_case(rng: random.Random, ways: int) -> dict[str, Part]:
    """Two random layouts of the same jobs, each with random spare ways."""
    owned: list[int] = []
    while sum(owned) < ways and len(owned) < 4:
        owned.append(rng.randint(1, max(1, (ways - sum(owned)) // 2)))
    now, then = random_masks(rng, ways, owned), random_masks(rng, ways, owned)
    return {str(job): Part(now[job], then[job], each) for job, each in enumerate(owned)}


def random_masks(rng: random.Random, ways: int, owned: list[int]) -> dict[int, int]:
    order = rng.sample(range(len(owned)), len(owned))
    gaps = [0] * (len(owned) + 1)
    for _ in range(ways - sum(owned)):
        gaps[rng.randrange(len(gaps))] += 1
    masks, at = {}, 0
    for place, job in enumerate(order):
        before, after = rng.randint(0, gaps[place]), rng.randint(0, gaps[place + 1])
        at += gaps[place]
        masks[job] = window(at - before, before + owned[job] + after)
        gaps[place + 1] -= after
        at += owned[job] + after
    return masks


def contiguous(ways: int, least: int) -> Iterator[int]:
    for length in range(least, ways + 1):
        for start in range(ways - length + 1):
            yield window(start, length)


def is_possible(parts: Mapping[str, Part], ways: int) -> bool:
    """By brute force: whether any order of any writes keeps both promises."""
    listed = list(parts.values())
    start, goal = tuple(part.now for part in listed), tuple(part.then for part in listed)
    seen, queue = {start}, deque([start])
    while queue:
        state = queue.popleft()
        if state == goal:
            return True
        for index, part in enumerate(listed):
            others = union(mask for other, mask in enumerate(state) if other != index)
            for mask in contiguous(ways, part.ways):
                after = (*state[:index], mask, *state[index + 1 :])
                if not mask & ~state[index] & others and after not in seen:
                    seen.add(after)
                    queue.append(after)
    return False


@pytest.mark.parametrize("seed", range(8))
def test_an_overlap_is_there_only_where_no_order_avoids_it(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(15):
        ways = rng.randint(3, 7)
        parts = random_case(rng, ways)
        steps = transition(parts, cache(ways))
        follow(parts, steps)
        assert any(step.overlaps for step in steps) != is_possible(parts, ways)


@pytest.mark.parametrize("seed", range(10))
def test_every_promise_holds_after_each_step_on_wide_caches(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        ways = rng.randint(8, 20)
        parts = random_case(rng, ways)
        follow(parts, transition(parts, cache(ways)))


@pytest.mark.parametrize("seed", range(10))
def test_jobs_that_keep_their_order_are_written_once_each_without_an_overlap(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        ways = rng.randint(4, 20)
        parts = random_case(rng, ways)
        by_now = sorted(parts.values(), key=lambda part: part.now)
        by_then = sorted(part.then for part in by_now)
        kept = {
            str(job): Part(part.now, then, min(part.now.bit_count(), then.bit_count()))
            for job, (part, then) in enumerate(zip(by_now, by_then, strict=True))
        }
        steps = transition(kept, cache(ways))
        assert not any(step.overlaps for step in steps)
        assert len(set(names(steps))) == len(steps)
