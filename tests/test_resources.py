"""The arithmetic of resources, with GPUs of several types."""

from hypothesis import given
from hypothesis import strategies as st

from slurm_sns.model import NOTHING, Gpus, Resources, gpus_of, total

KINDS = ("", "a", "b")
NAMES = ("gpu", "gpu:a", "gpu:b")


def by_name(of: Gpus, least: int = 0) -> dict[str, int]:
    return {name: dict(of).get(name, least) for name in NAMES}


def amounts():
    gpus = st.dictionaries(st.sampled_from(KINDS), st.integers(0, 4)).map(gpus_of)
    return st.builds(Resources, *(st.integers(0, 9) for _ in range(5)), gpus)


def each_amount(of: Resources) -> list[int]:
    return [*of[:-1], *by_name(of.gpus).values()]


@given(amounts(), amounts(), amounts())
def test_plus_and_minus_are_inverse_and_the_order_of_a_sum_does_not_matter(one, other, third):
    assert one.plus(other).minus(other) == one
    assert one.minus(other).plus(other) == one
    assert one.minus(one) == NOTHING
    assert total([one, other, third]) == total([third, other, one])


@given(amounts(), amounts())
def test_plus_minus_and_up_to_agree_with_each_amount(one, other):
    pairs = [*zip(each_amount(one), each_amount(other), strict=True)]

    assert each_amount(one.plus(other)) == [mine + its for mine, its in pairs]
    assert each_amount(one.minus(other)) == [mine - its for mine, its in pairs]
    assert each_amount(one.up_to(other)) == [min(mine, its) for mine, its in pairs]


@given(amounts(), st.integers(-2, 3))
def test_times_is_a_sum_of_equal_ones(one, count):
    assert one.times(count) == total([one] * count) if count >= 0 else NOTHING.minus(total([one] * -count))


@given(amounts(), amounts(), amounts())
def test_an_amount_is_within_a_limit_if_each_amount_is(one, other, taken):
    limit = other.minus(taken)  # what is free may be negative

    assert one.within(limit) == all(mine <= its for mine, its in zip(each_amount(one), each_amount(limit), strict=True))


@given(amounts(), amounts())
def test_equal_amounts_are_equal_values_however_they_came_about(one, other):
    assert (one.plus(other) == other) == (each_amount(one) == each_amount(NOTHING))
    assert all(count for _, count in one.minus(other).gpus)
    assert [*one.plus(other).gpus] == sorted(one.plus(other).gpus)


def test_a_number_by_type_is_one_of_all_gpus_too():
    assert gpus_of({"a100": 2, "h100": 1, "k80": 0}) == (("gpu", 3), ("gpu:a100", 2), ("gpu:h100", 1))
    assert gpus_of({"": 2}) == (("gpu", 2),)
    assert gpus_of({}) == ()
