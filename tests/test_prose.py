"""The splitter of sentences, on small pages."""

import pytest
from prose import sentences, words


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Over\ntwo lines.\n\nNext", ["Over two lines.", "Next"]),
        ("A name, e.g. Slurm, i.e. The one.", ["A name, e.g. Slurm, i.e. The one."]),
        (
            "Nodes, jobs etc. are seen. Cores etc. Then more.",
            ["Nodes, jobs etc. are seen.", "Cores etc.", "Then more."],
        ),
        ("See fig. 3 of the paper (sec. 2). It is old.", ["See fig. 3 of the paper (sec. 2).", "It is old."]),
        ("Python 3.11 or 3.14. Slurm 25.11.2 also.", ["Python 3.11 or 3.14.", "Slurm 25.11.2 also."]),
        ("Edit sns.yaml. slurm_sns reads it.", ["Edit sns.yaml.", "slurm_sns reads it."]),
        ("Run `a. b`. `c` follows.", ["Run `a. b`.", "`c` follows."]),
        ("It waits (see below.) and runs.", ["It waits (see below.) and runs."]),
        ("It waits. (See below.) It runs.", ["It waits.", "(See below.)", "It runs."]),
        ('He said "stop." Then it stopped.', ['He said "stop."', "Then it stopped."]),
        ("**Bold.** Plain.", ["Bold.", "Plain."]),
        ("It gains 18 % (here 8 %). With more it does.", ["It gains 18 % (here 8 %).", "With more it does."]),
        ("Wait ... and see. A mark ! is no end.", ["Wait ... and see.", "A mark ! is no end."]),
        ("- one item\n- two. Three\n  goes on\n\n  more", ["one item", "two.", "Three goes on", "more"]),
        ("1. first\n2. second", ["first", "second"]),
        ("Before:\n\n- item\n\n      code in the item\n\nAfter.", ["Before:", "item", "After."]),
        ("# A heading. Of two\n\nText.", ["Text."]),
        ("| a | b |\n|---|---|\n| A cell. | Two. |\n\nText.", ["Text."]),
        ("Text:\n\n    $ code. More code\n\n```sh\ncode. code\n```\n", ["Text:"]),
        ("<!-- admin: install -->\n\n    code\n", []),
        (":::{note}\nInside a note. Two.\n:::", ["Inside a note.", "Two."]),
        ("```{note}\nInside.\n```\n\n```{toctree}\na\n```", ["Inside."]),
        ("[A link. With a stop](a.md) here.", ["A link.", "With a stop here."]),
        ("> Quoted. Twice.", ["Quoted.", "Twice."]),
    ],
)
def test_a_page_has_these_sentences(page: str, expected: list[str]) -> None:
    assert sentences(page) == expected


@pytest.mark.parametrize(
    ("sentence", "count"),
    [
        ("Two words.", 2),
        ("Run `sns status --json` now", 3),
        ("a - b", 2),
        ("well-known c[1-4]", 2),
        ("`a b`, `c d`", 2),
    ],
)
def test_code_counts_as_one_word(sentence: str, count: int) -> None:
    assert words(sentence) == count
