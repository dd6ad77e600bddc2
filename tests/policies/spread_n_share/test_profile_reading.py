"""What a file of profiles may say: everything else is one error that names the program, the field and what is valid."""

import copy
import math

import pytest

from slurm_sns.policies.spread_n_share.profile_reading import ProfileError, data_of, programs_of

RUN = {
    "processes": 16,
    "scale": 1,
    "time_s": 97.86,
    "ways": [2, 4, 20],
    "ipc": [0.8, 0.9, 1.0],
    "bandwidth_gbps": [112, 112, 112],
    "provenance": {"time_s": "measured", "ipc": "assumed", "bandwidth_gbps": "printed"},
}


def file(run=None, runs=None, **program):
    listed = runs if runs is not None else [{**RUN, **(run or {})}]
    return {"programs": {"mg": {"runs": copy.deepcopy(listed), **program}}}


def without(key):
    return {name: value for name, value in RUN.items() if name != key}


def test_a_right_file_is_read():
    (program,) = programs_of(file(source="the paper", max_scale=8))

    assert (program.name, program.source, program.max_scale) == ("mg", "the paper", 8)
    (run,) = program.runs
    assert (run.time_s, run.ways, run.bandwidth_gbps) == (97.86, (2, 4, 20), (112.0, 112.0, 112.0))
    assert str(run.provenance.time_s) == "measured"


def test_what_is_written_is_what_is_read():
    given = file(source="s", max_scale=2, runs=[{**RUN, "scale": 2}, RUN, {**RUN, "processes": 8}])

    programs = programs_of(given)

    assert [(run.processes, run.scale) for run in programs[0].runs] == [(8, 1), (16, 1), (16, 2)]
    assert programs_of(data_of(programs)) == programs


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ({"ways": [2, 8, 4]}, r"program 'mg': runs\[0\].ways\[2\]: 4 after 8; valid: ways that increase strictly"),
        ({"ways": [2, 2, 4]}, r"runs\[0\].ways\[1\]: 2 after 2"),
        ({"ways": [2]}, r"runs\[0\].ways: it has 1 points; valid: at least 2"),
        ({"ways": [0, 4, 20]}, r"runs\[0\].ways\[0\]: 0; valid: a whole number from 1 to 64"),
        ({"ways": [2, 4, 65]}, r"runs\[0\].ways\[2\]: 65; valid: a whole number from 1 to 64"),
        ({"ways": [2, 4, 8.5]}, r"runs\[0\].ways\[2\]: 8.5; valid: a whole number"),
        ({"ways": [2, 4, True]}, r"runs\[0\].ways\[2\]: True; valid: a whole number"),
        ({"ways": "2,4"}, r"runs\[0\].ways: '2,4' is no list"),
        ({"ipc": [0.8, 1.0]}, r"program 'mg': runs\[0\].ipc: it has 2 numbers; valid: 3, as many as ways"),
        ({"bandwidth_gbps": [1, 1, 1, 1]}, r"runs\[0\].bandwidth_gbps: it has 4 numbers; valid: 3"),
        ({"ipc": [0, 0.9, 1.0]}, r"runs\[0\].ipc\[0\]: 0; valid: a number above 0, at most 1000"),
        ({"ipc": [0.8, -0.9, 1.0]}, r"runs\[0\].ipc\[1\]: -0.9; valid: a number above 0"),
        ({"ipc": [0.8, 0.9, math.nan]}, r"runs\[0\].ipc\[2\]: nan; valid: a number above 0"),
        ({"ipc": [0.8, 0.9, math.inf]}, r"runs\[0\].ipc\[2\]: inf; valid: a number above 0"),
        ({"ipc": [0.8, 0.9, 10**18]}, r"runs\[0\].ipc\[2\]: 10+; valid: a number above 0"),
        ({"ipc": [0.8, 0.9, "1"]}, r"runs\[0\].ipc\[2\]: '1'; valid: a number"),
        ({"bandwidth_gbps": [112, 112, -1]}, r"runs\[0\].bandwidth_gbps\[2\]: -1; valid: a number from 0"),
        ({"time_s": 0}, r"runs\[0\].time_s: 0; valid: a number above 0"),
        ({"time_s": None}, r"runs\[0\].time_s: None; valid: a number above 0"),
        ({"scale": 0}, r"runs\[0\].scale: 0; valid: a whole number from 1 to 64"),
        ({"processes": 0}, r"runs\[0\].processes: 0; valid: a whole number from 1"),
        ({"provenance": "assumed"}, r"runs\[0\].provenance: 'assumed' is no mapping; valid: time_s, ipc"),
        (
            {"provenance": {**RUN["provenance"], "ipc": "guessed"}},
            "provenance.ipc: 'guessed'; valid: printed, measured",
        ),
        ({"provenance": {"ipc": "assumed"}}, "provenance: time_s is missing"),
        ({"bandwith_gbps": [1]}, "'bandwith_gbps' is unknown; did you mean bandwidth_gbps"),
    ],
)
def test_a_bad_run_is_refused(run, words):
    with pytest.raises(ProfileError, match=words):
        programs_of(file(run))


@pytest.mark.parametrize("field", RUN)
def test_every_field_of_a_run_is_needed(field):
    with pytest.raises(ProfileError, match=rf"program 'mg': runs\[0\]: {field} is missing; valid: processes, scale"):
        programs_of(file(runs=[without(field)]))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (None, "programs is missing"),
        ([], "programs is missing"),
        ({"programs": {}}, "programs: valid: 1 to 10000 programs"),
        ({"programs": ["mg"]}, "programs: valid: 1 to 10000 programs"),
        ({"programs": {"mg": {"runs": [RUN]}}, "program": 1}, "'program' is unknown; valid: programs"),
        ({"programs": {"m g": {"runs": [RUN]}}}, "program 'm g': its name; valid: 1 to 64 letters"),
        ({"programs": {"mg": None}}, "program 'mg': None is no mapping; valid: source, max_scale, runs"),
        ({"programs": {"mg": {}}}, "program 'mg': runs is missing"),
        (file(runs=[]), "program 'mg': runs: no list of runs; valid: 1 to 1000 runs"),
        (file(runs=[1]), r"program 'mg': runs\[0\]: 1 is no mapping"),
        (file(maxscale=2), "program 'mg': 'maxscale' is unknown; did you mean max_scale"),
        (file(max_scale=0), "program 'mg': max_scale: 0; valid: a whole number from 1 to 64"),
        (file(source=5), "program 'mg': source: 5; valid: a text"),
        (file({"scale": 4}, max_scale=2), r"runs\[0\].scale: 4; valid: at most the program's max_scale, 2"),
        (file({"scale": 2}), "program 'mg': runs: 16 processes have no run at scale 1; valid: a run at scale 1"),
        (file(runs=[RUN, RUN]), r"runs\[1\]: a second run of 16 processes at scale 1; valid: one run per"),
    ],
)
def test_a_bad_program_is_refused(data, words):
    with pytest.raises(ProfileError, match=words) as problem:
        programs_of(data)
    assert "\n" not in str(problem.value)


def test_no_curve_has_more_ways_than_any_node():
    with pytest.raises(ProfileError, match=r"runs\[0\].ways\[2\]: 20; valid: at most 11, the most ways that any node"):
        programs_of(file(), most_ways=11)
    assert programs_of(file(), most_ways=20)
