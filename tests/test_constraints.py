"""Constraints as Slurm reads them: from left to right, with parentheses that do not nest."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_constraints import FEATURES, constraint

from slurm_sns import constraints
from slurm_sns.errors import BadInput

NODES = {"n1": {"ib", "avx512"}, "n2": {"ib", "avx2"}, "n3": {"opa", "avx512"}, "n4": {"opa", "big"}, "n5": set()}


def admitted(text: str) -> set[str]:
    constraint = constraints.read(text)
    return {name for name, features in NODES.items() if constraints.admits(constraint, features)}


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("", "n1 n2 n3 n4 n5"),
        ("ib", "n1 n2"),
        ("ib&avx2", "n2"),
        ("ib,avx2", "n2"),
        ("ib|big", "n1 n2 n4"),
        ("ib|opa&avx512", "n1 n3"),  # not ib|(opa&avx512)
        ("ib|(opa&avx512)", "n1 n2 n3"),
        ("(ib|opa)&avx512", "n1 n3"),
        ("avx512&(ib|opa)", "n1 n3"),
        ("(ib&avx2)|(opa&big)", "n2 n4"),
        ("(ib)&(avx2)", "n2"),
        ("unknown", ""),
        ("ib|unknown", "n1 n2"),
        ("ib&unknown", ""),
    ],
)
def test_the_nodes_that_a_constraint_admits(text: str, nodes: str) -> None:
    assert admitted(text) == set(nodes.split())


@pytest.mark.parametrize("text", ["a*2", "[a|b]", "a&[b]", "a]", "a" * 1025, "é" * 600])
def test_what_slurm_would_choose_is_left_to_slurm(text: str) -> None:
    assert constraints.is_left_to_slurm(text)
    with pytest.raises(BadInput, match="valid are names"):
        constraints.read(text)


@pytest.mark.parametrize(
    "text", ["&", "a&", "|a", "a||b", "(a", "a)", "()", "((a)&b)", "(a)b", "a(b)", "a&(b|", ",", "(a&(b|c))"]
)
def test_what_is_no_constraint_is_refused(text: str) -> None:
    assert not constraints.is_left_to_slurm(text)
    with pytest.raises(BadInput, match=r"valid are names, &, \| and parentheses"):
        constraints.read(text)


@given(st.integers(0, 2**32))
def test_python_says_the_same_where_every_step_is_in_parentheses(seed: int) -> None:
    """The expression with explicit parentheses from the left, evaluated by Python for each node."""
    text = constraint(random.Random(seed))
    steps = constraints.read(text)
    for name, features in NODES.items():
        expression = "True"
        for is_and, names in steps:
            inner = "True"
            for inner_is_and, feature in names:
                inner = f"({inner} {'and' if inner_is_and else 'or'} {feature in features})"
            expression = f"({expression} {'and' if is_and else 'or'} {inner})"
        assert (name in admitted(text)) == eval(expression)


@given(st.text("ab&|(),[]* ", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        constraints.read(text)
    except BadInput:
        return
    assert not constraints.is_left_to_slurm(text)


def test_random_constraints_have_all_parts() -> None:
    texts = [constraint(random.Random(seed)) for seed in range(200)]
    assert len(set(texts)) > 150
    assert all(any(part in text for text in texts) for part in ("&", "|", "(", *FEATURES))
