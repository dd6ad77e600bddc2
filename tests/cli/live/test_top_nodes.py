"""A node as rows of characters: what a box shows, at which scale, in how many cells."""

import pytest
from overviews import LARGE, amounts, large, node, share, small, with_gpus
from rich.cells import cell_len
from shown import EVIL, FORBIDDEN

from slurm_sns.cli.live.top.node_boxes import (
    ASCII,
    JOB,
    OTHERS,
    SIZES,
    STRANDED,
    UNICODE,
    compact_line,
    letters,
    scale_for,
    tile,
)


def drawn(of: dict, *, columns: int = 80, rows: int = 24, glyphs=ASCII) -> list[str]:
    """The lines of the only node, without blanks at their ends."""
    return ["".join(run.text for run in line).rstrip() for line in tile(of, scale_for([of], columns, rows), glyphs)]


def test_cores_lie_across_and_memory_up() -> None:
    lines = drawn(node("c1", amounts(4, 4096), [share("7", 2, 1024)]))
    inside = lines[2:-1]
    assert (len(inside), len(inside[0])) == (12, 42)
    assert {line.count("a") for line in inside if "7" not in line} == {0, 20}
    assert sum("a" in line for line in inside) == 3


def test_the_next_job_begins_where_the_one_before_it_ends() -> None:
    lines = drawn(node("c1", amounts(4, 4096), [share("7", 2, 2048), share("8", 2, 2048)]))
    assert lines[2] == f"|{'.' * 20}b8{'b' * 18}|"
    assert lines[-2] == f"|{'a' * 20}{'.' * 20}|"


def test_a_label_stands_in_its_rectangle_where_there_is_room() -> None:
    assert "a4711aaaa" in "".join(drawn(node("c1", LARGE, [share("4711", 14, 65_536)])))
    narrow = "".join(drawn(node("c1", LARGE, [share("4711", 2, 65_536)])))
    assert "aaa" in narrow
    assert "4711" not in narrow


def test_the_smallest_job_has_a_cell() -> None:
    jobs = [share("1", 100, 1_000_000), share("2", 1, 1)]
    assert "b" in "".join(drawn(node("c1", amounts(128, 1_048_576), jobs)))


def test_free_capacity_that_serves_nobody_is_hatched() -> None:
    of = node("c1", amounts(4, 4096), [share("7", 2, 4096)], stranded=amounts(2, 0))
    assert drawn(of)[-2] == f"|{'a' * 20}{'/' * 20}|"


def test_what_is_free_and_useful_is_blank_and_an_empty_node_has_nothing_in_its_box() -> None:
    assert {line.strip("|") for line in drawn(node("c1", LARGE))[2:14]} == {" " * 40}


def test_jobs_of_others_have_a_sign_and_no_letter() -> None:
    of = node("c1", amounts(4, 4096), [share("", 2, 4096), share("7", 2, 4096)])
    assert letters(of) == ["", "a"]
    assert drawn(of)[-2].startswith("|::::")


def test_jobs_of_slurm_alone_have_capitals_and_those_after_the_26th_a_star() -> None:
    of = node("c1", LARGE, [*(share(str(at), 1, 1, managed=False) for at in range(27)), share("x", 1, 1)])
    assert "".join(letters(of)) == "ABCDEFGHIJKLMNOPQRSTUVWXYZ*a"


def test_each_kind_of_area_has_a_character_of_its_own() -> None:
    for glyphs in (ASCII, UNICODE):
        signs = [glyphs.stranded, glyphs.beside, glyphs.others, glyphs.across, glyphs.up, " "]
        assert len(set(signs)) == len(signs)
        assert not any(each.isalpha() for each in signs)
    assert all(ord(letter) < 128 for each in ASCII for letter in "".join(each))


def test_a_node_that_cannot_be_used_says_why_and_is_crossed_out() -> None:
    lines = drawn(node("c4", LARGE, unavailable="drained: bad disk"))
    assert lines[0] == " c4 ! drained: bad disk"
    assert lines[2] == f"|{'x' * 40}|"


def test_a_node_says_for_which_jobs_it_is_kept_and_names_none_that_the_caller_may_not_see() -> None:
    assert drawn(node("c3", LARGE, kept_for=["4720", "", ""]))[0] == " c3 kept for 4720, 2 other jobs"
    assert drawn(node("c3", LARGE, kept_for=[""]))[0] == " c3 kept for 1 other job"


def test_cache_ways_and_gpus_have_strips_of_used_and_free() -> None:
    of = node("g1", with_gpus(amounts(16, 65_536, 20), a100=4), [share("7", 4, 1024, ways=5, a100=3)])
    assert drawn(of)[-2:] == ["ways #####--------------- 5/20", "a100 ###- 3/4"]
    assert not any(line.startswith("ways") for line in drawn(node("s1", amounts(4, 4096))))


def test_stranded_gpus_are_hatched_at_the_end_of_the_free_ones() -> None:
    capacity = with_gpus(amounts(16, 65_536), a100=4, v100=2)
    of = node("g1", capacity, [share("7", 4, 1024, a100=1)], stranded=with_gpus(amounts(0, 0), a100=2))
    assert drawn(of)[-2:] == ["a100 #-// 1/4", "v100 -- 0/2"]
    kinds = [
        run.kind for line in tile(of, scale_for([of], 80, 24), UNICODE) for run in line if run.text == "\u2571" * 2
    ]
    assert kinds == [STRANDED]


def test_boxes_are_as_large_as_the_screen_lets_all_of_them_be() -> None:
    few, many = large(0, 4)["nodes"], large(0, 1000)["nodes"]
    for columns, rows in ((200, 60), (80, 20)):
        scale = scale_for(few, columns, rows)
        assert scale.width <= columns
        assert -(-4 // scale.per_line(columns)) * scale.height <= rows
    assert scale_for(few, 200, 60).columns > scale_for(few, 80, 20).columns
    assert (scale_for(many, 200, 60).columns, scale_for(many, 200, 60).rows) == SIZES[-1]


def test_a_smaller_node_has_a_smaller_box() -> None:
    nodes = [node("c1", amounts(32, 65_536)), node("s1", amounts(16, 32_768))]
    scale = scale_for(nodes, 80, 24)
    assert [side * 2 for side in scale.of(nodes[1])] == list(scale.of(nodes[0]))


@pytest.mark.parametrize("glyphs", [ASCII, UNICODE])
def test_every_line_of_every_tile_is_as_wide_as_the_tile(glyphs) -> None:
    odd = node("ünï\u4e2d\x1b[31m", amounts(0, 0), [share(EVIL, 5, 5)], unavailable=EVIL, kept_for=[EVIL])
    nodes = [*small()["nodes"], *large(500, 20)["nodes"], odd]
    for columns, rows in ((80, 20), (200, 60), (20, 5)):
        scale = scale_for(nodes, columns, rows)
        for each in nodes:
            lines = ["".join(run.text for run in line) for line in tile(each, scale, glyphs)]
            assert {cell_len(line) for line in lines} == {scale.width}
            assert len(lines) == scale.height
            compact = "".join(run.text for run in compact_line(each, columns, glyphs))
            assert cell_len(compact) == columns
            assert not any(letter in compact + "".join(lines) for letter in FORBIDDEN)


def test_one_line_has_the_cores_the_amounts_and_the_note() -> None:
    nodes = {each["name"]: each for each in small()["nodes"]}
    lines = {name: "".join(run.text for run in compact_line(of, 80, ASCII)).rstrip() for name, of in nodes.items()}
    assert lines["c1"] == " c1           [a4711aaaaaaaaabbb::/] 26/28c 128/128G 16/20w"
    assert lines["g1"].endswith("4/16c 16/64G 3/4a100")
    assert lines["c4"].endswith("! drained: bad disk")


def test_runs_tell_by_their_kind_what_is_drawn() -> None:
    of = small()["nodes"][0]
    kinds = {run.kind for line in tile(of, scale_for([of], 80, 24), UNICODE) for run in line}
    assert {JOB, OTHERS, STRANDED} <= kinds
