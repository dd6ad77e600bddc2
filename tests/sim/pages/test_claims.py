"""claims.yaml: what it can say, and one clear line where it is wrong."""

from math import inf

import numpy as np
import pytest

from slurm_sns.errors import BadInput
from slurm_sns.sim.pages import FOLDERS
from slurm_sns.sim.pages.claims import FILE, PageClaims
from slurm_sns.sim.pages.judge import IDENTICAL, INPUT, Interval, drawn


@pytest.fixture
def written(tmp_path):
    """A page's claims from the text of its file, and that of the file that it shares."""

    def of(text, shared="seeds: 30"):
        folder = tmp_path / "a_page"
        folder.mkdir(exist_ok=True)
        (folder / FILE).write_text(text)
        (tmp_path / "paper.yaml").write_text(shared)
        return PageClaims.of(folder)

    return of


def judged(claims, quantities=None, **fields):
    return claims.judge(quantities or {"waits": np.array([1.0, 2.0, 3.0])}, fields)


def test_a_claim_has_a_quantity_of_the_run_and_bounds(written):
    [claim] = judged(written("claims: [{where: table 1, text: few wait, measure: '%', of: waits, low: -1, high: 9}]"))
    assert (claim.where, claim.text, claim.measure, claim.expected) == ("table 1", "few wait", "%", "-1 to 9")
    assert (claim.found.mean, claim.verdict) == (2, "holds")
    [open_above] = judged(written("claims: [{text: few wait, of: waits, low: 0}]"))
    assert (open_above.low, open_above.high) == (0, inf)


def test_a_loop_gives_a_claim_for_each_round_and_the_last_loop_goes_fastest(written):
    claims = written("claims: [{for: {pool: [A, B], load: loads}, text: '{{ pool }} {{ load }}', of: waits, low: 0}]")
    assert [claim.text for claim in judged(claims, loads=[1, 2])] == ["A 1", "A 2", "B 1", "B 2"]


def test_a_later_loop_may_use_the_names_of_an_earlier_one(written):
    claims = written("claims: [{for: {pair: pairs, one: 'pair'}, text: '{{ one }}', of: waits, low: 0}]")
    assert [claim.text for claim in judged(claims, pairs=["ab", "c"])] == ["a", "b", "c"]


def test_the_name_of_a_quantity_may_contain_the_claims_measure(written):
    claims = written("claims: [{of: 'wa{{ measure }}', low: 0, claims: [{text: few wait, measure: its}]}]")
    assert [(claim.measure, claim.found.mean) for claim in judged(claims)] == [("its", 2)]


def test_what_a_block_says_its_claims_say_unless_they_say_something_else(written):
    claims = written(
        """
claims:
- where: sec. 5
  low: 0
  claims:
  - {text: one, of: waits}
  - {text: two, of: waits, where: sec. 6, low: 5}
"""
    )
    assert [(claim.where, claim.low) for claim in judged(claims)] == [("sec. 5", 0), ("sec. 6", 5)]


def test_a_condition_leaves_claims_out(written):
    claims = written("claims: [{for: {pool: [A, B]}, if: pool in pools, text: '{{ pool }}', of: waits, low: 0}]")
    assert [claim.text for claim in judged(claims, pools=["B"])] == ["B"]


def test_bounds_are_expressions_of_printed_numbers(written):
    claims = written(
        "data: {printed: {wait: 30, before: 40}, factor: 1.5}\n"
        "claims: [{text: '{{ printed.wait }} s', of: waits, low: printed.wait / factor, high: printed.wait * factor},"
        " {text: less, of: waits, high: 'percent_more(printed.wait, printed.before)'}]"
    )
    assert [(each.text, each.low, each.high) for each in judged(claims)] == [("30 s", 20, 45), ("less", -inf, -25)]


def test_a_word_has_its_bounds_in_one_place_and_tells_them_beside_the_quotation(written):
    claims = written(
        "shared: paper.yaml\n"
        "claims: [{text: better, of: waits, reads: better}, {text: near 30, of: waits, reads: {near: 10 * 3}}]",
        "data: {factor: 1.5}\n"
        "readings:\n"
        "  better: {low: -100, high: 0, told: 'better: {{ low }} to {{ high }} %', difference: true}\n"
        "  near: {low: x / factor, high: x * factor}\n",
    )
    better, near = judged(claims, {"waits": np.zeros(3)})
    assert (better.text, better.verdict) == ("better (better: -100 to 0 %)", IDENTICAL)
    assert (near.text, near.low, near.high, near.verdict) == ("near 30", 20, 45, "does not hold")


def test_draws_are_judged_by_a_printed_number_or_by_bounds(written):
    claims = written("claims: [{text: '50', of: draws, printed: 50}, {text: above, of: draws, low: 0}]")
    printed, above = judged(claims, {"draws": drawn(np.arange(100.0))})
    assert (printed.expected, printed.words) == ("50", "holds: inside 90 % of our draws")
    assert above.words == "holds: true of 99 % of our draws"


def test_a_number_that_was_given_is_an_input(written):
    [claim] = judged(written("claims: [{text: given, of: waits, low: -1, high: 9, input: scale == 1}]"), scale=1)
    assert claim.verdict == INPUT


def test_a_sentence_of_several_parts_is_one_claim_and_none_without_parts(written):
    claims = written(
        """
claims:
- text: second
  where: sec. 5
  parts:
  - {measure: behind the first, of: waits, low: 0}
  - {for: {pool: pools}, measure: "ahead of {{ pool }}", of: waits, high: 0}
- {text: nothing, parts: [{if: false, of: waits}]}
"""
    )
    [claim] = judged(claims, {"waits": Interval(2, 1, 3)}, pools=["C", "D"])
    assert (claim.text, claim.where, claim.verdict) == ("second", "sec. 5", "does not hold")
    assert [part.measure for part in claim.parts] == ["behind the first", "ahead of C", "ahead of D"]


def test_pages_use_the_same_claims_on_other_quantities(written):
    shared = "families: {load: [{text: '{{ kind }} waits', of: '{{ kind }} s', low: 0}]}"
    claims = written("shared: paper.yaml\nclaims: [{for: {kind: [a, b]}, group: '{{ kind }}', use: load}]", shared)
    found = judged(claims, {"a s": 1.0, "b s": 2.0})
    assert [(each.group, each.text, each.found.mean) for each in found] == [("a", "a waits", 1), ("b", "b waits", 2)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("claims: [{text: a, off: waits}]", "claims[0].off: Extra inputs are not permitted"),
        ("claim: []", "claim: Extra inputs are not permitted"),
        ("claims: [{text: a, low: [1]}]", "claims[0].low."),
        ("claims: [{text: a, text: b}]", "line 1: not valid YAML for a page: key 'text' is given twice; remove one"),
        ("claims: [{text: '{{ a'}]", "claims[0].text: unexpected end of template"),
        ("claims: [{of: waits, reads: {near: 1 +}}]", "claims[0].reads: unexpected 'end of template'"),
        ("claims: [{of: waits, claims: [{low: 1 +}]}]", "claims[0].claims[0].low: unexpected 'end of template'"),
        ("claims: [{for: {pool: 'a b'}, of: waits}]", "claims[0].for.pool: "),
        ("readings: {near: {low: x /}}", "readings.near.low: unexpected 'end of template'"),
    ],
)
def test_a_wrong_file_is_one_line_with_the_file_and_the_entry(written, text, problem):
    with pytest.raises(BadInput) as caught:
        written(text)
    assert str(caught.value).startswith(f"{caught.value}".split(FILE, maxsplit=1)[0] + FILE + ", " + problem)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("claims: [{text: a, of: wait}]", "claims[0]: quantity 'wait' is unknown; nearest: waits"),
        ("claims: [{}, {text: '{{ pool }}', of: waits}]", "claims[0]: quantity '' is unknown; nearest: waits"),
        ("claims: [{text: '{{ pool }}', of: waits}]", "claims[0]: 'pool' is undefined"),
        ("claims: [{claims: [{of: waits, low: most}]}]", "claims[0].claims[0]: 'most' is undefined"),
        ("claims: [{of: waits, reads: better}]", "claims[0]: reading 'better' is unknown; valid: "),
        ("claims: [{of: waits, printed: 3}]", "claims[0]: 'printed' is for draws; quantity 'waits' needs low"),
        ("claims: [{of: waits, reads: {near: 1, much: 2}}]", "claims[0]: reads has 2 words; valid: one"),
        ("claims: [{use: load}]", "claims[0]: family 'load' is unknown; valid: "),
    ],
)
def test_an_entry_that_names_what_is_not_there_is_one_line_with_the_file_and_the_entry(written, text, problem):
    claims = written(text)
    with pytest.raises(BadInput) as caught:
        judged(claims)
    assert str(caught.value).startswith(f"{claims.file}, {problem}")
    assert "\n" not in str(caught.value)


#: Pages that replay logs as they are: there is nothing to repeat with another seed.
DRAWS_NOTHING = {"estimates"}


@pytest.mark.parametrize("folder", FOLDERS.values(), ids=lambda folder: folder.name)
def test_the_file_of_every_page_can_be_read(folder):
    assert (PageClaims.of(folder).content.seeds > 1) is (folder.name not in DRAWS_NOTHING)
    assert (folder / "run.py").is_file()
    assert (folder / "page.md.j2").is_file()
